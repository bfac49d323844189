//! What a paper claims, as data, and whether it holds.

use std::collections::BTreeMap;

use crate::expression::{Array, EvalError, Expr, evaluate};
use crate::table::{Seeds, Table, View};

/// A claim of a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name within the experiment.
    pub id: String,
    /// The paper's words in short.
    pub says: String,
    /// Where the paper says so.
    pub place: String,
    /// The paper's number, or that it gives none.
    pub number: String,
    /// The unit of our number.
    pub unit: String,
    /// What must be so.
    pub statement: Statement,
    /// Labels that take the place of others, by axis: under them the claim must fail.
    pub wrong: BTreeMap<String, BTreeMap<String, String>>,
    /// Why it does not hold, if it does not.
    pub analysis: Option<String>,
}

/// What must be so.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Every value is at least this.
    Least(Expr, Expr),
    /// Every value is at most this.
    Most(Expr, Expr),
    /// Every value is between these.
    Between(Expr, Expr, Expr),
    /// Every value is this with a relative or absolute tolerance.
    Equals { value: Expr, number: Expr, within: Tolerance },
    /// Each is smaller than the next, or larger by no more than a share.
    Order(Vec<Expr>, f64),
}

/// How far a number may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    Share(f64),
    Absolute(f64),
}

/// Whether a claim holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It does.
    Holds(Ours),
    /// It does not.
    Fails(Ours),
    /// Something that it needs has not been run.
    NotRun(String),
}

/// Our numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ours {
    /// The values, from the means over seeds.
    pub values: Vec<f64>,
    /// The smallest and largest that single seeds give, for each value; empty if there is one seed only, or a run gave no number.
    pub spread: Vec<(f64, f64)>,
}

impl Verdict {
    /// The words of reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Holds(_) => "holds",
            Self::Fails(_) => "does not hold",
            Self::NotRun(_) => "not run",
        }
    }

    /// Our numbers, if there are any.
    pub const fn ours(&self) -> Option<&Ours> {
        match self {
            Self::Holds(ours) | Self::Fails(ours) => Some(ours),
            Self::NotRun(_) => None,
        }
    }
}

impl Claim {
    /// Judges the claim by the metrics of all cases.
    pub fn judge(&self, table: &Table<'_>) -> Verdict {
        self.judged(table, &BTreeMap::new())
    }

    /// Judges it with its wrong variation in place; `None` if it names none.
    pub fn judge_wrong(&self, table: &Table<'_>) -> Option<Verdict> {
        (!self.wrong.is_empty()).then(|| self.judged(table, &self.wrong))
    }

    fn judged(&self, table: &Table<'_>, wrong: &BTreeMap<String, BTreeMap<String, String>>) -> Verdict {
        let found = self.statement.check(&View { table, seeds: Seeds::Mean, wrong, lenient: false });
        let (holds, values) = match found {
            Ok(found) => found,
            Err(error) => return Verdict::NotRun(error.to_string()),
        };
        let single = |index| {
            let view = View { table, seeds: Seeds::One(index), wrong, lenient: false };
            self.statement.check(&view).ok().map(|(_, values)| values)
        };
        let runs: Vec<Vec<f64>> = (0..table.seeds()).filter_map(single).collect();
        let spread = if runs.len() > 1 && !values.iter().any(|value| value.is_nan()) {
            let extremes = |at: usize| {
                let each = || runs.iter().filter_map(move |run| run.get(at).copied());
                (each().fold(f64::INFINITY, f64::min), each().fold(f64::NEG_INFINITY, f64::max))
            };
            (0..values.len()).map(extremes).collect()
        } else {
            Vec::new()
        };
        let ours = Ours { values, spread };
        if holds { Verdict::Holds(ours) } else { Verdict::Fails(ours) }
    }
}

/// A number with three significant digits: `0.979`, `1.23e-5`, `12300`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        let word = if value.is_nan() { "none" } else { "infinite" };
        return if value == f64::NEG_INFINITY { format!("-{word}") } else { word.to_owned() };
    }
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = match size {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

impl Statement {
    /// Whether it is so, and the numbers that say so.
    pub(crate) fn check(&self, view: &View<'_>) -> Result<(bool, Vec<f64>), EvalError> {
        let bound = |value: &Expr, level: &Expr, fits: fn(f64, f64) -> bool| {
            let (value, level) = (number(value, view)?, number(level, view)?);
            Ok((fits(value, level), vec![value]))
        };
        match &self.0 {
            Kind::Least(value, level) => bound(value, level, |value, level| value >= level),
            Kind::Most(value, level) => bound(value, level, |value, level| value <= level),
            Kind::Between(value, least, most) => {
                let (value, least, most) = (number(value, view)?, number(least, view)?, number(most, view)?);
                Ok(((least..=most).contains(&value), vec![value]))
            }
            Kind::Equals { value, number: wanted, within } => {
                let (value, wanted) = (number(value, view)?, number(wanted, view)?);
                let room = match within {
                    Tolerance::Share(share) => share * wanted.abs(),
                    Tolerance::Absolute(room) => *room,
                };
                Ok(((value - wanted).abs() <= room, vec![value]))
            }
            Kind::Order(values, slack) => order(values, *slack, view),
        }
    }
}

/// A finite number, an infinite one (a place that an axis does not reach), or NaN where a run gave none: then no claim holds.
fn number(expr: &Expr, view: &View<'_>) -> Result<f64, EvalError> {
    let array = evaluate(expr, view)?;
    array.single().ok_or_else(|| {
        let axes = array.dims.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(", ");
        EvalError::Wrong(format!("a claim is about one number: select or reduce {axes}"))
    })
}

/// Whether each is smaller than the next in every place, with `slack` to spare.
fn order(values: &[Expr], slack: f64, view: &View<'_>) -> Result<(bool, Vec<f64>), EvalError> {
    let arrays = values.iter().map(|value| evaluate(value, view)).collect::<Result<Vec<Array>, _>>()?;
    let mut holds = true;
    // A place that an axis does not reach is infinite: above every other, whatever the slack.
    let fits = |smaller: f64, larger: f64| smaller < larger || smaller < larger + slack * larger.abs();
    for pair in arrays.windows(2) {
        let fits = pair[0].zip(&pair[1], |smaller, larger| f64::from(u8::from(fits(smaller, larger))));
        holds &= fits.map_err(EvalError::Wrong)?.data.iter().all(|fits| *fits > 0.5);
    }
    let mean = |array: &Array| array.data.iter().sum::<f64>() / array.data.len() as f64;
    Ok((holds, arrays.iter().map(mean).collect()))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the numbers are exact
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::{Case, Mode};
    use crate::load::experiments;

    /// What is said of `x`, which is -2 with `a`, 1 with `b` and 4 with `c`; of two seeds, one is a half below and one above.
    fn judged(statement: &str) -> Verdict {
        let text = format!(
            r#"title = "t"
paper = "mpcc"
place = "p"
about = "a"
duration = "1s"
seeds = {{ quick = 2, full = 2 }}
[[axis]]
name = "rate"
values = [{{ label = "a", rate = "1Mbit" }}, {{ label = "b", rate = "2Mbit" }}, {{ label = "c", rate = "3Mbit" }}]
[scenario]
topology = "two-links"
[[scenario.connection]]
name = "mp"
cc = "reno"
rate-limit = "{{rate}}"
[metric.x]
title = "x"
value = "jain"
[[claim]]
id = "c"
says = "s"
place = "p"
number = "n"
{statement}
wrong = {{ rate = {{ a = "b" }} }}
"#
        );
        let texts = [("x-fig1".to_owned(), "x-fig1.toml".to_owned(), text)];
        let experiment = experiments(&texts, Path::new(".")).unwrap().remove(0);
        let mut table = Table::new(&experiment, Mode::Quick, 2);
        for (at, value) in [-2.0, 1.0, 4.0].into_iter().enumerate() {
            table.set("x", &Case(vec![at]), 0, value - 0.5);
            table.set("x", &Case(vec![at]), 1, value + 0.5);
        }
        experiment.claims[0].judge(&table)
    }

    #[test]
    fn bounds_are_allowed_values() {
        for (statement, holds) in [
            ("value = \"x[rate=c]\"\nleast = 4", true),
            ("value = \"x[rate=c]\"\nleast = 4.01", false),
            ("value = \"x[rate=c]\"\nmost = 4", true),
            ("value = \"x[rate=c]\"\nmost = 3.99", false),
            ("value = \"x[rate=c]\"\nleast = 1\nmost = 4", true),
            ("value = \"x[rate=c]\"\nleast = 4\nmost = 9", true),
            ("value = \"x[rate=c]\"\nleast = 1\nmost = 3.99", false),
            ("value = \"x[rate=b]\"\nequals = 2\nwithin = \"50%\"", true),
            ("value = \"x[rate=b]\"\nequals = 2\nwithin = \"49%\"", false),
            ("value = \"x[rate=b]\"\nequals = 0.5\nwithin = 0.5", true),
            ("value = \"x[rate=b]\"\nequals = 1.5\nwithin = 0.4", false),
            ("value = \"x[rate=a]\"\nequals = -4\nwithin = \"50%\"", true),
        ] {
            let verdict = judged(statement);
            assert_eq!(matches!(verdict, Verdict::Holds(_)), holds, "{statement}: {verdict:?}");
        }
    }

    #[test]
    fn an_order_holds_from_the_first_to_the_last() {
        let order = |names: [&str; 3], slack: &str| {
            let values = names.map(|name| format!("\"x[rate={name}]\""));
            judged(&format!("order = [{}]{slack}", values.join(", ")))
        };
        assert!(matches!(order(["a", "b", "c"], ""), Verdict::Holds(ours) if ours.values == [-2.0, 1.0, 4.0]));
        for wrong in [["b", "a", "c"], ["a", "c", "b"], ["a", "a", "b"]] {
            assert!(matches!(order(wrong, ""), Verdict::Fails(_)), "{wrong:?}");
        }
        // A share of the larger one's size: 1 < -2 + 2 * 2.
        assert!(matches!(order(["b", "a", "c"], "\nslack = \"200%\""), Verdict::Holds(_)));
        assert!(matches!(order(["b", "a", "c"], "\nslack = \"150%\""), Verdict::Fails(_)));
    }

    #[test]
    fn two_runs_have_a_spread() {
        let verdict = judged("value = \"x[rate=c]\"\nleast = 4");
        assert_eq!(verdict.ours().unwrap().spread, [(3.5, 4.5)]);
    }

    #[test]
    fn numbers_have_three_digits() {
        let words = [1e-4, 1e-3, 0.0125, 0.979, 9.994, 12.34, 123.4, 12_345.0, 2e6, -0.5].map(short);
        assert_eq!(words, ["1.00e-4", "0.001", "0.013", "0.979", "9.99", "12.3", "123", "12345", "2.00e6", "-0.500"]);
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(short), ["infinite", "-infinite", "none"]);
    }
}
