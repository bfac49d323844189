/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs and user space share: the values of the maps. docs/kernel-maps.md explains them, `src/layout.rs` repeats
 * them in Rust, and a test compares sizes and offsets.
 */
#ifndef MANYPATH_LAYOUT_H
#define MANYPATH_LAYOUT_H

#include "real.h"

/* Subflows of a connection that are coupled; MPTCP's path manager allows eight. */
#define MP_SUBFLOWS 8
/* Connections at once in one controller; the loader may change it before loading. */
#define MP_CONNECTIONS 4096
/* In `used`: the last subflow has left and the entry is about to go. */
#define MP_DYING (1ULL << 63)

/* What a subflow lets the others know, a line of the cache. Only its own subflow writes it, word by word; the others read. */
struct mp_member {
	/* Smoothed round-trip time in units of 1/8 us; zero while the subflow does not count (nothing measured, timed out). */
	real rtt;
	/* Congestion window, packets. */
	real window;
	/* When it is idle unless it is heard before, microseconds of the kernel's monotonic clock. */
	u64 idle_us;
	/* Of the law; see its header. */
	u64 law[5];
};

/* The subflows of a connection as their control laws see them. */
struct mp_group {
	/* Bit i: member i is taken. */
	u64 used;
	/* Bit i: member i is not idle, as who was heard last found; all write it. */
	u64 busy;
	/* Of the law; see its header. */
	u64 law[6];
	struct mp_member member[MP_SUBFLOWS];
};

/* What user space may want to know of a subflow; brought up to date every 10 ms at most. No law reads it. */
struct mp_info {
	/* AF_INET or AF_INET6; zero: there is no such subflow. */
	u16 family;
	/* Host order. */
	u16 local_port;
	u16 remote_port;
	u16 pad;
	/* IPv4 addresses take the first four bytes. Network order. */
	u8 local[16];
	u8 remote[16];
	/* Packets. */
	u32 cwnd;
	u32 ssthresh;
	/* Bytes. */
	u32 mss;
	u32 srtt_us;
	/* Bytes per second: pacing rate of paced controllers, else window over round-trip time. */
	u64 rate;
	/* Packets since the subflow began. */
	u32 delivered;
	u32 lost;
	/* Monotonic clock of the last change. */
	u64 updated_us;
	/* enum mp_phase. */
	u32 phase;
	/* Millionths; a million where the controller has no weights. */
	u32 weight_ppm;
	/* Thousandths of the utility of the last monitor interval. */
	s64 utility_milli;
	/* Monitor intervals finished, decisions taken. */
	u32 intervals;
	u32 decisions;
	/* Microseconds, the least of the last minutes; zero: none is known. */
	u32 min_rtt_us;
	u32 pad_rtt;
	u64 reserved;
};

/* Value of the map `connections`; the key is the connection's token. */
struct mp_connection {
	struct mp_group group;
	struct mp_info info[MP_SUBFLOWS];
};

/* Value of the map `weights`; the key is a token, or zero for connections without an entry of their own. */
struct mp_weights {
	/* Millionths, by place in `info`; zero stands for one. */
	u32 ppm[MP_SUBFLOWS];
};

enum mp_phase {
	MP_SLOW_START,
	/* Congestion avoidance of window-based controllers; monitoring of mp-ol. */
	MP_AVOIDANCE,
	MP_RECOVERY,
	/* Of paced controllers. */
	MP_PROBING,
	MP_MOVING,
	MP_LEARNING,
};

/* Places in the map `counters`: one u64 a CPU. */
enum mp_counter {
	/* Subflows that joined a connection's state, and connections that were made. */
	MP_COUNT_SUBFLOWS,
	MP_COUNT_CONNECTIONS,
	/* Connections whose state was freed. */
	MP_COUNT_FREED,
	/* Sockets that are plain TCP. */
	MP_COUNT_PLAIN,
	/* Subflows in one-path form because the map was full, because eight others were there, or because their connection
	 * was just closing. */
	MP_COUNT_FULL,
	MP_COUNT_CROWDED,
	MP_COUNT_CLOSING,
	/* Sockets without memory for their own state: they do as Reno. */
	MP_COUNT_NO_MEMORY,
	/* Losses that began a recovery, timeouts, monitor intervals, and those of them that tested nothing. */
	MP_COUNT_LOSSES,
	MP_COUNT_TIMEOUTS,
	MP_COUNT_INTERVALS,
	MP_COUNT_UNFAIR_INTERVALS,
	MP_COUNTERS = 16,
};

#endif
