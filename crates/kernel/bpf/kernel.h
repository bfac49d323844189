/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's types as far as we use them, kept by hand. Offsets are corrected when a program is loaded (CO-RE), so one
 * object fits every kernel that has the fields; a field that some kernels lack is asked for with bpf_core_field_exists().
 */
#ifndef MANYPATH_KERNEL_H
#define MANYPATH_KERNEL_H

#include "types.h"

/* Constants of the kernel's user interface that never change. */
enum { AF_INET = 2, AF_INET6 = 10 };
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
/* Users other than root may choose the controller. */
enum { TCP_CONG_NON_RESTRICTED = 1 };
enum { SOL_TCP = 6, TCP_NOTSENT_LOWAT = 25 };
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u16 skc_family;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL_TYPE;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} KERNEL_TYPE;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u8 icsk_ca_initialized : 1;
	void *icsk_ulp_data;
} KERNEL_TYPE;

struct tcp_rack {
	u64 mstamp;
	u32 rtt_us;
} KERNEL_TYPE;

/* The least of a while, first. */
struct minmax_sample {
	u32 v;
} KERNEL_TYPE;

struct minmax {
	struct minmax_sample s[3];
} KERNEL_TYPE;

struct tcp_sock {
	u32 mss_cache;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 packets_out;
	u32 max_packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 write_seq;
	u32 data_segs_out;
	u64 bytes_sent;
	u32 delivered;
	u32 lost;
	u64 tcp_mstamp;
	u32 notsent_lowat;
	struct tcp_rack rack;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
} KERNEL_TYPE;

/* Of a subflow's upper layer. */
struct mptcp_subflow_context {
	u32 token;
	u32 mp_capable : 1;
	u32 mp_join : 1;
} KERNEL_TYPE;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
} KERNEL_TYPE;

/* Not corrected: libbpf matches members by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 flags;
	char name[16];
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#endif
