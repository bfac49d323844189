/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * wVegas, weighted Vegas (draft-xu-mptcp-congestion-control-05, and Linux's mptcp_wvegas.c), as crates/cc/src/wvegas.rs:
 * delay-based, and coupled by the number of packets that each subflow may queue, ten in all, shared by rate.
 */
#ifndef MANYPATH_WVEGAS_H
#define MANYPATH_WVEGAS_H

#include "types.h"

struct law_state {
	/* Smallest round-trip time, us; zero before the first. */
	u32 base_rtt;
	/* Samples of the round. */
	u32 samples;
	u64 sum;
	/* The round ends when something sent after this is acknowledged. */
	u32 round_end;
	u32 started;
	/* Packets that this subflow may queue (spec: alpha_r); zero stands for the least. */
	u32 alpha;
	/* Whether the acknowledgement at hand grows the window as Reno's would. */
	u32 reno;
	/* Whether a recovery is under way, or has ended and nothing was heard since. */
	u32 resting;
	/* Whether it has moved the window by delay: after a back-off below the threshold it is not slow start's, too (Linux). */
	u32 avoided;
	/* Smallest queueing delay since the last back-off, us, of type real; zero for none (spec: queue_delay). */
	u64 queue_delay;
};

#include "window.h"

/* In mp_member.law: the rate when the subflow last had more than its share queued, packets per us. */
#define RATE 0
/* Packets that all subflows together may queue (draft s3.2 total_alpha). */
#define TOTAL_ALPHA 10
/* Packets queued at which slow start ends (draft s3.2 gamma). */
#define GAMMA REAL_ONE
/* Packets that a subflow may queue at least (Linux). */
#define MIN_ALPHA 2
/* A round with fewer samples is Reno's (Linux: more than two). */
#define MIN_SAMPLES 3
#define PACKET (1ULL << 32)

/* Linux: Vegas rests outside of the open state, and the first round after it begins when it ends. */
INLINE void wvegas_rest(const struct step *step)
{
	struct law_state *law = &step->state->law;

	law->resting = 1;
	law->sum = 0;
	law->samples = 0;
	law->started = 1;
	law->round_end = step->socket->nxt;
}

/* Linux: without waiting for the recovery's end. */
INLINE void wvegas_on_timeout(const struct step *step)
{
	member_of(step)->law[RATE] = 0;
}

INLINE void wvegas_on_sample(const struct step *step, u32 rtt_us)
{
	struct law_state *law = &step->state->law;

	if (!law->base_rtt || rtt_us < law->base_rtt)
		law->base_rtt = rtt_us;
	if (step->socket->recovering) {
		wvegas_rest(step);
		return;
	}
	if (law->resting) {
		/* Linux wvegas_enable(): a recovery has emptied queues and moved rates. */
		law->resting = 0;
		law->alpha = MIN_ALPHA;
		law->queue_delay = 0;
		member_of(step)->law[RATE] = 0;
	}
	law->sum += rtt_us;
	law->samples++;
}

/* Draft s3.2: the share of the connection's queue follows the share of its rate. */
INLINE void wvegas_share(const struct step *step, real rate)
{
	const struct mp_group *group = step->group;
	real sum = rate;
	u32 place;
	u64 alpha;

	for (place = 0; place < MP_SUBFLOWS; place++)
		if (place != step->own && counts(group, place))
			sum = real_add(sum, group->member[place].law[RATE]);
	member_of(step)->law[RATE] = rate;
	/* The share first: a subflow that has all of the rate has exactly one. */
	alpha = real_floor(real_mul(real_of(TOTAL_ALPHA), real_div(rate, sum)));
	step->state->law.alpha = alpha > MIN_ALPHA ? (u32)alpha : MIN_ALPHA;
}

/* Congestion avoidance, once a round: `rtt` is its mean, `diff` the packets queued. */
INLINE void wvegas_avoid(const struct step *step, real rtt, real diff)
{
	struct law_state *law = &step->state->law;
	packets_q32 window = window_of(step);
	real base = real_of(law->base_rtt), queue = real_sub(rtt, base);

	if (diff >= real_of(law->alpha))
		wvegas_share(step, real_div(real_of_q32(window), rtt));
	if (diff > real_of(law->alpha)) {
		packets_q32 threshold = threshold_of(step);

		window = window > 2 * PACKET ? window - PACKET : PACKET;
		if (window - PACKET < threshold)
			set_threshold(step, window - PACKET);
	} else if (diff < real_of(law->alpha)) {
		window += PACKET;
	}
	/* Draft s3.3: back off once the queueing delay has doubled, to see the true base RTT. A queue of zero is none. */
	if (!law->queue_delay || queue < law->queue_delay)
		law->queue_delay = queue;
	if (queue && queue >= real_shift(law->queue_delay, 1)) {
		window = real_to_q32(real_div(real_mul(real_of_q32(window), base), real_shift(rtt, 1)));
		law->queue_delay = 0;
	}
	set_window(step, window > LEAST_WINDOW ? window : LEAST_WINDOW);
	law->avoided = 1;
}

/* Slow start, once a round: ends when a packet is queued. */
INLINE void wvegas_start(const struct step *step, real rtt, real diff)
{
	packets_q32 window = window_of(step), held;

	if (diff <= GAMMA)
		return;
	held = real_floor(real_div(real_mul(real_of_q32(window), real_of(step->state->law.base_rtt)), rtt)) * PACKET + PACKET;
	if (held < window)
		window = held;
	if (window < LEAST_WINDOW)
		window = LEAST_WINDOW;
	set_window(step, window);
	if (window - PACKET < threshold_of(step))
		set_threshold(step, window - PACKET);
}

/* Draft s3.2, once a round trip. */
INLINE void wvegas_round(const struct step *step)
{
	struct law_state *law = &step->state->law;
	real rtt, diff;
	packets_q32 most;

	law->reno = law->samples < MIN_SAMPLES;
	if (law->reno) {
		law->sum = 0;
		law->samples = 0;
		return;
	}
	rtt = real_div(real_of(law->sum), real_of(law->samples));
	law->sum = 0;
	law->samples = 0;
	if (!law->alpha)
		law->alpha = MIN_ALPHA;
	diff = real_div(real_mul(real_of_q32(window_of(step)), real_sub(rtt, real_of(law->base_rtt))), rtt);
	if (in_slow_start(step))
		wvegas_start(step, rtt, diff);
	else
		wvegas_avoid(step, rtt, diff);
	/* Linux: tcp_current_ssthresh. */
	most = window_of(step) - window_of(step) / 4;
	if (threshold_of(step) < most)
		set_threshold(step, most);
}

INLINE void wvegas_on_ack(const struct step *step, bool limited)
{
	struct law_state *law = &step->state->law;

	law->reno = 0;
	law->avoided = 0;
	if (law->started && (s32)(step->socket->una - law->round_end) <= 0)
		return;
	law->started = 1;
	law->round_end = step->socket->nxt;
	if (limited) {
		wvegas_round(step);
		return;
	}
	/* What was measured while nothing queued is no part of the next round's mean. */
	law->sum = 0;
	law->samples = 0;
}

/* The window moves once a round; otherwise only in rounds with too few samples, as Reno's. */
INLINE struct growth wvegas_increase(const struct step *step)
{
	return (struct growth){ .up = step->state->law.reno ? real_div(REAL_ONE, member_of(step)->window) : 0 };
}

INLINE real wvegas_slow_start(const struct step *step)
{
	return step->state->law.avoided ? 0 : REAL_ONE;
}

#endif
