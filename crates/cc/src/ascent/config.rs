//! The parameters of the ascent, and how registry rows list them.

use manypath_core::{Duration, Parameter, Params, SpecError};

use super::Utility;
use crate::monitor::{self, Report};

/// How steps grow while the direction stays (Vivace's confidence amplifier), and how their bound widens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// MPCC's release: the gradient times `1 + amp`, where `amp` grows by two after each step once the swing buffer is empty;
    /// the bound widens by one notch when it cuts a step that goes on, and narrows by one when it cuts none.
    Release,
    /// Vivace's paper (s4.3): `m(n) = n` for up to three steps in one direction, `2n - 3` beyond; the bound widens by one
    /// notch when it cuts a step, and is else the narrowest that holds the step.
    Paper,
}

/// When slow start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// At the first decrease of utility (MPCC s5.2).
    Paper,
    /// As MPCC's release: loss below 15% and falling RTT are ignored, and two more intervals are tried first.
    Release,
    /// As the release, but what lost so much that its rate is too high, or lengthened round trips, is not tried again: chance
    /// explains a few losses and no queue, and two more intervals at twice the capacity lose half of what they send. If round trips alone
    /// had ended it, and are as before while the first rate after it is tried, slow start goes on from there, once.
    Tolerant,
}

/// RTT slope (s/s) from which on a queue grows, and losses are no chance: the rate is a quarter above what the path delivers.
pub(super) const QUEUE_GROWS: f64 = 0.25;
/// RTT slope (s/s) from which on the rate is five times what the path delivers, or more: no doubling does that, but slow start from what a
/// path carried before it was away. A deep queue would take it for seconds before any is known to be lost.
pub(super) const FLOODS: f64 = 4.0;
/// RTT slope (s/s) of a burst from which on half of slow start's doubling was too much. Less of it may be what suits bursts that a queue holds.
pub(super) const DOUBLED_TOO_FAR: f64 = 0.5;

impl SlowStart {
    /// Whether chance may explain that an interval had less utility than the one before, so that its rate is tried again.
    pub(super) fn tries_again<R>(self, report: &Report<R>) -> bool {
        match self {
            Self::Paper => false,
            Self::Release => true,
            Self::Tolerant => !report.is_overload() && report.slope < QUEUE_GROWS,
        }
    }
}

/// What a slow subflow of a fast connection probes. If it is slower than the probing distance there is no rate so far below its own:
/// MPCC says nothing of it, and its release probes two higher rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Low {
    /// The smallest rate, and the own one with the distance.
    Least,
    /// Half of the own rate at least, the most that a step takes away, and the own one with the distance.
    Half,
    /// At most a quarter of the own rate less and more, and a step takes no more than that away. With the distance, 1 Mbit/s beside
    /// 100 tries 6, of which five are lost; and where the higher rate is too much the own one falls, so that it stays a distance
    /// below what the path carries. And distances and steps are shares of two mean subflows' rate at most: of eight equal ones
    /// each would change by a quarter all the time.
    Near,
}

/// The share of its own rate by which a subflow probes at most, and by which a step lowers it at most ([`Low::Near`]).
pub(super) const NEAR: f64 = 0.25;
/// Distances and steps are shares of so many mean subflows' rate at most ([`Low::Near`]).
pub(super) const MEANS: f64 = 2.0;

/// Silence lowers a rate no further, Mbit/s: the smallest rate of MPCC's release.
pub(super) const AWAY: f64 = 0.2;

/// Which rate is kept when moving ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The rate before the last step, which was better (Vivace).
    Better,
    /// The last rate tried (MPCC's release).
    Last,
}

/// When the own rate is published to the other subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// At the start of every monitor interval (MPCC s5.2).
    Interval,
    /// At the decision that ends probing only (MPCC's release).
    Decision,
}

/// What is done about an interval of which 30% and more were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brake {
    /// The rate is halved where the interval could not test it; elsewhere the gradient decides (the paper has no brake).
    Held,
    /// The rate is halved whatever the interval (the emergency brake of MPCC's release), and falls at once to what arrived of it
    /// where that is less: steps are bounded, and a path that has come back with a hundredth of its capacity takes them half a minute, in
    /// which its losses hold up the other paths.
    Any,
    /// As `Any`, but for a moment in which nothing arrives: a radio that hands over, a route that changes, a host that stands still. What
    /// lost 30%, and little beside one gap, is repeated once more; what is late is not lost while nothing is heard.
    Lasting,
}

/// What a growing queue means besides what the utility makes of it. A queue deeper than a round trip takes what is sent too fast for several
/// intervals before anything is lost, and steps are amplified until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Nothing.
    Ignored,
    /// While round trips lengthen, steps up are not amplified; and a doubled rate that fills a queue is not sent on while its results are
    /// on their way. Slow start then ends, and an overload falls, at the rate at which packets arrived.
    Heeded,
}

/// What is made of intervals that the application or a full window cut short, so that they tested no rate. The end of a burst is one, and it is
/// the end that fills the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// The round of probing begins anew: with bursts shorter than a round none ends, and the rate stays as it is, whatever is lost. So it does
    /// for a source as fast as the path, which has nothing more to send after each packet.
    Ignored,
    /// What was sent at its rate is a test, whatever was left to send, and a probe that was so until the application had no more is one, if
    /// a shorter one; else it alone is repeated. What was cut short and lost more than the utility bears, and than chance explains, or filled
    /// a queue (in slow start by half of what it sent), lowers the rate to what the path carried.
    Heeded,
}

/// What a retransmission timeout does to the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTimeout {
    /// Halve it (Vivace's release).
    Halve,
    /// Halve it, and again with each timeout that passes unheard after it, down to the initial rate: the longer a path was away, the less
    /// is known of its capacity.
    Backoff,
    /// Leave it (MPCC's release).
    Keep,
}

/// Parameters of the ascent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Monitor intervals.
    pub monitor: monitor::Config,
    /// What is maximised.
    pub utility: Utility,
    /// Distance of the probed rates from the base rate, as a share of the total rate (spec: omega).
    pub omega: f64,
    /// Step per unit of gradient, Mbit/s (spec: theta).
    pub theta: f64,
    /// The smallest step, Mbit/s.
    pub min_step: f64,
    /// The largest step at first, as a share of the total rate (change bound).
    pub bound: f64,
    /// By how much the bound widens each time it cuts a step, as a share of the total rate.
    pub bound_step: f64,
    /// What a slow subflow probes.
    pub low: Low,
    /// How steps grow.
    pub steps: Steps,
    /// How many changes of direction the swing buffer remembers; each delays the amplifier by a step.
    pub swing: u32,
    /// Rate of a new subflow, Mbit/s.
    pub initial_rate: f64,
    /// The smallest rate, Mbit/s.
    pub min_rate: f64,
    /// Stands for the round-trip time before it is known.
    pub initial_rtt: Duration,
    /// When slow start ends.
    pub slow_start: SlowStart,
    /// What is kept when moving ends.
    pub leave: Leave,
    /// When the rate is published.
    pub publish: Publish,
    /// What a timeout does.
    pub timeout: OnTimeout,
    /// What an overload does.
    pub brake: Brake,
    /// What a growing queue does.
    pub queue: Queue,
    /// What intervals do that were cut short.
    pub bursts: Bursts,
}

impl Config {
    /// The change bound after being widened by this many notches, as a share of the total rate.
    pub(super) fn bound_at(&self, notches: u32) -> f64 {
        self.bound + f64::from(notches) * self.bound_step
    }
}

/// What differs between the algorithms that climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Weight of the RTT gradient.
    pub latency_weight: &'static str,
    /// How steps grow.
    pub steps: &'static str,
    /// Widening of the bound, as a share of the total rate.
    pub bound_step: &'static str,
    /// Smallest step, Mbit/s.
    pub min_step: &'static str,
    /// Size of the swing buffer.
    pub swing: &'static str,
}

/// The rows, with an algorithm's own defaults.
pub const fn parameters(own: Defaults) -> [Parameter; 23] {
    const fn row(name: &'static str, default: &'static str, range: &'static str, meaning: &'static str) -> Parameter {
        Parameter { name, default, range, meaning }
    }
    [
        row(
            "loss-weight",
            "11.35",
            "a number from 3 to 1000",
            "weight of the loss rate (MPCC s7.1 beta; its release: 11)",
        ),
        row(
            "latency-weight",
            own.latency_weight,
            "a number from 0 to 1e6",
            "weight of the RTT gradient (MPCC s7.1 gamma)",
        ),
        row(
            "units",
            "mbit",
            "mbit or bytes",
            "unit of rates in the utility: Mbit/s as Vivace, or bytes/s as MPCC's release",
        ),
        row(
            "mi",
            "1.5",
            "a number from 0.5 to 10",
            "length of a monitor interval in RTTs (MPCC s5.2; its release: 1.5)",
        ),
        row("mi-packets", "5", "an integer from 1 to 1000", "least packets of a monitor interval (MPCC's release: 1)"),
        row("min-slope", "0.01", "a number from 0 to 1", "smaller RTT gradients count as zero (Vivace s4.1)"),
        row("omega", "0.05", "a number from 0.001 to 0.5", "probing distance as a share of the total rate (MPCC s5.2)"),
        row(
            "low",
            "least",
            "least, half or near",
            "a subflow slower than the distance probes down to the smallest rate or half of its own; near: at most a quarter of its own either way, and omega and bound are shares of twice the subflows' mean rate at most",
        ),
        row("theta", "1", "a number from 0.001 to 1000", "step in Mbit/s per unit of gradient (Vivace s4.3)"),
        row("steps", own.steps, "release or paper", "amplifier and bound of MPCC's release, or of Vivace s4.3"),
        row("min-step", own.min_step, "a number from 0 to 100", "smallest step in Mbit/s (MPCC's release: 0.5)"),
        row("bound", "0.05", "a number from 0.001 to 1", "largest step as a share of the total rate (MPCC s5.2)"),
        row(
            "bound-step",
            own.bound_step,
            "a number from 0.001 to 1",
            "widening of the bound each time it is hit (MPCC's release: 0.05, Vivace s4.3: 0.1)",
        ),
        row("swing", own.swing, "an integer from 0 to 100", "size of the swing buffer (MPCC's release: 2)"),
        row("initial", "4", "Mbit/s from 0.2 to 1e5", "rate of a new subflow (MPCC's release)"),
        row("min-rate", "0.2", "Mbit/s from 0.01 to 100", "smallest rate (MPCC's release)"),
        row(
            "slow-start",
            "paper",
            "paper, release or tolerant",
            "end at the first decrease of utility (MPCC s5.2), or tolerate 15% loss and two repeats; tolerant: none after 30% loss or while round trips lengthen, but once more when that has passed",
        ),
        row("leave", "better", "better or last", "rate kept when moving ends: Vivace's, or MPCC's release"),
        row("publish", "mi", "mi or decision", "publish at every interval (MPCC s5.2), or after probing (its release)"),
        row(
            "timeout",
            "halve",
            "halve, backoff or keep",
            "rate after a timeout: halved (Vivace's release), and again the longer nothing is heard, or kept (MPCC's)",
        ),
        row(
            "brake",
            "held",
            "held, any or lasting",
            "intervals that lose 30% and lower the rate at once: those that tested no rate, any, or any but a moment without delivery",
        ),
        row(
            "queue",
            "ignored",
            "ignored or heeded",
            "while round trips lengthen: nothing, or steps up stay small, slow start waits and ends at what arrives",
        ),
        row(
            "bursts",
            "ignored",
            "ignored or heeded",
            "an interval that was cut short: probing begins anew, or goes on, and the rate falls to what arrived if that was too much",
        ),
    ]
}

/// Reads the parameters of a registry row.
///
/// # Errors
/// If a value is out of range.
pub fn config(params: &Params<'_>) -> Result<Config, SpecError> {
    let brake = params.choice("brake", &[("held", Brake::Held), ("any", Brake::Any), ("lasting", Brake::Lasting)])?;
    Ok(Config {
        monitor: monitor::Config {
            length: params.number("mi", 0.5, 10.0)?,
            min_packets: params.integer("mi-packets", 1, 1000)?,
            outlasts_silence: brake == Brake::Lasting,
            min_slope: params.number("min-slope", 0.0, 1.0)?,
            ..monitor::Config::default()
        },
        utility: Utility {
            a: 0.9, // MPCC s7.1
            b: params.number("loss-weight", 3.0, 1000.0)?,
            g: params.number("latency-weight", 0.0, 1e6)?,
            scale: params.choice("units", &[("mbit", 1.0), ("bytes", 125_000.0)])?,
        },
        omega: params.number("omega", 0.001, 0.5)?,
        low: params.choice("low", &[("least", Low::Least), ("half", Low::Half), ("near", Low::Near)])?,
        theta: params.number("theta", 0.001, 1000.0)?,
        steps: params.choice("steps", &[("release", Steps::Release), ("paper", Steps::Paper)])?,
        min_step: params.number("min-step", 0.0, 100.0)?,
        bound: params.number("bound", 0.001, 1.0)?,
        bound_step: params.number("bound-step", 0.001, 1.0)?,
        swing: u32::try_from(params.integer("swing", 0, 100)?).map_err(|_| params.bad_value("swing"))?,
        initial_rate: params.number("initial", 0.2, 1e5)?,
        min_rate: params.number("min-rate", 0.01, 100.0)?,
        initial_rtt: Duration::from_millis(100),
        slow_start: params.choice(
            "slow-start",
            &[("paper", SlowStart::Paper), ("release", SlowStart::Release), ("tolerant", SlowStart::Tolerant)],
        )?,
        leave: params.choice("leave", &[("better", Leave::Better), ("last", Leave::Last)])?,
        publish: params.choice("publish", &[("mi", Publish::Interval), ("decision", Publish::Decision)])?,
        timeout: params.choice(
            "timeout",
            &[("halve", OnTimeout::Halve), ("backoff", OnTimeout::Backoff), ("keep", OnTimeout::Keep)],
        )?,
        brake,
        queue: params.choice("queue", &[("ignored", Queue::Ignored), ("heeded", Queue::Heeded)])?,
        bursts: params.choice("bursts", &[("ignored", Bursts::Ignored), ("heeded", Bursts::Heeded)])?,
    })
}
