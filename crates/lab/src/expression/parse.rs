//! The grammar:
//!
//! ```text
//! sum     = product { (" + " | " - ") product }
//! product = factor { (" * " | " / ") factor }
//! factor  = "-" factor | "(" sum ")" | number | name [ "[" axis "=" label { "|" label } { "," ... } "]" ]
//!         | function "(" sum { "," sum } ")"
//! ```

use manypath_core::{Bytes, Duration, Rate};

use super::{Expr, Op, Selection};

/// The longest expression, bytes.
const MAX_LENGTH: usize = 4000;
/// The deepest nesting.
const MAX_DEPTH: usize = 40;

pub(super) fn parse(text: &str) -> Result<Expr, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("an expression has at most {MAX_LENGTH} characters"));
    }
    let mut parser = Parser { rest: text, depth: 0 };
    let expr = parser.sum()?;
    parser.skip_space();
    if parser.rest.is_empty() { Ok(expr) } else { Err(parser.unexpected("an operator between spaces, or the end")) }
}

/// A number with or without a unit, in bit/s, bytes, seconds or as a share.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(|percent| percent / 100.0);
    }
    if let Some(count) = text.strip_suffix("packets") {
        return count.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    }
    let plain = text.parse::<f64>().ok().filter(|number| number.is_finite());
    plain
        .or_else(|| text.parse::<Rate>().ok().map(Rate::as_bps))
        .or_else(|| text.parse::<Bytes>().ok().map(Bytes::as_f64))
        .or_else(|| text.parse::<Duration>().ok().map(Duration::as_secs_f64))
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        if found.is_empty() {
            format!("it ends where {wanted} should be")
        } else {
            format!("'{found}' is not {wanted}")
        }
    }

    fn take(&mut self, token: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: char) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(&format!("'{token}'"))) }
    }

    /// Takes everything up to the first character that `stop` accepts.
    fn until(&mut self, stop: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(stop).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn operator(&mut self, known: [(char, Op); 2]) -> Option<Op> {
        self.skip_space();
        let (_, op) = known.into_iter().find(|(token, _)| {
            let behind = self.rest.strip_prefix(*token);
            behind.is_some_and(|behind| behind.starts_with(char::is_whitespace))
        })?;
        self.rest = &self.rest[1..];
        Some(op)
    }

    fn sum(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("an expression nests at most {MAX_DEPTH} deep"));
        }
        let mut left = self.product()?;
        while let Some(op) = self.operator([('+', Op::Add), ('-', Op::Subtract)]) {
            let right = self.product()?;
            left = Expr::Binary { op, left: Box::new(left), right: Box::new(right) };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, String> {
        let mut left = self.factor()?;
        while let Some(op) = self.operator([('*', Op::Multiply), ('/', Op::Divide)]) {
            let right = self.factor()?;
            left = Expr::Binary { op, left: Box::new(left), right: Box::new(right) };
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expr, String> {
        self.skip_space();
        let Some(first) = self.rest.chars().next() else { return Err(self.unexpected("a number or a name")) };
        match first {
            '(' => {
                self.rest = &self.rest[1..];
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            '-' => {
                // Not by recursion: a line of minus signs must not exhaust the stack.
                let signs = self.rest.len() - self.rest.trim_start_matches('-').len();
                self.rest = &self.rest[signs..];
                if self.rest.starts_with('-') || self.rest.trim_start().starts_with('-') {
                    return Err(self.unexpected("a number or a name"));
                }
                let inner = self.factor()?;
                Ok(if signs.is_multiple_of(2) { inner } else { Expr::Negate(Box::new(inner)) })
            }
            '0'..='9' | '.' => {
                let text = self.until(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '%')));
                number(text).map(Expr::Number).ok_or_else(|| format!("'{text}' is no number, with or without unit"))
            }
            c if c.is_ascii_alphabetic() || matches!(c, '_' | '*') => self.name(),
            _ => Err(self.unexpected("a number or a name")),
        }
    }

    fn name(&mut self) -> Result<Expr, String> {
        let name = self.until(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '*' | '-' | '/')));
        if self.rest.starts_with('(') {
            self.rest = &self.rest[1..];
            let mut args = vec![self.sum()?];
            while self.take(',') {
                args.push(self.sum()?);
            }
            self.expect(')')?;
            return Ok(Expr::Call { function: name.to_owned(), args });
        }
        let select = if self.rest.starts_with('[') { self.selections()? } else { Vec::new() };
        Ok(Expr::Name { name: name.to_owned(), select })
    }

    fn selections(&mut self) -> Result<Vec<Selection>, String> {
        self.rest = &self.rest[1..];
        let inside = self.until(|c| c == ']');
        self.expect(']')?;
        let one = |part: &str| {
            let (axis, labels) = part.split_once('=').ok_or_else(|| format!("'{part}' is not AXIS=LABEL"))?;
            let labels = labels.split('|').map(|label| label.trim().to_owned()).collect();
            Ok((axis.trim().to_owned(), labels))
        };
        inside.split(',').map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        for (text, value) in [("9kB", 9000.0), ("80%", 0.8), ("30ms", 0.03), ("5Mbit", 5e6), ("47packets", 47.0)] {
            assert!((number(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        assert_eq!(number("1e400"), None);
        assert_eq!(number("fast"), None);
    }

    #[test]
    fn names_keep_their_dashes() {
        let parsed = parse("a.b-c/back * 2 - d[cc=mpcc-loss|uni-mptcp:weights=1/0.2, n=1]").unwrap();
        let mut names = Vec::new();
        parsed.names(&mut |name, select| names.push((name.to_owned(), select.to_vec())));
        assert_eq!(names[0].0, "a.b-c/back");
        let labels = vec!["mpcc-loss".to_owned(), "uni-mptcp:weights=1/0.2".to_owned()];
        assert_eq!(names[1].1[0], ("cc".to_owned(), labels));
    }

    #[test]
    fn products_bind_closer_than_sums() {
        let Expr::Binary { op: Op::Add, right, .. } = parse("1 + 2 * 3").unwrap() else { panic!("not a sum") };
        assert!(matches!(*right, Expr::Binary { op: Op::Multiply, .. }));
        assert_eq!(parse("-2").unwrap(), Expr::Negate(Box::new(Expr::Number(2.0))));
        assert!(matches!(parse("max(a, (b - c))").unwrap(), Expr::Call { args, .. } if args.len() == 2));
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for text in ["", "1 +", "(1", "a[", "a[x]", "1 2", "f(", "f(1,", "9xyz", "a ^ b", "- - 1", "ä"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse(&"(".repeat(3000)).is_err());
        assert!(parse(&"1".repeat(5000)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = parse(&text);
        }
    }
}
