//! Golden traces: what every controller does with one fixed series of events. See `golden/README.md` for the formats.
//!
//! `MANYPATH_UPDATE_GOLDEN=snapshots` rewrites the snapshots, `MANYPATH_UPDATE_GOLDEN=events` also the events.

mod testbed;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use manypath_cc::{Acked, Event, Limits, PathReport, algorithms, create};
use manypath_core::{Bytes, Duration, PacketNumber, Rate, SubflowId, SubflowView, Time, View};
use testbed::{MSS, Replay, Testbed, init, link};

/// Seed of every snapshot.
const SEED: u64 = 1;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// One line of the events: what happens, and what the view of the subflow says after it.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Add(Time, SubflowId),
    Remove(Time, SubflowId),
    Event(Time, SubflowId, Event, Seen),
}

/// The fields of the view that controllers read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    srtt: Option<Duration>,
    delivered: Bytes,
    in_flight: Bytes,
}

fn print(line: &Line) -> String {
    let (at, id, text) = match line {
        Line::Add(at, id) => (at, id, "add".to_owned()),
        Line::Remove(at, id) => (at, id, "remove".to_owned()),
        Line::Event(at, id, event, seen) => {
            let srtt = seen.srtt.map_or("-".to_owned(), |srtt| srtt.as_nanos().to_string());
            let view = format!("| {srtt} {} {}", seen.delivered.get(), seen.in_flight.get());
            (at, id, format!("{} {view}", print_event(event)))
        }
    };
    format!("{} {} {text}", at.as_nanos(), id.0)
}

fn print_event(event: &Event) -> String {
    match event {
        Event::Sent { packet, bytes, app_limited } => {
            format!("sent {} {} {}", packet.0, bytes.get(), u8::from(*app_limited))
        }
        Event::Acked(acked) => format!(
            "acked {} {} {} {} {:.0} {} {} {}",
            acked.packet.0,
            acked.bytes.get(),
            acked.sent_at.as_nanos(),
            acked.rtt.as_nanos(),
            acked.delivery_rate.as_bps(),
            acked.delivered_at_send.get(),
            u8::from(acked.in_recovery),
            u8::from(acked.app_limited)
        ),
        Event::Lost { packet, bytes, sent_at } => format!("lost {} {} {}", packet.0, bytes.get(), sent_at.as_nanos()),
        Event::Congestion { sent_at } => format!("congestion {}", sent_at.as_nanos()),
        Event::Ecn { sent_at } => format!("ecn {}", sent_at.as_nanos()),
        Event::Timeout { repeated } => (if *repeated { "timeout repeated" } else { "timeout" }).to_owned(),
        Event::Restored => "restored".to_owned(),
        Event::Penalised => "penalised".to_owned(),
        Event::PathReport(report) => format!(
            "path-report {} {} {} {} {} {} {}",
            report.samples,
            report.interval.as_nanos(),
            report.mean_delay,
            report.skew_base,
            report.var_base,
            report.lost,
            report.marked
        ),
        Event::Weight(weight) => format!("weight {weight}"),
        other => panic!("the format has no {other:?}"),
    }
}

fn parse(line: &str) -> Line {
    let (what, view) = line.split_once(" | ").unwrap_or((line, ""));
    let words: Vec<&str> = what.split(' ').collect();
    let whole = |index: usize| words[index].parse::<u64>().unwrap();
    let small = |index: usize| words[index].parse::<u32>().unwrap();
    let float = |index: usize| words[index].parse::<f64>().unwrap();
    let time = |index: usize| Time::from_nanos(whole(index));
    let (at, id) = (time(0), SubflowId(small(1)));
    let event = match words[2] {
        "add" => return Line::Add(at, id),
        "remove" => return Line::Remove(at, id),
        "sent" => {
            Event::Sent { packet: PacketNumber(whole(3)), bytes: Bytes::new(whole(4)), app_limited: whole(5) == 1 }
        }
        "acked" => Event::Acked(Acked {
            packet: PacketNumber(whole(3)),
            bytes: Bytes::new(whole(4)),
            sent_at: time(5),
            rtt: Duration::from_nanos(whole(6)),
            delivery_rate: Rate::from_bps(float(7)),
            delivered_at_send: Bytes::new(whole(8)),
            in_recovery: whole(9) == 1,
            app_limited: whole(10) == 1,
        }),
        "lost" => Event::Lost { packet: PacketNumber(whole(3)), bytes: Bytes::new(whole(4)), sent_at: time(5) },
        "congestion" => Event::Congestion { sent_at: time(3) },
        "ecn" => Event::Ecn { sent_at: time(3) },
        "timeout" => Event::Timeout { repeated: words.get(3) == Some(&"repeated") },
        "restored" => Event::Restored,
        "penalised" => Event::Penalised,
        "path-report" => Event::PathReport(PathReport {
            samples: small(3),
            interval: Duration::from_nanos(whole(4)),
            mean_delay: float(5),
            skew_base: words[6].parse().unwrap(),
            var_base: float(7),
            lost: small(8),
            marked: small(9),
        }),
        "weight" => Event::Weight(float(3)),
        other => panic!("no event is called {other}"),
    };
    let seen: Vec<&str> = view.split(' ').collect();
    let number = |index: usize| seen[index].parse::<u64>().unwrap();
    let srtt = (seen[0] != "-").then(|| Duration::from_nanos(number(0)));
    Line::Event(at, id, event, Seen { srtt, delivered: Bytes::new(number(1)), in_flight: Bytes::new(number(2)) })
}

/// The events: LIA's own on two links, with a little of everything else among them.
fn generate() -> Vec<Line> {
    let mut bed = Testbed::new(vec![link(4.0, 30, 12_000, 0.003), link(2.0, 60, 20_000, 0.0)], SEED);
    let lia = create(&"lia".parse().unwrap(), SEED).unwrap();
    bed.connect(lia, &[(0, Time::ZERO), (1, Time::from_millis(150))]);
    bed.record = Some(Vec::new());
    bed.run(Time::from_millis(2_000));
    let mut pending: Vec<(Time, SubflowId, Event)> =
        bed.record.unwrap_or_default().into_iter().map(|(at, _, id, event)| (at, id, event)).collect();
    let report = |skew_base, marked| {
        let interval = Duration::from_millis(350);
        Event::PathReport(PathReport {
            samples: 100,
            interval,
            mean_delay: 0.05,
            skew_base,
            var_base: 0.5,
            lost: 1,
            marked,
        })
    };
    let extra = [
        (400, 0, Event::Ecn { sent_at: Time::from_millis(360) }),
        (500, 1, report(-20, 0)),
        (600, 1, Event::Weight(0.5)),
        (700, 0, report(60, 3)),
        (900, 1, Event::Penalised),
        (1_200, 0, Event::Timeout { repeated: false }),
        (1_250, 0, Event::Restored),
    ];
    for (millis, id, event) in extra {
        let at = Time::from_millis(millis);
        let place = pending.iter().position(|(held, ..)| *held >= at).unwrap_or(pending.len());
        pending.insert(place, (at, SubflowId(id), event));
    }
    let mut replay = Replay::new(create(&"lia".parse().unwrap(), SEED).unwrap(), 2);
    let mut lines = vec![Line::Add(Time::ZERO, SubflowId(0)), Line::Add(Time::ZERO, SubflowId(1))];
    for (index, (at, id, mut event)) in pending.into_iter().enumerate() {
        // Some packets at the application's pace.
        if let Event::Acked(acked) = &mut event {
            acked.app_limited = (index / 50) % 9 == 8;
            acked.delivery_rate = Rate::from_bps(acked.delivery_rate.as_bps().round());
        }
        replay.step(at, id, &event);
        let view = &replay.view.subflows[id.index()];
        let seen = Seen { srtt: view.srtt, delivered: view.delivered, in_flight: view.in_flight };
        lines.push(Line::Event(at, id, event, seen));
    }
    lines.push(Line::Remove(Time::from_millis(2_000), SubflowId(1)));
    lines
}

/// A controller's limits after each event that changed them.
fn snapshot(name: &str, lines: &[Line]) -> String {
    let mut cc = create(&name.parse().unwrap(), SEED).unwrap();
    let mut view = View::default();
    let mut last: Vec<Option<Limits>> = Vec::new();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let (Line::Add(at, _) | Line::Remove(at, _) | Line::Event(at, ..)) = line;
        // Timers that were due before, each at its own time.
        while let Some(due) = cc.next_timer().filter(|due| due < at) {
            cc.on_timer(due, &view);
            if cc.next_timer() == Some(due) {
                break;
            }
        }
        match line {
            Line::Add(at, id) => {
                view.subflows.push(SubflowView::new(*id, Bytes::new(MSS)));
                last.push(None);
                cc.add_subflow(*at, *id, init());
            }
            Line::Remove(at, id) => cc.remove_subflow(*at, *id),
            Line::Event(at, id, event, seen) => {
                let own = &mut view.subflows[id.index()];
                own.srtt = seen.srtt;
                own.delivered = seen.delivered;
                own.in_flight = seen.in_flight;
                cc.on_event(*at, *id, event, &view);
            }
        }
        for own in &mut view.subflows {
            let limits = cc.limits(own.id);
            own.cwnd = limits.cwnd;
            own.pacing = limits.pacing;
            let held = &mut last[own.id.index()];
            if *held != Some(limits) {
                *held = Some(limits);
                let pacing = limits.pacing.map_or("-".to_owned(), |rate| format!("{:.0}", rate.as_bps()));
                let ssthresh = limits.ssthresh.map_or("-".to_owned(), |bytes| bytes.get().to_string());
                writeln!(text, "{number} {} {} {pacing} {ssthresh}", own.id.0, limits.cwnd.get()).unwrap();
            }
        }
    }
    text
}

fn events() -> Vec<Line> {
    let text = fs::read_to_string(folder().join("events.txt")).unwrap();
    text.lines().map(parse).collect()
}

#[test]
fn controllers_do_what_they_did() {
    let update = std::env::var("MANYPATH_UPDATE_GOLDEN").unwrap_or_default();
    if update == "events" {
        let text: String = generate().iter().map(|line| print(line) + "\n").collect();
        fs::write(folder().join("events.txt"), text).unwrap();
    }
    let lines = events();
    let mut changed = Vec::new();
    for algorithm in algorithms() {
        let path = folder().join(format!("{}.txt", algorithm.name));
        let now = snapshot(algorithm.name, &lines);
        if !update.is_empty() {
            fs::write(&path, &now).unwrap();
        }
        let held = fs::read_to_string(&path).unwrap_or_default();
        if let Some((line, (old, new))) = held.lines().zip(now.lines()).enumerate().find(|(_, (old, new))| old != new) {
            changed.push(format!("{}, line {}: '{old}' is now '{new}'", algorithm.name, line + 1));
        } else if held.lines().count() != now.lines().count() {
            changed.push(format!("{}: {} lines are now {}", algorithm.name, held.lines().count(), now.lines().count()));
        }
    }
    assert!(changed.is_empty(), "MANYPATH_UPDATE_GOLDEN=snapshots accepts these changes:\n{}", changed.join("\n"));
}

#[test]
fn events_print_back_the_same() {
    let text = fs::read_to_string(folder().join("events.txt")).unwrap();
    for line in text.lines() {
        assert_eq!(print(&parse(line)), line);
    }
    // Every kind of event is there.
    for kind in ["add", "remove", "sent", "acked", "lost", "congestion", "ecn", "timeout", "restored", "penalised"] {
        assert!(text.lines().any(|line| line.split(' ').nth(2) == Some(kind)), "no {kind}");
    }
}
