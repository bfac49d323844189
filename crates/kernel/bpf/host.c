/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What tests on the host want of the programs besides the programs themselves. */
#include <stddef.h>

#include "credit.h"
#include "holding.h"
#include "layout.h"
#include "places.h"
#include "power.h"

/* Sizes and offsets, to compare with src/layout.rs. */
const size_t mp_layout[] = {
	sizeof(struct mp_member),
	sizeof(struct mp_group),
	sizeof(struct mp_info),
	sizeof(struct mp_connection),
	sizeof(struct mp_weights),
	offsetof(struct mp_info, cwnd),
	offsetof(struct mp_info, rate),
	offsetof(struct mp_info, updated_us),
	offsetof(struct mp_info, utility_milli),
	offsetof(struct mp_info, reserved),
	MP_SUBFLOWS,
	MP_COUNT_UNFAIR_INTERVALS,
	MP_LEARNING,
};

/* Powers, to compare with libm. */
s64 host_log2(real x)
{
	return real_log2(x);
}

real host_exp2(s64 log)
{
	return real_exp2(log);
}

real host_power(real x, u32 numerator, u32 denominator)
{
	return real_power(x, numerator, denominator);
}

/* Places, to try every order in which subflows come and go. */
u32 host_take_place(struct mp_group *group)
{
	return take_place(group);
}

bool host_leave_place(struct mp_group *group, u32 place)
{
	return leave_place(group, place);
}

void host_return_place(struct mp_group *group, u32 place)
{
	return_place(group, place);
}

/* What late timers leave owed: packets that may leave at once. */
u64 host_credit(struct credit *credit, const struct path_view *path, u64 rate)
{
	credit_earn(credit, path, rate);
	return credit_packets(credit, path);
}

/* What a subflow may hold. */
u64 host_most_unsent(u64 window, u64 rtt_us, u64 longest_us)
{
	return most_unsent(window, rtt_us, longest_us);
}

/* What may wait unsent in the first subflow, by the rates and round trips of all, those that carry something by the bits of `busy`. */
u32 host_unsent_if_slow(const u64 rate[MP_SUBFLOWS], const u32 rtt_us[MP_SUBFLOWS], u32 busy)
{
	struct mp_connection connection = { .group.busy = busy };
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++)
		if (rate[place])
			connection.info[place] = (struct mp_info){ .family = 2, .rate = rate[place], .srtt_us = rtt_us[place],
								   .min_rtt_us = rtt_us[place] };
	return most_unsent_if_slow(&connection, 0);
}

/* The longest of these round trips, smoothed and least, of the subflows that carry something by the bits of `busy`; and how many windows the
 * first one's send buffer holds, where all windows are of `cwnd` packets of 1000 bytes. */
u64 host_holding(const u32 rtt_us[MP_SUBFLOWS], u32 busy, u32 cwnd, u32 *buffers)
{
	struct mp_connection connection = { .group.busy = busy };
	u32 place;

	for (place = 0; place < MP_SUBFLOWS; place++)
		if (rtt_us[place])
			connection.info[place] = (struct mp_info){ .family = 2, .cwnd = cwnd, .mss = 1000, .srtt_us = rtt_us[place],
								   .min_rtt_us = rtt_us[place] };
	*buffers = send_buffer(&connection, 0, cwnd * 1000ULL);
	return longest_round_trip(&connection);
}
