//! Scenario tables with placeholders, `{buffer}`, which the axes of a sweep fill in.
//!
//! Every value keeps its place in the experiment file, so that what the scenario parser refuses is reported there.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Fault, Problem};

/// A TOML value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Byte of the file where it begins.
    pub(crate) at: usize,
    pub(crate) value: Value,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// A number or truth value, as written.
    Plain(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

/// What placeholders stand for.
pub(crate) type Bindings = BTreeMap<String, Node>;

impl Node {
    pub(crate) fn text(at: usize, text: &str) -> Self {
        Self { at, value: Value::Text(text.to_owned()) }
    }

    /// The nodes of a parsed table.
    pub(crate) fn table(at: usize, table: &DeTable<'_>) -> Self {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &std::borrow::Cow<'_, str> = key.get_ref();
            (key.to_string(), Self::value(value))
        };
        Self { at, value: Value::Table(table.iter().map(entry).collect()) }
    }

    fn value(value: &Spanned<DeValue<'_>>) -> Self {
        let at = value.span().start;
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => Value::Plain(number.to_string()),
            DeValue::Float(number) => Value::Plain(number.to_string()),
            DeValue::Boolean(truth) => Value::Plain(truth.to_string()),
            DeValue::Datetime(time) => Value::Plain(time.to_string()),
            DeValue::Array(values) => Value::List(values.iter().map(Self::value).collect()),
            DeValue::Table(table) => return Self::table(at, table),
        };
        Self { at, value }
    }

    /// The text of a text or plain value.
    pub(crate) fn as_label(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Plain(text) => Some(text),
            Value::List(_) | Value::Table(_) => None,
        }
    }

    /// With all placeholders filled in.
    pub(crate) fn fill(&self, bindings: &Bindings) -> Result<Self, Fault> {
        let value = match &self.value {
            Value::Text(text) => return self.fill_text(text, bindings),
            Value::Plain(text) => Value::Plain(text.clone()),
            Value::List(nodes) => Value::List(nodes.iter().map(|node| node.fill(bindings)).collect::<Result<_, _>>()?),
            Value::Table(entries) => {
                let filled = entries.iter().map(|(key, node)| Ok((key.clone(), node.fill(bindings)?)));
                Value::Table(filled.collect::<Result<_, Fault>>()?)
            }
        };
        Ok(Self { at: self.at, value })
    }

    fn fill_text(&self, text: &str, bindings: &Bindings) -> Result<Self, Fault> {
        let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(bound) = whole.filter(|name| !name.contains('{')).and_then(|name| bindings.get(name)) {
            return Ok(Self { at: self.at, value: bound.value.clone() });
        }
        let filled = fill(text, bindings).map_err(|problem| (self.at, problem))?;
        Ok(Self { at: self.at, value: Value::Text(filled) })
    }

    /// Adds the entries of `other`: lists grow, other values are replaced.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (Value::Table(entries), Value::Table(others)) = (&mut self.value, &other.value) else { return };
        for (key, node) in others {
            match (entries.get_mut(key).map(|held| &mut held.value), &node.value) {
                (Some(Value::List(held)), Value::List(more)) => held.extend(more.iter().cloned()),
                _ => {
                    entries.insert(key.clone(), node.clone());
                }
            }
        }
    }

    pub(crate) fn insert(&mut self, key: &str, node: Self) {
        if let Value::Table(entries) = &mut self.value {
            entries.insert(key.to_owned(), node);
        }
    }
}

/// Fills the placeholders in a text.
pub(crate) fn fill(text: &str, bindings: &Bindings) -> Result<String, Problem> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        let bound = bindings.get(name).ok_or_else(|| Problem::UnknownPlaceholder {
            name: name.chars().take(60).collect(),
            known: bindings.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })?;
        out.push_str(before);
        out.push_str(bound.as_label().ok_or_else(|| Problem::NotText(name.to_owned()))?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// A scenario as a file, and for each of its lines the place in the experiment file that it comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) text: String,
    places: Vec<usize>,
}

impl Written {
    /// Writes a table: one key a line, so that errors find their way back.
    pub(crate) fn new(table: &Node) -> Self {
        let mut out = Self::default();
        let Value::Table(entries) = &table.value else { return out };
        let (blocks, keys): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, node)| node.tables().is_some());
        for (key, node) in keys {
            out.line(node.at, &format!("{} = {}", quoted(key), inline(node)));
        }
        for (key, node) in blocks {
            for table in node.tables().unwrap_or_default() {
                out.line(table.at, "");
                out.line(table.at, &format!("[[{}]]", quoted(key)));
                let Value::Table(entries) = &table.value else { continue };
                for (key, node) in entries {
                    out.line(node.at, &format!("{} = {}", quoted(key), inline(node)));
                }
            }
        }
        out
    }

    fn line(&mut self, at: usize, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.places.push(at);
    }

    /// Where line `line`, from one, comes from.
    pub(crate) fn place(&self, line: usize) -> usize {
        self.places.get(line.saturating_sub(1)).copied().unwrap_or(0)
    }
}

impl Node {
    /// The elements of a list of tables.
    fn tables(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(nodes) if !nodes.is_empty() => {
                nodes.iter().all(|node| matches!(node.value, Value::Table(_))).then_some(nodes)
            }
            _ => None,
        }
    }
}

fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => quoted_text(text),
        Value::Plain(text) => text.clone(),
        Value::List(nodes) => format!("[{}]", nodes.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) => {
            let entry = |(key, node): (&String, &Node)| format!("{} = {}", quoted(key), inline(node));
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A key: bare where TOML allows it.
fn quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if bare { key.to_owned() } else { quoted_text(key) }
}

/// A basic string (TOML 1.0, "String").
fn quoted_text(text: &str) -> String {
    use core::fmt::Write as _;
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        Node::table(0, DeTable::parse(text).unwrap().get_ref())
    }

    fn bindings() -> Bindings {
        let mut bindings = Bindings::new();
        bindings.insert("buffer".to_owned(), Node::text(0, "9kB"));
        bindings.insert("n".to_owned(), Node { at: 0, value: Value::Plain("10".to_owned()) });
        bindings
    }

    #[test]
    fn placeholders_are_filled_and_keep_their_kind() {
        let filled = node("queue = \"{buffer}\"\ncount = \"{n}\"\nname = \"x-{n}\"").fill(&bindings()).unwrap();
        assert_eq!(Written::new(&filled).text, "count = 10\nname = \"x-10\"\nqueue = \"9kB\"\n");
        let (_, problem) = node("a = \"{other}\"").fill(&bindings()).unwrap_err();
        assert_eq!(problem.to_string(), "nothing binds '{other}'; the axes bind buffer, n");
    }

    #[test]
    fn lines_know_where_they_come_from() {
        let text = "a = 1\n[[link]]\nname = \"x\"\nrate = \"{buffer}\"\n";
        let written = Written::new(&node(text).fill(&bindings()).unwrap());
        assert_eq!(written.text, "a = 1\n\n[[link]]\nname = \"x\"\nrate = \"9kB\"\n");
        assert_eq!(&text[written.place(5)..][..10], "\"{buffer}\"");
        assert_eq!(written.place(99), 0);
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let text = "a = [1, 2.5, true]\nb = { c = \"q\\\"\\\\\\n\", \"odd key\" = [{ d = \"e\" }] }\n[[t]]\nx = 'y'\n";
        let first = node(text);
        let written = Written::new(&first).text;
        assert_eq!(Written::new(&node(&written)).text, written);
    }

    #[test]
    fn merging_lengthens_lists() {
        let mut base = node("topology = \"a\"\n[[link]]\nname = \"x\"\n");
        base.merge(&node("topology = \"b\"\n[[link]]\nname = \"y\"\n"));
        let text = Written::new(&base).text;
        assert!(text.contains("topology = \"b\"") && text.contains("\"x\"") && text.contains("\"y\""));
    }
}
