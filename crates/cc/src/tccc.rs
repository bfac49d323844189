//! TCCC, throughput consistency congestion control (Yang et al., TNSM 2023): coupled slow start (CSS) and aggressive
//! congestion avoidance (ACA). TCCC+ decouples congestion avoidance of subflows that do not share a bottleneck.
//!
//! Differences from the print: algorithm 1 line 18 prints `alpha * rtt_r/min_rtt`
//! where only `alpha^(rtt_r/min_rtt)` grows all subflows alike; its line 15 is a no-op unless the second term is the new
//! sample; algorithm 2 adds packets where algorithm 1 adds bytes. Where the paper is silent: a loss in CSS ends it for all
//! subflows and the losing one halves; a join that would not fit under the threshold ends CSS; a subflow that joins after
//! CSS starts like a TCP up to its own estimate; a loss that would take the whole window leaves a packet, from which slow
//! start makes two.

use manypath_core::{Params, SpecError, SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;
use crate::event::{Acked, Event};
use crate::hoe::{Choice, Hoe};
use crate::sbd::Detector;

/// Growth per shortest round trip with one subflow: slow start with delayed acknowledgements (TCCC algorithm 1).
const INITIAL_ALPHA: f64 = 1.5;
/// Weight of the old value in the smoothed round-trip time (TCCC algorithm 1; spec: g).
const RTT_WEIGHT: f64 = 0.5;
/// The smallest slow-start threshold, packets (RFC 5681 eq. 4). Algorithm 2 often takes more than the window, which leaves
/// one packet; its increase is in proportion to the window, and alone would need as many round trips as the connection has
/// packets in flight to make two of it.
const MIN_SSTHRESH: f64 = 2.0;
/// Losses after which loss counters are halved, so that they follow changes (ours).
const LOSS_MEMORY: f64 = 50.0;
/// Loss events before loss rates are compared (ours).
const MIN_LOSS_EVENTS: f64 = 2.0;

/// How the expected throughput is made of the subflows' thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threshold {
    /// `max(ssth_r) / min(rtt_r)` (TCCC s3.2).
    #[default]
    Largest,
    /// `max(ssth_r / rtt_r)`: not too much when the largest threshold is a long path's.
    Rate,
}

/// Parameters of TCCC.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How thresholds are estimated.
    pub estimate: Choice,
    /// How the expected throughput is made of them.
    pub threshold: Threshold,
    /// Loss rates that differ by at most this share of the largest are the same (ours: the paper gives no test).
    pub tolerance: f64,
    /// So are those that differ by at most so many standard deviations of what the losses counted can tell (ours).
    pub deviations: f64,
    /// Finds out which subflows share a bottleneck.
    pub detector: Detector,
    /// Whether subflows with different bottlenecks are decoupled in congestion avoidance (TCCC+).
    pub decouple: bool,
}

impl Config {
    /// Reads the parameters of the registry row.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn from_params(params: &Params<'_>, decouple: bool) -> Result<Self, SpecError> {
        Ok(Self {
            estimate: Choice::from_params(params)?,
            threshold: params.choice("threshold", &[("largest", Threshold::Largest), ("rate", Threshold::Rate)])?,
            tolerance: params.number("tolerance", 0.0, 1.0)?,
            deviations: params.number("deviations", 0.0, 10.0)?,
            detector: Detector::from_params(params)?,
            decouple,
        })
    }
}

/// What TCCC knows of one subflow.
#[derive(Clone, Debug)]
struct Member {
    /// Whether it has sent.
    started: bool,
    /// Smoothed round-trip time, seconds (TCCC algorithm 1 line 15).
    rtt: Option<f64>,
    hoe: Hoe,
    /// The threshold, packets (spec: `ssth_r`): estimated, before that the one it began with, if any.
    ssthresh: Option<f64>,
    losses: Losses,
    /// Whether the congestion under way ended CSS: the subflow halves.
    halve: bool,
}

/// What a subflow lost lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Losses {
    /// Packets acknowledged and lost. Of the marked ones in a round trip one counts: a mark stands for a loss, and the engine
    /// tells the first.
    acked: f64,
    lost: f64,
    /// Events that lost them.
    events: f64,
}

impl Losses {
    fn packets(&self) -> f64 {
        (self.lost + self.acked).max(1.0)
    }

    /// Of all packets, the part that was lost.
    fn rate(&self) -> f64 {
        self.lost / self.packets()
    }

    fn count_packet(&mut self) {
        self.lost += 1.0;
        if self.lost >= LOSS_MEMORY {
            self.lost /= 2.0;
            self.acked /= 2.0;
            // Enough remain enough.
            self.events = (self.events / 2.0).max(self.events.min(MIN_LOSS_EVENTS));
        }
    }

    /// The variance of the difference between two rates that are the same in truth: of losses that come in events, each
    /// independent of the others, of which there are few.
    fn variance(&self, other: &Self) -> f64 {
        let lost = self.lost + other.lost;
        let rate = lost / (self.packets() + other.packets());
        let burst = lost / (self.events + other.events).max(1.0);
        rate * burst * (1.0 / self.packets() + 1.0 / other.packets())
    }
}

/// TCCC's rules.
#[derive(Clone, Debug)]
pub struct Tccc {
    config: Config,
    /// By subflow id.
    members: Vec<Option<Member>>,
    /// Whether the connection is in its initial slow start (spec: `ini_SS`).
    initial: bool,
    /// Growth of every subflow per shortest round trip (spec: alpha).
    alpha: f64,
}

/// Sums over the subflows coupled with one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sums {
    /// `sum w/rtt` (spec: S1).
    rate: f64,
    /// `sum w/rtt^2` (spec: S2).
    acceleration: f64,
    min_rtt: f64,
}

impl Tccc {
    /// The rules with their parameters.
    pub const fn new(config: Config) -> Self {
        Self { config, members: Vec::new(), initial: true, alpha: INITIAL_ALPHA }
    }

    fn member(&mut self, id: SubflowId) -> Option<&mut Member> {
        self.members.get_mut(id.index())?.as_mut()
    }

    /// The counting subflows coupled with `id`.
    fn coupled<'a>(&'a self, id: SubflowId, windows: &'a Windows) -> impl Iterator<Item = (SubflowId, &'a Window)> {
        let apart = move |other| self.config.decouple && self.config.detector.share(id, other) == Some(false);
        windows.counting().filter(move |(other, _)| !apart(*other))
    }

    fn sums(&self, id: SubflowId, windows: &Windows) -> Sums {
        let empty = Sums { rate: 0.0, acceleration: 0.0, min_rtt: f64::INFINITY };
        self.coupled(id, windows).fold(empty, |sums, (_, window)| Sums {
            rate: sums.rate + window.rate(),
            acceleration: sums.acceleration + window.rate() / window.rtt,
            min_rtt: sums.min_rtt.min(window.rtt),
        })
    }

    /// The largest threshold known, packets (spec: `con_ssth`); `None` before the first.
    fn con_ssth(&self) -> Option<f64> {
        self.members.iter().flatten().filter_map(|member| member.ssthresh).reduce(f64::max)
    }

    /// The expected throughput, packets per second (spec: `exp_th`); infinite before the first threshold is known.
    fn exp_th(&self, min_rtt: f64) -> f64 {
        let rate = |member: &Member| Some(member.ssthresh? / member.rtt?);
        let expected = match self.config.threshold {
            Threshold::Largest => self.con_ssth().map(|con_ssth| con_ssth / min_rtt),
            Threshold::Rate => self.members.iter().flatten().filter_map(rate).reduce(f64::max),
        };
        expected.unwrap_or(f64::INFINITY)
    }

    /// TCCC algorithm 1, exit: all subflows enter congestion avoidance together.
    fn leave_css(&mut self, windows: &mut Windows) {
        self.initial = false;
        for window in windows.iter_mut() {
            // A subflow that has not measured anything yet has a slow start of its own before it.
            if window.counts() || window.idle {
                window.ssthresh = window.cwnd;
            }
        }
    }

    /// Whether a subflow's window is in use.
    fn has_begun(&self, id: SubflowId, window: &Window) -> bool {
        let started = self.members.get(id.index()).and_then(Option::as_ref).is_some_and(|member| member.started);
        started && !window.failed && !window.idle
    }

    /// TCCC algorithm 1, join: the same finishing time with one subflow more. At its first packet, so that a subflow
    /// that stays idle slows nobody.
    fn on_start(&mut self, id: SubflowId, windows: &mut Windows) {
        let Some(member) = self.member(id) else { return };
        if core::mem::replace(&mut member.started, true) || !self.initial {
            return;
        }
        // Others that have sent but measured nothing yet are in the sum, too: they may have begun together.
        let others = windows.iter().filter(|(other, window)| *other != id && self.has_begun(*other, window));
        let total = others.map(|(_, window)| window.cwnd).sum::<f64>();
        let (Some(con_ssth), true) = (self.con_ssth(), total > 0.0) else { return };
        let new = total + windows.get(id).map_or(0.0, |window| window.cwnd);
        if con_ssth <= new {
            self.leave_css(windows);
            return;
        }
        let rounds = libm::log(con_ssth / total) / libm::log(self.alpha);
        self.alpha = libm::pow(con_ssth / new, 1.0 / rounds);
    }

    fn on_ack(&mut self, now: Time, id: SubflowId, acked: &Acked, windows: &mut Windows) {
        let Some(member) = self.members.get_mut(id.index()).and_then(Option::as_mut) else { return };
        let sample = acked.rtt.as_secs_f64().max(1e-6);
        let rtt = member.rtt.map_or(sample, |old| RTT_WEIGHT * old + (1.0 - RTT_WEIGHT) * sample);
        member.rtt = Some(rtt);
        member.losses.acked += 1.0;
        let estimate = member.hoe.on_ack(now, acked);
        let Some(window) = windows.get_mut(id) else { return };
        window.rtt = rtt;
        if let Some(bytes) = estimate {
            let packets = (bytes / window.mss).max(MIN_SSTHRESH);
            member.ssthresh = Some(packets);
            if !self.initial {
                window.ssthresh = window.ssthresh.min(packets);
            }
        }
        if self.initial {
            let sums = self.sums(id, windows);
            if sums.rate > self.exp_th(sums.min_rtt) {
                self.leave_css(windows);
            }
        }
    }

    fn count_loss(&mut self, id: SubflowId) {
        if let Some(member) = self.member(id) {
            member.losses.count_packet();
        }
    }

    fn on_loss(&mut self, id: SubflowId, windows: &mut Windows) {
        let initial = self.initial;
        if let Some(member) = self.member(id) {
            member.losses.events += 1.0;
            member.halve = initial;
        }
        if initial {
            self.leave_css(windows);
        }
    }

    /// TCCC algorithm 2: do the coupled subflows lose at the same rate? Before enough losses, those found to share a
    /// bottleneck do.
    fn same_loss_rate(&self, id: SubflowId, windows: &Windows) -> bool {
        let (mut least, mut most, mut events, mut sharing) = (None::<Losses>, None::<Losses>, 0.0, true);
        for (other, _) in self.coupled(id, windows) {
            let Some(Some(Member { losses, .. })) = self.members.get(other.index()) else { continue };
            least = Some(least.filter(|least| least.rate() <= losses.rate()).unwrap_or(*losses));
            most = Some(most.filter(|most| most.rate() >= losses.rate()).unwrap_or(*losses));
            events += losses.events.min(MIN_LOSS_EVENTS);
            sharing &= self.config.detector.share(id, other) == Some(true);
        }
        let same = least.zip(most).is_none_or(|(least, most)| self.alike(&least, &most));
        sharing || (events >= MIN_LOSS_EVENTS && same)
    }

    /// Whether two loss rates, the smaller first, are the same as far as anyone can tell.
    fn alike(&self, least: &Losses, most: &Losses) -> bool {
        let (difference, deviations) = (most.rate() - least.rate(), self.config.deviations);
        let chance = deviations * deviations * least.variance(most);
        difference <= self.config.tolerance * most.rate() || difference * difference <= chance
    }
}

impl Law for Tccc {
    const HEARS_DEPARTURES: bool = true;
    const LEAST_SSTHRESH: f64 = MIN_SSTHRESH;

    fn increase(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // TCCC algorithm 2 line 6: 1/(rtt_r min_rtt S2).
        let sums = self.sums(id, windows);
        1.0 / (own.rtt * sums.min_rtt * sums.acceleration)
    }

    fn decrease(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        let halve = self.member(id).is_some_and(|member| core::mem::take(&mut member.halve));
        if halve || !self.same_loss_rate(id, windows) {
            return own.cwnd / 2.0;
        }
        // TCCC algorithm 2 line 10. May exceed the window; the frame keeps a packet.
        let sums = self.sums(id, windows);
        sums.min_rtt * sums.rate * sums.rate / (2.0 * own.rtt * sums.acceleration)
    }

    fn slow_start(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        if !self.initial || !own.counts() {
            return 1.0;
        }
        // TCCC algorithm 1 lines 18 to 20: at most a packet for each that is acknowledged.
        let min_rtt = windows.counting().map(|(_, window)| window.rtt).fold(f64::INFINITY, f64::min);
        (libm::pow(self.alpha, own.rtt / min_rtt) - 1.0).min(1.0)
    }

    fn joined(&mut self, id: SubflowId, windows: &mut Windows) {
        if self.members.len() <= id.index() {
            self.members.resize_with(id.index() + 1, || None);
        }
        self.members[id.index()] = Some(Member {
            started: false,
            rtt: None,
            hoe: Hoe::new(self.config.estimate),
            ssthresh: windows.get(id).map(|window| window.ssthresh).filter(|ssthresh| ssthresh.is_finite()),
            losses: Losses::default(),
            halve: false,
        });
    }

    fn left(&mut self, id: SubflowId, _windows: &mut Windows) {
        if let Some(slot) = self.members.get_mut(id.index()) {
            *slot = None;
        }
        self.config.detector.forget(id);
    }

    fn observe(&mut self, now: Time, id: SubflowId, event: &Event, windows: &mut Windows, _view: &View) {
        match event {
            Event::Sent { .. } => self.on_start(id, windows),
            Event::Acked(acked) => self.on_ack(now, id, acked, windows),
            Event::Lost { .. } => self.count_loss(id),
            Event::Ecn { .. } => {
                self.count_loss(id);
                self.on_loss(id, windows);
            }
            Event::Congestion { .. } | Event::Timeout { .. } => self.on_loss(id, windows),
            Event::PathReport(report) => self.config.detector.on_report(id, report),
            _ => {}
        }
    }

    fn inspect(&self, id: SubflowId, _windows: &Windows, out: &mut dyn Probe) {
        out.value("initial_slow_start", f64::from(self.initial));
        out.value("alpha", self.alpha);
        if let Some(Some(member)) = self.members.get(id.index()) {
            out.value("estimated_ssthresh_packets", member.ssthresh.unwrap_or(0.0));
        }
    }
}

#[cfg(test)]
#[path = "tccc/tests.rs"]
mod tests;
