//! `perf`: how fast does it go? Memory to memory, in the manner of iperf3.

mod ahead;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use manypath_core::ParseUnitError;
use manypath_quic::{Connection, ConnectionStats, Server, TransportConfig};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::client::{self, AlgorithmArgs, ClientArgs, parse_duration};
use crate::files::Hash;
use crate::files::incoming::{self, ReceiveError};
use crate::files::outgoing::SendError;
use crate::files::patient::Patient;
use crate::files::wire::{self, Direction, End, Frame, MAX_DATA, ReadError};
use crate::interrupt::Interrupt;
use crate::output::{self, rounded};
use crate::progress::{Position, Side, mbps, millis};
use crate::schedule_trace::{ScheduleTrace, TraceArgs};
use crate::serve::{self, ListenArgs};
use crate::service::Service;
use crate::target::Host;
use crate::transfer;
use ahead::Ahead;

/// The longest measurement that a server takes part in.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// Options that say nothing to a server.
const CLIENTS: [&str; 11] =
    ["time", "parallel", "reverse", "interval", "json", "paths", "cost", "priority", "pin", "ca", "timeout"];
/// Options that say nothing to a client.
const SERVERS: [&str; 5] = ["listen", "cert", "key", "state", "no_choice"];

/// Measure throughput between two hosts
///
/// Run `manypath perf -s` on one host and `manypath perf -c HOST` on the other. The client sends, or receives with -R.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("role").required(true).args(["server", "connect"])),
    after_help = "Examples:\n  manypath perf -s\n  manypath perf -c 192.0.2.7 --pin FINGERPRINT -t 20\n  \
                  manypath perf -c 192.0.2.7 --pin FINGERPRINT -R -P 4 --path wlan0 --path wwan0 --cc mpcc-loss"
)]
pub(crate) struct Args {
    /// Wait for clients
    #[arg(short, long, conflicts_with_all = CLIENTS)]
    server: bool,

    /// Measure against this server; the port is 4433 if left out
    #[arg(short, long = "client", value_name = "HOST[:PORT]", id = "connect", conflicts_with_all = SERVERS)]
    client: Option<Host>,

    /// How long to send, an hour at most; a number alone is of seconds, as for iperf3
    ///
    /// What is under way then still arrives: some seconds of data at most.
    #[arg(
        short,
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = parse_seconds,
        allow_hyphen_values = true
    )]
    time: Duration,

    /// How many flows to use at once, 128 at most
    #[arg(
        short = 'P',
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=128)
    )]
    parallel: u16,

    /// The server sends
    #[arg(short = 'R', long)]
    reverse: bool,

    /// The time between two reports, 10ms at least; a number alone is of seconds
    #[arg(
        short,
        long,
        value_name = "DURATION",
        default_value = "1s",
        value_parser = parse_seconds,
        allow_hyphen_values = true
    )]
    interval: Duration,

    /// Print the outcome as JSON
    #[arg(short = 'J', long)]
    json: bool,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    connection: ClientArgs,

    #[command(flatten)]
    algorithms: AlgorithmArgs,

    #[command(flatten)]
    trace: TraceArgs,
}

/// As [`parse_duration`], but a number alone is of seconds: who comes from iperf3 types `-t 20`.
fn parse_seconds(text: &str) -> Result<Duration, ParseUnitError> {
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        parse_duration(&format!("{text}s"))
    } else {
        parse_duration(text)
    }
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct Report {
    start: StartReport,
    intervals: Vec<IntervalReport>,
    /// `null` if the measurement did not come to its end.
    end: Option<EndReport>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct StartReport {
    version: &'static str,
    server: String,
    /// What the sender uses; `null` where that is the server's own choice, which is not known here.
    cc: Option<String>,
    sched: Option<String>,
    reverse: bool,
    flows: u16,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct IntervalReport {
    start: f64,
    end: f64,
    bytes: u64,
    goodput_mbps: f64,
    paths: Vec<PathReport>,
}

#[derive(Debug, Serialize)]
struct PathReport {
    name: String,
    bytes: u64,
    mbps: f64,
    srtt_ms: Option<f64>,
    cwnd_bytes: u64,
    records_lost: u64,
}

#[derive(Debug, Serialize)]
struct EndReport {
    seconds: f64,
    /// What the receiver got, each byte once.
    bytes: u64,
    goodput_mbps: f64,
    retransmitted_bytes: u64,
    paths: Vec<PathReport>,
}

/// Runs the command.
pub(crate) async fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    if let Some(host) = &args.client {
        return measure(args, host, interrupt).await;
    }
    let token = args.connection.token();
    let trace = ScheduleTrace::open(&args.trace)?;
    let mut config = args.listen.config(&args.algorithms, token)?;
    trace.attach(&mut config.transport);
    let server = Server::bind(config).await?;
    output::note("Waiting for measurements. Measure with");
    for address in serve::reachable(&server) {
        output::line(&format!("manypath perf -c {address} {}", serve::client_options(&server, token)))?;
    }
    output::note("Ctrl-C ends it.");
    trace.finish(serve::until_interrupted(&server, &Service::perf(), interrupt).await)
}

async fn measure(args: &Args, host: &Host, interrupt: &Interrupt) -> Result<()> {
    if args.time > LONGEST || args.time.is_zero() || args.interval < Duration::from_millis(10) {
        bail!("a measurement lasts at most an hour and more than nothing, with reports at least 10 ms apart");
    }
    let start = start(args, host)?;
    let trace = ScheduleTrace::open(&args.trace)?;
    let mut intervals = Vec::new();
    let outcome = attempt(args, host, &trace, interrupt, &mut intervals).await;
    trace.finish(report(args, start, intervals, outcome))
}

/// Connects and measures.
async fn attempt(
    args: &Args,
    host: &Host,
    trace: &ScheduleTrace,
    interrupt: &Interrupt,
    intervals: &mut Vec<IntervalReport>,
) -> Result<EndReport> {
    let connection = tokio::select! {
        connection = args.connection.connect(host, &args.algorithms, trace) => connection?,
        () = interrupt.wait() => bail!("interrupted"),
    };
    let outcome = tokio::select! {
        outcome = measured(args, &connection, intervals) => outcome,
        () = interrupt.wait() => Err(anyhow!("interrupted")),
        error = args.connection.unheard(&connection) => Err(error),
    };
    client::goodbye(&connection).await;
    outcome
}

/// What is to be measured.
fn start(args: &Args, host: &Host) -> Result<StartReport> {
    let (cc, sched) = args.algorithms.chosen()?;
    let (cc, sched) = if args.reverse {
        (cc, sched)
    } else {
        let own = TransportConfig::default();
        (cc.or(Some(own.cc)), sched.or(Some(own.sched)))
    };
    Ok(StartReport {
        version: env!("CARGO_PKG_VERSION"),
        server: host.to_string(),
        cc: cc.map(|cc| cc.to_string()),
        sched: sched.map(|sched| sched.to_string()),
        reverse: args.reverse,
        flows: args.parallel,
        seconds: args.time.as_secs_f64(),
    })
}

/// Says what was measured: of a measurement that was broken off, the intervals until then.
fn report(args: &Args, start: StartReport, intervals: Vec<IntervalReport>, outcome: Result<EndReport>) -> Result<()> {
    if !args.json {
        if let (Err(_), Some(last)) = (&outcome, intervals.last()) {
            let bytes = manypath_core::Bytes::new(intervals.iter().map(|interval| interval.bytes).sum());
            let mbps = mbps(bytes.get(), Duration::from_secs_f64(last.end));
            output::line(&format!("Until then: {bytes:.1} in {:.1} s, {mbps:.1} Mbit/s", last.end))?;
        }
        let end = outcome?;
        let [bytes, retransmitted] = [end.bytes, end.retransmitted_bytes].map(manypath_core::Bytes::new);
        return output::line(&format!(
            "Total: {bytes:.1} in {:.1} s, {:.1} Mbit/s, {retransmitted:.1} retransmitted",
            end.seconds, end.goodput_mbps
        ));
    }
    match outcome {
        Ok(end) => output::json(&Report { start, intervals, end: Some(end), error: None }),
        Err(error) => {
            output::json(&Report { start, intervals, end: None, error: Some(crate::told(&error)) })?;
            Err(error)
        }
    }
}

/// Measures; every interval goes to `intervals` as it ends.
async fn measured(args: &Args, connection: &Connection, intervals: &mut Vec<IntervalReport>) -> Result<EndReport> {
    let side = if args.reverse { Side::Receiving } else { Side::Sending };
    let mut running = JoinSet::new();
    let (beginning, mut begun) = watch::channel(None);
    for _ in 0..args.parallel {
        running.spawn(one_flow(connection.clone(), side, args.time, args.connection.timeout, beginning.clone()));
    }
    drop(beginning);
    let Ok(Some((began, first))) = begun.wait_for(Option::is_some).await.map(|begun| begun.clone()) else {
        // No flow began: the first has said why.
        let ended = running.join_next().await.context("no flow was asked for")?;
        return Err(ended.context("a flow stopped")?.err().unwrap_or_else(|| anyhow!("no flow began")));
    };
    let (mut bytes, mut retransmitted) = (0, 0);
    let mut ticks = tokio::time::interval(args.interval);
    // Where standard output stalls, so does this loop: intervals are longer then, none is made up afterwards.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await; // the first comes at once
    let mut before = (Duration::ZERO, first.clone());
    let mut last_ended = began;
    let mut end = None;
    while end.is_none() {
        tokio::select! {
            biased; // flows that have ended end the intervals
            flow = running.join_next() => match flow {
                Some(flow) => {
                    let flow = flow.context("a flow stopped")??;
                    bytes += flow.received;
                    retransmitted = u64::max(retransmitted, flow.retransmitted);
                    last_ended = last_ended.max(flow.ended);
                    continue;
                }
                None => end = Some(last_ended - began),
            },
            _ = ticks.tick() => {}
        }
        let (at, now) = (end.unwrap_or_else(|| began.elapsed()), connection.stats());
        // What is left after the last tick is too short for a rate.
        if end.is_none() || at.saturating_sub(before.0) >= args.interval / 2 {
            let interval = interval(&before, (at, &now), side);
            if !args.json {
                output::line(&text(&interval, intervals.is_empty()))?;
            }
            intervals.push(interval);
        }
        before = (at, now);
    }
    let elapsed = end.unwrap_or_default();
    Ok(EndReport {
        seconds: rounded(elapsed.as_secs_f64(), 3),
        bytes,
        goodput_mbps: rounded(mbps(bytes, elapsed), 3),
        retransmitted_bytes: retransmitted,
        paths: paths(&first, &before.1, side, elapsed),
    })
}

/// When a measurement began, and the counters then.
type Beginning = (Instant, ConnectionStats);

/// What a flow has brought.
struct Flow {
    /// Bytes that the receiver got.
    received: u64,
    /// Bytes that the sender's connection has sent again.
    retransmitted: u64,
    ended: Instant,
}

/// One flow's part, which begins the measurement if it is the first that the server is ready for. Flows do not wait for
/// each other: what one is sent and does not read fills the window of all.
async fn one_flow(
    connection: Connection,
    side: Side,
    duration: Duration,
    silence: Duration,
    beginning: watch::Sender<Option<Beginning>>,
) -> Result<Flow> {
    let direction = if side == Side::Receiving { Direction::Download } else { Direction::Upload };
    let (mut send, mut receive) = connection.open_flow().await?;
    // A server that does not take the request has said why, or the connection is over: reading tells.
    let _ = wire::write(&mut send, &Frame::Perf { direction, duration_ms: millis(duration) }).await;
    match transfer::answer(&connection, wire::read(&mut receive).await).await? {
        Frame::Ready => {}
        other => return Err(transfer::unexpected(other, "measurement")),
    }
    beginning.send_if_modified(|begun| {
        let is_first = begun.is_none();
        begun.get_or_insert_with(|| (Instant::now(), connection.stats()));
        is_first
    });
    drop(beginning);
    let position = Position::default();
    match side {
        Side::Receiving => {
            let end = self::receive(&mut receive, silence, &position).await?;
            Ok(Flow { received: position.get(), retransmitted: end.retransmitted, ended: Instant::now() })
        }
        Side::Sending => {
            let sent = send_for(&mut send, duration, &position, || connection.stats()).await;
            // Also a server that takes no more has said why.
            match transfer::answer(&connection, wire::read(&mut receive).await).await? {
                Frame::Done { length, .. } => {
                    sent?;
                    let retransmitted = connection.stats().retransmitted.get();
                    Ok(Flow { received: length, retransmitted, ended: Instant::now() })
                }
                other => Err(transfer::unexpected(other, "measurement")),
            }
        }
    }
}

fn interval(before: &(Duration, ConnectionStats), now: (Duration, &ConnectionStats), side: Side) -> IntervalReport {
    let span = now.0.saturating_sub(before.0);
    let bytes = side.goodput(now.1).saturating_sub(side.goodput(&before.1));
    IntervalReport {
        start: rounded(before.0.as_secs_f64(), 3),
        end: rounded(now.0.as_secs_f64(), 3),
        bytes,
        goodput_mbps: rounded(mbps(bytes, span), 3),
        paths: paths(&before.1, now.1, side, span),
    }
}

fn paths(before: &ConnectionStats, now: &ConnectionStats, side: Side, span: Duration) -> Vec<PathReport> {
    let told = now.paths.iter().enumerate().filter(|(_, path)| transfer::has_served(path));
    let paths = told.map(|(index, path)| {
        let bytes = side.bytes(now, index).saturating_sub(side.bytes(before, index));
        let lost = before.paths.get(index).map_or(0, |path| path.records_lost);
        PathReport {
            name: path.name.clone(),
            bytes,
            mbps: rounded(mbps(bytes, span), 3),
            srtt_ms: path.srtt.map(|srtt| rounded(srtt.as_secs_f64() * 1e3, 3)),
            cwnd_bytes: path.cwnd.get(),
            records_lost: path.records_lost.saturating_sub(lost),
        }
    });
    paths.collect()
}

/// An interval as a line, after a headline if it is the first.
fn text(interval: &IntervalReport, first: bool) -> String {
    let headline = if first { "  seconds       Mbit/s   by path\n" } else { "" };
    let paths: Vec<_> = interval.paths.iter().map(|path| format!("{} {:.1}", path.name, path.mbps)).collect();
    let (start, end) = (interval.start, interval.end);
    format!("{headline}{start:>6.2}-{end:<6.2} {:>8.1}   {}", interval.goodput_mbps, paths.join("  "))
}

/// How long to wait before it is looked again whether there is room.
const PAUSE: Duration = Duration::from_millis(1);

/// Sends nothing in particular for some time, then END; `stats` are those of the connection.
pub(crate) async fn send_for(
    flow: &mut (impl AsyncWrite + Unpin),
    duration: Duration,
    position: &Position,
    stats: impl Fn() -> ConnectionStats,
) -> Result<(), SendError> {
    let content = vec![0x5a; MAX_DATA];
    let deadline = Instant::now() + duration;
    let mut ahead = Ahead::default();
    let sending = async {
        while Instant::now() < deadline {
            if !ahead.has_room(&stats()) {
                // It tells if nobody takes more, now and not when the time is over.
                flow.flush().await?;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            wire::write_data(flow, &content).await?;
            position.add(content.len());
        }
        let retransmitted = stats().retransmitted.get();
        wire::write(flow, &Frame::End(End { length: position.get(), hash: Hash([0; 32]), retransmitted })).await
    };
    sending.await.map_err(SendError::Flow)
}

/// Receives until END.
pub(crate) async fn receive(
    flow: &mut (impl AsyncRead + Unpin),
    silence: Duration,
    position: &Position,
) -> Result<End, ReceiveError> {
    let mut flow = Patient::new(flow, silence);
    loop {
        match incoming::next(&mut flow).await? {
            Frame::Data(content) => position.add(content.len()),
            Frame::End(end) if end.length == position.get() => return Ok(end),
            Frame::Error { refusal, message } => return Err(ReceiveError::Refused { refusal, message }),
            _ => return Err(ReadError::Malformed("content was expected").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;

    #[test]
    fn a_number_alone_is_of_seconds() {
        assert_eq!(parse_seconds("20").unwrap(), Duration::from_secs(20));
        assert_eq!(parse_seconds("0.5").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_seconds("500ms").unwrap(), Duration::from_millis(500));
        for bad in ["", "-3", "s", "5m"] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_measurement_counts_what_arrives() {
        let (mut near, mut far) = tokio::io::duplex(10_000);
        let (sent, received) = (Position::default(), Position::default());
        let send = send_for(&mut near, Duration::from_millis(20), &sent, || ConnectionStats {
            retransmitted: manypath_core::Bytes::new(5),
            ..ConnectionStats::default()
        });
        let (outcome, end) = tokio::join!(send, receive(&mut far, Duration::from_secs(5), &received));
        outcome.unwrap();
        let end = end.unwrap();
        assert_eq!((sent.get(), end.length, end.retransmitted), (received.get(), received.get(), 5));
        assert!(received.get() > 0);
    }

    /// Of a connection that is over.
    struct Over;

    impl AsyncWrite for Over {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            panic!("there is no room")
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn who_waits_for_room_is_told_that_nobody_takes_more() {
        let stats = || ConnectionStats { written: manypath_core::Bytes::new(1 << 30), ..ConnectionStats::default() };
        let sent = send_for(&mut Over, LONGEST, &Position::default(), stats).await;
        assert!(matches!(sent, Err(SendError::Flow(error)) if error.kind() == io::ErrorKind::BrokenPipe));
    }
}
