//! Columns made from rows.

use crate::table::{Table, Values};

/// A table under construction, all of whose columns come from the same rows.
pub(crate) struct Rows<'a, R> {
    rows: &'a [R],
    table: Table,
}

impl<'a, R> Rows<'a, R> {
    pub(crate) fn new(name: &str, about: &str, rows: &'a [R]) -> Self {
        Self { rows, table: Table::new(name, about) }
    }

    pub(crate) fn text(mut self, name: &str, about: &str, value: impl Fn(&R) -> &str) -> Self {
        let values = self.rows.iter().map(|row| value(row).to_owned()).collect();
        self.table = self.table.with(name, about, Values::Text(values));
        self
    }

    pub(crate) fn whole(mut self, name: &str, about: &str, value: impl Fn(&R) -> u64) -> Self {
        let values = self.rows.iter().map(value).collect();
        self.table = self.table.with(name, about, Values::Whole(values));
        self
    }

    pub(crate) fn real(mut self, name: &str, about: &str, value: impl Fn(&R) -> f64) -> Self {
        let values = self.rows.iter().map(value).collect();
        self.table = self.table.with(name, about, Values::Real(values));
        self
    }

    /// A real column of values that need not be there.
    pub(crate) fn maybe(self, name: &str, about: &str, value: impl Fn(&R) -> Option<f64>) -> Self {
        self.real(name, about, |row| value(row).unwrap_or(f64::NAN))
    }

    pub(crate) fn table(self) -> Table {
        self.table
    }
}
