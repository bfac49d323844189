//! A host's end of a connection: a session over carriers.

use manypath_core::{Bytes, SubflowId, Time, prefetch};
use manypath_link::{DropCause, Ecn};
use manypath_session::record::{Data, Record};
use manypath_session::{PathError, PathInit, Received, Session, SessionEvent, Transmit};

use crate::ack::CarrierAck;
use crate::application::{Reader, Writer};
use crate::carrier::{Carrier, Probe, Receiver};
use crate::causes::Causes;
use crate::error::RunError;
use crate::events::{Events, Target};
use crate::files::FileLog;
use crate::meter::Meter;
use crate::network::Network;
use crate::packet::{Body, Contents, DataPacket, Head, Number, Packet};
use crate::shared_window::SharedWindow;
use crate::sizes::{Sizes, record_size};
use crate::window::{Happening, Outbox};

/// What all ends share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) network: Network,
    pub(crate) events: Events,
    pub(crate) contents: Contents,
    /// The acknowledgement that is being written or read.
    ack: CarrierAck,
    /// By connection.
    pub(crate) files: Vec<FileLog>,
    /// By connection and subflow.
    pub(crate) drops: Vec<Box<[Causes]>>,
    /// By connection; empty when nothing is measured.
    pub(crate) meters: Vec<Meter>,
    /// When summaries begin.
    pub(crate) warmed_up: Time,
    pub(crate) outbox: Outbox,
}

impl World {
    pub(crate) fn new(network: Network, warmed_up: Time) -> Self {
        let events = Events::new(network.wires.len());
        Self {
            now: Time::ZERO,
            network,
            events,
            outbox: Outbox::new(),
            contents: Contents::new(),
            ack: CarrierAck::blank(),
            files: Vec::new(),
            drops: Vec::new(),
            meters: Vec::new(),
            warmed_up,
        }
    }

    /// The measures of an end's connection, if it is the end that sends: its acknowledgements and windows are what is measured.
    fn sender_meter(&mut self, end: u32) -> Option<&mut Meter> {
        self.meters.get_mut(end as usize / 2).filter(|_| end.is_multiple_of(2))
    }

    /// The measures of an end's connection, if it is the end that receives: what arrives there is what is measured.
    fn receiver_meter(&mut self, end: u32) -> Option<&mut Meter> {
        self.meters.get_mut(end as usize / 2).filter(|_| !end.is_multiple_of(2))
    }

    /// Gives a packet to the next link of its route; what a lost packet refers to is forgotten.
    pub(crate) fn forward(&mut self, packet: &Packet) {
        if let Err(cause) = self.network.send(self.now, packet, &mut self.events) {
            self.contents.release(&packet.body);
            // Data to the receiving end: its own, which ends a flow, is not what was sent.
            if matches!(packet.body, Body::Data(_)) && !packet.head.to.is_multiple_of(2) {
                self.dropped(&packet.head, cause);
            }
        }
    }

    /// A data packet is to leave.
    #[inline]
    fn send_data(&mut self, head: &Head, number: Number, data: &Data) {
        *self.outbox.send(head) = Body::Data(DataPacket::new(number, data));
    }

    /// The world's acknowledgement is to leave.
    #[inline]
    fn send_ack(&mut self, head: &Head) {
        self.contents.write_ack(&self.ack, self.outbox.send(head));
    }

    /// A control record is to leave.
    fn send_control(&mut self, head: &Head, record: &Record) {
        let (slot, control) = self.contents.controls.take(record);
        *control = *record;
        *self.outbox.send(head) = Body::Control(slot);
    }

    /// A packet that refers to nothing is to leave.
    pub(crate) fn send(&mut self, head: &Head, carries: Body) {
        *self.outbox.send(head) = carries;
    }

    /// A data packet is lost.
    #[cold]
    fn dropped(&mut self, head: &Head, cause: DropCause) {
        if let Some(subflows) = self.drops.get_mut(head.to as usize / 2)
            && let Some(causes) = subflows.get_mut(usize::from(head.subflow))
        {
            causes.add(cause);
        }
    }
}

/// One end of a connection. What every packet needs comes first, so that it is in few lines of the cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct End {
    /// Indexed by subflow id.
    pub(crate) carriers: Vec<Carrier>,
    /// For when its timer event stands in the queue.
    armed: Time,
    /// Its index; the other end's differs in the lowest bit.
    pub(crate) index: u32,
    ecn: Ecn,
    sizes: Sizes,
    pub(crate) session: Session,
    pub(crate) reader: Reader,
    pub(crate) writer: Option<Writer>,
    /// Where it decides when the subflows acknowledge.
    pub(crate) window: Option<SharedWindow>,
}

impl End {
    pub(crate) fn new(index: u32, session: Session, carriers: Vec<Carrier>, sizes: Sizes, ecn: bool) -> Self {
        let ecn = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
        let (armed, reader) = (Time::MAX, Reader::default());
        Self { index, session, carriers, armed, sizes, ecn, writer: None, reader, window: None }
    }

    /// The next subflow joins now; its carrier is there since the beginning.
    pub(crate) fn join(&mut self, now: Time, path: usize, init: PathInit) -> Result<(), PathError> {
        self.session.add_path(now, init)?;
        self.carriers[path].sender.on_handshake(init.handshake_rtt.unwrap_or_default());
        Ok(())
    }

    /// Has fetched what it refers to and needs for every packet.
    pub(crate) fn prefetch(&self) {
        prefetch(self.carriers.as_slice());
        self.session.prefetch();
    }

    /// The same for what lies behind that.
    pub(crate) fn prefetch_paths(&self) {
        self.carriers.iter().for_each(|carrier| carrier.sender.prefetch());
        self.session.prefetch_paths();
    }

    /// Something happens.
    pub(crate) fn on(&mut self, what: &Happening, world: &mut World) -> Result<(), RunError> {
        match what {
            Happening::Packet(packet) => self.on_packet(packet, world)?,
            Happening::Timer => self.on_timer(world),
            Happening::Application => self.act(world),
        }
        Ok(())
    }

    /// A packet has come.
    fn on_packet(&mut self, packet: &Packet, world: &mut World) -> Result<(), RunError> {
        let now = world.now;
        let id = SubflowId(u32::from(packet.head.subflow));
        let ce = packet.head.ecn == Ecn::Ce;
        let Some(carrier) = self.carriers.get_mut(id.index()) else { return Ok(()) };
        match &packet.body {
            Body::Data(data) => {
                if let Some(meter) = world.receiver_meter(self.index) {
                    meter.on_arrival(now, id.index(), data.sent());
                }
                let ack = match &mut carrier.receiver {
                    Receiver::Quic(receiver) => {
                        let ack = receiver.on_packet(now, data.number, ce);
                        self.deliver(id, data, ce, world)?;
                        ack
                    }
                    Receiver::Tcp(receiver) if !receiver.has_memory_for(data) => false,
                    Receiver::Tcp(receiver) => {
                        let ack = receiver.on_packet(now, data, ce);
                        let complete = receiver.is_complete();
                        self.on_segment(id, data, ce, world)?;
                        ack || complete && self.window.is_none()
                    }
                };
                let read = self.reader.read;
                self.read_events(world);
                if ack {
                    self.send_ack(id, world);
                }
                if self.window.is_some() {
                    self.acknowledge_by_window(id, self.reader.read > read, world);
                }
            }
            Body::Ack(ack) => {
                ack.write(&mut world.ack);
                self.on_ack(id, world)?;
            }
            Body::FewAck(ack) => {
                ack.write(&world.contents.few, &mut world.ack);
                world.contents.few.release(ack.slot);
                self.on_ack(id, world)?;
            }
            Body::LongAck(slot) => {
                world.contents.acks.get(*slot).write(&mut world.ack);
                world.contents.acks.release(*slot);
                self.on_ack(id, world)?;
            }
            Body::Control(slot) => {
                let record = *world.contents.controls.get(*slot);
                world.contents.controls.release(*slot);
                self.session.on_record(now, id, &record, ce)?;
            }
            Body::Probe(number) => {
                if let Receiver::Quic(receiver) = &mut carrier.receiver {
                    receiver.on_packet(now, *number, ce);
                }
                self.send_ack(id, world);
            }
            Body::Nothing => {}
        }
        if !self.session.is_quiet(now) {
            self.settle(world);
        }
        self.arm(id, world);
        Ok(())
    }

    /// An acknowledgement has come: the world's.
    fn on_ack(&mut self, id: SubflowId, world: &mut World) -> Result<(), RunError> {
        let (now, ack) = (world.now, &world.ack);
        // The session's word first: what lies below its left edge needs no second look when the carrier tells.
        self.session.on_record(now, id, &ack.data, false)?;
        let (session, carrier) = (&mut self.session, &mut self.carriers[id.index()]);
        carrier.sender.on_ack(now, ack, |packet, fate| {
            carrier.lost += fate.lost();
            fate.report(session, now, id, packet);
        });
        if let Some(meter) = world.sender_meter(self.index) {
            let view = &self.session.view().subflows[id.index()];
            let queue = self.session.queue();
            meter.on_ack(id.index(), view, queue.left_edge().0, queue.held());
        }
        Ok(())
    }

    /// After a segment of a subflow has arrived: acknowledges what the shared window allows, or, when the application has
    /// read, what it had held back.
    fn acknowledge_by_window(&mut self, id: SubflowId, has_read: bool, world: &mut World) {
        let Some(window) = self.window else { return };
        let free = window.free(self.session.receive_buffered().get());
        for index in 0..self.carriers.len() {
            let Receiver::Tcp(receiver) = &self.carriers[index].receiver else { continue };
            if receiver.is_complete() && (has_read || index == id.index() && receiver.bears(free)) {
                // Paths are at most 64.
                #[allow(clippy::cast_possible_truncation)]
                self.send_ack(SubflowId(index as u32), world);
            }
        }
    }

    /// Gives the session a record.
    fn deliver(&mut self, id: SubflowId, data: &DataPacket, ce: bool, world: &mut World) -> Result<(), RunError> {
        let now = world.now;
        let record = Record::Data(data.data());
        if let Received::Store { flow, offset, .. } = self.session.on_record(now, id, &record, ce)? {
            self.reader.on_packet();
            if let Some(meter) = world.receiver_meter(self.index) {
                meter.on_packet(now, flow, offset, self.session.receive_buffered());
            }
        }
        Ok(())
    }

    /// What has arrived and was not read, wherever it is held.
    pub(crate) fn buffered(&self) -> Bytes {
        let held: u64 = self.carriers.iter().map(|carrier| carrier.receiver.held_bytes()).sum();
        self.session.receive_buffered() + Bytes::new(held)
    }

    /// A segment has arrived on a TCP subflow: gives the session what is in order there now.
    fn on_segment(&mut self, id: SubflowId, data: &DataPacket, ce: bool, world: &mut World) -> Result<(), RunError> {
        let now = world.now;
        self.session.on_arrival(now, id, data.sent(), ce);
        if let Some(meter) = world.receiver_meter(self.index) {
            let (flow, offset) = data.place();
            if offset >= self.session.readable(flow).start {
                // It waits from now on, wherever it is held.
                meter.on_packet(now, flow, offset, self.buffered());
            }
        }
        while let Some(data) = self.carriers[id.index()].receiver.take() {
            let record = Record::Data(data.data());
            if let Received::Store { .. } = self.session.on_record(now, id, &record, false)? {
                self.reader.on_packet();
            }
        }
        if let Some(meter) = world.receiver_meter(self.index) {
            meter.on_repairs(now, self.carriers.iter().any(|carrier| carrier.receiver.held_bytes() > 0));
        }
        Ok(())
    }

    /// A timer event has come.
    fn on_timer(&mut self, world: &mut World) {
        if world.now != self.armed {
            // Another event took its place.
            return;
        }
        self.armed = Time::MAX;
        let now = world.now;
        for index in 0..self.carriers.len() {
            // Paths are at most 64.
            #[allow(clippy::cast_possible_truncation)]
            let id = SubflowId(index as u32);
            let Self { carriers, session, .. } = self;
            let carrier = &mut carriers[index];
            let lost = &mut carrier.lost;
            if carrier.sender.deadline() <= now
                && let Some(probe) = carrier.sender.on_timeout(now, |packet, fate| {
                    *lost += fate.lost();
                    fate.report(session, now, id, packet);
                })
            {
                self.send_probe(id, probe, world);
            }
            if self.carriers[index].receiver.due() <= now {
                self.send_ack(id, world);
            }
        }
        if self.session.next_timeout().is_some_and(|at| at <= now) {
            self.session.on_timeout(now);
        }
        self.wake(world);
    }

    /// Sends a carrier's probe.
    fn send_probe(&mut self, id: SubflowId, probe: Probe, world: &mut World) {
        match probe {
            Probe::Empty(number) => {
                world.send(&self.head(id, self.sizes.overhead, Ecn::NotEct), Body::Probe(number));
            }
            Probe::Repeats(packet, number) => {
                if let Some(Record::Data(data)) = self.session.repeat(world.now, id, packet) {
                    self.send_data(id, number, &data, world);
                }
            }
        }
    }

    /// Sends a packet of data.
    #[inline]
    fn send_data(&mut self, id: SubflowId, number: Number, data: &Data, world: &mut World) {
        let size = self.sizes.data(data.len);
        let sent = &mut self.carriers[id.index()].sent;
        sent.packets += 1;
        sent.bytes += u64::from(size);
        sent.repeated += u64::from(data.copy);
        world.send_data(&self.head(id, size, self.ecn), number, data);
    }

    /// Sends and tells all there is, and sets the timer for all subflows.
    pub(crate) fn wake(&mut self, world: &mut World) {
        self.settle(world);
        for index in 0..self.carriers.len() {
            // Paths are at most 64.
            #[allow(clippy::cast_possible_truncation)]
            self.arm(SubflowId(index as u32), world);
        }
    }

    /// Sends and tells all there is.
    fn settle(&mut self, world: &mut World) {
        loop {
            while let Some(transmit) = self.session.poll_transmit(world.now) {
                self.transmit(&transmit, world);
            }
            if !self.read_events(world) {
                break;
            }
        }
    }

    /// Hears what the session has to say; says whether there may be more to send for it.
    fn read_events(&mut self, world: &mut World) -> bool {
        let now = world.now;
        let mut more = false;
        while let Some(event) = self.session.poll_event() {
            match event {
                SessionEvent::Readable(flow) => {
                    let (end, finished) = self.reader.read(now, flow, &mut self.session);
                    if let Some(meter) = world.receiver_meter(self.index) {
                        meter.on_read(now, flow, end);
                    }
                    if finished {
                        world.files[self.index as usize / 2].on_finish(now, flow, world.warmed_up);
                    }
                }
                SessionEvent::Writable(flow) => {
                    if let Some(writer) = &mut self.writer {
                        writer.write(now, flow, &mut self.session);
                        self.log_writes(world);
                    }
                }
                _ => {}
            }
            more = true;
        }
        more
    }

    /// The application's time has come.
    fn act(&mut self, world: &mut World) {
        let files = &mut world.files[self.index as usize / 2];
        let Some(writer) = &mut self.writer else { return };
        let again = writer.act(world.now, &mut self.session, files);
        self.log_writes(world);
        self.wake(world);
        if let Some(again) = again {
            world.outbox.schedule(again, Target::Application(self.index / 2));
        }
    }

    fn log_writes(&mut self, world: &mut World) {
        if let Some(writer) = &mut self.writer
            && let Some(log) = &mut writer.log
            && let Some(meter) = world.sender_meter(self.index)
        {
            meter.on_written(log);
        }
    }

    /// Puts a record into a packet.
    fn transmit(&mut self, transmit: &Transmit, world: &mut World) {
        let id = transmit.subflow;
        match (&transmit.record, transmit.packet) {
            (Record::Data(data), Some(packet)) => {
                let number = self.carriers[id.index()].sender.on_sent(world.now, packet, transmit.repeats);
                self.send_data(id, number, data, world);
                if number.unresolved <= 1 {
                    // Only the first packet of a flight brings the carrier's timer forward, and the second that of a probe,
                    // since a lone one's acknowledgement may be delayed.
                    self.arm(id, world);
                }
            }
            (record @ Record::Ack(_), _) => {
                world.ack.data = *record;
                self.launch_ack(id, world);
            }
            (record, _) => {
                let size = self.sizes.overhead + record_size(record);
                world.send_control(&self.head(id, size, Ecn::NotEct), record);
            }
        }
    }

    /// Sends a carrier's acknowledgement with the session's.
    fn send_ack(&mut self, id: SubflowId, world: &mut World) {
        if let Record::Ack(data) = &mut world.ack.data {
            self.session.take_ack(world.now, id, data);
        }
        self.launch_ack(id, world);
    }

    /// Sends the world's acknowledgement, with the carrier's written into it.
    fn launch_ack(&mut self, id: SubflowId, world: &mut World) {
        let receiver = &mut self.carriers[id.index()].receiver;
        receiver.write_ack(world.now, &mut world.ack);
        if let (Some(window), Receiver::Tcp(receiver)) = (&mut self.window, receiver) {
            receiver.set_offered(window.offer(self.reader.read.get(), self.session.receive_buffered().get()));
        }
        let size = self.sizes.ack(&world.ack);
        world.send_ack(&self.head(id, size, Ecn::NotEct));
    }

    /// A packet before the first link of its route.
    #[inline]
    fn head(&self, id: SubflowId, size: u32, ecn: Ecn) -> Head {
        // Paths are at most 64.
        let subflow = u16::try_from(id.0).unwrap_or(u16::MAX);
        Head { to: self.index ^ 1, next: self.carriers[id.index()].route, subflow, size, ecn }
    }

    /// Sees to it that a timer event comes in time for the session and this subflow's carrier: nothing moves the timers of
    /// other subflows forward. An event that comes too early looks again; one for every deadline that moves would be far more.
    #[inline]
    fn arm(&mut self, id: SubflowId, world: &mut World) {
        let carrier = &self.carriers[id.index()];
        let next = self.session.next_timeout().unwrap_or(Time::MAX);
        let next = next.min(carrier.sender.deadline()).min(carrier.receiver.due());
        if next < self.armed {
            self.armed = next.max(world.now);
            world.outbox.schedule(self.armed, Target::Timer(self.index));
        }
    }
}
