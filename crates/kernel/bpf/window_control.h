/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How window-based controllers are called: by the kernel, or on the host by tests. The arithmetic is in window_steps.h.
 *
 * Only callbacks are used whose signature is the same in all kernels from 6.1 to 6.18. The kernel does recovery itself: it
 * asks for the threshold once an episode, lets the window fall to it by proportional rate reduction, and calls cong_avoid()
 * only outside of recovery.
 */
#ifndef MANYPATH_WINDOW_CONTROL_H
#define MANYPATH_WINDOW_CONTROL_H

#include "window_steps.h"

#ifndef MANYPATH_TUNABLES_H
#include "tunables.h"

/* A law with parameters has this one as the last. */
struct tunables {
	/* Whether windows are paced: 0, never; 1, where spread() says. */
	u64 pacing;
};

TUNABLES = { .pacing = 1 };
#endif

#ifdef __bpf__

#define SUBFLOW_STATE struct window_state
#include "connection.h"

/* What a callback works on. */
struct scope {
	struct step step;
	struct socket_view socket;
	/* NULL in one-path form. */
	struct mp_info *info;
};

/* Finds what belongs to a subflow that has state. */
INLINE void look(struct sock *sk, struct subflow *subflow, struct scope *scope)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct place place;

	find_place(subflow, &place);
	scope->step.group = place.group;
	scope->step.own = place.own;
	scope->info = place.info;
	scope->step.state = &subflow->own;
	scope->step.socket = &scope->socket;
	scope->socket = (struct socket_view){
		.cwnd = tp->snd_cwnd,
		.ssthresh = tp->snd_ssthresh,
		.clamp = tp->snd_cwnd_clamp,
		.srtt = tp->srtt_us,
		.una = tp->snd_una,
		.nxt = tp->snd_nxt,
		.delivered = tp->delivered,
		.lost = tp->lost,
		.now_us = tp->tcp_mstamp,
		.recovering = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state) >= TCP_CA_CWR,
	};
}

INLINE void show(struct sock *sk, const struct scope *scope, u32 phase)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mp_info *info = scope->info;

	if (!info)
		return;
	info->cwnd = tp->snd_cwnd;
	info->ssthresh = tp->snd_ssthresh;
	info->mss = tp->mss_cache;
	info->srtt_us = tp->srtt_us >> 3;
	info->min_rtt_us = least_round_trip(tp);
	info->rate = tp->srtt_us ? (u64)tp->snd_cwnd * tp->mss_cache * 8000000 / tp->srtt_us : 0;
	info->delivered = tp->delivered;
	info->lost = tp->lost;
	info->phase = phase;
	info->updated_us = tp->tcp_mstamp;
}

/* Takes the weight that user space gives the subflow: its connection's entry, or the one for all, or one. */
INLINE void take_weight(const struct subflow *subflow, const struct scope *scope)
{
#ifdef LAW_HAS_WEIGHTS
	u32 token = subflow->token, ppm = 0;
	struct mp_weights *given = bpf_map_lookup_elem(&weights, &token);

	if (!given) {
		token = 0;
		given = bpf_map_lookup_elem(&weights, &token);
	}
	if (given)
		ppm = given->ppm[scope->step.own];
	if (!ppm)
		ppm = MILLION;
	member_of(&scope->step)->law[WEIGHT] = real_of_ppm(ppm);
	if (scope->info)
		scope->info->weight_ppm = ppm;
#endif
}

/*
 * Asks for pacing, at the rate that the kernel works out of window and round-trip time. What the scheduler hands over at once, and what
 * the receive window has held back, would else leave at once, into a queue that it finds full. docs/decisions/kernel-sending.md has
 * what it gains.
 */
INLINE void spread(struct sock *sk)
{
	if (tunables.pacing && sk->sk_pacing_status == SK_PACING_NONE && ((struct tcp_sock *)sk)->rtt_min.s[0].v > SPREAD_RTT)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Whether the window is what limits sending, as the kernel's own controllers ask. */
INLINE bool is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

SEC("struct_ops/init")
void BPF_PROG(init, struct sock *sk)
{
	struct subflow *subflow = begin_subflow(sk);
	struct scope scope;

	if (!subflow) {
		count(MP_COUNT_NO_MEMORY);
		return;
	}
	look(sk, subflow, &scope);
	step_join(&scope.step);
	take_weight(subflow, &scope);
	show(sk, &scope, MP_SLOW_START);
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
	struct subflow *subflow = subflow_of(sk);
	struct scope scope;

	if (!subflow) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	look(sk, subflow, &scope);
	step_ack(&scope.step, acked, is_cwnd_limited(tp));
	tp->snd_cwnd = scope.socket.cwnd;
	tp->snd_ssthresh = scope.socket.ssthresh;
	if (scope.info && tp->tcp_mstamp - scope.info->updated_us > INFO_INTERVAL) {
		bound_by_window(sk, subflow, (u64)tp->snd_cwnd * tp->mss_cache);
		spread(sk);
		take_weight(subflow, &scope);
		show(sk, &scope, in_slow_start(&scope.step) ? MP_SLOW_START : MP_AVOIDANCE);
	}
}

SEC("struct_ops/ssthresh")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct subflow *subflow = subflow_of(sk);
	struct scope scope;

	if (!subflow)
		return reno_threshold(tp);
	look(sk, subflow, &scope);
	step_loss(&scope.step);
	count(MP_COUNT_LOSSES);
	show(sk, &scope, MP_RECOVERY);
	return scope.socket.ssthresh;
}

static void time_out(struct sock *sk, struct subflow *subflow, bool told)
{
	struct scope scope;

	look(sk, subflow, &scope);
	step_timeout(&scope.step, told);
	((struct tcp_sock *)sk)->snd_ssthresh = scope.socket.ssthresh;
	count(MP_COUNT_TIMEOUTS);
}

/* Before cong_avoid(), and in recoveries too, which may last longer than what is taken for idle. */
SEC("struct_ops/pkts_acked")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct subflow *subflow = subflow_of(sk);
	struct scope scope;

	if (!subflow)
		return;
	look(sk, subflow, &scope);
#ifdef law_on_sample
	heard(&scope.step);
	if (sample->rtt_us > 0) {
		law_on_sample(&scope.step, (u32)sample->rtt_us);
		((struct tcp_sock *)sk)->snd_ssthresh = scope.socket.ssthresh;
	}
#else
	if (scope.socket.recovering)
		heard(&scope.step);
#endif
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
		.pkts_acked = (void *)pkts_acked,                                                                           \
		.init = (void *)init,                                                                           \
		.release = (void *)release,                                                                                 \
		.cong_avoid = (void *)cong_avoid,                                                                           \
		.ssthresh = (void *)ssthresh,                                                                               \
		.cwnd_event = (void *)cwnd_event,                                                                           \
		.set_state = (void *)set_state,                                                                             \
		.undo_cwnd = (void *)undo_cwnd,                                                                             \
		.sndbuf_expand = (void *)sndbuf_expand,                                                                     \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                           \
		.name = #kernel_name,                                                                                       \
	}

#else /* __bpf__ */

/* The steps as tests call them. */
struct window_controller {
	u64 state_size;
	void *tunables;
	void (*join)(const struct step *step);
	void (*sample)(const struct step *step, u32 rtt_us);
	void (*ack)(const struct step *step, u32 packets, u32 limited);
	void (*loss)(const struct step *step);
	void (*timeout)(const struct step *step, u32 told);
};

static void host_join(const struct step *step)
{
	step_join(step);
}

static void host_sample(const struct step *step, u32 rtt_us)
{
#ifdef law_on_sample
	heard(step);
	law_on_sample(step, rtt_us);
#else
	(void)step;
	(void)rtt_us;
#endif
}

static void host_ack(const struct step *step, u32 packets, u32 limited)
{
	step_ack(step, packets, limited);
}

static void host_loss(const struct step *step)
{
	step_loss(step);
}

static void host_timeout(const struct step *step, u32 told)
{
	step_timeout(step, told);
}

#define WINDOW_CONTROLLER(kernel_name)                                                                                      \
	const struct window_controller kernel_name = {                                                                      \
		.state_size = sizeof(struct window_state),                                                                  \
		.tunables = &tunables,                                                                                  \
		.join = host_join,                                                                                          \
		.sample = host_sample,                                                                                      \
		.ack = host_ack,                                                                                            \
		.loss = host_loss,                                                                                          \
		.timeout = host_timeout,                                                                                    \
	}

#endif /* __bpf__ */

#endif
