//! The simulator: the session, controllers and schedulers that the QUIC transport runs, in virtual time over modelled links.
//!
//! A run is a pure function of scenario and seed: it is what a single thread makes of it that takes events in the order of
//! (time, number), all times are integer nanoseconds, every random stream is named after what it serves, and nothing reads a
//! clock, the system's randomness or the order of a hash map. Runs are independent of each other: many may run at once on as
//! many threads.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = manypath_scenario::built_in();
//! let mut scenario = manypath_scenario::parse(text, "built-in.toml", std::path::Path::new("."))?;
//! scenario.duration = manypath_core::Duration::from_secs(6);
//! let report = manypath_sim::run(&scenario, 1)?;
//! assert!(report.goodput_bps > 100e6);
//! # Ok(())
//! # }
//! ```
//!
//! # Subflows
//!
//! A connection's `transport` says what carries its subflows. `quic` is what the QUIC transport does: RFC 9002 finds losses,
//! the session sends lost data again on any path, acknowledgements of the session travel with the carrier's. `tcp` is
//! Multipath TCP as the papers measured it: a sequence space a subflow, delivery in order within it, losses sent again where
//! they were lost by RFC 6675 or RFC 6582, timeouts by RFC 6298, cumulative data acknowledgements on the acknowledgements of
//! their own subflow. Handshakes take no time, but measure what waits in queues by then: the first timeout is theirs, as in
//! Linux and over QUIC. After `reinject-after` timeouts in a row the other subflows carry what a subflow has not delivered,
//! and it is given nothing new until it is heard again (Linux MPTCP 0.9x: after the first). Headers are IPv4 20, TCP 20 and
//! timestamps 12 bytes, a DSS option of 28 with data, one of 8 and up to two SACK blocks with acknowledgements; a connection
//! of one subflow has them too, so that one path and several compare.
//!
//! # How it is built
//!
//! A link computes a packet's fate when the packet enters it (`manypath-link`), so a data packet costs two events at most:
//! its arrival, and that of the acknowledgement that covers it. Packets wait in a ring at their link; the event queue holds
//! the first of each ring and the timers, a few entries whatever is in flight. Timers are not moved: an event that comes too
//! early looks again. Acknowledgements of the carrier take those of the session along. An end has its events of a window of
//! time in a row, before the next end does, since nothing that it sends arrives anywhere within the window.
//!
//! # Dependencies
//!
//! `manypath-session`, `-cc`, `-sched`, `-link` are what is simulated, `manypath-scenario` says how; `rand_xoshiro` and
//! `rand_core` for named random streams, `rayon` for runs side by side, `serde` and `serde_json` write
//! reports; `hdrhistogram` for completion times of any number of files; `thiserror` for error types.

mod ack;
mod application;
mod batch;
mod carrier;
mod causes;
mod engine;
mod error;
mod events;
mod files;
mod flight;
mod host;
mod meter;
mod network;
mod observer;
mod packet;
mod quic;
mod recorder;
mod report;
mod series;
mod setup;
mod shared_window;
mod sizes;
mod snapshot;
mod source;
mod tally;
mod tcp;
mod window;

use manypath_cc::CongestionControl;
use manypath_core::AlgorithmSpec;
use manypath_scenario::{Connection, Scenario};

pub use batch::{Job, run_all};
pub use error::RunError;
pub use observer::Observer;
pub use report::{
    ConnectionReport, FileReport, FileSummary, LinkReport, MeanMax, Measures, Report, SubflowMeasures, SubflowReport,
};
pub use series::{ConnectionSeries, DropSeries, LinkSeries, Series, SubflowSeries};

/// The scheduler of a connection: the scenario's, or the one that fits its controller.
pub fn scheduler(connection: &Connection) -> AlgorithmSpec {
    connection.scheduler.clone().unwrap_or_else(|| fitting_scheduler(&connection.cc.name))
}

/// The scheduler that fits a controller where none is chosen: those that send by rate keep no full window for `minrtt` to fill,
/// and MPCC section 6 gives them `rate-based`.
pub fn fitting_scheduler(controller: &str) -> AlgorithmSpec {
    AlgorithmSpec::named(if manypath_cc::sends_by_rate(controller) { "rate-based" } else { "minrtt" })
}

/// Runs a scenario.
///
/// # Errors
/// If an algorithm is not known or a value makes no sense. A run that has begun ends well, unless it finds a bug.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Report, RunError> {
    run_observed(scenario, seed, &mut ())
}

/// Runs a scenario while someone looks on.
///
/// # Errors
/// As [`run`]; [`RunError::Stopped`] if the observer says so.
pub fn run_observed(scenario: &Scenario, seed: u64, observer: &mut dyn Observer) -> Result<Report, RunError> {
    run_with(scenario, seed, observer, &mut |_| None)
}

/// Makes the controller of a connection's sender in place of the one that the scenario names; `None`: that one.
pub type Controllers<'a> = dyn FnMut(&Connection) -> Option<Box<dyn CongestionControl>> + 'a;

/// Runs a scenario with controllers that no registry has, while someone looks on. Reports give the names in the scenario.
///
/// # Errors
/// As [`run_observed`].
pub fn run_with(
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn Observer,
    controllers: &mut Controllers<'_>,
) -> Result<Report, RunError> {
    let simulation = engine::Simulation::run(scenario, seed, observer, controllers)?;
    Ok(report::summary::report(scenario, seed, simulation))
}
