//! The commands of theory.

mod support;

use serde_json::Value;
use support::{Place, manypath, run, said};

/// The network of MPCC, Figure 3c, with these controllers.
fn figure_3c(place: &Place, mp: &str) -> std::path::PathBuf {
    let file = place.path("3c.toml");
    let text = format!(
        "duration = \"1s\"\ntopology = \"mpcc-3c\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"{mp}\"\n\
         [[connection]]\nname = \"sp\"\nrole = \"sp\"\ncc = \"reno\"\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn ask(question: &str, file: &std::path::Path, more: &[&str]) -> support::Said {
    let mut command = manypath(["theory", question]);
    command.arg(file).args(more);
    said(command)
}

fn rates(answer: &Value) -> Vec<f64> {
    let rate = |connection: &Value| (connection["rate_bps"].as_f64().unwrap() * 1e-6).round();
    answer["connections"].as_array().unwrap().iter().map(rate).collect()
}

#[test]
fn every_question_has_help_with_examples() {
    for question in [&["theory"][..], &["theory", "lmmf"], &["theory", "num"], &["theory", "fluid"]] {
        let help = run(question.iter().chain(&["--help"]));
        assert!(help.code == Some(0) && help.out.contains("Examples:\n  manypath theory "), "{}", help.out);
    }
}

#[test]
fn the_two_links_of_figure_3c() {
    let place = Place::new();
    let file = figure_3c(&place, "lia");
    let fair = ask("lmmf", &file, &["--json"]).json();
    assert_eq!(rates(&fair), [100.0, 100.0]);
    assert_eq!(fair["connections"][0]["paths"][0]["links"], serde_json::json!(["link1"]));
    // 1500 bytes on the wire carry 1414 of payload.
    assert!((fair["connections"][1]["goodput_bps"].as_f64().unwrap() * 1e-6 - 94.27).abs() < 0.01, "{fair}");
    // With alpha 0 all that counts is that both links are full.
    let most = rates(&ask("num", &file, &["--alpha", "0", "--json"]).json());
    assert!((most.iter().sum::<f64>() - 200.0).abs() < 0.5, "{most:?}");
    // LIA keeps a window on the second link, which MPCC s2 holds against it.
    let rest = ask("fluid", &file, &["--json"]).json();
    assert!(rates(&rest)[0] > 110.0 && rates(&rest)[1] < 90.0, "{rest}");
    assert_eq!(rest["price_unit"], "loss probability");
    let table = ask("lmmf", &file, &[]).out;
    assert!(table.starts_with("3c: lexicographic max-min fairness\n"), "{table}");
    assert!(table.contains("  subflow 1: link2"), "{table}");
}

#[test]
fn what_theory_leaves_out_is_said() {
    let place = Place::new();
    let file = figure_3c(&place, "lia");
    let more = ["--set", "connection.sp.start=0.5s", "--set", "link.link1.schedule=[{ at = '1s', rate = '1Mbit' }]"];
    let table = ask("lmmf", &file, &more).out;
    assert!(table.contains("note: link 'link1' changes over time; it counts with the rate and loss"), "{table}");
    assert!(table.contains("note: 'sp' counts as if it were there all the time"), "{table}");
    let counted = ["--set", "connection.mp.cc=lia:count=acks", "--json"];
    let notes = &ask("fluid", &file, &counted).json()["notes"];
    assert_eq!(*notes, serde_json::json!(["'mp' counts as lia without count=acks"]));
    assert_eq!(ask("lmmf", &file, &counted).json()["notes"], serde_json::json!([]));
}

#[test]
fn questions_without_an_answer_say_why() {
    let place = Place::new();
    let file = figure_3c(&place, "cubic");
    ask("fluid", &file, &[])
        .fails_with(&["no fluid model of 'cubic', the controller of 'mp'", "--set connection.mp.cc=lia"]);
    for alpha in ["9", "-1"] {
        ask("num", &file, &["--alpha", alpha]).fails_with(&["from 0 to 8"]);
    }
    ask("fluid", &file, &["--queues", "half"]).fails_with(&["0% to 100%"]);
    ask("lmmf", &file, &["--set", "connection.cc"]).fails_with(&["KEY=VALUE"]);
    ask("lmmf", &place.path("none.toml"), &[]).fails_with(&["cannot read"]);
}
