/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * MPCC, multipath performance-oriented congestion control (Gilad et al., CoNEXT 2020), as crates/cc/src/mpcc.rs: each
 * subflow climbs its own utility (ascent.h), in which reward and penalties are scaled by the connection's total rate.
 *
 * A program defines LATENCY_WEIGHT, in millionths, before it includes this file.
 */
#ifndef MANYPATH_MPCC_H
#define MANYPATH_MPCC_H

#include "ascent.h"
#include "group.h"

/*
 * Defaults: MPCC s7.1, and its release where the paper gives none; but what all real paths have in place of these (FOR_REAL_PATHS of
 * crates/cli/src/algorithms.rs). Slow start tolerates chance losses: the paper's rule cannot tell one lost packet from congestion at the
 * rates that slow start begins with. Beside 90 Mbit/s of the other subflows', going from 4 to 8 pays as long as less than 0.2% is lost
 * (eq. 2 with the weight of s7.1); an interval of 45 ms has 30 packets there. An overload that lasts is braked, a growing queue and
 * what bursts lose are heeded.
 *
 * The longer nothing is heard after a timeout, the more the rate falls: what a path that has become thin loses, TCP must send over it again.
 *
 * A subflow slower than the probing distance tries a quarter of its rate less and more. What it tries with the distance is lost for the most
 * part, and sent again on this path, for which the whole connection waits (docs/decisions/slow-beside-fast.md). And at the smallest rate, which Rust's
 * tries as well, the 48 KB that may wait in it (holding.h) take 1.9 s.
 */
TUNABLES = {
	.loss_weight_ppm = 11350000,
	.latency_weight_ppm = LATENCY_WEIGHT,
	.units = UNITS_MBIT,
	.mi_ppm = 1500000,
	.mi_packets = 5,
	.min_slope_ppm = 10000,
	.omega_ppm = 50000,
	.low = LOW_NEAR,
	.theta_ppm = 1000000,
	.steps = STEPS_RELEASE,
	.min_step_ppm = 500000,
	.bound_ppm = 50000,
	.bound_step_ppm = 50000,
	.swing = 2,
	.initial_ppm = 4000000,
	.min_rate_ppm = 200000,
	.slow_start = START_TOLERANT,
	.leave = LEAVE_BETTER,
	.publish = PUBLISH_INTERVAL,
	.timeout = TIMEOUT_BACKOFF,
	.brake = BRAKE_LASTING,
	.queue = QUEUE_HEEDED,
	.bursts = BURSTS_HEEDED,
};

typedef struct ascent paced_state;

/* In mp_member.law: the published rate, Mbit/s. */
#define PUBLISHED 0
/* The window in multiples of rate times round-trip time (MPCC's release): pacing limits sending, not the window. */
#define WINDOW_GAIN 2
/* Whether the window may fall to little at once, so that what waits unsent must be bounded by it. Rates change by some per cent an interval. */
#define PACED_MAY_FALL 0

/* The sum of the rates that the others have published, and how many have. */
INLINE real mpcc_others(const struct mp_group *group, u32 own, u64 *count)
{
	real sum = 0;
	u32 place;

	*count = 0;
	for (place = 0; place < MP_SUBFLOWS; place++) {
		real published = group->member[place].law[PUBLISHED];

		if (place == own || !published || !is_busy(group, place))
			continue;
		sum = real_add(sum, published);
		++*count;
	}
	return sum;
}

INLINE void paced_join(paced_state *state, struct mp_group *group, u32 own)
{
	(void)group;
	(void)own;
	ascent_join(state);
}

INLINE void paced_on_ack(paced_state *state, struct mp_group *group, u32 own, const struct path_view *path)
{
	hear(group, own, path->now_us, path->srtt_us);
	ascent_on_ack(state, path, mpcc_others(group, own, &state->others_count));
	group->member[in_bounds(own)].law[PUBLISHED] = state->published;
}

/* Losses act through the utility. */
INLINE void paced_on_loss(paced_state *state, struct mp_group *group, u32 own)
{
	(void)state;
	(void)group;
	(void)own;
}

INLINE void paced_on_timeout(paced_state *state, struct mp_group *group, u32 own, const struct path_view *path)
{
	ascent_on_timeout(state, path);
	group->member[in_bounds(own)].law[PUBLISHED] = 0;
}

/* For tests: the results of an interval as they would come in. */
INLINE void paced_report(paced_state *state, const struct path_view *path, const struct report *report, real others)
{
	ascent_report(state, path, report, others);
}

/* Bytes per second. */
INLINE u64 paced_rate(const paced_state *state, const struct path_view *path)
{
	(void)path;
	return real_floor(real_mul(state->rate, real_of(125000)));
}

/* Packets. */
INLINE u64 paced_window(const paced_state *state, const struct path_view *path)
{
	/* Mbit/s times us are bits. */
	real bits = real_mul(state->rate, real_of((u64)paced_round_trip(path) * WINDOW_GAIN));
	u64 window = real_floor(real_div(bits, real_of((u64)path->mss * 8))) + 1;

	return window > MIN_PACED_WINDOW ? window : MIN_PACED_WINDOW;
}

/* Thousandths. */
INLINE s64 paced_utility(const paced_state *state)
{
	s64 milli = (s64)real_floor(real_mul(state->utility.size, real_of(1000)));

	return state->utility.negative ? -milli : milli;
}

INLINE u32 paced_phase(const paced_state *state)
{
	return state->phase == SLOW_START ? MP_SLOW_START : state->phase == PROBING ? MP_PROBING : MP_MOVING;
}

#endif
