//! The send queue of a connection: what is admitted, what was sent where, what must be sent again.
//!
//! The session changes it, schedulers read it. It works on ranges of data sequence numbers and holds no payload. Every
//! operation of steady in-order traffic is O(1); nothing allocates once the queue has grown to its working size.

mod segment;
mod unsent;
mod update;

use std::collections::VecDeque;

use manypath_core::{Bytes, DataRange, DataSeq, FlowId, RangeSet};

use segment::Extent;
pub use segment::{Content, Segment};
use unsent::Unsent;

/// The send queue. See the module documentation.
#[derive(Clone, Debug)]
#[repr(C)] // What every packet needs comes first, so that it is in few lines of the cache.
pub struct Queue {
    /// Left edge: everything below is acknowledged.
    left: DataSeq,
    /// First sequence number not admitted yet.
    admitted: DataSeq,
    /// Whether an application waits for room in the sender's memory.
    writer_waits: bool,
    /// First sequence number the receiver does not allow yet.
    window_end: DataSeq,
    /// What a record adds to its payload.
    record_header: Bytes,
    /// Sent and not below the left edge; sorted, disjoint.
    segments: VecDeque<Segment>,
    /// Contents from the left edge to `admitted`, without gaps.
    extents: VecDeque<Extent>,
    /// Admitted and never sent.
    unsent: Unsent,
    /// Sent, every copy given up, not acknowledged.
    lost: RangeSet,
    /// Acknowledged above the left edge: the segments that say so.
    acked: RangeSet,
    /// Where in `acked` the next range of an acknowledgement is looked for first: most of them ascend.
    acked_near: usize,
}

impl Queue {
    /// An empty queue that may send nothing yet. `record_header` is what a record adds to its payload, so that a record on
    /// a subflow carries its `mss` less that.
    pub fn new(record_header: Bytes) -> Self {
        Self {
            record_header,
            left: DataSeq::ZERO,
            window_end: DataSeq::ZERO,
            admitted: DataSeq::ZERO,
            extents: VecDeque::new(),
            unsent: Unsent::new(),
            lost: RangeSet::new(),
            segments: VecDeque::new(),
            acked: RangeSet::new(),
            acked_near: 0,
            writer_waits: false,
        }
    }

    /// Left edge of the send window: the lowest sequence number not acknowledged.
    pub fn left_edge(&self) -> DataSeq {
        self.left
    }

    /// Right edge of the send window: the first sequence number the receiver does not allow yet.
    pub fn window_end(&self) -> DataSeq {
        self.window_end
    }

    /// First sequence number that is not admitted yet.
    pub fn admitted(&self) -> DataSeq {
        self.admitted
    }

    /// Bytes admitted and never sent.
    pub fn unsent(&self) -> Bytes {
        Bytes::new(self.unsent.ranges().total())
    }

    /// Bytes whose every copy was lost.
    pub fn lost(&self) -> Bytes {
        Bytes::new(self.lost.total())
    }

    /// Unsent bytes below the lowest lost data: gaps that were left for subflows that arrive earlier. Costs O(gaps).
    pub fn unsent_before_lost(&self) -> Bytes {
        let Some(lost) = self.lost.first() else { return Bytes::ZERO };
        let before = self.unsent.ranges().iter().take_while(|range| range.start < lost.start);
        Bytes::new(before.map(|range| range.len()).sum())
    }

    /// Bytes admitted and not acknowledged: what the sender's memory holds.
    pub fn held(&self) -> Bytes {
        Bytes::new(self.admitted - self.left)
    }

    /// Whether an application has more to say and waits for room in the sender's memory (the kernel's `SOCK_NOSPACE`).
    pub fn writer_waits(&self) -> bool {
        self.writer_waits
    }

    /// Whether there is nothing to send and nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.admitted == self.left
    }

    /// Whether some data could be sent if a subflow had room.
    pub fn has_pending(&self) -> bool {
        !self.lost.is_empty() || self.unsent.ranges().first().is_some_and(|range| range.start < self.window_end)
    }

    /// Whether there is unsent data and the receiver's window forbids all of it.
    pub fn is_window_blocked(&self) -> bool {
        self.unsent.ranges().first().is_some_and(|range| range.start >= self.window_end)
    }

    /// The data that goes next in order: lost data first, then the lowest unsent data within the window; as much
    /// as a record of `mss` carries.
    #[inline]
    pub fn head(&self, mss: Bytes) -> Option<DataRange> {
        self.lost_head(mss).or_else(|| self.unsent_from(self.left, mss))
    }

    /// The bytes of payload in a record of `mss`; at least one.
    pub fn payload(&self, mss: Bytes) -> u64 {
        (mss - self.record_header).get().max(1)
    }

    /// What `payload` bytes are in records of `mss`.
    pub fn in_records(&self, payload: u64, mss: Bytes) -> Bytes {
        Bytes::from_f64(payload as f64 * (mss.as_f64() / self.payload(mss) as f64))
    }

    /// The lowest lost data, as much as a record of `mss` carries.
    pub fn lost_head(&self, mss: Bytes) -> Option<DataRange> {
        let lost = self.lost.first()?;
        let held = self.segments.get(self.segment_index(lost.start)?)?;
        Some(self.clip(lost.intersect(&held.range), mss))
    }

    /// The segment of the lowest lost data.
    pub fn lost_segment(&self) -> Option<&Segment> {
        self.segment_at(self.lost.first()?.start)
    }

    /// The lowest unsent data at or above `from` within the window, as much as a record of `mss` carries.
    #[inline]
    pub fn unsent_from(&self, from: DataSeq, mss: Bytes) -> Option<DataRange> {
        let range = self.unsent_or_nothing(from, mss);
        (!range.is_empty()).then_some(range)
    }

    /// The same as a range that may be empty, which is returned in registers: read back from memory just written it would
    /// wait for all that was written before.
    fn unsent_or_nothing(&self, from: DataSeq, mss: Bytes) -> DataRange {
        let unsent = match self.unsent.ranges().first() {
            Some(first) if first.end > from => first,
            _ => self.unsent.ranges().at_or_after(from).unwrap_or_default(),
        };
        let allowed = DataRange::between(unsent.start.max(from), unsent.end.min(self.window_end));
        if allowed.is_empty() { DataRange::default() } else { self.clip(allowed, mss) }
    }

    /// The data behind `gap` unsent segments, as much as a record of `mss` carries: what STMS writes
    /// `unsentPackets[Gap]`. Segments are those that records of `gap_mss` make of the unsent data.
    ///
    /// `None` if not so much is unsent or the window does not allow it. Costs O(1) behind the data sent last, O(log gap)
    /// elsewhere, whatever the length of the queue.
    pub fn unsent_behind(&self, gap: u64, gap_mss: Bytes, mss: Bytes) -> Option<DataRange> {
        let payload = self.payload(gap_mss);
        let seq = self.unsent.at(gap.saturating_mul(payload))?;
        // Cut where a record would be cut that is filled from the beginning of this stretch, so that no fragments remain
        // between this record and the one before it.
        let held = self.unsent.ranges().range_at(seq)?;
        self.unsent_from(held.start + (seq - held.start) / payload * payload, mss)
    }

    /// The unsent ranges, ascending and from the back descending.
    pub fn unsent_ranges(&self) -> impl DoubleEndedIterator<Item = DataRange> + '_ {
        self.unsent.ranges().iter()
    }

    /// The oldest segment that is not acknowledged: what holds up the window.
    pub fn oldest_unacked(&self) -> Option<&Segment> {
        self.segments.iter().find(|segment| !segment.acked)
    }

    /// The data of a sent segment that may be copied onto another subflow, as much as a record of `mss` carries.
    pub fn copy_of(&self, segment: &Segment, mss: Bytes) -> DataRange {
        // The receiver has what is below the left edge, even if the edge stopped inside the segment.
        self.clip(DataRange::between(segment.range.start.max(self.left), segment.range.end), mss)
    }

    /// The segment that holds `seq`, if it was sent and is not below the left edge.
    pub fn segment_at(&self, seq: DataSeq) -> Option<&Segment> {
        self.segments.get(self.segment_index(seq)?)
    }

    /// Whether some of a range that was sent has not been acknowledged. Copies for a path with smaller packets may have cut it.
    pub fn awaits(&self, range: DataRange) -> bool {
        self.segments_from(range.start)
            .take_while(|segment| segment.range.start < range.end)
            .any(|segment| !segment.acked)
    }

    /// Segments sent and not below the left edge, in order of sequence.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment> + ExactSizeIterator {
        self.segments.iter()
    }

    /// The segments that end above `seq`, in order of sequence.
    pub fn segments_from(&self, seq: DataSeq) -> impl DoubleEndedIterator<Item = &Segment> + ExactSizeIterator {
        let first = match self.segments.front() {
            Some(first) if first.range.end <= seq => {
                self.segment_index(seq).unwrap_or_else(|| self.segments.partition_point(|held| held.range.end <= seq))
            }
            _ => 0,
        };
        self.segments.range(first..)
    }

    /// What a range that the queue offered stands for.
    #[inline]
    pub fn content_at(&self, range: DataRange) -> Option<Content> {
        let extent = self.extent_at(range.start)?;
        Some(match extent.content.advanced(range.start - extent.range.start) {
            Content::Data { flow, offset, fin } => {
                Content::Data { flow, offset, fin: fin && range.end == extent.range.end }
            }
            other => other,
        })
    }

    /// What stands at `seq`: the content from there on, and the range up to its end. `None` below the left edge and where
    /// nothing is admitted.
    pub fn extent_of(&self, seq: DataSeq) -> Option<(Content, DataRange)> {
        let extent = self.extent_at(seq)?;
        Some((extent.content.advanced(seq - extent.range.start), DataRange::between(seq, extent.range.end)))
    }

    /// Bytes acknowledged above the left edge.
    pub fn acked_above(&self) -> Bytes {
        Bytes::new(self.acked.total())
    }

    /// The lowest sequence number of `flow` that is still held, or `None` when all its data is acknowledged.
    pub fn first_held_of(&self, flow: FlowId) -> Option<Content> {
        let extent = self.extents.iter().find(|extent| match extent.content {
            Content::Data { flow: held, .. } | Content::Reset { flow: held, .. } => held == flow,
            Content::Skip => false,
        })?;
        Some(extent.content.advanced(self.left - extent.range.start))
    }

    /// First sequence number that was never sent.
    pub fn first_unsent(&self) -> DataSeq {
        self.unsent.ranges().first().map_or(self.admitted, |range| range.start)
    }

    /// The beginning of `range` that is one content and fits into a record of `mss`.
    fn clip(&self, range: DataRange, mss: Bytes) -> DataRange {
        let payload = self.payload(mss);
        let Some(extent) = self.extent_at(range.start) else { return range };
        let range = range.intersect(&extent.range);
        match extent.content {
            Content::Data { fin, .. } => {
                // The end of the flow takes a sequence number and no payload.
                let with_fin = fin && range.end == extent.range.end && range.len() == payload + 1;
                let len = if with_fin { range.len() } else { range.len().min(payload) };
                DataRange::new(range.start, len)
            }
            Content::Reset { .. } | Content::Skip => range,
        }
    }

    fn extent_at(&self, seq: DataSeq) -> Option<&Extent> {
        let last = self.extents.back()?;
        if last.range.contains(seq) {
            return Some(last);
        }
        let index = self.extents.partition_point(|extent| extent.range.end <= seq);
        self.extents.get(index).filter(|extent| extent.range.contains(seq))
    }

    /// The index of the segment that holds `seq`. Segments are mostly of one size, so a proportional guess hits.
    fn segment_index(&self, seq: DataSeq) -> Option<usize> {
        let first = self.segments.front()?;
        let last = self.segments.back()?;
        if first.range.contains(seq) {
            return Some(0);
        }
        // What is sent in order is asked for at the end: just before it is sent, and just after.
        if seq >= last.range.start {
            return last.range.contains(seq).then(|| self.segments.len() - 1);
        }
        let span = last.range.end - first.range.start;
        let guess = (seq - first.range.start).saturating_mul(self.segments.len() as u64) / span.max(1);
        let guess = usize::try_from(guess).unwrap_or(usize::MAX).min(self.segments.len());
        for index in guess.saturating_sub(1)..=guess + 1 {
            if self.segments.get(index).is_some_and(|segment| segment.range.contains(seq)) {
                return Some(index);
            }
        }
        let index = self.segments.partition_point(|segment| segment.range.end <= seq);
        self.segments.get(index).filter(|segment| segment.range.contains(seq)).map(|_| index)
    }
}

#[cfg(test)]
mod tests;
