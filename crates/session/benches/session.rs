//! Packets per second of session and codec without sockets: two sessions, two paths, every record encoded and decoded.
//!
//! Run with `cargo bench -p manypath-session`. Absolute figures drift with the machine; compare the lines of one run.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock

use std::time::Instant;

use manypath_core::{AlgorithmSpec, Bytes, Duration, SubflowId, Time};
use manypath_session::{Config, PathInit, Received, Record, Role, Session};

/// Payload bytes moved per measurement.
const VOLUME: u64 = 1 << 30;

fn session(role: Role, cc: &str) -> Session {
    let cc = manypath_cc::create(&cc.parse::<AlgorithmSpec>().expect("a name"), 1).expect("registered");
    let scheduler = manypath_sched::create(&AlgorithmSpec::named("minrtt")).expect("registered");
    let mut session = Session::new(Config::new(role), cc, scheduler);
    for _ in 0..2 {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1414))).expect("two paths are allowed");
    }
    session
}

/// Moves `VOLUME` bytes; returns data packets per second of wall time.
fn run(cc: &str, codec: bool) -> f64 {
    let (mut sender, mut receiver) = (session(Role::Client, cc), session(Role::Server, cc));
    let flow = sender.open_flow().expect("the first flow");
    let (mut written, mut read, mut packets) = (0, 0, 0_u64);
    let mut now = Time::ZERO;
    let mut wire = Vec::with_capacity(2048);
    let mut in_flight = Vec::new();
    let payload = [0_u8; 1500];
    let started = Instant::now();
    while read < VOLUME {
        now += Duration::from_micros(200);
        while written < VOLUME {
            match sender.write(now, flow, VOLUME - written) {
                Ok(accepted) if accepted > 0 => written += accepted,
                _ => break,
            }
        }
        sender.on_timeout(now);
        receiver.on_timeout(now);
        in_flight.clear();
        while in_flight.len() < 64
            && let Some(transmit) = sender.poll_transmit(now)
        {
            let record = if codec { through_codec(&transmit.record, &mut wire, &payload) } else { transmit.record };
            if let Ok(Received::Store { .. }) = receiver.on_record(now, transmit.subflow, &record, false) {
                packets += 1;
            }
            in_flight.extend(transmit.packet.map(|packet| (transmit.subflow, packet)));
        }
        let readable = receiver.readable(flow);
        receiver.consume(now, flow, readable.end - readable.start);
        read = readable.end;
        while let Some(transmit) = receiver.poll_transmit(now) {
            let record = if codec { through_codec(&transmit.record, &mut wire, &payload) } else { transmit.record };
            let received = sender.on_record(now, SubflowId(transmit.subflow.0), &record, false);
            received.expect("an honest receiver");
        }
        for (subflow, packet) in &in_flight {
            sender.on_acked(now, *subflow, *packet);
        }
        while receiver.poll_event().is_some() || sender.poll_event().is_some() {}
    }
    packets as f64 / started.elapsed().as_secs_f64()
}

fn through_codec(record: &Record, wire: &mut Vec<u8>, payload: &[u8]) -> Record {
    wire.clear();
    record.encode(wire);
    if let Record::Data(data) = record {
        wire.extend_from_slice(&payload[..data.len as usize]);
    }
    Record::decode(wire).expect("just encoded").expect("a known type").0
}

fn main() {
    for cc in ["reno", "lia"] {
        for (what, codec) in [("session", false), ("session + codec", true)] {
            let best = (0..3).map(|_| run(cc, codec)).fold(0.0, f64::max);
            #[allow(clippy::print_stdout)] // a benchmark's result
            {
                println!("{what:16} {cc:6} {:6.2} M data packets/s, {:4.0} ns each, both ends", best / 1e6, 1e9 / best);
            }
        }
    }
}
