//! Every command of docs/tutorial.md is carried out as it stands there, on an experiment whose runs are shorter.

use std::path::Path;
use std::process::Command;

/// Commands about other programs than ours, and what takes a machine of its own.
const ELSEWHERE: [&str; 4] = ["git ", "cargo ", "xdg-open ", "make "];

/// The lines of the shell blocks.
fn commands(page: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside && !line.trim().is_empty() => found.push(line),
            _ => {}
        }
    }
    found
}

#[test]
fn a_newcomer_gets_from_the_first_line_to_the_last() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("docs/tutorial.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("experiments")).unwrap();
    let experiment = std::fs::read_to_string(root.join("experiments/mpcc-fig5a.toml")).unwrap();
    let shorter = experiment
        .replace("duration = { quick = \"60s\", full = \"200s\" }", "duration = \"1s\"")
        .replace("warmup = { quick = \"20s\", full = \"30s\" }", "warmup = \"200ms\"");
    assert!(shorter.len() + 50 < experiment.len(), "the experiment's lengths are written differently now");
    std::fs::write(folder.path().join("experiments/mpcc-fig5a.toml"), shorter).unwrap();

    let ours = Path::new(env!("CARGO_BIN_EXE_manypath")).parent().unwrap();
    let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap_or_default());
    let mut tried = 0;
    for line in commands(&page) {
        if ELSEWHERE.iter().any(|word| line.starts_with(word)) {
            continue;
        }
        let output =
            Command::new("sh").args(["-c", line]).current_dir(folder.path()).env("PATH", &path).output().unwrap();
        // `lab check` says by its exit code what held before and no longer holds: nothing did.
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        tried += 1;
    }
    assert!(tried >= 10, "the tutorial has {tried} commands of ours only");
    let pictures = std::fs::read_to_string(folder.path().join("lab-report.html")).unwrap();
    assert!(pictures.contains("<svg") && folder.path().join("mine.svg").is_file());

    // The change to the experiment that the page describes in words makes a difference.
    let [before, after] = ["quick = [\"mpcc-loss\"", "quick = [\"cubic\", \"mpcc-loss\""];
    assert!(page.contains("add `\"cubic\"` to `quick` of its first axis") && experiment.contains(before));
    let mine = experiment.replacen(before, after, 1);
    std::fs::write(folder.path().join("experiments/mine.toml"), mine).unwrap();
    let mut plan = Command::new(env!("CARGO_BIN_EXE_manypath"));
    let plan = plan.args(["lab", "run", "mine", "--dry-run"]).current_dir(folder.path()).output().unwrap();
    let runs = String::from_utf8(plan.stdout).unwrap();
    assert!(page.contains("`manypath lab run mine`: 54 simulations") && runs.contains("54 runs to make"), "{runs}");
}
