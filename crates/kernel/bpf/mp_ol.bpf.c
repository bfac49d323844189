// SPDX-License-Identifier: MIT OR Apache-2.0
/* MP-OL: the rules are in mp_ol.h, the callbacks in paced_control.h. */

#include "mp_ol.h"
#include "paced_control.h"

PACED_CONTROLLER(mp_ol);
