/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How paced controllers are called: by the kernel, or on the host by tests.
 *
 * `cong_control` takes other arguments from kernel 6.10 on than before; the socket is the first in both, and the only one used
 * here, so that one program fits. What the others would tell is in the socket as well.
 *
 * A controller defines before it includes this file: paced_state, and paced_join, paced_on_ack, paced_on_loss, paced_on_timeout,
 * paced_rate, paced_window, paced_phase and paced_utility as in mpcc.h, and PACED_MAY_FALL.
 */
#ifndef MANYPATH_PACED_CONTROL_H
#define MANYPATH_PACED_CONTROL_H

#include "credit.h"
#include "monitor.h"

/* Stands for the round-trip time before it is known, microseconds. */
#define INITIAL_RTT 100000
#ifdef __bpf__

struct paced_subflow {
	paced_state state;
	/* When the packet of the last round-trip sample had left. */
	u64 sampled_us;
	/* Packets delivered when it was last called. */
	u32 delivered;
	/* Intervals that `counters` has. */
	u32 intervals;
	u32 unfair;
	struct credit credit;
	/* Whether it is what is owed, not the controller's window, that limits sending. */
	u64 credit_limits;
	/* Of the call under way: on the stack older kernels have no room left for it. */
	struct path_view path;
};

#define SUBFLOW_STATE struct paced_subflow
#include "connection.h"

INLINE void look(struct sock *sk, struct path_view *path)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	path->now_us = tp->tcp_mstamp;
	path->bytes_sent = tp->bytes_sent;
	path->segs_out = tp->data_segs_out;
	path->in_flight = in_flight(tp);
	path->lost = tp->lost;
	path->srtt_us = tp->srtt_us ? tp->srtt_us >> 3 : INITIAL_RTT;
	path->sent_at_us = tp->rack.mstamp;
	path->rtt_us = tp->rack.rtt_us;
	path->mss = tp->mss_cache ? tp->mss_cache : 1;
	path->backlogged = tp->write_seq != tp->snd_nxt;
	path->random = bpf_get_prandom_u32();
	path->delivered = 0;
	path->arrived = tp->delivered;
	path->may_grow = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state) < TCP_CA_CWR &&
			 BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/*
 * Lets timers pace, or acknowledgements what timers owe; returns the packets that may leave at once so. Over longer round trips timers
 * keep up, and fq, where a machine has it, needs neither.
 */
INLINE u64 pace(struct sock *sk, const struct paced_subflow *own)
{
	u64 owed = 0;

	if (sk->sk_pacing_status == SK_PACING_FQ)
		return 0;
	if (((struct tcp_sock *)sk)->rtt_min.s[0].v <= SPREAD_RTT)
		owed = credit_packets(&own->credit, &own->path);
	sk->sk_pacing_status = owed ? SK_PACING_NONE : SK_PACING_NEEDED;
	return owed;
}

/* Hands the controller's limits to the kernel. */
INLINE void limit(struct sock *sk, struct paced_subflow *own)
{
	const struct path_view *path = &own->path;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 rate = paced_rate(&own->state, path), most = sk->sk_max_pacing_rate, window = paced_window(&own->state, path);
	u64 owed;

	if (rate > most)
		rate = most;
	sk->sk_pacing_rate = rate;
	credit_earn(&own->credit, path, rate);
	owed = pace(sk, own);
	own->credit_limits = owed && path->in_flight + owed < window;
	if (own->credit_limits)
		window = path->in_flight + owed;
	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
}

INLINE void show(struct sock *sk, const paced_state *state, struct mp_info *info)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	info->cwnd = tp->snd_cwnd;
	info->ssthresh = tp->snd_ssthresh;
	info->mss = tp->mss_cache;
	info->srtt_us = tp->srtt_us >> 3;
	info->min_rtt_us = least_round_trip(tp);
	info->rate = sk->sk_pacing_rate;
	info->delivered = tp->delivered;
	info->lost = tp->lost;
	info->phase = paced_phase(state);
	info->utility_milli = paced_utility(state);
	info->intervals = state->intervals;
	info->decisions = state->decisions;
	info->updated_us = tp->tcp_mstamp;
}

static struct subflow *begin(struct sock *sk)
{
	struct subflow *subflow = begin_subflow(sk);
	struct path_view *path;
	struct place place;

	if (!subflow)
		return 0;
	find_place(subflow, &place);
	path = &subflow->own.path;
	look(sk, path);
	subflow->own.delivered = ((struct tcp_sock *)sk)->delivered;
	paced_join(&subflow->own.state, place.group, place.own);
	limit(sk, &subflow->own);
	return subflow;
}

SEC("struct_ops/init")
void BPF_PROG(init, struct sock *sk)
{
	if (!begin(sk))
		count(MP_COUNT_NO_MEMORY);
}

SEC("struct_ops/release")
void BPF_PROG(release, struct sock *sk)
{
	end_subflow(sk);
}

/* Adds to the counters what the last acknowledgement brought: one interval at most. */
INLINE void count_intervals(struct paced_subflow *own)
{
	if (own->intervals != own->state.intervals)
		count(MP_COUNT_INTERVALS);
	if (own->unfair != own->state.unfair)
		count(MP_COUNT_UNFAIR_INTERVALS);
	own->intervals = own->state.intervals;
	own->unfair = own->state.unfair;
}

/* A socket without memory for its own state: the kernel moves no window where there is cong_control. */
static void do_as_reno(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 state = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);

	if (state != TCP_CA_CWR && state != TCP_CA_Recovery)
		tcp_reno_cong_avoid(sk, 0, 1);
	else if (tp->snd_cwnd > tp->snd_ssthresh)
		tp->snd_cwnd = tp->snd_ssthresh;
}

SEC("struct_ops/cong_control")
void BPF_PROG(cong_control, struct sock *sk)
{
	struct subflow *subflow = subflow_of(sk);
	struct path_view *path;
	struct place place;

	if (!subflow) {
		/* A connecting socket is acknowledged before its life with the controller begins; after that, there was no
		 * memory for its state. There may be by now. */
		if (BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_initialized) && !begin(sk))
			do_as_reno(sk);
		return;
	}
	find_place(subflow, &place);
	path = &subflow->own.path;
	look(sk, path);
	if (subflow->own.credit_limits)
		path->may_grow = 0;
	if (path->sent_at_us == subflow->own.sampled_us)
		path->rtt_us = 0;
	subflow->own.sampled_us = path->sent_at_us;
	path->delivered = ((struct tcp_sock *)sk)->delivered - subflow->own.delivered;
	subflow->own.delivered = ((struct tcp_sock *)sk)->delivered;
	paced_on_ack(&subflow->own.state, place.group, place.own, path);
	count_intervals(&subflow->own);
	limit(sk, &subflow->own);
	if (place.info && path->now_us - place.info->updated_us > INFO_INTERVAL) {
		if (!PACED_MAY_FALL)
			bound_if_slow(sk, subflow);
		else if (subflow->unsent)
			bound_by_window(sk, subflow, paced_window(&subflow->own.state, path) * path->mss);
		show(sk, &subflow->own.state, place.info);
	}
}

static void time_out(struct sock *sk, struct subflow *subflow, bool told)
{
	struct place place;

	(void)told;
	find_place(subflow, &place);
	look(sk, &subflow->own.path);
	paced_on_timeout(&subflow->own.state, place.group, place.own, &subflow->own.path);
	count(MP_COUNT_TIMEOUTS);
}

/* Asked for once an episode; the kernel does not act on it where there is cong_control. */
SEC("struct_ops/ssthresh")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct subflow *subflow = subflow_of(sk);
	struct place place;

	if (subflow) {
		find_place(subflow, &place);
		paced_on_loss(&subflow->own.state, place.group, place.own);
		/* Before any loss there is no window to fall. From here on the bound follows it. */
		if (place.info && PACED_MAY_FALL)
			bound_by_window(sk, subflow, 0);
	}
	count(MP_COUNT_LOSSES);
	return subflow ? ((struct tcp_sock *)sk)->snd_ssthresh : reno_threshold((struct tcp_sock *)sk);
}

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

#define PACED_CONTROLLER(kernel_name)                                                                                       \
	SEC(".struct_ops")                                                                                                  \
	struct tcp_congestion_ops kernel_name = {                                                                           \
		.init = (void *)init,                                                                                       \
		.release = (void *)release,                                                                                 \
		.cong_control = (void *)cong_control,                                                                       \
		.cwnd_event = (void *)cwnd_event,                                                                           \
		.set_state = (void *)set_state,                                                                             \
		.ssthresh = (void *)ssthresh,                                                                               \
		.undo_cwnd = (void *)undo_cwnd,                                                                             \
		.sndbuf_expand = (void *)sndbuf_expand,                                                                     \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                           \
		.name = #kernel_name,                                                                                       \
	}

#else /* __bpf__ */

/* The steps as tests call them. */
struct paced_controller {
	u64 state_size;
	struct tunables *tunables;
	u64 tunables_size;
	void (*join)(paced_state *state, struct mp_group *group, u32 own);
	void (*ack)(paced_state *state, struct mp_group *group, u32 own, const struct path_view *path);
	void (*loss)(paced_state *state, struct mp_group *group, u32 own);
	void (*timeout)(paced_state *state, struct mp_group *group, u32 own, const struct path_view *path);
	void (*report)(paced_state *state, const struct path_view *path, const struct report *report, real others);
	u64 (*rate)(const paced_state *state, const struct path_view *path);
	u64 (*window)(const paced_state *state, const struct path_view *path);
};

#define PACED_CONTROLLER(kernel_name)                                                                                       \
	const struct paced_controller kernel_name = {                                                                       \
		.state_size = sizeof(paced_state),                                                                          \
		.tunables = &tunables,                                                                                      \
		.tunables_size = sizeof(tunables),                                                                          \
		.join = paced_join,                                                                                         \
		.ack = paced_on_ack,                                                                                        \
		.loss = paced_on_loss,                                                                                      \
		.timeout = paced_on_timeout,                                                                                \
		.report = paced_report,                                                                                     \
		.rate = paced_rate,                                                                                         \
		.window = paced_window,                                                                                     \
	}

#endif /* __bpf__ */

#endif
