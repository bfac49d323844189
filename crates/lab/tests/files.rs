//! Experiment files: what they mean, and what is refused.

use std::collections::BTreeSet;
use std::path::Path;

use manypath_lab::{Experiment, Mode, Table, Verdict, experiments};

const HEAD: &str = "title = \"t\"\npaper = \"mpcc\"\nplace = \"p\"\nabout = \"a\"\nduration = \"1s\"\n";
const AXES: &str = "[[axis]]\nname = \"cc\"\nof = \"controllers\"\nvalues = [\"mpcc-loss\", \"lia\"]\n\
    [[axis]]\nname = \"buffer\"\nvalues = [\"9kB\", \"60kB\", \"375kB\"]\nquick = [\"9kB\"]\n";
const SETUP: &str = "[scenario]\ntopology = \"mpcc-3b\"\n[[scenario.link]]\nname = \"link1\"\nqueue = \"{buffer}\"\n\
    [[scenario.connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"{cc}\"\nscheduler = \"{scheduler}\"\n\
    [metric.use]\ntitle = \"u\"\nvalue = \"connection.mp.goodput_bps / 200Mbit\"\n";
const CLAIM: &str = "[[claim]]\nid = \"c\"\nsays = \"s\"\nplace = \"p\"\nnumber = \"n\"\n";

fn read(text: &str) -> Result<Experiment, String> {
    let texts = [("x-fig1".to_owned(), "x-fig1.toml".to_owned(), text.to_owned())];
    experiments(&texts, Path::new(".")).map(|mut all| all.remove(0)).map_err(|error| error.to_string())
}

fn with_claim(claim: &str) -> Result<Experiment, String> {
    read(&format!("{HEAD}{AXES}{SETUP}{CLAIM}{claim}\n"))
}

#[test]
fn cases_are_all_combinations_and_quick_takes_a_part() {
    let experiment = read(&format!("{HEAD}{AXES}{SETUP}")).unwrap();
    assert_eq!(experiment.cases(Mode::Full).len(), 6);
    assert_eq!(experiment.cases(Mode::Quick).len(), 2);
    let case = &experiment.cases(Mode::Full)[1];
    assert_eq!(experiment.describe(case), "cc = mpcc-loss, buffer = 60kB");
    let (text, scenario) = experiment.scenario(case, Mode::Full).unwrap().unwrap();
    assert!(text.contains("queue = \"60kB\"") && text.contains("scheduler = \"rate-based\""), "{text}");
    assert_eq!(scenario.connections[0].cc.name, "mpcc-loss");
}

#[test]
fn all_is_the_rest_of_the_registry() {
    let text = format!("{HEAD}{AXES}{SETUP}").replace("\"lia\"]", "\"lia\", \"all\"]");
    let experiment = read(&text).unwrap();
    let labels: BTreeSet<&str> = experiment.axes[0].values.iter().map(|value| value.label.as_str()).collect();
    let registered: BTreeSet<&str> = manypath_cc::algorithms().iter().map(|algorithm| algorithm.name).collect();
    assert_eq!(labels, registered);
}

/// A claim's verdict with `use` of both controllers at all buffers.
fn judged(claim: &str, mpcc: [f64; 3], lia: [f64; 3]) -> (Verdict, Option<Verdict>) {
    let experiment = with_claim(claim).unwrap();
    let mut table = Table::new(&experiment, Mode::Full, 1);
    for (case, value) in experiment.cases(Mode::Full).iter().zip([mpcc, lia].concat()) {
        table.set("use", case, 0, value);
    }
    let claim = &experiment.claims[0];
    (claim.judge(&table), claim.judge_wrong(&table))
}

#[test]
fn a_place_that_is_not_reached_is_above_every_other() {
    let order = |first: &str, second: &str| {
        let knee = |cc: &str, level: &str| format!("knee(buffer, use[cc={cc}], {level})");
        let claim = format!(
            "order = [\"{}\", \"{}\"]\nwrong = {{ cc = {{ lia = \"mpcc-loss\" }} }}",
            knee("mpcc-loss", first),
            knee("lia", second)
        );
        matches!(judged(&claim, [0.5; 3], [0.5; 3]).0, Verdict::Holds(_))
    };
    assert!(order("0.4", "0.6"), "9 kB is less than nowhere");
    assert!(!order("0.6", "0.6") && !order("0.6", "0.4") && !order("0.4", "0.4"));
}

#[test]
fn claims_hold_or_not_and_fail_under_their_wrong_variation() {
    const WRONG: &str = "\nwrong = { cc = { mpcc-loss = \"lia\" } }";
    let (good, bad) = ([0.9, 0.95, 0.95], [0.4, 0.9, 0.95]);
    for claim in [
        "value = \"use[cc=mpcc-loss, buffer=9kB]\"\nleast = 0.8",
        "value = \"knee(buffer, use[cc=mpcc-loss], 0.8)\"\nmost = \"9kB\"",
        "value = \"knee(buffer, use[cc=lia], 0.8) / knee(buffer, use[cc=mpcc-loss], 0.8)\"\nleast = 4",
        "value = \"use[cc=mpcc-loss, buffer=9kB]\"\nequals = 0.88\nwithin = \"5%\"",
        "value = \"min(use[cc=mpcc-loss])\"\nequals = 0.88\nwithin = 0.03",
        "order = [\"use[cc=lia, buffer=9kB]\", \"use[cc=mpcc-loss, buffer=9kB]\"]",
        "value = \"mean(use[cc=mpcc-loss] - use[cc=lia])\"\nleast = 0.1\nmost = 0.3",
    ] {
        let claim = format!("{claim}{WRONG}");
        let (verdict, wrong) = judged(&claim, good, bad);
        assert!(matches!(verdict, Verdict::Holds(_)), "{claim}: {verdict:?}");
        assert!(matches!(wrong, Some(Verdict::Fails(_))), "{claim}: {wrong:?}");
        let (verdict, _) = judged(&claim, bad, bad);
        assert!(matches!(verdict, Verdict::Fails(_)), "{claim}: {verdict:?}");
        // A run that gave no number: nothing holds of it, whichever way round the claim is.
        let (verdict, _) = judged(&claim, [f64::NAN; 3], bad);
        assert!(matches!(verdict, Verdict::Fails(_)), "{claim}: {verdict:?}");
    }
    for place in ["knee", "falls", "reaches"] {
        let claim = format!("value = \"{place}(buffer, use[cc=lia], 0.96)\"\nleast = \"9kB\"{WRONG}");
        assert!(matches!(judged(&claim, bad, [0.9, 0.9, f64::NAN]).0, Verdict::Fails(_)), "{claim}");
    }
    // Equal in the last place: only with slack is that an order.
    let order = format!("order = [\"use[cc=lia]\", \"use[cc=mpcc-loss]\"]{WRONG}");
    assert!(matches!(judged(&order, good, bad).0, Verdict::Fails(_)));
    assert!(matches!(judged(&format!("{order}\nslack = \"1%\""), good, bad).0, Verdict::Holds(_)));
}

#[test]
fn what_is_missing_is_not_judged() {
    let experiment = with_claim("value = \"max(use)\"\nleast = 0\nwrong = { cc = { lia = \"mpcc-loss\" } }").unwrap();
    let mut table = Table::new(&experiment, Mode::Full, 2);
    for case in experiment.cases(Mode::Full) {
        table.set("use", &case, 0, 1.0);
    }
    let Verdict::NotRun(reason) = experiment.claims[0].judge(&table) else { panic!("judged without all seeds") };
    assert_eq!(reason, "use with cc = mpcc-loss, buffer = 9kB");
}

#[test]
fn spreads_are_over_seeds() {
    let experiment = with_claim("value = \"mean(use)\"\nleast = 0\nwrong = { cc = { lia = \"mpcc-loss\" } }").unwrap();
    let mut table = Table::new(&experiment, Mode::Full, 3);
    for case in experiment.cases(Mode::Full) {
        for (seed, value) in [(0, 1.0), (1, 3.0), (2, 8.0)] {
            table.set("use", &case, seed, value);
        }
    }
    let verdict = experiment.claims[0].judge(&table);
    let ours = verdict.ours().unwrap();
    assert_eq!((ours.values.as_slice(), ours.spread.as_slice()), ([4.0].as_slice(), [(1.0, 8.0)].as_slice()));
}

#[test]
fn faults_have_a_place_and_a_remedy() {
    let whole = format!("{HEAD}{AXES}{SETUP}");
    let change = |from: &str, to: &str| read(&whole.replacen(from, to, 1)).unwrap_err();
    let cases = |from: &str, to: &str| {
        let experiment = read(&whole.replacen(from, to, 1)).unwrap();
        let case = experiment.cases(Mode::Full).remove(0);
        experiment.scenario(&case, Mode::Full).map(|_| ()).unwrap_err().to_string()
    };
    for (error, line, words) in [
        (change("mpcc\"", "abc\""), 2, "there is no paper 'abc'; there are mpcc, tccc"),
        (change("title = \"t\"", "titel = \"t\""), 1, "unknown field `titel`"),
        (change("controllers", "cars"), 8, "there is no kind of axis 'cars'; there are controllers, schedulers"),
        (change("\"lia\"", "\"lai\""), 9, "no algorithm is called 'lai'"),
        (change("\"60kB\"", "\"9kB\""), 12, "the label '9kB' is given twice"),
        (change("quick = [\"9kB\"]", "quick = [\"8kB\"]"), 13, "there is no value '8kB'"),
        (
            change("values = [\"9kB\", \"60kB\", \"375kB\"]\nquick = [\"9kB\"]\n", "values = []\n"),
            10,
            "must be at least 1",
        ),
        (change("/ 200Mbit", "/ 200Mbat"), 26, "'200Mbat' is no number"),
        (change("duration = \"1s\"", "seeds = 0"), 5, "must be 1 to 1000"),
        (change("duration = \"1s\"", "duration = 1"), 5, "write seeds = 3, duration = \"60s\", or { quick"),
        (change("quick = [\"9kB\"]", "quick = \"9kB\""), 13, "quick is a list of labels"),
        (change("[scenario]", "like = \"other\"\n[scenario]"), 14, "unknown field `like`"),
        (cases("{buffer}", "{bufer}"), 18, "nothing binds '{bufer}'; the axes bind buffer, cc, scheduler"),
        (cases("duration = \"1s\"\n", ""), 14, "missing field `duration`"),
        (cases("\"mpcc-3b\"", "\"mpcc-9\""), 15, "there is no topology 'mpcc-9'"),
        (cases("queue = \"{buffer}\"", "rate = \"{buffer}\""), 18, "with cc = mpcc-loss, buffer = 9kB"),
        (cases("role = \"mp\"", "role = \"{cc}\""), 21, "no role 'mpcc-loss'"),
    ] {
        assert!(error.starts_with(&format!("x-fig1.toml:{line}: ")), "{error}, not line {line}");
        assert!(error.contains(words), "{error}, not {words}");
    }
}

#[test]
fn claims_that_make_no_sense_are_refused() {
    const WRONG: &str = "\nwrong = { cc = { lia = \"mpcc-loss\" } }";
    for (claim, words) in [
        ("value = \"max(use)\"\nleast = 1", "write wrong = {"),
        (&format!("value = \"use\"\nleast = 1{WRONG}"), "select or reduce cc, buffer"),
        (&format!("value = \"max(us)\"\nleast = 1{WRONG}"), "there is no metric 'us'; there are use"),
        (&format!("value = \"max(use[cc=reno])\"\nleast = 1{WRONG}"), "there is no cc 'reno'"),
        (&format!("value = \"max(use[rate=1])\"\nleast = 1{WRONG}"), "there is no axis 'rate'"),
        (&format!("value = \"max(use)\"{WRONG}"), "write least, most, both, or equals with within"),
        (&format!("value = \"max(use)\"\nequals = 1{WRONG}"), "write within"),
        (&format!("value = \"max(use)\"\nequals = 1\nleast = 1\nwithin = 1{WRONG}"), "keep one"),
        (&format!("order = [\"max(use)\"]{WRONG}"), "two expressions or more"),
        (&format!("order = [\"use[cc=lia]\", \"use[buffer=9kB|60kB]\"]{WRONG}"), "different values of buffer"),
        ("value = \"max(use)\"\nleast = 1\nwrong = { cc = { lia = \"reno\" } }", "there is no value 'reno'"),
        ("value = \"max(use)\"\nleast = 1\nwrong = { rate = { lia = \"reno\" } }", "there is no axis 'rate'"),
    ] {
        let error = with_claim(claim).unwrap_err();
        assert!(error.starts_with("x-fig1.toml:27: ") && error.contains(words), "{claim}: {error}");
    }
}

#[test]
fn an_experiment_like_another_has_its_runs() {
    let first = format!("{HEAD}{AXES}{SETUP}");
    let second = "title = \"t2\"\npaper = \"mpcc\"\nplace = \"p\"\nabout = \"a\"\nlike = \"b-fig1\"\n\
        [metric.twice]\ntitle = \"w\"\nvalue = \"connection.mp.goodput_bps * 2\"\n";
    let name = |id: &str, text: &str| (id.to_owned(), format!("{id}.toml"), text.to_owned());
    let both = experiments(&[name("a-fig2", second), name("b-fig1", &first)], Path::new(".")).unwrap();
    let like = both.iter().find(|experiment| experiment.id == "a-fig2").unwrap();
    assert_eq!((like.runs_of.as_str(), like.metrics.len(), like.axes.len()), ("b-fig1", 2, 2));
    let error = experiments(&[name("a-fig2", second)], Path::new(".")).unwrap_err().to_string();
    assert!(error.contains("a-fig2.toml:5: there is no experiment to be like 'b-fig1'"), "{error}");
    let own = second.replace("[metric", "seeds = 2\n[metric");
    let error = experiments(&[name("a-fig2", &own), name("b-fig1", &first)], Path::new(".")).unwrap_err().to_string();
    assert!(error.contains("both 'like' and 'seeds'"), "{error}");
}

#[test]
fn what_would_not_count_in_a_claim_is_refused() {
    const WRONG: &str = "\nwrong = { cc = { lia = \"mpcc-loss\" } }";
    for (claim, said) in [
        ("value = \"use[cc=lia, buffer=9kB, cc=mpcc-loss]\"\nleast = 0", "'cc' is selected twice"),
        ("value = \"max(use)\"\nleast = 0\nwithin = 0.1", "needs 'equals'"),
        ("order = [\"use[cc=lia]\", \"use[cc=mpcc-loss]\"]\nwithin = 0.1", "needs 'equals'"),
        ("order = [\"use[cc=lia]\", \"use[cc=mpcc-loss]\"]\nslack = \"9kB\"", "slack is 9kB: it must be a share"),
    ] {
        let error = with_claim(&format!("{claim}{WRONG}")).unwrap_err();
        assert!(error.contains(said), "{claim}: {error}");
    }
    assert!(with_claim(&format!("order = [\"use[cc=lia]\", \"use[cc=mpcc-loss]\"]\nslack = \"2 %\"{WRONG}")).is_ok());
    assert_eq!(manypath_lab::short(f64::NEG_INFINITY), "-infinite");
}

#[test]
fn a_table_has_no_panels() {
    let figure =
        "[[figure]]\ntitle = \"t\"\nkind = \"table\"\nx = \"cc\"\ny = [\"use\"]\ny-label = \"y\"\npanel = \"buffer\"\n";
    let error = read(&format!("{HEAD}{AXES}{SETUP}{figure}")).unwrap_err();
    assert!(error.contains("has both 'panel' and 'kind = \"table\"'"), "{error}");
}

#[test]
fn products_keep_all_of_their_parts() {
    let axis = "[[axis]]\nname = \"config\"\nquick = 1\nproduct = { cc = [\"lia\", \"reno\", \"olia\"], \
        size = [\"9kB\", { label = \"big\", size = \"1MB\", hidden = true, \
        scenario = { connection = [{ name = \"sp\", role = \"mp\", cc = \"reno\" }] } }] }\n";
    let setup = SETUP.replace("scheduler = \"{scheduler}\"\n", "").replace("{buffer}", "{size}");
    let experiment = read(&format!("{HEAD}{axis}{setup}")).unwrap();
    let labels = |wanted: bool| {
        let values = experiment.axes[0].values.iter().filter(move |value| value.hidden == wanted);
        values.map(|value| value.label.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(labels(true), ["lia big", "reno big", "olia big"]);
    for case in experiment.cases(Mode::Full) {
        let scenario = experiment.scenario(&case, Mode::Full).unwrap().unwrap().1;
        let hidden = experiment.axes[0].values[case.0[0]].hidden;
        assert_eq!(scenario.connections.len(), if hidden { 2 } else { 1 }, "{}", experiment.describe(&case));
    }
    // Quick runs take a number of values, and always what only wrong variations need.
    let quick = experiment.cases(Mode::Quick);
    assert!(
        experiment.axes[0]
            .values
            .iter()
            .enumerate()
            .all(|(at, value)| { !value.hidden || quick.iter().any(|case| case.0[0] == at) })
    );
}

#[test]
fn what_is_wrong_with_a_case_stands_where_it_is_written() {
    let first = format!("{HEAD}{AXES}{}", SETUP.replace("queue = \"{buffer}\"", "queue = \"{bufer}\""));
    let second = "title = \"t\"\npaper = \"tccc\"\nplace = \"p\"\nabout = \"a\"\nlike = \"b-fig1\"\n\
        [metric.more]\ntitle = \"m\"\nvalue = \"jain\"\n";
    let name = |id: &str, text: &str| (id.to_owned(), format!("{id}.toml"), text.to_owned());
    let both = experiments(&[name("a-fig2", second), name("b-fig1", &first)], Path::new(".")).unwrap();
    let case = &both[0].cases(Mode::Quick)[0];
    let errors = both.iter().map(|experiment| experiment.scenario(case, Mode::Quick).unwrap_err().to_string());
    let errors: Vec<String> = errors.collect();
    assert!(errors[0].starts_with("b-fig1.toml:") && errors[0] == errors[1], "{errors:?}");
}

#[test]
fn more_runs_than_memory_holds_are_refused() {
    let values: Vec<String> = (0..300).map(|value| format!("\"{value}kB\"")).collect();
    let axis = format!("[[axis]]\nname = \"cc\"\nvalues = [{}]\n", values.join(", "));
    let text = |seeds| format!("{HEAD}seeds = {seeds}\n{axis}{}", SETUP.replace("{buffer}", "9kB"));
    assert!(read(&text(1000)).unwrap_err().contains("cases and seeds make 300000 runs, more than 200000"));
    let experiment = read(&text(1)).unwrap();
    let error = manypath_lab::runs(&experiment, Mode::Full, 10_000, &manypath_lab::Simulator).unwrap_err();
    assert!(error.to_string().contains("3000000 runs"), "{error}");
}

#[test]
fn huge_sweeps_are_refused() {
    let values: Vec<String> = (0..200).map(|value| format!("\"{value}kB\"")).collect();
    let axis = |name| format!("[[axis]]\nname = \"{name}\"\nvalues = [{}]\n", values.join(", "));
    let text = format!("{HEAD}{}{}{SETUP}", axis("buffer"), axis("cc"));
    assert!(read(&text).unwrap_err().contains("40000 cases, more than 20000"));
}

/// The repository's experiments: every case of each makes a scenario or a model's arguments.
#[test]
fn every_experiment_of_the_repository_makes_sense() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let all = manypath_lab::load(&folder).unwrap_or_else(|error| panic!("{error}"));
    assert!(!all.is_empty());
    for experiment in &all {
        assert!(!experiment.claims.is_empty() || !experiment.figures.is_empty(), "{} says nothing", experiment.id);
        // A quick run's cases are those of a full run.
        let full: BTreeSet<_> = experiment.cases(Mode::Full).into_iter().collect();
        for case in experiment.cases(Mode::Quick) {
            assert!(full.contains(&case), "{}", experiment.id);
            for mode in [Mode::Quick, Mode::Full] {
                experiment.scenario(&case, mode).unwrap_or_else(|error| panic!("{error}"));
            }
        }
        for case in full {
            experiment.scenario(&case, Mode::Full).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
