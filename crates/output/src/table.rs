//! Tables: named columns of equal length.

/// A table. Rows are by position: every column has one value for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name; that of its file, without the ending.
    pub name: String,
    /// What a row is.
    pub about: String,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, which ends with the unit where there is one: `srtt_s`, `goodput_bps`.
    pub name: String,
    /// What it means.
    pub about: String,
    /// Its values.
    pub values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Text(Vec<String>),
    /// Whole numbers that count something, below 2^63.
    Whole(Vec<u64>),
    /// Real numbers; NaN is a value that is not there.
    Real(Vec<f64>),
    /// Yes or no.
    Flag(Vec<bool>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// A table without columns.
    pub fn new(name: &str, about: &str) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), columns: Vec::new() }
    }

    /// With one more column.
    #[must_use]
    pub fn with(mut self, name: &str, about: &str, values: Values) -> Self {
        self.columns.push(Column { name: name.to_owned(), about: about.to_owned(), values });
        self
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}
