// SPDX-License-Identifier: MIT OR Apache-2.0
/* TCCC: the rules are in tccc.h, the steps in window_steps.h, the callbacks in window_control.h. */

#include "tccc.h"

#define LAW_HAS_OWN_RTT
#define law_increase tccc_increase
#define law_decrease tccc_decrease
#define law_slow_start tccc_slow_start
#define law_joined tccc_joined
#define law_on_ack(step, packets, limited) tccc_on_ack(step, packets, limited)
#define law_on_loss tccc_on_loss
#define law_on_sample tccc_on_sample

#include "window_control.h"

WINDOW_CONTROLLER(mp_tccc);
