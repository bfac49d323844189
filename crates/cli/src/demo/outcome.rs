//! What a run of the demo measured, as numbers, as JSON and as a table.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::output::rounded;

/// UDP payload of a full datagram, as the transport's MTU discovery finds it on the loopback interface.
const DATAGRAM: f64 = 1452.0;
/// What IPv4 and UDP add on the wire.
const IP_UDP: f64 = 28.0;
/// What QUIC (short header, DATAGRAM frame, authentication tag) and the record's header take of the datagram.
const QUIC_AND_RECORD: f64 = 38.0 + 26.0;

/// The share of a link's rate that payload can use: payload over wire bytes of a full datagram.
pub(crate) const PAYLOAD_SHARE: f64 = (DATAGRAM - QUIC_AND_RECORD) / (DATAGRAM + IP_UDP);

/// Left out at the start of a run when its steady goodput is computed, seconds.
pub(crate) const WARM_UP: f64 = 2.0;

/// One of the emulated links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DemoLink {
    /// The path's name.
    pub(crate) name: &'static str,
    /// Rate, Mbit/s on the wire.
    pub(crate) mbps: f64,
    /// Round-trip time, milliseconds.
    pub(crate) rtt_ms: u64,
    /// Queue of each direction, kilobytes.
    pub(crate) queue_kb: u64,
    /// Loss of each direction.
    pub(crate) loss: f64,
}

/// WiFi-like and LTE-like.
pub(crate) const LINKS: [DemoLink; 2] = [
    DemoLink { name: "wifi", mbps: 50.0, rtt_ms: 20, queue_kb: 64, loss: 0.001 },
    DemoLink { name: "lte", mbps: 30.0, rtt_ms: 80, queue_kb: 400, loss: 0.0 },
];

/// Payload capacity of both links together, Mbit/s.
pub(crate) fn capacity_mbps() -> f64 {
    LINKS.iter().map(|link| link.mbps).sum::<f64>() * PAYLOAD_SHARE
}

/// Goodput of each path at one moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the first byte was asked for.
    pub(crate) at: f64,
    /// Mbit/s since the previous sample, in the order of the run's paths.
    pub(crate) mbps: Vec<f64>,
}

/// What the relay says about one link: the rate it gave while it had a backlog, and the rate it was set to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LinkCheck {
    pub(crate) link: &'static str,
    pub(crate) set_mbps: f64,
    /// `None` if the link never had enough of a backlog to measure.
    pub(crate) measured_mbps: Option<f64>,
    /// For how long it had one, seconds.
    pub(crate) backlogged_s: f64,
}

impl LinkCheck {
    /// How far the measured rate is from the set one, as a share.
    pub(crate) fn error(&self) -> Option<f64> {
        self.measured_mbps.map(|measured| (measured / self.set_mbps - 1.0).abs())
    }
}

/// One download.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) cc: String,
    pub(crate) sched: String,
    pub(crate) paths: Vec<&'static str>,
    /// Wall time of the whole run.
    pub(crate) seconds: f64,
    /// Payload received.
    pub(crate) bytes: u64,
    /// Goodput without the first two seconds.
    pub(crate) goodput_mbps: f64,
    /// The same as a share of the payload capacity of both links.
    pub(crate) capacity_share: f64,
    /// Payload that the server sent more than once.
    pub(crate) retransmitted_bytes: u64,
    /// Whether the received bytes hash to what was served.
    pub(crate) sha256_ok: bool,
    pub(crate) links: Vec<LinkCheck>,
    pub(crate) samples: Vec<Sample>,
}

impl Outcome {
    /// Whether both paths were used.
    pub(crate) fn is_both(&self) -> bool {
        self.paths.len() == LINKS.len()
    }

    /// What the paths are called together.
    pub(crate) fn path_names(&self) -> String {
        self.paths.join(" + ")
    }
}

/// A controller whose runs could not all be made.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) cc: String,
    pub(crate) error: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.cc, self.error)
    }
}

/// What came of the runs.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) failures: Vec<Failure>,
}

/// Goodput between two counts of bytes, Mbit/s.
pub(crate) fn mbps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 }
}

/// Both paths' goodput over the sum of what each gave alone, with the same controller; `None` if a run is missing.
pub(crate) fn versus_sum(outcomes: &[Outcome], both: &Outcome) -> Option<f64> {
    let alone = |name: &str| outcomes.iter().find(|o| o.cc == both.cc && o.paths == [name]).map(|o| o.goodput_mbps);
    let sum: f64 = LINKS.iter().map(|link| alone(link.name)).sum::<Option<f64>>()?;
    (sum > 0.0).then(|| both.goodput_mbps / sum)
}

/// The table, and below it how capacity was computed and how exact the links were.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    // Names with parameters may be long.
    let width =
        |least: usize, name: fn(&Outcome) -> &str| outcomes.iter().map(|o| name(o).len()).fold(least, usize::max);
    let (cc, sched) = (width(13, |o| &o.cc), width(20, |o| &o.sched));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:cc$} {:sched$} {:11} {:>7} {:>15} {:>9} {:>9} {:>13}  sha256",
        "controller", "scheduler", "paths", "time s", "goodput Mbit/s", "of links", "vs sum", "retransmitted"
    );
    for o in outcomes {
        let versus = if o.is_both() { versus_sum(outcomes, o) } else { None };
        let versus = versus.map_or_else(String::new, |share| format!("{share:.2}"));
        let again = 100.0 * o.retransmitted_bytes as f64 / o.bytes.max(1) as f64;
        let _ = writeln!(
            out,
            "{:cc$} {:sched$} {:11} {:7.1} {:15.1} {:9.2} {:>9} {:12.2}%  {}",
            o.cc,
            o.sched,
            o.path_names(),
            o.seconds,
            o.goodput_mbps,
            o.capacity_share,
            versus,
            again,
            if o.sha256_ok { "ok" } else { "WRONG" }
        );
    }
    let _ = writeln!(out, "\n{}", notes(outcomes).join("\n"));
    out
}

/// What a reader must know to judge the numbers.
pub(crate) fn notes(outcomes: &[Outcome]) -> Vec<String> {
    let mut notes = vec![format!(
        "goodput: payload received per second, without the first {WARM_UP:.0} s; of links: its share of {:.1} Mbit/s, the payload \
         capacity of both links = ({}) Mbit/s x {:.0} payload bytes / {:.0} bytes on the wire of a full datagram.",
        capacity_mbps(),
        LINKS.map(|link| format!("{:.0}", link.mbps)).join(" + "),
        DATAGRAM - QUIC_AND_RECORD,
        DATAGRAM + IP_UDP,
    )];
    notes.push("vs sum: both paths over (WiFi alone + LTE alone).".to_owned());
    for link in &LINKS {
        let checks = outcomes.iter().flat_map(|o| &o.links).filter(|check| check.link == link.name);
        let worst = checks
            .filter(|check| check.error().is_some())
            .max_by(|a, b| a.error().partial_cmp(&b.error()).unwrap_or(std::cmp::Ordering::Equal));
        notes.push(match worst.and_then(|check| Some((check, check.measured_mbps?, check.error()?))) {
            Some((check, measured, error)) => format!(
                "{}: the relay gave {measured:.2} Mbit/s of the {:.0} set while it had a backlog ({:.2}% off for {:.1} s, the worst run).",
                link.name,
                link.mbps,
                100.0 * error,
                check.backlogged_s
            ),
            None => format!("{}: never had enough of a backlog to measure its rate.", link.name),
        });
    }
    notes
}

/// All runs as one JSON object.
pub(crate) fn json(measured: &Measured) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Runs<'a> {
        payload_capacity_mbps: f64,
        runs: Vec<Outcome>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        failures: &'a [Failure],
    }
    let runs = measured.outcomes.iter().map(tidy).collect();
    let payload_capacity_mbps = rounded(capacity_mbps(), 6);
    serde_json::to_string(&Runs { payload_capacity_mbps, runs, failures: &measured.failures })
}

/// Without digits that no clock and no counter has.
fn tidy(outcome: &Outcome) -> Outcome {
    let link = |link: &LinkCheck| LinkCheck {
        measured_mbps: link.measured_mbps.map(|mbps| rounded(mbps, 6)),
        backlogged_s: rounded(link.backlogged_s, 6),
        ..*link
    };
    let sample = |sample: &Sample| Sample {
        at: rounded(sample.at, 6),
        mbps: sample.mbps.iter().map(|mbps| rounded(*mbps, 6)).collect(),
    };
    Outcome {
        seconds: rounded(outcome.seconds, 6),
        goodput_mbps: rounded(outcome.goodput_mbps, 6),
        capacity_share: rounded(outcome.capacity_share, 6),
        links: outcome.links.iter().map(link).collect(),
        samples: outcome.samples.iter().map(sample).collect(),
        ..outcome.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn outcome(cc: &str, paths: Vec<&'static str>, goodput: f64) -> Outcome {
        let samples = (0..80_u32)
            .map(|i| {
                let t = f64::from(i) / 10.0;
                let wave = 3.0 * libm_free_wave(t);
                Sample {
                    at: t,
                    mbps: paths.iter().map(|p| if *p == "wifi" { 44.0 + wave } else { 26.0 - wave }).collect(),
                }
            })
            .collect();
        Outcome {
            cc: cc.to_owned(),
            sched: "minrtt".to_owned(),
            links: vec![LinkCheck { link: "wifi", set_mbps: 50.0, measured_mbps: Some(49.9), backlogged_s: 7.0 }],
            paths,
            seconds: 8.4,
            bytes: 60_000_000,
            goodput_mbps: goodput,
            capacity_share: goodput / capacity_mbps(),
            retransmitted_bytes: 600_000,
            sha256_ok: true,
            samples,
        }
    }

    /// A triangle between -1 and 1 with a period of two seconds.
    fn libm_free_wave(t: f64) -> f64 {
        (t % 2.0 - 1.0).abs() * 2.0 - 1.0
    }

    #[test]
    fn capacity_is_payload_not_wire() {
        // 80 Mbit/s x (1452 - 64) / 1480 = 75.03 Mbit/s
        assert!((capacity_mbps() - 75.027).abs() < 0.01);
    }

    #[test]
    fn both_paths_are_compared_with_each_alone() {
        let runs = [
            outcome("lia", vec!["wifi"], 40.0),
            outcome("lia", vec!["lte"], 25.0),
            outcome("lia", vec!["wifi", "lte"], 65.0),
        ];
        assert!((versus_sum(&runs, &runs[2]).unwrap() - 1.0).abs() < 1e-12);
        assert!(versus_sum(&runs[1..], &runs[2]).is_none());
        let table = table(&runs);
        assert!(table.contains("wifi + lte"), "{table}");
        assert!(table.contains("1.00%  ok"), "{table}");
        assert!(table.contains("0.20% off"), "{table}");
    }

    #[test]
    fn columns_stay_below_their_heads_whatever_names_are_long() {
        let mut runs = [outcome("lia", vec!["wifi"], 40.0), outcome("mpcc-latency:omega=0.1", vec!["wifi"], 40.0)];
        runs[0].sched = "arrival-order:rescue=on".to_owned();
        let table = table(&runs);
        let mut lines = table.lines();
        let column = lines.next().unwrap().find("paths");
        assert!(lines.take(2).all(|line| line.find("wifi") == column), "{table}");
    }

    #[test]
    fn json_has_the_promised_keys() {
        let outcomes = vec![outcome("lia", vec!["wifi", "lte"], 65.0)];
        let measured = Measured { outcomes, failures: Vec::new() };
        let value: serde_json::Value = serde_json::from_str(&json(&measured).unwrap()).unwrap();
        let run = &value["runs"][0];
        for key in ["cc", "sched", "paths", "seconds", "goodput_mbps", "capacity_share", "sha256_ok"] {
            assert!(!run[key].is_null(), "{key}");
        }
        assert_eq!(run["paths"], serde_json::json!(["wifi", "lte"]));
    }
}
