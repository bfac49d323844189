//! EWTCP, equally weighted TCP (Honda et al., PFLDNeT 2009): each subflow is a TCP of fixed weight.

use manypath_core::{Params, SpecError, SubflowId};

use crate::aimd::{Law, Window, Windows};

/// The weight of each of `n` subflows' increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// `a = 1/n^2`: since windows are proportional to the root of `a`, all together take one TCP's share.
    #[default]
    Square,
    /// `a = 1/sqrt(n)`, as Wischik et al. (NSDI 2011) and TCCC's Table II print it.
    Root,
}

impl Weight {
    /// Reads the parameter of the registry row.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        params.choice("weight", &[("square", Self::Square), ("root", Self::Root)])
    }
}

/// EWTCP's increase rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ewtcp {
    weight: Weight,
}

impl Ewtcp {
    /// The rule with one weight.
    pub const fn new(weight: Weight) -> Self {
        Self { weight }
    }
}

impl Law for Ewtcp {
    fn increase(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        // Honda et al. s3: a/w_r.
        let n = windows.count() as f64;
        let a = match self.weight {
            Weight::Square => 1.0 / (n * n),
            Weight::Root => 1.0 / libm::sqrt(n),
        };
        a / own.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, increases, windows};

    #[test]
    fn weights() {
        let one = windows(&[(10.0, 0.1)]);
        let four = windows(&[(10.0, 0.1), (20.0, 0.2), (10.0, 0.1), (10.0, 0.1)]);
        close(increases(&mut Ewtcp::default(), &one)[0], 0.1);
        // 1/16/20; 1/2/20.
        close(increases(&mut Ewtcp::default(), &four)[1], 1.0 / 320.0);
        close(increases(&mut Ewtcp::new(Weight::Root), &four)[1], 1.0 / 40.0);
    }
}
