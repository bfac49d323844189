// SPDX-License-Identifier: MIT OR Apache-2.0
/* Uni-MPTCP: the rules are in uni_mptcp.h, the steps in window_steps.h, the callbacks in window_control.h. */

#include "uni_mptcp.h"

#define law_increase uni_mptcp_increase
#define law_decrease uni_mptcp_decrease
#define law_slow_start uni_mptcp_relative_weight

#include "window_control.h"

WINDOW_CONTROLLER(mp_uni);
