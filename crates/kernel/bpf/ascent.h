/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Gradient ascent on a utility by trying rates: what MPCC runs on each subflow (MPCC s5.2), as crates/cc/src/ascent.rs, where
 * it says what is done where the paper is silent.
 *
 * Rates are in Mbit/s. `others` is the sum of the rates that the connection's other subflows have published; it is frozen while
 * a gradient is estimated.
 */
#ifndef MANYPATH_ASCENT_H
#define MANYPATH_ASCENT_H

#include "slow_start.h"

/* What a retransmission timeout has on top of the round trip at least, microseconds (TCP_RTO_MIN). */
#define MIN_TIMEOUT 200000

/* An interval of probing or moving tested nothing. It alone is repeated. */
SHARED u32 ascent_try_again(struct ascent *ascent, const struct path_view *path, const struct report *report)
{
	if (!ascent || !path || !report)
		return 0;
	if (ascent->phase != PROBING) {
		ascent_begin(ascent, path, 0, report->rate);
		return 0;
	}
	ascent->begun &= ~(1u << (report->index & (PROBES - 1)));
	if (!open_interval(&ascent->monitor))
		ascent_begin_probe(ascent, path);
	return 0;
}

/*
 * Whether it may be a moment without delivery that took so much of an interval, not its rate: for as long as it takes to hear of one. Not
 * in slow start, whose rate nothing has tested.
 */
INLINE bool ascent_may_have_met_a_gap(struct ascent *ascent, const struct path_view *path, const struct report *report)
{
	if (tunables.brake != BRAKE_LASTING || ascent->phase == SLOW_START || !report->is_gap)
		return false;
	if (!ascent->gap_at_us)
		ascent->gap_at_us = path->now_us;
	return report->start_us < ascent->gap_at_us;
}

/* Moves the base rate and measures there. */
SHARED u32 ascent_step(struct ascent *ascent, const struct path_view *path, const struct sreal *gradient, real others)
{
	real from, step, to;

	if (!ascent || !path || !gradient)
		return 0;
	from = ascent->base;
	step = momentum_step(&ascent->momentum, sreal_sign(*gradient), gradient->size, from, ascent_shared(ascent, others));
	to = gradient->negative ? real_sub(from, step) : real_add(from, step);
	ascent->base = real_clamp(to, real_of_ppm(tunables.min_rate_ppm), MAX_RATE);
	ascent->others = others;
	ascent->phase = MOVING;
	ascent->from = from;
	ascent->decisions++;
	ascent_begin(ascent, path, 0, ascent->base);
	return 0;
}

/* The rate is far too high: half, or what slow start goes back to; and no more than what arrived unless `brake=held`. */
INLINE void ascent_brake(struct ascent *ascent, const struct path_view *path, const struct report *report, real others)
{
	real lower = real_shift(ascent->base, -1), arrived = ascent_arrived(report);

	ascent->momentum = (struct momentum){};
	if (ascent->phase == SLOW_START)
		lower = ascent_known_to_fit(ascent, report);
	else if (arrived)
		lower = real_min(lower, arrived);
	if (tunables.brake != BRAKE_HELD)
		lower = real_min(lower, real_mul(report->rate, real_sub(REAL_ONE, report->loss)));
	if (report->loss >= REAL_ONE)
		lower = real_max(lower, ascent_away(ascent));
	ascent->base = lower;
	ascent_probe(ascent, path, others);
}

/* What the path carried of an interval that was held back, Mbit/s, if it shows that this rate is too high; zero if not. */
INLINE real ascent_carried(const struct ascent *ascent, const struct sample *new, const struct report *report)
{
	real arrived = real_mul(report->rate, real_sub(REAL_ONE, report->loss)), carried;
	u64 too_fast;

	if (is_unbearable(new, report->packets, ascent->others))
		return arrived;
	too_fast = ascent->phase == SLOW_START ? DOUBLED_TOO_FAR_PPM : QUEUE_GROWS_PPM;
	if (!report->cut_short || !is_growing_by(report->slope, too_fast))
		return 0;
	/* A sender or receiver that stood still for a moment looks the same: one burst alone takes no more than half. */
	carried = real_max(real_div(arrived, real_add(REAL_ONE, report->slope.size)), real_shift(ascent->base, -1));
	return carried < ascent->base ? carried : 0;
}

/* A result of a probing round. Decides when all are in. */
SHARED u32 ascent_probed(struct ascent *ascent, const struct path_view *path, u32 index, const struct sample *new,
			 real others)
{
	const struct sample *high[2], *low[2];
	struct sreal one, two;
	u32 first, second;

	if (!ascent || !path || !new)
		return 0;
	ascent->samples[index & (PROBES - 1)] = *new;
	ascent->known |= 1 << (index & (PROBES - 1));
	if (ascent->known != (1 << PROBES) - 1)
		return 0;
	/* Where the higher rates of the two pairs are. */
	first = ascent->highs & 1 ? 0 : 1;
	second = ascent->highs & 4 ? 2 : 3;
	high[0] = &ascent->samples[first];
	low[0] = &ascent->samples[1 - first];
	high[1] = &ascent->samples[second];
	low[1] = &ascent->samples[5 - second];
	one = utility_gradient(low[0], high[0], ascent->others);
	two = utility_gradient(low[1], high[1], ascent->others);
	if (sreal_sign(one) * sreal_sign(two) <= 0) {
		/* The pairs disagree, or nothing changed: stay and look again. */
		momentum_decide(&ascent->momentum, 0);
		ascent_probe(ascent, path, others);
		return 0;
	}
	one.size = real_min(one.size, two.size);
	/* What the first move is compared with: the side that was worse, which lies well apart from where the move goes. */
	ascent->previous = one.negative ? sample_mean(high[0], high[1]) : sample_mean(low[0], low[1]);
	ascent_step(ascent, path, &one, others);
	ascent->published = ascent->base;
	return 0;
}

/* MPCC s5.2, moving: the gradient of the two preceding intervals. */
SHARED u32 ascent_moved(struct ascent *ascent, const struct path_view *path, const struct sample *new, real others)
{
	struct sreal gradient;

	if (!ascent || !path || !new)
		return 0;
	gradient = utility_gradient(&ascent->previous, new, ascent->others);
	if (momentum_agrees(&ascent->momentum, sreal_sign(gradient))) {
		if (tunables.queue == QUEUE_HEEDED && sreal_sign(gradient) > 0 && sreal_sign(new->slope) > 0)
			momentum_calm(&ascent->momentum);
		ascent->previous = *new;
		ascent_step(ascent, path, &gradient, others);
		return 0;
	}
	/* A gradient of zero tells no direction: moving ends, but nothing has turned. */
	if (sreal_sign(gradient))
		momentum_turn(&ascent->momentum);
	if (tunables.leave == LEAVE_BETTER)
		ascent->base = ascent->from;
	ascent_probe(ascent, path, others);
	return 0;
}

SHARED u32 ascent_report(struct ascent *ascent, const struct path_view *path, const struct report *report, real others)
{
	struct sample new = {};
	real carried = 0;
	bool is_probe;

	if (!ascent || !path || !report)
		return 0;
	new.rate = report->rate;
	new.loss = report->loss;
	new.slope = report->slope;
	ascent->intervals++;
	ascent->utility = utility_of(&new, ascent->others);
	ascent->unfair += !report->filled;
	if (!report->overload) {
		ascent->gap_at_us = 0;
	} else if (ascent_may_have_met_a_gap(ascent, path, report)) {
		ascent_try_again(ascent, path, report);
		return 0;
	} else if (!report->filled || tunables.brake != BRAKE_HELD) {
		ascent_brake(ascent, path, report, others);
		return 0;
	}
	if (!report->filled && tunables.bursts == BURSTS_HEEDED)
		carried = ascent_carried(ascent, &new, report);
	if (carried) {
		ascent->momentum = (struct momentum){};
		ascent_fall(ascent, path, real_min(ascent->base, carried), report, others);
		return 0;
	}
	is_probe = report->filled || (tunables.bursts == BURSTS_HEEDED && report->cut_short);
	if (is_probe && ascent_has_passed(ascent, report)) {
		ascent_resume_doubling(ascent, path, &new, others);
		return 0;
	}
	if (!report->filled) {
		/* What did not test its rate is repeated. */
		if (ascent->phase == PROBING && is_probe)
			ascent_probed(ascent, path, report->index, &new, others);
		else if (ascent->phase == PROBING && tunables.bursts == BURSTS_HEEDED)
			ascent_try_again(ascent, path, report);
		else if (ascent->phase == PROBING)
			ascent_probe(ascent, path, others);
		else if (ascent->phase == MOVING || report->app_limited)
			ascent_try_again(ascent, path, report);
		else if (ascent_arrived(report))
			/* Whatever the sender can do, the path cannot do as much. */
			ascent_go_back(ascent, path, report, others);
		else
			ascent_repeat(ascent, path, report, others);
		return 0;
	}
	if (ascent->phase == SLOW_START)
		ascent_doubled(ascent, path, &new, report, others);
	else if (ascent->phase == PROBING)
		ascent_probed(ascent, path, report->index, &new, others);
	else
		ascent_moved(ascent, path, &new, others);
	return 0;
}

/* The first acknowledgement, or the first after a timeout: intervals begin. */
INLINE void ascent_start(struct ascent *ascent, const struct path_view *path, real others)
{
	ascent->running = 1;
	ascent->published = ascent->base;
	ascent->others = others;
	if (ascent->phase == SLOW_START)
		ascent_begin(ascent, path, 0, ascent->base);
	else
		ascent_probe(ascent, path, others);
}

/* Ends the open interval when it is due; goes on to the next probe or waits for results at the base rate. */
INLINE void ascent_advance(struct ascent *ascent, const struct path_view *path)
{
	if (!monitor_is_due(&ascent->monitor, path, (u32)tunables.mi_packets))
		return;
	monitor_close(&ascent->monitor, path);
	if (ascent->phase != PROBING || !ascent_begin_probe(ascent, path))
		ascent->rate = ascent->base;
}

/*
 * The path is heard for the first time after a timeout. What is heard left a round trip ago. Each timeout takes twice as long as the one
 * before: 2^n - 2 times the first pass after it when there are n. The round trip is the one before it: what waited in the path until
 * now tells no other.
 */
INLINE void ascent_on_heard(struct ascent *ascent, const struct path_view *path)
{
	u64 rtt = ascent->known_rtt_us, silence = path->now_us - ascent->silent_since_us;
	real least = real_min(ascent->base, real_of_ppm(tunables.initial_ppm));
	real times = real_div(real_of(silence > rtt ? silence - rtt : 0), real_of(2 * (rtt + MIN_TIMEOUT)));

	ascent->silent_since_us = 0;
	if (tunables.timeout != TIMEOUT_BACKOFF)
		return;
	ascent->base = real_max(real_div(ascent->base, real_add(REAL_ONE, times)), least);
	ascent->rate = ascent->base;
}

/* A new subflow: slow start at the initial rate. The rest of its state is zero. */
INLINE void ascent_join(struct ascent *ascent)
{
	ascent->rate = ascent->base = real_of_ppm(tunables.initial_ppm);
}

/* An acknowledgement; `others` is the sum of the others' published rates. */
INLINE void ascent_on_ack(struct ascent *ascent, const struct path_view *path, real others)
{
	real min_slope = real_of_ppm(tunables.min_slope_ppm);

	if (ascent->silent_since_us)
		ascent_on_heard(ascent, path);
	if (!ascent->running)
		ascent_start(ascent, path, others);
	if (path->rtt_us)
		monitor_sample(&ascent->monitor, path);
	monitor_hear(&ascent->monitor, path, tunables.brake == BRAKE_LASTING);
	ascent_advance(ascent, path);
	ascent_ease(ascent, min_slope);
	if (monitor_report(&ascent->monitor, path, min_slope, &ascent->report) &&
	    ascent->report.epoch == ascent->epoch)
		ascent_report(ascent, path, &ascent->report, others);
}

/* A timeout: halves the rate, as Vivace's release does. What comes after it is slow start from there. */
INLINE void ascent_on_timeout(struct ascent *ascent, const struct path_view *path)
{
	if (tunables.timeout != TIMEOUT_KEEP)
		ascent->base = real_max(real_shift(ascent->base, -1), ascent_away(ascent));
	ascent->rate = ascent->base;
	ascent->momentum = (struct momentum){};
	ascent->monitor.count = 0;
	ascent->epoch++;
	ascent->published = 0;
	ascent->running = 0;
	ascent->silent_since_us = path->now_us;
	ascent->known_rtt_us = path->srtt_us;
	ascent->phase = SLOW_START;
	ascent->has_previous = 0;
	ascent->repeats = 0;
	ascent->doubted_rtt_us = 0;
	ascent->resumed = 0;
	ascent->gap_at_us = 0;
}

#endif
