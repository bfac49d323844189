/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state of a gradient ascent (ascent.h), and how its intervals and rounds of probing begin. */
#ifndef MANYPATH_ASCENT_STATE_H
#define MANYPATH_ASCENT_STATE_H

#include "layout.h"
#include "momentum.h"
#include "monitor.h"
#include "utility.h"

/* Monitor intervals of a probing round: two pairs of a higher and a lower rate. */
#define PROBES 4
/* Rates above a terabit per second are an accident, Mbit/s. */
#define MAX_RATE real_of(MILLION)
/* RTT slope (millionths of s/s) from which on a queue grows, and losses are no chance. */
#define QUEUE_GROWS_PPM 250000
/* RTT slope from which on the rate is five times what the path delivers, or more. */
#define FLOODS_PPM 4000000
/* RTT slope of a burst from which on half of slow start's doubling was too much. */
#define DOUBLED_TOO_FAR_PPM 500000

enum ascent_phase { SLOW_START, PROBING, MOVING };

/* The ascent of one subflow. */
struct ascent {
	u32 phase;
	/* Reports of earlier epochs are void. */
	u32 epoch;
	/* Present sending rate; the rate outside of probes (spec: x); what others see of it; others' rates for the gradient
	 * being estimated (spec: C_other). */
	real rate;
	real base;
	real published;
	real others;
	/* How many others send. */
	u64 others_count;
	/* Slow start: the last interval, if there was one, and how often it was repeated. Moving: what the next result is
	 * compared with. */
	struct sample previous;
	u32 has_previous;
	u32 repeats;
	/* Slow start: the smoothed round trip when it doubled last, and whether it had ended and was resumed. After it: that round trip,
	 * until the first probe is in, if it ended because round trips grew; else zero. */
	u32 doubled_rtt_us;
	u32 doubted_rtt_us;
	u32 resumed;
	u32 pad_resumed;
	/* Probing: the two rates; sets of intervals: which have the higher one, which were begun, whose results are in. */
	real low;
	real high;
	u32 highs;
	u32 begun;
	u32 known;
	/* Whether intervals are under way; not before the first acknowledgement and after a timeout. */
	u32 running;
	/* Moving: the rate to go back to. */
	real from;
	/* When the timeout was after which nothing has been heard; zero if there is none. The round-trip time before it. */
	u64 silent_since_us;
	u64 known_rtt_us;
	/* When the results of an interval came that may have met a moment without delivery, microseconds; zero if none has. */
	u64 gap_at_us;
	struct momentum momentum;
	struct sample samples[PROBES];
	/* For people. */
	struct sreal utility;
	u32 intervals;
	u32 unfair;
	u32 decisions;
	u32 pad;
	struct monitor monitor;
	/* Of the call under way: on the stack older kernels have no room left for it. */
	struct report report;
};

/* Opens an interval. MPCC s5.2, "rate-publication points": the rate is published as it begins. */
SHARED u32 ascent_begin(struct ascent *ascent, const struct path_view *path, u32 index, real rate)
{
	real length;

	if (!ascent || !path)
		return 0;
	length = real_mul(real_of(path->srtt_us), real_of_ppm(tunables.mi_ppm));
	ascent->rate = rate;
	if (tunables.publish == PUBLISH_INTERVAL)
		ascent->published = rate;
	monitor_begin(&ascent->monitor, path, ascent->epoch, index, rate, real_floor(length));
	return 0;
}

/* Begins the first probe of the round that was not begun, or was to no avail, if there is one. */
SHARED u32 ascent_begin_probe(struct ascent *ascent, const struct path_view *path)
{
	u32 index;

	if (!ascent || !path)
		return 0;
	for (index = 0; index < PROBES; index++) {
		if (ascent->begun >> index & 1)
			continue;
		ascent->begun |= 1u << index;
		ascent_begin(ascent, path, index, ascent->highs >> index & 1 ? ascent->high : ascent->low);
		return 1;
	}
	return 0;
}

/* What distances and steps are shares of. MPCC s5.2: the connection's rate. Among many subflows each has little of that. */
INLINE real ascent_shared(const struct ascent *ascent, real others)
{
	real total = real_add(ascent->base, others);
	u64 subflows = ascent->others_count + 1;

	if (tunables.low != LOW_NEAR || subflows <= NEAR_MEANS)
		return total;
	return real_div(real_mul(total, real_of(NEAR_MEANS)), real_of(subflows));
}

/* The rate that is left of a path that carries nothing: it is away, which tells not how thin it is. */
INLINE real ascent_away(const struct ascent *ascent)
{
	return real_max(real_min(ascent->base, real_of_ppm(AWAY_PPM)), real_of_ppm(tunables.min_rate_ppm));
}

/* Begins a probing round around the base rate. */
SHARED u32 ascent_probe(struct ascent *ascent, const struct path_view *path, real others)
{
	real omega, least;

	if (!ascent || !path)
		return 0;
	least = real_of_ppm(tunables.min_rate_ppm);
	ascent->base = real_max(ascent->base, least);
	/* More than a slow subflow may have to give. */
	omega = real_mul(ascent_shared(ascent, others), real_of_ppm(tunables.omega_ppm));
	if (tunables.low == LOW_NEAR)
		omega = real_min(omega, real_shift(ascent->base, NEAR_SHIFT));
	ascent->others = others;
	ascent->low = real_max(real_sub(ascent->base, omega), least);
	if (tunables.low == LOW_HALF)
		ascent->low = real_max(ascent->low, real_shift(ascent->base, -1));
	ascent->high = real_min(real_add(ascent->base, omega), MAX_RATE);
	/* Within each pair the order is random, so that a trend of the path does not always favour one side. */
	ascent->highs = (path->random & 1 ? 1 : 2) | (path->random & 2 ? 4 : 8);
	ascent->epoch++;
	ascent->doubted_rtt_us = 0;
	ascent->phase = PROBING;
	ascent->begun = 0;
	ascent->known = 0;
	ascent_begin_probe(ascent, path);
	return 0;
}

INLINE bool is_growing_by(struct sreal slope, u64 ppm)
{
	return !slope.negative && slope.size >= real_of_ppm(ppm);
}

/* Whether a queue grows so fast that losses are no chance. */
INLINE bool is_growing(struct sreal slope)
{
	return is_growing_by(slope, QUEUE_GROWS_PPM);
}

/* The rate at which packets of an interval arrived, if its own is known to be too high by that; zero if not. */
INLINE real ascent_arrived(const struct report *report)
{
	if (tunables.queue == QUEUE_IGNORED || !(report->overload || is_growing(report->slope)))
		return 0;
	return real_min(report->arrival, report->rate);
}

#endif
