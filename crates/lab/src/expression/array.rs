//! Arrays with named dimensions.

/// A dimension: an axis of the sweep with the labels that were selected, or the items of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dim {
    pub(crate) name: String,
    pub(crate) len: usize,
    /// Labels of an axis; none for the items of a list.
    pub(crate) labels: Vec<String>,
    /// Labels as numbers, where they are; else their places. None for a time series, of which some may not be there.
    pub(crate) numbers: Vec<f64>,
}

impl Dim {
    /// The items of a list.
    pub(crate) fn items(len: usize) -> Self {
        Self { name: "item".to_owned(), len, labels: Vec::new(), numbers: Vec::new() }
    }

    /// Whether it is of a list, not of the cases of a sweep.
    pub(crate) fn is_list(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether it is of a list of which some may not be there.
    pub(crate) fn has_gaps(&self) -> bool {
        self.is_list() && self.numbers.is_empty()
    }
}

/// Numbers in row-major order; the last dimension varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) dims: Vec<Dim>,
    pub(crate) data: Vec<f64>,
}

impl Array {
    pub(crate) fn scalar(value: f64) -> Self {
        Self { dims: Vec::new(), data: vec![value] }
    }

    /// A list; a single value is a scalar.
    pub(crate) fn list(data: Vec<f64>) -> Self {
        if let [value] = data[..] {
            return Self::scalar(value);
        }
        Self { dims: vec![Dim::items(data.len())], data }
    }

    /// All that a pattern fits: a list however many these are, and as of cases nothing is left out.
    pub(crate) fn matches(data: Vec<f64>) -> Self {
        let places = (0..data.len()).map(|place| place as f64).collect();
        Self { dims: vec![Dim { numbers: places, ..Dim::items(data.len()) }], data }
    }

    /// The numbers, without those that are not there where all dimensions may lack some: a time series has none before its
    /// subflow joins.
    pub(crate) fn there(&self, may_lack: impl FnMut(&Dim) -> bool) -> Vec<f64> {
        let lacks = self.dims.iter().all(may_lack);
        self.data.iter().copied().filter(|value| !lacks || !value.is_nan()).collect()
    }

    /// The value, if there is exactly one.
    pub(crate) fn single(&self) -> Option<f64> {
        match self.data[..] {
            [value] => Some(value),
            _ => None,
        }
    }

    pub(crate) fn map(mut self, f: impl Fn(f64) -> f64) -> Self {
        self.data.iter_mut().for_each(|value| *value = f(*value));
        self
    }

    /// Applies `f` to pairs; dimensions that one side lacks are repeated.
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Result<Self, String> {
        let mut dims = self.dims.clone();
        for dim in &other.dims {
            match dims.iter().find(|held| held.name == dim.name) {
                Some(held) if held == dim || (held.is_list() && dim.is_list() && held.len == dim.len) => {}
                Some(held) if dim.is_list() => {
                    return Err(format!("lists of {} and {} items do not match", held.len, dim.len));
                }
                Some(held) => {
                    let (left, right) = (held.labels.join("|"), dim.labels.join("|"));
                    return Err(format!("the two sides select different values of {}: {left} and {right}", dim.name));
                }
                None => dims.push(dim.clone()),
            }
        }
        let total: usize = dims.iter().map(|dim| dim.len).product();
        let (left, right) = (self.strides(&dims), other.strides(&dims));
        let mut data = Vec::with_capacity(total);
        for index in 0..total {
            data.push(f(self.data[offset(index, &dims, &left)], other.data[offset(index, &dims, &right)]));
        }
        Ok(Self { dims, data })
    }

    /// How far apart in this array neighbours along each of `dims` are; zero for a dimension it lacks.
    fn strides(&self, dims: &[Dim]) -> Vec<usize> {
        let stride = |dim: &Dim| {
            let at = self.dims.iter().position(|held| held.name == dim.name)?;
            Some(self.dims[at + 1..].iter().map(|held| held.len).product())
        };
        dims.iter().map(|dim| stride(dim).unwrap_or(0)).collect()
    }

    /// The part at those labels of a dimension that `wanted` accepts; everything if there is no such dimension.
    pub(crate) fn at(&self, name: &str, wanted: impl Fn(&str) -> bool) -> Self {
        let Some(at) = self.dims.iter().position(|dim| dim.name == name) else { return self.clone() };
        let dim = &self.dims[at];
        let kept: Vec<usize> =
            (0..dim.len).filter(|index| dim.labels.get(*index).is_some_and(|label| wanted(label))).collect();
        let inner: usize = self.dims[at + 1..].iter().map(|held| held.len).product();
        let outer: usize = self.dims[..at].iter().map(|held| held.len).product();
        let mut data = Vec::with_capacity(outer * kept.len() * inner);
        for first in 0..outer {
            for index in &kept {
                let from = (first * dim.len + index) * inner;
                data.extend_from_slice(&self.data[from..from + inner]);
            }
        }
        let mut dims = self.dims.clone();
        dims[at] = Dim {
            name: dim.name.clone(),
            len: kept.len(),
            labels: kept.iter().map(|index| dim.labels[*index].clone()).collect(),
            numbers: kept.iter().map(|index| dim.numbers[*index]).collect(),
        };
        Self { dims, data }
    }

    /// Replaces every line along the dimension `name` by one value.
    pub(crate) fn reduce(&self, name: &str, f: impl Fn(&Dim, &[f64]) -> f64) -> Result<Self, String> {
        let Some(at) = self.dims.iter().position(|dim| dim.name == name) else {
            let known = self.dims.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(format!("there is no axis '{name}' here; there are: {known}"));
        };
        let dim = &self.dims[at];
        let inner: usize = self.dims[at + 1..].iter().map(|held| held.len).product();
        let outer: usize = self.dims[..at].iter().map(|held| held.len).product();
        let mut data = Vec::with_capacity(outer * inner);
        for first in 0..outer {
            for last in 0..inner {
                let line: Vec<f64> = (0..dim.len).map(|k| self.data[(first * dim.len + k) * inner + last]).collect();
                data.push(f(dim, &line));
            }
        }
        let mut dims = self.dims.clone();
        dims.remove(at);
        Ok(Self { dims, data })
    }
}

/// Where element `index` of an array with `dims` is in one with these strides.
fn offset(index: usize, dims: &[Dim], strides: &[usize]) -> usize {
    let (mut rest, mut at) = (index, 0);
    for (dim, stride) in dims.iter().zip(strides).rev() {
        at += rest % dim.len * stride;
        rest /= dim.len;
    }
    at
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the numbers are exact
mod tests {
    use super::*;

    fn dim(name: &str, labels: &[&str]) -> Dim {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let numbers = labels.iter().zip(0_u32..).map(|(label, at)| label.parse().unwrap_or(f64::from(at))).collect();
        Dim { name: name.to_owned(), len: labels.len(), labels, numbers }
    }

    #[test]
    fn missing_dimensions_are_repeated() {
        let table = Array {
            dims: vec![dim("cc", &["a", "b"]), dim("n", &["1", "2", "3"])],
            data: (0..6).map(f64::from).collect(),
        };
        let row = Array { dims: vec![dim("n", &["1", "2", "3"])], data: vec![10.0, 20.0, 30.0] };
        let sum = table.zip(&row, |a, b| a + b).unwrap();
        assert_eq!(sum.data, [10.0, 21.0, 32.0, 13.0, 24.0, 35.0]);
        // The other way round the dimensions come in the other order.
        let sum = row.zip(&table, |a, b| a + b).unwrap();
        assert_eq!(sum.dims[0].name, "n");
        assert_eq!(sum.data, [10.0, 13.0, 21.0, 24.0, 32.0, 35.0]);
        assert_eq!(table.zip(&Array::scalar(1.0), |a, b| a - b).unwrap().data[5], 4.0);
    }

    #[test]
    fn different_selections_do_not_meet() {
        let (one, other) = (dim("n", &["1", "2"]), dim("n", &["1", "3"]));
        let (one, other) =
            (Array { dims: vec![one], data: vec![1.0; 2] }, Array { dims: vec![other], data: vec![1.0; 2] });
        assert!(one.zip(&other, |a, _| a).unwrap_err().contains("different values of n: 1|2 and 1|3"));
        assert!(
            Array::list(vec![1.0; 3]).zip(&Array::list(vec![1.0; 2]), |a, _| a).unwrap_err().contains("3 and 2 items")
        );
    }

    #[test]
    fn lines_are_reduced_along_their_axis() {
        let table = Array {
            dims: vec![dim("cc", &["a", "b"]), dim("n", &["1", "2", "3"])],
            data: (0..6).map(f64::from).collect(),
        };
        let total = |_: &Dim, line: &[f64]| line.iter().sum();
        assert_eq!(table.reduce("cc", total).unwrap().data, [3.0, 5.0, 7.0]);
        assert_eq!(table.reduce("n", total).unwrap().data, [3.0, 12.0]);
        assert!(table.reduce("m", total).unwrap_err().contains("cc, n"));
    }

    #[test]
    fn parts_are_taken_by_label() {
        let table = Array {
            dims: vec![dim("cc", &["a", "b"]), dim("n", &["1", "2", "3"])],
            data: (0..6).map(f64::from).collect(),
        };
        let part = table.at("n", |label| label != "2");
        assert_eq!(
            (part.data.as_slice(), part.dims[1].numbers.as_slice()),
            ([0.0, 2.0, 3.0, 5.0].as_slice(), [1.0, 3.0].as_slice())
        );
        assert_eq!(table.at("cc", |label| label == "b").data, [3.0, 4.0, 5.0]);
        assert_eq!(table.at("m", |_| false), table);
    }
}
