//! The control laws: Table II of TCCC with the corrections of its own equations, and the laws it does not list.

use core::cmp::Ordering;

use manypath_core::{Bytes, Duration, Rate};

use super::system::FluidError;
use crate::num::{MAX_WEIGHT, MIN_WEIGHT};

/// A control law in congestion avoidance. Windows are in packets, `w_r = x_r rtt_r`; sums are over the connection's subflows.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// TCP NewReno on each subflow: `I = 1/w_r`, `D = w_r/2` (eq. 14).
    Reno,
    /// EWTCP: `I = a/w_r`, `D = w_r/2`. Table II and Wischik et al. have `a = 1/sqrt(n)`; `a = 1/n^2` gives one TCP's
    /// share at equal loss.
    Ewtcp {
        /// Weight of the increase.
        a: f64,
    },
    /// Coupled, as Peng et al. and Table II have it: `I = w_r/rtt_r^2 / (sum x)^2`, `D = w_r/2`.
    Coupled,
    /// Semicoupled (Wischik et al., NSDI 2011): `I = a/sum w`, `D = w_r/2`.
    Semicoupled {
        /// Aggressiveness.
        a: f64,
    },
    /// LIA (RFC 6356 s3): `I = min(max(w/rtt^2)/(sum x)^2, 1/w_r)`, `D = w_r/2`.
    Lia,
    /// OLIA (draft-khalili-mptcp-congestion-control-05) without the term that moves windows between paths. That term has
    /// no effect where all paths in use are equally good, which is where OLIA rests (Khalili et al., ToN 2013, theorem 1):
    /// the equilibrium is Coupled's, the way there is not modelled.
    Olia,
    /// BALIA (draft-walid-mptcp-congestion-control-04), `a_r = max x/x_r`:
    /// `I = x_r/(rtt_r (sum x)^2) (1 + a_r)/2 (4 + a_r)/5`, `D = w_r/2 min(a_r, 1.5)`. Table II prints `k` and `phi` for
    /// `a_r <= 1.5` only.
    Balia,
    /// NMCC (Thomas et al., ToN 2020): `I = 1/(m w_r)` with `m = sum(1/rtt^2)/max(1/rtt^2)`, `D = w_r/2`.
    Nmcc,
    /// e-NMCC, Table II: NMCC's increase and `D = w_r/2 (sum x)^2/sum x^2`. The table prints the last factor of `phi` as
    /// `(sum x^2)^2`; with its own `k` it must be `(sum x)^2`.
    ENmcc,
    /// TCCC where subflows see the same loss rate, equations 15 and 16: `I = 1/(rtt_r min_rtt S)` with
    /// `S = sum x/rtt`, `D = min_rtt (sum x)^2/(2 rtt_r S)`.
    Tccc,
    /// TCCC where loss rates differ (Algorithm 2, other branch): the same increase, `D = w_r/2`.
    TcccHalving,
    /// Uni-MPTCP (eq. 20 with the decrease its Table I needs): `I = omega_r/(rtt_r sum omega x)`, `D = w_r/2`.
    UniMptcp {
        /// The weight of each subflow, positive (spec: omega).
        weights: Vec<f64>,
    },
    /// Uni-MPTCP as equations 17 and 20 print it: the same increase, `D = omega_r w_r/2`.
    UniMptcpPrinted {
        /// The weight of each subflow, positive (spec: omega).
        weights: Vec<f64>,
    },
}

/// The rates and round-trip times of a connection's subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Rates in packets per second (spec: x).
    pub(super) rates: Vec<f64>,
    /// Round-trip times in seconds (spec: rtt).
    pub(super) rtts: Vec<f64>,
}

impl State {
    /// Subflows that send packets of `packet` bytes at these rates with these round-trip times.
    ///
    /// # Errors
    /// If there are no subflows, or a rate, a time or the packet size is zero.
    pub fn new(subflows: &[(Rate, Duration)], packet: Bytes) -> Result<Self, FluidError> {
        if packet.is_zero() {
            return Err(FluidError::PacketSize);
        }
        if subflows.is_empty() {
            return Err(FluidError::Empty);
        }
        if let Some(subflow) = subflows.iter().position(|(rate, rtt)| rate.is_zero() || rtt.is_zero()) {
            return Err(FluidError::Standstill { connection: 0, subflow });
        }
        let rates = subflows.iter().map(|(rate, _)| rate.as_bytes_per_sec() / packet.as_f64()).collect();
        Ok(Self { rates, rtts: subflows.iter().map(|(_, rtt)| rtt.as_secs_f64()).collect() })
    }

    fn window(&self, subflow: usize) -> f64 {
        self.rates[subflow] * self.rtts[subflow]
    }

    /// A sum over subflows of a function of rate and round-trip time.
    fn sum(&self, part: impl Fn(f64, f64) -> f64) -> f64 {
        self.rates.iter().zip(&self.rtts).map(|(&rate, &rtt)| part(rate, rtt)).sum()
    }

    /// The largest value of a function of rate and round-trip time.
    fn max(&self, part: impl Fn(f64, f64) -> f64) -> f64 {
        self.rates.iter().zip(&self.rtts).map(|(&rate, &rtt)| part(rate, rtt)).fold(0.0, f64::max)
    }

    fn total(&self) -> f64 {
        self.sum(|x, _| x)
    }

    fn min_rtt(&self) -> f64 {
        self.rtts.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// What a law does with each subflow of a state.
struct Steps {
    /// Window gained per ACK in packets (spec: I_r).
    increase: Vec<f64>,
    /// Window lost per loss in packets (spec: D_r).
    decrease: Vec<f64>,
}

impl Algorithm {
    /// The law with its usual parameters by the name it has as a controller, for a connection of so many subflows;
    /// `None` if there is no model of it.
    pub fn named(name: &str, subflows: usize) -> Option<Self> {
        Some(match name {
            "reno" => Self::Reno,
            "ewtcp" => Self::Ewtcp { a: (subflows.max(1) as f64).powi(-2) },
            "coupled" => Self::Coupled,
            "semicoupled" => Self::Semicoupled { a: 1.0 },
            "lia" => Self::Lia,
            "olia" => Self::Olia,
            "balia" => Self::Balia,
            "nmcc" => Self::Nmcc,
            "e-nmcc" => Self::ENmcc,
            "tccc" => Self::Tccc,
            "uni-mptcp" => Self::UniMptcp { weights: vec![1.0; subflows] },
            _ => return None,
        })
    }

    /// Checks parameters against the number of subflows.
    pub(super) fn check(&self, connection: usize, subflows: usize) -> Result<(), FluidError> {
        let positive = |value: &f64| (MIN_WEIGHT..=MAX_WEIGHT).contains(value);
        let fits = match self {
            Self::Ewtcp { a } | Self::Semicoupled { a } => positive(a),
            Self::UniMptcp { weights } | Self::UniMptcpPrinted { weights } => {
                weights.len() == subflows && weights.iter().all(positive)
            }
            _ => true,
        };
        if fits { Ok(()) } else { Err(FluidError::Parameter { connection }) }
    }

    /// The window increment per ACK in packets, by subflow (spec: I_r).
    ///
    /// # Errors
    /// If parameters are out of range or do not fit the number of subflows.
    pub fn increase(&self, state: &State) -> Result<Vec<f64>, FluidError> {
        self.check(0, state.rates.len())?;
        Ok(self.steps(state).increase)
    }

    /// The window decrement per loss in packets, by subflow, without any floor (spec: D_r).
    ///
    /// # Errors
    /// If parameters are out of range or do not fit the number of subflows.
    pub fn decrease(&self, state: &State) -> Result<Vec<f64>, FluidError> {
        self.check(0, state.rates.len())?;
        Ok(self.steps(state).decrease)
    }

    /// The gain `k_r = x_r/rtt_r D_r` of equation 12, in packets^2/s^2, by subflow.
    ///
    /// # Errors
    /// If parameters are out of range or do not fit the number of subflows.
    pub fn k(&self, state: &State) -> Result<Vec<f64>, FluidError> {
        self.check(0, state.rates.len())?;
        Ok(self.gains(state))
    }

    /// The loss probability `phi_r = I_r/D_r` of equation 12 at which the law would rest in this state, by subflow.
    ///
    /// # Errors
    /// If parameters are out of range or do not fit the number of subflows.
    pub fn phi(&self, state: &State) -> Result<Vec<f64>, FluidError> {
        self.check(0, state.rates.len())?;
        Ok(self.prices(state))
    }

    /// The friendliness index by subflow: `phi_r` divided by what a TCP (NewReno) with the same rate on the same path has.
    ///
    /// Below one the law takes less than such a TCP at the same loss, above one more (Theorem 1).
    ///
    /// # Errors
    /// If parameters are out of range or do not fit the number of subflows.
    pub fn friendliness(&self, state: &State) -> Result<Vec<f64>, FluidError> {
        Ok(self.phi(state)?.into_iter().zip(Self::Reno.prices(state)).map(|(phi, reno)| phi / reno).collect())
    }

    /// Theorem 1 in one state: `Less` if this law's `phi` is nowhere larger than the other's, `Greater` if it is nowhere
    /// smaller, `Equal` within 1e-12, `None` if neither. A law is friendlier than another if it is never `Greater` or
    /// `None`, whatever the state.
    ///
    /// # Errors
    /// If parameters are out of range or do not fit the number of subflows.
    pub fn compare(&self, other: &Self, state: &State) -> Result<Option<Ordering>, FluidError> {
        let ratios: Vec<f64> =
            self.phi(state)?.into_iter().zip(other.phi(state)?).map(|(own, other)| own / other).collect();
        let (least, most) =
            (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max));
        let (below, above) = (least < 1.0 - EQUAL, most > 1.0 + EQUAL);
        Ok(match (below, above) {
            (false, false) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Less),
            (false, true) => Some(Ordering::Greater),
            (true, true) => None,
        })
    }

    /// `k` for parameters that were checked.
    pub(super) fn gains(&self, state: &State) -> Vec<f64> {
        let decrease = self.steps(state).decrease;
        decrease.iter().enumerate().map(|(r, decrease)| state.rates[r] / state.rtts[r] * decrease).collect()
    }

    /// `phi` for parameters that were checked.
    pub(super) fn prices(&self, state: &State) -> Vec<f64> {
        let steps = self.steps(state);
        steps.increase.iter().zip(&steps.decrease).map(|(increase, decrease)| increase / decrease).collect()
    }

    /// `I` and `D`, for parameters that were checked.
    fn steps(&self, state: &State) -> Steps {
        let each = |step: &dyn Fn(usize) -> f64| (0..state.rates.len()).map(step).collect::<Vec<f64>>();
        let total = state.total();
        let halving = || each(&|r| state.window(r) / 2.0);
        let increase = match self {
            Self::Reno => each(&|r| 1.0 / state.window(r)),
            Self::Ewtcp { a } => each(&|r| a / state.window(r)),
            Self::Coupled | Self::Olia => each(&|r| state.rates[r] / (state.rtts[r] * total * total)),
            Self::Semicoupled { a } => {
                let windows = state.sum(|x, rtt| x * rtt);
                each(&|_| a / windows)
            }
            Self::Lia => {
                // RFC 6356 s3, in packets: w/rtt^2 = x/rtt.
                let linked = state.max(|x, rtt| x / rtt) / (total * total);
                each(&|r| linked.min(1.0 / state.window(r)))
            }
            Self::Balia => {
                let most = state.max(|x, _| x);
                each(&|r| {
                    let alpha = most / state.rates[r];
                    state.rates[r] / (state.rtts[r] * total * total) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
                })
            }
            Self::Nmcc | Self::ENmcc => {
                let m = state.sum(|_, rtt| rtt.powi(-2)) * state.min_rtt().powi(2);
                each(&|r| 1.0 / (m * state.window(r)))
            }
            Self::Tccc | Self::TcccHalving => {
                // Equation 15; Algorithm 2 line 6.
                let divisor = state.min_rtt() * state.sum(|x, rtt| x / rtt);
                each(&|r| 1.0 / (state.rtts[r] * divisor))
            }
            Self::UniMptcp { weights } | Self::UniMptcpPrinted { weights } => {
                let weighted: f64 = weights.iter().zip(&state.rates).map(|(omega, x)| omega * x).sum();
                each(&|r| weights[r] / (state.rtts[r] * weighted))
            }
        };
        let decrease = match self {
            Self::Balia => {
                let most = state.max(|x, _| x);
                each(&|r| state.window(r) / 2.0 * (most / state.rates[r]).min(1.5))
            }
            Self::ENmcc => {
                let factor = total * total / state.sum(|x, _| x * x);
                each(&|r| state.window(r) / 2.0 * factor)
            }
            Self::Tccc => {
                // Equation 15; Algorithm 2 line 10.
                let common = state.min_rtt() * total * total / (2.0 * state.sum(|x, rtt| x / rtt));
                each(&|r| common / state.rtts[r])
            }
            Self::UniMptcpPrinted { weights } => each(&|r| weights[r] * state.window(r) / 2.0),
            _ => halving(),
        };
        Steps { increase, decrease }
    }
}

/// Two values of `phi` this near to each other, relatively, are equal.
const EQUAL: f64 = 1e-12;
