//! Why an experiment file was refused, where, and what to do.

use manypath_core::SpecError;
use manypath_scenario::ScenarioError;

/// A fault in an experiment file and its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct FileError {
    /// The file as it was named.
    pub file: String,
    /// Line, from one.
    pub line: usize,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// What is wrong with an experiment; each message says what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is not TOML, or has unknown keys, missing keys or values of the wrong kind.
    #[error("{0}")]
    Syntax(String),
    /// The file is larger than an experiment can be.
    #[error("the file has {0} bytes, more than 1 MiB: sweep over an axis instead of writing values out")]
    TooLong(usize),
    /// A placeholder that no axis binds.
    #[error("nothing binds '{{{name}}}'; the axes bind {known}")]
    UnknownPlaceholder {
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// A placeholder inside a text stands for something that is no text or number.
    #[error("'{{{0}}}' stands for a list or table and must be the whole value")]
    NotText(String),
    /// Something that must be unique is there twice.
    #[error("{what} '{name}' is given twice: names must differ")]
    Twice {
        /// What.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that nothing has.
    #[error("there is no {what} '{name}'; there are {known}")]
    Unknown {
        /// What.
        what: &'static str,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// A needed value is not there.
    #[error("{what} needs '{key}': {remedy}")]
    Missing {
        /// What.
        what: String,
        /// The key.
        key: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// Values exclude each other.
    #[error("{what} has both '{first}' and '{second}': keep one")]
    Both {
        /// What.
        what: String,
        /// A key.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// A value makes no sense.
    #[error("{what} is {value}: it must be {range}")]
    OutOfRange {
        /// What.
        what: String,
        /// What was given.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
    /// There are more runs than anyone waits for.
    #[error("the axes make {0} cases, more than 20000: shorten them, or let quick or full take a part")]
    TooManyCases(usize),
    /// There are more runs than memory holds.
    #[error("cases and seeds make {0} runs, more than 200000: take fewer seeds, or shorten the axes")]
    TooManyRuns(usize),
    /// The scenario of a case was refused.
    #[error("{source_problem} (scenario with {case})")]
    Scenario {
        /// The case.
        case: String,
        /// What is wrong with it.
        source_problem: String,
    },
    /// An algorithm was refused.
    #[error("{0}")]
    Algorithm(#[from] SpecError),
    /// An expression was refused.
    #[error("'{text}': {reason}")]
    Expression {
        /// The expression.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Problem {
    /// A refused scenario of a case.
    pub(crate) fn scenario(case: &str, error: &ScenarioError) -> Self {
        Self::Scenario { case: case.to_owned(), source_problem: error.problem.to_string() }
    }

    /// A name that nothing has.
    pub(crate) fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known = known.take(40).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        Self::Unknown { what, name: name.chars().take(60).collect(), known }
    }
}

/// A problem and where it is, in bytes from the beginning of the file.
pub(crate) type Fault = (usize, Problem);
