//! What BBRv3 believes of the path, and what each packet in flight saw when it left (draft-ietf-ccwg-bbr-06).

use std::collections::VecDeque;

use manypath_core::{Bytes, PacketNumber};

use crate::event::Acked;

/// Loss rate that a probe may cause (s2.8 `LossThresh`).
pub(super) const LOSS_THRESH: f64 = 0.02;
/// What a bound keeps after loss (s2.8 `Beta`).
pub(super) const BETA: f64 = 0.7;
/// Share of the long-term bound left to others (s2.8 `Headroom`).
pub(super) const HEADROOM: f64 = 0.15;
/// Packets whose sending is remembered: beyond a window of 90 MB nothing is learned from the oldest.
const MAX_FLIGHTS: usize = 65_536;

/// States (s5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// Which phase the acknowledgements coming in belong to (s2.14 `ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Gains of pacing rate and window in each state (s2.5, s2.6 and s5.6.1).
pub(super) const fn gains(state: State) -> (f64, f64) {
    match state {
        // 4 ln 2.
        State::Startup => (2.772_588_722_239_781, 2.0),
        State::Drain => (0.5, 2.0),
        State::Down => (0.9, 2.0),
        State::Cruise | State::Refill => (1.0, 2.0),
        State::Up => (1.25, 2.25),
        State::ProbeRtt => (1.0, 0.5),
    }
}

/// s5.5.10.2 `InflightAtLoss`: bytes in flight when the losses since passed the threshold, given those in flight and lost with the
/// packet of `bytes`. Where they had passed it before, which the draft does not look at, none of this packet fits (Linux).
pub(super) fn inflight_at_loss(in_flight: f64, lost: f64, bytes: f64) -> f64 {
    let (before, lost_before) = (in_flight - bytes, lost - bytes);
    before + ((LOSS_THRESH * before - lost_before) / (1.0 - LOSS_THRESH)).max(0.0)
}

/// What a packet saw when it left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flight {
    /// Bytes in flight, itself included.
    pub(super) in_flight: f64,
    /// Bytes lost so far.
    pub(super) lost: f64,
    pub(super) app_limited: bool,
}

/// The packets in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    /// Number of the first.
    first: u64,
    flights: VecDeque<Option<Flight>>,
    /// Bytes lost so far.
    pub(super) lost: f64,
}

impl Flights {
    pub(super) fn send(&mut self, packet: PacketNumber, in_flight: f64, app_limited: bool) {
        let next = self.first.wrapping_add(self.flights.len() as u64);
        if packet.0 != next {
            // Numbers are contiguous; after a gap nothing of before is known.
            self.flights.clear();
            self.first = packet.0;
        }
        if self.flights.len() == MAX_FLIGHTS {
            self.flights.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.flights.push_back(Some(Flight { in_flight, lost: self.lost, app_limited }));
    }

    /// Takes a packet out; `None` if it is not known.
    pub(super) fn take(&mut self, packet: PacketNumber) -> Option<Flight> {
        let index = usize::try_from(packet.0.checked_sub(self.first)?).ok()?;
        let flight = self.flights.get_mut(index)?.take();
        while self.flights.front().is_some_and(Option::is_none) {
            self.flights.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        flight
    }
}

/// Bandwidth and inflight bounds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model {
    /// Largest delivery rate of the last and of this probing cycle, bit/s (`MaxBwFilterLen` = 2).
    cycles: [f64; 2],
    /// Short-term bandwidth bound, bit/s (`bw_shortterm`).
    bandwidth_short: f64,
    /// Bounds on bytes in flight (`inflight_longterm`, `inflight_shortterm`).
    pub(super) inflight_long: f64,
    pub(super) inflight_short: f64,
    /// Largest of the loss round (`bw_latest`, `inflight_latest`).
    pub(super) bandwidth_latest: f64,
    pub(super) inflight_latest: f64,
    /// `delivered` that ends the loss round.
    loss_round: Bytes,
    loss_in_round: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            cycles: [0.0; 2],
            bandwidth_short: f64::INFINITY,
            inflight_long: f64::INFINITY,
            inflight_short: f64::INFINITY,
            bandwidth_latest: 0.0,
            inflight_latest: 0.0,
            loss_round: Bytes::ZERO,
            loss_in_round: false,
        }
    }
}

impl Model {
    pub(super) fn max_bandwidth(&self) -> f64 {
        self.cycles[0].max(self.cycles[1])
    }

    /// s5.5.10.3: within the short-term bound.
    pub(super) fn bandwidth(&self) -> f64 {
        self.max_bandwidth().min(self.bandwidth_short)
    }

    /// s5.5.10: signals of the round, and what they teach. `limited`: the sample is not of what the path carries. `probing`: losses
    /// then are expected. Says whether a loss round ends: [`advance_latest`](Self::advance_latest) follows when the acknowledgement has
    /// been dealt with.
    pub(super) fn on_ack(&mut self, acked: &Acked, delivered: Bytes, limited: bool, probing: bool, cwnd: f64) -> bool {
        let rate = acked.delivery_rate.as_bps();
        let flown = (delivered - acked.delivered_at_send).as_f64();
        self.bandwidth_latest = self.bandwidth_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(flown);
        if rate >= self.max_bandwidth() || !limited {
            self.cycles[1] = self.cycles[1].max(rate);
        }
        if acked.delivered_at_send < self.loss_round {
            return false;
        }
        self.loss_round = delivered;
        if !probing && self.loss_in_round {
            // s5.5.10.3.
            if self.bandwidth_short.is_infinite() {
                self.bandwidth_short = self.max_bandwidth();
            }
            if self.inflight_short.is_infinite() {
                self.inflight_short = cwnd;
            }
            self.bandwidth_short = self.bandwidth_latest.max(BETA * self.bandwidth_short);
            self.inflight_short = self.inflight_latest.max(BETA * self.inflight_short);
        }
        self.loss_in_round = false;
        true
    }

    /// s5.5.10.3 `AdvanceLatestDeliverySignals`: the next loss round begins with this acknowledgement.
    pub(super) fn advance_latest(&mut self, acked: &Acked, delivered: Bytes) {
        self.bandwidth_latest = acked.delivery_rate.as_bps();
        self.inflight_latest = (delivered - acked.delivered_at_send).as_f64();
    }

    /// s5.5.10.2 `NoteLoss`: the first loss begins a round; says whether it was the first.
    pub(super) fn note_loss(&mut self, delivered: Bytes) -> bool {
        let first = !core::mem::replace(&mut self.loss_in_round, true);
        if first {
            self.loss_round = delivered;
        }
        first
    }

    /// A probing cycle has ended: bandwidths of the one before it are forgotten.
    pub(super) fn advance_cycle(&mut self) {
        self.cycles = [self.cycles[1], 0.0];
    }

    pub(super) fn reset_latest(&mut self) {
        self.loss_in_round = false;
        self.bandwidth_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn reset_short_term(&mut self) {
        self.bandwidth_short = f64::INFINITY;
        self.inflight_short = f64::INFINITY;
    }
}
