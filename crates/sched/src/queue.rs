//! The send queue of a connection: what is admitted, what was sent where, what must be sent again.
//!
//! The session changes it, schedulers read it. It works on ranges of data sequence numbers and holds no payload. Every
//! operation of steady in-order traffic is O(1); nothing allocates once the queue has grown to its working size.

mod segment;
mod unsent;

use std::collections::VecDeque;

use manypath_core::{Bytes, DataRange, DataSeq, FlowId, RangeSet, SubflowId, SubflowState, Time, View};

pub use segment::{Content, Segment};
use segment::{Extent, carrier_bit};
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

    // What schedulers read.

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

    // What the session changes.

    /// Sets the right edge of the window; it never moves back.
    pub fn extend_window(&mut self, end: DataSeq) {
        self.window_end = self.window_end.max(end);
    }

    /// Says whether an application waits for room in the sender's memory.
    pub fn set_writer_waits(&mut self, waits: bool) {
        self.writer_waits = waits;
    }

    /// Gives sequence numbers to `len` new positions of `content` and queues them.
    pub fn admit(&mut self, content: Content, len: u64) -> DataRange {
        let range = DataRange::new(self.admitted, len);
        if range.is_empty() {
            return range;
        }
        self.admitted = range.end;
        self.unsent.push(range);
        if let (Some(last), Content::Data { flow, offset, fin }) = (self.extents.back_mut(), content)
            && let Content::Data { flow: last_flow, offset: last_offset, fin: false } = last.content
            && flow == last_flow
            && offset == last_offset + last.range.len()
        {
            last.range.end = range.end;
            last.content = Content::Data { flow, offset: last_offset, fin };
        } else {
            self.extents.push_back(Extent { range, content });
        }
        range
    }

    /// Records that a range the queue offered was given to a subflow; says whether it was sent before.
    pub fn on_assigned(&mut self, now: Time, range: DataRange, subflow: SubflowId) -> bool {
        if self.unsent.remove(range) > 0 {
            match self.segments.back() {
                Some(last) if last.range.start > range.start => self.insert_segment(Segment::new(now, range, subflow)),
                // Made apart from the other, so that it is written in its place and not copied there.
                _ => self.segments.push_back(Segment::new(now, range, subflow)),
            }
            return false;
        }
        self.lost.remove(range);
        self.split_segment(range);
        if let Some(index) = self.segment_index(range.start) {
            let segment = &mut self.segments[index];
            segment.last_subflow = subflow;
            segment.sent_at = now;
            segment.carriers |= carrier_bit(subflow);
            segment.copies = segment.copies.saturating_add(1);
            segment.retransmitted = true;
        }
        true
    }

    /// Puts a segment where it belongs.
    #[inline(never)]
    fn insert_segment(&mut self, segment: Segment) {
        let at = self.segments.partition_point(|held| held.range.start < segment.range.start);
        self.segments.insert(at, segment);
    }

    /// Records that a subflow's copy of a range is off that subflow: acknowledged by the carrier (`delivered`), or
    /// given up, whether it was lost or never left: then the subflow does not count as one that carried it. What has no
    /// copy left under way and was not delivered becomes lost. Returns the bytes that became lost.
    pub fn on_copy_ended(&mut self, range: DataRange, subflow: SubflowId, delivered: bool) -> u64 {
        let mut newly_lost = 0;
        self.for_each_segment(range, |segment, held, lost| {
            segment.copies = segment.copies.saturating_sub(1);
            if !delivered {
                segment.carriers &= !carrier_bit(subflow);
            }
            if delivered && !lost.is_empty() {
                // Only reinjected data is lost here and under way there.
                lost.remove(segment.range);
            }
            if !delivered && segment.is_nowhere() {
                newly_lost += lost.insert(held);
            }
        });
        newly_lost
    }

    /// Declares lost what of `range` is neither acknowledged nor under way: the carrier acknowledged it, the receiver's
    /// session never did. Returns the bytes that became lost.
    pub fn on_undelivered(&mut self, range: DataRange) -> u64 {
        let mut newly_lost = 0;
        self.for_each_segment(range, |segment, held, lost| {
            if segment.is_nowhere() {
                newly_lost += lost.insert(held);
            }
        });
        newly_lost
    }

    /// Records that a subflow sends a range again by itself.
    pub fn on_resent(&mut self, range: DataRange) {
        self.for_each_segment(range, |segment, _, _| segment.retransmitted = true);
    }

    /// Calls `change` with each segment of a range that was sent, what of it lies above the left edge, and what is lost.
    fn for_each_segment(&mut self, range: DataRange, mut change: impl FnMut(&mut Segment, DataRange, &mut RangeSet)) {
        let mut seq = range.start.max(self.left);
        while let Some(index) = self.segment_index(seq).filter(|_| seq < range.end) {
            let segment = &mut self.segments[index];
            let held = DataRange::between(segment.range.start.max(self.left), segment.range.end);
            change(segment, held, &mut self.lost);
            seq = held.end;
        }
    }

    /// Offers usable subflows what none of them carries: what only failed ones do, be it under way there, waiting to leave
    /// again, or arrived out of order, which a receiver keeps until the gap before it is filled. It counts as lost until it
    /// arrives or [`end_reinjection`](Self::end_reinjection) is called. Returns the bytes.
    pub fn reinject(&mut self, view: &View) -> u64 {
        let active = view.subflows.iter().filter(|subflow| subflow.state == SubflowState::Active);
        let active = active.fold(0, |active, subflow| active | carrier_bit(subflow.id));
        let mut offered = 0;
        for segment in self.segments.iter().filter(|segment| !segment.acked && segment.carriers & active == 0) {
            offered += self.lost.insert(DataRange::between(segment.range.start.max(self.left), segment.range.end));
        }
        offered
    }

    /// Withdraws what was offered to other subflows and was carried by this one, which delivers it after all.
    pub fn end_reinjection(&mut self, subflow: SubflowId) {
        for segment in self.segments.iter().filter(|segment| segment.was_carried_by(subflow)) {
            if self.lost.is_empty() {
                break;
            }
            self.lost.remove(segment.range);
        }
    }

    /// Moves the left edge; returns how many segments left the queue. Sequence numbers never sent are not passed.
    pub fn advance_left_edge(&mut self, to: DataSeq) -> u32 {
        let to = to.min(self.first_unsent());
        if to <= self.left {
            return 0;
        }
        let mut count = 0;
        while self.segments.front().is_some_and(|first| first.range.end <= to) {
            self.segments.pop_front();
            count += 1;
        }
        self.left = to;
        self.lost.remove_below(to);
        self.acked.remove_below(to);
        while self.extents.front().is_some_and(|extent| extent.range.end <= to) {
            self.extents.pop_front();
        }
        count
    }

    /// Records that the receiver has the segments that lie within `range`, above the left edge. Returns the bytes newly
    /// acknowledged.
    pub fn on_selective_ack(&mut self, range: DataRange) -> u64 {
        let before = self.acked.total();
        let mut from = range.start;
        // Ranges grow by a segment or two from one acknowledgement to the next: what is known is passed over, not walked.
        while from < range.end {
            from = match self.acked.at_or_after_near(from, &mut self.acked_near) {
                Some(known) if known.start <= from => known.end,
                next => {
                    let until = next.map_or(range.end, |next| next.start.min(range.end));
                    self.acknowledge_segments(DataRange::between(from, until));
                    until
                }
            };
        }
        self.acked.total() - before
    }

    /// Marks the segments that lie within `range`, of which none is acknowledged.
    fn acknowledge_segments(&mut self, range: DataRange) {
        // A segment in which the left edge stopped begins there, as far as the receiver is concerned.
        let left = self.left;
        let guess =
            self.segment_index(range.start).filter(|at| self.segments[*at].range.start.max(left) == range.start);
        let mut index =
            guess.unwrap_or_else(|| self.segments.partition_point(|held| held.range.start.max(left) < range.start));
        while let Some(segment) = self.segments.get_mut(index)
            && segment.range.end <= range.end
        {
            segment.acked = true;
            let held = DataRange::between(segment.range.start.max(left), segment.range.end);
            self.acked.insert(held);
            if !self.lost.is_empty() {
                self.lost.remove(held);
            }
            index += 1;
        }
    }

    /// Bytes acknowledged above the left edge.
    pub fn acked_above(&self) -> Bytes {
        Bytes::new(self.acked.total())
    }

    /// Turns everything of `flow` that is not acknowledged into abandoned data.
    pub fn abandon(&mut self, flow: FlowId) {
        for extent in &mut self.extents {
            if matches!(extent.content, Content::Data { flow: held, .. } if held == flow) {
                extent.content = Content::Skip;
            }
        }
    }

    /// The lowest sequence number of `flow` that is still held, or `None` when all its data is acknowledged.
    pub fn first_held_of(&self, flow: FlowId) -> Option<Content> {
        let extent = self.extents.iter().find(|extent| match extent.content {
            Content::Data { flow: held, .. } | Content::Reset { flow: held, .. } => held == flow,
            Content::Skip => false,
        })?;
        Some(extent.content.advanced(self.left - extent.range.start))
    }

    /// Forgets that a removed subflow carried anything, so that its id may be used again.
    pub fn forget_carrier(&mut self, subflow: SubflowId) {
        for segment in &mut self.segments {
            segment.carriers &= !carrier_bit(subflow);
        }
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

    /// Makes `range.end` a boundary between segments when it falls inside one.
    fn split_segment(&mut self, range: DataRange) {
        let Some(index) = self.segment_index(range.start) else { return };
        let whole = self.segments[index];
        if whole.range.end <= range.end {
            return;
        }
        self.segments[index].range.end = range.end;
        self.segments.insert(index + 1, Segment { range: DataRange::between(range.end, whole.range.end), ..whole });
    }
}

#[cfg(test)]
mod tests;
