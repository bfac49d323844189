/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which connection a socket belongs to, and where its subflows' state meets. Each program object has its own maps:
 *
 * - `connections`, by MPTCP token: what subflows know of each other. An entry is made with the first subflow and freed with
 *   the last.
 * - `subflows`, in each socket's storage: what only the subflow itself needs.
 * - `weights`, by token: written by user space.
 * - `counters`.
 *
 * No locks: a subflow's callbacks run under its socket's lock, and only they write its member of the group, one word at a
 * time. Another subflow may see a new window beside an old round-trip time, as if it had looked a little earlier.
 * Members are taken and given back by atomic operations on `used`.
 *
 * A controller defines SUBFLOW_STATE, the type of its own state, before it includes this file.
 */
#ifndef MANYPATH_CONNECTION_H
#define MANYPATH_CONNECTION_H

#include "kernel.h"
#include "group.h"
#include "holding.h"
#include "places.h"

/* User space sees changes after this time at the latest, microseconds. */
#define INFO_INTERVAL 10000
/*
 * Where the shortest round trip is longer than this, windows are paced, microseconds. In shorter ones hardly more than one piece of the
 * kernel's leaves, which is a millisecond of data: there pacing spreads nothing and costs a timer for each; and rates need
 * not be kept by timers alone (credit.h).
 */
#define SPREAD_RTT 2000

/* A socket's own state. */
struct subflow {
	/* Key of its connection; zero for plain TCP. */
	u32 token;
	/* Its place in the connection's group; ALONE: it has none and uses `alone`. */
	u32 place;
	/* The bound of unsent data that was asked for, bytes. */
	u32 unsent;
	/* A timeout was told; the change of state that goes with it was not. */
	u32 told_timeout;
	/* A group of one for sockets without a connection: the one-path form of every law. Its member has place 0. */
	struct mp_group alone;
	SUBFLOW_STATE own;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MP_CONNECTIONS);
	__type(key, u32);
	__type(value, struct mp_connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct subflow);
} subflows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	/* And one for connections without an entry of their own. */
	__uint(max_entries, MP_CONNECTIONS + 1);
	__type(key, u32);
	__type(value, struct mp_weights);
} weights SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MP_COUNTERS);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* A new entry of `connections`: too large for a program's stack. */
const volatile struct mp_connection EMPTY_CONNECTION = {};

static void count(u32 which)
{
	u64 *held = bpf_map_lookup_elem(&counters, &which);

	/* The processor's own, and yet at once: a program that runs as a task is interrupted by those of packets that come. */
	if (held)
		__sync_fetch_and_add(held, 1);
}

/* The token of the socket's connection; zero for plain TCP, and where the other end did not take up the offer of Multipath TCP. */
static u32 token_of(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_subflow_context *context;

	/* Other users of the upper layer's pointer, such as kernel TLS, are no subflows. */
	if (!bpf_core_field_exists(tp->is_mptcp) || !tp->is_mptcp)
		return 0;
	context = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_ulp_data);
	if (!context)
		return 0;
	/* Both are set by the handshake, before the controller's life begins (Linux 6.1 to 6.18). */
	if (!BPF_CORE_READ_BITFIELD_PROBED(context, mp_capable) && !BPF_CORE_READ_BITFIELD_PROBED(context, mp_join))
		return 0;
	return BPF_CORE_READ(context, token);
}

/* The connection's entry, made if need be; NULL if the map is full. */
static struct mp_connection *find_or_make_connection(u32 token)
{
	struct mp_connection *found = bpf_map_lookup_elem(&connections, &token);

	if (found)
		return found;
	/* Another subflow may make it at the same time: one of the two finds it there. */
	if (bpf_map_update_elem(&connections, &token, (const void *)&EMPTY_CONNECTION, BPF_NOEXIST) == 0)
		count(MP_COUNT_CONNECTIONS);
	return bpf_map_lookup_elem(&connections, &token);
}

/* Puts addresses and ports where user space sees them. */
static void introduce(struct sock *sk, struct mp_info *info)
{
	struct sock_common *common = &sk->__sk_common;
	u16 family = common->skc_family;

	__builtin_memset(info, 0, sizeof(*info));
	info->local_port = common->skc_num;
	info->remote_port = (u16)__builtin_bswap16(common->skc_dport);
	info->weight_ppm = 1000000;
	if (family == AF_INET6 && bpf_core_field_exists(common->skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&info->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&info->remote, sk, __sk_common.skc_v6_daddr);
	} else {
		__builtin_memcpy(info->local, &(u32){ common->skc_rcv_saddr }, 4);
		__builtin_memcpy(info->remote, &(u32){ common->skc_daddr }, 4);
	}
	info->family = family;
}

/* Joins the connection; the place, or ALONE. */
static u32 join(struct sock *sk, u32 token)
{
	struct mp_connection *connection = find_or_make_connection(token);
	u32 place;

	if (!connection) {
		count(MP_COUNT_FULL);
		return ALONE;
	}
	place = take_place(&connection->group);
	if (place >= MP_SUBFLOWS) {
		count(connection->group.used & MP_DYING ? MP_COUNT_CLOSING : MP_COUNT_CROWDED);
		return ALONE;
	}
	/* The last subflow may have left meanwhile, and another connection have taken the entry's memory: which one is not known. */
	if (bpf_map_lookup_elem(&connections, &token) != connection) {
		return_place(&connection->group, place);
		count(MP_COUNT_CLOSING);
		return ALONE;
	}
	connection->group.member[place] = (struct mp_member){};
	introduce(sk, &connection->info[place]);
	count(MP_COUNT_SUBFLOWS);
	return place;
}

static void leave(struct subflow *subflow)
{
	u32 token = subflow->token, place = subflow->place;
	struct mp_connection *connection;

	if (place >= MP_SUBFLOWS)
		return;
	subflow->place = ALONE;
	connection = bpf_map_lookup_elem(&connections, &token);
	if (!connection)
		return;
	connection->group.member[place] = (struct mp_member){};
	connection->info[place].family = 0;
	if (leave_place(&connection->group, place)) {
		bpf_map_delete_elem(&connections, &token);
		bpf_map_delete_elem(&weights, &token);
		count(MP_COUNT_FREED);
	}
}

/* The state of a socket whose life with the controller begins; NULL without memory. */
static struct subflow *begin_subflow(struct sock *sk)
{
	struct subflow *subflow = bpf_sk_storage_get(&subflows, sk, 0, 0);

	/* A socket that is connected again may have some from before. New storage is zero. */
	if (subflow) {
		leave(subflow);
		bpf_sk_storage_delete(&subflows, sk);
	}
	subflow = bpf_sk_storage_get(&subflows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!subflow)
		return 0;
	subflow->alone.used = 1;
	subflow->token = token_of(sk);
	if (subflow->token) {
		subflow->place = join(sk, subflow->token);
	} else {
		subflow->place = ALONE;
		count(MP_COUNT_PLAIN);
	}
	return subflow;
}

static void end_subflow(struct sock *sk)
{
	struct subflow *subflow = bpf_sk_storage_get(&subflows, sk, 0, 0);

	if (subflow)
		leave(subflow);
}

/* Of sockets without state. */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

static u32 reno_threshold(const struct tcp_sock *tp)
{
	return tp->snd_cwnd > 4 ? tp->snd_cwnd / 2 : 2;
}

static struct subflow *subflow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&subflows, sk, 0, 0);
}

INLINE u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/*
 * Whether a socket's change of state is a timeout of which nothing has told. The kernel tells (ssthresh(), then CA_EVENT_LOSS) only
 * of those that reduce its threshold. Not of one during a recovery or a reduction for ECN, whose threshold stays; and not of those
 * that follow while nothing is acknowledged, which say nothing new. A path that takes smaller packets only leads to the same
 * state; what tells them apart is that a timeout has just left the window one packet more than what is in flight.
 */
static bool is_untold_timeout(struct sock *sk, struct subflow *subflow)
{
	u8 before = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	bool told = subflow->told_timeout;

	subflow->told_timeout = 0;
	return !told && (before == TCP_CA_Recovery || before == TCP_CA_CWR) && tp->snd_cwnd == in_flight(tp) + 1;
}

/* Where a subflow meets the others. */
struct place {
	struct mp_group *group;
	/* NULL in one-path form. */
	struct mp_info *info;
	/* Its place in the group. A whole word: the verifier of older kernels forgets the bound of half of one on the stack. */
	u64 own;
};

/* The least round trip of the last minutes, microseconds; zero before the first sample, where the kernel has the largest number. */
INLINE u32 least_round_trip(const struct tcp_sock *tp)
{
	u32 least = tp->rtt_min.s[0].v;

	return least == (u32)-1 ? 0 : least;
}

/* The connection of a subflow; NULL in one-path form. */
INLINE struct mp_connection *connection_of(const struct subflow *subflow)
{
	u32 token = subflow->token;

	return subflow->place < MP_SUBFLOWS ? bpf_map_lookup_elem(&connections, &token) : 0;
}

/*
 * Bounds what waits in a subflow, once it carries data: only then is it all set up. Multipath TCP keeps what a program asks for to the
 * connection, and from 6.7 on sets each subflow's bound to the largest number, again whenever it passes options on.
 */
INLINE void bound_unsent(struct sock *sk, struct subflow *subflow, u32 most)
{
	u32 held = ((struct tcp_sock *)sk)->notsent_lowat;

	/* What a program has asked for stays. */
	if (held != 0 && held != (u32)-1 && held != subflow->unsent)
		return;
	subflow->unsent = most;
	if (held != most)
		bpf_setsockopt(sk, SOL_TCP, TCP_NOTSENT_LOWAT, &subflow->unsent, sizeof(subflow->unsent));
}

/* The bound of a subflow with this window, in bytes; a slow one's is less. */
INLINE void bound_by_window(struct sock *sk, struct subflow *subflow, u64 window)
{
	const struct mp_connection *connection = connection_of(subflow);
	u64 longest_us = connection ? longest_round_trip(connection) : 0;
	u32 most = (u32)most_unsent(window, least_round_trip((struct tcp_sock *)sk), longest_us);
	u32 slow = connection ? most_unsent_if_slow(connection, subflow->place) : UNBOUNDED;

	bound_unsent(sk, subflow, slow < most ? slow : most);
}

/* The bound of a subflow that has none unless it is slow. One that has never been is left as it is. */
INLINE void bound_if_slow(struct sock *sk, struct subflow *subflow)
{
	const struct mp_connection *connection = connection_of(subflow);
	u32 most = connection ? most_unsent_if_slow(connection, subflow->place) : UNBOUNDED;

	if (most != UNBOUNDED || subflow->unsent)
		bound_unsent(sk, subflow, most);
}

SEC("struct_ops/sndbuf_expand")
u32 BPF_PROG(sndbuf_expand, struct sock *sk)
{
	struct subflow *subflow = subflow_of(sk);
	struct mp_connection *connection = subflow ? connection_of(subflow) : 0;
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	return connection ? send_buffer(connection, subflow->place, (u64)tp->snd_cwnd * tp->mss_cache) : LEAST_BUFFERS;
}

INLINE void find_place(struct subflow *subflow, struct place *place)
{
	struct mp_connection *connection = connection_of(subflow);
	u32 own = subflow->place;

	if (connection) {
		u64 bounded = in_bounds(own);

		place->own = (u32)bounded;
		place->group = &connection->group;
		place->info = &connection->info[bounded];
	} else {
		place->own = 0;
		place->group = &subflow->alone;
		place->info = 0;
	}
}

/* What a controller does about a timeout; `told`: it was asked for a threshold just before. */
static void time_out(struct sock *sk, struct subflow *subflow, bool told);

/* After a timeout the kernel asks for the threshold as after any loss, then says that it was one. */
SEC("struct_ops/cwnd_event")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct subflow *subflow;

	if (event != CA_EVENT_LOSS)
		return;
	subflow = subflow_of(sk);
	if (!subflow)
		return;
	subflow->told_timeout = 1;
	time_out(sk, subflow, true);
}

/* Of a timeout in a recovery it says only this: the threshold has been asked for already. */
SEC("struct_ops/set_state")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct subflow *subflow;

	if (state != TCP_CA_Loss)
		return;
	subflow = subflow_of(sk);
	if (subflow && is_untold_timeout(sk, subflow))
		time_out(sk, subflow, false);
}

#endif
