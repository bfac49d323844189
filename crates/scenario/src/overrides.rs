//! Values given beside the file, as on a command line: `duration=5s`, `connection.phone.cc=lia`, `link.wifi.loss=1%`.
//!
//! They are applied to the file's tables before anything is checked, so that all rules hold for them too.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;
use crate::resolve::Fault;

/// Tables that have names.
const NAMED: [&str; 3] = ["link", "connection", "source"];

/// A value that takes the place of one in the file.
///
/// Written `KEY=VALUE`. A key is that of the file, with dots: `duration`; within a table with a name, `link.NAME.KEY`,
/// `connection.NAME.KEY`, `source.NAME.KEY`; or, without the name, in all of these tables: `connection.cc=lia`. A value is
/// as in the file; quotes may be left out. A link that the file does not mention, but its topology has, is changed too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// As it was given.
    given: String,
    /// The same as TOML.
    toml: String,
}

impl Override {
    pub(crate) fn text(&self) -> &str {
        &self.toml
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given)
    }
}

impl FromStr for Override {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let (key, value) = given
            .split_once('=')
            .filter(|(key, _)| !key.contains('#') && !given.contains('\n'))
            .ok_or_else(|| format!("'{given}' replaces nothing: write KEY=VALUE, like connection.phone.cc=lia"))?;
        // Without quotes it is a text, unless it is TOML as it stands: a number, say. A text may have quotes of its own.
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        let mut spellings =
            [format!("{key}={value}"), format!("{key}='{value}'"), format!("{key}=\"{escaped}\"")].into_iter();
        let toml = spellings.find(|text| DeTable::parse(text).is_ok_and(|table| table.get_ref().len() == 1));
        let toml = toml.ok_or_else(|| format!("'{key}' is no key: write KEY=VALUE, like connection.phone.cc=lia"))?;
        Ok(Self { given: given.to_owned(), toml })
    }
}

/// Puts the values of an override into the file's tables. `base` is where the override's text is taken to begin.
pub(crate) fn apply<'i>(document: &mut DeTable<'i>, changes: DeTable<'i>, base: usize) -> Result<(), Fault> {
    for (key, mut value) in changes {
        shift(&mut value, base);
        let key = Spanned::new(moved(key.span(), base), key.into_inner());
        if NAMED.contains(&key.get_ref().as_ref()) && value.get_ref().is_table() {
            apply_named(document, key, value)?;
        } else {
            merge_entry(document, key, value);
        }
    }
    Ok(())
}

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

/// Changes one of the tables `kind`, or all.
fn apply_named<'i>(document: &mut DeTable<'i>, kind: Key<'i>, value: Spanned<DeValue<'i>>) -> Result<(), Fault> {
    let span = value.span();
    let DeValue::Table(changes) = value.into_inner() else { return Ok(()) };
    let what = kind.get_ref().to_string();
    if !document.contains_key(kind.get_ref().as_ref()) {
        document.insert(kind, Spanned::new(span.clone(), DeValue::Array(toml::de::DeArray::new())));
    }
    let Some(DeValue::Array(tables)) = document.get_mut(what.as_str()).map(Spanned::get_mut) else { return Ok(()) };
    for (key, value) in changes {
        if !value.get_ref().is_table() {
            if tables.is_empty() {
                return Err((key.span(), Problem::NoTables(what)));
            }
            for table in tables.iter_mut() {
                if let DeValue::Table(table) = table.get_mut() {
                    merge_entry(table, key.clone(), value.clone());
                }
            }
            continue;
        }
        let named = |table: &Spanned<DeValue<'i>>| {
            table.get_ref().as_table().and_then(|table| table.get("name")?.get_ref().as_str().map(str::to_owned))
        };
        let name = key.get_ref().to_string();
        match tables.iter_mut().find(|table| named(table).as_deref() == Some(name.as_str())) {
            Some(table) => merge(table, value),
            None if what == "link" => {
                let mut table = DeTable::new();
                let label = Spanned::new(key.span(), DeValue::String(key.get_ref().clone()));
                table.insert(Spanned::new(key.span(), "name".into()), label);
                let mut link = Spanned::new(key.span(), DeValue::Table(table));
                merge(&mut link, value);
                tables.push(link);
            }
            None => {
                let known: Vec<_> = tables.iter().filter_map(named).take(20).collect();
                return Err((key.span(), Problem::UnknownTable { kind: what, name, known: known.join(", ") }));
            }
        }
    }
    Ok(())
}

/// Tables become one, other values replace what is there.
fn merge<'i>(held: &mut Spanned<DeValue<'i>>, value: Spanned<DeValue<'i>>) {
    match (held.get_mut(), value.get_ref()) {
        (DeValue::Table(held), DeValue::Table(_)) => {
            let DeValue::Table(changes) = value.into_inner() else { return };
            for (key, value) in changes {
                merge_entry(held, key, value);
            }
        }
        _ => *held = value,
    }
}

fn merge_entry<'i>(table: &mut DeTable<'i>, key: Key<'i>, value: Spanned<DeValue<'i>>) {
    match table.get_mut(key.get_ref().as_ref()) {
        Some(held) => merge(held, value),
        None => {
            table.insert(key, value);
        }
    }
}

fn moved(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

/// Moves the places of a value and of all in it.
fn shift(value: &mut Spanned<DeValue<'_>>, by: usize) {
    let span = moved(value.span(), by);
    let mut held = core::mem::replace(value.get_mut(), DeValue::Boolean(false));
    match &mut held {
        DeValue::Array(items) => items.iter_mut().for_each(|item| shift(item, by)),
        DeValue::Table(table) => {
            let entries = core::mem::take(table);
            for (key, mut value) in entries {
                shift(&mut value, by);
                table.insert(Spanned::new(moved(key.span(), by), key.into_inner()), value);
            }
        }
        _ => {}
    }
    *value = Spanned::new(span, held);
}
