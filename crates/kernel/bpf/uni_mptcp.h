/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Uni-MPTCP(omega, n), weighted coupled congestion control (Wang et al., s3.3), as crates/cc/src/uni_mptcp.rs.
 *
 * A subflow of small weight leaves its path to others where it can. Weights come from user space through the map `weights`.
 */
#ifndef MANYPATH_UNI_MPTCP_H
#define MANYPATH_UNI_MPTCP_H

#include "tunables.h"

struct tunables {
	/* A loss takes: 0, half of the window; 1, half times the weight, as eq. 17 and 20 print it. */
	u64 decrease;
	/* As in window_control.h. */
	u64 pacing;
};

TUNABLES = { .decrease = 0, .pacing = 1 };

struct law_state {};

#include "window.h"

/* In mp_member.law: the weight (spec: omega). window_control.h keeps it in step with the map. */
#define WEIGHT 0
#define LAW_HAS_WEIGHTS

/* Weight relative to the largest of those that count: slow start depends on the scale of weights. */
INLINE real uni_mptcp_relative_weight(const struct step *step)
{
	real largest = 0;
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++)
		if (counts(step->group, place))
			largest = real_max(largest, step->group->member[place].law[WEIGHT]);
	return largest ? real_div(member_of(step)->law[WEIGHT], largest) : REAL_ONE;
}

/* Uni-MPTCP eq. 20 over W_l: omega_l / (tau_l sum(omega_i W_i / tau_i)). */
INLINE struct growth uni_mptcp_increase(const struct step *step)
{
	const struct mp_member *own = member_of(step);
	real sum = 0;
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_member *member = &step->group->member[place];

		if (counts(step->group, place))
			sum = real_add(sum, real_mul(member->law[WEIGHT], rate_of(member)));
	}
	return (struct growth){ .up = real_div(own->law[WEIGHT], real_mul(own->rtt, sum)) };
}

INLINE real uni_mptcp_decrease(const struct step *step)
{
	real half = half_window(step);

	return tunables.decrease == 1 ? real_mul(uni_mptcp_relative_weight(step), half) : half;
}

#endif
