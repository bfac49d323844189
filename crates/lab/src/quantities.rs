//! Everything that a run found, as named lists of numbers.
//!
//! Names follow the report's JSON: `connection.mp.goodput_bps`, `connection.mp.subflow.0.lost_packets`,
//! `link.link1.utilisation`, `connection.mp.file.completion_s` (a list), `series.connection.mp.goodput_bps` (a list).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::expression::{Array, EvalError, Lookup, Selection};

/// Named lists of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quantities(pub BTreeMap<String, Vec<f64>>);

/// What the times of time series are called.
const TIMES: &str = "series.time_s";

impl Quantities {
    /// The numbers in a JSON value. Lists of tables with names become parts of names, other lists of tables one list for
    /// each key. Texts are left out; a null in a list, or of what has a name or a number there, is NaN: it keeps its place
    /// among the others.
    pub fn of_json(value: &Value) -> Self {
        let mut found = Self::default();
        found.add(&mut String::new(), value, false);
        found
    }

    /// Sets a quantity of one number.
    pub fn set(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), vec![value]);
    }

    /// `is_one`: whether the value is of one of several that a pattern may fit.
    fn add(&mut self, name: &mut String, value: &Value, is_one: bool) {
        match value {
            Value::Number(number) => self.push(name, number.as_f64()),
            Value::Bool(truth) => self.push(name, Some(f64::from(u8::from(*truth)))),
            Value::Object(entries) => {
                for (key, value) in entries {
                    within(name, key, |name| self.add(name, value, is_one));
                }
            }
            Value::Array(values) => self.add_list(name, values),
            Value::Null if is_one => self.push(name, Some(f64::NAN)),
            Value::Null | Value::String(_) => {}
        }
    }

    fn push(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.0.entry(name.to_owned()).or_default().push(value);
        }
    }

    fn add_list(&mut self, name: &mut String, values: &[Value]) {
        if !values.iter().any(Value::is_object) {
            // What is not there keeps its place: time series stay as long as their times.
            let numbers =
                values.iter().filter_map(|value| if value.is_null() { Some(f64::NAN) } else { value.as_f64() });
            self.0.entry(name.clone()).or_default().extend(numbers);
            return;
        }
        let full = name.len();
        // `connections` with names become `connection.NAME`; files have none and become lists.
        if name.ends_with('s') {
            name.pop();
        }
        let numbered = name.ends_with("subflow");
        for (index, value) in values.iter().enumerate() {
            match value.get("name").and_then(Value::as_str) {
                Some(part) => within(name, part, |name| self.add(name, value, true)),
                None if numbered => within(name, &index.to_string(), |name| self.add(name, value, true)),
                None => self.add(name, value, false),
            }
        }
        if name.len() < full {
            name.push('s');
        }
    }

    /// The names that a pattern with `*` fits, in order.
    pub fn fitting<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = (&'a str, &'a [f64])> {
        let all = self.0.iter().filter(move |(name, _)| fits(pattern, name));
        all.map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// Without time series that no pattern fits.
    pub(crate) fn keep(&mut self, patterns: &[String]) {
        self.0.retain(|name, _| {
            !name.starts_with("series.") || name == TIMES || patterns.iter().any(|pattern| fits(pattern, name))
        });
    }
}

/// Calls `f` with `part` added to a name.
fn within(name: &mut String, part: &str, f: impl FnOnce(&mut String)) {
    let len = name.len();
    if len > 0 {
        name.push('.');
    }
    name.push_str(part);
    f(name);
    name.truncate(len);
}

/// Whether a name fits a pattern in which `*` stands for anything.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

impl Lookup for Quantities {
    fn get(&self, name: &str, select: &[Selection]) -> Result<Array, EvalError> {
        if !select.is_empty() {
            return Err(EvalError::Wrong(format!("'{name}' is a quantity of one run: nothing can be selected")));
        }
        let mut found = self.fitting(name).peekable();
        if found.peek().is_none() {
            return Err(EvalError::Missing(format!("no quantity fits '{name}'")));
        }
        let values: Vec<f64> = found.flat_map(|(_, values)| values.iter().copied()).collect();
        let is_of_runs = name.contains('*') && !name.starts_with("series.");
        Ok(if is_of_runs { Array::matches(values) } else { Array::list(values) })
    }

    fn times(&self, len: usize) -> Result<&[f64], EvalError> {
        let times = self.0.get(TIMES).filter(|times| times.len() == len);
        times
            .map(Vec::as_slice)
            .ok_or_else(|| EvalError::Wrong(format!("a list of length {len} is no time series of this run")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_become_names() {
        let json = serde_json::json!({
            "jain": 0.5, "note": "text", "none": null,
            "connections": [
                { "name": "mp", "goodput_bps": 7.0, "subflows": [{ "lost": 1, "srtt_s": null }, { "lost": 2, "srtt_s": 0.1 }],
                  "files": [{ "bytes": 10 }, { "bytes": 20 }] },
                { "name": "sp", "goodput_bps": 9.0, "subflows": [{ "lost": 3 }], "files": [] },
            ],
            "series": { "time_s": [1.0, 2.0], "connections": [{ "name": "mp", "goodput_bps": [5.0, 6.0], "srtt_s": [null, 0.1] }] },
        });
        let mut found = Quantities::of_json(&json);
        assert_eq!(found.0["connection.mp.subflow.1.lost"], [2.0]);
        assert_eq!(found.0["connection.mp.file.bytes"], [10.0, 20.0]);
        assert_eq!(found.0["series.connection.mp.goodput_bps"], [5.0, 6.0]);
        let srtt = &found.0["series.connection.mp.srtt_s"];
        assert!(srtt.len() == 2 && srtt[0].is_nan() && srtt[1] > 0.0, "{srtt:?}");
        assert_eq!(found.get("connection.*.goodput_bps", &[]).unwrap().data, [7.0, 9.0]);
        assert_eq!(found.get("connection.*.subflow.*.lost", &[]).unwrap().data, [1.0, 2.0, 3.0]);
        let srtt = found.get("connection.mp.subflow.*.srtt_s", &[]).unwrap().data;
        assert!(srtt.len() == 2 && srtt[0].is_nan() && srtt[1] > 0.0, "{srtt:?}");
        // One that a pattern fits is a list still.
        assert_eq!(found.get("connection.s*.goodput_bps", &[]).unwrap().dims.len(), 1);
        assert!(matches!(found.get("none", &[]), Err(EvalError::Missing(_))));
        assert_eq!(found.times(2).unwrap(), [1.0, 2.0]);
        assert_eq!(found.times(1).unwrap_err().to_string(), "a list of length 1 is no time series of this run");
        found.keep(&["series.link.*".to_owned()]);
        assert!(!found.0.contains_key("series.connection.mp.goodput_bps") && found.0.contains_key("series.time_s"));
    }

    #[test]
    fn patterns() {
        assert!(fits("a.*.b", "a.x.y.b") && fits("*", "") && fits("a*", "a") && fits("*b*", "abc"));
        assert!(!fits("a.*.b", "a.b") && !fits("a", "ab") && !fits("*b", "bc"));
    }
}
