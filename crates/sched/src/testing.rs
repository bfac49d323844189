//! What the schedulers' unit tests share: views and queues in a line each.

use manypath_core::{Bytes, DataRange, DataSeq, Duration, FlowId, SubflowId, SubflowView, View};

use crate::queue::{Content, Queue};
use crate::scheduler::{Choice, Scheduler};

/// What a record adds to its payload in these tests.
pub(crate) const HEADER: u64 = 30;
/// The largest record in these tests: 1000 bytes of payload.
pub(crate) const MSS: u64 = 1_000 + HEADER;

/// A measured subflow with a window of `cwnd` segments, of which `used` are in flight.
pub(crate) fn subflow(id: u32, rtt_ms: u64, cwnd: u64, used: u64) -> SubflowView {
    let mut subflow = SubflowView::new(SubflowId(id), Bytes::new(MSS));
    subflow.srtt = Some(Duration::from_millis(rtt_ms));
    subflow.min_rtt = Duration::from_millis(rtt_ms);
    subflow.latest_rtt = Duration::from_millis(rtt_ms);
    subflow.max_rtt = Duration::from_millis(rtt_ms);
    subflow.cwnd = Bytes::new(MSS) * cwnd;
    subflow.in_flight = Bytes::new(MSS) * used;
    subflow
}

/// These subflows as a connection's.
pub(crate) fn view(subflows: impl IntoIterator<Item = SubflowView>) -> View {
    View { subflows: subflows.into_iter().collect() }
}

/// `segments` segments of one flow to send, and a window that allows `window` of them.
pub(crate) fn queue(segments: u64, window: u64) -> Queue {
    let mut queue = Queue::new(Bytes::new(HEADER));
    queue.extend_window(DataSeq(window * 1_000));
    queue.admit(Content::Data { flow: FlowId(0), offset: 0, fin: false }, segments * 1_000);
    queue
}

/// The segments from `start` to before `end`.
pub(crate) fn segments(start: u64, end: u64) -> DataRange {
    DataRange::between(DataSeq(start * 1_000), DataSeq(end * 1_000))
}

/// The decision to send segment `segment` on subflow `id`.
pub(crate) fn send(id: u32, segment: u64) -> Choice {
    Choice::Send { subflow: SubflowId(id), range: segments(segment, segment + 1) }
}

/// The gap of subflow `id`, in segments.
pub(crate) fn gap_of(scheduler: &dyn Scheduler, id: u32) -> f64 {
    let mut gap = f64::NAN;
    scheduler.inspect(SubflowId(id), &mut |name, value| {
        assert_eq!(name, "gap_segments");
        gap = value;
    });
    gap
}
