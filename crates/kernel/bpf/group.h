/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What window-based laws ask of the subflows of a connection. */
#ifndef MANYPATH_GROUP_H
#define MANYPATH_GROUP_H

#include "layout.h"

/* Packets with 32 fractional bits. */
typedef u64 packets_q32;

/* Packets per packet acknowledged: numbers have no sign, so growth and shrinking are apart. */
struct growth {
	real up;
	real down;
};

/* A place that is in bounds, in a way that the verifier of older kernels sees as well: it forgets bounds of what was kept on the
 * stack, and the compiler leaves out a mask that it takes to be needless. */
INLINE u64 in_bounds(u64 place)
{
	__asm__ volatile("" : "+r"(place));
	return place & (MP_SUBFLOWS - 1);
}

/* Whoever is not heard for a round trip and this long is idle (crates/core: SubflowView::is_idle). */
#define IDLE_US 1000000

/*
 * Something is heard of a member: who is busy, now? A backup that carried the connection through an outage would otherwise hold down
 * the others for good by a window or a rate that nobody uses. Without branches, and once for all loops over the members: the verifier
 * of Linux 6.1 follows each way through a loop.
 */
SHARED u32 hear(struct mp_group *group, u32 own, u64 now_us, u32 srtt_us)
{
	u64 busy = 0;
	u32 place;

	if (!group)
		return 0;
	group->member[in_bounds(own)].idle_us = now_us + srtt_us + IDLE_US;
	/* The sign of the difference, since another CPU may have written a later time. */
	for (place = 0; place < MP_SUBFLOWS; place++)
		busy |= (now_us - group->member[place].idle_us) >> 63 << place;
	group->busy = busy & group->used;
	return 0;
}

INLINE bool is_busy(const struct mp_group *group, u32 place)
{
	return group->busy >> place & 1;
}

/* Whether a member takes part in sums: it is busy, has measured a round-trip time and has not timed out. */
INLINE bool counts(const struct mp_group *group, u32 place)
{
	return is_busy(group, place) && group->member[place].rtt;
}

/* Packets per 1/8 us. */
INLINE real rate_of(const struct mp_member *member)
{
	return real_div(member->window, member->rtt);
}

/*
 * The smallest window, of RFC 5681 eq. 4 and of the kernel's own controllers. Several subflows might go down to one packet (RFC
 * 6356 s3), as they do in Rust. Here a lone packet waits for the receiver's delayed acknowledgement, 40 ms or more, and coupled
 * growth takes a hundred such rounds to add another: with what the kernel's scheduler has already handed to the subflow it would
 * hold up the whole connection for seconds.
 */
#define LEAST_WINDOW (2ULL << 32)

#endif
