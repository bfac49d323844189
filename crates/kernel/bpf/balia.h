/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* BALIA, the Balanced Linked Adaptation (draft-walid-mptcp-congestion-control-04), as crates/cc/src/balia.rs. */
#ifndef MANYPATH_BALIA_H
#define MANYPATH_BALIA_H

#include "tunables.h"

struct tunables {
	/* How alpha_r = max x / x_r is computed: 0, as the draft defines it; 1, rounded down, as an integer division does. */
	u64 alpha;
	/* As in window_control.h. */
	u64 pacing;
};

TUNABLES = { .alpha = 0, .pacing = 1 };

struct law_state {};

#include "window.h"

/* 1.5: the largest decrease in halves of the window (draft s3). */
#define MAX_DECREASE REAL_WORD(0xc0000000ULL, REAL_BIAS - 31)

/* alpha_r, and the sum of all rates. */
INLINE real balia_alpha(const struct step *step, real *sum)
{
	real best = 0, alpha;
	u32 place;

	*sum = 0;
	for (place = 0; place < MP_SUBFLOWS; place++) {
		if (counts(step->group, place)) {
			real rate = rate_of(&step->group->member[place]);

			best = real_max(best, rate);
			*sum = real_add(*sum, rate);
		}
	}
	alpha = real_div(best, rate_of(member_of(step)));
	return tunables.alpha == 1 ? real_of(real_floor(alpha)) : alpha;
}

/* Draft s3: x_r / (rtt_r (sum x)^2) * (1 + alpha)/2 * (4 + alpha)/5. */
INLINE struct growth balia_increase(const struct step *step)
{
	const struct mp_member *own = member_of(step);
	real sum, alpha = balia_alpha(step, &sum);
	real base = real_div(real_div(rate_of(own), own->rtt), real_mul(sum, sum));
	real factor = real_mul(real_add(REAL_ONE, alpha), real_add(real_of(4), alpha));

	return (struct growth){ .up = real_div(real_mul(base, factor), real_of(10)) };
}

/* Draft s3: w_r/2 * min(alpha, 1.5). */
INLINE real balia_decrease(const struct step *step)
{
	real sum;

	return real_mul(half_window(step), real_min(balia_alpha(step, &sum), MAX_DECREASE));
}

#endif
