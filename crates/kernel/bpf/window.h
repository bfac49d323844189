/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The arithmetic frame of coupled window-based controllers, the counterpart of crates/cc/src/aimd.rs: steps that are pure
 * functions of what the socket, the group and the subflow's own state say. window_control.h lets the kernel call them, tests
 * call them on the host.
 *
 * A law defines before this file
 *
 *     struct law_state { ... };       its own state of one subflow, zero at first
 *
 * and after it, before window_control.h,
 *
 *     struct growth law_increase(step)   growth in congestion avoidance
 *
 * and, where it differs from the default below it in window_steps.h, any of law_decrease, law_slow_start, law_joined,
 * law_on_ack, law_on_loss, law_on_timeout and law_on_sample.
 *
 * The kernel counts whole packets. What they leave out of window and threshold is kept beside them, so that nothing is rounded
 * away.
 */
#ifndef MANYPATH_WINDOW_H
#define MANYPATH_WINDOW_H

#include "group.h"

/* What a step reads of the socket; it may change window and threshold. */
struct socket_view {
	/* Packets. */
	u32 cwnd;
	u32 ssthresh;
	/* The largest window the socket may have. */
	u32 clamp;
	/* Smoothed round-trip time, 1/8 us; zero before the first sample. */
	u32 srtt;
	/* Sequence numbers: all before `una` is acknowledged, `nxt` is the next to be sent. */
	u32 una;
	u32 nxt;
	/* Packets ever delivered and lost. */
	u32 delivered;
	u32 lost;
	u64 now_us;
	/* Whether a recovery is under way. */
	u32 recovering;
	u32 pad;
};

/* A subflow's own state. */
struct window_state {
	/* What `cwnd` leaves out, packets times 2^32. */
	u32 window_rest;
	/* What the threshold leaves out, and the threshold that this belongs to. */
	u32 threshold_rest;
	u32 threshold;
	u32 pad;
	/* The window before the last reduction. */
	packets_q32 before;
	struct law_state law;
};

/* All that a step works on. */
struct step {
	struct mp_group *group;
	/* The own place in the group, below MP_SUBFLOWS. */
	u32 own;
	struct window_state *state;
	struct socket_view *socket;
};

INLINE struct mp_member *member_of(const struct step *step)
{
	return &step->group->member[step->own];
}

/* Something is heard of the subflow. */
INLINE void heard(const struct step *step)
{
	hear(step->group, step->own, step->socket->now_us, step->socket->srtt >> 3);
}

INLINE packets_q32 window_of(const struct step *step)
{
	return (u64)step->socket->cwnd << 32 | step->state->window_rest;
}

/* Sets the window and lets the others see it. */
INLINE void set_window(const struct step *step, packets_q32 to)
{
	u32 whole = to >> 32;

	if (whole >= step->socket->clamp)
		to = (u64)step->socket->clamp << 32;
	step->socket->cwnd = to >> 32;
	step->state->window_rest = (u32)to;
	member_of(step)->window = real_of_q32(to);
}

INLINE packets_q32 threshold_of(const struct step *step)
{
	/* The kernel changes its threshold by itself too, for instance when it undoes a reduction. */
	u32 rest = step->state->threshold == step->socket->ssthresh ? step->state->threshold_rest : 0;

	return (u64)step->socket->ssthresh << 32 | rest;
}

INLINE void set_threshold(const struct step *step, packets_q32 to)
{
	step->socket->ssthresh = to >> 32;
	step->state->threshold = to >> 32;
	step->state->threshold_rest = (u32)to;
}

INLINE bool in_slow_start(const struct step *step)
{
	return window_of(step) < threshold_of(step);
}

/* Half of the own window, packets. */
INLINE real half_window(const struct step *step)
{
	return real_shift(member_of(step)->window, -1);
}

#endif
