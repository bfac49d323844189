/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Places in a connection's group: taken and given back by atomic operations on `used`, without a lock. */
#ifndef MANYPATH_PLACES_H
#define MANYPATH_PLACES_H

#include "layout.h"

/* A subflow without a place among others. */
#define ALONE MP_SUBFLOWS

/* Takes a free place; ALONE if there is none or the connection is going. */
static u32 take_place(struct mp_group *group)
{
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++) {
		u64 before = __sync_fetch_and_or(&group->used, 1ULL << place);

		if (before & MP_DYING)
			break;
		if (!(before >> place & 1))
			return place;
	}
	return ALONE;
}

/* Gives a place back; says whether it was the last: then the entry is dying, and whoever hears it deletes it. */
static bool leave_place(struct mp_group *group, u32 place)
{
	u64 mine = 1ULL << (place & (MP_SUBFLOWS - 1));
	u32 tries;

	/* A try fails only when another subflow has come or gone meanwhile. */
	for (tries = 0; tries < 4 * MP_SUBFLOWS; tries++) {
		u64 before = group->used;
		u64 after = before & ~mine ? before & ~mine : MP_DYING;

		if (__sync_val_compare_and_swap(&group->used, before, after) == before)
			return after == MP_DYING;
	}
	return false;
}

/*
 * Gives back a place in another connection's entry. That entry's own subflows may have left meanwhile, and its key is not known
 * here: marked as dying it would stay, deleted by nobody, and take no subflow any more. Empty it takes the next one, with which it goes.
 */
static void return_place(struct mp_group *group, u32 place)
{
	__sync_fetch_and_and(&group->used, ~(1ULL << (place & (MP_SUBFLOWS - 1))));
}

#endif
