//! Expressions of metrics and claims: arithmetic over named arrays.
//!
//! `connection.mp.goodput_bps / {rate}` in a metric, over the quantities of one run; `use[cc=lia, buffer=9kB]` in a claim,
//! over the metrics of all cases. Operators stand between spaces, because names contain `-`, `/` and `*`. Numbers may have
//! units: `9kB` is 9000, `80%` is 0.8.

mod array;
mod eval;
mod functions;
mod parse;

pub(crate) use array::{Array, Dim};
pub(crate) use eval::{Lookup, evaluate};
pub use functions::functions;
pub(crate) use functions::{deviation, percentile};
pub(crate) use parse::number;

/// One selection: an axis (or something that an axis binds) and the labels that are allowed.
pub(crate) type Selection = (String, Vec<String>);

/// An expression, parsed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Number(f64),
    Name { name: String, select: Vec<Selection> },
    Negate(Box<Self>),
    Binary { op: Op, left: Box<Self>, right: Box<Self> },
    Call { function: String, args: Vec<Self> },
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvalError {
    /// Something that it needs has not been run, or was not measured.
    #[error("{0}")]
    Missing(String),
    /// It makes no sense.
    #[error("{0}")]
    Wrong(String),
}

impl Expr {
    /// Reads an expression; the error is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text)
    }

    /// Calls `visit` with every name and its selections.
    pub(crate) fn names(&self, visit: &mut impl FnMut(&str, &[Selection])) {
        match self {
            Self::Number(_) => {}
            Self::Name { name, select } => visit(name, select),
            Self::Negate(inner) => inner.names(visit),
            Self::Binary { left, right, .. } => {
                left.names(visit);
                right.names(visit);
            }
            Self::Call { args, .. } => args.iter().for_each(|arg| arg.names(visit)),
        }
    }
}
