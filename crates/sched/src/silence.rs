//! Whether a subflow owes an answer for longer than it should take.
//!
//! The session gives a path up after a quarter of a second at the soonest, since radios and threads pause, too. Schedulers doubt it
//! sooner: a subflow that has not been heard for its retransmission timeout (RFC 6298 s2.3) is silent until it is heard again.

use manypath_core::{Bytes, Duration, SubflowView, Time};

/// What delays acknowledgements besides the way: they may be held back for 5 ms, and threads wake late.
pub(crate) const LATE: Duration = Duration::from_millis(10);

/// For how long a subflow has owed an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// What had been delivered when it was heard last, and since when it has owed an answer; `None` if it owes none.
    since: Option<(Bytes, Time)>,
}

impl Silence {
    /// Nothing was sent yet.
    pub(crate) const NONE: Self = Self { since: None };

    pub(crate) fn add(&mut self, now: Time, subflow: &SubflowView) {
        if subflow.in_flight.is_zero() {
            self.since = None;
        } else if self.since.is_none_or(|(delivered, _)| delivered != subflow.delivered) {
            self.since = Some((subflow.delivered, now));
        }
    }

    /// When the subflow becomes silent, or became it.
    pub(crate) fn begins(&self, subflow: &SubflowView) -> Option<Time> {
        let (_, since) = self.since?;
        Some(since + subflow.srtt? + subflow.rttvar * 4 + LATE)
    }

    /// How long a subflow that is silent has not been heard.
    pub(crate) fn lasts(&self, now: Time, subflow: &SubflowView) -> Option<Duration> {
        let (_, since) = self.since?;
        self.begins(subflow).filter(|begins| *begins < now).map(|_| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, subflow};

    #[test]
    fn a_subflow_is_silent_after_its_timeout_until_it_is_heard() {
        let at = Time::from_millis;
        let mut path = subflow(0, 40, 10, 1);
        path.rttvar = Duration::from_millis(5);
        let mut silence = Silence::NONE;
        silence.add(at(100), &path);
        silence.add(at(150), &path);
        // 40 ms, four times 5 and 10.
        assert_eq!(silence.begins(&path), Some(at(170)));
        assert_eq!(silence.lasts(at(170), &path), None);
        assert_eq!(silence.lasts(at(171), &path), Some(Duration::from_millis(71)));
        path.delivered = Bytes::new(MSS);
        silence.add(at(180), &path);
        assert_eq!(silence.begins(&path), Some(at(250)));
        path.in_flight = Bytes::ZERO;
        silence.add(at(300), &path);
        assert_eq!((silence.begins(&path), silence.lasts(at(400), &path)), (None, None), "it owes nothing");
    }

    #[test]
    fn one_that_was_never_heard_is_not_silent() {
        let mut path = subflow(0, 40, 10, 1);
        path.srtt = None;
        let mut silence = Silence::NONE;
        silence.add(Time::ZERO, &path);
        assert_eq!(silence.lasts(Time::from_millis(9_000), &path), None);
    }
}
