//! The round trips of paths that carry no data: no acknowledgement measures those.
//!
//! A scheduler that leaves a path out for its round trip would never hear that it is short again, and an end that only
//! receives knows no round trip at all to choose the path of its windows by. So while data moves, usable paths that
//! carry none of it and were not measured for a second are probed, where there are several. A probe that is not
//! answered is no sign of failure, as one packet on an otherwise idle path may be lost: keep-alive and data are for
//! that. It only makes the next one wait for twice as long.

use manypath_core::{Duration, SubflowId, SubflowState, SubflowView, Time};

use crate::config::Carriage;
use crate::outgoing::Transmit;
use crate::path::Path;
use crate::record::Record;
use crate::session::Session;

/// So long a measurement holds (RFC 6298 s2.4: no shorter silence is a timeout), and so long after the last data a
/// session counts as moving some.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is known of the age of a path's round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    /// When the last sample was taken, of whatever.
    measured_at: Option<Time>,
    /// The last probe and when it left.
    probe: Option<(u32, Time)>,
    /// When the first probe left after the last sample.
    unanswered_since: Option<Time>,
    /// How long the next one waits for its answer.
    patience: Duration,
}

impl Age {
    pub(crate) const fn new() -> Self {
        Self { measured_at: None, probe: None, unanswered_since: None, patience: INTERVAL }
    }

    /// A sample was taken.
    pub(crate) fn on_sample(&mut self, now: Time) {
        self.measured_at = Some(now);
        self.unanswered_since = None;
    }

    /// A probe leaves.
    fn on_probe(&mut self, now: Time, token: u32) {
        self.patience = if self.unanswered_since.is_none() { INTERVAL } else { self.patience * 2 };
        self.unanswered_since.get_or_insert(now);
        self.probe = Some((token, now));
    }

    /// When the probe left that this answers, if nothing was measured since.
    fn probed_at(&self, token: u32) -> Option<Time> {
        let (_, at) = self.probe.filter(|(sent, _)| *sent == token)?;
        self.unanswered_since.map(|_| at)
    }

    /// When the path is to be measured.
    fn due(&self) -> Time {
        let measured = self.measured_at.map_or(Time::ZERO, |at| at + INTERVAL);
        self.probe.map_or(measured, |(_, at)| measured.max(at + self.patience))
    }
}

impl Path {
    /// A probe of an idle path was answered: what was known of its round trip is as old as its last data.
    pub(crate) fn on_age_answered(&mut self, now: Time, token: u32, view: &mut SubflowView) -> bool {
        let Some(left_at) = self.age.probed_at(token).filter(|_| view.state == SubflowState::Active) else {
            return false;
        };
        self.measure_anew(now, now.since(left_at), view);
        self.on_alive(now);
        true
    }

    /// Whether the path had been asked and had said nothing for as long as one takes to fail, when another was heard.
    pub(crate) fn is_silent(&self, heard: Time) -> bool {
        self.age.unanswered_since.is_some_and(|asked| asked.max(self.active_at) + self.failure_after() < heard)
    }
}

impl Session {
    /// Data leaves or comes.
    #[inline]
    pub(crate) fn on_busy(&mut self, now: Time) {
        // A carrier of streams has no probes.
        if self.busy_until <= now && self.config.carriage == Carriage::Datagrams {
            self.look_at = now;
            self.stir(Time::ZERO);
        }
        self.busy_until = now + INTERVAL;
    }

    /// The next probe of a path that carries nothing, once all that can has been sent.
    pub(crate) fn poll_idle(&mut self, now: Time) -> Option<Transmit> {
        if now < self.look_at {
            return None;
        }
        if let Some(id) = self.first_unmeasured(now) {
            let path = self.path_mut(id)?;
            let token = path.next_token();
            path.age.on_probe(now, token);
            return Some(Transmit { subflow: id, record: Record::Ping { token }, packet: None, repeats: None });
        }
        self.look_at = if now < self.busy_until { now + INTERVAL } else { Time::MAX };
        self.stir(Time::ZERO);
        None
    }

    /// The first path that is to be measured: only usable ones matter to anybody, and where there is a choice.
    fn first_unmeasured(&self, now: Time) -> Option<SubflowId> {
        self.view.usable().nth(1)?;
        let mut idle = self.view.usable().filter(|view| view.in_flight.is_zero() && view.queued.is_zero());
        let is_due = |path: &Path| path.carrier_ready && path.age.due() <= now;
        idle.find(|view| self.path(view.id).is_some_and(is_due)).map(|view| view.id)
    }
}
