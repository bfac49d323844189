/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Monitor intervals: what was sent at which rate, and what became of it; as crates/cc/src/monitor.rs, which has an event for
 * each packet. Here there is one call for each acknowledgement, and the kernel's counters:
 *
 * - Packets leave in the order of `segs_out`, first sendings and repetitions alike. An interval holds those from the count at
 *   its beginning to the count at its end.
 * - A packet is settled when it is neither on its way nor counted as lost: `segs_out - in_flight` of them are. They settle
 *   roughly in order; an interval is settled when as many are as had been sent at its end, and REORDERING more, because
 *   that many packets behind a hole tell that it is one.
 * - What was declared lost between the settling of an interval's beginning and of its end was lost in the interval.
 * - What is declared lost at once was sent one after another: a gap.
 *
 * Round-trip times belong to the interval in which their packet left.
 */
#ifndef MANYPATH_MONITOR_H
#define MANYPATH_MONITOR_H

#include "signed.h"

/* Shorter intervals cannot be timed by acknowledgements, microseconds. */
#define MIN_LENGTH 1000
/* Intervals under way at once; a power of two. Older ones are given up. */
#define MAX_INTERVALS 8
/* The smallest window of a controller that paces, packets (MPCC's release). */
#define MIN_PACED_WINDOW 4
/* Packets behind a hole that make it a loss (RFC 6675's DupThresh), and the one that tells. */
#define REORDERING 4
/* How long a closed interval waits for packets, in round-trip times. */
#define DEADLINE 4
/* Loss in per cent above which a rate is too high whatever its utility (the emergency brake of MPCC's release). */
#define OVERLOAD 30
/* Loss in per cent beside a gap up to which it is the gap that lost the rest. */
#define BESIDE_GAP 15
/* Packets of which such a loss is no accident, and of which an arrival can be told; the release wants 100, which slow paths do not
 * send in an interval. */
#define OVERLOAD_PACKETS 20
/* Samples of a regression are fewer and their values smaller than these, so that no sum overflows. */
#define MAX_SAMPLES 65536
#define MAX_OFFSET (1 << 23)

/* What a paced controller reads of a socket. */
struct path_view {
	u64 now_us;
	/* Packets and bytes ever sent, repetitions included. */
	u64 bytes_sent;
	u32 segs_out;
	/* Packets on their way. */
	u32 in_flight;
	/* Packets ever declared lost. */
	u32 lost;
	/* Smoothed round-trip time, microseconds; zero before the first sample. */
	u32 srtt_us;
	/* When the latest packet that was delivered had left, and its round-trip time. */
	u64 sent_at_us;
	u32 rtt_us;
	/* Bytes of a packet. */
	u32 mss;
	/* Whether data waits in the socket for window or pacing. */
	u32 backlogged;
	/* Bits drawn at random for this call. */
	u32 random;
	/* Packets delivered since the last call. */
	u32 delivered;
	/* Whether a window may grow on them: there is no recovery under way, and the window is what limits sending. */
	u32 may_grow;
	/* Packets ever delivered. */
	u32 arrived;
	u32 pad;
};

/* Least squares of round-trip time over send time, both relative to the first sample, microseconds. */
struct regression {
	u64 origin_us;
	u32 base_us;
	u32 n;
	u64 t;
	u64 tt;
	s64 y;
	s64 ty;
	u64 yy;
};

struct interval {
	/* What it is for. */
	u32 epoch;
	u32 index;
	/* Mbit/s. */
	real rate;
	u64 start_us;
	u64 length_us;
	/* Zero while it is open. */
	u64 closed_us;
	/* `segs_out` at beginning and end. */
	u32 first;
	u32 end;
	/* Bytes sent before it; from its end on, in it. */
	u64 bytes;
	/* Once all before it is settled, since when; packets lost and delivered until then. */
	u32 begun;
	u32 lost_before;
	u32 arrived_before;
	/* Packets of its longest gap. */
	u32 gap;
	u32 pad_gap;
	/* When the path was heard again after a silence that began later; zero if it was not. */
	u64 heard_again_us;
	/* Whether data waited to be sent when it was closed. */
	u32 backlogged;
	u64 begun_us;
	struct regression regression;
	/* When the packet of its latest sample left, and that sample. */
	u64 latest_us;
	u32 latest_rtt_us;
	u32 pad;
};

struct monitor {
	struct interval intervals[MAX_INTERVALS];
	/* The oldest, and how many there are. Only the last may be open. */
	u32 oldest;
	u32 count;
	/* When the path was heard for the last time, and how many packets were lost then. */
	u64 heard_us;
	u32 lost;
	u32 pad;
};

/* What an interval measured. */
struct report {
	u32 epoch;
	u32 index;
	/* Mbit/s. */
	real rate;
	/* Share of its packets that were lost. */
	real loss;
	/* Of the round-trip time, s/s; zero when it cannot be told from zero. Without the latest sample if nothing waited to be sent: a
	 * receiver keeps the acknowledgement of the last packet back, in case that more come. */
	struct sreal slope;
	/* Mean round-trip time, microseconds; zero if there is none. */
	real rtt;
	/* How fast its packets arrived, Mbit/s; zero if they were too few to tell, or not all are known. */
	real arrival;
	/* Whether it was sent at its rate, but for one packet. */
	u32 filled;
	/* Whether it was not because nothing waited to be sent. */
	u32 app_limited;
	/* Whether so much of it was lost that its rate is too high even if it was not sent at all of it. */
	u32 overload;
	/* How many packets it had. */
	u32 packets;
	/* Whether nothing waited to be sent before its end, and it was sent at its rate until then: a shorter interval. */
	u32 cut_short;
	/* Whether an overload may be of a moment in which nothing arrived, which tells nothing of the rate. */
	u32 is_gap;
	u64 start_us;
};

/*
 * The round-trip time that a paced window is reckoned with, microseconds. TCP sends at once what the rate gives in a millisecond
 * (`sk_pacing_shift`), up to 64 KB, but no more than half of the window: where round trips are shorter, a window of two of them makes
 * small pieces, each with its timer, its acknowledgement and its wake-ups, and it is these that limit the rate.
 */
INLINE u32 paced_round_trip(const struct path_view *path)
{
	return path->srtt_us > 1000 ? path->srtt_us : 1000;
}

/* Counts a sample, or with `times` of -1 one no more that was counted. */
INLINE void regression_count(struct regression *sums, u64 sent_at_us, u32 rtt_us, s64 times)
{
	u64 t;
	s64 y;

	if (!sums->n) {
		sums->origin_us = sent_at_us;
		sums->base_us = rtt_us;
	}
	t = sent_at_us - sums->origin_us;
	y = (s64)rtt_us - sums->base_us;
	if (t >= MAX_OFFSET || y >= MAX_OFFSET || y <= -MAX_OFFSET || sums->n >= MAX_SAMPLES)
		return;
	sums->n += (u32)times;
	sums->t += t * (u64)times;
	sums->tt += t * t * (u64)times;
	sums->y += y * times;
	sums->ty += (s64)t * y * times;
	sums->yy += (u64)(y * y * times);
}

/* a - b*c/n for sums of products. */
INLINE struct sreal centred(struct sreal sum, struct sreal b, struct sreal c, real n)
{
	struct sreal product = { real_div(real_mul(b.size, c.size), n), b.negative != c.negative };

	return sreal_sub(sum, product);
}

/* Slope in s/s; zero when it is below the least slope or twice its own standard error. */
INLINE struct sreal regression_slope(const struct regression *sums, real min_slope)
{
	real n = real_of(sums->n);
	struct sreal t = sreal_of((s64)sums->t), y = sreal_of(sums->y), stt, sty, syy, slope, residual;

	if (sums->n < 3)
		return positive(0);
	stt = centred(positive(real_of(sums->tt)), t, t, n);
	if (!stt.size || stt.negative)
		return positive(0);
	sty = centred(sreal_of(sums->ty), t, y, n);
	syy = centred(positive(real_of(sums->yy)), y, y, n);
	slope = sreal_divide(sty, stt.size);
	residual = sreal_sub(syy, positive(real_mul(slope.size, sty.size)));
	if (residual.negative)
		residual.size = 0;
	/* (2 error)^2 = 4 residual/(n - 2)/stt. */
	if (slope.size < min_slope ||
	    real_mul(slope.size, slope.size) <
		    real_div(real_shift(residual.size, 2), real_mul(real_of(sums->n - 2), stt.size)))
		return positive(0);
	return slope;
}

INLINE real regression_mean(const struct regression *sums)
{
	if (!sums->n)
		return 0;
	return sreal_add(positive(real_of(sums->base_us)), sreal_divide(sreal_of(sums->y), real_of(sums->n))).size;
}

INLINE struct interval *interval_at(struct monitor *monitor, u32 nth)
{
	return &monitor->intervals[(monitor->oldest + nth) & (MAX_INTERVALS - 1)];
}

/* The open interval, or NULL. */
INLINE struct interval *open_interval(struct monitor *monitor)
{
	struct interval *last = interval_at(monitor, monitor->count - 1);

	return monitor->count && !last->closed_us ? last : 0;
}

INLINE void monitor_close(struct monitor *monitor, const struct path_view *path)
{
	struct interval *open = open_interval(monitor);

	if (!open)
		return;
	open->closed_us = path->now_us;
	open->end = path->segs_out;
	open->bytes = path->bytes_sent - open->bytes;
	open->backlogged = path->backlogged;
}

INLINE void monitor_drop_oldest(struct monitor *monitor)
{
	monitor->oldest = (monitor->oldest + 1) & (MAX_INTERVALS - 1);
	monitor->count--;
}

/* Opens an interval of `length_us` at `rate`, after closing the one that was open. */
INLINE void monitor_begin(struct monitor *monitor, const struct path_view *path, u32 epoch, u32 index, real rate,
			  u64 length_us)
{
	struct interval *interval;

	monitor_close(monitor, path);
	if (monitor->count >= MAX_INTERVALS)
		monitor_drop_oldest(monitor);
	interval = interval_at(monitor, monitor->count);
	monitor->count++;
	interval->epoch = epoch;
	interval->index = index;
	interval->rate = rate;
	interval->start_us = path->now_us;
	interval->length_us = length_us < MIN_LENGTH ? MIN_LENGTH : length_us;
	interval->closed_us = 0;
	interval->first = path->segs_out;
	interval->bytes = path->bytes_sent;
	interval->begun = 0;
	interval->gap = 0;
	interval->heard_again_us = 0;
	interval->regression.n = 0;
	interval->regression.t = 0;
	interval->regression.tt = 0;
	interval->regression.y = 0;
	interval->regression.ty = 0;
	interval->regression.yy = 0;
}

/*
 * Whether the open interval has lasted long enough and has its packets. It begins with the first of them: until that leaves, what a
 * faster rate has on its way fills the window, or the pacing of a slower one holds it back, and that time tells nothing of this rate.
 * Until its first sample tells when that was, the last acknowledgement before stands for it.
 */
INLINE bool monitor_is_due(struct monitor *monitor, const struct path_view *path, u32 min_packets)
{
	struct interval *open = open_interval(monitor);

	if (!open)
		return false;
	if (path->segs_out == open->first)
		open->start_us = path->now_us;
	return path->now_us - open->start_us >= open->length_us && path->segs_out - open->first >= min_packets;
}

/* Gives a round-trip time to the interval in which its packet left. */
SHARED u32 monitor_sample(struct monitor *monitor, const struct path_view *path)
{
	u32 nth;

	if (!monitor || !path)
		return 0;
	for (nth = 0; nth < MAX_INTERVALS; nth++) {
		struct interval *interval = interval_at(monitor, nth);

		if (nth >= monitor->count)
			break;
		if (path->sent_at_us >= interval->start_us &&
		    (!interval->closed_us || path->sent_at_us < interval->closed_us)) {
			if (!interval->regression.n)
				interval->start_us = path->sent_at_us;
			regression_count(&interval->regression, path->sent_at_us, path->rtt_us, 1);
			interval->latest_us = path->sent_at_us;
			interval->latest_rtt_us = path->rtt_us;
			break;
		}
	}
	return 0;
}

/* How long a closed interval waits for packets, microseconds. */
INLINE u64 monitor_patience(const struct path_view *path)
{
	u64 patience = DEADLINE * (u64)path->srtt_us;

	return patience > MIN_LENGTH ? patience : MIN_LENGTH;
}

/*
 * The path is heard. If it was silent for half of what closed intervals wait, they begin to wait anew, once: what stood still for a moment
 * is not lost. What is known to be lost since it was heard before is a gap of the intervals that it belongs to.
 */
SHARED u32 monitor_hear(struct monitor *monitor, const struct path_view *path, bool outlasts_silence)
{
	bool silent;
	u32 nth, gap;

	if (!monitor || !path)
		return 0;
	silent = outlasts_silence && path->now_us - monitor->heard_us >= monitor_patience(path) / 2;
	gap = path->lost - monitor->lost;
	for (nth = 0; nth < MAX_INTERVALS; nth++) {
		struct interval *interval = interval_at(monitor, nth);

		if (nth >= monitor->count)
			break;
		if (silent && interval->closed_us && !interval->heard_again_us)
			interval->heard_again_us = path->now_us;
		if (interval->begun && gap > interval->gap)
			interval->gap = gap;
	}
	monitor->heard_us = path->now_us;
	monitor->lost = path->lost;
	return 0;
}

/* Whether all packets sent before `segs` are settled. */
INLINE bool is_settled(const struct path_view *path, u32 segs)
{
	s32 settled = (s32)(path->segs_out - path->in_flight - segs);

	return settled >= REORDERING || (settled >= 0 && !path->in_flight);
}

/* Begins to count the losses of intervals before which all is settled. */
INLINE void monitor_count_losses(struct monitor *monitor, const struct path_view *path)
{
	u32 nth;

	for (nth = 0; nth < MAX_INTERVALS; nth++) {
		struct interval *interval = interval_at(monitor, nth);

		if (nth >= monitor->count)
			return;
		if (!interval->begun && is_settled(path, interval->first)) {
			interval->begun = 1;
			interval->begun_us = path->now_us;
			interval->lost_before = path->lost;
			interval->arrived_before = path->arrived;
		}
	}
}

/* Whether a closed interval was sent at its rate until then, but for one packet: at nine tenths of it at least, else it did not test it
 * (the test of MPCC's release). */
INLINE bool is_filled_until(const struct interval *closed, u64 until_us, u32 mss)
{
	real bits = real_of((closed->bytes + mss) * 8);
	u64 span = until_us - closed->start_us;

	return closed->end != closed->first &&
	       real_mul(bits, real_of(10)) >= real_mul(real_mul(closed->rate, real_of(span)), real_of(9));
}

INLINE bool is_filled(const struct interval *closed, u32 mss)
{
	return is_filled_until(closed, closed->closed_us, mss);
}

/* How fast the packets of an interval arrived, Mbit/s, when all of it is settled: bits per microsecond. */
INLINE real interval_arrival(const struct interval *settled, const struct path_view *path)
{
	u64 arrived = path->arrived - settled->arrived_before, span = path->now_us - settled->begun_us;

	if (!settled->begun || !span || settled->end - settled->first < OVERLOAD_PACKETS)
		return 0;
	return real_div(real_of(arrived * path->mss * 8), real_of(span));
}

/* The report of the oldest interval, if its results are known; each is reported once, in order. */
SHARED u32 monitor_report(struct monitor *monitor, const struct path_view *path, real min_slope, struct report *report)
{
	struct interval *oldest;
	u32 sent, lost, unsettled, gap;
	u64 waits_from;

	if (!monitor || !path || !report || !monitor->count)
		return 0;
	oldest = interval_at(monitor, 0);
	monitor_count_losses(monitor, path);
	if (!oldest->closed_us)
		return 0;
	unsettled = 0;
	report->arrival = interval_arrival(oldest, path);
	if (!is_settled(path, oldest->end)) {
		s32 missing = (s32)(oldest->end - (path->segs_out - path->in_flight));

		waits_from = oldest->heard_again_us ? oldest->heard_again_us : oldest->closed_us;
		if (path->now_us - waits_from < monitor_patience(path))
			return 0;
		/* Past the deadline, what is unknown counts as lost. */
		unsettled = missing > 0 ? missing : 0;
		report->arrival = 0;
	}
	sent = oldest->end - oldest->first;
	lost = unsettled + (oldest->begun ? path->lost - oldest->lost_before : 0);
	report->epoch = oldest->epoch;
	report->index = oldest->index;
	report->rate = oldest->rate;
	report->loss = sent ? real_div(real_of(lost < sent ? lost : sent), real_of(sent)) : 0;
	report->filled = is_filled(oldest, path->mss);
	report->app_limited = !report->filled && !oldest->backlogged;
	report->packets = sent;
	report->cut_short = report->app_limited && sent >= OVERLOAD_PACKETS && oldest->regression.n &&
			    is_filled_until(oldest, oldest->latest_us, path->mss);
	report->rtt = regression_mean(&oldest->regression);
	if (report->app_limited && oldest->regression.n)
		regression_count(&oldest->regression, oldest->latest_us, oldest->latest_rtt_us, -1);
	report->slope = regression_slope(&oldest->regression, min_slope);
	report->overload = sent >= OVERLOAD_PACKETS && (u64)lost * 100 > (u64)sent * OVERLOAD;
	lost = lost < sent ? lost : sent;
	gap = oldest->gap < lost ? oldest->gap : lost;
	report->is_gap = report->overload && (u64)(lost - gap) * 100 <= (u64)(sent - gap) * BESIDE_GAP;
	report->start_us = oldest->start_us;
	monitor_drop_oldest(monitor);
	return 1;
}

#endif
