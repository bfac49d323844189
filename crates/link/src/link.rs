//! The link itself.

use manypath_core::{Bytes, Duration, Time};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::{ConfigError, LinkConfig, MAX_QUEUE_PACKETS, QueueLimit};
use crate::counters::{Backlog, Count, Counters, Drops};
use crate::ecn::Ecn;
use crate::loss::{Loss, LossProcess};
use crate::random::{generator, uniform_span};
use crate::red::{RedAction, RedState};
use crate::service::Service;
use crate::steps::Steps;
use crate::waiting::Waiting;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It comes out at the other end.
    Deliver {
        /// When it arrives there.
        at: Time,
        /// When its last bit leaves the queue; `at` minus this is propagation delay and jitter.
        departs: Time,
        /// How long it waits behind other packets before its own transmission may begin.
        queueing: Duration,
        /// Its codepoint on arrival, CE if the link marked it.
        ecn: Ecn,
    },
    /// It never comes out.
    Drop(DropCause),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The queue had no room for it.
    QueueFull,
    /// Independent random loss.
    Random,
    /// Gilbert-Elliott loss.
    Bursty,
    /// Random early detection.
    Red,
    /// The link's rate is zero for good before the packet could have left. It takes no place in the queue, so that a smaller one
    /// behind it may still leave in time.
    Dead,
}

/// Propagation at one time.
#[derive(Clone, Copy, Debug)]
struct Propagation {
    delay: Duration,
    jitter: Duration,
}

/// One direction of a link; see the crate documentation for the model.
///
/// A call costs tens of nanoseconds. Memory grows with the largest number seen of runs of equal packets back to back in the
/// queue (32 bytes each), and stays there.
#[derive(Clone, Debug)]
pub struct Link {
    service: Service,
    queue_limit: QueueLimit,
    ecn_threshold: Option<QueueLimit>,
    reorder: bool,
    loss: Steps<Loss>,
    propagation: Steps<Propagation>,
    loss_process: LossProcess,
    jitter_random: Xoshiro256PlusPlus,
    red: Option<Box<RedState>>,

    /// The latest time seen; calls with an earlier one are taken to be at this one.
    now: Time,
    waiting: Waiting,
    /// When the last accepted packet leaves the queue.
    last_departure: Time,
    /// When the latest packet so far arrives at the other end.
    last_arrival: Time,

    offered: Count,
    accepted: Count,
    dropped: Drops,
    marked: u64,
    peak_backlog: Bytes,
    queueing_sum: Duration,
    queueing_max: Duration,
}

impl Link {
    /// A link with an empty queue. Its random streams are named after `name`, which must differ between the links of one
    /// `seed` (and between the two directions of a link).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for the first value of `config` that makes no sense.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Self, ConfigError> {
        config.validate()?;
        let stream = |purpose: &str| generator(seed, &format!("{name}/{purpose}"));
        Ok(Self {
            service: Service::new(&config.capacity, &config.schedule),
            queue_limit: config.queue,
            ecn_threshold: config.ecn_threshold,
            reorder: config.reorder,
            loss: loss_steps(config),
            propagation: propagation_steps(config),
            loss_process: LossProcess::new(stream("loss")),
            jitter_random: stream("jitter"),
            red: config.red.map(|red| Box::new(RedState::new(red, stream("red")))),
            now: Time::ZERO,
            waiting: Waiting::default(),
            last_departure: Time::ZERO,
            last_arrival: Time::ZERO,
            offered: Count::default(),
            accepted: Count::default(),
            dropped: Drops::default(),
            marked: 0,
            peak_backlog: Bytes::ZERO,
            queueing_sum: Duration::ZERO,
            queueing_max: Duration::ZERO,
        })
    }

    /// Gives the link a packet of `size` bytes on the wire at `now` and returns what becomes of it.
    ///
    /// `now` never goes back: an earlier time than in a previous call is taken as that one. A size of zero counts as one
    /// byte, and one beyond 4 GiB as 4 GiB, which no queue in bytes holds.
    #[inline]
    pub fn enqueue(&mut self, now: Time, size: Bytes, ecn: Ecn) -> Verdict {
        let now = self.settle(now);
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX).max(1);
        self.offered.add(size);

        let loss = self.loss.at(now);
        if self.loss_process.loses(&loss) {
            let bursty = matches!(loss, Loss::Bursty(_));
            return self.drop(size, if bursty { DropCause::Bursty } else { DropCause::Random });
        }

        let queueing = self.last_departure.since(now);
        let backlog = self.waiting.total();
        let mut signal =
            self.ecn_threshold.is_some_and(|threshold| threshold.measure(backlog, queueing) > threshold.amount());
        if let Some(red) = &mut self.red {
            match red.on_arrival(now, backlog, queueing, self.last_departure, self.service.slot()) {
                RedAction::Pass => {}
                RedAction::Signal if red.marks() && ecn.is_capable() => signal = true,
                RedAction::Signal | RedAction::Drop => return self.drop(size, DropCause::Red),
            }
        }

        let mut filled = backlog;
        filled.add(size);
        if self.queue_limit.measure(filled, queueing) > self.queue_limit.amount() || filled.packets > MAX_QUEUE_PACKETS
        {
            return self.drop(size, DropCause::QueueFull);
        }
        let Some(departs) = self.service.serve(now, size) else {
            return self.drop(size, DropCause::Dead);
        };

        self.waiting.push(departs, size);
        let departs = departs.to_time();
        self.peak_backlog = self.peak_backlog.max(filled.bytes);
        self.last_departure = departs;
        self.accepted.add(size);
        self.queueing_sum += queueing;
        self.queueing_max = self.queueing_max.max(queueing);

        let marked = signal && ecn.is_capable();
        self.marked += u64::from(marked && ecn != Ecn::Ce);
        Verdict::Deliver { at: self.arrival(departs), departs, queueing, ecn: if marked { Ecn::Ce } else { ecn } }
    }

    /// What packets that enter from now on take at least to come out: the smallest propagation delay that is still in force or
    /// will be.
    pub fn least_delay(&self) -> Duration {
        let upcoming = self.propagation.upcoming().iter().map(|(_, propagation)| propagation.delay);
        upcoming.fold(self.propagation.current().delay, Duration::min)
    }

    /// What a packet of no size that entered at `at`, which may be in the future, would take to come out behind what waits now;
    /// with jitter, on average.
    pub fn transit(&self, at: Time) -> Duration {
        let departs = self.last_departure.max(at);
        let Propagation { delay, jitter } = self.propagation.then(departs);
        departs.since(at) + delay + jitter / 2
    }

    /// What has not left the queue at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.settle(now);
        self.waiting.total()
    }

    /// The counters at `now`.
    pub fn counters(&mut self, now: Time) -> Counters {
        self.settle(now);
        let backlog = self.waiting.total();
        // What was accepted and is not queued any more has left.
        let delivered =
            Count { packets: self.accepted.packets - backlog.packets, bytes: self.accepted.bytes - backlog.bytes };
        Counters {
            offered: self.offered,
            delivered,
            dropped: self.dropped,
            backlog,
            peak_backlog: self.peak_backlog,
            marked: self.marked,
            queueing_sum: self.queueing_sum,
            queueing_max: self.queueing_max,
        }
    }

    /// Takes what has left by `now` out of the queue, and returns `now`, or the latest time seen if that is later.
    #[inline]
    fn settle(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.waiting.settle(self.now);
        self.now
    }

    /// When a packet that leaves the queue at `departs` reaches the other end.
    #[inline]
    fn arrival(&mut self, departs: Time) -> Time {
        let Propagation { delay, jitter } = self.propagation.at(departs);
        let mut at = departs + delay;
        if !jitter.is_zero() {
            at += uniform_span(&mut self.jitter_random, jitter);
        }
        if !self.reorder {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        at
    }

    #[cold]
    fn drop(&mut self, size: u32, cause: DropCause) -> Verdict {
        let count = match cause {
            DropCause::QueueFull => &mut self.dropped.queue_full,
            DropCause::Random => &mut self.dropped.random,
            DropCause::Bursty => &mut self.dropped.bursty,
            DropCause::Red => &mut self.dropped.red,
            DropCause::Dead => &mut self.dropped.dead,
        };
        count.add(size);
        Verdict::Drop(cause)
    }
}

fn loss_steps(config: &LinkConfig) -> Steps<Loss> {
    let changes = config.schedule.iter().filter_map(|change| Some((change.at, change.loss?))).collect();
    Steps::new(config.loss, changes)
}

/// A change may set delay and jitter apart, so each step carries what was in force of the other.
fn propagation_steps(config: &LinkConfig) -> Steps<Propagation> {
    let initial = Propagation { delay: config.delay, jitter: config.jitter };
    let mut current = initial;
    let mut changes = Vec::new();
    for change in &config.schedule {
        if change.delay.is_some() || change.jitter.is_some() {
            current.delay = change.delay.unwrap_or(current.delay);
            current.jitter = change.jitter.unwrap_or(current.jitter);
            changes.push((change.at, current));
        }
    }
    Steps::new(initial, changes)
}
