//! What comes in: the peer's records.

use manypath_cc::{Event, PathReport};
use manypath_core::{
    Bytes, DataRange, DataSeq, Duration, FlowId, Priority, SubflowId, SubflowState, SubflowView, Time,
};
use manypath_sched::{Content, DataAck};

use crate::acks::{AckPolicy, Arrival, most_ranges};
use crate::config::{Carriage, Config};
use crate::error::ProtocolError;
use crate::path::Path;
use crate::record::{Ack, Data, DelayReport, PathStatus, Record, SendTime};
use crate::session::{Session, SessionEvent};

/// What the engine does with a record's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing: there is none, or it had arrived before.
    Nothing,
    /// Keep `payload[skip..skip + len]` as the bytes of `flow` from `offset` on.
    Store {
        /// The flow.
        flow: FlowId,
        /// Where the bytes go.
        offset: u64,
        /// How much of the payload is not wanted.
        skip: u32,
        /// How many bytes are.
        len: u32,
    },
}

impl Session {
    /// A record came on a path. `ce`: with a congestion mark.
    ///
    /// # Errors
    /// If the peer broke the protocol; the connection must be closed with the error's code.
    pub fn on_record(
        &mut self,
        now: Time,
        id: SubflowId,
        record: &Record,
        ce: bool,
    ) -> Result<Received, ProtocolError> {
        if !matches!(record, Record::Data(_) | Record::Ack(_)) {
            // Control is rare, and any of it may call for an answer.
            self.stir(Time::ZERO);
        }
        let Some(path) = self.path_mut(id) else { return Ok(Received::Nothing) };
        // A PING may say that the peer hears nothing from here.
        if !matches!(record, Record::Ping { .. }) {
            path.active_at = now;
        }
        match *record {
            Record::Data(data) => {
                if self.config.carriage == Carriage::Datagrams {
                    self.measure_delay(now, id, data.sent, ce);
                }
                return self.on_data(now, id, &data);
            }
            Record::Skip { range, sent } => {
                self.measure_delay(now, id, sent, ce);
                self.on_skip(now, id, range)?;
            }
            Record::Reset { flow, seq, code, sent } => {
                self.measure_delay(now, id, sent, ce);
                self.on_reset(now, id, flow, seq, code)?;
            }
            Record::Ack(ref ack) => self.on_data_ack(now, ack)?,
            Record::FlowWindow { flow, limit } => self.on_flow_window(now, flow, limit)?,
            Record::Blocked { flow } => self.on_blocked(now, id, flow),
            Record::Stop { flow, code } => self.on_stop(flow, code)?,
            Record::PathReport(report) => self.on_path_report(now, id, &report),
            Record::PathStatus(status) => self.on_path_status(id, status),
            Record::PathStatusAck { version } => {
                if path.status.version == version {
                    path.status_due = None;
                }
            }
            Record::Ping { token } => path.pong_due = Some(token),
            Record::Pong { token } => {
                let (Some(Some(path)), view) = (self.paths.get_mut(id.index()), &mut self.view.subflows[id.index()])
                else {
                    return Ok(Received::Nothing);
                };
                if path.on_age_answered(now, token, view) || path.on_answered(now, token, view) {
                    self.restore(now, id);
                }
            }
        }
        Ok(Received::Nothing)
    }

    pub(crate) fn measure_delay(&mut self, now: Time, id: SubflowId, sent: SendTime, ce: bool) {
        if let Some(path) = self.path_mut(id)
            && let Some(mut report) = path.delay.on_record(now, sent, ce)
        {
            // A kernel's Multipath TCP has nothing to compare its subflows' delays by.
            report.least_us = report.least_us.filter(|_| path.carriage == Carriage::Datagrams);
            path.report_due = Some(report);
            self.stir(Time::ZERO);
        }
    }

    /// Notes a record with sequence numbers on its path, and what it means for the others.
    fn acknowledge(&mut self, now: Time, id: SubflowId, range: DataRange, left_before: DataSeq, duplicate: bool) {
        let Config { records_per_ack: every, ack_interval: interval, max_ack_delay: max_delay, .. } = self.config;
        let left = self.arrivals.left();
        let mut due = None;
        if let Some(path) = self.path_mut(id) {
            path.ack.on_record(now, range, duplicate, AckPolicy { every, interval, max_delay });
            due = path.ack.due;
        }
        if left > left_before && self.config.carriage == Carriage::Datagrams {
            let subflows = &self.view.subflows;
            let active = subflows.iter().filter(|view| view.state == SubflowState::Active);
            let fastest = active.filter_map(|view| view.srtt).min();
            let hears = |path: &Path| subflows[path.id.index()].state == SubflowState::Active && !path.is_silent(now);
            for path in self.paths.iter_mut().flatten().filter(|path| path.id != id && hears(path)) {
                // What the fastest path tells comes first. What others tell is for the case that its acknowledgements are lost; told
                // as often it would fill a path that is slow for want of capacity.
                let interval = path.rtt.srtt().map_or(Duration::ZERO, |srtt| {
                    if fastest.is_some_and(|fastest| srtt > fastest) { srtt } else { srtt / 4 }
                });
                path.ack.on_left_edge(now, left, interval);
                due = due.into_iter().chain(path.ack.due).min();
            }
        }
        if let Some(due) = due {
            self.stir(due);
        }
    }

    fn on_data(&mut self, now: Time, id: SubflowId, data: &Data) -> Result<Received, ProtocolError> {
        self.on_busy(now);
        let range = data.range();
        let left = self.arrivals.left();
        let window_end = self.advertised;
        #[cfg(test)]
        let window_end = DataSeq(self.mutation.receive_limit(window_end.0));
        if range.end > window_end {
            return Err(ProtocolError::WindowExceeded);
        }
        let arrival = self.arrivals.classify(range);
        #[cfg(test)]
        let arrival = self.mutation.arrival(arrival);
        // What a stream has delivered never comes again: there, only the window bounds what is held.
        let may_drop = self.config.carriage == Carriage::Datagrams;
        match arrival {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.totals.received_again += Bytes::new(u64::from(data.len));
                self.acknowledge(now, id, range, left, true);
                return Ok(Received::Nothing);
            }
            Arrival::TooScattered if may_drop => {
                self.totals.dropped_records += 1;
                return Ok(Received::Nothing);
            }
            Arrival::TooScattered => {}
        }
        self.accept_flow(data.flow)?;
        let Some(flow) = self.flows.get_mut(&data.flow).filter(|flow| !flow.recv.done) else {
            // A RESET overtook it: it is of no use any more, and the sender must hear that it has arrived.
            let new = self.arrivals.insert(range);
            self.acknowledge(now, id, range, left, false);
            self.on_consumed(now, new);
            return Ok(Received::Nothing);
        };
        let len = u64::from(data.len);
        #[cfg(test)]
        let limit = self.mutation.receive_limit(flow.recv.limit);
        #[cfg(not(test))]
        let limit = flow.recv.limit;
        flow.recv.check(data.offset, len, data.fin, limit)?;
        if may_drop && flow.recv.scatters(data.offset, len, most_ranges(self.config.flow_window)) {
            self.totals.dropped_records += 1;
            return Ok(Received::Nothing);
        }
        let abandoned = flow.recv.abandoned;
        // An end without data spans nothing.
        let grown = if abandoned || len == 0 { 0 } else { (data.offset + len).saturating_sub(flow.recv.highest()) };
        let span_limit = self.config.receive_window.get();
        #[cfg(test)]
        let span_limit = self.mutation.receive_limit(span_limit);
        let leaves_hole = data.offset > flow.recv.readable().end;
        if may_drop && leaves_hole && grown > 0 && self.spanned + grown > span_limit {
            // A sender that numbers bytes in order gets here only while a RESET is late whose SKIPs have moved the window. What its
            // readers can go on with is taken: it may be what the RESET waits for.
            self.totals.dropped_records += 1;
            return Ok(Received::Nothing);
        }
        self.spanned += grown;
        let (added, more_readable) = flow.recv.insert(data.offset, len, data.fin);
        let skip = flow.recv.consumed.saturating_sub(data.offset).min(len);
        if abandoned {
            flow.recv.consumed += added;
            flow.recv.done = flow.recv.is_finished();
        } else if more_readable && !flow.readable_reported {
            flow.readable_reported = true;
            self.events.push_back(SessionEvent::Readable(data.flow));
        }
        let new = self.arrivals.insert(range);
        #[cfg(test)]
        let new = self.mutation.newly_arrived(range, new);
        let kept = if abandoned { 0 } else { added };
        self.totals.received += Bytes::new(added);
        self.totals.received_again += Bytes::new(len - added);
        self.acknowledge(now, id, range, left, false);
        // The end of a flow is not kept. What a SKIP has counted may be, from a late record: it counts when it is dropped.
        self.consumed = self.consumed.saturating_sub(kept.saturating_sub(new));
        self.on_consumed(now, new.saturating_sub(kept));
        if abandoned {
            self.stop_again(now, id, data.flow);
            self.close_if_done(data.flow);
        }
        if added == 0 || abandoned {
            return Ok(Received::Nothing);
        }
        let skip = u32::try_from(skip).unwrap_or(data.len);
        Ok(Received::Store { flow: data.flow, offset: data.offset + u64::from(skip), skip, len: data.len - skip })
    }

    /// Opens a flow of the peer that is named for the first time. One that is over stays so: what overtook its end on the way
    /// or was sent again may still name it.
    fn accept_flow(&mut self, id: FlowId) -> Result<(), ProtocolError> {
        if self.flows.contains_key(&id) || self.was_closed(id) {
            return Ok(());
        }
        if !self.is_peers_flow(id) {
            return Err(ProtocolError::UnknownFlow);
        }
        // The peer may already have seen the end of flows that are still open here: twice the limit is tolerated.
        let open = self.flows.keys().filter(|held| held.0 % 2 == id.0 % 2).count();
        let limit = self.config.max_flows as usize;
        // Between flows that are over lie some that are open here, or open at the peer and still on their way.
        let gaps = self.closed_flows.range_count().saturating_sub(1);
        if open >= limit.saturating_mul(2) || gaps > limit.saturating_mul(3) {
            return Err(ProtocolError::TooManyFlows);
        }
        self.insert_flow(id);
        self.events.push_back(SessionEvent::FlowOpened(id));
        Ok(())
    }

    /// Takes sequence numbers that carry no data; says whether any was new.
    fn on_skip(&mut self, now: Time, id: SubflowId, range: DataRange) -> Result<bool, ProtocolError> {
        if range.end > self.advertised {
            return Err(ProtocolError::WindowExceeded);
        }
        let left = self.arrivals.left();
        let duplicate = match self.arrivals.classify(range) {
            Arrival::TooScattered if self.config.carriage == Carriage::Datagrams => return Ok(false),
            Arrival::Duplicate => true,
            Arrival::New | Arrival::TooScattered => {
                let dropped = self.arrivals.insert(range);
                self.on_consumed(now, dropped);
                false
            }
        };
        self.acknowledge(now, id, range, left, duplicate);
        Ok(!duplicate)
    }

    fn on_reset(
        &mut self,
        now: Time,
        id: SubflowId,
        flow_id: FlowId,
        seq: DataSeq,
        code: u32,
    ) -> Result<(), ProtocolError> {
        if !self.on_skip(now, id, DataRange::new(seq, 1))? {
            return Ok(());
        }
        self.accept_flow(flow_id)?;
        let Some(flow) = self.flows.get_mut(&flow_id) else { return Ok(()) };
        if flow.recv.done {
            return Ok(());
        }
        self.spanned -= flow.recv.span();
        let dropped = flow.recv.abandon();
        flow.recv.done = true;
        flow.stop_due = false;
        self.events.push_back(SessionEvent::FlowReset { flow: flow_id, code });
        self.on_consumed(now, dropped);
        self.close_if_done(flow_id);
        Ok(())
    }

    fn on_data_ack(&mut self, now: Time, ack: &Ack) -> Result<(), ProtocolError> {
        let highest = self.queue.segments().next_back().map_or(self.queue.left_edge(), |segment| segment.range.end);
        let claimed =
            ack.ranges.as_slice().iter().map(|range| range.end).max().map_or(ack.left, |end| end.max(ack.left));
        // Schedulers may have sent behind a gap.
        if claimed > highest || ack.left > self.queue.first_unsent() {
            return Err(ProtocolError::AckOfUnsent);
        }
        let window_end = ack.window_end;
        #[cfg(test)]
        let window_end = DataSeq(self.mutation.send_limit(window_end.0));
        let opens = self.queue.is_window_blocked();
        self.queue.extend_window(window_end);
        if opens && !self.queue.is_window_blocked() {
            self.on_window_opened(now);
        }
        let old_left = self.queue.left_edge();
        let edge = self.queue.segment_at(old_left).map(|segment| (segment.last_subflow, segment.retransmitted));
        self.release_below(ack.left);
        let segments = self.queue.advance_left_edge(ack.left);
        for range in ack.ranges.as_slice() {
            self.queue.on_selective_ack(*range);
        }
        let newly_acked = Bytes::new(self.queue.left_edge() - old_left);
        self.totals.acknowledged += newly_acked;
        let moved = !newly_acked.is_zero();
        let ack = DataAck {
            newly_acked,
            segments,
            left_edge_subflow: edge.filter(|_| moved).map(|(subflow, _)| subflow),
            left_edge_retransmitted: edge.is_some_and(|(_, retransmitted)| retransmitted),
            segments_per_ack: self.segments_per_ack(),
        };
        self.scheduler.on_data_ack(now, &ack, &self.view);
        Ok(())
    }

    /// How many segments a data acknowledgement covers when nothing is missing, of a peer that acknowledges as this end does.
    fn segments_per_ack(&self) -> u32 {
        let Config { records_per_ack, ack_interval, .. } = self.config;
        if ack_interval.is_zero() {
            return records_per_ack;
        }
        let of = |path: &SubflowView| path.delivery_rate.bytes_in(ack_interval).as_f64() / path.mss.as_f64().max(1.0);
        let meanwhile: f64 = self.view.usable().map(of).sum();
        // A float to integer cast saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        records_per_ack.max(meanwhile.ceil() as u32)
    }

    /// Tells the flows what of them is acknowledged when the left edge moves to `left`.
    fn release_below(&mut self, left: DataSeq) {
        let mut seq = self.queue.left_edge();
        while seq < left {
            let Some((content, extent)) = self.queue.extent_of(seq) else { break };
            let end = extent.end.min(left);
            let complete = end == extent.end;
            match content {
                Content::Data { flow: id, offset, fin } => {
                    if let Some(flow) = self.flows.get_mut(&id) {
                        let at_end = fin && complete;
                        flow.send.released = flow.send.released.max(offset + (end - extent.start) - u64::from(at_end));
                        flow.send.done |= at_end;
                        if at_end {
                            self.close_if_done(id);
                        }
                    }
                }
                Content::Reset { flow: id, .. } => {
                    if let Some(flow) = self.flows.get_mut(&id) {
                        flow.send.released = flow.send.written;
                        flow.send.done = true;
                        self.close_if_done(id);
                    }
                }
                Content::Skip => {}
            }
            seq = end;
        }
    }

    fn on_flow_window(&mut self, now: Time, id: FlowId, limit: u64) -> Result<(), ProtocolError> {
        if let Some(flow) = self.flows.get_mut(&id) {
            if limit > flow.send.limit {
                flow.send.limit = limit;
                self.blocked_flows.retain(|held| *held != id);
                if flow.wants_to_write {
                    self.queue.set_writer_waits(true);
                }
                self.on_window_opened(now);
                self.wake_writers();
            }
            return Ok(());
        }
        self.check_known(id)
    }

    fn on_blocked(&mut self, now: Time, id: SubflowId, flow: Option<FlowId>) {
        match flow {
            None => self.want_ack(now, id),
            Some(flow_id) => {
                self.stop_again(now, id, flow_id);
                if let Some(flow) = self.flows.get_mut(&flow_id)
                    && !flow.recv.abandoned
                {
                    flow.asked_by = Some(id);
                    if !flow.window_due {
                        flow.window_due = true;
                        self.control_flows.push_back(flow_id);
                    }
                }
            }
        }
    }

    fn on_stop(&mut self, id: FlowId, code: u32) -> Result<(), ProtocolError> {
        if let Some(flow) = self.flows.get(&id) {
            if !flow.send.reset && !flow.send.done {
                self.events.push_back(SessionEvent::FlowStopped { flow: id, code });
                self.reset(id, code);
            }
            return Ok(());
        }
        self.check_known(id)
    }

    /// A record about a flow that is not open is fine if the flow is over, or if the peer's data that opens it is late.
    fn check_known(&self, id: FlowId) -> Result<(), ProtocolError> {
        if self.is_peers_flow(id) || self.was_closed(id) { Ok(()) } else { Err(ProtocolError::UnknownFlow) }
    }

    fn on_path_report(&mut self, now: Time, id: SubflowId, report: &DelayReport) {
        let Some(path) = self.path_mut(id) else { return };
        let lost = core::mem::take(&mut path.lost_since_report);
        let interval = Duration::from_micros(u64::from(report.interval_us));
        if path.way_back.on_report(now, interval, report.least_us) {
            self.split_round_trips();
        }
        let report = PathReport {
            samples: report.samples,
            interval,
            mean_delay: f64::from(report.mean_us) * 1e-6,
            skew_base: report.skew_base,
            var_base: f64::from(report.var_base_us) * 1e-6,
            // The receiver cannot know what is missing on one path; the sender does.
            lost,
            marked: report.marked,
        };
        self.notify(now, id, &Event::PathReport(report));
    }

    fn on_path_status(&mut self, id: SubflowId, status: PathStatus) {
        let Some(path) = self.path_mut(id) else { return };
        path.status_ack_due = Some(status.version);
        // Serial-number order (RFC 1982), so that the version may wrap.
        let newer = |held: u32| status.version.wrapping_sub(held).cast_signed() > 0;
        if path.peer_status_version.is_none_or(newer) {
            path.peer_status_version = Some(status.version);
            let view = &mut self.view.subflows[id.index()];
            view.cost = f64::from(status.cost_milli) / 1000.0;
            view.priority = if status.backup { Priority::Backup } else { Priority::Normal };
            self.events.push_back(SessionEvent::PathStatus(id));
        }
    }
}
