//! What the fuzzers of scenario files run, shared with the test that replays their corpora (`crates/sim/tests/corpus.rs`).

// Each user includes this file and calls one or both of the functions.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use manypath_core::{Duration, Time};
use manypath_scenario::{Override, Scenario, ScenarioError, parse_with};
use manypath_session::{Traced, Tracer};
use manypath_sim::{Observer, run_observed};

/// Reads bytes as overrides, one a line, and after a NUL the file; without a NUL all is the file.
fn read(bytes: &[u8]) -> Option<(String, Result<Scenario, ScenarioError>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (overrides, file) = text.split_once('\0').unwrap_or(("", text));
    let overrides: Vec<Override> = overrides.lines().filter_map(|line| line.parse().ok()).collect();
    // No file of this machine is to be read as a trace.
    let outcome = parse_with(file, "fuzz.toml", Path::new("/nonexistent"), &overrides);
    Some((file.to_owned(), outcome))
}

/// A file is a scenario of which everything is true that readers rely on, or an error that names a place in it.
pub(crate) fn scenario(bytes: &[u8]) {
    match read(bytes) {
        Some((file, Err(error))) => check_error(&file, &error),
        Some((_, Ok(scenario))) => check_scenario(&scenario),
        None => {}
    }
}

fn check_error(file: &str, error: &ScenarioError) {
    let lines = file.split('\n').count();
    assert!(error.line >= 1 && error.line <= lines, "line {} of {lines}", error.line);
    assert!(error.column >= 1);
    assert!(error.problem.to_string().chars().any(|c| !c.is_whitespace()), "an error without a word");
    if error.file == "fuzz.toml" {
        assert!(error.to_string().chars().count() < 1000, "a message as long as the file");
    }
}

fn check_scenario(scenario: &Scenario) {
    assert!(!scenario.duration.is_zero() && scenario.warmup < scenario.duration);
    for link in &scenario.links {
        link.config.validate().expect("links are checked");
    }
    let links = scenario.links.len();
    let route = |route: &[usize]| {
        assert!(!route.is_empty() && route.iter().all(|link| *link < links));
        assert!(route.iter().collect::<BTreeSet<_>>().len() == route.len(), "a circle");
    };
    for connection in &scenario.connections {
        assert!(!connection.paths.is_empty() && connection.paths.len() <= 64);
        for path in &connection.paths {
            route(&path.forward);
            route(&path.backward);
            assert!(path.cost.is_finite() && path.cost >= 0.0);
        }
        assert!(connection.packet > connection.overhead + connection.record_header);
        assert!(connection.send_buffer >= connection.packet && connection.receive_buffer >= connection.packet);
    }
    scenario.sources.iter().for_each(|source| route(&source.route));
    let connections = scenario.connections.iter().map(|connection| &connection.name);
    let names: BTreeSet<_> = connections.chain(scenario.sources.iter().map(|source| &source.name)).collect();
    assert_eq!(names.len(), scenario.connections.len() + scenario.sources.len());
}

/// Ends the run after some looks, and may have its decisions traced.
struct Brief {
    looks: u32,
    traced: bool,
}

impl Observer for Brief {
    fn on_progress(&mut self, _now: Time) -> ControlFlow<()> {
        self.looks += 1;
        if self.looks == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn tracer(&mut self, _connection: usize) -> Option<Box<dyn Tracer>> {
        self.traced.then(|| -> Box<dyn Tracer> { Box::new(Deaf) })
    }
}

#[derive(Debug)]
struct Deaf;

impl Tracer for Deaf {
    fn on_decision(&mut self, _decision: &Traced) {}
}

/// What is a scenario can be run, or is refused with a reason: for some tens of thousands of events. What ends by then is the same
/// with its decisions traced, which the simulator does event after event, and otherwise in windows of time.
pub(crate) fn simulation(bytes: &[u8]) {
    let Some((_, Ok(mut scenario))) = read(bytes) else { return };
    if scenario.connections.len() > 8 || scenario.links.len() > 80 {
        return;
    }
    scenario.duration = scenario.duration.min(Duration::from_secs(2));
    scenario.warmup = scenario.warmup.min(scenario.duration / 2);
    scenario.sample = scenario.sample.map(|interval| interval.max(scenario.duration / 100));
    let run = |traced| match run_observed(&scenario, 1, &mut Brief { looks: 0, traced }) {
        Ok(report) => {
            assert!(report.goodput_bps >= 0.0);
            Some(report.to_json())
        }
        Err(error) => {
            assert!(!error.is_bug(), "{error}");
            None
        }
    };
    if let Some(report) = run(false)
        && let Some(traced) = run(true)
    {
        assert!(report == traced, "windows of time change the outcome");
    }
}
