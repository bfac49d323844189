/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * OLIA, the Opportunistic Linked Increases Algorithm (draft-khalili-mptcp-congestion-control-05), as crates/cc/src/olia.rs.
 *
 * A term that is optimal for resource pooling, and one that moves windows from the largest to the best paths.
 */
#ifndef MANYPATH_OLIA_H
#define MANYPATH_OLIA_H

#include "tunables.h"

struct tunables {
	/* How a path's quality is estimated from l, the packets between losses: 0, l/rtt^2; 1, l^2/rtt as draft-05 prints. */
	u64 quality;
	/* As in window_control.h. */
	u64 pacing;
};

TUNABLES = { .quality = 0, .pacing = 1 };

struct law_state {
	/* Packets between the last two losses (spec: l1). */
	u32 before;
	/* Packets delivered when the last loss began. */
	u32 start;
};

#include "window.h"

/* In mp_member.law: packets between losses, the larger of before and since the last (spec: l_r). */
#define DISTANCE 0

INLINE void olia_joined(const struct step *step)
{
	step->state->law.start = step->socket->delivered;
}

INLINE void olia_on_ack(const struct step *step)
{
	u32 since = step->socket->delivered - step->state->law.start;
	u32 before = step->state->law.before;

	member_of(step)->law[DISTANCE] = real_of(since > before ? since : before);
}

INLINE void olia_on_loss(const struct step *step)
{
	step->state->law.before = step->socket->delivered - step->state->law.start;
	step->state->law.start = step->socket->delivered;
	member_of(step)->law[DISTANCE] = real_of(step->state->law.before);
}

INLINE real olia_quality(const struct mp_member *member)
{
	real l = member->law[DISTANCE];

	if (tunables.quality == 1)
		return real_div(real_mul(l, l), member->rtt);
	return real_div(real_div(l, member->rtt), member->rtt);
}

/*
 * The draft's alpha_r: positive on the best paths that do not have the largest window, negative on the largest windows if
 * there are such paths; the sum is zero.
 */
INLINE struct growth olia_increase(const struct step *step)
{
	const struct mp_group *group = step->group;
	struct mp_member *own = member_of(step);
	real sum = 0, best = 0, largest = 0, quality[MP_SUBFLOWS], share;
	u32 place, n = 0, collected = 0, maximal = 0;
	bool is_collected, is_largest;
	struct growth growth;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_member *member = &group->member[place];

		if (!counts(group, place))
			continue;
		quality[place] = olia_quality(member);
		best = real_max(best, quality[place]);
		largest = real_max(largest, member->window);
		sum = real_add(sum, rate_of(member));
		n++;
	}
	for (place = 0; place < MP_SUBFLOWS; place++) {
		if (!counts(group, place))
			continue;
		if (group->member[place].window >= largest)
			maximal++;
		else if (quality[place] >= best)
			collected++;
	}
	/* Draft s3: w_r/rtt_r^2 / (sum w/rtt)^2 + alpha_r/w_r. */
	growth.up = real_div(real_div(rate_of(own), own->rtt), real_mul(sum, sum));
	growth.down = 0;
	is_largest = own->window >= largest;
	is_collected = !is_largest && olia_quality(own) >= best;
	share = real_of((u64)n * (is_collected ? collected : maximal));
	if (is_collected)
		growth.up = real_add(growth.up, real_div(REAL_ONE, real_mul(share, own->window)));
	else if (is_largest && collected)
		growth.down = real_div(REAL_ONE, real_mul(share, own->window));
	return growth;
}

#endif
