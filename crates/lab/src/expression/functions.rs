//! The functions of expressions.

use super::array::Dim;

/// What a function does with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// `f(x)` or `f(x, axis)`: many numbers to one, over everything or along an axis.
    Reduce(fn(&[f64]) -> f64),
    /// `f(x, q)` or `f(x, q, axis)`: the same with a number.
    ReduceBy(fn(&[f64], f64) -> f64),
    /// `f(x)`: each number by itself.
    Map(fn(f64) -> f64),
    /// `f(x, y)`: pairs of numbers.
    Zip(fn(f64, f64) -> f64),
    /// `f(axis, x)`: a value of the axis.
    Locate(fn(&Dim, &[f64]) -> f64),
    /// `f(axis, x, level)`: a value of the axis.
    LocateLevel(fn(&Dim, &[f64], f64) -> f64),
    /// `between(series, from, to)`: the part of a time series with from < time <= to.
    Between,
}

/// A function and its sentence for the documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// How it is called and what it gives.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
}

const fn function(name: &'static str, about: &'static str, kind: Kind) -> Function {
    Function { name, about, kind }
}

/// Every function, in the order of documentation.
pub(super) static FUNCTIONS: &[Function] = &[
    function("sum", "sum(x) or sum(x, AXIS)", Kind::Reduce(sum)),
    function("mean", "mean(x) or mean(x, AXIS)", Kind::Reduce(mean)),
    function("median", "median(x) or median(x, AXIS)", Kind::Reduce(|values| percentile(values, 0.5))),
    function("min", "min(x) or min(x, AXIS): the smallest", Kind::Reduce(|values| fold(values, f64::min))),
    function("max", "max(x) or max(x, AXIS): the largest", Kind::Reduce(|values| fold(values, f64::max))),
    function("std", "std(x) or std(x, AXIS): the standard deviation", Kind::Reduce(deviation)),
    function("count", "count(x): how many numbers there are", Kind::Reduce(|values| values.len() as f64)),
    function("first", "first(x): the first number", Kind::Reduce(|values| values.first().copied().unwrap_or(f64::NAN))),
    function("last", "last(x): the last number", Kind::Reduce(|values| values.last().copied().unwrap_or(f64::NAN))),
    function("jain", "jain(x): Jain's fairness index", Kind::Reduce(jain)),
    function("steps", "steps(x): mean size of the change from one number to the next", Kind::Reduce(steps)),
    function(
        "percentile",
        "percentile(x, Q) or percentile(x, Q, AXIS): the value that Q percent do not exceed",
        Kind::ReduceBy(|values, q| percentile(values, q / 100.0)),
    ),
    function("abs", "abs(x)", Kind::Map(f64::abs)),
    function("sqrt", "sqrt(x)", Kind::Map(libm::sqrt)),
    function("log10", "log10(x)", Kind::Map(libm::log10)),
    function("exp", "exp(x)", Kind::Map(libm::exp)),
    function("smaller", "smaller(x, y): the smaller of each pair", Kind::Zip(|x, y| pair(x, y, f64::min))),
    function("larger", "larger(x, y): the larger of each pair", Kind::Zip(|x, y| pair(x, y, f64::max))),
    function(
        "atleast",
        "atleast(x, y): 1 where x is y or more, else 0",
        Kind::Zip(|x, y| pair(x, y, |x, y| yes(x >= y))),
    ),
    function(
        "atmost",
        "atmost(x, y): 1 where x is y or less, else 0",
        Kind::Zip(|x, y| pair(x, y, |x, y| yes(x <= y))),
    ),
    function("best", "best(AXIS, x): where on the axis x is largest", Kind::Locate(best)),
    function(
        "knee",
        "knee(AXIS, x, level): from where on the axis to its end x is at least the level; infinite if nowhere",
        Kind::LocateLevel(knee),
    ),
    function(
        "falls",
        "falls(AXIS, x, level): the first place on the axis where x is below the level; infinite if nowhere",
        Kind::LocateLevel(falls),
    ),
    function(
        "reaches",
        "reaches(AXIS, x, level): the first place on the axis where x is at least the level; infinite if nowhere",
        Kind::LocateLevel(reaches),
    ),
    function(
        "between",
        "between(series, FROM, TO): the part of a time series after FROM and up to TO seconds",
        Kind::Between,
    ),
];

/// The functions of expressions: how each is called and what it gives.
pub fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.about)
}

/// What is no number is neither above nor below another.
fn pair(x: f64, y: f64, f: fn(f64, f64) -> f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { f(x, y) }
}

fn yes(so: bool) -> f64 {
    f64::from(u8::from(so))
}

/// Of nothing there is no sum: zero would be a measurement.
fn sum(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { values.iter().sum() }
}

fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

fn fold(values: &[f64], f: fn(f64, f64) -> f64) -> f64 {
    values.iter().copied().reduce(f).unwrap_or(f64::NAN)
}

/// The sample standard deviation; one value has none.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle) * (value - middle)).sum();
    libm::sqrt(squares / (values.len() - 1) as f64)
}

fn jain(values: &[f64]) -> f64 {
    manypath_core::jain_index(values).unwrap_or(f64::NAN)
}

fn steps(values: &[f64]) -> f64 {
    let changes: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    mean(&changes)
}

/// The quantile between order statistics, linearly interpolated.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1).filter(|_| !share.is_nan()) else { return f64::NAN };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let below = (0..=last).rev().find(|index| *index as f64 <= at).unwrap_or(0);
    let above = (below + 1).min(last);
    let (weight, step) = (at - below as f64, sorted[above] - sorted[below]);
    // The next value does not count where none of it is taken, nor the same again: it may be infinite.
    if weight > 0.0 && sorted[above] > sorted[below] { sorted[below] + step * weight } else { sorted[below] }
}

/// The place of the first index, or infinity.
fn place(dim: &Dim, index: Option<usize>) -> f64 {
    index.and_then(|index| dim.numbers.get(index).copied()).unwrap_or(f64::INFINITY)
}

fn best(dim: &Dim, line: &[f64]) -> f64 {
    place(dim, (0..line.len()).max_by(|a, b| line[*a].total_cmp(&line[*b])))
}

fn knee(dim: &Dim, line: &[f64], level: f64) -> f64 {
    let reached = line.iter().rev().take_while(|value| **value >= level).count();
    place(dim, (reached > 0).then(|| line.len() - reached))
}

fn falls(dim: &Dim, line: &[f64], level: f64) -> f64 {
    place(dim, line.iter().position(|value| *value < level))
}

fn reaches(dim: &Dim, line: &[f64], level: f64) -> f64 {
    place(dim, line.iter().position(|value| *value >= level))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the numbers are exact
mod tests {
    use super::*;

    #[test]
    fn places_on_an_axis() {
        let numbers = vec![3.0, 9.0, 60.0, 375.0];
        let labels = numbers.iter().map(f64::to_string).collect();
        let dim = Dim { name: "buffer".to_owned(), len: 4, labels, numbers };
        assert_eq!(knee(&dim, &[0.2, 0.9, 0.7, 0.9], 0.8), 375.0);
        assert_eq!(reaches(&dim, &[0.2, 0.9, 0.7, 0.9], 0.8), 9.0);
        assert_eq!(falls(&dim, &[0.9, 0.9, 0.7, 0.9], 0.8), 60.0);
        assert_eq!(falls(&dim, &[0.9; 4], 0.8), f64::INFINITY);
        assert_eq!(knee(&dim, &[0.9, 0.9, 0.9, 0.7], 0.8), f64::INFINITY);
        assert_eq!(best(&dim, &[0.2, 0.9, 0.7, 0.8]), 9.0);
    }

    #[test]
    fn statistics() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(&values, 0.5), 2.5);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&values, 1.0), 4.0);
        // Squares of the deviations from 2.5: 2.25 + 2.25 + 0.25 + 0.25 = 5; 5/3.
        assert!((deviation(&values) - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(steps(&values), (3.0 + 2.0 + 1.0) / 3.0);
        assert!(percentile(&[], 0.5).is_nan());
        // A place that an axis does not reach is infinite, and may be one of several.
        let places = [f64::INFINITY, 2.0, 1.0];
        assert_eq!((percentile(&places, 0.5), percentile(&places, 1.0)), (2.0, f64::INFINITY));
        assert_eq!(percentile(&[f64::INFINITY; 2], 0.5), f64::INFINITY);
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        for f in [sum, mean, deviation, jain, steps, |values: &[f64]| percentile(values, 0.5)] {
            assert!(f(&[]).is_nan());
        }
        assert!(deviation(&[7.0]).is_nan() && steps(&[7.0]).is_nan());
    }
}
