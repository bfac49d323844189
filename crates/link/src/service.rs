//! When the last bit of a packet leaves: service times integrated over what is known of the link's capacity.

use manypath_core::{Bytes, Duration, Rate, Time};

use crate::config::{Capacity, Change};
use crate::steps::Steps;
use crate::trace::{OPPORTUNITY, Slot, Trace};

/// A time in units of 2^-32 ns. Service times are rounded to these units, so that a busy period of 4 GB ends at most half a
/// nanosecond from where exact arithmetic ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FineTime(u128);

/// 2^32, the fine units in a nanosecond.
const UNITS: f64 = 4_294_967_296.0;
/// Half a nanosecond in fine units.
const HALF: u128 = 1 << 31;

impl FineTime {
    const fn from_time(time: Time) -> Self {
        Self((time.as_nanos() as u128) << 32)
    }

    /// The nearest nanosecond; [`Time::MAX`] when beyond it.
    pub(crate) fn to_time(self) -> Time {
        Time::from_nanos(u64::try_from((self.0 + HALF) >> 32).unwrap_or(u64::MAX))
    }

    /// The nanosecond that it lies in; [`Time::MAX`] when beyond all.
    pub(crate) fn floor(self) -> Time {
        Time::from_nanos(u64::try_from(self.0 >> 32).unwrap_or(u64::MAX))
    }

    /// How long after an earlier time it is, in fine units; `None`: more than four seconds.
    pub(crate) fn after(self, earlier: Self) -> Option<u64> {
        u64::try_from(self.0.checked_sub(earlier.0)?).ok()
    }

    /// The time `units` later.
    pub(crate) const fn plus(self, units: u64) -> Self {
        Self(self.0 + units as u128)
    }

    /// Whether the nearest nanosecond is at or before `time`, so that rounding never carries a packet past a change that it
    /// meets exactly.
    const fn is_by(self, time: Time) -> bool {
        self.0 < Self::from_time(time).0 + HALF
    }
}

/// The time one byte takes, in units of 2^-32 ns. At least [`MIN_RATE_BPS`](crate::MIN_RATE_BPS), a second a byte, keeps it
/// in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteTime(u64);

impl ByteTime {
    /// `None` at rate zero.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // float to integer casts saturate
    fn at(rate: Rate) -> Option<Self> {
        (!rate.is_zero()).then(|| Self((8e9 * UNITS / rate.as_bps() + 0.5) as u64))
    }
}

/// The server at the head of the queue.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// Bit by bit at a piecewise constant rate.
    Rate(RateService),
    /// At the opportunities of a trace.
    Trace(TraceService),
}

impl Service {
    pub(crate) fn new(capacity: &Capacity, schedule: &[Change]) -> Self {
        match capacity {
            Capacity::Rate(rate) => Self::Rate(RateService::new(*rate, schedule)),
            Capacity::Trace(trace) => Self::Trace(TraceService::new(trace)),
        }
    }

    /// When a packet that arrives at `now` has left, everything before it first; `None` if never, and then nothing changes.
    #[inline]
    pub(crate) fn serve(&mut self, now: Time, size: u32) -> Option<FineTime> {
        match self {
            Self::Rate(service) => service.serve(now, size),
            Self::Trace(service) => Some(FineTime::from_time(service.serve(now, size))),
        }
    }

    /// The time that a 1500-byte packet takes at present; zero when that cannot be said.
    pub(crate) fn slot(&self) -> Duration {
        match self {
            Self::Rate(service) => service.byte_time.current().map_or(Duration::ZERO, |ByteTime(units)| {
                FineTime(u128::from(units) * u128::from(OPPORTUNITY.get())).to_time().since(Time::ZERO)
            }),
            Self::Trace(service) => service.slot,
        }
    }
}

/// Service at a piecewise constant rate.
#[derive(Clone, Debug)]
pub(crate) struct RateService {
    /// When everything accepted so far has left.
    free: FineTime,
    /// Read at the starts of services, which never go back.
    byte_time: Steps<Option<ByteTime>>,
}

impl RateService {
    fn new(rate: Rate, schedule: &[Change]) -> Self {
        let changes = schedule.iter().filter_map(|change| Some((change.at, ByteTime::at(change.rate?)))).collect();
        Self { free: FineTime::default(), byte_time: Steps::new(ByteTime::at(rate), changes) }
    }

    #[inline]
    fn serve(&mut self, now: Time, size: u32) -> Option<FineTime> {
        let start = self.free.max(FineTime::from_time(now));
        // Rounded down: changes come on whole nanoseconds, so that a step is entered neither early nor late.
        let whole = Time::from_nanos(u64::try_from(start.0 >> 32).unwrap_or(u64::MAX));
        let current = self.byte_time.at(whole);
        let ends = self.byte_time.ends();
        let free = match current {
            Some(ByteTime(units)) => {
                let end = FineTime(start.0 + u128::from(units) * u128::from(size));
                if ends == Time::MAX || end.is_by(ends) { end } else { self.serve_across(start, size)? }
            }
            None => self.serve_across(start, size)?,
        };
        self.free = free;
        Some(free)
    }

    /// Service that does not end within the current step. Rare, so it may use floats: their relative error of 2^-53 on one
    /// packet's service time is far below a nanosecond.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the products are positive and casts saturate
    fn serve_across(&self, start: FineTime, size: u32) -> Option<FineTime> {
        let mut left = f64::from(size);
        let mut from = start;
        let mut current = self.byte_time.current();
        let nexts = self.byte_time.upcoming().iter().copied().map(Some).chain([None]);
        for next in nexts {
            if let Some(ByteTime(units)) = current {
                let needed = FineTime((left * units as f64) as u128);
                let end = FineTime(from.0 + needed.0);
                if next.is_none_or(|(at, _)| end.is_by(at)) {
                    return Some(end);
                }
            }
            // The last step has no next one: its rate is zero, and the packet never leaves.
            let (at, byte_time) = next?;
            let until = FineTime::from_time(at);
            if let Some(ByteTime(units)) = current {
                left -= (until.0 - from.0) as f64 / units as f64;
            }
            from = until;
            current = byte_time;
        }
        None
    }
}

/// Service at the opportunities of a looping trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceService {
    slots: std::sync::Arc<[Slot]>,
    /// Nanoseconds of a period, at least one millisecond.
    period: u64,
    bytes_per_period: Bytes,
    slot: Duration,
    /// When the present repetition began, in nanoseconds.
    base: u64,
    /// The opportunity being used, and what is left of it.
    index: usize,
    left: u64,
}

impl TraceService {
    fn new(trace: &Trace) -> Self {
        Self {
            left: trace.slots.first().map_or(0, |slot| slot.bytes),
            slots: trace.slots.clone(),
            period: trace.period().as_nanos(),
            bytes_per_period: trace.bytes_per_period(),
            slot: OPPORTUNITY.time_at(trace.mean_rate()),
            base: 0,
            index: 0,
        }
    }

    fn serve(&mut self, now: Time, size: u32) -> Time {
        let now = now.as_nanos();
        if self.at() < now {
            self.seek(now);
        }
        let mut need = u64::from(size);
        // Whole periods at once, so that a huge packet on a slow trace costs no more than a small one.
        // Of whole periods the last is gone through slot by slot: it may end with the very slot that is at hand.
        let periods = need.saturating_sub(1) / self.bytes_per_period.get();
        self.base = self.base.saturating_add(periods.saturating_mul(self.period));
        need -= periods * self.bytes_per_period.get();
        while need > self.left {
            need -= self.left;
            self.index += 1;
            if self.index == self.slots.len() {
                self.index = 0;
                self.base = self.base.saturating_add(self.period);
            }
            self.left = self.slots[self.index].bytes;
        }
        self.left -= need;
        Time::from_nanos(self.at())
    }

    /// When the present opportunity is.
    fn at(&self) -> u64 {
        self.base.saturating_add(self.slots[self.index].at)
    }

    /// Goes to the first opportunity at or after `now`, which is later than the present one; what was left of the ones before is wasted.
    fn seek(&mut self, now: u64) {
        self.base = now / self.period * self.period;
        let mut offset = now - self.base;
        // The last opportunity of a repetition is at the very start of the next one.
        if offset == 0 {
            self.base -= self.period;
            offset = self.period;
        }
        // The last slot is at `period >= offset`, so the point found is an index.
        self.index = self.slots.partition_point(|slot| slot.at < offset);
        self.left = self.slots[self.index].bytes;
    }
}
