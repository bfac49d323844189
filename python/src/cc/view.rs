//! What controllers see of subflows, and what they answer.

use manypath_core::{Bytes, Duration, Priority, Rate, SubflowId, SubflowState, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::quantity;

/// How fast a subflow may send.
#[pyclass(frozen, get_all, module = "manypath.cc", from_py_object)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// At most so many bytes are in flight.
    pub(crate) cwnd_bytes: u64,
    /// Pacing rate, bit/s; `None`: packets leave when the window lets them.
    pub(crate) pacing_bps: Option<f64>,
    /// Slow-start threshold, for schedulers and traces; `None`: there is none.
    pub(crate) ssthresh_bytes: Option<u64>,
}

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (cwnd_bytes, pacing_bps=None, ssthresh_bytes=None))]
    fn new(cwnd_bytes: f64, pacing_bps: Option<f64>, ssthresh_bytes: Option<f64>) -> PyResult<Self> {
        if pacing_bps.is_some_and(|rate| rate.is_nan() || rate < 0.0) {
            return Err(PyValueError::new_err("a rate is a number of bits per second, not below zero"));
        }
        Ok(Self { cwnd_bytes: bytes(cwnd_bytes)?, pacing_bps, ssthresh_bytes: ssthresh_bytes.map(bytes).transpose()? })
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __repr__(&self) -> String {
        let word = |value: Option<String>| value.unwrap_or_else(|| "None".to_owned());
        format!(
            "Limits(cwnd_bytes={}, pacing_bps={}, ssthresh_bytes={})",
            self.cwnd_bytes,
            word(self.pacing_bps.map(|value| value.to_string())),
            word(self.ssthresh_bytes.map(|value| value.to_string()))
        )
    }
}

/// Whole bytes of a number that equations gave.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative; casts saturate
fn bytes(number: f64) -> PyResult<u64> {
    if number >= 0.0 {
        Ok(number.round() as u64)
    } else {
        Err(PyValueError::new_err(format!("{number} is no number of bytes: it must be zero or more")))
    }
}

impl From<Limits> for manypath_cc::Limits {
    fn from(limits: Limits) -> Self {
        Self {
            cwnd: Bytes::new(limits.cwnd_bytes),
            pacing: limits.pacing_bps.map(Rate::from_bps),
            ssthresh: limits.ssthresh_bytes.map(Bytes::new),
        }
    }
}

impl From<manypath_cc::Limits> for Limits {
    fn from(limits: manypath_cc::Limits) -> Self {
        Self {
            cwnd_bytes: limits.cwnd.get(),
            pacing_bps: limits.pacing.map(Rate::as_bps),
            ssthresh_bytes: limits.ssthresh.map(Bytes::get),
        }
    }
}

/// What is known of a subflow when it joins.
#[pyclass(frozen, get_all, module = "manypath.cc")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubflowInit {
    /// The largest packet, in the bytes that windows count.
    pub(crate) mss_bytes: u64,
    /// The window before anything is known.
    pub(crate) initial_window_bytes: u64,
    /// The slow-start threshold before the first loss; `None`: none.
    pub(crate) ssthresh_bytes: Option<u64>,
}

#[pymethods]
impl SubflowInit {
    #[new]
    #[pyo3(signature = (mss_bytes, initial_window_bytes, ssthresh_bytes=None))]
    fn new(mss_bytes: u64, initial_window_bytes: u64, ssthresh_bytes: Option<u64>) -> Self {
        Self { mss_bytes, initial_window_bytes, ssthresh_bytes }
    }

    fn __repr__(&self) -> String {
        let Self { mss_bytes, initial_window_bytes, ssthresh_bytes } = self;
        let ssthresh = ssthresh_bytes.map_or("None".to_owned(), |bytes| bytes.to_string());
        format!(
            "SubflowInit(mss_bytes={mss_bytes}, initial_window_bytes={initial_window_bytes}, ssthresh_bytes={ssthresh})"
        )
    }
}

/// What is known of a subflow.
#[pyclass(get_all, set_all, module = "manypath.cc", from_py_object)]
#[derive(Clone, Debug)]
pub(crate) struct SubflowView {
    /// Who this is.
    pub(crate) id: u32,
    /// `active`; `failed`: nothing was heard for a timeout; `closed`: removed.
    pub(crate) state: String,
    /// Whether it is used only while no other subflow is active.
    pub(crate) backup: bool,
    /// Relative cost of a byte.
    pub(crate) cost: f64,
    /// The largest data record.
    pub(crate) mss_bytes: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub(crate) srtt_s: Option<f64>,
    /// The last sample of it.
    pub(crate) latest_rtt_s: f64,
    /// The smallest sample; infinite before the first.
    pub(crate) min_rtt_s: f64,
    /// How much of that is the way back, but for a guess that all subflows share; `None`: unknown.
    pub(crate) way_back_s: Option<f64>,
    /// The largest sample.
    pub(crate) max_rtt_s: f64,
    /// Mean deviation of the round-trip time.
    pub(crate) rttvar_s: f64,
    /// Congestion window, as the controller last said.
    pub(crate) cwnd_bytes: u64,
    /// Slow-start threshold, as the controller last said; `None`: there is none.
    pub(crate) ssthresh_bytes: Option<u64>,
    /// Pacing rate, as the controller last said; `None`: ACK-clocked.
    pub(crate) pacing_bps: Option<f64>,
    /// Whether a window without a rate leaves spread over a round trip and not as acknowledgements come.
    pub(crate) spreads_windows: bool,
    /// Sent, and neither acknowledged nor declared lost.
    pub(crate) in_flight_bytes: u64,
    /// Given to the subflow and not yet sent.
    pub(crate) queued_bytes: u64,
    /// All that was acknowledged.
    pub(crate) delivered_bytes: u64,
    /// The last sample of the delivery rate; zero before the first.
    pub(crate) delivery_rate_bps: f64,
    /// Whether that sample was limited by the application.
    pub(crate) rate_app_limited: bool,
    /// Share of packets lost, smoothed over about the last hundred.
    pub(crate) loss: f64,
    /// Whether a recovery episode is under way.
    pub(crate) in_recovery: bool,
    /// Whether the subflow has room that the application does not fill.
    pub(crate) app_limited: bool,
    /// When the last data packet left; `None` before the first.
    pub(crate) last_sent_s: Option<f64>,
}

#[pymethods]
impl SubflowView {
    #[new]
    fn new(id: u32, mss_bytes: u64) -> Self {
        Self::of(&manypath_core::SubflowView::new(SubflowId(id), Bytes::new(mss_bytes)))
    }

    fn __repr__(&self) -> String {
        let srtt = self.srtt_s.map_or_else(|| "no srtt yet".to_owned(), |srtt| format!("srtt {:.3} ms", srtt * 1e3));
        let (in_flight, cwnd) = (self.in_flight_bytes, self.cwnd_bytes);
        format!("<SubflowView {} ({}): {srtt}, {in_flight} of {cwnd} bytes in flight>", self.id, self.state)
    }
}

impl SubflowView {
    pub(crate) fn of(view: &manypath_core::SubflowView) -> Self {
        let seconds = |span: Duration| if span == Duration::MAX { f64::INFINITY } else { span.as_secs_f64() };
        let state = match view.state {
            SubflowState::Active => "active",
            SubflowState::Failed => "failed",
            SubflowState::Closed => "closed",
        };
        Self {
            id: view.id.0,
            state: state.to_owned(),
            backup: view.priority == Priority::Backup,
            cost: view.cost,
            mss_bytes: view.mss.get(),
            srtt_s: view.srtt.map(seconds),
            latest_rtt_s: seconds(view.latest_rtt),
            min_rtt_s: seconds(view.min_rtt),
            way_back_s: view.way_back.map(seconds),
            max_rtt_s: seconds(view.max_rtt),
            rttvar_s: seconds(view.rttvar),
            cwnd_bytes: view.cwnd.get(),
            ssthresh_bytes: (view.ssthresh != Bytes::MAX).then(|| view.ssthresh.get()),
            pacing_bps: view.pacing.map(Rate::as_bps),
            spreads_windows: view.spreads_windows,
            in_flight_bytes: view.in_flight.get(),
            queued_bytes: view.queued.get(),
            delivered_bytes: view.delivered.get(),
            delivery_rate_bps: view.delivery_rate.as_bps(),
            rate_app_limited: view.rate_app_limited,
            loss: view.loss,
            in_recovery: view.in_recovery,
            app_limited: view.app_limited,
            last_sent_s: view.last_sent.map(Time::as_secs_f64),
        }
    }

    pub(crate) fn core(&self) -> PyResult<manypath_core::SubflowView> {
        // Infinite: nothing was measured.
        let span = |name, seconds: f64| {
            if seconds == f64::INFINITY { Ok(Duration::MAX) } else { quantity::span(name, seconds) }
        };
        let rate = |name, bps| quantity::not_negative(name, bps).map(Rate::from_bps);
        let state = match self.state.as_str() {
            "active" => SubflowState::Active,
            "failed" => SubflowState::Failed,
            "closed" => SubflowState::Closed,
            other => {
                let said = format!("there is no state '{other}'; there are active, failed, closed");
                return Err(PyValueError::new_err(said));
            }
        };
        Ok(manypath_core::SubflowView {
            id: SubflowId(self.id),
            state,
            priority: if self.backup { Priority::Backup } else { Priority::Normal },
            cost: self.cost,
            mss: Bytes::new(self.mss_bytes),
            srtt: self.srtt_s.map(|srtt| span("srtt_s", srtt)).transpose()?,
            latest_rtt: span("latest_rtt_s", self.latest_rtt_s)?,
            min_rtt: span("min_rtt_s", self.min_rtt_s)?,
            way_back: self.way_back_s.map(|way| span("way_back_s", way)).transpose()?,
            max_rtt: span("max_rtt_s", self.max_rtt_s)?,
            rttvar: span("rttvar_s", self.rttvar_s)?,
            cwnd: Bytes::new(self.cwnd_bytes),
            ssthresh: self.ssthresh_bytes.map_or(Bytes::MAX, Bytes::new),
            pacing: self.pacing_bps.map(|bps| rate("pacing_bps", bps)).transpose()?,
            spreads_windows: self.spreads_windows,
            in_flight: Bytes::new(self.in_flight_bytes),
            queued: Bytes::new(self.queued_bytes),
            delivered: Bytes::new(self.delivered_bytes),
            delivery_rate: rate("delivery_rate_bps", self.delivery_rate_bps)?,
            rate_app_limited: self.rate_app_limited,
            loss: self.loss,
            in_recovery: self.in_recovery,
            app_limited: self.app_limited,
            last_sent: self.last_sent_s.map(|last| quantity::time("last_sent_s", last)).transpose()?,
        })
    }
}
