//! How late a packet may be before it counts as lost (RFC 9002 s6.1), learned where a path reorders.
//!
//! RFC 9002 has two thresholds and lets implementations adapt both. Here they are its own until a packet that was declared lost
//! arrives. From then on the path is judged by time alone, as RACK judges one that was seen to reorder (RFC 8985 s6.2 step 4), and
//! packets may be as late as that one was. Like RACK's, this time is at most another round trip, and after sixteen episodes of loss
//! without a packet that was only late it is the RFC's again.

use crate::time::Duration;

/// RFC 9002 s6.1.1, `kPacketThreshold`: a packet is lost when one so much later is acknowledged.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 s6.1.2, `kTimeThreshold` is nine eighths of the round trip: what is added to it, in eighths, at first and at most.
const EIGHTHS: (u64, u64) = (1, 8);
/// RFC 9002 s6.1.2: `kGranularity`.
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 8985 s6.2 step 4, `RACK.reo_wnd_persist`: for so many episodes of loss counts how late a packet was.
const PERSISTENCE: u32 = 16;

/// How late a path's packets may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// A packet that was declared lost has arrived.
    reorders: bool,
    /// What is added to the round trip, in eighths of it.
    eighths: u64,
    /// For so many episodes more.
    persists: u32,
    /// Packets below are lost in the episode of the last loss.
    episode_end: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { reorders: false, eighths: EIGHTHS.0, persists: 0, episode_end: 0 }
    }
}

impl Lateness {
    /// A packet is lost when one so much later is acknowledged.
    pub fn packets(&self) -> u64 {
        if self.reorders { u64::MAX } else { PACKET_THRESHOLD }
    }

    /// It is lost when it left so long ago and a later one is acknowledged. `rtt`: the latest round trip or the smoothed one,
    /// whichever is longer.
    pub fn time(&self, rtt: Duration) -> Duration {
        (rtt * (8 + self.eighths) / 8).max(GRANULARITY)
    }

    /// The packet of this number is declared lost; `next` has not left yet.
    pub fn on_lost(&mut self, number: u64, next: u64) {
        if number < self.episode_end {
            return;
        }
        self.episode_end = next;
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.eighths = EIGHTHS.0;
        }
    }

    /// A packet that was declared lost is acknowledged, so long after it left.
    pub fn on_arrived_late(&mut self, after: Duration, rtt: Duration) {
        self.reorders = true;
        self.persists = PERSISTENCE;
        let eighth = (rtt / 8).as_nanos().max(1);
        let needed = (after - rtt).as_nanos().div_ceil(eighth);
        self.eighths = self.eighths.max(needed).min(EIGHTHS.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(80);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn thresholds_are_the_rfcs_where_nothing_came_late() {
        let mut lateness = Lateness::default();
        (0..100).for_each(|number| lateness.on_lost(number, number + 1));
        assert_eq!((lateness.packets(), lateness.time(RTT)), (3, ms(90)));
        assert_eq!(lateness.time(Duration::from_micros(80)), ms(1));
    }

    #[test]
    fn packets_may_be_as_late_as_one_was_and_at_most_a_round_trip() {
        // What came within the time threshold was declared lost by the packet threshold.
        for (after, time) in [(20, 90), (85, 90), (101, 110), (110, 110), (159, 160), (1000, 160)] {
            let mut lateness = Lateness::default();
            lateness.on_arrived_late(ms(after), RTT);
            assert_eq!((lateness.packets(), lateness.time(RTT)), (u64::MAX, ms(time)), "{after}");
        }
        let mut lateness = Lateness::default();
        lateness.on_arrived_late(ms(120), RTT);
        lateness.on_arrived_late(ms(85), RTT);
        assert_eq!(lateness.time(RTT), ms(120));
        lateness.on_arrived_late(Duration::ZERO, Duration::ZERO);
        assert_eq!(lateness.time(RTT), ms(120));
    }

    #[test]
    fn it_is_forgotten_after_sixteen_episodes_but_for_the_order() {
        let mut lateness = Lateness::default();
        lateness.on_arrived_late(ms(120), RTT);
        for episode in 0..15 {
            // Two packets of one episode.
            lateness.on_lost(10 * episode, 10 * (episode + 1));
            lateness.on_lost(10 * episode + 5, 10 * (episode + 1));
        }
        assert_eq!(lateness.time(RTT), ms(120));
        let mut again = lateness.clone();
        lateness.on_lost(150, 160);
        assert_eq!((lateness.packets(), lateness.time(RTT)), (u64::MAX, ms(90)));
        again.on_arrived_late(ms(81), RTT);
        again.on_lost(150, 160);
        assert_eq!(again.time(RTT), ms(120), "another came late meanwhile");
    }
}
