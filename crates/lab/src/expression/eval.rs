//! The value of an expression.

use super::array::{Array, Dim};
use super::functions::{FUNCTIONS, Kind};
use super::{EvalError, Expr, Op, Selection};

/// Where names get their values.
pub(crate) trait Lookup {
    /// The array of a name, restricted to what is selected.
    fn get(&self, name: &str, select: &[Selection]) -> Result<Array, EvalError>;

    /// The times of time series of `len` values, in seconds.
    fn times(&self, len: usize) -> Result<&[f64], EvalError> {
        Err(EvalError::Wrong(format!("there is no time series of length {len} here")))
    }
}

/// The value of an expression.
pub(crate) fn evaluate(expr: &Expr, names: &dyn Lookup) -> Result<Array, EvalError> {
    match expr {
        Expr::Number(value) => Ok(Array::scalar(*value)),
        Expr::Name { name, select } => names.get(name, select),
        Expr::Negate(inner) => Ok(evaluate(inner, names)?.map(|value| -value)),
        Expr::Binary { op, left, right } => {
            let (left, right) = (evaluate(left, names)?, evaluate(right, names)?);
            let f: fn(f64, f64) -> f64 = match op {
                Op::Add => |a, b| a + b,
                Op::Subtract => |a, b| a - b,
                Op::Multiply => |a, b| a * b,
                Op::Divide => |a, b| a / b,
            };
            left.zip(&right, f).map_err(EvalError::Wrong)
        }
        Expr::Call { function, args } => call(function, args, names),
    }
}

fn call(name: &str, args: &[Expr], names: &dyn Lookup) -> Result<Array, EvalError> {
    let wrong = |reason: String| EvalError::Wrong(reason);
    let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
        let known = FUNCTIONS.iter().map(|function| function.name).collect::<Vec<_>>().join(", ");
        return Err(wrong(format!("there is no function '{name}'; there are {known}")));
    };
    let usage = || EvalError::Wrong(format!("write {}", function.about));
    match (function.kind, args) {
        // Of a run's list it can be said how many are there though some are not.
        (Kind::Reduce(f), [x]) if name == "count" => {
            Ok(Array::scalar(whole(&evaluate(x, names)?.there(Dim::is_list), f)))
        }
        (Kind::Reduce(f), [x]) => Ok(Array::scalar(whole(&evaluate(x, names)?.there(Dim::has_gaps), f))),
        (Kind::Reduce(f), [x, axis]) => {
            let axis = axis_name(axis).ok_or_else(usage)?;
            evaluate(x, names)?.reduce(axis, |_, line| whole(line, f)).map_err(wrong)
        }
        (Kind::ReduceBy(f), [x, q]) => {
            let (x, q) = (evaluate(x, names)?, scalar(q, names)?);
            Ok(Array::scalar(whole(&x.there(Dim::has_gaps), |line| f(line, q))))
        }
        (Kind::ReduceBy(f), [x, q, axis]) => {
            let (axis, q) = (axis_name(axis).ok_or_else(usage)?, scalar(q, names)?);
            evaluate(x, names)?.reduce(axis, |_, line| whole(line, |line| f(line, q))).map_err(wrong)
        }
        (Kind::Map(f), [x]) => Ok(evaluate(x, names)?.map(f)),
        (Kind::Zip(f), [x, y]) => evaluate(x, names)?.zip(&evaluate(y, names)?, f).map_err(wrong),
        (Kind::Locate(f), [axis, x]) => {
            let axis = axis_name(axis).ok_or_else(usage)?;
            evaluate(x, names)?.reduce(axis, |dim, line| whole(line, |line| f(dim, line))).map_err(wrong)
        }
        (Kind::LocateLevel(f), [axis, x, level]) => {
            let (axis, level) = (axis_name(axis).ok_or_else(usage)?, scalar(level, names)?);
            // Of a level that is no number it cannot be said that it is never reached.
            let place = |dim: &Dim, line: &[f64]| if level.is_nan() { level } else { f(dim, line, level) };
            evaluate(x, names)?.reduce(axis, |dim, line| whole(line, |line| place(dim, line))).map_err(wrong)
        }
        (Kind::Between, [x, from, to]) => {
            let (series, from, to) = (evaluate(x, names)?, scalar(from, names)?, scalar(to, names)?);
            let times = names.times(series.data.len())?;
            let inside = times.iter().zip(&series.data).filter(|(time, _)| from < **time && **time <= to);
            Ok(Array::list(inside.map(|(_, value)| *value).collect()))
        }
        _ => Err(usage()),
    }
}

/// What a function makes of a line. Nothing is said of one in which a number is missing: it could be any.
fn whole(line: &[f64], f: impl Fn(&[f64]) -> f64) -> f64 {
    if line.iter().any(|value| value.is_nan()) { f64::NAN } else { f(line) }
}

fn axis_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name { name, select } if select.is_empty() => Some(name),
        _ => None,
    }
}

fn scalar(expr: &Expr, names: &dyn Lookup) -> Result<f64, EvalError> {
    let value = evaluate(expr, names)?;
    value.single().ok_or_else(|| EvalError::Wrong("a single number is needed here".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Lookup for Fixed {
        fn get(&self, name: &str, select: &[Selection]) -> Result<Array, EvalError> {
            let numbers = vec![1.0, 2.0, 4.0];
            let labels = numbers.iter().map(f64::to_string).collect();
            let dim = Dim { name: "n".to_owned(), len: 3, labels, numbers };
            match name {
                "list" => Ok(Array::list(vec![f64::NAN, 2.0, 4.0])),
                "fit" => Ok(Array::matches(vec![f64::NAN, 2.0, 4.0])),
                "one" => Ok(Array::matches(vec![2.0])),
                "none" => Ok(Array { data: vec![f64::NAN, 20.0, 40.0], dims: vec![dim] }),
                "x" if select.is_empty() => Ok(Array { dims: vec![dim], data: vec![10.0, 20.0, 40.0] }),
                _ => Err(EvalError::Missing(name.to_owned())),
            }
        }

        fn times(&self, _: usize) -> Result<&[f64], EvalError> {
            Ok(&[1.0, 2.0, 3.0])
        }
    }

    fn value(text: &str) -> Result<Vec<f64>, EvalError> {
        evaluate(&Expr::parse(text).unwrap(), &Fixed).map(|array| array.data)
    }

    #[test]
    fn arithmetic_and_functions() {
        assert_eq!(value("x / 10 + 1").unwrap(), [2.0, 3.0, 5.0]);
        assert_eq!(value("max(x) - min(x, n)").unwrap(), [30.0]);
        assert_eq!(value("knee(n, x, 15)").unwrap(), [2.0]);
        assert_eq!(value("mean(between(x, 1, 3))").unwrap(), [30.0]);
        assert_eq!(value("mean(atleast(x, 20))").unwrap(), [2.0 / 3.0]);
        assert_eq!(value("percentile(x, 50)").unwrap(), [20.0]);
        // Of a list what is not there is left out; of the cases of a sweep nothing is.
        assert_eq!(value("mean(list)").unwrap(), [3.0]);
        assert_eq!(value("mean(between(list, 0, 2))").unwrap(), [2.0]);
        assert_eq!(value("max(list)").unwrap(), [4.0]);
        for of_cases in [
            "mean(none)",
            "min(none)",
            "max(none, n)",
            "median(none)",
            "percentile(none, 90, n)",
            "best(n, none)",
            "knee(n, none, 15)",
            "falls(n, none, 15)",
            "reaches(n, none, 15)",
            "first(smaller(x, none))",
            "max(larger(none, x))",
            "mean(atleast(x, none))",
            "mean(atmost(none, 1))",
            // Nor is anything said of a level, or a share, that is no number.
            "knee(n, x, max(none))",
            "falls(n, x, max(none))",
            "reaches(n, x, max(none))",
            "percentile(x, max(none))",
            "median(percentile(x, max(none), n))",
            // Of a list of which nothing is there.
            "sum(between(list, 0, 1))",
            "mean(between(list, 0, 1))",
            "max(between(list, 0, 1))",
            "std(between(list, 0, 1))",
            "sum(between(x, 8, 9))",
            "last(between(x, 8, 9))",
            // Of what a pattern fits nothing is left out.
            "mean(fit)",
            "median(fit * 1000)",
            "percentile(fit, 99)",
        ] {
            assert!(value(of_cases).unwrap()[0].is_nan(), "{of_cases}");
        }
        assert_eq!(value("count(between(x, 8, 9))").unwrap(), [0.0]);
        assert_eq!(value("count(fit)").unwrap(), [2.0]);
        // One that a pattern fits is still a list, but a number all the same where one is needed.
        assert_eq!(value("one / 2").unwrap(), [1.0]);
        assert!(value("fit / one").unwrap_err().to_string().contains("3 and 1 items"));
        assert_eq!(value("-x * (1 + 1)").unwrap(), [-20.0, -40.0, -80.0]);
    }

    /// A table of metrics, say: it has no times.
    struct Timeless;

    impl Lookup for Timeless {
        fn get(&self, _: &str, _: &[Selection]) -> Result<Array, EvalError> {
            Ok(Array::scalar(1.0))
        }
    }

    #[test]
    fn what_has_no_times_says_so() {
        let error = evaluate(&Expr::parse("between(x, 1, 3)").unwrap(), &Timeless).unwrap_err();
        assert_eq!(error.to_string(), "there is no time series of length 1 here");
    }

    #[test]
    fn faults_say_what_to_write() {
        assert!(value("knee(x, n)").unwrap_err().to_string().starts_with("write knee(AXIS"));
        assert!(value("foo(x)").unwrap_err().to_string().contains("there are sum, mean"));
        assert!(value("max(x, m)").unwrap_err().to_string().contains("no axis 'm'"));
        assert_eq!(value("y + 1"), Err(EvalError::Missing("y".to_owned())));
    }
}
