//! What the fuzzers run, shared with the test that replays their corpora (`crates/session/tests/corpus.rs`).

// Each user includes this file and calls one or both of the functions.
#![allow(dead_code)]

use manypath_core::{AlgorithmSpec, Bytes, DataSeq, Duration, FlowId, PacketNumber, Priority, SubflowId, Time};
use manypath_session::record::{Ack, AckRanges, Data, DelayReport, PathStatus, SendTime};
use manypath_session::{Config, PathInit, Record, Role, Session};

/// Whatever decodes encodes to something that decodes to the same.
pub(crate) fn record(bytes: &[u8]) {
    let Ok(Some((record, payload))) = Record::decode(bytes) else { return };
    let mut encoded = Vec::new();
    record.encode(&mut encoded);
    encoded.extend_from_slice(payload);
    assert_eq!(encoded.len(), record.encoded_len());
    let (again, payload_again) = Record::decode(&encoded).expect("was encoded here").expect("a known type");
    assert_eq!((again, payload_again), (record, payload));
}

/// Bytes as a source of small decisions; zeros when they have run out.
struct Source<'a> {
    bytes: &'a [u8],
}

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    fn short(&mut self) -> u64 {
        u64::from(u16::from_be_bytes([self.byte(), self.byte()]))
    }

    /// Mostly small numbers near each other, sometimes huge ones.
    fn number(&mut self) -> u64 {
        match self.byte() {
            0xff => (1 << 62) - 1 - self.short(),
            0xfe => self.short() << 32,
            high => u64::from(high & 7) << 16 | self.short(),
        }
    }

    fn flow(&mut self) -> FlowId {
        FlowId(u32::from(self.byte() % 8))
    }

    fn path(&mut self) -> SubflowId {
        SubflowId(u32::from(self.byte() % 4))
    }

    fn record(&mut self) -> Record {
        let sent = SendTime(self.byte().into());
        match self.byte() % 12 {
            0 | 1 => Record::Data(Data {
                flow: self.flow(),
                seq: DataSeq(self.number()),
                offset: self.number(),
                len: u32::from(self.byte()) * 8 + 1,
                fin: self.byte().is_multiple_of(8),
                copy: false,
                sent,
                deadline: None,
            }),
            2 => Record::Skip {
                range: manypath_core::DataRange::new(DataSeq(self.number()), self.number().max(1)),
                sent,
            },
            3 => Record::Reset { flow: self.flow(), seq: DataSeq(self.number()), code: 7, sent },
            4 | 5 => {
                let mut ranges = AckRanges::new();
                for _ in 0..self.byte() % 4 {
                    ranges.push(manypath_core::DataRange::new(DataSeq(self.number()), self.short().max(1)));
                }
                Record::Ack(Ack { left: DataSeq(self.number()), window_end: DataSeq(self.number()), ranges })
            }
            6 => Record::FlowWindow { flow: self.flow(), limit: self.number() },
            7 => Record::Blocked { flow: (self.byte().is_multiple_of(2)).then(|| self.flow()) },
            8 => Record::Stop { flow: self.flow(), code: 9 },
            9 => Record::PathReport(DelayReport {
                samples: self.byte().into(),
                interval_us: 350_000,
                mean_us: i32::from(self.byte()) - 128,
                skew_base: i32::from(self.byte()) - 128,
                var_base_us: self.byte().into(),
                marked: 0,
                least_us: Some(u32::from(self.byte()) << 24),
            }),
            10 => Record::PathStatus(PathStatus {
                version: self.byte().into(),
                cost_milli: self.byte().into(),
                backup: self.byte().is_multiple_of(2),
            }),
            _ => match self.byte() % 3 {
                0 => Record::Ping { token: self.byte().into() },
                1 => Record::Pong { token: self.byte().into() },
                _ => Record::PathStatusAck { version: self.byte().into() },
            },
        }
    }
}

const WINDOW: u64 = 64 << 10;

/// A session never panics, never holds more than its windows, and never sends beyond what the peer allowed.
pub(crate) fn session(bytes: &[u8]) {
    let mut source = Source { bytes };
    let controllers = ["reno", "cubic", "lia"];
    let cc = AlgorithmSpec::named(controllers[usize::from(source.byte()) % controllers.len()]);
    let mut config = Config::new(if source.byte().is_multiple_of(2) { Role::Client } else { Role::Server });
    (config.receive_window, config.flow_window) = (Bytes::new(WINDOW), Bytes::new(WINDOW / 2));
    (config.send_buffer, config.max_paths, config.max_flows) = (Bytes::new(WINDOW), 4, 4);
    (config.peer.receive_window, config.peer.flow_window) = (Bytes::new(WINDOW), Bytes::new(WINDOW / 2));
    let cc = manypath_cc::create(&cc, 1).expect("a registered name");
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).expect("a registered name");
    let mut session = Session::new(config, cc, scheduler);
    let mut now = Time::from_millis(1);
    let mut allowed = DataSeq(WINDOW);
    while !source.bytes.is_empty() {
        match source.byte() % 24 {
            0..8 => {
                let (path, record) = (source.path(), source.record());
                if let Record::Ack(ack) = &record {
                    allowed = allowed.max(ack.window_end);
                }
                // An engine closes the connection on an error; the session must bear more even so.
                let _ = session.on_record(now, path, &record, false);
            }
            8 => now += Duration::from_micros(source.short()),
            9 => now += Duration::from_millis(source.short()),
            10 => drop(session.add_path(now, PathInit::new(Bytes::new(200 + source.short() % 1500)))),
            11 => session.remove_path(now, source.path()),
            12 => session.set_max_datagram(source.path(), Bytes::new(source.short())),
            13 => session.set_carrier_ready(source.path(), source.byte().is_multiple_of(2)),
            14 => session.set_path_status(now, source.path(), f64::from(source.byte()), Priority::Backup),
            15 => drop(session.open_flow()),
            16 => drop(session.write(now, source.flow(), source.number())),
            17 => drop(session.finish(source.flow())),
            18 => session.reset(source.flow(), 1),
            19 => session.stop(now, source.flow(), 2),
            20 => session.consume(now, source.flow(), source.short()),
            21 => session.on_acked(now, source.path(), PacketNumber(source.byte().into())),
            22 => session.on_lost(now, source.path(), PacketNumber(source.byte().into())),
            _ => session.on_timeout(now),
        }
        let mut sent = 0;
        while let Some(transmit) = session.poll_transmit(now) {
            if let Record::Data(data) = transmit.record {
                assert!(data.range().end <= allowed, "data beyond the peer's window");
            }
            sent += 1;
            assert!(sent < 10_000, "no end of sending at one instant");
        }
        while session.poll_event().is_some() {}
        assert!(session.queue().held().get() <= WINDOW + 64, "the sender holds more than its buffer");
        assert!(session.receive_buffered().get() <= WINDOW, "the receiver holds more than its window");
        if let Some(next) = session.next_timeout()
            && next <= now
        {
            session.on_timeout(now);
        }
    }
}
