//! Values as scenario files write them, each with its unit, and where they stand.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::str::FromStr;
use std::borrow::Cow;

use manypath_core::{AlgorithmSpec, Bytes, Duration, ParseUnitError, Rate};
use manypath_link::QueueLimit;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// A value with the place in the file where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    /// Bytes of the file.
    pub(crate) span: Range<usize>,
    pub(crate) value: T,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        Ok(Self { span: spanned.span(), value: spanned.into_inner() })
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }
}

/// How a kind of value is written.
pub(crate) trait Written: Copy + fmt::Debug {
    /// The type of the value.
    type Value: Clone + fmt::Debug;
    /// What it is called.
    const NAME: &'static str;
    /// How it is written.
    const EXAMPLE: &'static str;

    /// Reads it; the error is a sentence with the remedy.
    fn read(text: &str) -> Result<Self::Value, String>;
}

/// A value that is written as a string with a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<W: Written>(pub(crate) W::Value);

impl<'de, W: Written> Deserialize<'de> for Text<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader::<W>(PhantomData)).map(Self)
    }
}

struct Reader<W>(PhantomData<W>);

impl<W: Written> Visitor<'_> for Reader<W> {
    type Value = W::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as a string with its unit, like {}", W::NAME, W::EXAMPLE)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<W::Value, E> {
        W::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<W::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<W::Value, E> {
        self.visit_str(&number.to_string())
    }
}

impl<W: Written> JsonSchema for Text<W> {
    fn schema_name() -> Cow<'static, str> {
        W::NAME.replace(' ', "-").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": format!("{}, like {}", W::NAME, W::EXAMPLE) })
    }
}

/// A value of `manypath-core` that parses itself.
macro_rules! written {
    ($marker:ident, $value:ty, $name:literal, $example:literal) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $marker;

        impl Written for $marker {
            type Value = $value;
            const NAME: &'static str = $name;
            const EXAMPLE: &'static str = $example;

            fn read(text: &str) -> Result<$value, String> {
                <$value>::from_str(text).map_err(|error| error.to_string())
            }
        }
    };
}

written!(ARate, Rate, "a rate", "\"20Mbit\"");
written!(ASize, Bytes, "a size", "\"64KiB\"");
written!(ASpan, Duration, "a duration", "\"30ms\"");

/// A time in the course of a run. Who leaves out the unit most likely means seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AMoment;

impl Written for AMoment {
    type Value = Duration;
    const NAME: &'static str = "a time";
    const EXAMPLE: &'static str = "\"10s\"";

    fn read(text: &str) -> Result<Duration, String> {
        text.parse().map_err(|error| match error {
            ParseUnitError::MissingUnit { text, .. } => {
                let example = format!("{}s", text.trim());
                ParseUnitError::MissingUnit { text, example }.to_string()
            }
            other => other.to_string(),
        })
    }
}

/// A controller or scheduler with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnAlgorithm;

/// The longest name with parameters, bytes: it goes into reports.
const MAX_ALGORITHM: usize = 1000;

impl Written for AnAlgorithm {
    type Value = AlgorithmSpec;
    const NAME: &'static str = "an algorithm";
    const EXAMPLE: &'static str = "\"lia\" or \"mp-ol:n=5,d=0.5\"";

    fn read(text: &str) -> Result<AlgorithmSpec, String> {
        if text.len() > MAX_ALGORITHM {
            return Err(format!(
                "an algorithm of {} bytes: at most {MAX_ALGORITHM}, like {}",
                text.len(),
                Self::EXAMPLE
            ));
        }
        text.parse().map_err(|error: manypath_core::SpecError| error.to_string())
    }
}

/// A share, written in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AShare;

impl Written for AShare {
    type Value = f64;
    const NAME: &'static str = "a share";
    const EXAMPLE: &'static str = "\"0.1%\"";

    fn read(text: &str) -> Result<f64, String> {
        let number = text
            .trim()
            .strip_suffix('%')
            .ok_or_else(|| format!("'{text}' has no unit: write a share in percent, like \"0.1%\""))?;
        match number.trim().parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
            _ => Err(format!("'{text}' is out of range: a share is between 0% and 100%")),
        }
    }
}

/// An amount of queue: packets, bytes, or the time that a packet waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AQueue;

impl Written for AQueue {
    type Value = QueueLimit;
    const NAME: &'static str = "an amount of queue";
    const EXAMPLE: &'static str = "\"250packets\", \"375kB\" or \"30ms\"";

    fn read(text: &str) -> Result<QueueLimit, String> {
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        match packets {
            Some(number) => number
                .trim()
                .parse()
                .map(QueueLimit::Packets)
                .map_err(|_| format!("'{text}' does not start with a whole number: write {}", Self::EXAMPLE)),
            None => match text.parse() {
                Ok(wait) => Ok(QueueLimit::Wait(wait)),
                Err(_) => text.parse().map(QueueLimit::Bytes).map_err(|error: manypath_core::ParseUnitError| {
                    format!("{error} (or packets, like \"250packets\", or the longest wait, like \"30ms\")")
                }),
            },
        }
    }
}

/// Whether something is steady or random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Timing {
    /// All the same.
    #[default]
    Periodic,
    /// Exponential.
    Poisson,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_and_shares_need_their_units() {
        assert_eq!(AQueue::read("250packets"), Ok(QueueLimit::Packets(250)));
        assert_eq!(AQueue::read("375kB"), Ok(QueueLimit::Bytes(Bytes::new(375_000))));
        assert_eq!(AQueue::read("30ms"), Ok(QueueLimit::Wait(manypath_core::Duration::from_millis(30))));
        assert!(AQueue::read("375").unwrap_err().contains("has no unit"));
        assert!(AQueue::read("manypackets").is_err());
        assert!((AShare::read("0.1%").unwrap() - 0.001).abs() < 1e-12);
        assert!(AShare::read("0.1").unwrap_err().contains("percent"));
        assert!(AShare::read("101%").is_err() && AShare::read("NaN%").is_err() && AShare::read("-1%").is_err());
    }
}
