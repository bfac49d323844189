// SPDX-License-Identifier: MIT OR Apache-2.0
/* wVegas (draft-xu-mptcp-congestion-control-05): rules in wvegas.h, steps in window_steps.h, callbacks in window_control.h. */

#include "wvegas.h"

#define law_increase wvegas_increase
#define law_slow_start wvegas_slow_start
#define law_on_ack(step, packets, limited) wvegas_on_ack(step, limited)
#define law_on_sample wvegas_on_sample
#define law_on_loss wvegas_rest
#define law_on_timeout wvegas_on_timeout

#include "window_control.h"

WINDOW_CONTROLLER(mp_wvegas);
