// SPDX-License-Identifier: MIT OR Apache-2.0
/* LIA (RFC 6356): the arithmetic is in lia.h, the callbacks in window_control.h. */

#include "lia.h"

#define law_increase lia_increase
#define law_decrease half_window
#define law_slow_start one_per_packet
struct law_state {};

#include "window_control.h"

WINDOW_CONTROLLER(mp_lia);
