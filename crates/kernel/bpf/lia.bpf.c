// SPDX-License-Identifier: MIT OR Apache-2.0
/* LIA (RFC 6356): the rule is in lia.h, the steps in window_steps.h, the callbacks in window_control.h. */

struct law_state {};

#include "lia.h"

#define law_increase(step) lia_increase((step)->group, (step)->own)

#include "window_control.h"

WINDOW_CONTROLLER(mp_lia);
