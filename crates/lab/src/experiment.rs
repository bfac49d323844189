//! An experiment after all checks: what is run, what is measured, what the paper says, and how it is drawn.

use manypath_scenario::Scenario;

use crate::axis::Axis;
use crate::claim::Claim;
use crate::error::{FileError, Problem};
use crate::expression::Expr;
use crate::figure::Figure;
use crate::template::{Bindings, Node, Written, fill};

/// The most cases of an experiment.
pub(crate) const MAX_CASES: usize = 20_000;
/// The most runs of an experiment: the list of all is in memory, some kilobytes each.
const MAX_RUNS: usize = 200_000;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Enough to see the shape.
    Quick,
    /// As much as the paper did.
    Full,
}

impl Mode {
    /// The word on the command line and in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What carries out a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineKind {
    /// The simulator.
    Sim,
    /// Equations.
    Theory,
    /// The QUIC transport over links emulated in real time.
    Quic,
    /// The Linux kernel's Multipath TCP over links emulated in real time.
    Kernel,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [Self; 4] = [Self::Sim, Self::Theory, Self::Quic, Self::Kernel];

    /// The word on the command line and in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Theory => "theory",
            Self::Quic => "quic",
            Self::Kernel => "kernel",
        }
    }

    /// The engine of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.as_str() == name)
    }
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name of its file.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Which paper: `mpcc`, `tccc`, `stms`, `mp-ol` or `uni-mptcp`.
    pub paper: String,
    /// Where in the paper.
    pub place: String,
    /// The paper's setting in a sentence or two.
    pub about: String,
    /// How ours differs from it, and what we chose where it is silent.
    pub deviations: Vec<String>,
    /// Why claims do not hold, where they do not.
    pub analysis: Option<String>,
    /// Whose runs these are: its own, or those of the experiment that it is like.
    pub runs_of: String,
    /// What it can be run on; the first one judges its claims.
    pub engines: Vec<EngineKind>,
    /// Runs of each case, quick and full.
    pub seeds: [u32; 2],
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// Its metrics.
    pub metrics: Vec<Metric>,
    /// What the paper says.
    pub claims: Vec<Claim>,
    /// What the paper draws.
    pub figures: Vec<Figure>,
    pub(crate) setup: Setup,
    pub(crate) lengths: [Lengths; 2],
    /// The file, for errors in what depends on the case.
    pub(crate) source: Source,
    /// The file that says what is run: another one's, if it is like that.
    pub(crate) setup_source: Source,
}

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Setup {
    /// A scenario with placeholders.
    Scenario(Node),
    /// A model's arguments, with placeholders.
    Theory(Node),
}

/// How long runs are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lengths {
    pub(crate) duration: Option<Node>,
    pub(crate) warmup: Option<Node>,
}

/// A file and its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) folder: std::path::PathBuf,
}

impl Source {
    /// A fault's place as a line.
    pub(crate) fn error(&self, (at, problem): crate::error::Fault) -> FileError {
        let line = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        FileError { file: self.file.clone(), line, problem: Box::new(problem) }
    }
}

/// A number that every run gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name in claims and figures.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// An expression with placeholders over the quantities of a run.
    pub(crate) value: String,
    pub(crate) at: usize,
    /// Whether it stands in the file that says what is run, not in the experiment's own.
    pub(crate) is_inherited: bool,
}

/// One combination of values: an index for each axis.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Case(pub Vec<usize>);

impl Experiment {
    /// The cases of a mode: every combination of the axes' values, the last axis varying fastest.
    pub fn cases(&self, mode: Mode) -> Vec<Case> {
        let mut cases = vec![Vec::new()];
        for axis in &self.axes {
            let values = axis.part(mode);
            cases = cases
                .into_iter()
                .flat_map(|case| values.iter().map(move |value| [case.as_slice(), &[*value]].concat()))
                .collect();
        }
        cases.into_iter().map(Case).collect()
    }

    /// What a case is called: `cc = lia, buffer = 9kB`.
    pub fn describe(&self, case: &Case) -> String {
        let pair = |(axis, index): (&Axis, &usize)| format!("{} = {}", axis.name, axis.values[*index].label);
        self.axes.iter().zip(&case.0).map(pair).collect::<Vec<_>>().join(", ")
    }

    /// How many runs of each case a mode has.
    pub fn seeds(&self, mode: Mode) -> u32 {
        self.seeds[mode as usize]
    }

    /// Refuses more runs than memory holds.
    pub(crate) fn check_runs(&self, mode: Mode, seeds: u32) -> Result<(), Problem> {
        let cases = self.axes.iter().fold(1_usize, |cases, axis| cases.saturating_mul(axis.part(mode).len()));
        let runs = cases.saturating_mul(seeds as usize);
        if runs > MAX_RUNS { Err(Problem::TooManyRuns(runs)) } else { Ok(()) }
    }

    /// What the placeholders of a case stand for.
    pub(crate) fn bindings(&self, case: &Case) -> Bindings {
        let values = self.axes.iter().zip(&case.0).map(|(axis, index)| &axis.values[*index]);
        values.flat_map(|value| value.bindings.clone()).collect()
    }

    /// The scenario of a case as a file that `manypath sim run` takes, and checked; `None` if the experiment asks theory
    /// only.
    ///
    /// # Errors
    /// If what the case makes of the scenario is none, with the place in the experiment file.
    pub fn scenario(&self, case: &Case, mode: Mode) -> Result<Option<(String, Scenario)>, FileError> {
        let Setup::Scenario(template) = &self.setup else { return Ok(None) };
        let bindings = self.bindings(case);
        let mut table = template.clone();
        for (axis, index) in self.axes.iter().zip(&case.0) {
            if let Some(fragment) = &axis.values[*index].scenario {
                table.merge(fragment);
            }
        }
        let lengths = &self.lengths[mode as usize];
        for (key, node) in [("duration", &lengths.duration), ("warmup", &lengths.warmup)] {
            if let Some(node) = node {
                table.insert(key, node.clone());
            }
        }
        let filled = table.fill(&bindings).map_err(|fault| self.setup_source.error(fault))?;
        let written = Written::new(&filled);
        let scenario =
            manypath_scenario::parse(&written.text, &self.id, &self.setup_source.folder).map_err(|error| {
                let problem = Problem::scenario(&self.describe(case), &error);
                self.setup_source.error((written.place(error.line), problem))
            })?;
        Ok(Some((written.text, scenario)))
    }

    /// The arguments of a case for a model; `None` if the experiment is no theory.
    pub(crate) fn theory(&self, case: &Case) -> Result<Option<Node>, FileError> {
        let Setup::Theory(template) = &self.setup else { return Ok(None) };
        let filled = template.fill(&self.bindings(case)).map_err(|fault| self.setup_source.error(fault))?;
        Ok(Some(filled))
    }

    /// A metric's expression for a case.
    pub(crate) fn expression(&self, metric: &Metric, case: &Case) -> Result<Expr, FileError> {
        let parsed = fill(&metric.value, &self.bindings(case))
            .and_then(|text| Expr::parse(&text).map_err(|reason| Problem::Expression { text, reason }));
        parsed.map_err(|problem| self.metric_error(metric, problem))
    }

    /// What is wrong with a metric, and where that stands.
    pub(crate) fn metric_error(&self, metric: &Metric, problem: Problem) -> FileError {
        let source = if metric.is_inherited { &self.setup_source } else { &self.source };
        source.error((metric.at, problem))
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

impl Axis {
    /// The indices of the values that a mode takes.
    pub fn part(&self, mode: Mode) -> Vec<usize> {
        match mode {
            Mode::Quick => self.quick.clone(),
            Mode::Full => (0..self.values.len()).collect(),
        }
    }
}
