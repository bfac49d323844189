//! What holds for every link and every arrival process.

use manypath_core::{Bytes, Duration, Rate, Time};
use manypath_link::{
    Capacity, Change, Count, Ecn, GilbertElliott, Link, LinkConfig, Loss, QueueLimit, Red, Trace, Verdict,
};
use proptest::prelude::*;

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1u64..100).prop_map(QueueLimit::Packets),
        (1u64..200_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
        (1u64..200_000).prop_map(|micros| QueueLimit::Wait(Duration::from_micros(micros))),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (0.0..=1.0).prop_map(Loss::Random),
        (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0).prop_map(|(enter_bad, leave_bad, loss_good, loss_bad)| {
            Loss::Bursty(GilbertElliott { enter_bad, leave_bad, loss_good, loss_bad })
        }),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![4 => 0.1..1000.0, 1 => 0.001..0.1].prop_map(Rate::from_mbps)
}

fn span() -> impl Strategy<Value = Duration> {
    (0u64..50_000).prop_map(Duration::from_micros)
}

fn schedule() -> impl Strategy<Value = Vec<Change>> {
    let rate = prop_oneof![4 => rate(), 1 => Just(Rate::ZERO)];
    let change = (1u64..20_000, prop::option::of(rate), prop::option::of(span()), prop::option::of(loss()));
    prop::collection::vec(change, 0..20).prop_map(|changes| {
        let mut at = Time::ZERO;
        let timed = changes.into_iter().map(|(after, rate, delay, loss)| {
            at += Duration::from_micros(after);
            Change { at, rate, delay, jitter: None, loss }
        });
        timed.collect()
    })
}

fn trace() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0u64..5, 1..40).prop_filter_map("a trace needs a period", |gaps| {
        let mut at = 0;
        let lines: Vec<_> = gaps.iter().map(|gap| ((at += gap), at).1.to_string()).collect();
        lines.join("\n").parse().ok()
    })
}

prop_compose! {
    fn config()(
        base in rate(),
        trace in prop::option::weighted(0.2, trace()),
        delay in span(),
        jitter in span(),
        reorder in any::<bool>(),
        loss in loss(),
        queue in limit(),
        ecn_threshold in prop::option::of(limit()),
        red in prop::option::of((1u64..20, 1u64..20, 0.01f64..=1.0, 0.001f64..=1.0, any::<bool>(), any::<bool>())),
        mut schedule in schedule(),
    ) -> LinkConfig {
        let red = red.map(|(min, more, max_probability, weight, gentle, ecn)| Red {
            min: QueueLimit::Packets(min),
            max: QueueLimit::Packets(min + more),
            max_probability,
            weight,
            gentle,
            ecn,
        });
        let capacity = match trace {
            Some(trace) => {
                schedule.iter_mut().for_each(|change| change.rate = None);
                Capacity::Trace(trace)
            }
            None => Capacity::Rate(base),
        };
        LinkConfig { capacity, delay, jitter, reorder, loss, queue, ecn_threshold, red, schedule }
    }
}

/// Arrivals: gap to the one before in microseconds, size, ECN bits.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u64, u8)>> {
    prop::collection::vec((prop_oneof![3 => 0u64..500, 1 => 0u64..20_000], 1u64..3000, 0u8..4), 1..300)
}

/// The bytes that `config` can send between two times, by direct summation: what the link must agree with.
fn capacity_between(config: &LinkConfig, from: Time, to: Time) -> f64 {
    match &config.capacity {
        Capacity::Rate(initial) => {
            let (mut rate, mut at, mut sum) = (*initial, from, 0.0);
            for change in &config.schedule {
                let Some(next) = change.rate else { continue };
                let until = change.at.min(to);
                sum += rate.as_bytes_per_sec() * until.since(at).as_secs_f64();
                at = at.max(until);
                rate = next;
            }
            sum + rate.as_bytes_per_sec() * to.since(at).as_secs_f64()
        }
        Capacity::Trace(_) => f64::INFINITY,
    }
}

proptest! {
    #[test]
    fn every_link_keeps_its_books_and_its_order(config in config(), arrivals in arrivals(), seed in any::<u64>()) {
        let mut link = Link::new(&config, seed, "link").unwrap();
        let (mut now, mut last_at, mut last_departs) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let (mut offered, mut dropped, mut accepted) = (Count::default(), Count::default(), Count::default());
        let add = |count: &mut Count, size| {
            count.packets += 1;
            count.bytes += size;
        };
        for (gap, size, bits) in arrivals {
            now += Duration::from_micros(gap);
            let (size, sent) = (Bytes::new(size), Ecn::from_bits(bits));
            add(&mut offered, size);
            match link.enqueue(now, size, sent) {
                Verdict::Deliver { at, departs, queueing, ecn } => {
                    add(&mut accepted, size);
                    prop_assert!(departs >= last_departs && departs >= now + queueing);
                    prop_assert!(at >= departs);
                    if !config.reorder {
                        prop_assert!(at >= last_at, "FIFO");
                        last_at = at;
                    }
                    prop_assert_eq!(queueing, last_departs.since(now));
                    prop_assert!(ecn == sent || (ecn == Ecn::Ce && sent.is_capable()));
                    // Never faster than the link: what is sent from the start of service on is what the rate allows.
                    let room = capacity_between(&config, now.max(last_departs), departs);
                    let rounding = config.peak_rate().as_bytes_per_sec() * 1.1e-9 + 1e-6;
                    prop_assert!(size.as_f64() <= room + rounding, "{} in {}", size.as_f64(), room);
                    // Nor slower, without a reason.
                    if let Capacity::Rate(_) = config.capacity {
                        prop_assert!(size.as_f64() >= room - rounding, "{} in {}", size.as_f64(), room);
                    }
                    last_departs = departs;
                }
                Verdict::Drop(_) => add(&mut dropped, size),
            }
            let counters = link.counters(now);
            prop_assert_eq!(counters.offered, offered);
            prop_assert_eq!(counters.dropped.total(), dropped);
            prop_assert_eq!(counters.delivered + counters.backlog, accepted);
            prop_assert_eq!(counters.delivered + counters.dropped.total() + counters.backlog, offered);
            match config.queue {
                QueueLimit::Bytes(limit) => prop_assert!(counters.backlog.bytes <= limit),
                QueueLimit::Packets(limit) => prop_assert!(counters.backlog.packets <= limit),
                QueueLimit::Wait(limit) => prop_assert!(counters.queueing_max <= limit),
            }
        }
        // Once everything has left, all that was accepted is delivered.
        prop_assert_eq!(link.counters(last_departs.max(now)).delivered, accepted);
    }

    #[test]
    fn a_paced_source_below_capacity_never_queues(mbps in 0.1f64..1000.0, share in 0.1f64..=1.0, size in 40u64..1500) {
        let rate = Rate::from_mbps(mbps);
        let mut link = Link::new(&LinkConfig::new(rate, Duration::ZERO, QueueLimit::Packets(2)), 0, "l").unwrap();
        // A nanosecond more than the packet's share, since times are whole nanoseconds.
        let gap = Bytes::new(size).time_at(rate * share) + Duration::from_nanos(1);
        let mut now = Time::ZERO;
        for _ in 0..200 {
            let verdict = link.enqueue(now, Bytes::new(size), Ecn::NotEct);
            let unqueued = matches!(verdict, Verdict::Deliver { queueing: Duration::ZERO, .. });
            prop_assert!(unqueued);
            now += gap;
        }
    }

    #[test]
    fn a_trace_never_gives_more_than_its_opportunities(trace in trace(), arrivals in arrivals()) {
        let queue = QueueLimit::Packets(1000);
        let config = LinkConfig { capacity: Capacity::Trace(trace.clone()), ..LinkConfig::new(Rate::ZERO, Duration::ZERO, queue) };
        let mut link = Link::new(&config, 0, "l").unwrap();
        let (mut now, mut departures) = (Time::ZERO, Vec::new());
        for (gap, size, _) in arrivals {
            now += Duration::from_micros(gap);
            if let Verdict::Deliver { departs, .. } = link.enqueue(now, Bytes::new(size), Ecn::NotEct) {
                departures.push((departs, size));
            }
        }
        let period = trace.period();
        for (first, (start, _)) in departures.iter().enumerate() {
            let mut sum = 0;
            for (departs, size) in &departures[first..] {
                prop_assert!(departs.as_nanos().is_multiple_of(1_000_000), "traces deliver on whole milliseconds");
                sum += size;
                // A window of k periods, closed at both ends, sees each opportunity k times, and those at its ends once more;
                // the first packet may have used earlier ones.
                let periods = departs.since(*start).as_nanos() / period.as_nanos() + 2;
                prop_assert!(sum <= trace.bytes_per_period().get() * periods + 3000);
            }
        }
    }

    #[test]
    fn the_trace_parser_takes_any_text(text in "[0-9 \n\r+.x-]{0,60}") {
        if let Ok(trace) = Trace::parse(&text) {
            prop_assert!(!trace.period().is_zero() && !trace.bytes_per_period().is_zero());
        }
    }
}

/// What one link lets out at its rate never waits at the next of the same rate, whatever the rounding of times.
#[test]
fn equal_links_in_series_need_no_second_queue() {
    for mbps in [7.0, 10.0, 11.0, 13.0, 14.0, 17.0, 30.0, 90.0] {
        let link =
            |packets| LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(5), QueueLimit::Packets(packets));
        let (mut first, mut second) = (Link::new(&link(100), 1, "a").unwrap(), Link::new(&link(1), 1, "b").unwrap());
        let mut arrivals = Vec::new();
        for _ in 0..100 {
            let Verdict::Deliver { at, .. } = first.enqueue(Time::ZERO, Bytes::new(1500), Ecn::NotEct) else {
                panic!("there is room")
            };
            arrivals.push(at);
        }
        for at in arrivals {
            let verdict = second.enqueue(at, Bytes::new(1500), Ecn::NotEct);
            assert!(matches!(verdict, Verdict::Deliver { .. }), "{mbps} Mbit/s at {at:?}");
        }
    }
}
