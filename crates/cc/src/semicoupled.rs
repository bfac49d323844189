//! Semicoupled (Wischik et al., NSDI 2011 s2.4): windows grow by a common amount and shrink on their own, so that some
//! traffic stays on every path.

use manypath_core::SubflowId;

use crate::aimd::{Law, Window, Windows};

/// Semicoupled's increase rule.
#[derive(Clone, Copy, Debug)]
pub struct Semicoupled {
    /// Aggressiveness (spec: a).
    a: f64,
}

impl Semicoupled {
    /// The rule with its aggressiveness.
    pub const fn new(a: f64) -> Self {
        Self { a }
    }
}

impl Law for Semicoupled {
    fn increase(&mut self, _id: SubflowId, _own: &Window, windows: &Windows) -> f64 {
        // Wischik et al. s2.4: a/w_total.
        self.a / windows.total_window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, increases, windows};

    #[test]
    fn growth_is_common() {
        close(increases(&mut Semicoupled::new(1.0), &windows(&[(10.0, 0.1)]))[0], 0.1);
        // 0.5/40 on both.
        let found = increases(&mut Semicoupled::new(0.5), &windows(&[(10.0, 0.1), (30.0, 0.2)]));
        close(found[0], 0.0125);
        close(found[1], 0.0125);
    }
}
