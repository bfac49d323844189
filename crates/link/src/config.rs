//! What a link is made of, and which values are refused.

use core::fmt;

use manypath_core::{Bytes, Duration, Rate, Time};

use crate::counters::Backlog;
use crate::loss::Loss;
use crate::red::Red;
use crate::trace::Trace;

/// The lowest rate but zero, in bits per second: a byte a second.
pub const MIN_RATE_BPS: f64 = 8.0;
/// The highest rate in bits per second: 1 Tbit/s, at which service times are still good to 3e-8.
pub const MAX_RATE_BPS: f64 = 1e12;
/// The longest propagation delay and the largest jitter: one hour.
pub const MAX_DELAY: Duration = Duration::from_secs(3600);
/// The largest queue limit in bytes: 1 GiB.
pub const MAX_QUEUE_BYTES: Bytes = Bytes::new(1 << 30);
/// The most packets any queue holds, also one limited otherwise: 2^20, which bounds a link's memory to 16 MiB.
pub const MAX_QUEUE_PACKETS: u64 = 1 << 20;
/// The most changes in a schedule.
pub const MAX_CHANGES: usize = 1_000_000;

/// An amount of queue, in bytes, in packets or in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes on the wire.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u64),
    /// How long a packet waits behind others: what a queue in bytes is at one rate, and a queue whose length follows the rate
    /// (`tc`'s `tbf latency`). A packet that would wait longer finds it full.
    Wait(Duration),
}

impl QueueLimit {
    /// The number without its unit.
    pub(crate) const fn amount(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.get(),
            Self::Packets(packets) => packets,
            Self::Wait(wait) => wait.as_nanos(),
        }
    }

    /// `backlog`, behind which a packet waits for `wait`, in this limit's unit.
    pub(crate) const fn measure(self, backlog: Backlog, wait: Duration) -> u64 {
        match self {
            Self::Bytes(_) => backlog.bytes.get(),
            Self::Packets(_) => backlog.packets,
            Self::Wait(_) => wait.as_nanos(),
        }
    }
}

/// As scenario files write it.
impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(1) => f.write_str("1packet"),
            Self::Packets(packets) => write!(f, "{packets}packets"),
            Self::Wait(wait) => wait.fmt(f),
        }
    }
}

/// How fast the link takes packets from its queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A rate, until the schedule changes it.
    Rate(Rate),
    /// The delivery opportunities of a Mahimahi trace, for ever.
    Trace(Trace),
}

/// One line of a schedule: from `at` on, what is given here replaces what was in force.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Time since the engine's epoch.
    pub at: Time,
    /// New rate; zero is an outage, in which the queue fills and nothing leaves. A packet in transmission at the change
    /// sends its remaining bits at the new rate.
    pub rate: Option<Rate>,
    /// New propagation delay, for packets that leave the queue from `at` on.
    pub delay: Option<Duration>,
    /// New jitter, for packets that leave the queue from `at` on.
    pub jitter: Option<Duration>,
    /// New random loss, for packets that arrive from `at` on.
    pub loss: Option<Loss>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Rate or trace. A constant rate is in [`MIN_RATE_BPS`]`..=`[`MAX_RATE_BPS`].
    pub capacity: Capacity,
    /// Propagation delay, one way, at most [`MAX_DELAY`].
    pub delay: Duration,
    /// Extra delay, drawn evenly from `0..=jitter` for each packet, at most [`MAX_DELAY`].
    pub jitter: Duration,
    /// Whether jitter and a shrinking delay may reorder packets. If not, a packet that would overtake arrives together
    /// with the one before it.
    pub reorder: bool,
    /// Random loss before the queue.
    pub loss: Loss,
    /// Drop-tail limit of the queue, the packet in transmission included; not zero.
    pub queue: QueueLimit,
    /// Mark ECN-capable packets that find more than this in the queue (as DCTCP's K, RFC 8257 s3.1).
    pub ecn_threshold: Option<QueueLimit>,
    /// Random early detection.
    pub red: Option<Red>,
    /// Changes over time, by strictly ascending time; at most [`MAX_CHANGES`].
    pub schedule: Vec<Change>,
}

impl LinkConfig {
    /// A link of constant `rate` and `delay` with a drop-tail `queue`, and nothing else.
    pub const fn new(rate: Rate, delay: Duration, queue: QueueLimit) -> Self {
        Self {
            capacity: Capacity::Rate(rate),
            delay,
            jitter: Duration::ZERO,
            reorder: false,
            loss: Loss::None,
            queue,
            ecn_threshold: None,
            red: None,
            schedule: Vec::new(),
        }
    }

    /// The highest rate the link ever has, which a change at time zero can keep from being the first one; for a trace its mean rate.
    pub fn peak_rate(&self) -> Rate {
        match &self.capacity {
            Capacity::Trace(trace) => trace.mean_rate(),
            Capacity::Rate(rate) => {
                let first =
                    self.schedule.first().filter(|change| change.at == Time::ZERO).and_then(|change| change.rate);
                let changed = self.schedule.iter().filter_map(|change| change.rate);
                changed.fold(first.unwrap_or(*rate), |peak, rate| if rate > peak { rate } else { peak })
            }
        }
    }

    /// The longest time a packet can take from leaving the queue to arriving.
    pub fn longest_delay(&self) -> Duration {
        let delay = self.schedule.iter().filter_map(|change| change.delay).fold(self.delay, Duration::max);
        let jitter = self.schedule.iter().filter_map(|change| change.jitter).fold(self.jitter, Duration::max);
        delay + jitter
    }

    /// Checks every value.
    ///
    /// # Errors
    ///
    /// The first value that makes no sense. [`Link::new`](crate::Link::new) checks too.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Capacity::Rate(rate) = &self.capacity {
            check_rate(*rate)?;
        }
        check_delay("delay", self.delay)?;
        check_delay("jitter", self.jitter)?;
        check_loss(&self.loss)?;
        check_queue("queue", self.queue)?;
        if self.queue.amount() == 0 {
            return Err(ConfigError::QueueZero);
        }
        if let Some(threshold) = self.ecn_threshold {
            check_queue("ecn_threshold", threshold)?;
        }
        if let Some(red) = &self.red {
            check_red(red)?;
        }
        self.check_schedule()
    }

    fn check_schedule(&self) -> Result<(), ConfigError> {
        if self.schedule.len() > MAX_CHANGES {
            return Err(ConfigError::ScheduleTooLong { changes: self.schedule.len() });
        }
        for (index, change) in self.schedule.iter().enumerate() {
            if index > 0 && change.at <= self.schedule[index - 1].at {
                return Err(ConfigError::ScheduleOrder { index });
            }
            let faulty = |source| ConfigError::InSchedule { index, source: Box::new(source) };
            if let Some(rate) = change.rate {
                if matches!(self.capacity, Capacity::Trace(_)) {
                    return Err(ConfigError::RateOverTrace { index });
                }
                if !rate.is_zero() {
                    check_rate(rate).map_err(faulty)?;
                }
            }
            if let Some(delay) = change.delay {
                check_delay("delay", delay).map_err(faulty)?;
            }
            if let Some(jitter) = change.jitter {
                check_delay("jitter", jitter).map_err(faulty)?;
            }
            if let Some(loss) = &change.loss {
                check_loss(loss).map_err(faulty)?;
            }
        }
        Ok(())
    }
}

/// Why a link configuration was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The initial rate is zero: use a schedule for outages.
    #[error("the rate is zero: give a positive one (a schedule may set it to zero for a while)")]
    RateZero,
    /// The rate is outside [`MIN_RATE_BPS`]`..=`[`MAX_RATE_BPS`].
    #[error("the rate {0} is outside 8bit to 1Tbit")]
    RateOutOfRange(Rate),
    /// A delay or jitter is beyond [`MAX_DELAY`].
    #[error("{field} is {delay}, more than an hour")]
    DelayTooLong {
        /// `delay` or `jitter`.
        field: &'static str,
        /// Its value.
        delay: Duration,
    },
    /// A probability is NaN or outside its range.
    #[error("{field} is {value}: it must be {range}")]
    Probability {
        /// The name of the value.
        field: &'static str,
        /// The value.
        value: f64,
        /// The values that are allowed.
        range: &'static str,
    },
    /// The queue has no room for anything.
    #[error("the queue limit is zero: it must hold at least the packet in transmission")]
    QueueZero,
    /// A limit is beyond [`MAX_QUEUE_BYTES`], [`MAX_QUEUE_PACKETS`] or [`MAX_DELAY`].
    #[error("{field} is {limit}: at most 1GiB, 1048576packets or 3600s")]
    QueueTooLarge {
        /// The name of the value.
        field: &'static str,
        /// The limit.
        limit: QueueLimit,
    },
    /// RED's thresholds are in different units, or not in order.
    #[error("RED's min {min} must be below its max {max}, both in one unit")]
    RedThresholds {
        /// The lower threshold.
        min: QueueLimit,
        /// The upper threshold.
        max: QueueLimit,
    },
    /// More than [`MAX_CHANGES`] changes.
    #[error("the schedule has {changes} changes, more than 1000000")]
    ScheduleTooLong {
        /// How many.
        changes: usize,
    },
    /// A change is not later than the one before.
    #[error("change {index} of the schedule (from 0) is not later than the one before it")]
    ScheduleOrder {
        /// Its index.
        index: usize,
    },
    /// A change sets the rate of a link that follows a trace.
    #[error("change {index} of the schedule (from 0) sets a rate, but the link follows a trace")]
    RateOverTrace {
        /// Its index.
        index: usize,
    },
    /// A value of a change makes no sense.
    #[error("change {index} of the schedule (from 0): {source}")]
    InSchedule {
        /// Its index.
        index: usize,
        /// What is wrong with it.
        source: Box<Self>,
    },
}

fn check_rate(rate: Rate) -> Result<(), ConfigError> {
    if rate.is_zero() {
        Err(ConfigError::RateZero)
    } else if (MIN_RATE_BPS..=MAX_RATE_BPS).contains(&rate.as_bps()) {
        Ok(())
    } else {
        Err(ConfigError::RateOutOfRange(rate))
    }
}

fn check_delay(field: &'static str, delay: Duration) -> Result<(), ConfigError> {
    if delay <= MAX_DELAY { Ok(()) } else { Err(ConfigError::DelayTooLong { field, delay }) }
}

/// NaN is in no range, so it is refused too.
fn check_probability(field: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::Probability { field, value, range: "in 0 to 1" })
    }
}

fn check_loss(loss: &Loss) -> Result<(), ConfigError> {
    match loss {
        Loss::None => Ok(()),
        Loss::Random(probability) => check_probability("loss", *probability),
        Loss::Bursty(model) => {
            let names = ["enter_bad", "leave_bad", "loss_good", "loss_bad"];
            names.into_iter().zip(model.probabilities()).try_for_each(|(name, value)| check_probability(name, value))
        }
    }
}

fn check_queue(field: &'static str, limit: QueueLimit) -> Result<(), ConfigError> {
    let most = match limit {
        QueueLimit::Bytes(_) => MAX_QUEUE_BYTES.get(),
        QueueLimit::Packets(_) => MAX_QUEUE_PACKETS,
        QueueLimit::Wait(_) => MAX_DELAY.as_nanos(),
    };
    if limit.amount() <= most { Ok(()) } else { Err(ConfigError::QueueTooLarge { field, limit }) }
}

fn check_red(red: &Red) -> Result<(), ConfigError> {
    check_queue("red.min", red.min)?;
    check_queue("red.max", red.max)?;
    let same_unit = core::mem::discriminant(&red.min) == core::mem::discriminant(&red.max);
    if !same_unit || red.min.amount() >= red.max.amount() {
        return Err(ConfigError::RedThresholds { min: red.min, max: red.max });
    }
    for (field, value) in [("red.max_probability", red.max_probability), ("red.weight", red.weight)] {
        if !(value > 0.0 && value <= 1.0) {
            return Err(ConfigError::Probability { field, value, range: "above 0 and at most 1" });
        }
    }
    Ok(())
}
