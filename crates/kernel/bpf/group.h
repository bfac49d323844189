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

/* RFC 5681 eq. 4 for a lone subflow; several together still have what one flow would keep (RFC 6356 s3). */
INLINE packets_q32 floor_of(const struct mp_group *group)
{
	u32 place, counting = 0;

	for (place = 0; place < MP_SUBFLOWS; place++)
		counting += counts(group, place);
	return counting > 1 ? 1ULL << 32 : 2ULL << 32;
}

#endif
