/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TCCC, throughput consistency congestion control (Yang et al., TNSM 2023): coupled slow start (CSS) and aggressive congestion
 * avoidance (ACA), as crates/cc/src/tccc.rs, where it says what differs from the print.
 *
 * Packets are counted where Rust counts bytes. Rust knows from the receiver which subflows share a bottleneck; TCP does not tell,
 * so that here only loss rates decide. They are of the last 25 to 50 losses: those of two subflows that lose alike differ by 23%
 * of the rate by chance (one standard deviation, and more in bursts), and a loss would only halve a window where all should give
 * way together. Hence rates are others where they differ by a standard deviation, too (`deviations`).
 */
#ifndef MANYPATH_TCCC_H
#define MANYPATH_TCCC_H

#include "tunables.h"

struct tunables {
	/* Threshold of slow start: 0, one regression over the first window; 1, the largest over three acknowledgements. */
	u64 estimate;
	/* Expected throughput: 0, max(ssth)/min(rtt); 1, max(ssth/rtt). */
	u64 threshold;
	/* Loss rates that differ by at most this share of the largest are the same. */
	u64 tolerance_ppm;
	/* So are those that differ by at most so many standard deviations of what the losses counted can tell. */
	u64 deviations_ppm;
	/* As in window_control.h. */
	u64 pacing;
};

TUNABLES = { .estimate = 0, .threshold = 0, .tolerance_ppm = 200000, .deviations_ppm = 1000000, .pacing = 1 };

/* Acknowledgements of one estimate of the threshold: Hoe uses three. */
#define CLOSE 3

/* Packets acknowledged over time, us: sums of a least-squares line. */
struct slope {
	u64 n;
	u64 t;
	u64 tt;
	u64 y;
	u64 ty;
};

struct law_state {
	/* Whether it has been acknowledged anything, and whether it has seen that the initial slow start is over. */
	u32 started;
	u32 left;
	/* Whether the loss under way ended the initial slow start: the subflow halves. */
	u32 halve;
	/* `delivered` and `lost` of the socket when they were last counted. */
	u32 delivered;
	u32 lost;
	/* Estimate of the threshold (Hoe 1996): whether it is done, acknowledgements seen, packets they covered, when the first
	 * came, the end of the first window, the smallest round-trip time. */
	u32 done;
	u32 seen;
	u64 packets;
	u64 origin_us;
	u32 window_end;
	u32 min_rtt_us;
	/* The latest round-trip time. */
	u32 sample_us;
	/* Acknowledgements at different times. */
	u32 points;
	/* The largest slope of three acknowledgements, packets per us, of type real. */
	u64 largest;
	struct slope all;
	u64 last_t[CLOSE];
	u64 last_y[CLOSE];
};

#include "power.h"
#include "window.h"

/* In mp_member.law: the estimated threshold (spec: ssth_r), recent packets acknowledged and lost, and the events that
 * lost them; the round-trip time smoothed as the paper does, which outlives a timeout. All of type real. */
#define SSTHRESH 0
#define ACKED 1
#define LOST 2
#define LOSS_EVENTS 3
#define RTT 4
/* In mp_group.law: not zero once the initial slow start is over; growth per shortest round trip (spec: alpha), of type real, zero
 * for INITIAL_ALPHA. */
#define CSS_OVER 0
#define ALPHA 1

/* 1.5: slow start with delayed acknowledgements (TCCC algorithm 1). */
#define INITIAL_ALPHA REAL_WORD(0xc0000000ULL, REAL_BIAS - 31)
/* Losses after which loss counters are halved, and loss events before loss rates are compared, as in Rust. */
#define LOSS_MEMORY 50
#define MIN_LOSS_EVENTS real_of(2)
/* An estimate takes no more acknowledgements, and none later than this after the first, so that no sum overflows. */
#define MAX_POINTS 4096
#define MAX_SPAN_US 10000000

/* TCCC sums over the subflows: S1 = sum w/rtt, S2 = sum w/rtt^2, and the shortest round-trip time. */
struct sums {
	real rate;
	real acceleration;
	real min_rtt;
};

INLINE struct sums tccc_sums(const struct mp_group *group)
{
	struct sums sums = {};
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_member *member = &group->member[place];

		if (counts(group, place)) {
			real rate = rate_of(member);

			sums.rate = real_add(sums.rate, rate);
			sums.acceleration = real_add(sums.acceleration, real_div(rate, member->rtt));
			if (!sums.min_rtt || member->rtt < sums.min_rtt)
				sums.min_rtt = member->rtt;
		}
	}
	return sums;
}

INLINE real tccc_alpha(const struct mp_group *group)
{
	return group->law[ALPHA] ? group->law[ALPHA] : INITIAL_ALPHA;
}

/* The largest threshold estimated (spec: con_ssth), or with `by_rate` the largest over its round-trip time; zero before. */
INLINE real tccc_largest(const struct mp_group *group, bool by_rate)
{
	real largest = 0;
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_member *member = &group->member[place];
		real threshold = group->used >> place & 1 ? member->law[SSTHRESH] : 0;

		if (by_rate)
			threshold = real_div(threshold, member->law[RTT]);
		largest = real_max(largest, threshold);
	}
	return largest;
}

/* Whether the subflows' rate is above the expected throughput (spec: cur_th > exp_th); never before an estimate. */
INLINE bool tccc_is_reached(const struct mp_group *group)
{
	struct sums sums = tccc_sums(group);
	bool by_rate = tunables.threshold == 1;
	real expected = tccc_largest(group, by_rate);

	if (!by_rate)
		expected = real_div(expected, sums.min_rtt);
	return expected && sums.rate > expected;
}

/*
 * TCCC algorithm 1, exit: all subflows enter congestion avoidance together. Each does so at its own next step: nothing
 * changes its window before. One that has not measured anything has a slow start of its own before it.
 */
INLINE void tccc_follow(const struct step *step)
{
	struct law_state *law = &step->state->law;

	if (law->left || !step->group->law[CSS_OVER])
		return;
	law->left = 1;
	if (counts(step->group, step->own))
		set_threshold(step, window_of(step));
}

INLINE void tccc_leave_css(const struct step *step)
{
	step->group->law[CSS_OVER] = 1;
	tccc_follow(step);
}

INLINE void tccc_joined(const struct step *step)
{
	step->state->law.left = step->group->law[CSS_OVER] != 0;
	step->state->law.delivered = step->socket->delivered;
	step->state->law.lost = step->socket->lost;
}

/* TCCC algorithm 1, join: the same finishing time with one subflow more. At its first acknowledgement, so that a subflow
 * that stays idle slows nobody. */
INLINE void tccc_start(const struct step *step)
{
	struct mp_group *group = step->group;
	real con_ssth = tccc_largest(group, false), total = 0, new;
	s64 grown, left;
	u32 place;

	if (step->state->law.started)
		return;
	step->state->law.started = 1;
	for (place = 0; place < MP_SUBFLOWS; place++)
		if (place != step->own && counts(group, place))
			total = real_add(total, group->member[place].window);
	if (group->law[CSS_OVER] || !con_ssth || !total)
		return;
	new = real_add(total, real_of_q32(window_of(step)));
	if (con_ssth <= new) {
		tccc_leave_css(step);
		return;
	}
	/* alpha = (con_ssth/new)^(1/rounds), rounds = ln(con_ssth/total)/ln(alpha). */
	left = real_log2(real_div(con_ssth, total));
	grown = real_log2(real_div(con_ssth, new));
	if (left > 0 && grown > 0) {
		real log = real_mul(real_of((u64)real_log2(tccc_alpha(group))), real_div(real_of((u64)grown), real_of((u64)left)));

		group->law[ALPHA] = real_exp2((s64)real_floor(log));
	}
}

INLINE void slope_add(struct slope *slope, u64 t, u64 y)
{
	slope->n++;
	slope->t += t;
	slope->tt += t * t;
	slope->y += y;
	slope->ty += t * y;
}

/* Packets per us; zero from fewer than three points or all at one time, or if it falls. */
INLINE real slope_of(const struct slope *slope)
{
	real n = real_of(slope->n), t = real_of(slope->t);
	real stt = real_sub(real_of(slope->tt), real_div(real_mul(t, t), n));
	real sty = real_sub(real_of(slope->ty), real_div(real_mul(t, real_of(slope->y)), n));

	return slope->n >= CLOSE ? real_div(sty, stt) : 0;
}

/* The largest slope of three acknowledgements in a row. */
INLINE void tccc_close(struct law_state *law, u64 t)
{
	struct slope close = {};
	u32 at;

	/* What is acknowledged at one time is one point. */
	if (!law->points || law->last_t[0] < t) {
		for (at = CLOSE - 1; at > 0; at--) {
			law->last_t[at] = law->last_t[at - 1];
			law->last_y[at] = law->last_y[at - 1];
		}
		law->points++;
	}
	law->last_t[0] = t;
	law->last_y[0] = law->packets;
	if (law->points < CLOSE)
		return;
	for (at = 0; at < CLOSE; at++)
		slope_add(&close, law->last_t[at], law->last_y[at]);
	law->largest = real_max(law->largest, slope_of(&close));
}

/*
 * Estimates the threshold from the first window's acknowledgements (Hoe, SIGCOMM 1996 s3.1): the slope of packets over time is the
 * bottleneck's rate, and that times the smallest round-trip time is the window it holds. Once, when the first window has been
 * acknowledged, gives it in packets; zero otherwise, and if something else than the window limited sending.
 */
INLINE real tccc_estimate(const struct step *step, u32 packets, bool limited)
{
	struct law_state *law = &step->state->law;
	u64 now = step->socket->now_us;

	if (law->done)
		return 0;
	if (!law->seen) {
		law->origin_us = now;
		law->window_end = step->socket->nxt;
	} else if ((s32)(step->socket->una - law->window_end) > 0) {
		law->done = 1;
		return real_mul(tunables.estimate == 1 ? law->largest : slope_of(&law->all), real_of(law->min_rtt_us));
	}
	if (!limited) {
		law->done = 1;
		return 0;
	}
	if (law->seen >= MAX_POINTS || now - law->origin_us > MAX_SPAN_US)
		return 0;
	if (!law->seen || law->sample_us < law->min_rtt_us)
		law->min_rtt_us = law->sample_us;
	law->seen++;
	law->packets += packets;
	slope_add(&law->all, now - law->origin_us, law->packets);
	tccc_close(law, now - law->origin_us);
	return 0;
}

/* Counts what was delivered and lost since the last call; `least`: at least so much was lost. */
INLINE void tccc_count(const struct step *step, u32 least)
{
	struct law_state *law = &step->state->law;
	struct mp_member *own = member_of(step);
	u32 lost = step->socket->lost - law->lost;

	own->law[ACKED] = real_add(own->law[ACKED], real_of(step->socket->delivered - law->delivered));
	own->law[LOST] = real_add(own->law[LOST], real_of(lost > least ? lost : least));
	law->delivered = step->socket->delivered;
	law->lost = step->socket->lost;
	if (own->law[LOST] >= real_of(LOSS_MEMORY)) {
		own->law[ACKED] = real_shift(own->law[ACKED], -1);
		own->law[LOST] = real_shift(own->law[LOST], -1);
		/* Enough remain enough. */
		own->law[LOSS_EVENTS] = real_max(real_shift(own->law[LOSS_EVENTS], -1), real_min(own->law[LOSS_EVENTS], MIN_LOSS_EVENTS));
	}
}

/* TCCC algorithm 1 line 15: rtt = rtt/2 + sample/2. */
INLINE void tccc_on_sample(const struct step *step, u32 rtt_us)
{
	struct law_state *law = &step->state->law;
	struct mp_member *own = member_of(step);
	real sample = real_of((u64)rtt_us * 8);

	tccc_start(step);
	tccc_follow(step);
	law->sample_us = rtt_us;
	own->law[RTT] = own->law[RTT] ? real_shift(real_add(own->law[RTT], sample), -1) : sample;
	own->rtt = own->law[RTT];
}

INLINE void tccc_on_ack(const struct step *step, u32 packets, bool limited)
{
	real estimate = tccc_estimate(step, packets, limited);

	tccc_follow(step);
	tccc_count(step, 0);
	if (estimate) {
		estimate = real_max(estimate, real_of(2));
		member_of(step)->law[SSTHRESH] = estimate;
		if (step->group->law[CSS_OVER] && real_to_q32(estimate) < threshold_of(step))
			set_threshold(step, real_to_q32(estimate));
	}
	if (!step->group->law[CSS_OVER] && tccc_is_reached(step->group))
		tccc_leave_css(step);
}

INLINE void tccc_on_loss(const struct step *step)
{
	struct law_state *law = &step->state->law;
	struct mp_member *own = member_of(step);

	/* What begins a recovery without a packet counted as lost is a congestion mark, or a loss that a probe has mended. */
	tccc_count(step, 1);
	own->law[LOSS_EVENTS] = real_add(own->law[LOSS_EVENTS], REAL_ONE);
	law->halve = !step->group->law[CSS_OVER];
	tccc_leave_css(step);
}

/* TCCC algorithm 2 line 6: 1/(rtt_r min_rtt S2). */
INLINE struct growth tccc_increase(const struct step *step)
{
	struct sums sums = tccc_sums(step->group);
	real product = real_mul(real_mul(member_of(step)->rtt, sums.min_rtt), sums.acceleration);

	return (struct growth){ .up = real_div(REAL_ONE, product) };
}

/* What a subflow lost lately: packets, the events that lost them, and of how many packets; all of type real. */
struct losses {
	real lost;
	real events;
	real packets;
	real rate;
};

INLINE struct losses tccc_losses(const struct mp_member *member)
{
	struct losses losses = { .lost = member->law[LOST], .events = member->law[LOSS_EVENTS] };

	losses.packets = real_max(real_add(losses.lost, member->law[ACKED]), REAL_ONE);
	losses.rate = real_div(losses.lost, losses.packets);
	return losses;
}

/* The variance of the difference between two loss rates that are the same in truth, as in Rust: rate * burst * (1/n1 + 1/n2). */
INLINE real tccc_variance(const struct losses *one, const struct losses *other)
{
	real lost = real_add(one->lost, other->lost);
	real rate = real_div(lost, real_add(one->packets, other->packets));
	real burst = real_div(lost, real_max(real_add(one->events, other->events), REAL_ONE));
	real inverse = real_add(real_div(REAL_ONE, one->packets), real_div(REAL_ONE, other->packets));

	return real_mul(real_mul(rate, burst), inverse);
}

/* Whether two loss rates, the smaller first, are the same as far as anyone can tell. */
INLINE bool tccc_alike(const struct losses *least, const struct losses *most)
{
	real difference = real_sub(most->rate, least->rate), deviations = real_of_ppm(tunables.deviations_ppm);
	real chance = real_mul(real_mul(deviations, deviations), tccc_variance(least, most));

	return difference <= real_mul(real_of_ppm(tunables.tolerance_ppm), most->rate) ||
	       real_mul(difference, difference) <= chance;
}

/* TCCC algorithm 2: do the subflows lose at the same rate? A lone one does. */
INLINE bool tccc_same_loss_rate(const struct mp_group *group)
{
	struct losses least = {}, most = {};
	u32 place, counting = 0;
	real events = 0;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_member *member = &group->member[place];

		if (counts(group, place)) {
			struct losses losses = tccc_losses(member);

			if (!counting || losses.rate < least.rate)
				least = losses;
			if (!counting || losses.rate > most.rate)
				most = losses;
			events = real_add(events, real_min(losses.events, MIN_LOSS_EVENTS));
			counting++;
		}
	}
	return counting < 2 || (events >= MIN_LOSS_EVENTS && tccc_alike(&least, &most));
}

/* TCCC algorithm 2 line 10: min_rtt S1^2/(2 rtt_r S2). May exceed the window; the step keeps a packet. */
INLINE real tccc_decrease(const struct step *step)
{
	struct law_state *law = &step->state->law;
	struct sums sums;
	bool halve = law->halve;

	law->halve = 0;
	if (halve || !tccc_same_loss_rate(step->group))
		return half_window(step);
	sums = tccc_sums(step->group);
	return real_div(real_mul(sums.min_rtt, real_mul(sums.rate, sums.rate)),
			real_shift(real_mul(member_of(step)->rtt, sums.acceleration), 1));
}

/* TCCC algorithm 1 lines 18 to 20: alpha^(rtt_r/min_rtt) - 1, at most one packet per packet acknowledged. */
INLINE real tccc_slow_start(const struct step *step)
{
	const struct mp_group *group = step->group;
	real min_rtt = tccc_sums(group).min_rtt, log;

	if (group->law[CSS_OVER] || !counts(group, step->own))
		return REAL_ONE;
	log = real_mul(real_of((u64)real_log2(tccc_alpha(group))), real_div(member_of(step)->rtt, min_rtt));
	/* Twice or more: one packet. Smaller logarithms have at most LOG_BITS + 1 bits. */
	if (log >= real_of(1ULL << LOG_BITS))
		return REAL_ONE;
	return real_min(real_sub(real_exp2((s64)real_floor(log)), REAL_ONE), REAL_ONE);
}

#endif
