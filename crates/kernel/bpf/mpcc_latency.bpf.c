// SPDX-License-Identifier: MIT OR Apache-2.0
/* MPCC-latency (MPCC s7.1: gamma = 1): the rules are in mpcc.h and ascent.h, the callbacks in paced_control.h. */

#define LATENCY_WEIGHT 1000000
#include "mpcc.h"
#include "paced_control.h"

PACED_CONTROLLER(mp_mpcc_lat);
