use manypath_core::{PacketNumber, SubflowId};
use rand_core::SeedableRng;

use super::*;

fn bbr() -> (Bbr, SubflowView) {
    let init = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));
    let view = SubflowView::new(SubflowId(0), Bytes::new(1000));
    (Bbr::new(Xoshiro256PlusPlus::seed_from_u64(1), init), view)
}

/// One acknowledgement that ends a round.
fn ack(bbr: &mut Bbr, view: &mut SubflowView, millis: u64, mbps: f64, rtt_ms: u64) {
    ack_of(bbr, view, view.delivered, millis, mbps, rtt_ms);
}

/// Of a packet that left when so much was delivered.
fn ack_of(bbr: &mut Bbr, view: &mut SubflowView, at_send: Bytes, millis: u64, mbps: f64, rtt_ms: u64) {
    view.delivered += Bytes::new(1000);
    view.srtt = Some(Duration::from_millis(rtt_ms));
    view.rate_app_limited = false;
    let acked = Acked {
        packet: PacketNumber(0),
        bytes: Bytes::new(1000),
        sent_at: Time::ZERO,
        rtt: Duration::from_millis(rtt_ms),
        delivery_rate: Rate::from_mbps(mbps),
        delivered_at_send: at_send,
        in_recovery: false,
        app_limited: false,
    };
    bbr.on_event(Time::from_millis(millis), &Event::Acked(acked), view);
}

fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-6 * right.abs().max(1.0), "{left} is not {right}");
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drains() {
    let (mut bbr, mut view) = bbr();
    view.in_flight = Bytes::new(200_000);
    for (round, mbps) in [1.0, 2.0, 4.0, 8.0, 8.0, 8.0].into_iter().enumerate() {
        ack(&mut bbr, &mut view, round as u64 * 100, mbps, 100);
        assert_eq!(bbr.state, State::Startup);
    }
    ack(&mut bbr, &mut view, 600, 8.0, 100);
    assert_eq!(bbr.state, State::Drain);
    // 8 Mbit/s / 2.885 * 0.99.
    close(bbr.pacing, 8e6 / HIGH_GAIN * 0.99);
    // BDP: 8 Mbit/s * 0.1 s = 100,000 bytes, and three quanta of two packets.
    close(bbr.inflight(1.0), 106_000.0);
    view.in_flight = Bytes::new(106_001);
    ack(&mut bbr, &mut view, 650, 8.0, 100);
    assert_eq!(bbr.state, State::Drain);
    view.in_flight = Bytes::new(106_000);
    ack(&mut bbr, &mut view, 700, 8.0, 100);
    assert_eq!(bbr.state, State::ProbeBandwidth);
    assert!(bbr.pacing_gain >= 1.0);
}

/// BBR in ProbeBandwidth at 8 Mbit/s and 100 ms.
fn cruising() -> (Bbr, SubflowView) {
    let (mut bbr, mut view) = bbr();
    for round in 0..8 {
        ack(&mut bbr, &mut view, round * 100, 8.0, 100);
    }
    assert_eq!(bbr.state, State::ProbeBandwidth);
    (bbr, view)
}

#[test]
fn the_window_is_two_bdp_and_three_quanta() {
    let (mut bbr, mut view) = cruising();
    for _ in 0..1000 {
        ack(&mut bbr, &mut view, 800, 8.0, 100);
    }
    // 2 * 100,000 + 3 * 2 * 1000.
    close(bbr.cwnd, 206_000.0);
}

#[test]
fn gains_cycle_once_a_round_trip() {
    let (mut bbr, mut view) = cruising();
    bbr.cycle = 0;
    bbr.pacing_gain = 1.25;
    bbr.cycle_at = Time::from_millis(700);
    view.in_flight = Bytes::new(129_999);
    // Longer than a round trip, but the probe has not filled the pipe: 1.25 * 100,000 and three quanta, before the acknowledgement of
    // 1,000.
    ack(&mut bbr, &mut view, 850, 8.0, 100);
    close(bbr.pacing_gain, 1.25);
    view.in_flight = Bytes::new(130_000);
    ack(&mut bbr, &mut view, 860, 8.0, 100);
    close(bbr.pacing_gain, 0.75);
    view.in_flight = Bytes::new(105_001);
    ack(&mut bbr, &mut view, 865, 8.0, 100);
    close(bbr.pacing_gain, 0.75);
    view.in_flight = Bytes::new(105_000);
    ack(&mut bbr, &mut view, 870, 8.0, 100);
    close(bbr.pacing_gain, 1.0);
}

#[test]
fn a_loss_ends_a_probe_that_has_lasted_a_round_trip() {
    let (mut bbr, mut view) = cruising();
    (bbr.cycle, bbr.pacing_gain, bbr.cycle_at) = (0, 1.25, Time::from_millis(700));
    view.in_flight = Bytes::new(110_000);
    let lost = Event::Lost { packet: PacketNumber(0), bytes: Bytes::new(1000), sent_at: Time::ZERO };
    // What was lost before is over.
    bbr.on_event(Time::from_millis(750), &lost, &view);
    ack(&mut bbr, &mut view, 760, 8.0, 100);
    ack(&mut bbr, &mut view, 850, 8.0, 100);
    close(bbr.pacing_gain, 1.25);
    bbr.on_event(Time::from_millis(860), &lost, &view);
    ack(&mut bbr, &mut view, 860, 8.0, 100);
    close(bbr.pacing_gain, 0.75);
}

#[test]
fn the_least_window_does_not_hold_while_packets_are_conserved() {
    let (mut bbr, mut view) = cruising();
    (view.in_flight, view.in_recovery) = (Bytes::new(1_000), true);
    bbr.on_event(Time::from_millis(800), &Event::Congestion { sent_at: Time::ZERO }, &view);
    view.in_flight = Bytes::ZERO;
    let acked = Acked {
        packet: PacketNumber(1),
        bytes: Bytes::new(1000),
        sent_at: Time::ZERO,
        rtt: Duration::from_millis(100),
        delivery_rate: Rate::from_mbps(8.0),
        delivered_at_send: Bytes::ZERO,
        in_recovery: true,
        app_limited: false,
    };
    bbr.on_event(Time::from_millis(810), &Event::Acked(acked), &view);
    close(bbr.cwnd, 2_000.0);
}

#[test]
fn an_old_propagation_time_is_probed_with_four_packets() {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(50_000);
    ack(&mut bbr, &mut view, 10_900, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    close(bbr.cwnd, 4_000.0);
    close(bbr.rtprop.unwrap().as_secs_f64(), 0.12);
    view.in_flight = Bytes::new(4_000);
    ack(&mut bbr, &mut view, 11_000, 8.0, 100);
    ack(&mut bbr, &mut view, 11_190, 8.0, 100);
    assert_eq!(bbr.state, State::ProbeRtt);
    ack(&mut bbr, &mut view, 11_200, 8.0, 100);
    assert_eq!(bbr.state, State::ProbeBandwidth);
    assert!(bbr.cwnd > 10_000.0);
}

#[test]
fn loss_conserves_packets_for_a_round_and_a_timeout_restores_the_window() {
    let (mut bbr, mut view) = cruising();
    let before = bbr.cwnd;
    view.in_flight = Bytes::new(7_000);
    bbr.on_event(Time::from_millis(800), &Event::Congestion { sent_at: Time::ZERO }, &view);
    close(bbr.cwnd, 8_000.0);
    ack(&mut bbr, &mut view, 900, 8.0, 100);
    assert!(bbr.cwnd >= before);
    bbr.on_event(Time::from_millis(950), &Event::Timeout { repeated: false }, &view);
    close(bbr.cwnd, 1_000.0);
    ack(&mut bbr, &mut view, 1_000, 8.0, 100);
    assert!(bbr.cwnd >= before);
}

/// An episode in every round trip, as QUIC has them at a few percent of random loss.
#[test]
fn losses_that_go_on_are_one_recovery() {
    let (mut bbr, mut view) = cruising();
    for _ in 0..1000 {
        ack(&mut bbr, &mut view, 800, 8.0, 100);
    }
    let before = bbr.cwnd;
    for episode in 0..20 {
        view.in_flight = Bytes::from_f64(bbr.cwnd * 0.9);
        let at = 800 + episode * 100;
        bbr.on_event(Time::from_millis(at), &Event::Congestion { sent_at: Time::ZERO }, &view);
        assert!(bbr.cwnd >= if episode == 0 { before * 0.85 } else { before }, "{} in episode {episode}", bbr.cwnd);
        ack(&mut bbr, &mut view, at + 90, 8.0, 100);
    }
    for quiet in 0..3 {
        ack(&mut bbr, &mut view, 2_900 + quiet * 100, 8.0, 100);
    }
    view.in_flight = Bytes::new(7_000);
    bbr.on_event(Time::from_millis(3_200), &Event::Congestion { sent_at: Time::ZERO }, &view);
    close(bbr.cwnd, 8_000.0);
}

#[test]
fn application_limited_samples_do_not_lower_the_filter_nor_fill_the_pipe() {
    let (mut bbr, mut view) = bbr();
    for (round, mbps) in (0..).zip([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]) {
        ack(&mut bbr, &mut view, round * 100, 8.0, 100);
        let at_send = view.delivered;
        view.delivered += Bytes::new(1000);
        view.rate_app_limited = true;
        let acked = Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(1000),
            sent_at: Time::ZERO,
            rtt: Duration::from_millis(100),
            delivery_rate: Rate::from_mbps(mbps),
            delivered_at_send: at_send,
            in_recovery: false,
            app_limited: true,
        };
        bbr.on_event(Time::from_millis(round * 100), &Event::Acked(acked), &view);
        // One that is larger than the filter is no less true for being limited.
        close(bbr.btlbw(), mbps.max(8.0) * 1e6);
    }
}

#[test]
fn a_subflow_that_begins_late_begins_in_startup() {
    let (mut bbr, mut view) = bbr();
    ack(&mut bbr, &mut view, 12_000, 1.0, 100);
    assert_eq!(bbr.state, State::Startup);
}

#[test]
fn the_first_measured_round_trip_time_replaces_the_guess() {
    let (mut bbr, mut view) = bbr();
    close(bbr.pacing, HIGH_GAIN * 80e6);
    // The initial window in 100 ms is 0.8 Mbit/s.
    ack(&mut bbr, &mut view, 100, 0.7, 100);
    close(bbr.pacing, HIGH_GAIN * 0.8e6);
    ack(&mut bbr, &mut view, 200, 2.0, 100);
    close(bbr.pacing, HIGH_GAIN * 2e6 * 0.99);
}

/// A packet leaves with nothing else under way, after the application had nothing to send.
fn restart(bbr: &mut Bbr, view: &mut SubflowView, millis: u64) {
    view.in_flight = Bytes::new(1000);
    view.app_limited = true;
    let sent = Event::Sent { packet: PacketNumber(0), bytes: Bytes::new(1000), app_limited: false };
    bbr.on_event(Time::from_millis(millis), &sent, view);
    (view.in_flight, view.app_limited) = (Bytes::ZERO, false);
}

#[test]
fn an_idle_time_needs_no_small_window() {
    let (mut bbr, mut view) = cruising();
    bbr.pacing_gain = 1.25;
    restart(&mut bbr, &mut view, 30_000);
    // At the bandwidth, whatever the phase.
    close(bbr.pacing, 8e6 * 0.99);
    ack(&mut bbr, &mut view, 30_100, 8.0, 100);
    assert_eq!(bbr.state, State::ProbeBandwidth);
    // What does not begin anew visits ProbeRTT ten seconds later.
    ack(&mut bbr, &mut view, 40_200, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
}

#[test]
fn the_small_window_of_probe_rtt_is_not_taken_for_the_bandwidth() {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(4_000);
    ack(&mut bbr, &mut view, 10_900, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    for round in 0..20 {
        ack(&mut bbr, &mut view, 10_901 + round * 10, 0.3, 100);
    }
    close(bbr.btlbw(), 8e6);
}

#[test]
fn probe_rtt_lasts_a_round_trip_with_the_small_window() {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(4_000);
    // The round that is under way began before the window was small.
    let began = view.delivered;
    ack_of(&mut bbr, &mut view, began - Bytes::new(1_000), 10_900, 8.0, 600);
    assert_eq!(bbr.state, State::ProbeRtt);
    ack_of(&mut bbr, &mut view, began, 11_200, 8.0, 600);
    assert_eq!(bbr.state, State::ProbeRtt);
    ack_of(&mut bbr, &mut view, began + Bytes::new(1_000), 11_500, 8.0, 600);
    assert_eq!(bbr.state, State::ProbeBandwidth);
}

#[test]
fn what_was_lost_does_not_leave_again_at_once() {
    let (mut bbr, mut view) = cruising();
    view.in_flight = Bytes::new(200_000);
    bbr.on_event(Time::from_millis(800), &Event::Congestion { sent_at: Time::ZERO }, &view);
    for packet in 0..50 {
        let lost = Event::Lost { packet: PacketNumber(packet), bytes: Bytes::new(1000), sent_at: Time::ZERO };
        bbr.on_event(Time::from_millis(800), &lost, &view);
    }
    close(bbr.cwnd, 151_000.0);
    let rest = Event::Lost { packet: PacketNumber(50), bytes: Bytes::new(150_500), sent_at: Time::ZERO };
    bbr.on_event(Time::from_millis(800), &rest, &view);
    close(bbr.cwnd, 1_000.0);
}

#[test]
fn a_timeout_ends_the_conservation_of_packets() {
    let (mut bbr, view) = cruising();
    bbr.on_event(Time::from_millis(800), &Event::Congestion { sent_at: Time::ZERO }, &view);
    assert!(bbr.conserve.is_some());
    bbr.on_event(Time::from_millis(900), &Event::Timeout { repeated: false }, &view);
    assert_eq!(bbr.conserve, None);
}

#[test]
fn a_recovery_within_probe_rtt_leaves_the_window_to_return_to() {
    let (mut bbr, mut view) = cruising();
    for _ in 0..1000 {
        ack(&mut bbr, &mut view, 800, 8.0, 100);
    }
    view.in_flight = Bytes::new(50_000);
    ack(&mut bbr, &mut view, 10_900, 8.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    bbr.on_event(Time::from_millis(10_910), &Event::Congestion { sent_at: Time::ZERO }, &view);
    ack(&mut bbr, &mut view, 10_950, 8.0, 120);
    assert!(!bbr.in_recovery);
    close(bbr.prior_cwnd, 206_000.0);
}

#[test]
fn startup_goes_on_after_probe_rtt_where_the_pipe_was_not_full() {
    let (mut bbr, mut view) = bbr();
    ack(&mut bbr, &mut view, 0, 1.0, 100);
    ack(&mut bbr, &mut view, 10_100, 2.0, 120);
    assert_eq!(bbr.state, State::ProbeRtt);
    ack(&mut bbr, &mut view, 10_300, 4.0, 120);
    assert_eq!(bbr.state, State::Startup);
    close(bbr.pacing_gain, HIGH_GAIN);
}

#[test]
fn packets_sent_at_once_are_one_two_or_a_millisecond() {
    let (mut bbr, _) = bbr();
    for (mbps, bytes) in [(1.1, 1_000.0), (1.2, 2_000.0), (23.9, 2_000.0), (24.0, 3_000.0), (800.0, 65_536.0)] {
        bbr.pacing = mbps * 1e6;
        close(bbr.quantum(), bytes);
    }
}
