//! Figures and the report as its readers see them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use manypath_lab::{
    Code, Drawn, Engine, EngineError, EngineKind, Experiment, Facts, Input, Mode, Plan, Quantities, Quic, Results,
    Simulator, Store, Table, draw, experiments, html, markdown, section,
};

const EXPERIMENT: &str = r#"title = "t"
paper = "mpcc"
place = "p"
about = "a"
duration = { quick = "2s", full = "3s" }
seeds = { quick = 3, full = 3 }
engines = ["sim", "quic"]
[[axis]]
name = "cc"
of = "controllers"
values = ["mpcc-loss", "lia"]
[scenario]
topology = "two-links"
[[scenario.connection]]
name = "mp"
role = "mp"
cc = "{cc}"
[metric.jain]
title = "Jain's index"
value = "jain"
[metric.goodput]
title = "goodput"
unit = "Mbit/s"
value = "goodput_bps / 1Mbit"
[[claim]]
id = "c"
says = "s"
place = "p"
number = "n"
value = "mean(goodput[cc=lia])"
least = 1
unit = "Mbit/s"
wrong = { cc = { lia = "mpcc-loss" } }
[[figure]]
title = "Fairness"
kind = "bars"
x = "cc"
y = ["jain"]
y-label = "Jain's index"
error = "std"
[[figure]]
title = "Numbers"
kind = "table"
x = "cc"
y = ["jain"]
y-label = "Jain's index"
error = "std"
"#;

fn experiment(text: &str) -> Experiment {
    let texts = [("x-fig1".to_owned(), "x-fig1.toml".to_owned(), text.to_owned())];
    experiments(&texts, Path::new(".")).unwrap().remove(0)
}

/// An engine that stands for QUIC: it takes no time, and moves half as much again as the simulator.
#[derive(Debug)]
struct Faster;

impl Engine for Faster {
    fn kind(&self) -> EngineKind {
        EngineKind::Quic
    }

    fn code(&self) -> &'static Code {
        Quic.code()
    }

    fn run(&self, input: &Input, seed: u64) -> Result<Quantities, EngineError> {
        let mut found = Simulator.run(input, seed)?;
        found.0.get_mut("goodput_bps").unwrap()[0] *= 1.5;
        Ok(found)
    }
}

fn run(experiment: &Experiment, seeds: u32, select: &[Vec<usize>], engine: &dyn Engine, store: &Store) {
    let mut plan = Plan::new(experiment, &[experiment], (Mode::Quick, seeds), engine, store).unwrap();
    plan.select(select);
    let done = plan.carry_out(engine, 1, store, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(done.failures.is_empty() && done.made > 0, "{done:?}");
}

#[test]
fn a_deviation_is_drawn_no_further_than_the_seeds_went() {
    let experiment = experiment(EXPERIMENT);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let mut table = Table::new(&experiment, Mode::Quick, 3);
    for case in experiment.cases(Mode::Quick) {
        for (seed, value) in [1.0, 1.0, 0.4].into_iter().enumerate() {
            table.set("jain", &case, u32::try_from(seed).unwrap(), value);
        }
    }
    let results = Results::read(&experiment, (Mode::Quick, 3), &Simulator, &store).unwrap();
    let Drawn::Picture(picture) = draw(&experiment.figures[0], &results, &table).unwrap() else { panic!("a table") };
    let series = &picture.panels[0].series[0];
    // The mean is 0.8 and the deviation 0.35: half of the bar would be about what no index can be.
    assert!((series.points[0].1 - 0.8).abs() < 1e-9);
    let (low, high) = series.spread[0];
    assert!((low - (0.8 - 0.12_f64.sqrt())).abs() < 1e-9 && (high - 1.0).abs() < 1e-9, "{low} to {high}");
    // A table says the deviation as it is.
    let Drawn::Table { rows, .. } = draw(&experiment.figures[1], &results, &table).unwrap() else {
        panic!("a picture")
    };
    assert_eq!(rows[0][1], "0.800 ± 0.346");
}

#[test]
fn a_mean_of_which_a_case_is_missing_is_not_that_of_the_rest() {
    let axis = "[[axis]]\nname = \"size\"\nvalues = [\"20packets\", \"80packets\"]\n[scenario]\n";
    let experiment = experiment(&EXPERIMENT.replace("[scenario]\n", axis));
    let store = Store::new("nowhere");
    let results = Results::read(&experiment, (Mode::Quick, 3), &Simulator, &store).unwrap();
    // A file that never ends, say: of lia with the smaller size one seed has no number.
    for none in [f64::NAN, f64::INFINITY] {
        let mut table = Table::new(&experiment, Mode::Quick, 3);
        for case in experiment.cases(Mode::Quick) {
            (0..3).for_each(|seed| {
                table.set("jain", &case, seed, if case.0 == [1, 0] && seed == 1 { none } else { 0.5 })
            });
        }
        let Drawn::Picture(picture) = draw(&experiment.figures[0], &results, &table).unwrap() else {
            panic!("a table")
        };
        let points = &picture.panels[0].series[0].points;
        assert!((points[0].1 - 0.5).abs() < 1e-9 && points[1].1.is_nan(), "{points:?}");
        assert!(!picture.to_svg().contains("NaN") && !picture.to_svg().contains("inf"));
        let Drawn::Table { rows, .. } = draw(&experiment.figures[1], &results, &table).unwrap() else {
            panic!("a picture")
        };
        assert!(rows[0][1] == "0.500 ± 0.000" && rows[1][1].starts_with(['n', 'i']), "{rows:?}");
    }
}

#[test]
fn a_metric_is_one_number_or_none() {
    let with = |metric: &str| experiment(&EXPERIMENT.replace("value = \"jain\"", &format!("value = \"{metric}\"")));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    run(&with("jain"), 1, &[], &Simulator, &store);
    let table = |metric: &str, engine: &dyn Engine| {
        let experiment = with(metric);
        let results = Results::read(&experiment, (Mode::Quick, 1), engine, &store).unwrap();
        let found = results.table().map(|table| table.get("jain", &experiment.cases(Mode::Quick)[0]).to_vec());
        found.map_err(|error| error.to_string())
    };
    assert!(table("connection.mp.subflow.*.sent_bytes", &Simulator).unwrap_err().contains("one number, not 2"));
    // Nothing fits in a run that was made: the claim fails. It is not that nobody ran it.
    let none = table("connection.mp.file.completion_s", &Simulator).unwrap();
    assert!(none.len() == 1 && none[0].is_some_and(f64::is_nan), "{none:?}");
    // An engine that does not judge may have less to say.
    run(&with("jain"), 1, &[], &Faster, &store);
    assert!(table("connection.mp.file.completion_s", &Faster).unwrap().is_empty());
}

#[test]
fn places_do_not_say_the_unit_of_their_axis_again() {
    let axis = "[[axis]]\nname = \"size\"\nvalues = [\"20packets\", \"80packets\"]\n[scenario]\n";
    let figure = "kind = \"bars\"\nx = \"size\"\nx-label = \"buffer (packets)\"";
    let text = EXPERIMENT.replace("[scenario]\n", axis).replacen("kind = \"bars\"\nx = \"cc\"", figure, 1);
    let names = |text: &str| {
        let experiment = experiment(text);
        let store = Store::new("nowhere");
        let table = Table::new(&experiment, Mode::Quick, 3);
        let results = Results::read(&experiment, (Mode::Quick, 3), &Simulator, &store).unwrap();
        let Drawn::Picture(picture) = draw(&experiment.figures[0], &results, &table).unwrap() else {
            panic!("a table")
        };
        picture.x.names
    };
    assert_eq!(names(&text), ["20", "80"]);
    assert_eq!(names(&text.replace("buffer (packets)", "buffer")), ["20packets", "80packets"]);
    assert_eq!(names(EXPERIMENT), ["mpcc-loss", "lia"]);
}

#[test]
fn one_of_anything_is_not_counted_as_many() {
    let alone = EXPERIMENT.replace("quick = 3", "quick = 1").replace("\"mpcc-loss\", ", "").replace("mpcc-loss", "lia");
    let experiment = experiment(&alone);
    let store = Store::new("nowhere");
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Simulator)];
    let section = || section(&experiment, (Mode::Quick, 1), &engines, &store).unwrap();
    let facts = Facts::default();
    for page in [markdown(&[section()], &facts, "results").0, html(&[section()], &facts)] {
        let summary = "0 of 1 claim holds, 1 not run; 0 of 1 figure or table holds with all its claims.";
        assert!(page.contains(summary) && page.contains("p. 0 of 1 quick run."), "{page}");
    }
    let two = html(&[section(), section()], &facts);
    let summary = "0 of 2 claims hold, 2 not run; 0 of 2 figures and tables hold with all their claims.";
    assert!(two.contains(summary), "{two}");
}

#[test]
fn engines_stand_side_by_side_as_far_as_they_have_been_run() {
    let experiment = experiment(EXPERIMENT);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Simulator), Box::new(Faster)];
    let made = || section(&experiment, (Mode::Quick, 3), &engines, &store).unwrap();
    assert!(made().figures.is_empty(), "an empty picture");
    run(&experiment, 3, &[], engines[0].as_ref(), &store);
    let facts = Facts { versions: "v".to_owned(), made: Vec::new() };
    assert!(made().others.is_empty() && !html(&[made()], &facts).contains("on quic"));

    // One case of the two, once.
    run(&experiment, 1, &[vec![1]], &Faster, &store);
    let part = made();
    let other = &part.others[0];
    assert_eq!((other.engine, other.runs, other.seeds, other.beside.len()), (EngineKind::Quic, 1, 1, 2));
    let goodput = other.beside.iter().find(|row| row.title == "goodput").unwrap();
    assert!(goodput.case == "cc = lia" && goodput.other > 1.3 * goodput.first.unwrap(), "{goodput:?}");
    // Figures of other engines are drawn once all of their cases are there.
    assert_eq!(part.figures.len(), 2);
    let (text, _) = markdown(&[made()], &facts, "results");
    assert!(text.contains("On quic: 1 quick run, one seed."), "{text}");
    assert!(text.contains("| case | what | sim | quic | quic is |"), "{text}");
    let page = html(&[made()], &facts);
    assert!(page.contains("<th>on quic") && page.contains("goodput, Mbit/s"), "{page}");

    run(&experiment, 2, &[], &Faster, &store);
    let whole = made();
    assert_eq!((whole.others[0].runs, whole.others[0].seeds), (4, 2));
    assert_eq!(whole.figures[2].0, "Fairness (quic)");
}

/// What a run of a time series of this text draws.
fn drawn_over_time(y: &str) -> Result<Drawn, String> {
    let figure = format!(
        "[[figure]]\ntitle = \"Over time\"\nkind = \"time\"\ny = [\"{y}\"]\ny-label = \"y\"\nseries = \"cc\"\n"
    );
    let text = EXPERIMENT.replace("topology =", "sample = \"500ms\"\ntopology =") + &figure;
    let experiment = experiment(&text);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    run(&experiment, 1, &[], &Simulator, &store);
    let results = Results::read(&experiment, (Mode::Quick, 1), &Simulator, &store).unwrap();
    let table = results.table().unwrap();
    draw(experiment.figures.last().unwrap(), &results, &table).map_err(|error| error.to_string())
}

#[test]
fn what_is_no_time_series_is_not_drawn_over_time() {
    assert!(drawn_over_time("series.connection.mp.goodput_bps / 1Mbit").is_ok());
    for y in ["between(series.connection.mp.goodput_bps, 1, 2)", "series.connection.mp.subflow.*.srtt_s", "jain"] {
        let error = drawn_over_time(y).unwrap_err();
        assert!(error.contains("4 times a number: write one of series.NAME as a whole"), "{error}");
    }
}

#[test]
fn runs_without_the_time_series_that_are_asked_for_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let text = EXPERIMENT.replace("topology =", "sample = \"500ms\"\ntopology =");
    run(&experiment(&text), 3, &[], &Simulator, &store);
    let more = text.replace("value = \"jain\"", "value = \"mean(series.connection.mp.goodput_bps)\"");
    let more = experiment(&more);
    let read = |experiment: &Experiment| {
        let results = Results::read(experiment, (Mode::Quick, 3), &Simulator, &store).unwrap();
        let verdict = experiment.claims[0].judge(&results.table().unwrap()).as_str();
        (results.count(), verdict)
    };
    assert_eq!(read(&more), ((0, 6), "not run"));
    run(&more, 3, &[], &Simulator, &store);
    assert_eq!(read(&more).0, (6, 6));
}

#[test]
fn a_run_of_several_cases_is_made_once_and_counted_once() {
    // A second name for the same value: the scenarios of both are the same.
    let text = EXPERIMENT.replace("\"lia\"]", "\"lia\", { label = \"again\", cc = \"lia\" }]");
    let experiment = experiment(&text);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let outcome = |select: &[Vec<usize>]| {
        let mut plan = Plan::new(&experiment, &[&experiment], (Mode::Quick, 1), &Simulator, &store).unwrap();
        plan.select(select);
        let done = plan.carry_out(&Simulator, 1, &store, &AtomicBool::new(false), &mut |_| {}).unwrap();
        (done.made, done.held)
    };
    // Whichever of its names is chosen.
    assert_eq!(outcome(&[vec![2]]), (1, 0));
    assert_eq!(outcome(&[vec![1]]), (0, 1));
    assert_eq!(outcome(&[vec![]]), (1, 1));
    assert_eq!(outcome(&[vec![]]), (0, 2));
}

#[test]
fn an_experiment_is_chosen_once() {
    let all = [experiment(EXPERIMENT)];
    let names = ["x-fig1", "mpcc", "x-fig1"].map(str::to_owned);
    assert_eq!(manypath_lab::chosen(&all, &names).unwrap().len(), 1);
}
