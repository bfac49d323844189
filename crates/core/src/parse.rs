//! Quantities as people write them: `20Mbit`, `64KiB`, `30ms`, `0.1%`. A number without a unit is an error that says what
//! is missing. Prefixes are decimal (`k`, `M`, `G`) unless written with an `i` (`Ki`, `Mi`, `Gi`).

use core::fmt;
use core::str::FromStr;

use crate::quantity::{Bytes, Rate};
use crate::time::Duration;

/// Why a quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// There is a number and no unit.
    #[error("'{text}' has no unit: write {example}")]
    MissingUnit {
        /// What was given.
        text: String,
        /// The same number with a unit that fits.
        example: String,
    },
    /// The unit is not one of this quantity's.
    #[error("'{text}' has the unknown unit '{unit}': {kind} takes {units}")]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The part that was not understood.
        unit: String,
        /// What was expected: "a rate", "a size", "a duration".
        kind: &'static str,
        /// The units it takes.
        units: &'static str,
    },
    /// There is no number at the start.
    #[error("'{text}' does not start with a number: {kind} is written like {example}")]
    MissingNumber {
        /// What was given.
        text: String,
        /// What was expected.
        kind: &'static str,
        /// An example.
        example: &'static str,
    },
    /// The number is negative, infinite, or too large for the quantity.
    #[error("'{text}' is out of range: {kind} is finite, not negative, and below {limit}")]
    OutOfRange {
        /// What was given.
        text: String,
        /// What was expected.
        kind: &'static str,
        /// The largest value.
        limit: &'static str,
    },
}

/// From here on a number without a unit is not taken for one of the usual unit.
const LARGE: f64 = 1e5;

/// One kind of quantity: its units and how to talk about it.
struct Kind {
    name: &'static str,
    units: &'static [(&'static str, f64)],
    listed: &'static str,
    example_unit: &'static str,
    example: &'static str,
    limit: f64,
    limit_text: &'static str,
}

const RATE: Kind = Kind {
    name: "a rate",
    units: &[
        ("bit", 1.0),
        ("kbit", 1e3),
        ("Mbit", 1e6),
        ("Gbit", 1e9),
        ("Tbit", 1e12),
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("Tbit/s", 1e12),
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
    ],
    listed: "bit, kbit, Mbit, Gbit, Tbit (per second)",
    example_unit: "Mbit",
    example: "20Mbit",
    limit: 1e15,
    limit_text: "1000 Tbit",
};

const SIZE: Kind = Kind {
    name: "a size",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
    ],
    listed: "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
    example_unit: "KiB",
    example: "64KiB",
    limit: 1e18,
    limit_text: "1000000 TB",
};

const SPAN: Kind = Kind {
    name: "a duration",
    // Keyboards write the micro sign (U+00B5) or the Greek letter (U+03BC), which look alike.
    units: &[
        ("ns", 1e-9),
        ("us", 1e-6),
        ("\u{b5}s", 1e-6),
        ("\u{3bc}s", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
    ],
    listed: "ns, us, ms, s, min, h",
    example_unit: "ms",
    example: "30ms",
    limit: 1e9,
    limit_text: "1e9 s",
};

/// Splits `text` into a number and what follows it, in the base unit of `kind`.
fn parse(text: &str, kind: &Kind) -> Result<f64, ParseUnitError> {
    let trimmed = text.trim();
    let end = trimmed
        .char_indices()
        .find(|(index, c)| !(c.is_ascii_digit() || matches!(c, '.' | '_') || (matches!(c, '-' | '+') && *index == 0)));
    let (number, unit) = trimmed.split_at(end.map_or(trimmed.len(), |(index, _)| index));
    let value: f64 = number.replace('_', "").parse().map_err(|_| ParseUnitError::MissingNumber {
        text: text.to_owned(),
        kind: kind.name,
        example: kind.example,
    })?;
    let out_of_range = || ParseUnitError::OutOfRange { text: text.to_owned(), kind: kind.name, limit: kind.limit_text };
    let unit = unit.trim_start();
    if unit.is_empty() {
        // There is no unit that would make a quantity of it.
        if value.is_sign_negative() || value * kind.units[0].1 > kind.limit {
            return Err(out_of_range());
        }
        // So large a number is counted in the smallest unit, if its writer has one in mind.
        let unit = if value < LARGE { kind.example_unit } else { kind.units[0].0 };
        let example = format!("{number}{unit}");
        return Err(ParseUnitError::MissingUnit { text: text.to_owned(), example });
    }
    let factor = kind.units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor = factor.ok_or_else(|| ParseUnitError::UnknownUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        kind: kind.name,
        units: kind.listed,
    })?;
    let scaled = value * factor;
    if scaled.is_finite() && scaled.is_sign_positive() && scaled <= kind.limit {
        Ok(scaled)
    } else {
        Err(out_of_range())
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse(text, &RATE).map(Self::from_bps)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse(text, &SIZE).map(Self::from_f64)
    }
}

impl FromStr for Duration {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse(text, &SPAN).map(Self::from_secs_f64)
    }
}

/// Writes `value` in the largest of `units` (ascending) that keeps it at or above one, without losing digits.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, units: &[(f64, &str)]) -> fmt::Result {
    let (factor, unit) = units.iter().rev().find(|(factor, _)| value >= *factor).unwrap_or(&units[0]);
    let scaled = value / factor;
    match f.precision() {
        Some(digits) => write!(f, "{scaled:.digits$}{unit}"),
        None => write!(f, "{scaled}{unit}"),
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.as_bps(), &[(1.0, "bit"), (1e3, "kbit"), (1e6, "Mbit"), (1e9, "Gbit"), (1e12, "Tbit")])
    }
}

/// Sizes that are whole multiples of 1024 are written with binary prefixes, others with decimal ones.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DECIMAL: &[(f64, &str)] = &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];
        const BINARY: &[(u64, &str)] = &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let bytes = self.get();
        if f.precision().is_none() {
            let exact = BINARY.iter().find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor));
            return match exact {
                Some((factor, unit)) => write!(f, "{}{unit}", bytes / factor),
                None if bytes.is_multiple_of(1000) => write_scaled(f, bytes as f64, DECIMAL),
                None => write!(f, "{bytes}B"),
            };
        }
        write_scaled(f, bytes as f64, DECIMAL)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In nanoseconds, so that what was parsed exactly prints exactly.
        write_scaled(f, self.as_nanos() as f64, &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_with_units() {
        assert_eq!("20Mbit".parse(), Ok(Rate::from_mbps(20.0)));
        assert_eq!("1.5 Gbit/s".parse(), Ok(Rate::from_mbps(1500.0)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!("64kB".parse(), Ok(Bytes::new(64_000)));
        assert_eq!("30ms".parse(), Ok(Duration::from_millis(30)));
        assert_eq!("0.5s".parse(), Ok(Duration::from_millis(500)));
        for text in ["7us", "7\u{b5}s", "7\u{3bc}s"] {
            assert_eq!(text.parse(), Ok(Duration::from_micros(7)), "{text}");
        }
    }

    #[test]
    fn every_unit_has_its_size() {
        let rate = |text: &str| text.parse::<Rate>().unwrap().as_bps();
        for (prefix, factor) in [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)] {
            for unit in ["bit", "bit/s", "bps"] {
                assert_eq!(rate(&format!("2{prefix}{unit}")).to_bits(), f64::to_bits(2.0 * factor), "{prefix}{unit}");
            }
        }
        assert_eq!([rate("2Tbit"), rate("2Tbit/s")].map(f64::to_bits), [2e12; 2].map(f64::to_bits));
        for (index, prefix) in (1..).zip(["K", "M", "G", "T"]) {
            assert_eq!(format!("2{prefix}B").parse(), Ok(Bytes::new(2 * 1000_u64.pow(index))), "{prefix}B");
            assert_eq!(format!("2{prefix}iB").parse(), Ok(Bytes::new(2 * 1024_u64.pow(index))), "{prefix}iB");
        }
        for (text, nanos) in [("2ns", 2), ("2us", 2_000), ("2s", 2_000_000_000), ("2min", 120_000_000_000)] {
            assert_eq!(text.parse(), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        assert_eq!("2h".parse(), Ok(Duration::from_secs(7200)));
    }

    #[test]
    fn a_bare_number_says_what_is_missing() {
        let error = "20".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error, "'20' has no unit: write 20Mbit");
        assert_eq!("64".parse::<Bytes>().unwrap_err().to_string(), "'64' has no unit: write 64KiB");
        assert_eq!("30".parse::<Duration>().unwrap_err().to_string(), "'30' has no unit: write 30ms");
        let error = "50000000".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error, "'50000000' has no unit: write 50000000bit");
        // No unit would do.
        for text in ["-1", "9223372036854775807"] {
            assert!(matches!(text.parse::<Duration>(), Err(ParseUnitError::OutOfRange { .. })), "{text}");
        }
    }

    #[test]
    fn wrong_units_and_numbers_are_refused() {
        assert!(matches!("20MB".parse::<Rate>(), Err(ParseUnitError::UnknownUnit { .. })));
        assert!(matches!("20mbit".parse::<Rate>(), Err(ParseUnitError::UnknownUnit { .. })));
        assert!(matches!("fast".parse::<Rate>(), Err(ParseUnitError::MissingNumber { .. })));
        assert!(matches!("NaNms".parse::<Duration>(), Err(ParseUnitError::MissingNumber { .. })));
        assert!(matches!("-1ms".parse::<Duration>(), Err(ParseUnitError::OutOfRange { .. })));
        assert!("1e400s".parse::<Duration>().is_err());
        assert!(matches!("9999999999999999Tbit".parse::<Rate>(), Err(ParseUnitError::OutOfRange { .. })));
    }

    #[test]
    fn printed_in_the_unit_that_fits() {
        assert_eq!(Rate::from_mbps(20.0).to_string(), "20Mbit");
        assert_eq!(Rate::from_mbps(1.0).to_string(), "1Mbit");
        assert_eq!(format!("{:.1}", Rate::from_bps(74_312_000.0)), "74.3Mbit");
        assert_eq!(Bytes::new(65_536).to_string(), "64KiB");
        assert_eq!(format!("{:.1}", Bytes::new(65_536)), "65.5kB");
        assert_eq!(Bytes::new(375_000).to_string(), "375kB");
        assert_eq!(Bytes::new(1_501).to_string(), "1501B");
        assert_eq!(Duration::from_micros(1_500).to_string(), "1.5ms");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = (text.parse::<Rate>(), text.parse::<Bytes>(), text.parse::<Duration>());
        }

        #[test]
        fn what_is_printed_parses_back(nanos in 0_u64..1_000_000_000_000, bytes in 0_u64..1 << 50) {
            let span = Duration::from_nanos(nanos);
            let size = Bytes::new(bytes);
            prop_assert_eq!(span.to_string().parse::<Duration>().unwrap(), span);
            prop_assert_eq!(size.to_string().parse::<Bytes>().unwrap(), size);
        }
    }
}
