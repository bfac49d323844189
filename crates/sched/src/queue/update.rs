//! What the session changes in a send queue.

use manypath_core::{DataRange, DataSeq, FlowId, RangeSet, SubflowId, SubflowState, Time, View};

use super::Queue;
use super::segment::{Content, Extent, Segment, carrier_bit};

impl Queue {
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

    /// Turns everything of `flow` that is not acknowledged into abandoned data.
    pub fn abandon(&mut self, flow: FlowId) {
        for extent in &mut self.extents {
            if matches!(extent.content, Content::Data { flow: held, .. } if held == flow) {
                extent.content = Content::Skip;
            }
        }
    }

    /// Forgets that a removed subflow carried anything, so that its id may be used again.
    pub fn forget_carrier(&mut self, subflow: SubflowId) {
        for segment in &mut self.segments {
            segment.carriers &= !carrier_bit(subflow);
        }
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
