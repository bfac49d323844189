/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Slow start: the rate doubles while the utility grows (MPCC s5.2), as crates/cc/src/ascent/slow_start.rs. */
#ifndef MANYPATH_SLOW_START_H
#define MANYPATH_SLOW_START_H

#include "ascent_state.h"

/* How often slow start repeats an interval before it goes back (MPCC's release). */
#define MAX_REPEATS 2
/* Loss in per cent that slow start ignores unless `slow_start` is the paper's. */
#define TOLERATED_LOSS 15
/* Longer round trips than this share of those before are a queue, eighths (RFC 9406 s4.2). */
#define SAME_RTT_EIGHTHS 9

/* The rate before slow start's last doubling to `rate`: what an interval before tested, if one did. */
INLINE real ascent_before_doubling(const struct ascent *ascent, real rate)
{
	return ascent->has_previous ? ascent->previous.rate : real_shift(rate, -1);
}

/* Whether slow start ignores a loss unless it is the paper's. */
INLINE bool is_tolerable(real loss)
{
	return real_mul(loss, real_of(100)) < real_of(TOLERATED_LOSS);
}

/* The rate that slow start goes back to: what arrived, or what it was before the last doubling. */
INLINE real ascent_known_to_fit(const struct ascent *ascent, const struct report *report)
{
	real arrived = ascent_arrived(report);

	return arrived ? arrived : ascent_before_doubling(ascent, report->rate);
}

/* Goes on with probing around a lower rate, from slow start or later. */
SHARED u32 ascent_fall(struct ascent *ascent, const struct path_view *path, real base, const struct report *report, real others)
{
	u32 before;

	if (!ascent || !path || !report)
		return 0;
	before = ascent->phase == SLOW_START && !ascent->resumed ? ascent->doubled_rtt_us : 0;
	ascent->base = base;
	ascent_probe(ascent, path, others);
	if (tunables.slow_start == START_TOLERANT && is_tolerable(report->loss) && is_growing(report->slope))
		ascent->doubted_rtt_us = before;
	return 0;
}

/* Slow start ends. */
INLINE void ascent_go_back(struct ascent *ascent, const struct path_view *path, const struct report *report, real others)
{
	ascent_fall(ascent, path, ascent_known_to_fit(ascent, report), report, others);
}

INLINE void ascent_repeat(struct ascent *ascent, const struct path_view *path, const struct report *report, real others)
{
	if (ascent->repeats >= MAX_REPEATS) {
		ascent_go_back(ascent, path, report, others);
		return;
	}
	ascent->repeats++;
	ascent->others = others;
	ascent_begin(ascent, path, 0, report->rate);
}

/* What slow start compares of an interval, unless it is the paper's. */
INLINE void ascent_tolerate(struct sample *new)
{
	if (is_tolerable(new->loss))
		new->loss = 0;
	if (new->slope.negative)
		new->slope = positive(0);
}

INLINE void ascent_double(struct ascent *ascent, const struct path_view *path, const struct sample *new, real others)
{
	ascent->base = real_min(real_shift(new->rate, 1), MAX_RATE);
	ascent->previous = *new;
	ascent->has_previous = 1;
	ascent->repeats = 0;
	ascent->doubled_rtt_us = path->srtt_us;
	ascent->others = others;
	ascent_begin(ascent, path, 0, ascent->base);
}

/* Whether this is the first probe after slow start, and what had ended it is gone. */
INLINE bool ascent_has_passed(struct ascent *ascent, const struct report *report)
{
	u32 before = ascent->doubted_rtt_us;

	ascent->doubted_rtt_us = 0;
	return before && report->rtt && is_tolerable(report->loss) &&
	       real_shift(report->rtt, 3) <= real_of(SAME_RTT_EIGHTHS * (u64)before);
}

/* Goes on with slow start from what the first probe after it has tested. The other probes of the round are void. */
SHARED u32 ascent_resume_doubling(struct ascent *ascent, const struct path_view *path, struct sample *new,
				  real others)
{
	if (!ascent || !path || !new)
		return 0;
	ascent->epoch++;
	ascent->phase = SLOW_START;
	ascent->resumed = 1;
	ascent_tolerate(new);
	ascent_double(ascent, path, new, others);
	return 0;
}

/* Slow start: double while the utility grows (MPCC s5.2). */
SHARED u32 ascent_doubled(struct ascent *ascent, const struct path_view *path, struct sample *new,
			  const struct report *report, real others)
{
	u32 grew;

	if (!ascent || !path || !new || !report)
		return 0;
	if (tunables.slow_start != START_PAPER)
		ascent_tolerate(new);
	/* The first interval has none to be compared with: it is a growth, as in the release, but an overload is none. */
	grew = tunables.slow_start == START_RELEASE || !report->overload;
	if (ascent->has_previous)
		grew = sreal_sign(sreal_sub(utility_of(new, ascent->others),
					    utility_of(&ascent->previous, ascent->others))) > 0;
	if (grew) {
		ascent_double(ascent, path, new, others);
	} else if (tunables.slow_start == START_RELEASE ||
		   (tunables.slow_start == START_TOLERANT && !report->overload && !is_growing(report->slope))) {
		ascent_repeat(ascent, path, report, others);
	} else {
		ascent_go_back(ascent, path, report, others);
	}
	return 0;
}

/*
 * Sends on at the rate before the last doubling while its results are on their way, as soon as round trips are seen to lengthen; and at what
 * arrives at once where that is far less.
 */
SHARED u32 ascent_ease(struct ascent *ascent, real min_slope)
{
	struct interval *latest;
	struct sreal slope;
	real carried;

	if (!ascent || tunables.queue == QUEUE_IGNORED || ascent->phase != SLOW_START || !ascent->monitor.count)
		return 0;
	latest = interval_at(&ascent->monitor, ascent->monitor.count - 1);
	slope = regression_slope(&latest->regression, min_slope);
	if (is_growing_by(slope, FLOODS_PPM)) {
		carried = real_div(ascent->base, real_add(REAL_ONE, slope.size));
		ascent->rate = real_min(ascent->rate, real_max(carried, ascent_away(ascent)));
	} else if (ascent->has_previous && !open_interval(&ascent->monitor) && is_growing(slope)) {
		ascent->rate = real_min(ascent->rate, ascent->previous.rate);
	}
	return 0;
}

#endif
