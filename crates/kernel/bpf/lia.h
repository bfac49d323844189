/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LIA, the Linked Increases Algorithm (RFC 6356), as crates/cc/src/lia.rs.
 *
 * The windows of all subflows together grow as one TCP flow on the best path would; each subflow halves on its own.
 */
#ifndef MANYPATH_LIA_H
#define MANYPATH_LIA_H

#include "group.h"

/* RFC 6356 eq. 2 over the total window, max(w/rtt^2) / (sum w/rtt)^2, and eq. 1: never faster than a single flow. */
INLINE struct growth lia_increase(const struct mp_group *group, u32 own)
{
	real best = 0, sum = 0, linked;
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_member *member = &group->member[place];

		if (counts(group, place)) {
			real rate = rate_of(member);

			best = real_max(best, real_div(rate, member->rtt));
			sum = real_add(sum, rate);
		}
	}
	linked = real_div(best, real_mul(sum, sum));
	return (struct growth){ .up = real_min(linked, real_div(REAL_ONE, group->member[in_bounds(own)].window)) };
}

#endif
