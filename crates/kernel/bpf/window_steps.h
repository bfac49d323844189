/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The steps of window-based controllers (window.h), with the rules of a law that does not have its own. */
#ifndef MANYPATH_WINDOW_STEPS_H
#define MANYPATH_WINDOW_STEPS_H

#include "window.h"

/* What a loss takes, packets (RFC 5681 eq. 4). */
#ifndef law_decrease
#define law_decrease(step) half_window(step)
#endif
/* Growth in slow start, packets per packet acknowledged (RFC 5681 s3.1). */
#ifndef law_slow_start
#define law_slow_start(step) REAL_ONE
#endif
/* The subflow has just joined the group. */
#ifndef law_joined
#define law_joined(step) ((void)(step))
#endif
/* Packets were acknowledged outside of recovery: before the window grows, if it does. */
#ifndef law_on_ack
#define law_on_ack(step, packets, limited) ((void)(step))
#endif
/* A loss began a recovery, or a timeout: before the window shrinks. */
#ifndef law_on_loss
#define law_on_loss(step) ((void)(step))
#endif
/* The loss was a timeout. */
#ifndef law_on_timeout
#define law_on_timeout(step) ((void)(step))
#endif

/* The first step of a subflow. */
INLINE void step_join(const struct step *step)
{
	member_of(step)->window = real_of(step->socket->cwnd);
	law_joined(step);
}

/* Grows by slow start for as many of `packets` as it takes to reach the threshold; returns the others. */
INLINE u32 slow_start(const struct step *step, u32 packets)
{
	real per_packet = law_slow_start(step);
	packets_q32 growth = real_to_q32(per_packet);
	u64 taken = packets;

	if (growth) {
		u64 wanted = (threshold_of(step) - window_of(step) + growth - 1) / growth;

		taken = wanted < packets ? wanted : packets;
	}
	set_window(step, window_of(step) + real_to_q32(real_mul(per_packet, real_of(taken))));
	return packets - (u32)taken;
}

/*
 * Not to less by growth: OLIA's may be negative. Not by more than slow start: another subflow may overwrite `busy` between counts() and
 * the law's sum, which then lacks the own rate.
 */
INLINE void avoid_congestion(const struct step *step, u32 packets)
{
	struct growth growth = law_increase(step);
	packets_q32 up = window_of(step) + real_to_q32(real_mul(real_min(growth.up, REAL_ONE), real_of(packets)));
	packets_q32 down = real_to_q32(real_mul(growth.down, real_of(packets)));

	set_window(step, up > down + LEAST_WINDOW ? up - down : LEAST_WINDOW);
}

/* Acknowledgement of `packets` outside of recovery; `limited`: the window is what limits sending. */
INLINE void step_ack(const struct step *step, u32 packets, bool limited)
{
	heard(step);
	member_of(step)->window = real_of_q32(window_of(step));
#ifndef LAW_HAS_OWN_RTT
	if (step->socket->srtt)
		member_of(step)->rtt = real_of(step->socket->srtt);
#endif
	law_on_ack(step, packets, limited);
	if (!limited)
		return;
	if (in_slow_start(step))
		packets = slow_start(step, packets);
	if (packets && counts(step->group, step->own))
		avoid_congestion(step, packets);
}

/* Sets the threshold to the window less `decrease` packets. */
INLINE void shrink(const struct step *step, real decrease)
{
	packets_q32 lost = real_to_q32(decrease);
	packets_q32 now = window_of(step), left = now > lost ? now - lost : 0;

	set_threshold(step, left > LEAST_WINDOW ? left : LEAST_WINDOW);
}

/*
 * A loss begins a recovery: sets the threshold. The kernel brings the window down to it in the course of a round trip, in
 * whole packets; the others see at once where it is going, and what is left out of whole packets waits beside them.
 */
INLINE void step_loss(const struct step *step)
{
	packets_q32 now = window_of(step);

	heard(step);
	step->state->before = now;
	member_of(step)->window = real_of_q32(now);
	law_on_loss(step);
	/* Before any acknowledgement there is nothing to couple: halve. */
	shrink(step, counts(step->group, step->own) ? law_decrease(step) : half_window(step));
	step->state->window_rest = step->state->threshold_rest;
	member_of(step)->window = real_of_q32(threshold_of(step));
}

/*
 * A timeout: the subflow does not count until it is heard again. `told`: step_loss() took it for any loss, and the threshold is that of a
 * single flow (RFC 5681 s3.1, RFC 6356 s3); else it came upon a recovery, whose threshold is held, as the kernel does.
 */
INLINE void step_timeout(const struct step *step, bool told)
{
	packets_q32 half = step->state->before >> 1;

	if (told)
		set_threshold(step, half > LEAST_WINDOW ? half : LEAST_WINDOW);
	step->state->window_rest = 0;
	member_of(step)->rtt = 0;
	member_of(step)->window = REAL_ONE;
	law_on_timeout(step);
}

#endif
