//! The arguments of a model, with units.

use core::str::FromStr;

use manypath_core::{Bytes, Duration, ParseUnitError, Rate};

use crate::engine::EngineError;
use crate::expression::number;
use crate::template::{Node, Value, Written};

/// The arguments of a model of theory: a table, filled in for a case.
#[derive(Clone, Debug)]
pub struct Arguments(pub(crate) Node);

impl Arguments {
    /// As text, for keys and records.
    pub(crate) fn written(&self) -> String {
        Written::new(&self.0).text
    }

    fn find(&self, key: &str) -> Option<&Node> {
        match &self.0.value {
            Value::Table(entries) => entries.get(key),
            _ => None,
        }
    }

    /// Refuses arguments that the model does not read: a misspelt one would not count.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), EngineError> {
        let Value::Table(entries) = &self.0.value else { return Ok(()) };
        match entries.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(EngineError(format!("the model has no '{key}'; it has {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    fn needed(&self, key: &str) -> Result<&Node, EngineError> {
        self.find(key).ok_or_else(|| EngineError(format!("the model needs '{key}'")))
    }

    /// Whether there is such an argument.
    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    pub(super) fn text(&self, key: &str) -> Result<&str, EngineError> {
        self.needed(key)?.as_label().ok_or_else(|| EngineError(format!("'{key}' is a text")))
    }

    fn quantity<T: FromStr<Err = ParseUnitError>>(&self, key: &str) -> Result<T, EngineError> {
        self.text(key)?.parse().map_err(|error| EngineError(format!("{key}: {error}")))
    }

    pub(super) fn rate(&self, key: &str) -> Result<Rate, EngineError> {
        self.quantity(key)
    }

    pub(super) fn span(&self, key: &str) -> Result<Duration, EngineError> {
        self.quantity(key)
    }

    pub(super) fn size(&self, key: &str) -> Result<Bytes, EngineError> {
        self.quantity(key)
    }

    pub(super) fn number(&self, key: &str) -> Result<f64, EngineError> {
        let text = self.text(key)?;
        number(text).ok_or_else(|| EngineError(format!("{key} is '{text}': it must be a number")))
    }

    pub(super) fn count(&self, key: &str) -> Result<u32, EngineError> {
        let text = self.text(key)?;
        text.parse().map_err(|_| EngineError(format!("{key} is '{text}': it must be a whole number")))
    }

    /// The tables of a list.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Self>, EngineError> {
        match &self.needed(key)?.value {
            Value::List(nodes) => Ok(nodes.iter().cloned().map(Self).collect()),
            _ => Err(EngineError(format!("'{key}' is a list of tables"))),
        }
    }

    /// The texts or numbers of a list.
    pub(super) fn labels(&self, key: &str) -> Result<Vec<&str>, EngineError> {
        let wrong = || EngineError(format!("'{key}' is a list of texts or numbers"));
        match &self.needed(key)?.value {
            Value::List(nodes) => nodes.iter().map(|node| node.as_label().ok_or_else(wrong)).collect(),
            _ => Err(wrong()),
        }
    }
}
