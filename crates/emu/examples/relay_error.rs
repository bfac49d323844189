//! How exact and how expensive the relay is on this machine: `cargo run --release -p manypath-emu --example relay_error`.
//!
//! Both directions are loaded with 1.3 times the link's rate for a few seconds, in bursts of ten datagrams as QUIC senders make them;
//! then one direction with a trickle. Printed are the measured rate, the scheduling error, and the relay's CPU time.

#![allow(clippy::print_stdout)] // an example prints

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use manypath_core::{Bytes, Duration, Rate};
use manypath_emu::{DirectionStats, Relay, RelayConfig};
use manypath_link::{LinkConfig, QueueLimit};

const PAYLOAD: [u8; 1400] = [7; 1400];

/// Sends at `mbps` in bursts of `burst` until `stop`.
fn blast(socket: UdpSocket, mbps: f64, burst: u32, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let gap = StdDuration::from_secs_f64(f64::from(burst) * 1428.0 * 8.0 / (mbps * 1e6));
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..burst {
                let _ = socket.send(&PAYLOAD);
            }
            next += gap;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    })
}

fn drain(socket: UdpSocket, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        let _ = socket.set_read_timeout(Some(StdDuration::from_millis(100)));
        while !stop.load(Ordering::Relaxed) {
            let _ = socket.recv(&mut buffer);
        }
    })
}

fn report(name: &str, set: f64, stats: &DirectionStats) {
    let error = &stats.scheduling_error;
    let measured = stats.measured.rate().map_or(f64::NAN, |rate| (rate.as_mbps() / set - 1.0) * 100.0);
    println!(
        "  {name:<9} set {set:>6.1} Mbit/s, measured {measured:>+7.3}%, {:>7} sent, late p50 {:>5} us, p99 {:>5} us, p99.9 {:>5} us, max {:>6} us, queue drops {}",
        stats.sent.packets,
        error.quantile(0.5).as_micros(),
        error.quantile(0.99).as_micros(),
        error.quantile(0.999).as_micros(),
        error.max().as_micros(),
        stats.link.dropped.queue_full.packets,
    );
}

fn run(
    name: &str,
    (down, up): (f64, f64),
    (load_down, load_up): (f64, f64),
    burst: u32,
    realtime: bool,
) -> Result<(), Box<dyn Error>> {
    let target = UdpSocket::bind("127.0.0.1:0")?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    let link = |mbps| {
        LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(10), QueueLimit::Bytes(Bytes::new(64 * 1024)))
    };
    let mut config = RelayConfig::new("127.0.0.1:0".parse()?, target.local_addr()?, link(up), link(down), 1);
    config.realtime = realtime;
    let relay = Relay::start(&config)?;
    client.connect(relay.local_addr())?;
    client.send(b"hello")?;
    let (_, upstream) = target.recv_from(&mut [0; 16])?;
    target.connect(upstream)?;
    let stop = Arc::new(AtomicBool::new(false));
    let threads = [
        blast(client.try_clone()?, load_up, burst, stop.clone()),
        blast(target.try_clone()?, load_down, burst, stop.clone()),
        drain(client, stop.clone()),
        drain(target, stop.clone()),
    ];
    thread::sleep(StdDuration::from_secs(5));
    let stats = relay.stats()?;
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
    relay.stop()?;
    let cpu = stats.cpu.as_secs_f64() / stats.uptime.as_secs_f64() * 100.0;
    println!("{name}: relay CPU {cpu:.1}%, kernel drops {:?}, real-time {}", stats.kernel_drops, stats.realtime);
    report("forward", up, &stats.forward);
    report("backward", down, &stats.backward);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    for realtime in [true, false] {
        run("50 down, 50 up, overloaded", (50.0, 50.0), (65.0, 65.0), 10, realtime)?;
        run("100 down, 100 up, overloaded", (100.0, 100.0), (130.0, 130.0), 10, realtime)?;
        run("200 down, 200 up, overloaded", (200.0, 200.0), (260.0, 260.0), 10, realtime)?;
        run("100 down loaded at 80%, ACKs up", (100.0, 100.0), (80.0, 3.0), 4, realtime)?;
        run("trickle", (30.0, 30.0), (2.0, 1.0), 1, realtime)?;
    }
    Ok(())
}
