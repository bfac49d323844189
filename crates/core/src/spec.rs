//! Names of algorithms with parameters: `mpcc-latency`, `mp-ol:n=5,d=0.5`, `uni-mptcp:weights=1/0.2`.
//!
//! Parsed here and nowhere else, and printed back the same, so that the command line, scenario files and tests agree.

use core::fmt;
use core::str::FromStr;

/// An algorithm's name and the parameters that differ from its defaults, in the order written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlgorithmSpec {
    /// The algorithm's registered name.
    pub name: String,
    /// Parameter names and values, as written.
    pub params: Vec<(String, String)>,
}

/// How far an algorithm can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Follows its source, or as ours the rule that its file states, and is tested against it.
    Stable,
    /// Not yet tested against its source, or ours and not yet measured over many networks.
    Experimental,
}

impl Status {
    /// The word printed in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Experimental => "experimental",
        }
    }
}

/// One parameter of an algorithm, as documented in its registry row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key in `name:key=value`.
    pub name: &'static str,
    /// The value used when the key is absent, in the same notation.
    pub default: &'static str,
    /// What values are allowed, in words.
    pub range: &'static str,
    /// What it means, with unit and source.
    pub meaning: &'static str,
}

/// Why a name or its parameters were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The text is not of the form `name[:key=value[,key=value]...]`.
    #[error("'{text}' is not an algorithm: write NAME or NAME:KEY=VALUE,KEY=VALUE")]
    Syntax {
        /// What was given.
        text: String,
    },
    /// No algorithm has this name.
    #[error("no algorithm is called '{name}'; there are {known}")]
    UnknownName {
        /// What was given.
        name: String,
        /// The names that exist, separated by commas.
        known: String,
    },
    /// The algorithm has no such parameter.
    #[error("'{algorithm}' has no parameter '{key}'; it has {known}")]
    UnknownParameter {
        /// The algorithm.
        algorithm: String,
        /// What was given.
        key: String,
        /// The parameters that exist, separated by commas, or "none".
        known: String,
    },
    /// The value is not one the parameter takes.
    #[error("'{algorithm}:{key}={value}' is out of range: {key} takes {range}")]
    BadValue {
        /// The algorithm.
        algorithm: String,
        /// The parameter.
        key: String,
        /// What was given.
        value: String,
        /// What is allowed.
        range: String,
    },
}

impl AlgorithmSpec {
    /// An algorithm with its default parameters.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), params: Vec::new() }
    }

    /// The same with one more parameter, which it does not have yet.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.params.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The same with a parameter in place of the algorithm's default, unless it has one.
    #[must_use]
    pub fn with_default(self, key: &str, value: &str) -> Self {
        if self.params.iter().any(|(chosen, _)| chosen == key) { self } else { self.with(key, value) }
    }
}

impl FromStr for AlgorithmSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let syntax = || SpecError::Syntax { text: text.to_owned() };
        let word = |part: &str| -> Result<String, SpecError> {
            let plain = !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '_' | '.' | '/'));
            plain.then(|| part.to_owned()).ok_or_else(syntax)
        };
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let mut params = Vec::new();
        for pair in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) = pair.split_once('=').ok_or_else(syntax)?;
            let key = word(key)?;
            if params.iter().any(|(held, _)| *held == key) {
                return Err(syntax());
            }
            params.push((key, word(value)?));
        }
        Ok(Self { name: word(name)?, params })
    }
}

impl fmt::Display for AlgorithmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (key, value)) in self.params.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// The parameters of one algorithm, checked against its registry row: given values first, then defaults.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    spec: &'a AlgorithmSpec,
    known: &'a [Parameter],
}

impl<'a> Params<'a> {
    /// Checks that every key of `spec` is among `known`.
    pub fn new(spec: &'a AlgorithmSpec, known: &'a [Parameter]) -> Result<Self, SpecError> {
        for (key, _) in &spec.params {
            if !known.iter().any(|parameter| parameter.name == key) {
                let names: Vec<_> = known.iter().map(|parameter| parameter.name).collect();
                return Err(SpecError::UnknownParameter {
                    algorithm: spec.name.clone(),
                    key: key.clone(),
                    known: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
                });
            }
        }
        Ok(Self { spec, known })
    }

    /// The text of a parameter: what was given, or its default.
    ///
    /// # Panics
    /// If the registry row does not list `key`: a mistake in the row, found by the registry's own test.
    pub fn text(&self, key: &str) -> &'a str {
        let given = self.spec.params.iter().find(|(held, _)| held == key).map(|(_, value)| value.as_str());
        given.unwrap_or_else(|| self.row(key).default)
    }

    /// A number within `min..=max`.
    pub fn number(&self, key: &str, min: f64, max: f64) -> Result<f64, SpecError> {
        let value = self.text(key).parse::<f64>().ok().filter(|value| (min..=max).contains(value));
        value.ok_or_else(|| self.bad_value(key))
    }

    /// A whole number within `min..=max`.
    pub fn integer(&self, key: &str, min: u64, max: u64) -> Result<u64, SpecError> {
        let value = self.text(key).parse::<u64>().ok().filter(|value| (min..=max).contains(value));
        value.ok_or_else(|| self.bad_value(key))
    }

    /// One of the words given with their meanings.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, SpecError> {
        let text = self.text(key);
        choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| self.bad_value(key))
    }

    /// `on` or `off`.
    pub fn switch(&self, key: &str) -> Result<bool, SpecError> {
        self.choice(key, &[("on", true), ("off", false)])
    }

    /// The error that says what `key` takes.
    pub fn bad_value(&self, key: &str) -> SpecError {
        SpecError::BadValue {
            algorithm: self.spec.name.clone(),
            key: key.to_owned(),
            value: self.text(key).to_owned(),
            range: self.row(key).range.to_owned(),
        }
    }

    fn row(&self, key: &str) -> &'a Parameter {
        let row = self.known.iter().find(|parameter| parameter.name == key);
        row.unwrap_or_else(|| panic!("the registry row of '{}' lacks the parameter '{key}'", self.spec.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Parameter] = &[
        Parameter { name: "n", default: "5", range: "an integer from 1 to 100", meaning: "length" },
        Parameter { name: "pace", default: "on", range: "on or off", meaning: "pacing" },
    ];

    #[test]
    fn a_spec_prints_back_the_same() {
        for text in ["mpcc-latency", "mp-ol:n=5,d=0.5", "uni-mptcp:weights=1/0.2", "tccc+", "e-nmcc+"] {
            assert_eq!(text.parse::<AlgorithmSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_default_gives_way_to_what_is_chosen() {
        let with = |text: &str| text.parse::<AlgorithmSpec>().unwrap().with_default("n", "7").to_string();
        assert_eq!((with("x"), with("x:n=5")), ("x:n=7".to_owned(), "x:n=5".to_owned()));
    }

    #[test]
    fn malformed_specs_are_refused() {
        for text in ["", ":", "a:", "a:b", "a:b=", "a:=c", "a:b=1,b=2", "a b", "a:b=1;c=2", "ä"] {
            assert!(matches!(text.parse::<AlgorithmSpec>(), Err(SpecError::Syntax { .. })), "{text:?}");
        }
    }

    #[test]
    fn parameters_are_checked_against_the_row() {
        let spec: AlgorithmSpec = "x:n=7".parse().unwrap();
        let params = Params::new(&spec, ROWS).unwrap();
        assert_eq!(params.integer("n", 1, 100), Ok(7));
        assert_eq!(params.switch("pace"), Ok(true));
        assert!(matches!(params.integer("n", 1, 6), Err(SpecError::BadValue { .. })));
        // Both ends are allowed.
        for (min, max) in [(1, 7), (7, 100)] {
            assert_eq!(params.integer("n", min, max), Ok(7));
            assert_eq!(params.number("n", min as f64, max as f64), Ok(7.0));
        }
        let spec: AlgorithmSpec = "x:m=7".parse().unwrap();
        let error = Params::new(&spec, ROWS).unwrap_err().to_string();
        assert_eq!(error, "'x' has no parameter 'm'; it has n, pace");
        assert_eq!(Params::new(&spec, &[]).unwrap_err().to_string(), "'x' has no parameter 'm'; it has none");
        let spec: AlgorithmSpec = "x:n=NaN".parse().unwrap();
        assert!(Params::new(&spec, ROWS).unwrap().number("n", 0.0, 1.0).is_err());
    }
}
