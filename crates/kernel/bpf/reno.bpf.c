// SPDX-License-Identifier: MIT OR Apache-2.0
/* NewReno on every subflow by itself: the rule is in reno.h, the steps in window_steps.h, the callbacks in window_control.h. */

struct law_state {};

#include "reno.h"

#define law_increase reno_increase

#include "window_control.h"

WINDOW_CONTROLLER(mp_reno);
