/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The programs' arithmetic, compiled for the host: the same sources, for tests against crates/cc.
 */
#include <stddef.h>

#include "lia.h"
#include "reno.h"

/* Sizes and offsets, to compare with src/layout.rs. */
const size_t mp_layout[] = {
	sizeof(struct mp_member),
	sizeof(struct mp_group),
	sizeof(struct mp_info),
	sizeof(struct mp_connection),
	sizeof(struct mp_weights),
	offsetof(struct mp_info, cwnd),
	offsetof(struct mp_info, rate),
	offsetof(struct mp_info, updated_us),
	offsetof(struct mp_info, utility_milli),
	offsetof(struct mp_info, reserved),
	MP_SUBFLOWS,
	MP_COUNT_UNFAIR_INTERVALS,
	MP_LEARNING,
};
