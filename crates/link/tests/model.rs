//! The link's arithmetic on small cases, each worked out in a comment.

use manypath_core::{Bytes, Duration, Rate, Time};
use manypath_link::{
    Capacity, Change, ConfigError, DropCause, Ecn, GilbertElliott, Link, LinkConfig, Loss, MAX_CHANGES,
    MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS, MAX_RATE_BPS, MIN_RATE_BPS, QueueLimit, Red, Verdict,
};

const MTU: Bytes = Bytes::new(1500);
const FULL: Verdict = Verdict::Drop(DropCause::QueueFull);

/// 12 Mbit/s (1500 bytes take 1 ms), 10 ms of delay, room for 10 packets.
fn base() -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(12.0), Duration::from_millis(10), QueueLimit::Packets(10))
}

fn link(config: &LinkConfig) -> Link {
    Link::new(config, 1, "test").unwrap()
}

fn us(micros: u64) -> Time {
    Time::from_micros(micros)
}

fn send(link: &mut Link, now: Time, size: u64) -> (Time, Time, Duration, Ecn) {
    match link.enqueue(now, Bytes::new(size), Ecn::Ect0) {
        Verdict::Deliver { at, departs, queueing, ecn } => (at, departs, queueing, ecn),
        Verdict::Drop(cause) => panic!("dropped: {cause:?}"),
    }
}

fn departs(link: &mut Link, now: Time, size: u64) -> Time {
    send(link, now, size).1
}

#[test]
fn a_packet_takes_its_transmission_and_propagation_time() {
    let mut link = link(&base());
    // 1500 B at 12 Mbit/s: 1 ms; plus 10 ms.
    assert_eq!(send(&mut link, us(500), 1500), (us(11_500), us(1_500), Duration::ZERO, Ecn::Ect0));
    // 750 B arrive at 1.1 ms, wait 0.4 ms for the first, take 0.5 ms: leave at 2.0 ms.
    assert_eq!(send(&mut link, us(1_100), 750), (us(12_000), us(2_000), Duration::from_micros(400), Ecn::Ect0));
    // The queue is empty from 2.0 ms on.
    assert_eq!(departs(&mut link, us(2_000), 1500), us(3_000));
}

#[test]
fn rounding_does_not_add_up() {
    // 7 Mbit/s: 1500 B take 1714285.714... ns. A million of them, back to back: 12e9 bits / 7e6 bit/s = 1714.285714286 s.
    let mut link = link(&LinkConfig {
        queue: QueueLimit::Packets(1_000_000),
        ..LinkConfig::new(Rate::from_mbps(7.0), Duration::ZERO, QueueLimit::Packets(1))
    });
    let mut last = Time::ZERO;
    for _ in 0..1_000_000 {
        last = departs(&mut link, Time::ZERO, 1500);
    }
    assert_eq!(last, Time::from_nanos(1_714_285_714_286));
}

#[test]
fn drop_tail_counts_the_packet_in_transmission() {
    let mut link = link(&base());
    for _ in 0..10 {
        send(&mut link, Time::ZERO, 1500);
    }
    assert_eq!(link.enqueue(us(999), MTU, Ecn::NotEct), Verdict::Drop(DropCause::QueueFull));
    assert_eq!(link.backlog(us(999)).packets, 10);
    // The first has left at 1 ms: there is room for one.
    assert_eq!(departs(&mut link, us(1_000), 1500), us(11_000));
    assert_eq!(link.backlog(us(1_000)).bytes, Bytes::new(15_000));
    // Those that still wait are in the mean, too.
    assert_eq!(link.counters(us(1_000)).queueing_mean(), Some(Duration::from_millis(54) / 11));
    assert_eq!(link.backlog(us(11_000)).packets, 0);
    let counters = link.counters(us(11_000));
    assert_eq!(
        (counters.offered.packets, counters.delivered.packets, counters.dropped.queue_full.packets),
        (12, 11, 1)
    );
    assert_eq!((counters.peak_backlog, counters.dropped.total().bytes), (Bytes::new(15_000), MTU));
    // A smaller backlog later is no peak.
    send(&mut link, us(20_000), 40);
    assert_eq!(link.counters(us(20_000)).peak_backlog, Bytes::new(15_000));
    // Waits: 0 + 1 + ... + 9 ms for the first ten, 9 ms for the last.
    assert_eq!((counters.queueing_sum, counters.queueing_max), (Duration::from_millis(54), Duration::from_millis(9)));
    assert_eq!(counters.queueing_mean(), Some(Duration::from_millis(54) / 11));
}

#[test]
fn a_byte_limit_lets_small_packets_in_where_large_ones_do_not_fit() {
    let mut link = link(&LinkConfig { queue: QueueLimit::Bytes(Bytes::new(2000)), ..base() });
    send(&mut link, Time::ZERO, 1500);
    assert_eq!(link.enqueue(Time::ZERO, Bytes::new(501), Ecn::NotEct), Verdict::Drop(DropCause::QueueFull));
    send(&mut link, Time::ZERO, 500);
    assert_eq!(link.enqueue(us(2_000), Bytes::new(2001), Ecn::NotEct), Verdict::Drop(DropCause::QueueFull));
    assert_eq!(link.enqueue(us(2_000), Bytes::MAX, Ecn::NotEct), Verdict::Drop(DropCause::QueueFull));
}

#[test]
fn no_queue_holds_more_than_two_to_the_twentieth_packets() {
    let mut link = link(&LinkConfig { queue: QueueLimit::Bytes(MAX_QUEUE_BYTES), ..base() });
    let full = (0..MAX_QUEUE_PACKETS).all(|_| link.enqueue(Time::ZERO, Bytes::new(1), Ecn::NotEct) != FULL);
    assert!(full && link.enqueue(Time::ZERO, Bytes::new(1), Ecn::NotEct) == FULL);
}

fn rate_at(at: Time, mbps: f64) -> Change {
    Change { at, rate: Some(Rate::from_mbps(mbps)), ..Change::default() }
}

#[test]
fn a_backlog_drains_at_the_new_rate_from_the_change_on() {
    let mut link = link(&LinkConfig { schedule: vec![rate_at(us(2_500), 6.0), rate_at(us(6_000), 24.0)], ..base() });
    // 12 Mbit/s until 2.5 ms: two packets and half of the third. The other half takes 1 ms at 6 Mbit/s: 3.5 ms.
    // The fourth takes 2 ms: 5.5 ms. A quarter of the fifth goes by 6 ms, three quarters at 24 Mbit/s take 0.375 ms.
    let times: Vec<_> = (0..5).map(|_| departs(&mut link, Time::ZERO, 1500)).collect();
    assert_eq!(times, [us(1_000), us(2_000), us(3_500), us(5_500), us(6_375)]);
    assert_eq!(departs(&mut link, us(6_100), 1500), us(6_875));
}

#[test]
fn one_packet_may_span_several_changes_and_an_outage() {
    let schedule =
        vec![rate_at(us(250), 0.0), rate_at(us(1_000), 6.0), rate_at(us(2_000), 3.0), rate_at(us(2_400), 12.0)];
    let mut link = link(&LinkConfig { schedule, ..base() });
    // In quarters of 375 B: one by 0.25 ms, none until 1 ms, two by 2 ms; 150 B by 2.4 ms at 3 Mbit/s; 225 B in 0.15 ms.
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(2_550));
    assert_eq!(departs(&mut link, us(5_000), 1500), us(6_000));
}

#[test]
fn a_change_at_the_very_end_of_a_packet_does_not_touch_it() {
    let mut link = link(&LinkConfig { schedule: vec![rate_at(us(1_000), 6.0)], ..base() });
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(1_000));
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(3_000));
}

#[test]
fn a_dead_link_drops_what_can_never_leave() {
    let mut link = link(&LinkConfig { schedule: vec![rate_at(us(1_500), 0.0)], ..base() });
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(1_000));
    assert_eq!(link.enqueue(Time::ZERO, MTU, Ecn::NotEct), Verdict::Drop(DropCause::Dead));
    // Half a packet still fits before the end.
    assert_eq!(departs(&mut link, Time::ZERO, 750), us(1_500));
    assert_eq!(link.enqueue(us(9_000), MTU, Ecn::NotEct), Verdict::Drop(DropCause::Dead));
}

#[test]
fn delay_loss_and_jitter_follow_the_schedule() {
    let schedule = vec![
        Change { at: us(1_500), delay: Some(Duration::from_millis(20)), ..Change::default() },
        Change { at: us(5_000), loss: Some(Loss::Random(1.0)), ..Change::default() },
        Change { at: us(6_000), loss: Some(Loss::None), delay: Some(Duration::from_millis(1)), ..Change::default() },
    ];
    let mut kept = link(&LinkConfig { schedule: schedule.clone(), ..base() });
    // The second packet arrives before the change but leaves after it.
    assert_eq!(send(&mut kept, Time::ZERO, 1500).0, us(11_000));
    assert_eq!(send(&mut kept, Time::ZERO, 1500).0, us(22_000));
    assert_eq!(kept.enqueue(us(5_000), MTU, Ecn::Ect0), Verdict::Drop(DropCause::Random));
    // Leaves at 7 ms and would be there at 8 ms, but must not overtake the second.
    assert_eq!(send(&mut kept, us(6_000), 1500).0, us(22_000));
    let mut reordered = link(&LinkConfig { schedule, reorder: true, ..base() });
    assert_eq!(send(&mut reordered, us(4_000), 1500).0, us(25_000));
    assert_eq!(send(&mut reordered, us(6_000), 1500).0, us(8_000));
}

#[test]
fn delay_and_jitter_change_apart() {
    let ms = Duration::from_millis;
    let schedule = vec![
        Change { at: us(1_500), jitter: Some(ms(4)), ..Change::default() },
        Change { at: us(101_500), delay: Some(ms(20)), ..Change::default() },
    ];
    let mut link = link(&LinkConfig { schedule, ..base() });
    // A packet a millisecond; each leaves a millisecond after it came.
    let mut took = |n: u64| send(&mut link, us(n * 1_000), 1500).0.since(us((n + 1) * 1_000));
    assert_eq!(took(0), ms(10));
    for (packets, least) in [(1..101, 10), (101..201, 20)] {
        let spans: Vec<_> = packets.map(&mut took).collect();
        assert!(spans.iter().all(|span| (ms(least)..=ms(least + 4)).contains(span)));
        assert!(spans.iter().any(|span| *span > ms(least + 3)));
    }
}

#[test]
fn losses_in_bursts_are_counted_apart() {
    let model = GilbertElliott { enter_bad: 0.0, leave_bad: 0.0, loss_good: 1.0, loss_bad: 1.0 };
    let mut link = link(&LinkConfig { loss: Loss::Bursty(model), ..base() });
    assert_eq!(link.enqueue(Time::ZERO, MTU, Ecn::NotEct), Verdict::Drop(DropCause::Bursty));
    let dropped = link.counters(Time::ZERO).dropped;
    assert_eq!((dropped.bursty.packets, dropped.random.packets), (1, 0));
}

#[test]
fn jitter_stays_in_its_range_and_reorders_only_when_asked() {
    let arrivals = |reorder| {
        let mut link = link(&LinkConfig { jitter: Duration::from_millis(5), reorder, ..base() });
        (0..1000).map(|n| (us(n * 1_100), send(&mut link, us(n * 1_100), 1500).0)).collect::<Vec<_>>()
    };
    let free = arrivals(true);
    assert!(free.iter().all(|(sent, at)| (11_000..=16_000).contains(&at.since(*sent).as_micros())));
    assert!(free.windows(2).any(|pair| pair[1].1 < pair[0].1));
    let kept = arrivals(false);
    assert!(kept.windows(2).all(|pair| pair[1].1 >= pair[0].1));
    // Keeping order only ever delays, and never beyond the range.
    assert!(kept.iter().zip(&free).all(|(kept, free)| kept.1 >= free.1));
    assert!(kept.iter().all(|(sent, at)| at.since(*sent).as_micros() <= 16_000));
}

#[test]
fn the_ecn_threshold_marks_what_finds_more_than_it_in_the_queue() {
    let mut link = link(&LinkConfig { ecn_threshold: Some(QueueLimit::Packets(2)), ..base() });
    let seen: Vec<_> = (0..4).map(|_| send(&mut link, Time::ZERO, 1500).3).collect();
    assert_eq!(seen, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ce]);
    // Not capable: neither marked nor dropped. Marked already: not counted again.
    assert!(matches!(link.enqueue(Time::ZERO, MTU, Ecn::NotEct), Verdict::Deliver { ecn: Ecn::NotEct, .. }));
    assert!(matches!(link.enqueue(Time::ZERO, MTU, Ecn::Ce), Verdict::Deliver { ecn: Ecn::Ce, .. }));
    assert_eq!(link.counters(Time::ZERO).marked, 1);
}

#[test]
fn red_drops_early_or_marks_instead() {
    let red = Red {
        min: QueueLimit::Packets(2),
        max: QueueLimit::Packets(6),
        max_probability: 1.0,
        weight: 1.0,
        gentle: false,
        ecn: true,
    };
    let run = |red, ecn| {
        let mut link = link(&LinkConfig { red: Some(red), ..base() });
        for _ in 0..200 {
            link.enqueue(Time::ZERO, MTU, ecn);
        }
        link.counters(Time::ZERO)
    };
    let (dropped, marked) = (run(red, Ecn::NotEct), run(red, Ecn::Ect1));
    assert_eq!(run(Red { ecn: false, ..red }, Ecn::Ect1), dropped);
    assert_eq!((dropped.marked, dropped.dropped.queue_full.packets), (0, 0));
    // Early drops keep the queue at six packets at most; marks do not, and the seventh meets the hard edge.
    assert!(dropped.backlog.packets <= 6 && dropped.dropped.red.packets >= 194);
    assert!(marked.marked >= 1 && marked.backlog.packets == 6);
}

#[test]
fn red_counts_idle_time_once_whatever_is_dropped_in_it() {
    // 1500 bytes take 1 ms at 12 Mbit/s, and by a trace of one opportunity a millisecond.
    let red = Red {
        min: QueueLimit::Packets(1),
        max: QueueLimit::Packets(2),
        max_probability: 1e-12,
        weight: 0.5,
        gentle: false,
        ecn: false,
    };
    for capacity in [base().capacity, Capacity::Trace("1".parse().unwrap())] {
        let mut link = link(&LinkConfig { capacity, red: Some(red), ..base() });
        let mut arrives = |at| link.enqueue(us(at), MTU, Ecn::NotEct);
        // Three get in; the others find three, and the average rises to three.
        let dropped = (0..40).filter(|_| arrives(0) == Verdict::Drop(DropCause::Red)).count();
        assert_eq!(dropped, 37);
        // Empty from 3 ms on. 3 * 0.5^0.2 = 2.6 and 3 * 0.5^0.5 = 2.1 are above two; 3 * 0.5^(0.2 + 0.5) = 1.8 is not.
        assert_eq!(arrives(3200), Verdict::Drop(DropCause::Red));
        assert_eq!(arrives(3500), Verdict::Drop(DropCause::Red));
        // 3 * 0.5^0.7 = 1.8
        assert!(matches!(arrives(3700), Verdict::Deliver { .. }));
    }
}

fn trace(text: &str) -> Link {
    link(&LinkConfig { capacity: Capacity::Trace(text.parse().unwrap()), delay: Duration::ZERO, ..base() })
}

#[test]
fn a_trace_delivers_at_its_opportunities_and_loops() {
    // Opportunities at 2, 5, 5 ms, and again at 7, 10, 10, 12, ... (the period is 5 ms).
    let mut link = trace("2\n5\n5\n");
    let ms = Time::from_millis;
    // 1000 B use two thirds of the first; the next 1000 B take the other third, and a third of the second.
    assert_eq!(departs(&mut link, Time::ZERO, 1000), ms(2));
    assert_eq!(departs(&mut link, Time::ZERO, 1000), ms(5));
    // 2500 - 500 B are left at 5 ms: 2500 B take all 2500 left of the 3000 at 5 ms.
    assert_eq!(departs(&mut link, us(5_000), 2500), ms(5));
    assert_eq!(departs(&mut link, us(5_000), 1), ms(7));
    // What was left at 7 ms is wasted on a packet that comes at 7.1 ms.
    assert_eq!(departs(&mut link, us(7_100), 1500), ms(10));
    // A whole number of periods later, to the very moment of the last opportunity.
    assert_eq!(departs(&mut link, ms(50), 1500), ms(50));
    assert_eq!(departs(&mut link, ms(50), 1500), ms(50));
    assert_eq!(departs(&mut link, ms(50), 1500), ms(52));
    // 13,500 B are three whole periods: 57, 60, 60, 62, 65, 65, 67, 70, 70 after the 3000 B at 55.
    assert_eq!(departs(&mut link, ms(53), 3000), ms(55));
    assert_eq!(departs(&mut link, ms(53), 13_500), ms(70));
}

#[test]
fn a_packet_of_a_whole_period_takes_the_opportunity_at_hand() {
    let mut link = trace("1\n");
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(1_000));
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(2_000));
    assert_eq!(departs(&mut link, us(10_500), 4500), us(13_000));
}

#[test]
fn an_opportunity_at_zero_serves_a_packet_at_zero() {
    let mut link = trace("0\n3\n");
    assert_eq!(departs(&mut link, Time::ZERO, 1500), Time::ZERO);
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(3_000));
    // The next repetition begins at 3 ms with an opportunity of its own.
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(3_000));
    assert_eq!(departs(&mut link, Time::ZERO, 1500), us(6_000));
}

#[test]
fn a_clock_that_goes_back_is_taken_to_stand_still() {
    let mut link = link(&base());
    departs(&mut link, us(5_000), 1500);
    assert_eq!(departs(&mut link, us(1_000), 1500), us(7_000));
    assert_eq!(link.backlog(Time::ZERO).packets, 2);
}

#[test]
fn extreme_times_and_sizes_do_not_panic() {
    let mut slow = link(&LinkConfig::new(Rate::from_bps(8.0), Duration::from_secs(3600), QueueLimit::Packets(1000)));
    for _ in 0..100 {
        slow.enqueue(Time::MAX, Bytes::MAX, Ecn::Ce);
    }
    assert_eq!(slow.backlog(Time::ZERO).packets, 0, "at the end of time everything has left");
    // A packet of no bytes counts one: 8 bits at 12 Mbit/s take 667 ns.
    assert_eq!(departs(&mut link(&base()), Time::ZERO, 0), Time::from_nanos(667));
}

#[test]
fn streams_of_randomness_do_not_disturb_each_other() {
    let losses = |config: LinkConfig| {
        let mut link = link(&config);
        (0..2000)
            .map(|n| link.enqueue(us(n * 1_500), MTU, Ecn::NotEct) == Verdict::Drop(DropCause::Random))
            .collect::<Vec<_>>()
    };
    let lossy = LinkConfig { loss: Loss::Random(0.1), ..base() };
    assert_eq!(losses(lossy.clone()), losses(LinkConfig { jitter: Duration::from_millis(9), ..lossy.clone() }));
    let other = |seed, name| {
        let mut link = Link::new(&lossy, seed, name).unwrap();
        (0..200).map(|n| link.enqueue(us(n * 1_500), MTU, Ecn::NotEct)).collect::<Vec<_>>()
    };
    assert_eq!(other(1, "a"), other(1, "a"));
    assert_ne!(other(1, "a"), other(1, "b"));
    assert_ne!(other(1, "a"), other(2, "a"));
}

#[test]
fn impossible_configurations_are_refused() {
    use ConfigError as E;
    let refused = |config: LinkConfig| Link::new(&config, 0, "x").map(|_| ()).unwrap_err();
    let with_rate = |rate| LinkConfig { capacity: Capacity::Rate(rate), ..base() };
    assert_eq!(refused(with_rate(Rate::ZERO)), E::RateZero);
    assert_eq!(refused(with_rate(Rate::from_bps(f64::NAN))), E::RateZero);
    assert!(matches!(refused(with_rate(Rate::from_bps(7.9))), E::RateOutOfRange(_)));
    assert!(matches!(refused(with_rate(Rate::from_bps(f64::INFINITY))), E::RateOutOfRange(_)));
    assert_eq!([MIN_RATE_BPS, MAX_RATE_BPS].map(|bps| with_rate(Rate::from_bps(bps)).validate()), [Ok(()), Ok(())]);
    for loss in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            refused(LinkConfig { loss: Loss::Random(loss), ..base() }),
            E::Probability { field: "loss", .. }
        ));
    }
    for (mean, burst) in [(1.0, 5.0), (0.1, 0.0), (0.9, 1.0), (f64::NAN, 2.0)] {
        let loss = Loss::Bursty(GilbertElliott::simple(mean, burst));
        assert!(matches!(refused(LinkConfig { loss, ..base() }), E::Probability { .. }), "{mean} {burst}");
    }
    assert!(matches!(refused(LinkConfig { delay: Duration::MAX, ..base() }), E::DelayTooLong { field: "delay", .. }));
    assert!(matches!(refused(LinkConfig { jitter: Duration::MAX, ..base() }), E::DelayTooLong { field: "jitter", .. }));
    assert_eq!(refused(LinkConfig { queue: QueueLimit::Packets(0), ..base() }), E::QueueZero);
    assert!(matches!(refused(LinkConfig { queue: QueueLimit::Bytes(Bytes::MAX), ..base() }), E::QueueTooLarge { .. }));
    for (queue, written) in [
        (QueueLimit::Packets(1 << 21), "is 2097152packets:"),
        (QueueLimit::Wait(Duration::from_secs(7200)), "is 7200s:"),
        (QueueLimit::Bytes(Bytes::new(2 << 30)), "is 2GiB:"),
    ] {
        let said = refused(LinkConfig { queue, ..base() }).to_string();
        assert!(said.contains(written), "{said}");
    }
    let red = Red {
        min: QueueLimit::Packets(5),
        max: QueueLimit::Packets(15),
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        ecn: false,
    };
    for bad in [
        Red { min: QueueLimit::Bytes(Bytes::new(5)), ..red },
        Red { min: red.max, ..red },
        Red { max: QueueLimit::Packets(MAX_QUEUE_PACKETS + 1), ..red },
        Red { max_probability: 0.0, ..red },
        Red { weight: f64::NAN, ..red },
        Red { weight: 1.5, ..red },
    ] {
        assert!(matches!(
            refused(LinkConfig { red: Some(bad), ..base() }),
            E::RedThresholds { .. } | E::Probability { .. } | E::QueueTooLarge { field: "red.max", .. }
        ));
    }
    let one = Red { min: QueueLimit::Packets(1), max: QueueLimit::Packets(1), ..red };
    let said = refused(LinkConfig { red: Some(one), ..base() }).to_string();
    assert_eq!(said, "RED's min 1packet must be below its max 1packet, both in one unit");
    let ecn_threshold = Some(QueueLimit::Bytes(MAX_QUEUE_BYTES + Bytes::new(1)));
    assert!(matches!(refused(LinkConfig { ecn_threshold, ..base() }), E::QueueTooLarge { field: "ecn_threshold", .. }));
    let loss = Loss::Bursty(GilbertElliott { enter_bad: 1.5, ..GilbertElliott::simple(0.1, 2.0) });
    assert!(matches!(refused(LinkConfig { loss, ..base() }), E::Probability { field: "enter_bad", .. }));
    let schedule = |schedule| refused(LinkConfig { schedule, ..base() });
    assert_eq!(schedule(vec![Change::default(); MAX_CHANGES + 1]), E::ScheduleTooLong { changes: MAX_CHANGES + 1 });
    let long = Some(Duration::MAX);
    for change in [Change { delay: long, ..Change::default() }, Change { jitter: long, ..Change::default() }] {
        assert!(matches!(schedule(vec![change]), E::InSchedule { index: 0, .. }));
    }
    assert_eq!(schedule(vec![rate_at(us(5), 1.0), rate_at(us(5), 2.0)]), E::ScheduleOrder { index: 1 });
    assert!(matches!(schedule(vec![rate_at(us(5), 1e-9)]), E::InSchedule { index: 0, .. }));
    let capacity = Capacity::Trace("1".parse().unwrap());
    let over = LinkConfig { capacity, schedule: vec![rate_at(us(5), 1.0)], ..base() };
    assert_eq!(refused(over), E::RateOverTrace { index: 0 });
    let message = schedule(vec![Change { at: us(1), loss: Some(Loss::Random(2.0)), ..Change::default() }]).to_string();
    assert_eq!(message, "change 0 of the schedule (from 0): loss is 2: it must be in 0 to 1");
}

#[test]
fn bounds_of_a_schedule_are_known() {
    let schedule =
        vec![rate_at(us(1), 40.0), Change { at: us(2), delay: Some(Duration::from_millis(70)), ..Change::default() }];
    let config = LinkConfig { schedule, jitter: Duration::from_millis(5), ..base() };
    assert!((config.peak_rate().as_mbps() - 40.0).abs() < 1e-9);
    assert_eq!(config.longest_delay(), Duration::from_millis(75));
    let shaky = Change { at: us(3), jitter: Some(Duration::from_millis(30)), ..Change::default() };
    assert_eq!(LinkConfig { schedule: vec![shaky], ..base() }.longest_delay(), Duration::from_millis(40));
    // 12 Mbit/s before the change.
    let slower = LinkConfig { schedule: vec![rate_at(us(1), 6.0)], ..base() };
    assert_eq!(slower.peak_rate(), base().peak_rate());
    let nearer = Change { at: us(3), delay: Some(Duration::from_millis(1)), ..Change::default() };
    let farther = Change { at: us(4), delay: Some(Duration::from_millis(20)), ..Change::default() };
    let mut link = link(&LinkConfig { schedule: vec![nearer, farther], ..base() });
    assert_eq!(link.least_delay(), Duration::from_millis(1));
    send(&mut link, us(5), 1500);
    assert_eq!(link.least_delay(), Duration::from_millis(20));
    // A change at time zero: the rate that stands before it is never in force.
    let schedule = vec![rate_at(Time::ZERO, 0.5), rate_at(us(1), 0.75)];
    assert!((LinkConfig { schedule, ..base() }.peak_rate().as_mbps() - 0.75).abs() < 1e-9);
    let schedule = vec![Change { at: Time::ZERO, delay: Some(Duration::ZERO), ..Change::default() }];
    assert_eq!(LinkConfig { schedule, ..base() }.peak_rate(), base().peak_rate());
}

#[test]
fn a_queue_by_the_wait_follows_the_rate() {
    // 12 Mbit/s: 1500 B take 1 ms. From one second on a tenth of that.
    let mut config =
        LinkConfig::new(Rate::from_mbps(12.0), Duration::ZERO, QueueLimit::Wait(Duration::from_millis(20)));
    config.schedule =
        vec![Change { at: Time::from_millis(1_000), rate: Some(Rate::from_mbps(1.2)), ..Change::default() }];
    let mut link = Link::new(&config, 1, "wait").unwrap();
    let mut burst = |at: u64| {
        (0..100)
            .filter(|_| {
                matches!(link.enqueue(Time::from_millis(at), Bytes::new(1500), Ecn::NotEct), Verdict::Deliver { .. })
            })
            .count()
    };
    // The one in transmission, and those that wait for 1 to 20 ms behind others.
    assert_eq!((burst(0), burst(1_000)), (21, 3));
}
