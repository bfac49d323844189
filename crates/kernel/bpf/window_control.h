/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's callbacks for window-based controllers; the arithmetic is in window.h. Only callbacks are used whose
 * signature is the same in all kernels from 6.1 to 6.18.
 *
 * The kernel counts whole packets and does recovery itself: it asks for the threshold once an episode, lets the window fall to
 * it by proportional rate reduction, and calls cong_avoid() only outside of recovery.
 *
 * A controller defines law_increase, law_decrease and law_slow_start (window.h) and struct law_state before it includes
 * this file.
 */
#ifndef MANYPATH_WINDOW_CONTROL_H
#define MANYPATH_WINDOW_CONTROL_H

#include "window.h"

struct window_state {
	/* What the kernel's whole packets leave out, packets times 2^32. */
	u32 fraction;
	/* The window before the last reduction. */
	window before;
	struct law_state law;
};

#define SUBFLOW_STATE struct window_state
#include "connection.h"

/* User space sees changes after this time at the latest, microseconds. */
#define INFO_INTERVAL 10000

/* Everything a callback works on. */
struct scope {
	struct tcp_sock *tp;
	struct subflow *subflow;
	struct mp_group *group;
	/* NULL in one-path form. */
	struct mp_info *info;
	/* Place in the group. */
	u32 own;
};

INLINE bool find_scope(struct sock *sk, struct scope *scope)
{
	struct mp_connection *connection;

	scope->tp = (struct tcp_sock *)sk;
	scope->subflow = subflow_of(sk);
	if (!scope->subflow)
		return false;
	connection = connection_of(scope->subflow);
	if (connection) {
		scope->own = scope->subflow->place & (MP_SUBFLOWS - 1);
		scope->group = &connection->group;
		scope->info = &connection->info[scope->own];
	} else {
		scope->own = 0;
		scope->group = &scope->subflow->alone;
		scope->info = 0;
	}
	return true;
}

INLINE window window_of(const struct scope *scope)
{
	return (u64)scope->tp->snd_cwnd << 32 | scope->subflow->own.fraction;
}

INLINE void set_window(const struct scope *scope, window to)
{
	u32 whole = to >> 32, most = scope->tp->snd_cwnd_clamp;

	scope->subflow->own.fraction = whole < most ? (u32)to : 0;
	scope->tp->snd_cwnd = whole < most ? whole : most;
	scope->group->member[scope->own].window = real_of_q32(window_of(scope));
}

INLINE void show(const struct scope *scope, u32 phase)
{
	struct tcp_sock *tp = scope->tp;
	struct mp_info *info = scope->info;

	if (!info)
		return;
	info->cwnd = tp->snd_cwnd;
	info->ssthresh = tp->snd_ssthresh;
	info->mss = tp->mss_cache;
	info->srtt_us = tp->srtt_us >> 3;
	info->rate = tp->srtt_us ? (u64)tp->snd_cwnd * tp->mss_cache * 8000000 / tp->srtt_us : 0;
	info->delivered = tp->delivered;
	info->lost = tp->lost;
	info->phase = phase;
	info->updated_us = tp->tcp_mstamp;
}

/* Whether the window is what limits sending: the test of the kernel's own controllers (RFC 7661's idea). */
INLINE bool is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

SEC("struct_ops/init")
void BPF_PROG(init, struct sock *sk)
{
	begin_subflow(sk);
}

SEC("struct_ops/release")
void BPF_PROG(release, struct sock *sk)
{
	end_subflow(sk);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mp_member *member;
	struct scope scope;
	window now;

	if (!find_scope(sk, &scope)) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	now = window_of(&scope);
	member = &scope.group->member[scope.own];
	member->window = real_of_q32(now);
	member->rtt = real_of(tp->srtt_us);
	if (member->rtt && is_cwnd_limited(tp)) {
		if (tp->snd_cwnd < tp->snd_ssthresh)
			now = window_slow_start(now, law_slow_start(scope.group, scope.own), tp->snd_ssthresh, &acked);
		if (acked)
			now = window_avoid(now, law_increase(scope.group, scope.own), acked);
		set_window(&scope, now);
	}
	if (scope.info && tp->tcp_mstamp - scope.info->updated_us > INFO_INTERVAL)
		show(&scope, tp->snd_cwnd < tp->snd_ssthresh ? MP_SLOW_START : MP_AVOIDANCE);
}

SEC("struct_ops/ssthresh")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct scope scope;
	window now;
	u32 to;

	if (!find_scope(sk, &scope))
		return tp->snd_cwnd > 4 ? tp->snd_cwnd / 2 : 2;
	now = window_of(&scope);
	scope.subflow->own.before = now;
	scope.group->member[scope.own].window = real_of_q32(now);
	to = window_shrink(now, law_decrease(scope.group, scope.own), floor_of(scope.group));
	scope.subflow->own.fraction = 0;
	/* The others see at once where the window is going. */
	scope.group->member[scope.own].window = real_of(to);
	count(MP_COUNT_LOSSES);
	show(&scope, MP_RECOVERY);
	return to;
}

/* After a timeout the kernel asks for the threshold as after any loss, then says that it was one. */
SEC("struct_ops/cwnd_event")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct mp_member *member;
	struct scope scope;

	if (event != CA_EVENT_LOSS || !find_scope(sk, &scope))
		return;
	/* RFC 5681 s3.1, RFC 6356 s3: as a single flow. */
	scope.tp->snd_ssthresh =
		window_shrink(scope.subflow->own.before, real_shift(real_of_q32(scope.subflow->own.before), -1),
			      floor_of(scope.group));
	member = &scope.group->member[scope.own];
	member->rtt = 0;
	member->window = REAL_ONE;
	count(MP_COUNT_TIMEOUTS);
}

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

#define WINDOW_CONTROLLER(kernel_name)                                                                                      \
	SEC(".struct_ops")                                                                                                  \
	struct tcp_congestion_ops kernel_name = {                                                                           \
		.init = (void *)init,                                                                                       \
		.release = (void *)release,                                                                                 \
		.cong_avoid = (void *)cong_avoid,                                                                           \
		.ssthresh = (void *)ssthresh,                                                                               \
		.cwnd_event = (void *)cwnd_event,                                                                           \
		.undo_cwnd = (void *)undo_cwnd,                                                                             \
		.name = #kernel_name,                                                                                       \
	}

#endif
