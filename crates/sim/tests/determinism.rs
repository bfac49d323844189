//! A run is a pure function of scenario and seed.

use std::num::NonZeroUsize;
use std::path::Path;

use manypath_core::Duration;
use manypath_scenario::{Document, Scenario};
use manypath_sim::{Job, run, run_all};

/// Short scenarios of all kinds.
fn scenarios() -> Vec<Scenario> {
    let mut texts = vec![manypath_scenario::template().to_owned(), manypath_scenario::built_in().to_owned()];
    for topology in manypath_scenario::topologies() {
        let mut text = format!("duration = \"3s\"\ntopology = \"{}\"\n", topology.name);
        for role in topology.roles.iter().take(4) {
            text += &format!("[[connection]]\nname = \"{0}\"\nrole = \"{0}\"\ncc = \"lia\"\n", role.name);
        }
        texts.push(text);
    }
    let tcp = "duration = \"3s\"\ntopology = \"two-links\"\n[[link]]\nname = \"link1\"\nloss = \"1%\"\n\
               [[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\ntransport = \"tcp\"\n";
    texts.extend([tcp.to_owned(), tcp.to_owned() + "recovery = \"new-reno\"\nscheduler = \"stms-a\"\n"]);
    let mut scenarios = Vec::new();
    for text in texts {
        let mut scenario = manypath_scenario::parse(&text, "example", Path::new(".")).unwrap();
        // Data-centre links are short, and not much happens in a second on the others.
        let fast = scenario.links.iter().any(|link| link.config.peak_rate().as_bps() > 2e10);
        scenario.duration = if fast { Duration::from_millis(20) } else { Duration::from_secs(3) };
        scenario.warmup = Duration::ZERO;
        scenarios.push(scenario);
    }
    scenarios
}

/// The files of `examples/`, in the order of their names.
fn example_files() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(&folder).expect("the examples are in the repository");
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let read = |path| Document::read(path).unwrap().parse(&[]).unwrap_or_else(|error| panic!("{error}"));
    files.iter().map(|path| read(path)).collect()
}

#[test]
fn every_example_gives_the_same_bytes_again_and_on_any_number_of_threads() {
    let scenarios = example_files();
    let jobs: Vec<_> = scenarios.iter().map(|scenario| Job { scenario, seed: 42 }).collect();
    let reports = |threads| run_all(&jobs, NonZeroUsize::new(threads).unwrap(), |_| ()).unwrap();
    let [once, again, beside] = [1, 1, 8].map(reports);
    assert_eq!(once.len(), scenarios.len());
    for ((once, again), beside) in once.iter().zip(&again).zip(&beside) {
        let json = once.to_json();
        assert!(once.goodput_bps > 0.0 && json == again.to_json(), "{}", once.scenario);
        assert!(json == beside.to_json(), "{} beside others", once.scenario);
    }
}

#[test]
fn there_are_no_more_threads_than_runs() {
    let mut scenario = manypath_scenario::parse(manypath_scenario::built_in(), "built-in", Path::new(".")).unwrap();
    scenario.duration = Duration::from_millis(10);
    scenario.warmup = Duration::ZERO;
    let jobs = [1, 2].map(|seed| Job { scenario: &scenario, seed });
    run_all(&jobs, NonZeroUsize::new(64).unwrap(), |_| assert!(rayon::current_num_threads() <= 2)).unwrap();
}

#[test]
fn every_topology_has_an_example() {
    let examples = example_files();
    for topology in manypath_scenario::topologies() {
        let example = examples.iter().find(|scenario| scenario.name == topology.name);
        assert!(example.is_some_and(|scenario| scenario.links.len() == topology.links.len()), "{}", topology.name);
    }
}

#[test]
fn measuring_changes_nothing() {
    for mut scenario in scenarios() {
        scenario.sample = None;
        let plain = run(&scenario, 5).unwrap();
        scenario.sample = Some(Duration::from_millis(10));
        let mut measured = run(&scenario, 5).unwrap();
        assert!(measured.series.take().is_some());
        for connection in &mut measured.connections {
            connection.measures = None;
            connection.subflows.iter_mut().for_each(|subflow| subflow.measures = None);
        }
        // Samples are events too.
        measured.events = plain.events;
        assert_eq!(measured.to_json(), plain.to_json(), "{}", scenario.name);
    }
}

#[test]
fn a_link_more_does_not_change_another_links_losses() {
    let link = |name: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nrate = \"9Mbit\"\ndelay = \"5ms\"\nqueue = \"50packets\"\nloss = \"1%\"\n"
        )
    };
    let connection = "[[connection]]\nname = \"c\"\ncc = \"reno\"\npath = [{ route = [\"a\"] }]\n";
    let simulate = |links: String| {
        let text = format!("duration = \"5s\"\n{links}{connection}");
        run(&manypath_scenario::parse(&text, "links", Path::new(".")).unwrap(), 9).unwrap()
    };
    let (alone, beside) = (simulate(link("a")), simulate(link("b") + &link("a")));
    assert_eq!(alone.connections[0].delivered_bytes, beside.connections[0].delivered_bytes);
    assert_eq!(alone.links[0].dropped_random, beside.links[2].dropped_random);
}

/// Ends the run at its first look.
struct Impatient(Option<manypath_core::Time>);

impl manypath_sim::Observer for Impatient {
    fn on_progress(&mut self, now: manypath_core::Time) -> std::ops::ControlFlow<()> {
        self.0 = Some(now);
        std::ops::ControlFlow::Break(())
    }
}

#[test]
fn an_observer_may_end_a_run() {
    let mut scenario = manypath_scenario::parse(manypath_scenario::built_in(), "built-in", Path::new(".")).unwrap();
    scenario.duration = Duration::from_secs(1_000_000);
    let mut observer = Impatient(None);
    let error = manypath_sim::run_observed(&scenario, 1, &mut observer).map(drop).unwrap_err();
    assert_eq!(error, manypath_sim::RunError::Stopped);
    assert!(observer.0.unwrap() > manypath_core::Time::ZERO);
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let text = |line: &str| {
        format!("duration = \"1s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"c\"\nrole = \"mp\"\n{line}\n")
    };
    for (line, message) in [
        ("cc = \"none\"", "no algorithm is called 'none'"),
        ("cc = \"reno:x=1\"", "no parameter 'x'"),
        ("cc = \"reno\"\nscheduler = \"none\"", "no algorithm is called 'none'"),
    ] {
        let scenario = manypath_scenario::parse(&text(line), "bad", Path::new(".")).unwrap();
        let error = run(&scenario, 1).map(drop).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("'c'"), "{error}");
    }
}

#[test]
fn seeds_matter() {
    let scenario = &scenarios()[0];
    assert_ne!(run(scenario, 1).unwrap().to_json(), run(scenario, 2).unwrap().to_json());
}
