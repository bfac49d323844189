//! How exact links between namespaces are on this machine, now: measured from outside, by packets that programs send and receive.
//!
//! Senders and receivers have the same priority as the links' thread, so that what is measured is the links and not how long
//! an ordinary program waits for a processor.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use manypath_core::{Bytes, Duration, Rate};
use manypath_link::{GilbertElliott, LinkConfig, Loss, QueueLimit};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use crate::priority::{become_realtime, sharpen_timers};
use crate::system::{During, SystemError};
use crate::tun::error::TunError;
use crate::tun::links::TunLinks;
use crate::tun::plan::TunConfig;

/// Where servers listen.
const PORT: u16 = 9;
/// Octets of IPv4 and UDP headers.
const HEADERS: usize = 28;
/// A full packet's payload.
const FULL: usize = 1500 - HEADERS;
/// A probe's payload.
const PROBE: usize = 72;
/// Receivers give up after so much silence.
const SILENCE: Duration = Duration::from_millis(500);
/// Enough that a receiver which has to wait for a processor loses nothing.
const RECEIVE_BUFFER: usize = 16 << 20;

/// A rate as it is set, and as a receiver sees it while the link is overloaded.
#[derive(Clone, Copy, Debug)]
pub struct RateCheck {
    /// As it is set.
    pub set: Rate,
    /// As it was measured.
    pub measured: Rate,
}

impl RateCheck {
    /// Measured over set, minus one.
    pub fn error(&self) -> f64 {
        self.measured.as_bps() / self.set.as_bps() - 1.0
    }
}

/// A distribution of delays.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// How many there were.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Delays {
    fn of(delays: impl IntoIterator<Item = Duration>) -> Self {
        let mut all: Vec<_> = delays.into_iter().collect();
        all.sort_unstable();
        let at = |percent: usize| all.get(all.len() * percent / 100).or(all.last()).copied().unwrap_or_default();
        Self { count: all.len() as u64, p50: at(50), p99: at(99), max: at(100) }
    }
}

/// Packets lost, against the share that is set.
#[derive(Clone, Debug)]
pub struct LossCheck {
    /// What kind.
    pub what: &'static str,
    /// The share that is set.
    pub set: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// The standard deviation of the number of lost packets, by the model.
    pub deviation: f64,
}

impl LossCheck {
    /// How many standard deviations the number of lost packets is away from what is set.
    pub fn distance(&self) -> f64 {
        (self.lost as f64 - self.set * self.sent as f64) / self.deviation
    }
}

/// Two links of 100 Mbit/s, each full of TCP.
#[derive(Clone, Copy, Debug)]
pub struct LoadCheck {
    /// Payload per time, both links together.
    pub goodput: Rate,
    /// Time on a processor over time, of the links' thread.
    pub cpu_share: f64,
    /// The 99th percentile of how late packets were delivered.
    pub late_p99: Duration,
    /// Packets that the kernel dropped before the links' thread read them.
    pub kernel_drops: u64,
    /// Whether the thread has real-time priority.
    pub realtime: bool,
}

/// Measures one rate for so long.
///
/// # Errors
///
/// The system refuses namespaces, devices or sockets.
pub fn rate(set: Rate, time: Duration) -> Result<RateCheck, TunError> {
    let links = one_link(LinkConfig::new(set, Duration::from_millis(1), QueueLimit::Packets(50)))?;
    let arrivals = receiver(&links)?;
    // A third more than the link takes, in portions of 2 ms.
    let portion = Duration::from_millis(2);
    let each = (set * portion * 4 / 3).get() / 1500 + 1;
    let socket = sender(&links)?;
    let sending = thread::spawn(move || {
        let start = Instant::now();
        let mut next = Duration::ZERO;
        while next < time {
            for _ in 0..each {
                // A full queue of the device is the receiver's loss.
                let _ = socket.send(&[0; FULL]);
            }
            next += portion;
            sleep_until(start, next);
        }
    });
    let arrivals = joined(arrivals)?;
    joined_unit(sending);
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return Err(nothing_arrived()) };
    // Of the first packet only its end was seen.
    let size = Bytes::new(1500) * (arrivals.len() as u64 - 1);
    let measured = size / Duration::from(last.at.duration_since(first.at));
    Ok(RateCheck { set, measured })
}

/// Measures how late this machine wakes a thread of the same priority as the links' from a sleep, for so long: three such wakes are in
/// the delay of a packet, so that no emulation in user space can be better than this.
///
/// # Errors
///
/// The thread panics.
pub fn wake(time: Duration) -> Result<Delays, TunError> {
    let sleeping = thread::spawn(move || {
        urgent();
        let start = Instant::now();
        let mut next = Duration::ZERO;
        let mut late = Vec::new();
        while next < time {
            next += step(late.len() as u64);
            sleep_until(start, next);
            late.push(Duration::from(start.elapsed()) - next);
        }
        late
    });
    Ok(Delays::of(sleeping.join().map_err(|_| TunError::Gone)?))
}

/// Measures the delay of lone packets beyond propagation and transmission for so long, from the sender's call to the receiver's return.
///
/// # Errors
///
/// The system refuses namespaces, devices or sockets.
pub fn delay(time: Duration) -> Result<Delays, TunError> {
    let (rate, delay) = (Rate::from_mbps(100.0), Duration::from_millis(15));
    let links = one_link(LinkConfig::new(rate, delay, QueueLimit::Packets(250)))?;
    let arrivals = receiver(&links)?;
    let socket = sender(&links)?;
    let start = Instant::now();
    let sending = thread::spawn(move || {
        urgent();
        let mut departures = Vec::new();
        let mut next = Duration::ZERO;
        while next < time {
            let number = departures.len() as u64;
            let mut payload = [0; PROBE];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            departures.push(Instant::now());
            let _ = socket.send(&payload);
            next += step(number);
            sleep_until(start, next);
        }
        departures
    });
    let arrivals = joined(arrivals)?;
    let departures = sending.join().map_err(|_| TunError::Gone)?;
    let expected = delay + Bytes::new((PROBE + HEADERS) as u64).time_at(rate);
    let departed = |number: u64| departures.get(usize::try_from(number).ok()?);
    let taken = arrivals.iter().filter_map(|arrival| Some(arrival.at.duration_since(*departed(arrival.number)?)));
    Ok(Delays::of(taken.map(|taken| Duration::from(taken) - expected)))
}

/// Steps of 1 to 2 ms that share no period with anything else.
fn step(number: u64) -> Duration {
    Duration::from_micros(1_000 + number * 377 % 1_000)
}

/// Measures random and bursty loss of 2% with so many packets each.
///
/// # Errors
///
/// The system refuses namespaces, devices or sockets.
pub fn losses(packets: u64) -> Result<[LossCheck; 2], TunError> {
    let share = 0.02;
    let burst = 4.0;
    // Of independent losses: n p (1 - p). Of bursts of mean length b, the correlation of neighbours is 1 - 1/b - r, where r is the
    // probability that a burst begins; it multiplies the variance by (1 + rho) / (1 - rho).
    let independent = packets as f64 * share * (1.0 - share);
    let begins = share / (1.0 - share) / burst;
    let correlation = 1.0 - 1.0 / burst - begins;
    let bursty = independent * (1.0 + correlation) / (1.0 - correlation);
    Ok([
        loss("random", Loss::Random(share), share, packets, independent.sqrt())?,
        loss("bursty", Loss::Bursty(GilbertElliott::simple(share, burst)), share, packets, bursty.sqrt())?,
    ])
}

fn loss(what: &'static str, loss: Loss, set: f64, packets: u64, deviation: f64) -> Result<LossCheck, TunError> {
    let mut config = LinkConfig::new(Rate::from_mbps(100.0), Duration::from_millis(1), QueueLimit::Packets(2_000));
    config.loss = loss;
    let links = one_link(config)?;
    let arrivals = receiver(&links)?;
    let socket = sender(&links)?;
    let mut sent = 0;
    let start = Instant::now();
    let mut next = Duration::ZERO;
    while sent < packets {
        // 100 packets of 100 octets in 2 ms are 40 Mbit/s: no queue is ever full.
        for _ in 0..100.min(packets - sent) {
            socket.send(&[0; PROBE]).map_err(stalled).during("send a probe")?;
            sent += 1;
        }
        next += Duration::from_millis(2);
        sleep_until(start, next);
    }
    let arrived = joined(arrivals)?.len() as u64;
    Ok(LossCheck { what, set, sent, lost: sent - arrived, deviation })
}

/// Measures what two links of 100 Mbit/s cost that TCP fills for so long.
///
/// # Errors
///
/// The system refuses namespaces, devices or sockets.
pub fn load(time: Duration) -> Result<LoadCheck, TunError> {
    let link = || LinkConfig::new(Rate::from_mbps(100.0), Duration::from_millis(15), QueueLimit::Packets(250));
    let names = ["link1", "link1/back", "link2", "link2/back"];
    let mut config = TunConfig::new(names.map(|name| (name.to_owned(), link())), 1);
    config.mptcp = false;
    config.add_path([0], [1]);
    config.add_path([2], [3]);
    let links = TunLinks::start(&config)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut streams = Vec::new();
    for path in links.paths() {
        let (client, server) = (path.client, path.server);
        let listener = links.server().run(move || TcpListener::bind((server, PORT))).during("listen")?;
        let writer = links.client().run(move || TcpStream::connect((server, PORT))).during("connect")?;
        debug_assert!(writer.local_addr().is_ok_and(|local| local.ip() == client));
        let reader = listener.accept().during("accept a connection")?.0;
        streams.push((fill(writer, Arc::clone(&stop)), count(reader)));
    }
    // The windows open first.
    thread::sleep(std::time::Duration::from_secs(1));
    let before = links.stats()?;
    thread::sleep(time.into());
    let after = links.stats()?;
    stop.store(true, Ordering::Relaxed);
    for (writer, reader) in streams {
        joined_unit(writer);
        let _ = reader.join();
    }
    let span = after.uptime - before.uptime;
    let delivered = |stats: &crate::tun::TunStats| {
        stats.paths.iter().fold((0, 0), |(packets, bytes), path| {
            let count = path.forward.delivered;
            (packets + count.packets, bytes + count.bytes.get())
        })
    };
    let (packets, bytes) = (delivered(&after).0 - delivered(&before).0, delivered(&after).1 - delivered(&before).1);
    // IPv4 20, TCP 20, timestamps 12.
    let payload = Bytes::new(bytes - packets * 52);
    let late = after.paths.iter().map(|path| path.forward.scheduling_error.quantile(0.99)).max();
    let drops =
        |path: &crate::tun::PathStats| path.forward.kernel_drops.unwrap_or(0) + path.backward.kernel_drops.unwrap_or(0);
    Ok(LoadCheck {
        goodput: payload / span,
        cpu_share: (after.cpu - before.cpu).as_secs_f64() / span.as_secs_f64(),
        late_p99: late.unwrap_or_default(),
        kernel_drops: after.paths.iter().map(drops).sum(),
        realtime: after.realtime,
    })
}

/// A path over one link; the way back is faster.
fn one_link(config: LinkConfig) -> Result<TunLinks, TunError> {
    let back = LinkConfig::new(Rate::from_mbps(1_000.0), config.delay, QueueLimit::Packets(1_000));
    let mut config = TunConfig::new([("link".to_owned(), config), ("back".to_owned(), back)], 1);
    config.add_path([0], [1]);
    TunLinks::start(&config)
}

/// A packet as its receiver saw it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    /// What the sender wrote first.
    number: u64,
}

type Arrivals = thread::JoinHandle<io::Result<Vec<Arrival>>>;

/// Receives at the server until nothing comes any more.
fn receiver(links: &TunLinks) -> Result<Arrivals, SystemError> {
    let address = server(links);
    let socket = links.server().run(move || UdpSocket::bind(address)).during("bind a socket")?;
    set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).during("enlarge a buffer")?;
    // For the first packet there is more time: the sender may not have begun.
    socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).during("set a timeout")?;
    Ok(thread::spawn(move || {
        urgent();
        let mut arrivals = Vec::new();
        let mut payload = [0; FULL];
        loop {
            match socket.recv(&mut payload) {
                Ok(_) => {
                    let at = Instant::now();
                    let number = payload.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
                    arrivals.push(Arrival { at, number });
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(arrivals);
                }
                Err(error) => return Err(error),
            }
            if arrivals.len() == 1 {
                socket.set_read_timeout(Some(SILENCE.into()))?;
            }
        }
    }))
}

fn sender(links: &TunLinks) -> Result<UdpSocket, SystemError> {
    let address = server(links);
    let connected = links.client().run(move || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(address)?;
        Ok::<_, io::Error>(socket)
    });
    connected.during("connect a socket")
}

fn server(links: &TunLinks) -> SocketAddr {
    // Every set of links here has a path.
    let address = links.paths().first().map_or(Ipv4Addr::UNSPECIFIED, |path| path.server);
    SocketAddr::from((address, PORT))
}

/// Writes as much as the connection takes until told to stop.
fn fill(mut stream: TcpStream, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        urgent();
        let data = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) && stream.write_all(&data).is_ok() {}
    })
}

/// Reads to the end.
fn count(mut stream: TcpStream) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        urgent();
        let mut data = vec![0; 1 << 16];
        while stream.read(&mut data).is_ok_and(|length| length > 0) {}
    })
}

/// Gives the calling thread the priority of the links, so far as the system lets it.
fn urgent() {
    sharpen_timers();
    become_realtime();
}

fn sleep_until(start: Instant, after: Duration) {
    let due = start + std::time::Duration::from(after);
    thread::sleep(due.saturating_duration_since(Instant::now()));
}

fn joined(arrivals: Arrivals) -> Result<Vec<Arrival>, TunError> {
    let arrivals = arrivals.join().map_err(|_| TunError::Gone)?;
    Ok(arrivals.during("receive probes")?)
}

fn joined_unit(thread: thread::JoinHandle<()>) {
    // Its work is over; a panic of it shows in what it has done.
    let _ = thread.join();
}

/// The receiver has gone if nothing came for [`SILENCE`], and then its end refuses probes.
fn stalled(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::ConnectionRefused {
        io::Error::other(format!("this program stood still for {SILENCE}: try again when the machine is less busy"))
    } else {
        error
    }
}

fn nothing_arrived() -> TunError {
    let reason = io::Error::other("nothing arrived");
    TunError::System(SystemError { action: "measure a rate", reason })
}
