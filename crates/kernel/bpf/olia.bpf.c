// SPDX-License-Identifier: MIT OR Apache-2.0
/* OLIA (draft-khalili-mptcp-congestion-control-05): the rules are in olia.h, the steps in window_steps.h, the callbacks in window_control.h. */

#include "olia.h"

#define law_increase olia_increase
#define law_joined olia_joined
#define law_on_ack(step, packets, limited) olia_on_ack(step)
#define law_on_loss olia_on_loss

#include "window_control.h"

WINDOW_CONTROLLER(mp_olia);
