// SPDX-License-Identifier: MIT OR Apache-2.0
/* NewReno on every subflow by itself: the arithmetic is in reno.h, the callbacks in window_control.h. */

#include "reno.h"

#define law_increase reno_increase
#define law_decrease half_window
#define law_slow_start one_per_packet
struct law_state {};

#include "window_control.h"

WINDOW_CONTROLLER(mp_reno);
