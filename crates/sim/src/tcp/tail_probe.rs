//! Tail loss probes (RFC 8985 s7): where nothing is heard for two round trips the last segment leaves once more, so that its
//! acknowledgement tells what was lost before the timer has to. Unsent data never leaves in its place: it is the session's.

use manypath_core::{Duration, PacketNumber, Time};
use manypath_scenario::Recovery;
use manypath_session::record::SendTime;

use super::{Phase, Sender, TICK};
use crate::carrier::Fate;
use crate::packet::Number;

/// What a probe waits for beyond two round trips, as in Linux (`TCP_TIMEOUT_MIN_US`).
const PROBE_MARGIN: Duration = Duration::from_millis(2);

/// A tail loss probe whose fate is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    left_at: Time,
    /// The packet that it repeats.
    packet: PacketNumber,
    /// One past the highest segment that had left (spec: TLP.end_seq).
    end: u64,
}

impl Sender {
    /// RFC 8985 s7.2 with the delays of Linux: after two round trips without a word, if nothing tells of a loss and no probe is
    /// under way. A lone segment's acknowledgement may be delayed.
    pub(super) fn probe_at(&self) -> Time {
        let nothing_else = self.phase == Phase::Open && self.probe.is_none() && self.highest[0] <= self.base;
        if self.config.recovery != Recovery::Rack || !nothing_else {
            return Time::MAX;
        }
        let margin = if self.segments.len() == 1 { self.config.min_rto.max(PROBE_MARGIN) } else { PROBE_MARGIN };
        self.active_at + self.rtt.srtt().unwrap_or(self.handshake_rtt) * 2 + margin
    }

    /// RFC 8985 s7.3: the last segment leaves once more, and the timer starts anew.
    pub(super) fn send_probe(&mut self, now: Time) -> Option<(PacketNumber, Number)> {
        let last = self.segments.back_mut()?;
        last.sent_at = now;
        last.repeated = true;
        let packet = last.last;
        self.timer = now;
        self.probe = Some(TailProbe { left_at: now, packet, end: self.base + self.segments.len() as u64 });
        Some((packet, self.departs(now, self.segments.len() - 1)))
    }

    /// RFC 8985 s7.4: where the probe arrived and what it repeats did not, a loss was repaired that nothing else tells of. Time
    /// stamps say which of the two came (RFC 3522 s3), sooner than D-SACK; a lone segment whose acknowledgement is lost, or
    /// waits for longer than the probe, passes for lost.
    pub(super) fn judge_probe(&mut self, now: Time, echo: SendTime, fate: &mut impl FnMut(PacketNumber, Fate)) {
        let Some(probe) = self.probe.filter(|probe| self.base >= probe.end) else { return };
        self.probe = None;
        // The probe left two milliseconds at least after what it repeats.
        if echo.elapsed(now) <= now.since(probe.left_at) + TICK {
            fate(probe.packet, Fate::BeginsRecovery);
            fate(probe.packet, Fate::Recovered);
        }
    }
}
