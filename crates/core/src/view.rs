//! The read-only view of a connection's subflows that controllers and schedulers share.
//!
//! The session measures once and updates the view in place; algorithms read it and never write.

use crate::ids::SubflowId;
use crate::quantity::{Bytes, Rate};
use crate::time::{Duration, Time};

/// Whether a subflow may carry data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubflowState {
    /// It may carry data.
    #[default]
    Active,
    /// Nothing has been heard on it for a retransmission timeout: only probes are sent until something is heard again.
    Failed,
    /// It was removed; its entry is kept so that ids stay indices.
    Closed,
}

/// Whether a subflow is for every day or for need (the backup flag of RFC 8684 s3.3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Used whenever it can carry data.
    #[default]
    Normal,
    /// Used only while no normal subflow is active.
    Backup,
}

/// Shorter silence is not idle, however short the round trip (RFC 6298 s2.4).
const MIN_IDLE: Duration = Duration::from_secs(1);

/// What is known of one subflow.
///
/// Amounts (`cwnd`, `in_flight`, `queued`, `mss`) count the bytes of data records: payload and record header together.
#[derive(Clone, Debug, PartialEq)]
pub struct SubflowView {
    /// Who this is.
    pub id: SubflowId,
    /// Whether it may carry data.
    pub state: SubflowState,
    /// Everyday path or backup.
    pub priority: Priority,
    /// Relative cost of a byte (Uni-MPTCP's `P_c`); unit chosen by the user; 1 by default.
    pub cost: f64,
    /// The largest data record a datagram of this subflow carries, header included.
    pub mss: Bytes,
    /// Smoothed round-trip time (RFC 9002 s5.3); `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The most recent round-trip time sample.
    pub latest_rtt: Duration,
    /// Smallest round-trip time seen.
    pub min_rtt: Duration,
    /// How long acknowledgements are on their way back, by the delays that the peer reports. What all subflows have in common
    /// is a guess, since their clocks differ: what tells something is the difference between subflows. `None`: unknown.
    pub way_back: Option<Duration>,
    /// Largest round-trip time seen.
    pub max_rtt: Duration,
    /// Mean deviation of the round-trip time (RFC 9002 s5.3 `rttvar`).
    pub rttvar: Duration,
    /// Congestion window, as the controller last said.
    pub cwnd: Bytes,
    /// Slow-start threshold, as the controller last said; [`Bytes::MAX`] when it has none.
    pub ssthresh: Bytes,
    /// Pacing rate, as the controller last said; `None` where its window is all it says.
    pub pacing: Option<Rate>,
    /// Whether such a window leaves spread over a round trip (RFC 9002 s7.7; the kernel's `sk_pacing_status`) and not as
    /// acknowledgements come.
    pub spreads_windows: bool,
    /// Sent and neither acknowledged nor declared lost.
    pub in_flight: Bytes,
    /// Given to the subflow by the scheduler and not yet sent (the kernel's `write_seq - snd_nxt`).
    pub queued: Bytes,
    /// All bytes acknowledged on the subflow so far.
    pub delivered: Bytes,
    /// Most recent delivery rate sample (draft-ietf-ccwg-bbr s4.1); zero before the first.
    pub delivery_rate: Rate,
    /// Whether the most recent delivery rate sample was limited by the application.
    pub rate_app_limited: bool,
    /// Share of packets lost, smoothed over about the last hundred packets, in 0..=1.
    pub loss: f64,
    /// Whether a recovery episode is under way (RFC 9002 s7.3.2).
    pub in_recovery: bool,
    /// Whether the subflow has room that the application does not fill.
    pub app_limited: bool,
    /// When the last data packet left; `None` before the first.
    pub last_sent: Option<Time>,
}

impl SubflowView {
    /// A subflow about which nothing has been measured yet.
    pub fn new(id: SubflowId, mss: Bytes) -> Self {
        Self {
            id,
            state: SubflowState::Active,
            priority: Priority::Normal,
            cost: 1.0,
            mss,
            srtt: None,
            latest_rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            way_back: None,
            max_rtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            cwnd: Bytes::ZERO,
            ssthresh: Bytes::MAX,
            pacing: None,
            spreads_windows: false,
            in_flight: Bytes::ZERO,
            queued: Bytes::ZERO,
            delivered: Bytes::ZERO,
            delivery_rate: Rate::ZERO,
            rate_app_limited: false,
            loss: 0.0,
            in_recovery: false,
            app_limited: false,
            last_sent: None,
        }
    }

    /// Whether it has nothing under way and has sent nothing for a retransmission timeout (RFC 5681 s4.1), at least the second of
    /// RFC 6298 s2.4: a backup in reserve, or a subflow that the scheduler leaves out. It takes no capacity, whatever its window.
    pub fn is_idle(&self, now: Time) -> bool {
        let timeout = (self.srtt.unwrap_or(self.latest_rtt) + self.rttvar * 4).max(MIN_IDLE);
        self.in_flight == Bytes::ZERO && self.last_sent.is_some_and(|sent| sent + timeout <= now)
    }

    /// Whether the window has room for one more byte of data: a packet may be given to the subflow.
    ///
    /// As in RFC 9002 s7, the last packet may overshoot the window by less than one packet only when nothing else would
    /// ever be sent; otherwise the window is a bound.
    pub fn has_room(&self) -> bool {
        self.state == SubflowState::Active && self.in_flight + self.queued + self.mss <= self.cwnd.max(self.mss)
    }
}

/// Every subflow of a connection, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Indexed by [`SubflowId::index`]; closed subflows keep their place.
    pub subflows: Vec<SubflowView>,
}

impl View {
    /// The subflow with this id, if there ever was one.
    pub fn get(&self, id: SubflowId) -> Option<&SubflowView> {
        self.subflows.get(id.index())
    }

    /// The subflows that are not closed.
    pub fn open(&self) -> impl Iterator<Item = &SubflowView> {
        self.subflows.iter().filter(|subflow| subflow.state != SubflowState::Closed)
    }

    /// The subflows that may carry data now: the active normal ones, or the active backups where there is none.
    pub fn usable(&self) -> impl Iterator<Item = &SubflowView> {
        let active = |subflow: &&SubflowView| subflow.state == SubflowState::Active;
        let normal = self.subflows.iter().any(|s| s.state == SubflowState::Active && s.priority == Priority::Normal);
        self.subflows.iter().filter(active).filter(move |s| !normal || s.priority == Priority::Normal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(priorities: &[(Priority, SubflowState)]) -> View {
        let mut view = View::default();
        for (index, (priority, state)) in priorities.iter().enumerate() {
            let mut subflow = SubflowView::new(SubflowId(u32::try_from(index).unwrap()), Bytes::new(1400));
            subflow.priority = *priority;
            subflow.state = *state;
            view.subflows.push(subflow);
        }
        view
    }

    fn usable(view: &View) -> Vec<u32> {
        view.usable().map(|subflow| subflow.id.0).collect()
    }

    #[test]
    fn backups_serve_only_when_no_normal_subflow_is_active() {
        use Priority::{Backup, Normal};
        use SubflowState::{Active, Failed};
        assert_eq!(usable(&view(&[(Normal, Active), (Backup, Active)])), [0]);
        assert_eq!(usable(&view(&[(Normal, Failed), (Backup, Active)])), [1]);
        assert_eq!(usable(&view(&[(Normal, Failed), (Backup, Failed)])), [] as [u32; 0]);
    }

    #[test]
    fn idle_is_who_has_nothing_under_way_for_a_timeout() {
        let mut subflow = SubflowView::new(SubflowId(0), Bytes::new(1400));
        (subflow.srtt, subflow.rttvar) = (Some(Duration::from_millis(1000)), Duration::from_millis(100));
        assert!(!subflow.is_idle(Time::from_millis(5000)), "it never sent: nothing is known");
        subflow.last_sent = Some(Time::ZERO);
        assert!(!subflow.is_idle(Time::from_millis(1399)) && subflow.is_idle(Time::from_millis(1400)));
        (subflow.srtt, subflow.rttvar) = (Some(Duration::from_millis(10)), Duration::from_millis(1));
        assert!(!subflow.is_idle(Time::from_millis(999)) && subflow.is_idle(Time::from_millis(1000)));
        subflow.in_flight = Bytes::new(1);
        assert!(!subflow.is_idle(Time::from_millis(1000)));
    }

    #[test]
    fn open_is_what_is_not_closed() {
        let view =
            view(&[SubflowState::Active, SubflowState::Closed, SubflowState::Failed].map(|s| (Priority::Normal, s)));
        assert_eq!(view.open().map(|subflow| subflow.id.0).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn a_packet_needs_room_beside_what_is_in_flight_and_queued_on_an_active_subflow() {
        let mut subflow = SubflowView::new(SubflowId(0), Bytes::new(1000));
        (subflow.cwnd, subflow.in_flight, subflow.queued) = (Bytes::new(4000), Bytes::new(2000), Bytes::new(1000));
        assert!(subflow.has_room());
        subflow.queued = Bytes::new(1001);
        assert!(!subflow.has_room());
        (subflow.queued, subflow.state) = (Bytes::ZERO, SubflowState::Failed);
        assert!(!subflow.has_room());
    }

    #[test]
    fn a_window_below_one_packet_still_sends_one() {
        let mut subflow = SubflowView::new(SubflowId(0), Bytes::new(1400));
        subflow.cwnd = Bytes::new(1000);
        assert!(subflow.has_room());
        subflow.in_flight = Bytes::new(1);
        assert!(!subflow.has_room());
    }
}
