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

/*
 * The smallest window, of RFC 5681 eq. 4 and of the kernel's own controllers. Several subflows might go down to one packet (RFC
 * 6356 s3), as they do in Rust. Here a lone packet waits for the receiver's delayed acknowledgement, 40 ms or more, and coupled
 * growth takes a hundred such rounds to add another: with what the kernel's scheduler has already handed to the subflow it would
 * hold up the whole connection for seconds.
 */
#define LEAST_WINDOW (2ULL << 32)

#endif
