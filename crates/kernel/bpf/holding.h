/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a subflow may hold: how much waits unsent in it, and how large a send buffer it asks for (docs/decisions/kernel-sending.md).
 * What a subflow of the kernel's was handed no other can send.
 */
#ifndef MANYPATH_HOLDING_H
#define MANYPATH_HOLDING_H

#include "group.h"

/*
 * Bytes that may wait unsent in a subflow, at least. The kernel's scheduler hands a subflow 64 KB at a time, more the faster it is; when
 * its window is a packet or two, they take seconds to leave, and the whole connection waits for them: the other subflows run into
 * the end of the receive window. So they are bounded (most_unsent). Less than a window costs fast subflows processor time.
 */
#define LEAST_UNSENT 16384

/* Bytes that the kernel's scheduler may hand to a subflow beyond the bound: the rest of a piece. */
#define PIECE 32768
/* Bounds of a send buffer, as a multiple of the window: the kernel's own, and ours. */
#define LEAST_BUFFERS 2
#define MOST_BUFFERS 64
/* Bytes of a send buffer beyond which the kernel's arithmetic might overflow. */
#define MOST_BUFFERED (1 << 29)

/*
 * The longest of the least round trips of the connection's subflows that carry something, microseconds. Not of the smoothed ones: a queue on one
 * path would have the others, over short queues, hold more than they need (docs/decisions/kernel-sending.md).
 */
INLINE u64 longest_round_trip(const struct mp_connection *connection)
{
	u64 longest = 0;
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_info *info = &connection->info[place];

		if (info->family && is_busy(&connection->group, place) && info->min_rtt_us > longest)
			longest = info->min_rtt_us;
	}
	return longest;
}

/* What may wait is at least LEAST_UNSENT, and nothing that overflows. */
INLINE u64 within_limits(u64 most)
{
	if (most > MOST_BUFFERED)
		most = MOST_BUFFERED;
	return most > LEAST_UNSENT ? most : LEAST_UNSENT;
}

/*
 * Bytes that may wait unsent in a subflow: what it sends in the connection's longest round trip. The kernel's scheduler takes the subflow
 * that has sent and seen acknowledged soonest what it holds, and hands nothing to any while that one is full. One of a long round trip
 * holds a round trip of data when its window is in use: others that may not hold as much are always the sooner, and it starves.
 */
INLINE u64 most_unsent(u64 window, u64 rtt_us, u64 longest_us)
{
	return within_limits(longest_us > rtt_us && rtt_us ? window * longest_us / rtt_us : window);
}

/* Milliseconds for which what waits in a slow subflow lasts at least. */
#define LEAST_AHEAD 100
/* Any amount may wait. */
#define UNBOUNDED ((u32)-1)

/*
 * Bytes that may wait unsent in a slow subflow: one with less than half of the rate of the fastest. UNBOUNDED for others.
 *
 * The scheduler hands a subflow 64 KB as soon as it would be through with what it holds before the others. A slow one needs so long for them
 * that the connection runs out of send buffer and waits. So no more waits than lasts for three round trips of the others, less what is in flight:
 * others hold a round trip of what is in flight, one of what is acknowledged selectively, and something unsent, and as long as the soonest is
 * full they are handed nothing. A subflow that runs dry is made to probe for a lost tail, repetitions which count as losses.
 */
INLINE u32 most_unsent_if_slow(const struct mp_connection *connection, u32 own)
{
	const struct mp_info *info = &connection->info[own & (MP_SUBFLOWS - 1)];
	u64 fastest = 0, others_us = 0, ahead = LEAST_AHEAD;
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		const struct mp_info *other = &connection->info[place];

		if (place == own || !other->family || !is_busy(&connection->group, place))
			continue;
		if (other->rate > fastest)
			fastest = other->rate;
		if (other->srtt_us > others_us)
			others_us = other->srtt_us;
	}
	if (info->rate >= fastest / 2)
		return UNBOUNDED;
	if (3 * others_us > info->min_rtt_us + 1000 * LEAST_AHEAD)
		ahead = (3 * others_us - info->min_rtt_us) / 1000;
	return (u32)within_limits(info->rate * ahead / 1000);
}

/* Microseconds until a subflow has delivered what it was handed. */
INLINE u64 time_to_deliver(const struct mp_info *info, u64 longest_us)
{
	u64 window = (u64)info->cwnd * info->mss;
	u64 handed = most_unsent(window, info->min_rtt_us, longest_us) + PIECE;

	return info->family && window ? info->srtt_us * (window + handed) / window : 0;
}

/* The longest such time of the other subflows, in own round-trip times; rounded up, at least one. */
INLINE u64 wait_for_others(const struct mp_connection *connection, u32 own)
{
	u64 longest = 0, srtt_us = connection->info[own & (MP_SUBFLOWS - 1)].srtt_us;
	u64 longest_us = longest_round_trip(connection);
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		u64 time = time_to_deliver(&connection->info[place], longest_us);

		if (place != own && time > longest)
			longest = time;
	}
	return srtt_us && longest > srtt_us ? (longest + srtt_us - 1) / srtt_us : 1;
}

/*
 * How many windows the subflow's send buffer holds; the connection's is the sum of them. It keeps what was sent until all before it
 * has arrived, so that a subflow goes on sending only if there is room for what it delivers while the slowest one delivers what it
 * was handed (RFC 6182 s5.3: twice the sum of all rates, times the longest round trip). The kernel's own two windows last for a
 * round trip of the own subflow.
 */
INLINE u32 send_buffer(const struct mp_connection *connection, u32 own, u64 window)
{
	u64 buffers = LEAST_BUFFERS * wait_for_others(connection, own), most = window ? MOST_BUFFERED / window : MOST_BUFFERS;

	if (most > MOST_BUFFERS)
		most = MOST_BUFFERS;
	if (buffers > most)
		buffers = most;
	return buffers > LEAST_BUFFERS ? (u32)buffers : LEAST_BUFFERS;
}

#endif
