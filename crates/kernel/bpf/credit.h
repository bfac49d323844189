/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a paced subflow may send at once: what its rate would have sent since, and timers that came late, or not at all, have not.
 *
 * The kernel's pacing has a timer for each piece of at most 64 KB. Where a piece lasts some ten microseconds, timers are late and
 * costly, and the rate is never reached (docs/decisions/kernel-sending.md). There acknowledgements, which come all the time, let leave
 * what is owed. Where timers keep the rate nothing is owed, and they go on.
 */
#ifndef MANYPATH_CREDIT_H
#define MANYPATH_CREDIT_H

#include "monitor.h"

/* What TCP sends at once at most, bytes: less than that is not worth it. */
#define CREDIT_LEAST 65536
/*
 * How long a time may be made good, microseconds: half of what the kernel sends at once (`sk_pacing_shift`), as its own pacing makes good
 * half of a piece. On a link that is slower than the rate, that is the queue that it leaves.
 */
#define CREDIT_TIME 500
/* Bytes per second above which the product below might overflow. */
#define CREDIT_MAX_RATE (1ULL << 40)

struct credit {
	u64 at_us;
	/* Bytes ever sent, until then. */
	u64 sent;
	s64 bytes;
};

/* The rate, in bytes per second, was allowed since the last call. */
INLINE void credit_earn(struct credit *credit, const struct path_view *path, u64 rate)
{
	u64 passed = path->now_us - credit->at_us;
	s64 most;

	if (rate > CREDIT_MAX_RATE)
		rate = CREDIT_MAX_RATE;
	if (passed > CREDIT_TIME)
		passed = CREDIT_TIME;
	most = (s64)(rate * CREDIT_TIME / 1000000);
	credit->bytes += (s64)(rate * passed / 1000000) - (s64)(path->bytes_sent - credit->sent);
	if (credit->bytes > most)
		credit->bytes = most;
	if (credit->bytes < -most)
		credit->bytes = -most;
	credit->at_us = path->now_us;
	credit->sent = path->bytes_sent;
}

/* Packets that may leave at once; zero if less than a piece is owed. */
INLINE u64 credit_packets(const struct credit *credit, const struct path_view *path)
{
	return credit->bytes >= CREDIT_LEAST ? (u64)credit->bytes / path->mss : 0;
}

#endif
