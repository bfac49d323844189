use manypath_core::{PacketNumber, SubflowId};
use rand_core::SeedableRng;

use super::*;

fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-6 * right.abs().max(1.0), "{left} is not {right}");
}

fn bbr() -> (Bbr3, SubflowView) {
    let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
    let view = SubflowView::new(SubflowId(0), Bytes::new(1000));
    (Bbr3::new(Xoshiro256PlusPlus::seed_from_u64(1), init), view)
}

fn sample(delivered_at_send: u64, mbps: f64, rtt_ms: u64) -> Acked {
    Acked {
        packet: PacketNumber(u64::MAX),
        bytes: Bytes::new(1000),
        sent_at: Time::ZERO,
        rtt: Duration::from_millis(rtt_ms),
        delivery_rate: Rate::from_mbps(mbps),
        delivered_at_send: Bytes::new(delivered_at_send),
        in_recovery: false,
        app_limited: false,
    }
}

/// One acknowledgement that ends a round.
fn ack(bbr: &mut Bbr3, view: &mut SubflowView, millis: u64, mbps: f64, rtt_ms: u64) {
    let acked = sample(view.delivered.get(), mbps, rtt_ms);
    view.delivered += Bytes::new(1000);
    bbr.on_event(Time::from_millis(millis), &Event::Acked(acked), view);
}

/// BBR past startup at 8 Mbit/s and 100 ms, with nothing in flight: BDP 100,000 bytes.
fn cruising() -> (Bbr3, SubflowView) {
    let (mut bbr, mut view) = bbr();
    for round in 0..10 {
        ack(&mut bbr, &mut view, round * 100, 8.0, 100);
    }
    assert_eq!(bbr.state, State::Cruise);
    (bbr, view)
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(500_000);
    for round in 0..4 {
        assert_eq!(bbr.state, State::Startup);
        ack(&mut bbr, &mut view, round * 100, 8.0, 100);
    }
    assert_eq!(bbr.state, State::Drain);
    close(bbr.pacing, 8e6 * 0.5 * 0.99);
    view.in_flight = Bytes::new(100_000);
    ack(&mut bbr, &mut view, 500, 8.0, 100);
    assert!(matches!(bbr.state, State::Down | State::Cruise));
}

#[test]
fn startup_ends_at_six_loss_ranges_in_a_round_above_two_percent() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(500_000);
    ack(&mut bbr, &mut view, 0, 8.0, 100);
    for range in 0..6 {
        let lost = Event::Lost { packet: PacketNumber(range * 2), bytes: Bytes::new(1000), sent_at: Time::ZERO };
        bbr.on_event(Time::ZERO, &lost, &view);
    }
    ack(&mut bbr, &mut view, 100, 16.0, 100);
    assert_eq!(bbr.state, State::Drain);
    // 16 Mbit/s * 0.1 s = 200,000 bytes.
    close(bbr.model.inflight_long, 200_000.0);
}

#[test]
fn a_probe_waits_two_to_three_seconds_then_refills_for_a_round_and_probes_up() {
    let (mut bbr, mut view) = cruising();
    bbr.rounds_since_probe = 0;
    view.in_flight = Bytes::new(90_000);
    bbr.cycle_at = Time::from_millis(900);
    ack(&mut bbr, &mut view, 2_800, 8.0, 100);
    assert_eq!(bbr.state, State::Cruise);
    ack(&mut bbr, &mut view, 4_000, 8.0, 100);
    assert_eq!(bbr.state, State::Refill);
    ack(&mut bbr, &mut view, 4_100, 8.0, 100);
    ack(&mut bbr, &mut view, 4_150, 8.0, 100);
    assert_eq!(bbr.state, State::Up);
    close(bbr.pacing, 8e6 * 1.25 * 0.99);
    for round in 0..4 {
        ack(&mut bbr, &mut view, 4_200 + round, 8.0, 100);
    }
    assert!(matches!(bbr.state, State::Down | State::Cruise), "{:?}", bbr.state);
}

#[test]
fn losses_in_a_probe_set_the_long_term_bound() {
    let (mut bbr, mut view) = cruising();
    bbr.cwnd = 300_000.0;
    bbr.state = State::Up;
    bbr.probe_samples = true;
    view.in_flight = Bytes::new(125_000);
    for packet in 0..10 {
        let sent = Event::Sent { packet: PacketNumber(packet), bytes: Bytes::new(1000), app_limited: false };
        bbr.on_event(Time::ZERO, &sent, &view);
    }
    for packet in 0..3 {
        let lost = Event::Lost { packet: PacketNumber(packet), bytes: Bytes::new(1000), sent_at: Time::ZERO };
        bbr.on_event(Time::ZERO, &lost, &view);
    }
    // 2% of 125,000 = 2,500: the third loss exceeds it. Before it 124,000 in flight and 2,000 lost:
    // 124,000 + (0.02 * 124,000 - 2,000)/0.98 = 124,489.8.
    close(bbr.model.inflight_long, 124_000.0 + 480.0 / 0.98);
    assert_eq!(bbr.state, State::Down);
    // Cruising leaves 15%.
    close(bbr.with_headroom(), 0.85 * bbr.model.inflight_long);
}

#[test]
fn losses_outside_of_a_probe_set_short_term_bounds() {
    let mut model = Model::default();
    model.on_ack(&sample(0, 8.0, 100), Bytes::new(100_000), false, true, 0.0);
    model.note_loss(Bytes::new(100_000));
    // Delivered 60,000 in flight at 4 Mbit/s: max(4, 0.7 * 8) = 5.6; max(60,000, 0.7 * 200,000) = 140,000.
    model.reset_latest();
    model.note_loss(Bytes::new(100_000));
    model.on_ack(&sample(100_000, 4.0, 100), Bytes::new(160_000), false, false, 200_000.0);
    close(model.bandwidth(), 5.6e6);
    close(model.inflight_short, 140_000.0);
    model.reset_short_term();
    close(model.bandwidth(), 8e6);
}

#[test]
fn bandwidth_is_forgotten_after_two_cycles() {
    let mut model = Model::default();
    model.on_ack(&sample(0, 8.0, 100), Bytes::new(1_000), false, false, 0.0);
    model.advance_cycle();
    model.on_ack(&sample(1_000, 4.0, 100), Bytes::new(2_000), false, false, 0.0);
    close(model.max_bandwidth(), 8e6);
    model.advance_cycle();
    close(model.max_bandwidth(), 4e6);
}

#[test]
fn a_window_that_is_not_filled_does_not_keep_a_bandwidth() {
    let mut model = Model::default();
    let mut lower = sample(1_000, 4.0, 100);
    // Windows of twice what is in flight grow no further, but the rate was the path's.
    lower.app_limited = true;
    model.on_ack(&sample(0, 8.0, 100), Bytes::new(1_000), false, false, 0.0);
    model.advance_cycle();
    model.on_ack(&lower, Bytes::new(2_000), false, false, 0.0);
    model.advance_cycle();
    close(model.max_bandwidth(), 4e6);
    // The application's is not.
    lower.delivery_rate = Rate::from_mbps(2.0);
    model.on_ack(&lower, Bytes::new(2_000), true, false, 0.0);
    model.advance_cycle();
    close(model.max_bandwidth(), 0.0);
    // Unless it is larger than what is known.
    lower.delivery_rate = Rate::from_mbps(9.0);
    model.on_ack(&lower, Bytes::new(2_000), true, false, 0.0);
    close(model.max_bandwidth(), 9e6);
}

#[test]
fn a_cycle_that_the_application_limited_forgets_nothing() {
    let (mut bbr, view) = cruising();
    for (limited, bandwidth) in [(true, 8e6), (true, 8e6), (true, 8e6), (false, 8e6), (false, 0.0)] {
        bbr.ack_phase = AckPhase::Stopping;
        bbr.end_ack_phase(limited, true, view.delivered);
        close(bbr.model.max_bandwidth(), bandwidth);
    }
}

#[test]
fn where_losses_had_passed_the_threshold_before_nothing_of_a_packet_fits() {
    close(model::inflight_at_loss(100_000.0, 50_000.0, 1_000.0), 99_000.0);
}

#[test]
fn the_headroom_is_a_packet_at_least() {
    let (mut bbr, _) = bbr();
    // 15% of 6,000 are 900.
    bbr.model.inflight_long = 6_000.0;
    close(bbr.with_headroom(), 5_000.0);
}

#[test]
fn startup_goes_on_after_probe_rtt_where_the_pipe_was_not_full() {
    let (mut bbr, mut view) = bbr();
    ack(&mut bbr, &mut view, 0, 1.0, 100);
    ack(&mut bbr, &mut view, 5_100, 2.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    ack(&mut bbr, &mut view, 5_301, 4.0, 120);
    assert_eq!(bbr.state, State::Startup);
}

#[test]
fn every_five_seconds_the_window_is_half_a_bdp() {
    let (mut bbr, mut view) = cruising();
    bbr.cwnd = 200_000.0;
    view.in_flight = Bytes::new(90_000);
    ack(&mut bbr, &mut view, 6_000, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    close(bbr.cwnd, 50_000.0);
    view.in_flight = Bytes::new(50_000);
    ack(&mut bbr, &mut view, 6_010, 8.0, 100);
    ack(&mut bbr, &mut view, 6_100, 8.0, 100);
    assert_eq!(bbr.state, State::ProbeRtt);
    ack(&mut bbr, &mut view, 6_211, 8.0, 100);
    assert_eq!(bbr.state, State::Cruise);
}

#[test]
fn flights_are_found_by_number_and_forgotten_in_order() {
    let mut flights = Flights::default();
    for packet in 5..9 {
        flights.send(PacketNumber(packet), packet as f64, false);
    }
    close(flights.take(PacketNumber(7)).unwrap().in_flight, 7.0);
    assert_eq!(flights.take(PacketNumber(7)), None);
    assert_eq!(flights.take(PacketNumber(4)), None);
    assert_eq!(flights.take(PacketNumber(9)), None);
    close(flights.take(PacketNumber(5)).unwrap().in_flight, 5.0);
    close(flights.take(PacketNumber(8)).unwrap().in_flight, 8.0);
    // Of more than 65,536 the first is not known.
    (10..=10 + 65_536).for_each(|packet| flights.send(PacketNumber(packet), 0.0, false));
    assert_eq!(flights.take(PacketNumber(10)), None);
    assert!(flights.take(PacketNumber(11)).is_some());
}

#[test]
fn a_subflow_that_begins_late_begins_in_startup_at_the_rate_of_its_round_trip_time() {
    let (mut bbr, mut view) = bbr();
    view.srtt = Some(Duration::from_millis(100));
    ack(&mut bbr, &mut view, 12_000, 0.7, 100);
    assert_eq!(bbr.state, State::Startup);
    close(bbr.pacing, gains(State::Startup).0 * 0.8e6);
}

#[test]
fn an_idle_time_needs_no_small_window_and_ends_one() {
    let (mut bbr, mut view) = cruising();
    let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
    let restart = |bbr: &mut Bbr3, view: &mut SubflowView, millis: u64| {
        (view.in_flight, view.app_limited) = (Bytes::new(1000), true);
        bbr.on_event(Time::from_millis(millis), &sent, view);
        (view.in_flight, view.app_limited) = (Bytes::ZERO, false);
    };
    restart(&mut bbr, &mut view, 30_000);
    ack(&mut bbr, &mut view, 30_100, 8.0, 100);
    assert!(bbr.is_probing_bandwidth());
    ack(&mut bbr, &mut view, 36_000, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    restart(&mut bbr, &mut view, 36_100);
    assert_eq!(bbr.state, State::ProbeRtt, "for 200 ms");
    restart(&mut bbr, &mut view, 50_000);
    assert_eq!(bbr.state, State::Cruise);
}

#[test]
fn the_small_window_of_probe_rtt_is_not_taken_for_the_bandwidth() {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(4_000);
    ack(&mut bbr, &mut view, 6_500, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    bbr.model.advance_cycle();
    ack(&mut bbr, &mut view, 6_510, 0.3, 100);
    close(bbr.model.max_bandwidth(), 8e6);
    bbr.model.advance_cycle();
    close(bbr.model.max_bandwidth(), 0.0);
}

#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(500_000);
    for round in 0..8 {
        ack(&mut bbr, &mut view, round * 100, 8.0, 100);
        // Startup ends in the fourth; the fourth after that is more than three later.
        assert_eq!(bbr.state == State::Drain, (3..7).contains(&round), "{round}");
    }
    assert_eq!(bbr.state, State::Down);
}

#[test]
fn six_loss_ranges_count_over_a_whole_round_of_recovery() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(500_000);
    ack(&mut bbr, &mut view, 0, 8.0, 100);
    ack(&mut bbr, &mut view, 100, 16.0, 100);
    let sent_before_the_loss = view.delivered.get();
    // Late in the round, of which 400 packets were delivered, of which six are less than 2%; then it ends.
    for _ in 0..400 {
        view.delivered += Bytes::new(1000);
        bbr.on_event(Time::from_millis(150), &Event::Acked(sample(sent_before_the_loss - 1, 16.0, 100)), &view);
    }
    for range in 0..6 {
        let lost = Event::Lost { packet: PacketNumber(range * 2), bytes: Bytes::new(1000), sent_at: Time::ZERO };
        bbr.on_event(Time::from_millis(199), &lost, &view);
    }
    view.delivered += Bytes::new(1000);
    bbr.on_event(Time::from_millis(200), &Event::Acked(sample(sent_before_the_loss, 16.0, 100)), &view);
    assert_eq!(bbr.state, State::Startup);
    ack(&mut bbr, &mut view, 299, 16.0, 100);
    assert_eq!(bbr.state, State::Drain);
}

#[test]
fn startup_s_bound_is_the_most_that_was_delivered_in_the_round() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(500_000);
    view.delivered = Bytes::new(1_000_000);
    let lost = |packet| Event::Lost { packet: PacketNumber(packet), bytes: Bytes::new(1000), sent_at: Time::ZERO };
    (0..6).for_each(|range| bbr.on_event(Time::ZERO, &lost(range * 2), &view));
    // Sent when 600,000 were delivered: 401,000 since. Of the packet that ends the round 1,000.
    view.delivered += Bytes::new(1000);
    bbr.on_event(Time::from_millis(50), &Event::Acked(sample(600_000, 8.0, 100)), &view);
    ack(&mut bbr, &mut view, 100, 8.0, 100);
    close(bbr.model.inflight_long, 401_000.0);
}

/// In a probe with a long-term bound of 125,000 bytes, which has 100,000 bytes in flight.
fn probing() -> (Bbr3, SubflowView) {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(100_000);
    bbr.model.inflight_long = 125_000.0;
    bbr.start_refill(view.delivered);
    ack(&mut bbr, &mut view, 1_100, 8.0, 100);
    assert_eq!((bbr.state, bbr.probe_samples), (State::Up, true));
    (bbr, view)
}

#[test]
fn a_bound_rises_by_a_packet_for_each_acknowledged_at_most_and_from_the_beginning() {
    let (mut bbr, view) = probing();
    (bbr.cwnd, bbr.up_rounds, bbr.up_acked) = (200_000.0, 30, 500.0);
    let flight = model::Flight { in_flight: 100_000.0, lost: 0.0, app_limited: false };
    bbr.adapt_long_term(&flight, 0.0, true, true);
    close(bbr.up_count, 1_000.0);
    bbr.start_refill(view.delivered);
    close(bbr.up_acked, 0.0);
}

#[test]
fn what_comes_back_of_a_probe_takes_a_round_from_its_end() {
    let (mut bbr, mut view) = probing();
    let sent_in_the_probe = view.delivered.get();
    view.delivered += Bytes::new(1000);
    bbr.start_down(Time::from_millis(1_150), view.delivered);
    view.delivered += Bytes::new(1000);
    bbr.on_event(Time::from_millis(1_200), &Event::Acked(sample(sent_in_the_probe, 8.0, 100)), &view);
    assert!(bbr.probe_samples);
    ack(&mut bbr, &mut view, 1_250, 8.0, 100);
    assert!(!bbr.probe_samples);
}

#[test]
fn after_a_probe_that_lost_too_much_the_next_one_is_cautious() {
    let (mut bbr, mut view) = probing();
    for packet in 0..3 {
        let sent = Event::Sent { packet: PacketNumber(packet), bytes: Bytes::new(1000), app_limited: false };
        bbr.on_event(Time::from_millis(1_100), &sent, &view);
    }
    for packet in 0..3 {
        let lost = Event::Lost { packet: PacketNumber(packet), bytes: Bytes::new(1000), sent_at: Time::ZERO };
        bbr.on_event(Time::from_millis(1_150), &lost, &view);
    }
    // 3,000 of 100,000 are more than 2%.
    assert_eq!((bbr.state, bbr.probed_too_high), (State::Down, true));
    let again = |bbr: &mut Bbr3, view: &mut SubflowView| {
        bbr.model.inflight_long = 125_000.0;
        bbr.start_refill(view.delivered);
        view.in_flight = Bytes::new(123_000);
        ack(bbr, view, 1_300, 8.0, 100);
        assert_eq!(bbr.state, State::Up);
        // 123,000 and the packet acknowledged: another still fits.
        ack(bbr, view, 1_310, 8.0, 100);
        assert_eq!(bbr.state, State::Up);
        view.in_flight = Bytes::new(124_000);
        ack(bbr, view, 1_320, 8.0, 100);
        bbr.state
    };
    assert_eq!(again(&mut bbr, &mut view), State::Down);
    assert!(bbr.probed_cautiously && !bbr.probed_too_high);
    // Nothing was lost in the round since: on at once, and not cautiously.
    view.in_flight = Bytes::new(110_000);
    ack(&mut bbr, &mut view, 1_420, 8.0, 100);
    assert_eq!((bbr.state, bbr.probed_cautiously), (State::Refill, false));
    assert_eq!(again(&mut bbr, &mut view), State::Up);
}

#[test]
fn a_recovery_gives_back_the_window_that_it_found() {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(90_000);
    bbr.cwnd = 150_000.0;
    view.in_recovery = true;
    bbr.on_event(Time::from_millis(1_000), &Event::Congestion { sent_at: Time::ZERO }, &view);
    bbr.cwnd = 60_000.0;
    ack(&mut bbr, &mut view, 1_010, 8.0, 100);
    close(bbr.cwnd, 61_000.0);
    // A timeout in it finds a smaller one.
    bbr.on_event(Time::from_millis(1_015), &Event::Timeout { repeated: false }, &view);
    view.in_recovery = false;
    ack(&mut bbr, &mut view, 1_020, 8.0, 100);
    close(bbr.cwnd, 151_000.0);
}

#[test]
fn in_startup_one_round_of_aggregation_is_remembered() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(500_000);
    // 8 Mbit/s, and then 50 packets at once: 50,000 bytes more than expected.
    for _ in 0..50 {
        let batch = sample(view.delivered.get().min(1), 8.0, 100);
        view.delivered += Bytes::new(1000);
        bbr.on_event(Time::from_millis(0), &Event::Acked(batch), &view);
    }
    assert!(bbr.extra_acked.get().unwrap() >= 10_000.0);
    ack(&mut bbr, &mut view, 1_000, 16.0, 100);
    ack(&mut bbr, &mut view, 2_000, 32.0, 100);
    close(bbr.extra_acked.get().unwrap(), 1_000.0);
    assert!(!bbr.full_reached);
}

#[test]
fn after_an_idle_time_aggregation_is_measured_anew() {
    let (mut bbr, mut view) = cruising();
    (view.in_flight, view.app_limited) = (Bytes::new(1000), true);
    let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
    bbr.on_event(Time::from_millis(30_000), &sent, &view);
    assert_eq!(bbr.extra_start, Time::from_millis(30_000));
}

#[test]
fn aggregation_is_added_before_the_window_is_rounded_up() {
    let (mut bbr, _) = cruising();
    // BDP 1,000 bytes: two of it and 500 of aggregation are less than four packets, which three quanta exceed: 6 packets.
    bbr.min_rtt = Some(Duration::from_millis(1));
    bbr.pacing = 1e6;
    bbr.extra_acked = WindowedMax::new(Duration::from_nanos(EXTRA_ACKED_ROUNDS - 1));
    bbr.extra_acked.update(Time::ZERO, 500.0);
    bbr.cwnd = 100_000.0;
    bbr.set_cwnd(1000.0, 1e6);
    close(bbr.cwnd, 6_000.0);
}
