/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * MP-OL (Zhuang et al., TNSM 2023), as crates/cc/src/mp_ol.rs, where it says what is done where the paper is silent:
 * online learning finds a rate, then LIA keeps it while a detector watches for the network to change.
 *
 * The paper's utility (eq. 8) has a part that depends on the others' rates only. It is the same in all utilities that are
 * compared, and is left out.
 */
#ifndef MANYPATH_MP_OL_H
#define MANYPATH_MP_OL_H

#include "lia.h"
#include "monitor.h"
#include "power.h"
#include "tunables.h"

/* As in Rust, except that a monitoring period has at most MAX_PERIOD intervals. */
struct tunables {
	/* Monitor intervals in a monitoring period (MP-OL s5). */
	u64 n;
	/* Distance of centroids that is a change (MP-OL s5). */
	u64 d_ppm;
	/* Probing distance, share of the own rate (MP-OL s5). */
	u64 epsilon_ppm;
	/* Step in Mbit/s per unit of gradient (not in the paper). */
	u64 beta_ppm;
	/* Whether variation below 5% of the RTT and 0.1% of loss is none: 0, no; 1, yes. */
	u64 guard;
	/* Rate of a new subflow, Mbit/s. */
	u64 initial_ppm;
};

TUNABLES = { .n = 5, .d_ppm = 500000, .epsilon_ppm = 50000, .beta_ppm = 1000000, .guard = 0, .initial_ppm = 4000000 };

/* Weights of loss and RTT gradient (MP-OL s5). */
#define LOSS_WEIGHT 11
#define LATENCY_WEIGHT 1
/* How often slow start repeats an interval that the sender could not fill, as MPCC. */
#define MAX_REPEATS 2
/* Rates of a learning round: the base, below, above. */
#define TRIES 3
#define MAX_PERIOD 8
#define MAX_RECORDS (2 * MAX_PERIOD)
/* Least packets of an interval, and the least slope in millionths, as MPCC. */
#define MIN_PACKETS 5
#define MIN_SLOPE_PPM 10000
/* Rates above a terabit per second are an accident, Mbit/s. */
#define MAX_RATE real_of(MILLION)
/* Whether the window may fall to little at once (mpcc.h): LIA's does, while monitoring. */
#define PACED_MAY_FALL 1

enum { SLOW_START, LEARNING, MONITORING };

/* Loss rate and mean round-trip time of an interval while monitoring. */
struct record {
	real loss;
	/* us. */
	real rtt;
};

struct mp_ol {
	u32 phase;
	/* Reports of earlier epochs are void. */
	u32 epoch;
	/* Present rate, and the rate outside of tries, Mbit/s; not used while monitoring. */
	real rate;
	real base;
	/* LIA's window while monitoring, and its threshold, packets. */
	packets_q32 window;
	packets_q32 threshold;
	/* Slow start: rate and utility of the last interval that tested one, if any, and how often it was repeated. */
	real previous_rate;
	struct sreal previous;
	u32 has_previous;
	u32 repeats;
	/* Learning: tries begun, tries whose utilities are in. */
	u32 begun;
	u32 known;
	struct sreal tries[TRIES];
	/* Whether intervals are under way; not before the first acknowledgement and after a timeout. */
	u32 running;
	/* Smoothed round-trip time and packet size when it was last called. */
	u32 srtt_us;
	u32 mss;
	/* Records of the last two monitoring periods, oldest first. */
	u32 record_count;
	struct record records[MAX_RECORDS];
	/* For people. */
	struct sreal utility;
	u32 intervals;
	u32 unfair;
	u32 decisions;
	u32 pad;
	struct monitor monitor;
};

typedef struct mp_ol paced_state;

/* MP-OL eq. 8, the own part: x^0.9 - b x L - c x dRTT/dt. */
INLINE struct sreal utility_of(const struct report *report)
{
	struct sreal reward = positive(real_power(report->rate, 9, 10));
	struct sreal loss = positive(real_mul(real_mul(report->rate, report->loss), real_of(LOSS_WEIGHT)));
	struct sreal delay = sreal_scale(report->slope, real_mul(report->rate, real_of(LATENCY_WEIGHT)));

	return sreal_sub(sreal_sub(reward, loss), delay);
}

/* One packet a round trip, Mbit/s. */
INLINE real min_rate(const struct path_view *path)
{
	return real_div(real_of((u64)path->mss * 8), real_of(path->srtt_us));
}

/* The window that a rate in Mbit/s fills, packets. */
INLINE real window_of_rate(real rate, u32 srtt_us, u32 mss)
{
	return real_div(real_mul(rate, real_of(srtt_us)), real_of((u64)mss * 8));
}

/* The rate in Mbit/s of a window. */
INLINE real rate_of_window(packets_q32 window, u32 srtt_us, u32 mss)
{
	return real_div(real_mul(real_of_q32(window), real_of((u64)mss * 8)), real_of(srtt_us));
}

/* MP-OL s4.2: an interval is one round trip. */
SHARED u32 mp_ol_begin(struct mp_ol *own, const struct path_view *path, u32 index, real rate)
{
	if (!own || !path)
		return 0;
	own->rate = rate;
	monitor_begin(&own->monitor, path, own->epoch, index, rate, path->srtt_us);
	return 0;
}

/* Begins a round of learning at the base rate. */
SHARED u32 mp_ol_learn(struct mp_ol *own, const struct path_view *path)
{
	if (!own || !path)
		return 0;
	own->base = real_clamp(own->base, min_rate(path), MAX_RATE);
	own->epoch++;
	own->phase = LEARNING;
	own->begun = 1;
	own->known = 0;
	mp_ol_begin(own, path, 0, own->base);
	return 0;
}

/* MP-OL s4.2.1: the rate doubles every round trip, unless the application limited the one that ends. */
INLINE void mp_ol_double(struct mp_ol *own, const struct path_view *path, bool held)
{
	if (!held)
		own->base = real_min(real_shift(own->base, 1), MAX_RATE);
	mp_ol_begin(own, path, 0, own->base);
}

/* Ends the open interval when it is due, and begins the next; in learning first below, then above (MP-OL s4.2.2). */
INLINE void mp_ol_advance(struct mp_ol *own, const struct path_view *path)
{
	if (!monitor_is_due(&own->monitor, path, MIN_PACKETS))
		return;
	monitor_close(&own->monitor, path);
	if (own->phase == SLOW_START) {
		const struct interval *last = interval_at(&own->monitor, own->monitor.count - 1);

		mp_ol_double(own, path, !last->backlogged && !is_filled(last, path->mss));
	} else if (own->phase == LEARNING && own->begun < TRIES) {
		u32 index = own->begun++;
		real epsilon = real_of_ppm(tunables.epsilon_ppm);
		real side = index == 1 ? real_sub(REAL_ONE, epsilon) : real_add(REAL_ONE, epsilon);

		mp_ol_begin(own, path, index, real_mul(own->base, side));
	} else if (own->phase == MONITORING) {
		mp_ol_begin(own, path, 0, 0);
	} else {
		own->rate = own->base;
	}
}

/* MP-OL s4.2.1: doubling ends when the utility decreases for the first time. */
SHARED u32 mp_ol_doubled(struct mp_ol *own, const struct path_view *path, const struct report *report)
{
	struct sreal utility;
	bool grew;

	if (!own || !path || !report)
		return 0;
	/* It tested no rate; the next interval is under way. */
	if (report->app_limited && !report->overload)
		return 0;
	utility = utility_of(report);
	/* The first interval has none to be compared with: it is a growth, as in MPCC, but an overload is none. */
	grew = own->has_previous ? sreal_sign(sreal_sub(utility, own->previous)) > 0 : !report->overload;
	if (!report->filled && !report->overload && own->repeats < MAX_REPEATS) {
		own->repeats++;
		own->base = report->rate;
		own->epoch++;
		mp_ol_begin(own, path, 0, own->base);
	} else if (report->filled && grew) {
		own->previous_rate = report->rate;
		own->previous = utility;
		own->has_previous = 1;
		own->repeats = 0;
	} else {
		/* As MPCC: back to the rate before the last doubling. */
		own->base = own->has_previous ? own->previous_rate : real_shift(report->rate, -1);
		mp_ol_learn(own, path);
	}
	return 0;
}

/* A round of learning is complete: a step along the gradient, or the rate is found. */
SHARED u32 mp_ol_learned(struct mp_ol *own, const struct path_view *path)
{
	struct sreal down, up, step;
	real distance;

	if (!own || !path)
		return 0;
	distance = real_mul(real_of_ppm(tunables.epsilon_ppm), own->base);
	/* MP-OL eq. 18: the signs of g1 and g2. */
	down = sreal_sub(own->tries[0], own->tries[1]);
	up = sreal_sub(own->tries[2], own->tries[0]);
	own->decisions++;
	if (sreal_sign(down) * sreal_sign(up) > 0) {
		/* MP-OL eq. 19, at most half of the rate. */
		step = sreal_sub(own->tries[2], own->tries[1]);
		step = sreal_divide(sreal_scale(step, real_of_ppm(tunables.beta_ppm)), real_shift(distance, 1));
		step.size = real_min(step.size, real_shift(own->base, -1));
		own->base = step.negative ? real_sub(own->base, step.size) : real_add(own->base, step.size);
		mp_ol_learn(own, path);
	} else {
		/* MP-OL s4.2.3: the learned rate becomes a window. */
		own->epoch++;
		own->phase = MONITORING;
		own->record_count = 0;
		own->window = real_to_q32(real_max(window_of_rate(own->base, path->srtt_us, path->mss), REAL_ONE));
		own->threshold = own->window;
		mp_ol_begin(own, path, 0, 0);
	}
	return 0;
}

/* By how much the mean of a series moved from the first half of `2 n` to the second, in units of its span; squared. */
INLINE real moved_squared(const struct mp_ol *own, u32 n, bool rtt, real least_span)
{
	real low = 0, high = 0, before = 0, after = 0, apart;
	u32 at;

	for (at = 0; at < MAX_RECORDS; at++) {
		real value = rtt ? own->records[at].rtt : own->records[at].loss;

		if (at >= 2 * n)
			break;
		low = at ? real_min(low, value) : value;
		high = real_max(high, value);
		if (at < n)
			before = real_add(before, value);
		else
			after = real_add(after, value);
	}
	if (real_sub(high, low) <= least_span)
		return 0;
	apart = real_div(before > after ? real_sub(before, after) : real_sub(after, before), real_of(n));
	apart = real_div(apart, real_sub(high, low));
	return real_mul(apart, apart);
}

/* MP-OL s4.2.3: whether the centroids of two monitoring periods lie apart, both series being stretched to 0..1. */
INLINE bool has_changed(const struct mp_ol *own, u32 n)
{
	real least_loss = 0, least_rtt = 0, limit = real_of_ppm(tunables.d_ppm), sum = 0;
	u32 at;

	if (tunables.guard == 1) {
		for (at = 0; at < MAX_RECORDS && at < 2 * n; at++)
			sum = real_add(sum, own->records[at].rtt);
		least_loss = real_of_ppm(1000);
		least_rtt = real_div(sum, real_of(20 * 2 * n));
	}
	return real_add(moved_squared(own, n, false, least_loss), moved_squared(own, n, true, least_rtt)) >
	       real_mul(limit, limit);
}

/* An interval of monitoring: learns anew if the network has changed. */
SHARED u32 mp_ol_monitored(struct mp_ol *own, const struct path_view *path, const struct report *report)
{
	u32 n = tunables.n < MAX_PERIOD ? (u32)tunables.n : MAX_PERIOD, at;

	if (!own || !path || !report || !report->rtt)
		return 0;
	at = own->record_count & (MAX_RECORDS - 1);
	own->records[at].loss = report->loss;
	own->records[at].rtt = report->rtt;
	own->record_count = at + 1;
	if (own->record_count < 2 * n)
		return 0;
	if (has_changed(own, n)) {
		own->base = rate_of_window(own->window, path->srtt_us, path->mss);
		mp_ol_learn(own, path);
		return 0;
	}
	for (at = 0; at < MAX_PERIOD; at++)
		if (at < n)
			own->records[at] = own->records[(at + n) & (MAX_RECORDS - 1)];
	own->record_count = n;
	return 0;
}

SHARED u32 mp_ol_report(struct mp_ol *own, const struct path_view *path, const struct report *report)
{
	if (!own || !path || !report)
		return 0;
	own->intervals++;
	if (own->phase == MONITORING)
		return mp_ol_monitored(own, path, report);
	own->utility = utility_of(report);
	own->unfair += !report->filled;
	if (own->phase == SLOW_START)
		return mp_ol_doubled(own, path, report);
	if (!report->filled) {
		/* As MPCC's ascent: what was lost shows the rate to be too high, though not all of it was sent. */
		if (report->overload)
			own->base = real_shift(own->base, -1);
		return mp_ol_learn(own, path);
	}
	if (report->index >= TRIES)
		return 0;
	own->tries[report->index] = own->utility;
	own->known |= 1 << report->index;
	return own->known == (1 << TRIES) - 1 ? mp_ol_learned(own, path) : 0;
}

/* Lets the others see the window, or what the rate would be as one. */
INLINE void mp_ol_publish(const struct mp_ol *own, struct mp_member *member)
{
	real window = own->phase == MONITORING ? real_of_q32(own->window)
					       : window_of_rate(own->base, own->srtt_us, own->mss);

	member->window = real_max(window, REAL_ONE);
}

INLINE void paced_join(paced_state *own, struct mp_group *group, u32 place)
{
	own->rate = own->base = real_of_ppm(tunables.initial_ppm);
	group->member[in_bounds(place)].window = REAL_ONE;
}

INLINE void paced_on_ack(paced_state *own, struct mp_group *group, u32 place, const struct path_view *path)
{
	struct report report = {};

	own->srtt_us = path->srtt_us;
	own->mss = path->mss;
	hear(group, place, path->now_us, path->srtt_us);
	group->member[in_bounds(place)].rtt = real_of((u64)path->srtt_us * 8);
	if (!own->running) {
		own->running = 1;
		if (own->phase == SLOW_START)
			mp_ol_begin(own, path, 0, own->base);
		else
			mp_ol_learn(own, path);
	}
	if (path->rtt_us)
		monitor_sample(&own->monitor, path);
	mp_ol_advance(own, path);
	if (monitor_report(&own->monitor, path, real_of_ppm(MIN_SLOPE_PPM), &report) && report.epoch == own->epoch)
		mp_ol_report(own, path, &report);
	mp_ol_publish(own, &group->member[in_bounds(place)]);
	if (own->phase == MONITORING && path->may_grow && path->delivered) {
		real growth = real_mul(lia_increase(group, place).up, real_of(path->delivered));

		own->window += real_to_q32(growth);
		mp_ol_publish(own, &group->member[in_bounds(place)]);
	}
}

/* While monitoring as LIA among several subflows (RFC 6356 s3); else losses act through the utility. */
INLINE void paced_on_loss(paced_state *own, struct mp_group *group, u32 place)
{
	if (own->phase != MONITORING)
		return;
	own->window >>= 1;
	if (own->window < LEAST_WINDOW)
		own->window = LEAST_WINDOW;
	own->threshold = own->window;
	mp_ol_publish(own, &group->member[in_bounds(place)]);
}

/* A timeout halves the rate and learns anew. After paced_on_loss(), for it or for what it came upon, which has halved the window. */
INLINE void paced_on_timeout(paced_state *own, struct mp_group *group, u32 place, const struct path_view *path)
{
	real least = own->srtt_us ? real_div(real_of((u64)own->mss * 8), real_of(own->srtt_us)) : 0;

	(void)path;
	if (own->phase == MONITORING)
		own->base = rate_of_window(own->window, own->srtt_us, own->mss);
	else
		own->base = real_shift(own->base, -1);
	own->base = real_clamp(own->base, least, MAX_RATE);
	own->rate = own->base;
	own->monitor.count = 0;
	own->epoch++;
	own->phase = LEARNING;
	own->begun = 0;
	own->known = 0;
	own->running = 0;
	/* It does not count until it is heard. */
	group->member[in_bounds(place)].rtt = 0;
}

/* For tests: the results of an interval as they would come in, after its end. */
INLINE void paced_report(paced_state *own, const struct path_view *path, const struct report *report, real others)
{
	(void)others;
	if (own->phase == SLOW_START)
		mp_ol_double(own, path, report->app_limited);
	mp_ol_report(own, path, report);
}

/* Bytes per second; while monitoring, acknowledgements clock, and pacing at a fifth more only spreads bursts, as the kernel does
 * with window-based controllers. */
INLINE u64 paced_rate(const paced_state *own, const struct path_view *path)
{
	real rate = own->rate;

	if (own->phase == MONITORING)
		rate = real_div(real_mul(rate_of_window(own->window, path->srtt_us, path->mss), real_of(6)), real_of(5));
	return real_floor(real_mul(rate, real_of(125000)));
}

/* Packets; twice what the rate fills, as MPCC, while pacing limits sending. */
INLINE u64 paced_window(const paced_state *own, const struct path_view *path)
{
	u64 window;

	/* A lone packet waits for the receiver's timer (group.h); learning may have ended at a rate below that. */
	if (own->phase == MONITORING)
		return (own->window > LEAST_WINDOW ? own->window : LEAST_WINDOW) >> 32;
	window = real_floor(real_shift(window_of_rate(own->rate, paced_round_trip(path), path->mss), 1)) + 1;
	return window > MIN_PACED_WINDOW ? window : MIN_PACED_WINDOW;
}

INLINE u32 paced_phase(const paced_state *own)
{
	return own->phase == SLOW_START ? MP_SLOW_START : own->phase == LEARNING ? MP_LEARNING : MP_AVOIDANCE;
}

/* Thousandths. */
INLINE s64 paced_utility(const paced_state *own)
{
	s64 milli = (s64)real_floor(real_mul(own->utility.size, real_of(1000)));

	return own->utility.negative ? -milli : milli;
}

#endif
