// SPDX-License-Identifier: MIT OR Apache-2.0
/* MPCC-loss (MPCC s7.1: gamma = 0): the rules are in mpcc.h and ascent.h, the callbacks in paced_control.h. */

#define LATENCY_WEIGHT 0
#include "mpcc.h"
#include "paced_control.h"

PACED_CONTROLLER(mp_mpcc_loss);
