/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The arithmetic frame of coupled window-based controllers: the counterpart of crates/cc/src/aimd.rs. A law supplies, as
 * functions of a group and the own place in it,
 *
 *     struct growth law_increase(group, own)  in congestion avoidance
 *     real law_decrease(group, own)           what a loss takes, packets
 *     real law_slow_start(group, own)         growth in slow start, packets per packet acknowledged
 */
#ifndef MANYPATH_WINDOW_H
#define MANYPATH_WINDOW_H

#include "layout.h"

/* A window in packets with 32 fractional bits; the whole packets are the kernel's `snd_cwnd`. */
typedef u64 window;

/* Packets per packet acknowledged: numbers have no sign, so growth and shrinking are apart. */
struct growth {
	real up;
	real down;
};

/* Whether a member takes part in sums: it has measured a round-trip time and has not timed out. */
INLINE bool counts(const struct mp_group *group, u32 place)
{
	return group->used >> place & 1 && group->member[place].rtt;
}

/* Packets per 1/8 us. */
INLINE real rate_of(const struct mp_member *member)
{
	return real_div(member->window, member->rtt);
}

/* RFC 5681 eq. 4 for a lone subflow; together several still have what one flow would keep (RFC 6356 s3). Packets. */
INLINE u32 floor_of(const struct mp_group *group)
{
	u32 place, counting = 0;

	for (place = 0; place < MP_SUBFLOWS; place++)
		counting += counts(group, place);
	return counting > 1 ? 1 : 2;
}

/* RFC 5681 eq. 4. */
INLINE real half_window(const struct mp_group *group, u32 own)
{
	return real_shift(group->member[own].window, -1);
}

/* RFC 5681 s3.1, slow start. */
INLINE real one_per_packet(const struct mp_group *group, u32 own)
{
	(void)group;
	(void)own;
	return REAL_ONE;
}

/* The window after `packets` were acknowledged in congestion avoidance; never below one packet. */
INLINE window window_avoid(window now, struct growth growth, u32 packets)
{
	u64 up = real_to_q32(real_mul(growth.up, real_of(packets)));
	u64 down = real_to_q32(real_mul(growth.down, real_of(packets)));

	now += up;
	return now > down + (1ULL << 32) ? now - down : 1ULL << 32;
}

/* The window after `packets` were acknowledged in slow start, at most `ssthresh` packets; the acknowledgements beyond it
 * are left in `packets`. */
INLINE window window_slow_start(window now, real per_packet, u32 ssthresh, u32 *packets)
{
	window end = (u64)ssthresh << 32;
	window next = now + real_to_q32(real_mul(per_packet, real_of(*packets)));

	if (next <= end) {
		*packets = 0;
		return next;
	}
	*packets = (u32)real_floor(real_div(real_of_q32(next - end), per_packet));
	return end;
}

/* The threshold in packets that a loss of `decrease` packets leaves, rounded to the nearest. */
INLINE u32 window_shrink(window now, real decrease, u32 least)
{
	u64 lost = real_to_q32(decrease);
	u64 left = now > lost ? (now - lost + (1ULL << 31)) >> 32 : 0;

	return left > least ? (u32)left : least;
}

#endif
