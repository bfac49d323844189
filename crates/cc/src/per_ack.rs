//! Growth counted in acknowledgements instead of packets, as the out-of-tree kernel does (Linux MPTCP 0.9x,
//! `mptcp_coupled.c` and `mptcp_balia.c` add one to `snd_cwnd_cnt` for each acknowledgement, `mptcp_olia.c` one increase, where
//! `tcp_reno_cong_avoid` adds the packets it covers).
//!
//! With delayed acknowledgements a window grows half as fast as RFC 6356 and the drafts say. It is why papers that measured
//! that kernel found LIA well below a TCP beside it.

use manypath_core::{SubflowId, Time, View};

use crate::aimd::{Law, Window, Windows};
use crate::controller::Probe;
use crate::event::Event;

/// A law that grows once for an acknowledgement, whatever that covers. Slow start is as it was.
#[derive(Clone, Debug)]
pub struct PerAck<L> {
    inner: L,
    /// When each subflow was last acknowledged. Packets that one acknowledgement covers are reported at the same time.
    last: Vec<Option<Time>>,
    /// Whether the packet under way is the first of its acknowledgement.
    first: bool,
}

impl<L> PerAck<L> {
    /// `inner`, counting acknowledgements.
    pub const fn new(inner: L) -> Self {
        Self { inner, last: Vec::new(), first: true }
    }
}

impl<L: Law> Law for PerAck<L> {
    const HEARS_DEPARTURES: bool = L::HEARS_DEPARTURES;
    const LEAST_SSTHRESH: f64 = L::LEAST_SSTHRESH;

    fn increase(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        if self.first { self.inner.increase(id, own, windows) } else { 0.0 }
    }

    fn decrease(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        self.inner.decrease(id, own, windows)
    }

    fn slow_start(&mut self, id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        self.inner.slow_start(id, own, windows)
    }

    fn joined(&mut self, id: SubflowId, windows: &mut Windows) {
        self.inner.joined(id, windows);
    }

    fn left(&mut self, id: SubflowId, windows: &mut Windows) {
        self.inner.left(id, windows);
    }

    fn observe(&mut self, now: Time, id: SubflowId, event: &Event, windows: &mut Windows, view: &View) {
        if matches!(event, Event::Acked(_)) {
            if self.last.len() <= id.index() {
                self.last.resize(id.index() + 1, None);
            }
            self.first = self.last[id.index()].replace(now) != Some(now);
        }
        self.inner.observe(now, id, event, windows, view);
    }

    fn inspect(&self, id: SubflowId, windows: &Windows, out: &mut dyn Probe) {
        self.inner.inspect(id, windows, out);
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::Duration;

    use super::*;
    use crate::aimd::tests::{acked, close, decreases, windows};
    use crate::lia::Lia;

    #[test]
    fn the_second_packet_of_an_acknowledgement_does_not_count() {
        let mut windows = windows(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut law = PerAck::new(Lia);
        let event = acked(Duration::from_millis(100));
        let mut growth = |ms: u64, id: u32| {
            let id = SubflowId(id);
            law.observe(Time::from_millis(ms), id, &event, &mut windows, &View::default());
            let own = windows.get(id).unwrap().clone();
            law.increase(id, &own, &windows)
        };
        close(growth(1, 0), 0.025);
        close(growth(1, 0), 0.0);
        close(growth(1, 1), 0.025);
        close(growth(2, 0), 0.025);
        close(decreases(&mut law, &windows)[0], 5.0);
    }
}
