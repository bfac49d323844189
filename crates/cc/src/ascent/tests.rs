use manypath_core::{PacketNumber, SubflowId};
use rand_core::SeedableRng;

use super::*;
use crate::event::Acked;
use crate::monitor;

pub(super) fn config() -> Config {
    Config {
        // Tests answer whole probing rounds at once, later than a session would.
        monitor: monitor::Config { deadline: 20.0, ..monitor::Config::default() },
        utility: Utility { a: 0.9, b: 11.35, g: 1.0, scale: 1.0 },
        omega: 0.05,
        low: Low::Least,
        theta: 1.0,
        min_step: 0.5,
        bound: 0.05,
        bound_step: 0.05,
        steps: Steps::Release,
        swing: 2,
        initial_rate: 4.0,
        min_rate: 0.2,
        initial_rtt: Duration::from_millis(100),
        slow_start: SlowStart::Paper,
        leave: Leave::Better,
        publish: Publish::Interval,
        timeout: OnTimeout::Halve,
        brake: Brake::Held,
        queue: Queue::Ignored,
        bursts: Bursts::Ignored,
    }
}

pub(super) fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-9, "{left} is not {right}");
}

fn sample(rate: f64, loss: f64, slope: f64) -> Sample {
    Sample { rate, loss, slope }
}

/// An ascent driven one interval at a time: every interval gets `packets` packets of 1000 bytes at its own rate.
struct Driver {
    ascent: Ascent,
    view: SubflowView,
    now: Time,
    next: u64,
    /// How much the round trip grows within an interval, s/s.
    slope: f64,
    /// What it has at its start over 100 ms, seconds.
    queue: f64,
    /// What the other subflows send, Mbit/s.
    others: Others,
}

impl Driver {
    fn new(config: Config) -> Self {
        let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
        let mut view = SubflowView::new(SubflowId(0), Bytes::new(1000));
        view.srtt = Some(Duration::from_millis(100));
        Self {
            ascent: Ascent::new(config, Xoshiro256PlusPlus::seed_from_u64(1), init),
            view,
            now: Time::ZERO,
            next: 0,
            slope: 0.0,
            queue: 0.0,
            others: Others::default(),
        }
    }

    fn send(&mut self, app_limited: bool) {
        let event = Event::Sent { packet: PacketNumber(self.next), bytes: Bytes::new(1000), app_limited };
        self.next += 1;
        self.ascent.on_event(self.now, &event, &self.view, self.others);
    }

    /// Sends at the ascent's rate until the open interval has ended; returns its packets and its rate.
    fn interval(&mut self, share: f64, app_limited: bool) -> (u64, u64, f64) {
        let (first, rate) = (self.next, self.ascent.rate);
        self.send(app_limited);
        let begin = self.now;
        while self.now.since(begin) < Duration::from_millis(150) {
            self.now += Duration::from_secs_f64(8e-3 / (self.ascent.rate * share));
            if self.now.since(begin) < Duration::from_millis(150) {
                self.send(app_limited);
            }
        }
        self.now = begin + Duration::from_millis(150);
        let last = self.next;
        self.ascent.on_timer(self.now, self.others);
        (first, last, rate)
    }

    /// Sends at the ascent's rate for a third of the open interval, and no more until it has ended.
    fn burst(&mut self) -> (u64, u64, f64) {
        let (first, rate, begin) = (self.next, self.ascent.rate, self.now);
        while self.now.since(begin) < Duration::from_millis(50) {
            self.send(false);
            self.now += Duration::from_secs_f64(8e-3 / rate);
        }
        self.send(true);
        self.now = begin + Duration::from_millis(150);
        self.ascent.on_timer(self.now, self.others);
        (first, self.next, rate)
    }

    /// Acknowledges all packets of an interval but the share lost, which are its first.
    fn answer(&mut self, (first, last, rate): (u64, u64, f64), loss: f64) {
        let lost = (loss * (last - first) as f64).round();
        self.answer_but((first, last, rate), |packet| ((packet - first) as f64) < lost);
    }

    /// Acknowledges all packets of an interval but the lost ones.
    fn answer_but(&mut self, (first, last, _): (u64, u64, f64), is_lost: impl Fn(u64) -> bool) {
        self.now += Duration::from_millis(100);
        for packet in first..last {
            let packet_number = PacketNumber(packet);
            let event = if is_lost(packet) {
                Event::Lost { packet: packet_number, bytes: Bytes::new(1000), sent_at: Time::ZERO }
            } else {
                Event::Acked(Acked {
                    packet: packet_number,
                    bytes: Bytes::new(1000),
                    sent_at: Time::from_millis(packet),
                    rtt: Duration::from_secs_f64(0.1 + self.queue + self.slope * 1e-3 * (packet - first) as f64),
                    delivery_rate: Rate::ZERO,
                    delivered_at_send: Bytes::ZERO,
                    in_recovery: false,
                    app_limited: false,
                })
            };
            self.ascent.on_event(self.now, &event, &self.view, self.others);
        }
    }

    fn time_out(&mut self) {
        self.ascent.on_event(self.now, &Event::Timeout { repeated: false }, &self.view, self.others);
    }

    fn round(&mut self, loss: f64) -> f64 {
        let interval = self.interval(1.0, false);
        self.answer(interval, loss);
        interval.2
    }
}

#[test]
fn a_slow_subflow_has_no_rate_so_far_below_its_own() {
    let probes = |low, base| {
        let mut driver = Driver::new(Config { low, ..config() });
        driver.ascent.base = base;
        driver.ascent.probe(Time::ZERO, Others { rate: 100.0, count: 1 });
        let Phase::Probing { low, high, .. } = driver.ascent.phase else { panic!("it probes") };
        (low, high)
    };
    let close = |(low, high): (f64, f64), expected: (f64, f64)| {
        close(low, expected.0);
        close(high, expected.1);
    };
    // The distance is 5.05 Mbit/s of 101, 5.5 of 110, 6 of 120 and 6.5 of 130.
    close(probes(Low::Least, 1.0), (0.2, 6.05));
    close(probes(Low::Half, 1.0), (0.5, 6.05));
    close(probes(Low::Half, 0.3), (0.2, 5.315));
    close(probes(Low::Half, 10.0), (5.0, 15.5));
    close(probes(Low::Half, 20.0), (14.0, 26.0));
    close(probes(Low::Near, 1.0), (0.75, 1.25));
    close(probes(Low::Near, 0.24), (0.2, 0.3));
    close(probes(Low::Near, 20.0), (15.0, 25.0));
    close(probes(Low::Near, 30.0), (23.5, 36.5));
}

#[test]
fn equation_2() {
    let utility = config().utility;
    // T = 60 + 40 = 100: 100^0.9 = 63.0957344480; 11.35 * 100 * 0.02 = 22.7; 1 * 100 * 0.05 = 5.
    close(utility.of(&sample(60.0, 0.02, 0.05), 40.0), 63.095_734_448_019_3 - 22.7 - 5.0);
    // T = 12,500,000 B/s: loss-free reward 12.5e6^0.9.
    let bytes = Utility { scale: 125_000.0, ..utility };
    close(bytes.of(&sample(100.0, 0.0, 0.0), 0.0), libm::pow(12.5e6, 0.9));
}

#[test]
fn the_loss_a_connection_tolerates() {
    // d/dT (T^0.9 - 11.35 T p) = 0 at p = 0.9 T^-0.1 / 11.35: 5.00% at 100 Mbit/s.
    let utility = config().utility;
    let gradient = |loss| utility.gradient(&sample(99.999, loss, 0.0), &sample(100.001, loss, 0.0), 0.0);
    assert!(gradient(0.0500) > 0.0 && gradient(0.0501) < 0.0);
    // 1.55% when rates are in bytes per second.
    let bytes = Utility { scale: 125_000.0, ..utility };
    let gradient = |loss| bytes.gradient(&sample(99.999, loss, 0.0), &sample(100.001, loss, 0.0), 0.0);
    assert!(gradient(0.0154) > 0.0 && gradient(0.0156) < 0.0);
}

/// The slope of the utility, without delay, to the right or left of `own` on a drop-tail link of 100 Mbit/s that others fill to
/// `load`, of a connection that has `elsewhere` on other paths.
fn on_a_link(own: f64, elsewhere: f64, load: f64, step: f64) -> f64 {
    let at = |rate: f64| sample(rate, (1.0 - 100.0 / (load - own + rate)).max(0.0), 0.0);
    config().utility.gradient(&at(own), &at(own + step), elsewhere)
}

/// MPCC theorem 5.1 asks for a smooth utility. On two links of 100 Mbit/s, 100 + 50 against 50 is a kink.
#[test]
fn slopes_at_a_full_link() {
    for (elsewhere, left, right) in [(100.0, 0.545, -16.5), (0.0, 0.609, -5.07)] {
        let (found_left, found_right) =
            (on_a_link(50.0, elsewhere, 100.0, -1e-5), on_a_link(50.0, elsewhere, 100.0, 1e-5));
        assert!(
            (found_left - left).abs() < 0.0005 && (found_right / right - 1.0).abs() < 0.002,
            "{found_left} {found_right}"
        );
    }
    // It pays to exceed the capacity only below 6.57 Mbit/s.
    assert!(on_a_link(6.56, 0.0, 100.0, 1e-5) > 0.0 && on_a_link(6.58, 0.0, 100.0, 1e-5) < 0.0);
}

/// Where `n` equal senders rest: where the utility's slope is zero.
#[test]
fn many_senders_exceed_a_link_a_little() {
    let slope = |n: f64, load: f64| on_a_link(load / n, 0.0, load, 1e-5);
    for n in [2.0, 5.0, 10.0] {
        assert!(slope(n, 100.0) < 0.0, "{n} senders rest at the capacity");
    }
    for (n, load) in [(20.0, 101.9), (50.0, 105.8), (100.0, 107.5)] {
        assert!(slope(n, load - 0.05) > 0.0 && slope(n, load + 0.05) < 0.0, "{n} senders do not rest at {load}");
    }
    // Appendix C's ceiling, 1.107 times the capacity, where 9.66% are lost: nobody goes there who has 1 Mbit/s.
    let ceiling = 110.7;
    assert!((1.0 - 100.0 / ceiling - 0.0966_f64).abs() < 1e-4);
    for rate in [1.0, 2.0, 10.0, 50.0, ceiling] {
        assert!(on_a_link(rate, 0.0, ceiling, 1e-5) < 0.0, "{rate}");
    }
}

#[test]
fn a_gradient_between_equal_rates_is_zero() {
    close(config().utility.gradient(&sample(5.0, 0.0, 0.0), &sample(5.0, 0.1, 0.0), 0.0), 0.0);
}

#[test]
fn slow_start_doubles_and_goes_back() {
    let mut driver = Driver::new(config());
    close(driver.round(0.0), 4.0);
    close(driver.round(0.0), 8.0);
    // At 16: 16^0.9 = 12.13, 11.35*16*0.2 = 36: utility falls from 8^0.9 = 6.50.
    close(driver.round(0.2), 16.0);
    close(driver.ascent.base, 8.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { .. }));
    // omega = 5% of 8.
    assert!((driver.ascent.rate - 7.6).abs() < 1e-9 || (driver.ascent.rate - 8.4).abs() < 1e-9);
}

/// A subflow comes back at half of the rate it had, and its path has a fraction of that.
#[test]
fn an_overload_in_the_first_interval_of_slow_start_does_not_double() {
    // 75 packets at 4 Mbit/s.
    for (loss, base) in [(0.95, 2.0), (0.2, 8.0)] {
        let mut driver = Driver::new(config());
        close(driver.round(loss), 4.0);
        close(driver.ascent.base, base);
    }
}

/// From 16 Mbit/s, probed at 15.2 and 16.8.
#[test]
fn an_overload_falls_to_what_arrived_or_to_half_at_once() {
    let after = |brake, loss| {
        let mut driver = Driver::new(Config { brake, ..config() });
        for loss in [0.0, 0.0, 0.0, 0.5] {
            driver.round(loss);
        }
        close(driver.ascent.base, 16.0);
        let rate = driver.round(loss);
        (driver.ascent.base, rate)
    };
    close(after(Brake::Held, 0.9).0, 16.0);
    let (base, rate) = after(Brake::Any, 0.9);
    assert!((base / (0.1 * rate) - 1.0).abs() < 0.05, "{base} of {rate}");
    close(after(Brake::Any, 0.4).0, 8.0);
    close(after(Brake::Any, 0.2).0, 16.0);
}

/// A driver that moves, and the rate that it tries.
fn moving(brake: Brake) -> (Driver, f64) {
    let mut driver = Driver::new(Config { brake, ..config() });
    driver.ascent.running = true;
    driver.ascent.step(Time::ZERO, 8.0, sample(4.0, 0.0, 0.0), driver.others);
    let rate = driver.ascent.rate;
    (driver, rate)
}

#[test]
fn a_moment_without_delivery_is_no_overload() {
    for loss in [0.5, 1.0] {
        let (mut braking, rate) = moving(Brake::Any);
        braking.round(loss);
        assert!(braking.ascent.base < rate / 1.9 && matches!(braking.ascent.phase, Phase::Probing { .. }));
        let (mut driver, mut rate) = moving(Brake::Lasting);
        // After what was well another moment is one, too.
        for _ in 0..2 {
            driver.round(loss);
            close(driver.ascent.base, rate);
            // The interval is repeated, and then it is a test.
            assert!(matches!(driver.ascent.phase, Phase::Moving { .. }));
            driver.round(0.0);
            assert!(driver.ascent.base > rate, "{loss}");
            rate = driver.ascent.base;
        }
    }
    let mut probing = probing();
    probing.ascent.config.brake = Brake::Lasting;
    let base = probing.ascent.base;
    let first = probing.interval(1.0, false);
    let second = probing.interval(1.0, false);
    probing.answer(first, 1.0);
    probing.answer(second, 0.4);
    close(probing.ascent.base, base);
    let Phase::Probing { begun, samples, .. } = &probing.ascent.phase else { panic!("{:?}", probing.ascent.phase) };
    assert_eq!((*begun, *samples), ([false, false, true, false], [None; PROBES]));
}

#[test]
fn an_overload_that_lasts_or_loses_all_along_is_one() {
    let braked = |driver: &Driver, rate: f64| driver.ascent.base < rate / 1.9;
    let (mut lasting, rate) = moving(Brake::Lasting);
    lasting.round(0.5);
    lasting.round(0.5);
    assert!(braked(&lasting, rate), "{}", lasting.ascent.base);
    // Half of a gap, and one in four of the rest.
    let (mut beside, rate) = moving(Brake::Lasting);
    let interval = beside.interval(1.0, false);
    let middle = u64::midpoint(interval.0, interval.1);
    beside.answer_but(interval, |packet| packet < middle || packet % 4 == 0);
    assert!(braked(&beside, rate), "{}", beside.ascent.base);
    // A slow start has not tested its rate.
    let mut starting = Driver::new(Config { brake: Brake::Lasting, ..config() });
    starting.round(0.5);
    assert!(braked(&starting, 4.0), "{}", starting.ascent.base);
}

#[test]
fn slow_starts_differ_in_what_they_take_for_chance() {
    let after_rise = |slow_start, loss, slope| {
        let mut driver = Driver::new(Config { slow_start, ..config() });
        driver.round(0.0);
        driver.round(0.0);
        driver.slope = slope;
        close(driver.round(loss), 16.0);
        (driver.ascent.base, matches!(driver.ascent.phase, Phase::SlowStart { .. }))
    };
    let after = |slow_start, loss| after_rise(slow_start, loss, 0.0);
    for tolerant in [SlowStart::Release, SlowStart::Tolerant] {
        assert_eq!(after(tolerant, 0.1), (32.0, true), "{tolerant:?}: below 15% goes on");
        assert_eq!(after(tolerant, 0.2), (16.0, true), "{tolerant:?}: 20% is tried again");
        assert_eq!(after_rise(tolerant, 0.2, 0.2), (16.0, true), "{tolerant:?}: round trips vary");
    }
    assert_eq!(after_rise(SlowStart::Release, 0.2, 0.5), (16.0, true));
    assert_eq!(after_rise(SlowStart::Tolerant, 0.2, 0.5), (8.0, false), "the queue grows");
    assert_eq!(after(SlowStart::Release, 0.4), (16.0, true));
    assert_eq!(after(SlowStart::Tolerant, 0.4), (8.0, false), "an overload is no chance");
    assert_eq!(after(SlowStart::Paper, 0.1), (8.0, false));
}

#[test]
fn a_queue_that_doubling_fills_ends_slow_start_at_what_arrives() {
    let after = |queue, slope, share| {
        let mut driver = Driver::new(Config { queue, slow_start: SlowStart::Tolerant, ..config() });
        driver.round(0.0);
        driver.round(0.0);
        driver.slope = slope;
        let interval = driver.interval(share, false);
        close(interval.2, 16.0);
        driver.answer(interval, 0.2);
        (driver.ascent.base, matches!(driver.ascent.phase, Phase::SlowStart { .. }))
    };
    // By their acknowledgements the test's packets left a millisecond apart: they arrive at 8 Mbit/s, over 1.5.
    let (base, goes_on) = after(Queue::Heeded, 0.5, 1.0);
    assert!((base / (8.0 / 1.5) - 1.0).abs() < 0.01 && !goes_on, "{base}");
    assert_eq!(after(Queue::Ignored, 0.5, 1.0), (8.0, false));
    // A late sender sent less than the rate. To repeat it would overfill the queue.
    let (base, goes_on) = after(Queue::Heeded, 0.5, 0.85);
    assert!((base / (8.0 / 1.5) - 1.0).abs() < 0.01 && !goes_on, "{base}");
    assert_eq!(after(Queue::Ignored, 0.5, 0.85), (16.0, true));
    assert_eq!(after(Queue::Heeded, 0.0, 0.85), (16.0, true), "no queue");
}

#[test]
fn slow_start_goes_on_once_if_what_ended_it_has_passed() {
    /// In slow start at 8 Mbit/s; round trips lengthen in the interval that is sent.
    fn doubted(slow_start: SlowStart, loss: f64) -> Driver {
        let mut driver = Driver::new(Config { slow_start, ..config() });
        driver.round(0.0);
        ends(&mut driver, loss);
        driver
    }
    fn ends(driver: &mut Driver, loss: f64) {
        driver.slope = 0.5;
        driver.round(loss);
        driver.slope = 0.0;
        assert!(matches!(driver.ascent.phase, Phase::Probing { .. }), "{:?}", driver.ascent.phase);
    }
    let resumes = |driver: &mut Driver, queue, loss| {
        driver.queue = queue;
        let probed = driver.round(loss);
        let resumed = matches!(driver.ascent.phase, Phase::SlowStart(_));
        if resumed {
            close(driver.ascent.rate, 2.0 * probed);
        }
        resumed
    };
    let mut driver = doubted(SlowStart::Tolerant, 0.0);
    assert!(resumes(&mut driver, 0.012, 0.1));
    ends(&mut driver, 0.0);
    assert!(!resumes(&mut driver, 0.0, 0.0), "once");

    let mut driver = doubted(SlowStart::Tolerant, 0.0);
    assert!(!resumes(&mut driver, 0.013, 0.0), "the queue is still there");
    assert!(!resumes(&mut driver, 0.0, 0.0), "only the first probe tells");
    assert!(!resumes(&mut doubted(SlowStart::Tolerant, 0.0), 0.0, 0.2), "it loses");
    assert!(!resumes(&mut doubted(SlowStart::Tolerant, 0.2), 0.0, 0.0), "it lost");
    assert!(!resumes(&mut doubted(SlowStart::Paper, 0.0), 0.0, 0.0));

    let mut driver = doubted(SlowStart::Tolerant, 0.0);
    let held_back = driver.interval(0.5, false);
    driver.answer(held_back, 0.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { .. }), "it tested no rate");
}

#[test]
fn while_round_trips_lengthen_the_rate_before_is_sent_until_results_are_in() {
    let waiting = |queue, slope| {
        let mut driver = Driver::new(Config { queue, slow_start: SlowStart::Tolerant, ..config() });
        driver.round(0.0);
        driver.round(0.0);
        driver.slope = slope;
        let (first, last, rate) = driver.interval(1.0, false);
        close(rate, 16.0);
        // Half of the interval is heard.
        driver.answer((first, first + (last - first) / 2, rate), 0.0);
        driver.ascent.rate
    };
    close(waiting(Queue::Ignored, 0.5), 16.0);
    close(waiting(Queue::Heeded, 0.0), 16.0);
    close(waiting(Queue::Heeded, 0.5), 8.0);
}

#[test]
fn what_floods_a_path_is_sent_no_longer() {
    // What a path carried before it was away, or a new subflow's first rate.
    for (slope, rate) in [(3.9, 4.0), (5.0, 4.0 / 6.0), (100.0, 0.2)] {
        for queue in [Queue::Ignored, Queue::Heeded] {
            let mut driver = Driver::new(Config { queue, ..config() });
            (0..5).for_each(|_| driver.send(false));
            driver.slope = slope;
            driver.answer((0, 5, 4.0), 0.0);
            let left = if queue == Queue::Heeded { rate } else { 4.0 };
            assert!((driver.ascent.rate / left - 1.0).abs() < 1e-6, "{slope} {queue:?}: {}", driver.ascent.rate);
            close(driver.ascent.base, 4.0);
        }
    }
}

#[test]
fn an_interval_keeps_its_rate_though_round_trips_lengthen() {
    let mut driver = Driver::new(Config { queue: Queue::Heeded, slow_start: SlowStart::Tolerant, ..config() });
    driver.round(0.0);
    driver.round(0.0);
    driver.slope = 0.5;
    let first = driver.next;
    (0..50).for_each(|_| driver.send(false));
    driver.answer((first, driver.next, 16.0), 0.0);
    assert!(driver.ascent.monitor.is_open());
    close(driver.ascent.rate, 16.0);
}

#[test]
fn steps_into_a_queue_are_not_amplified() {
    let after = |queue, slope| {
        let utility = Utility { g: 0.0, ..config().utility };
        let mut driver = Driver::new(Config { queue, utility, ..config() });
        for loss in [0.0, 0.0, 0.0, 0.2] {
            driver.round(loss);
        }
        while !matches!(driver.ascent.phase, Phase::Moving { .. }) {
            driver.round(0.0);
        }
        driver.slope = slope;
        let begun = driver.ascent.base;
        for _ in 0..4 {
            driver.round(0.0);
        }
        driver.ascent.base - begun
    };
    let amplified = after(Queue::Heeded, 0.0);
    close(after(Queue::Ignored, 0.1), amplified);
    // Four of theta times the gradient 0.9 T^-0.1, about 0.68 Mbit/s each.
    let calm = after(Queue::Heeded, 0.1);
    assert!(calm > 2.0 && calm < 2.8 && amplified > 2.0 * calm, "{calm} of {amplified}");
}

#[test]
fn what_arrives_is_at_most_what_was_sent_and_known_of_twenty_packets() {
    let after = |initial_rate| {
        let config = Config { queue: Queue::Heeded, slow_start: SlowStart::Tolerant, initial_rate, ..config() };
        let mut driver = Driver::new(config);
        driver.slope = 0.5;
        let late = driver.interval(0.8, false);
        driver.answer(late, 0.0);
        (driver.ascent.base, matches!(driver.ascent.phase, Phase::SlowStart { .. }))
    };
    // By their acknowledgements packets arrive at 8 Mbit/s over 1.5. Fifteen packets are too few to say.
    assert_eq!(after(4.0), (4.0, false));
    assert_eq!(after(1.0), (1.0, true));
}

#[test]
fn an_overload_of_slow_start_falls_to_what_arrived_or_to_the_rate_before() {
    let after = |queue| {
        let mut driver = Driver::new(Config { queue, brake: Brake::Any, ..config() });
        driver.round(0.0);
        close(driver.round(0.4), 8.0);
        driver.ascent.base
    };
    close(after(Queue::Ignored), 4.0);
    // Six tenths of 8 Mbit/s.
    assert!((after(Queue::Heeded) / 4.8 - 1.0).abs() < 0.01);
}

#[test]
fn steps_down_out_of_a_queue_are_amplified() {
    let heeding = Config { queue: Queue::Heeded, ..config() };
    let mut ascent = Driver::new(heeding).ascent;
    ascent.base = 50.0;
    (0..3).for_each(|_| _ = ascent.momentum.step(&heeding, -0.6, 50.0, 100.0));
    assert_eq!(ascent.momentum.amplifier(), 4);
    ascent.on_moved(Time::ZERO, 51.0, &sample(51.0, 0.2, 0.1), sample(50.0, 0.1, 0.1), Others::default());
    assert_eq!(ascent.momentum.amplifier(), 6);
}

#[test]
fn only_the_slow_start_of_the_paper_takes_shorter_round_trips_for_growth() {
    for (slow_start, base) in [(SlowStart::Paper, 32.0), (SlowStart::Release, 16.0)] {
        let utility = Utility { g: 100.0, ..config().utility };
        let mut driver = Driver::new(Config { slow_start, utility, ..config() });
        driver.round(0.0);
        driver.round(0.0);
        driver.slope = -0.3;
        driver.round(0.2);
        close(driver.ascent.base, base);
    }
}

#[test]
fn while_results_are_on_their_way_the_base_rate_is_kept() {
    let mut driver = Driver::new(config());
    let first = driver.interval(1.0, false);
    close(driver.ascent.rate, 4.0);
    assert!(!driver.ascent.monitor.is_open());
    driver.send(false);
    driver.answer(first, 0.0);
    close(driver.ascent.rate, 8.0);
}

/// Takes a driver from slow start into probing at 8 Mbit/s.
fn probing() -> Driver {
    let mut driver = Driver::new(config());
    driver.round(0.0);
    driver.round(0.0);
    driver.round(0.2);
    driver
}

#[test]
fn two_agreeing_pairs_make_a_move() {
    let mut driver = probing();
    let intervals: Vec<_> = (0..4).map(|_| driver.interval(1.0, false)).collect();
    // Both rates twice, each pair in some order; then the base rate until the results are in.
    let mut rates: Vec<_> = intervals.iter().map(|interval| interval.2).collect();
    rates.sort_by(f64::total_cmp);
    close(rates[0] + rates[1], 15.2);
    close(rates[2] + rates[3], 16.8);
    close(intervals[0].2 + intervals[1].2, 16.0);
    close(driver.ascent.rate, 8.0);
    for interval in intervals {
        driver.answer(interval, 0.0);
    }
    // Gradient (8.4^0.9 - 7.6^0.9)/0.8 = 0.7311; bound 5% of 8 = 0.4 cuts it, but 0.5 is the smallest step.
    close(driver.ascent.base, 8.5);
    assert!(matches!(driver.ascent.phase, Phase::Moving { .. }));
    close(driver.round(0.0), 8.5);
    // Same direction: cut again, and the bound widens.
    close(driver.ascent.base, 9.0);
    close(driver.round(0.0), 9.0);
    // Amplified three times, bound 10% of 9.
    close(driver.ascent.base, 9.0 + 0.9);
    // Heavy loss turns the gradient: back to 9.
    driver.round(0.3);
    close(driver.ascent.base, 9.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { .. }));
}

#[test]
fn disagreeing_pairs_probe_again() {
    let mut driver = probing();
    let intervals: Vec<_> = (0..4).map(|_| driver.interval(1.0, false)).collect();
    for (index, interval) in intervals.into_iter().enumerate() {
        // In the first pair the higher rate loses.
        driver.answer(interval, if index < 2 && interval.2 > 8.0 { 0.5 } else { 0.0 });
    }
    close(driver.ascent.base, 8.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { begun: [true, false, false, false], .. }));
}

#[test]
fn intervals_that_the_application_limits_are_repeated() {
    let mut driver = Driver::new(config());
    for _ in 0..5 {
        let interval = driver.interval(1.0, true);
        driver.answer(interval, 0.0);
        close(driver.ascent.rate, 4.0);
    }
    driver.round(0.0);
    close(driver.ascent.rate, 8.0);
}

/// A source as fast as the path has nothing more to send after each packet.
#[test]
fn intervals_that_were_sent_at_their_rate_are_tests_where_bursts_are_heeded() {
    for (bursts, rates) in [(Bursts::Ignored, [4.0, 4.0]), (Bursts::Heeded, [8.0, 16.0])] {
        let mut driver = Driver::new(Config { bursts, ..config() });
        for rate in rates {
            let interval = driver.interval(1.0, true);
            driver.answer(interval, 0.0);
            close(driver.ascent.rate, rate);
        }
        let mut driver = probing();
        driver.ascent.config.bursts = bursts;
        let probes = [(); PROBES].map(|()| driver.interval(1.0, true));
        probes.into_iter().for_each(|probe| driver.answer(probe, 0.0));
        close(driver.ascent.base, if bursts == Bursts::Heeded { 8.5 } else { 8.0 });
    }
}

#[test]
fn what_loses_heavily_is_too_fast_even_if_held_back() {
    for (share, app_limited) in [(1.0, true), (0.5, false)] {
        let mut driver = probing();
        let held = driver.interval(share, app_limited);
        driver.answer(held, 0.29);
        close(driver.ascent.base, 8.0);
        let held = driver.interval(share, app_limited);
        driver.answer(held, 0.4);
        close(driver.ascent.base, 4.0);
        assert!(matches!(driver.ascent.phase, Phase::Probing { begun: [true, false, false, false], .. }));
    }
    let mut driver = Driver::new(config());
    driver.round(0.0);
    let held = driver.interval(1.0, true);
    driver.answer(held, 0.4);
    close(driver.ascent.base, 4.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { .. }));
}

#[test]
fn a_probe_that_the_application_limits_is_repeated_alone() {
    for limited in 0..4 {
        let mut driver = probing();
        driver.ascent.config.bursts = Bursts::Heeded;
        let probes: Vec<_> =
            (0..4).map(|index| driver.interval(if index == limited { 0.5 } else { 1.0 }, index == limited)).collect();
        for probe in &probes {
            driver.answer(*probe, 0.0);
        }
        close(driver.ascent.base, 8.0);
        let again = driver.interval(1.0, false);
        close(again.2, probes[limited].2);
        driver.answer(again, 0.0);
        // As in one go.
        close(driver.ascent.base, 8.5);
        assert!(matches!(driver.ascent.phase, Phase::Moving { .. }));
    }
}

#[test]
fn what_a_burst_loses_lowers_its_rate_to_what_arrived() {
    // At 8 Mbit/s 6.4% are bearable, and some 50 packets show it to within 10% (three standard errors).
    for (bursts, loss, falls) in
        [(Bursts::Heeded, 0.1, false), (Bursts::Heeded, 0.2, true), (Bursts::Ignored, 0.2, false)]
    {
        let mut driver = probing();
        driver.ascent.config.bursts = bursts;
        let burst = driver.burst();
        driver.answer(burst, loss);
        let packets = (burst.1 - burst.0) as f64;
        let arrived = burst.2 * (1.0 - (loss * packets).round() / packets);
        close(driver.ascent.base, if falls { arrived } else { 8.0 });
        assert!(matches!(driver.ascent.phase, Phase::Probing { .. }));
    }
    // What was sent at its rate is compared with another rate.
    let mut driver = probing();
    driver.ascent.config.bursts = Bursts::Heeded;
    driver.round(0.2);
    close(driver.ascent.base, 8.0);
}

#[test]
fn a_burst_that_ends_before_its_interval_is_a_probe() {
    let mut driver = probing();
    driver.ascent.config.bursts = Bursts::Heeded;
    let probes = [(); PROBES].map(|()| driver.burst());
    probes.into_iter().for_each(|probe| driver.answer(probe, 0.0));
    // As with whole ones.
    close(driver.ascent.base, 8.5);
    assert!(matches!(driver.ascent.phase, Phase::Moving { .. }));
    // A step is measured in full.
    let moved = driver.burst();
    driver.answer(moved, 0.0);
    close(driver.ascent.base, 8.5);
    assert!(matches!(driver.ascent.phase, Phase::Moving { .. }));
}

#[test]
fn the_rate_falls_to_what_the_path_carried_of_a_burst_that_filled_its_queue() {
    let fallen = |bursts, slope| {
        let mut driver = probing();
        driver.ascent.config.bursts = bursts;
        driver.slope = slope;
        let burst = driver.burst();
        driver.answer(burst, 0.0);
        (driver.ascent.base, burst.2)
    };
    let (base, rate) = fallen(Bursts::Heeded, 0.6);
    close(base, rate / 1.6);
    close(fallen(Bursts::Heeded, 3.0).0, 4.0);
    close(fallen(Bursts::Heeded, 0.2).0, 8.0);
    close(fallen(Bursts::Ignored, 0.6).0, 8.0);
    let in_slow_start = |slope| {
        let mut driver = Driver::new(Config { bursts: Bursts::Heeded, slow_start: SlowStart::Tolerant, ..config() });
        driver.round(0.0);
        driver.slope = slope;
        let burst = driver.burst();
        driver.answer(burst, 0.0);
        driver
    };
    let mut driver = in_slow_start(0.6);
    close(driver.ascent.base, 8.0 / 1.6);
    driver.slope = 0.0;
    let burst = driver.burst();
    driver.answer(burst, 0.0);
    assert!(matches!(driver.ascent.phase, Phase::SlowStart(_)), "it has passed: {:?}", driver.ascent.phase);
    // A queue may hold the burst.
    let driver = in_slow_start(0.4);
    close(driver.ascent.base, 8.0);
    assert!(matches!(driver.ascent.phase, Phase::SlowStart(_)));
}

#[test]
fn a_rate_the_sender_cannot_do_is_given_up() {
    let mut driver = Driver::new(config());
    driver.round(0.0);
    for _ in 0..3 {
        assert!(matches!(driver.ascent.phase, Phase::SlowStart { .. }));
        let interval = driver.interval(0.5, false);
        close(interval.2, 8.0);
        driver.answer(interval, 0.0);
    }
    close(driver.ascent.base, 4.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { .. }));
}

#[test]
fn a_timeout_halves_and_being_heard_again_starts_anew() {
    let mut driver = probing();
    driver.interval(1.0, false);
    driver.time_out();
    close(driver.ascent.rate, 4.0);
    close(driver.ascent.published(), 0.0);
    assert_eq!(driver.ascent.next_timer(), None);
    driver.ascent.on_event(driver.now, &Event::Restored, &driver.view, Others::default());
    assert!(matches!(driver.ascent.phase, Phase::SlowStart { .. }));
    close(driver.round(0.0), 4.0);
    close(driver.round(0.0), 8.0);
    let mut driver = Driver::new(Config { timeout: OnTimeout::Keep, ..config() });
    driver.interval(1.0, false);
    driver.time_out();
    close(driver.ascent.rate, 4.0);
}

#[test]
fn each_timeout_that_passes_unheard_halves_again() {
    let after = |timeout, base, silence| {
        let mut driver = Driver::new(Config { timeout, ..config() });
        driver.interval(1.0, false);
        driver.ascent.base = base;
        driver.time_out();
        driver.now += Duration::from_millis(silence);
        driver.ascent.on_event(driver.now, &Event::Restored, &driver.view, Others::default());
        close(driver.ascent.rate, driver.ascent.base);
        // Of the same silence it is told once.
        driver.ascent.on_event(driver.now, &Event::Restored, &driver.view, Others::default());
        driver.ascent.base
    };
    // A round trip of 100 ms, a timeout of 300.
    close(after(OnTimeout::Backoff, 64.0, 100), 32.0);
    close(after(OnTimeout::Backoff, 64.0, 600 + 100), 16.0);
    close(after(OnTimeout::Backoff, 64.0, 600 + 1200 + 100), 8.0);
    // The initial rate, or what was less.
    close(after(OnTimeout::Backoff, 64.0, 3_600_000), 4.0);
    close(after(OnTimeout::Backoff, 3.0, 3_600_000), 1.5);
    close(after(OnTimeout::Halve, 64.0, 3_600_000), 32.0);
    close(after(OnTimeout::Keep, 64.0, 3_600_000), 64.0);
}

#[test]
fn an_acknowledgement_ends_the_silence_after_a_timeout() {
    let mut driver = Driver::new(Config { timeout: OnTimeout::Backoff, ..config() });
    let (first, _, rate) = driver.interval(1.0, false);
    driver.ascent.base = 64.0;
    driver.time_out();
    driver.now += Duration::from_millis(600);
    driver.answer((first, first + 1, rate), 0.0);
    close(driver.ascent.base, 16.0);
    driver.now += Duration::from_secs(60);
    driver.answer((first + 1, first + 2, rate), 0.0);
    close(driver.ascent.base, 16.0);
}

#[test]
fn slow_start_does_not_go_back_to_a_rate_above_what_timeouts_left() {
    let mut driver = Driver::new(config());
    driver.round(0.0);
    driver.round(0.0);
    for base in [8.0, 4.0, 2.0] {
        let (first, _, rate) = driver.interval(1.0, false);
        driver.time_out();
        close(driver.ascent.base, base);
        driver.answer((first, first + 1, rate), 0.0);
    }
    close(driver.round(0.0), 2.0);
    close(driver.ascent.base, 4.0);
    assert!(matches!(driver.ascent.phase, Phase::SlowStart { .. }));
}

#[test]
fn until_a_timed_out_path_is_heard_nothing_is_measured() {
    let mut driver = probing();
    let (first, _, rate) = driver.interval(1.0, false);
    driver.time_out();
    driver.send(false);
    assert!(!driver.ascent.is_running() && driver.ascent.next_timer().is_none());
    driver.answer((first, first + 1, rate), 0.0);
    driver.send(false);
    assert!(driver.ascent.is_running());
}

#[test]
fn a_rate_is_published_as_it_is_sent_or_once_probing_has_found_it() {
    let published = |publish| {
        let mut driver = Driver::new(Config { publish, ..config() });
        let slow_start = [0.0, 0.0, 0.2].map(|loss| {
            driver.round(loss);
            driver.ascent.published()
        });
        while !matches!(driver.ascent.phase, Phase::Moving { .. }) {
            driver.round(0.0);
        }
        let first = driver.ascent.published();
        driver.round(0.0);
        assert!(matches!(driver.ascent.phase, Phase::Moving { .. }) && driver.ascent.base > first);
        (slow_start, first, driver.ascent.published() - driver.ascent.base)
    };
    let ([second, third, probe], moved, lag) = published(Publish::Interval);
    assert_eq!((second, third, moved, lag), (8.0, 16.0, 8.5, 0.0));
    close((probe - 8.0).abs(), 0.4);
    let (slow_start, moved, lag) = published(Publish::Decision);
    assert_eq!((slow_start, moved), ([4.0; 3], 8.5));
    assert!(lag < 0.0, "a move publishes nothing");
}

#[test]
fn what_is_kept_when_moving_ends() {
    for (leave, base) in [(Leave::Better, 8.0), (Leave::Last, 8.5)] {
        let mut driver = Driver::new(Config { leave, ..config() });
        for loss in [0.0, 0.0, 0.2] {
            driver.round(loss);
        }
        while !matches!(driver.ascent.phase, Phase::Moving { .. }) {
            driver.round(0.0);
        }
        driver.round(0.3);
        close(driver.ascent.base, base);
    }
}

#[test]
fn steps_begin_small_again_after_a_pause_or_an_overload() {
    for overload in [false, true] {
        let mut driver = probing();
        while driver.ascent.momentum.amplifier() == 0 {
            driver.round(0.0);
        }
        if overload {
            let held = driver.interval(1.0, true);
            driver.answer(held, 0.4);
        } else {
            driver.ascent.pause();
        }
        assert_eq!(driver.ascent.momentum, Momentum::default());
    }
}

#[test]
fn what_others_send_is_frozen_from_one_decision_to_the_next() {
    let mut driver = Driver::new(Config { slow_start: SlowStart::Release, ..config() });
    driver.others.rate = 10.0;
    let interval = driver.interval(1.0, false);
    close(driver.ascent.others, 10.0);
    driver.others.rate = 20.0;
    driver.answer(interval, 0.0);
    close(driver.ascent.others, 20.0);
    // Tried again.
    driver.others.rate = 30.0;
    driver.round(0.4);
    close(driver.ascent.others, 30.0);
    let mut driver = probing();
    driver.others.rate = 40.0;
    let intervals: Vec<_> = (0..4).map(|_| driver.interval(1.0, false)).collect();
    for interval in intervals {
        close(driver.ascent.others, 0.0);
        driver.answer(interval, 0.0);
    }
    close(driver.ascent.others, 40.0);
}

#[test]
fn a_step_is_bounded_by_a_share_of_the_total_and_published() {
    let mut ascent = Driver::new(config()).ascent;
    ascent.base = 50.0;
    ascent.step(Time::ZERO, 8.0, sample(49.0, 0.0, 0.0), Others { rate: 50.0, count: 1 });
    // 5% of 100.
    close(ascent.base, 55.0);
    close(ascent.published(), 55.0);
    close(ascent.others, 50.0);
}

#[test]
fn near_many_others_change_by_shares_of_two_mean_rates() {
    let (mut least, mut near) =
        (Driver::new(config()).ascent, Driver::new(Config { low: Low::Near, ..config() }).ascent);
    for ascent in [&mut least, &mut near] {
        ascent.base = 50.0;
    }
    // 5% of 200, and of 200, 133 and 100: alone or with one other it is the whole.
    for (count, distance) in [(0, 10.0), (1, 10.0), (2, 20.0 / 3.0), (3, 5.0)] {
        let others = Others { rate: 150.0, count };
        close(least.distance(others), 10.0);
        close(near.distance(others), distance);
        let mut stepping = near.clone();
        stepping.step(Time::ZERO, 80.0, sample(49.0, 0.0, 0.0), others);
        close(stepping.base, 50.0 + distance);
    }
}

#[test]
fn no_way_down_leads_below_the_smallest_rate() {
    let driver = || Driver::new(Config { min_rate: 3.0, ..config() });
    let mut braking = driver();
    let held = braking.interval(1.0, true);
    braking.answer(held, 0.4);
    close(braking.ascent.base, 3.0);
    let mut going_back = driver();
    for _ in 0..3 {
        let interval = going_back.interval(0.5, false);
        going_back.answer(interval, 0.0);
    }
    close(going_back.ascent.base, 3.0);
    let mut stepping = driver();
    stepping.ascent.step(Time::ZERO, -8.0, sample(4.0, 0.0, 0.0), Others { rate: 100.0, count: 1 });
    close(stepping.ascent.base, 3.0);
    let mut timing_out = driver();
    timing_out.time_out();
    close(timing_out.ascent.base, 3.0);
}

#[test]
fn silence_lowers_a_rate_less_than_losses() {
    let driver = |base| {
        let mut driver = Driver::new(Config { min_rate: 0.05, brake: Brake::Any, ..config() });
        driver.ascent.base = base;
        driver
    };
    for (base, left) in [(4.0, 2.0), (0.3, 0.2), (0.1, 0.1), (0.01, 0.05)] {
        let mut timing_out = driver(base);
        timing_out.time_out();
        close(timing_out.ascent.base, left);
    }
    // An interval of which nothing arrives says no more. Here it has 75 packets.
    for (loss, left) in [(1.0, 0.2), (0.96, 0.16), (0.987, 4.0 / 75.0)] {
        let mut braking = driver(4.0);
        let interval = braking.interval(1.0, false);
        braking.answer(interval, loss);
        close(braking.ascent.base, left);
    }
}

#[test]
fn pairs_that_tell_nothing_make_no_move() {
    let mut driver = probing();
    driver.ascent.momentum.step(&config(), 0.6, 8.0, 8.0);
    let Phase::Probing { low, high, .. } = &mut driver.ascent.phase else { panic!("it probes") };
    (*low, *high) = (8.0, 8.0);
    for _ in 0..4 {
        driver.round(0.0);
    }
    close(driver.ascent.base, 8.0);
    assert!(matches!(driver.ascent.phase, Phase::Probing { begun: [true, false, false, false], .. }));
    assert!(!driver.ascent.momentum.agrees(0.6));
}

#[test]
fn of_two_gradients_that_agree_the_smaller_one_is_followed() {
    let mut driver = Driver::new(Config { bound: 1.0, min_step: 0.0, ..config() });
    // Slow start, and two pairs: (8.4^0.9 - 7.6^0.9)/0.8 = 0.7311 without a queue, 0.5 less where it grows by a half.
    for (loss, slope) in [(0.0, 0.0), (0.0, 0.0), (0.2, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.5), (0.0, 0.5)] {
        driver.slope = slope;
        driver.round(loss);
    }
    let step = driver.ascent.base - 8.0;
    assert!((step - 0.2311).abs() < 1e-4, "{step}");
}

#[test]
fn a_move_that_led_nowhere_turns_nothing() {
    let mut driver = probing();
    (0..3).for_each(|_| _ = driver.ascent.momentum.step(&config(), 0.6, 50.0, 100.0));
    let before = driver.ascent.momentum;
    driver.ascent.on_moved(driver.now, 8.0, &sample(8.0, 0.0, 0.0), sample(8.0, 0.0, 0.0), Others::default());
    assert_eq!(driver.ascent.momentum, before);
    assert!(matches!(driver.ascent.phase, Phase::Probing { .. }));
}

#[test]
fn two_samples_at_one_rate_are_their_mean() {
    assert_eq!(sample(8.0, 0.25, 0.5).mean(sample(8.0, 0.75, 1.0)), sample(8.0, 0.5, 0.75));
}

#[test]
fn a_megabit_is_125_kilobytes() {
    let spec = "mpcc-loss:units=bytes".parse().unwrap();
    let rows = parameters(crate::mpcc::LOSS);
    let read = super::config::config(&manypath_core::Params::new(&spec, &rows).unwrap()).unwrap();
    close(read.utility.scale, 125_000.0);
}

#[test]
fn limits_are_two_windows_and_at_least_four_packets() {
    let mut driver = Driver::new(config());
    driver.send(false);
    // 2 * 4 Mbit/s * 0.1 s / 8 = 100,000 bytes.
    assert_eq!(driver.ascent.limits().cwnd, Bytes::new(100_000));
    driver.ascent.srtt = Some(Duration::from_millis(1));
    assert_eq!(driver.ascent.limits().cwnd, Bytes::new(4_000));
}
