//! Applications: who writes what when, and who reads.

use std::collections::{BTreeMap, VecDeque};

use manypath_core::{Bytes, Duration, FlowId, Rate, Time};
use manypath_link::exponential;
use manypath_scenario::{Connection, Workload};
use manypath_session::Session;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::files::FileLog;

/// Reads everything at once, and counts it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    /// Data packets that brought something new.
    pub(crate) packets: u64,
    /// Payload read in order.
    pub(crate) read: Bytes,
}

impl Reader {
    #[inline]
    pub(crate) fn on_packet(&mut self) {
        self.packets += 1;
    }

    /// Takes what can be read; returns up to which offset the flow is read, and whether that is its end.
    pub(crate) fn read(&mut self, now: Time, flow: FlowId, session: &mut Session) -> (u64, bool) {
        let (read, finished) = session.consume_all(now, flow);
        self.read += Bytes::new(read.end - read.start);
        if finished {
            // Nothing flows the other way.
            let _ = session.finish(flow);
        }
        (read.end, finished)
    }
}

/// A flow that is being written.
#[derive(Clone, Copy, Debug)]
struct Writing {
    left: u64,
    /// Whether the flow ends with what is left.
    ends: bool,
    written: u64,
}

/// What was written when: offsets of a flow below `end`, at `at`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) flow: FlowId,
    pub(crate) end: u64,
    pub(crate) at: Time,
}

/// Writes what the workload says.
#[derive(Debug)]
pub(crate) struct Writer {
    workload: Workload,
    start: Time,
    stop: Time,
    random: Xoshiro256PlusPlus,
    flows: BTreeMap<FlowId, Writing>,
    /// The flow that rates and bursts are written to.
    main: Option<FlowId>,
    /// Whether an on-off application is busy.
    busy: bool,
    /// How much a rate's application writes at once.
    quantum: Bytes,
    /// Whether writes are logged, and their log.
    pub(crate) log: Option<VecDeque<Written>>,
}

impl Writer {
    /// `start`: when the connection starts in this run.
    pub(crate) fn new(connection: &Connection, start: Time, seed: u64, log: bool) -> Self {
        Self {
            workload: connection.workload.clone(),
            start,
            stop: connection.stop.unwrap_or(Time::MAX),
            random: manypath_link::generator(seed, &format!("{}/application", connection.name)),
            flows: BTreeMap::new(),
            main: None,
            busy: false,
            quantum: connection.packet - connection.overhead - connection.record_header,
            log: log.then(VecDeque::new),
        }
    }

    /// The application's time has come; returns when it wants to act again.
    pub(crate) fn act(&mut self, now: Time, session: &mut Session, files: &mut FileLog) -> Option<Time> {
        if now >= self.stop {
            for (flow, writing) in &mut self.flows {
                writing.left = 0;
                // Cut short, a file is none.
                if std::mem::take(&mut writing.ends) {
                    files.on_cut(*flow);
                }
            }
            return None;
        }
        let next = match self.workload.clone() {
            Workload::Endless => {
                self.open(now, session, u64::MAX, false);
                None
            }
            Workload::File(size) => {
                self.file(now, session, size, files);
                None
            }
            Workload::Arrivals { size, every, poisson } => {
                if now > self.start || !poisson {
                    self.file(now, session, size, files);
                }
                Some(now + if poisson { exponential(&mut self.random, every) } else { every })
            }
            Workload::Rate(rate) => {
                self.add(now, session, self.quantum.get());
                Some(self.next_quantum(now, rate))
            }
            Workload::OnOff { on, off, random } => {
                self.busy = !self.busy;
                if self.busy {
                    self.add(now, session, u64::MAX);
                } else if let Some(writing) = self.main.and_then(|flow| self.flows.get_mut(&flow)) {
                    writing.left = 0;
                }
                let mean = if self.busy { on } else { off };
                Some(now + if random { exponential(&mut self.random, mean) } else { mean })
            }
        };
        // One more time to stop what is left of a write.
        let stop = (self.stop < Time::MAX).then_some(self.stop);
        next.into_iter().chain(stop).min()
    }

    /// When the next quantum is due: counted from the start, so that rounding does not add up.
    fn next_quantum(&self, now: Time, rate: Rate) -> Time {
        let written = self.main.and_then(|flow| self.flows.get(&flow)).map_or(0, |flow| flow.written + flow.left);
        let due = self.start + Bytes::new(written).time_at(rate);
        due.max(now + Duration::from_nanos(1))
    }

    fn file(&mut self, now: Time, session: &mut Session, size: Bytes, files: &mut FileLog) {
        match self.open(now, session, size.get(), true) {
            Some(flow) => files.on_start(now, flow, size),
            None => files.refused += 1,
        }
    }

    fn add(&mut self, now: Time, session: &mut Session, bytes: u64) {
        match self.main {
            None => self.main = self.open(now, session, bytes, false),
            Some(flow) => {
                if let Some(writing) = self.flows.get_mut(&flow) {
                    writing.left = writing.left.saturating_add(bytes);
                }
                self.write(now, flow, session);
            }
        }
    }

    fn open(&mut self, now: Time, session: &mut Session, bytes: u64, ends: bool) -> Option<FlowId> {
        let flow = session.open_flow().ok()?;
        self.flows.insert(flow, Writing { left: bytes, ends, written: 0 });
        self.write(now, flow, session);
        Some(flow)
    }

    /// Writes as much of a flow as the session takes.
    pub(crate) fn write(&mut self, now: Time, flow: FlowId, session: &mut Session) {
        let Some(writing) = self.flows.get_mut(&flow) else { return };
        while writing.left > 0 {
            match session.write(now, flow, writing.left) {
                Ok(accepted) if accepted > 0 => {
                    writing.left -= accepted;
                    writing.written += accepted;
                }
                _ => break,
            }
            if let Some(log) = &mut self.log {
                log.push_back(Written { flow, end: writing.written, at: now });
            }
        }
        if writing.left == 0 && writing.ends {
            // The flow is open: it was just written to.
            let _ = session.finish(flow);
            self.flows.remove(&flow);
        }
    }
}
