// SPDX-License-Identifier: MIT OR Apache-2.0
/* BALIA (draft-walid-mptcp-congestion-control-04): the rules are in balia.h, the steps in window_steps.h, the callbacks in window_control.h. */

#include "balia.h"

#define law_increase balia_increase
#define law_decrease balia_decrease

#include "window_control.h"

WINDOW_CONTROLLER(mp_balia);
