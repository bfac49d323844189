//! Reports: every figure redrawn, the claims under it, as one page of HTML and as Markdown with pictures.

mod engines;
mod html;
mod markdown;

use manypath_output::Figure as Picture;

use crate::claim::{Claim, Verdict, short};
use crate::draw::{Drawn, draw};
use crate::engine::Engine;
use crate::experiment::{Experiment, Mode};
use crate::plan::LabError;
use crate::results::Results;
use crate::store::Store;

pub use engines::{Beside, Other};
pub use html::html;
pub use markdown::markdown;

/// An experiment in a report.
#[derive(Debug)]
pub struct Section<'a> {
    /// Which.
    pub experiment: &'a Experiment,
    /// Which runs it is about.
    pub mode: Mode,
    /// How many runs there are, and how many there should be.
    pub runs: (usize, usize),
    /// Its claims by the engine that judges them.
    pub claims: Vec<(&'a Claim, Verdict)>,
    /// Its figures: title and picture.
    pub figures: Vec<(String, Drawn)>,
    /// The same on other engines, as far as it has been run there.
    pub others: Vec<Other>,
}

/// What a report says about itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Version of the program, and hashes of engines' code.
    pub versions: String,
    /// How the runs were made: command, time, machine; one a line.
    pub made: Vec<String>,
}

/// Puts an experiment's section together. `engines` are those that it may have been run on, the judging one first.
///
/// # Errors
/// If results cannot be read or an expression makes no sense.
///
/// # Panics
/// Without an engine.
pub fn section<'a>(
    experiment: &'a Experiment,
    (mode, seeds): (Mode, u32),
    engines: &[Box<dyn Engine>],
    store: &Store,
) -> Result<Section<'a>, LabError> {
    let (first, rest) = engines.split_first().expect("every experiment names an engine");
    let results = Results::read(experiment, (mode, seeds), first.as_ref(), store)?;
    let table = results.table()?;
    let mut others = Vec::new();
    for engine in rest {
        others.extend(engines::other(experiment, engine.as_ref(), first.as_ref(), store)?);
    }
    let mut figures = Vec::new();
    // Nothing is drawn of what has not been run at all.
    for figure in experiment.figures.iter().filter(|_| results.count().0 > 0) {
        let is_shared = others.iter().any(|other| !other.figures.is_empty());
        let on = if is_shared { format!(" ({})", first.kind().as_str()) } else { String::new() };
        figures.push((format!("{}{on}", figure.title), draw(figure, &results, &table)?));
    }
    figures.extend(others.iter_mut().flat_map(|other| core::mem::take(&mut other.figures)));
    Ok(Section {
        experiment,
        mode,
        runs: results.count(),
        claims: experiment.claims.iter().map(|claim| (claim, claim.judge(&table))).collect(),
        figures,
        others,
    })
}

impl Section<'_> {
    /// How many claims hold, do not hold, and were not run.
    pub fn counts(&self) -> [usize; 3] {
        let count = |fits: fn(&Verdict) -> bool| self.claims.iter().filter(|(_, verdict)| fits(verdict)).count();
        [
            count(|verdict| matches!(verdict, Verdict::Holds(_))),
            count(|verdict| matches!(verdict, Verdict::Fails(_))),
            count(|verdict| matches!(verdict, Verdict::NotRun(_))),
        ]
    }
}

/// The claims of all sections that hold, do not hold, and were not run.
fn totals(sections: &[Section<'_>]) -> [usize; 3] {
    sections.iter().map(Section::counts).fold([0; 3], |sum, counts| [0, 1, 2].map(|index| sum[index] + counts[index]))
}

/// The sentence of a report that counts.
fn summary(sections: &[Section<'_>]) -> String {
    let [holds, fails, missing] = totals(sections);
    let whole = sections.iter().filter(|section| !section.claims.is_empty());
    let whole: Vec<bool> = whole.map(|section| section.counts()[0] == section.claims.len()).collect();
    let all = holds + fails + missing;
    format!(
        "{holds} of {all} {}, {missing} not run; {} of {} {}.",
        either(all, "claim holds", "claims hold"),
        whole.iter().filter(|holds| **holds).count(),
        whole.len(),
        either(
            whole.len(),
            "figure or table holds with all its claims",
            "figures and tables hold with all their claims"
        )
    )
}

/// The words for one, or for another number.
const fn either(count: usize, one: &'static str, more: &'static str) -> &'static str {
    if count == 1 { one } else { more }
}

/// Our numbers with their spread.
fn ours(verdict: &Verdict, unit: &str) -> String {
    let Some(ours) = verdict.ours() else {
        return match verdict {
            Verdict::NotRun(reason) => format!("– ({reason})"),
            _ => String::new(),
        };
    };
    let number = |(index, value): (usize, &f64)| match ours.spread.get(index) {
        Some((least, most)) => format!("{} ({} to {})", short(*value), short(*least), short(*most)),
        None => short(*value),
    };
    let numbers: Vec<String> = ours.values.iter().enumerate().map(number).collect();
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{}{unit}", numbers.join(", "))
}

/// What another engine says of a claim.
fn theirs(verdict: &Verdict, unit: &str) -> String {
    match verdict {
        Verdict::NotRun(_) => sign(verdict).to_owned(),
        _ => format!("{}: {}", sign(verdict), ours(verdict, unit)),
    }
}

/// A sign that is read without colour.
const fn sign(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds(_) => "✓ holds",
        Verdict::Fails(_) => "✗ does not hold",
        Verdict::NotRun(_) => "– not run",
    }
}

/// The analysis of a claim that does not hold: its own, or the experiment's.
fn analysis<'a>(claim: &'a Claim, verdict: &Verdict) -> Option<&'a str> {
    claim.analysis.as_deref().filter(|_| !matches!(verdict, Verdict::Holds(_)))
}

/// The SVG of a picture.
fn svg(picture: &Picture) -> String {
    picture.to_svg()
}

/// The name of a paper.
fn paper(id: &str) -> &'static str {
    match id {
        "mpcc" => "MPCC (CoNEXT 2020)",
        "tccc" => "TCCC",
        "stms" => "STMS (ATC 2018)",
        "mp-ol" => "MP-OL (TNSM 2023)",
        _ => "Uni-MPTCP",
    }
}
