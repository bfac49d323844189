//! BBRv3's cycle of bandwidth probes (draft-ietf-ccwg-bbr-06 s5.3.3).

use manypath_core::{Bytes, Duration, SubflowView, Time};
use rand_core::Rng as _;

use super::Bbr3;
use super::model::{AckPhase, Flight, HEADROOM, LOSS_THRESH, State};

/// The smallest window, packets (s2.8 `MinPipeCwnd`).
pub(super) const MIN_WINDOW: f64 = 4.0;
/// Rounds between bandwidth probes at most, for coexistence with Reno (s5.3.3.8).
const MAX_RENO_ROUNDS: f64 = 63.0;

impl Bbr3 {
    pub(super) fn is_probing_bandwidth(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// s5.3.3.2: leaves a share of what was found unused.
    pub(super) fn with_headroom(&self) -> f64 {
        let bound = self.model.inflight_long;
        let headroom = (HEADROOM * bound).max(self.mss);
        if bound.is_finite() { (bound - headroom).max(MIN_WINDOW * self.mss) } else { f64::INFINITY }
    }

    /// s5.3.3.9 `AdaptLongTermModel`, once a round trip; `limited`: the application limited the rate's sample. Says whether it began
    /// another state.
    pub(super) fn end_ack_phase(&mut self, limited: bool, new_round: bool, delivered: Bytes) -> bool {
        if !self.full_reached || !new_round {
            return false;
        }
        match self.ack_phase {
            AckPhase::Starting => self.ack_phase = AckPhase::Feedback,
            AckPhase::Stopping => {
                self.probe_samples = false;
                self.ack_phase = AckPhase::Init;
                if self.is_probing_bandwidth() && !limited {
                    self.model.advance_cycle();
                }
                // s5.3.3.6: the cautious probe lost nothing much, and the next goes on where it ended.
                if self.is_probing_bandwidth() && self.probed_cautiously && !self.probed_too_high {
                    self.start_refill(delivered);
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    /// s5.3.3.9 `AdaptLongTermModel`: what went well may be in flight again.
    pub(super) fn adapt_long_term(&mut self, flight: &Flight, acked: f64, new_round: bool, limited: bool) {
        let too_high = self.flights.lost - flight.lost > LOSS_THRESH * flight.in_flight;
        if self.full_reached && !too_high && self.model.inflight_long.is_finite() {
            self.model.inflight_long = self.model.inflight_long.max(flight.in_flight);
            if self.state == State::Up {
                self.raise_long_term(acked, new_round, limited);
            }
        }
    }

    /// s5.3.3.9 `ProbeInflightLongtermUpward`: slowly at first, doubling every round trip.
    fn raise_long_term(&mut self, acked: f64, new_round: bool, limited: bool) {
        if !limited || self.cwnd < self.model.inflight_long {
            return;
        }
        self.up_acked += acked;
        if self.up_acked >= self.up_count {
            let packets = libm::floor(self.up_acked / self.up_count);
            self.up_acked -= packets * self.up_count;
            self.model.inflight_long += packets * self.mss;
        }
        if new_round {
            self.raise_slope();
        }
    }

    fn raise_slope(&mut self) {
        let growth = self.mss * f64::from(1u32 << self.up_rounds.min(30));
        self.up_rounds = (self.up_rounds + 1).min(30);
        // Bytes acknowledged for one packet more: one window yields `growth` bytes.
        self.up_count = (self.cwnd / growth).max(1.0) * self.mss;
    }

    /// s5.3.3.9 `UpdateProbeBWCyclePhase`, after `acked` bytes.
    pub(super) fn update_cycle(
        &mut self,
        now: Time,
        view: &SubflowView,
        acked: f64,
        new_round: bool,
        cwnd_limited: bool,
    ) {
        let (in_flight, delivered) = (view.in_flight.as_f64(), view.delivered);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => self.start_refill(delivered),
            State::Down => {
                let drained = in_flight <= self.with_headroom();
                if drained && in_flight <= self.inflight(self.model.max_bandwidth()) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if new_round => self.start_up(),
            State::Up => {
                // s5.3.3.6: another packet would have been above what was too much the last time.
                if self.probed_too_high && in_flight + acked + self.mss > self.model.inflight_long {
                    self.probed_cautiously = true;
                } else if cwnd_limited && self.cwnd >= self.model.inflight_long {
                    self.reset_full(self.model.bandwidth_latest);
                    return;
                } else if !self.full_now {
                    return;
                }
                self.probed_too_high = false;
                self.start_down(now, delivered);
            }
            _ => {}
        }
    }

    /// s5.3.3.8.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno = (self.target() / self.mss).min(MAX_RENO_ROUNDS);
        now.since(self.cycle_at) > self.probe_wait || self.rounds_since_probe as f64 >= reno
    }

    pub(super) fn start_down(&mut self, now: Time, delivered: Bytes) {
        self.model.reset_latest();
        self.up_count = f64::INFINITY;
        // s5.3.3.8: 2 to 3 seconds, so that flows do not probe together.
        let bits = self.random.next_u64();
        self.rounds_since_probe = bits & 1;
        self.probe_wait = Duration::from_secs(2) + Duration::from_nanos((bits >> 1) % 1_000_000_000);
        self.cycle_at = now;
        self.ack_phase = AckPhase::Stopping;
        // What comes back of the probe takes a round trip from now.
        self.rounds = self.rounds.restarted_at(delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, delivered: Bytes) {
        self.model.reset_short_term();
        self.up_rounds = 0;
        self.up_acked = 0.0;
        self.probed_cautiously = false;
        self.ack_phase = AckPhase::Refilling;
        self.state = State::Refill;
        // The round that refills begins now.
        self.rounds = self.rounds.restarted_at(delivered);
    }

    /// At the start of a round.
    fn start_up(&mut self) {
        self.probe_samples = true;
        self.ack_phase = AckPhase::Starting;
        self.reset_full(self.model.bandwidth_latest);
        self.raise_slope();
        self.state = State::Up;
    }
}
