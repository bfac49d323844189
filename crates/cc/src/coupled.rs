//! Coupled, the fully coupled controller (Kelly and Voice 2005; Han et al. 2006; Wischik et al., NSDI 2011).
//!
//! In theory it uses only the least congested paths; in practice it flaps between equal ones.

use manypath_core::{Params, SpecError, SubflowId};

use crate::aimd::{Law, Window, Windows};

/// Which of the two forms in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// `1/w_total` per packet, `w_total/2` per loss (Wischik et al. 2011 s2).
    #[default]
    Windows,
    /// `w_r/rtt_r^2/(sum x)^2` per packet, `w_r/2` per loss: the form of fluid analyses (Peng et al. 2016; TCCC Table II).
    Rates,
}

impl Form {
    /// Reads the parameter of the registry row.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        params.choice("form", &[("windows", Self::Windows), ("rates", Self::Rates)])
    }
}

/// Coupled's rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coupled {
    form: Form,
}

impl Coupled {
    /// The rules in one form.
    pub const fn new(form: Form) -> Self {
        Self { form }
    }
}

impl Law for Coupled {
    fn increase(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        match self.form {
            Form::Windows => 1.0 / windows.total_window(),
            Form::Rates => {
                let sum = windows.total_rate();
                own.rate() / own.rtt / (sum * sum)
            }
        }
    }

    fn decrease(&mut self, _id: SubflowId, own: &Window, windows: &Windows) -> f64 {
        match self.form {
            Form::Windows => windows.total_window() / 2.0,
            Form::Rates => own.cwnd / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::{close, decreases, increases, windows};

    #[test]
    fn one_subflow_is_reno() {
        for form in [Form::Windows, Form::Rates] {
            close(increases(&mut Coupled::new(form), &windows(&[(10.0, 0.1)]))[0], 0.1);
            close(decreases(&mut Coupled::new(form), &windows(&[(10.0, 0.1)]))[0], 5.0);
        }
    }

    #[test]
    fn two_forms() {
        let windows = windows(&[(10.0, 0.1), (30.0, 0.2)]);
        // 1/40; 40/2.
        close(increases(&mut Coupled::default(), &windows)[1], 0.025);
        close(decreases(&mut Coupled::default(), &windows)[1], 20.0);
        // x = (100, 150): 30/0.04/250^2 = 0.012; 30/2.
        close(increases(&mut Coupled::new(Form::Rates), &windows)[1], 0.012);
        close(decreases(&mut Coupled::new(Form::Rates), &windows)[1], 15.0);
    }
}
