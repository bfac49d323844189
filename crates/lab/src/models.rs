//! The engine of experiments that ask theory: a model by name, its arguments from the `[theory]` table.

mod arguments;
mod buffers;
mod law;
mod network;
mod uni;

use crate::code::{self, Code};
use crate::engine::{Engine, EngineError, Input};
use crate::experiment::EngineKind;
use crate::quantities::Quantities;

pub use arguments::Arguments;

/// A model: arguments in, quantities out.
type Model = fn(&Arguments) -> Result<Quantities, EngineError>;

/// Every model with what it computes.
pub(crate) static MODELS: &[(&str, &str, Model)] = &[
    ("lmmf", "the lexicographically max-min fair allocation of a network", network::lmmf),
    ("equilibrium", "where fluid models of control laws come to rest, and how fast", network::equilibrium),
    ("law", "k, phi, increase and decrease of a control law in a state", law::law),
    ("buffers", "the host buffers of STMS equations 1 to 4", buffers::buffers),
    ("uni", "Uni-MPTCP's Table I, and the same from the general optimisation", uni::uni),
];

/// The models, each with what it computes.
pub fn models() -> impl Iterator<Item = (&'static str, &'static str)> {
    MODELS.iter().map(|(name, about, _)| (*name, *about))
}

/// Equations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theory;

impl Engine for Theory {
    fn kind(&self) -> EngineKind {
        EngineKind::Theory
    }

    fn code(&self) -> &'static Code {
        &code::THEORY
    }

    fn run(&self, input: &Input, _: u64) -> Result<Quantities, EngineError> {
        let Input::Theory(arguments) = input else { return Err(EngineError("no model to ask".to_owned())) };
        let name = arguments.text("model")?;
        let Some((_, _, model)) = MODELS.iter().find(|(known, _, _)| *known == name) else {
            let known = MODELS.iter().map(|(known, _, _)| *known).collect::<Vec<_>>().join(", ");
            return Err(EngineError(format!("there is no model '{name}'; there are {known}")));
        };
        model(arguments)
    }
}
