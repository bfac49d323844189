//! Mahimahi packet-delivery traces.
//!
//! One line per delivery opportunity: the millisecond at which 1500 bytes may leave, in ascending order; the trace repeats,
//! with its last millisecond as period (Netravali et al., "Mahimahi", USENIX ATC 2015, s4.2). Bytes of an opportunity that
//! the queue cannot use are wasted; a large packet uses several opportunities, small ones share one.

use core::str::FromStr;
use std::sync::Arc;

use manypath_core::{Bytes, Duration, Rate};

/// What one line of a trace may carry: 1500 bytes from the IP header on.
pub const OPPORTUNITY: Bytes = Bytes::new(1500);
/// The most lines a trace may have: an hour at 33 Mbit/s, or five minutes at 400 Mbit/s.
pub const MAX_TRACE_LINES: usize = 10_000_000;
/// The latest millisecond a trace may name: a week.
pub const MAX_TRACE_MS: u64 = 7 * 24 * 3600 * 1000;

/// Why a trace was refused. Lines count from one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is no line at all.
    #[error("the trace is empty: give one delivery time in milliseconds a line")]
    Empty,
    /// A line is not a whole number of milliseconds.
    #[error("line {line} is not a whole number of milliseconds up to {MAX_TRACE_MS}")]
    NotANumber {
        /// The line.
        line: usize,
    },
    /// A time is beyond [`MAX_TRACE_MS`].
    #[error("line {line} is later than {MAX_TRACE_MS} ms")]
    TooLate {
        /// The line.
        line: usize,
    },
    /// Times go back.
    #[error("line {line} is earlier than the line before it: sort the trace")]
    OutOfOrder {
        /// The line.
        line: usize,
    },
    /// More than [`MAX_TRACE_LINES`] lines.
    #[error("the trace has more than {MAX_TRACE_LINES} lines")]
    TooLong,
    /// All opportunities are at zero, so the trace has no period.
    #[error("the trace lasts 0 ms: its last line must be later than 0")]
    NoPeriod,
}

/// The opportunities of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Nanoseconds from the start of the trace.
    pub(crate) at: u64,
    /// What may leave at that instant.
    pub(crate) bytes: u64,
}

/// A looping trace of delivery opportunities. Clones share the opportunities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub(crate) slots: Arc<[Slot]>,
    total: Bytes,
}

impl Trace {
    /// Reads a trace: ascending milliseconds, one a line. Spaces around the number and a missing last newline are fine.
    ///
    /// # Errors
    ///
    /// [`TraceError`] names the first line that is wrong. Memory is bounded by [`MAX_TRACE_LINES`], time by `text`.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut slots: Vec<Slot> = Vec::new();
        let mut total = Bytes::ZERO;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            if index >= MAX_TRACE_LINES {
                return Err(TraceError::TooLong);
            }
            let text = text.trim();
            // `u64::from_str` takes a leading plus sign, the trace format does not.
            if text.starts_with('+') {
                return Err(TraceError::NotANumber { line });
            }
            let ms: u64 = text.parse().map_err(|_| TraceError::NotANumber { line })?;
            if ms > MAX_TRACE_MS {
                return Err(TraceError::TooLate { line });
            }
            let at = Duration::from_millis(ms).as_nanos();
            total += OPPORTUNITY;
            match slots.last_mut() {
                Some(last) if at < last.at => return Err(TraceError::OutOfOrder { line }),
                Some(last) if at == last.at => last.bytes += OPPORTUNITY.get(),
                _ => slots.push(Slot { at, bytes: OPPORTUNITY.get() }),
            }
        }
        match slots.last() {
            None => Err(TraceError::Empty),
            Some(last) if last.at == 0 => Err(TraceError::NoPeriod),
            Some(_) => Ok(Self { slots: slots.into(), total }),
        }
    }

    /// The time after which the trace repeats: its last opportunity.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.slots.last().map_or(0, |slot| slot.at))
    }

    /// What one period carries at most.
    pub const fn bytes_per_period(&self) -> Bytes {
        self.total
    }

    /// The mean rate over a period.
    pub fn mean_rate(&self) -> Rate {
        self.total / self.period()
    }

    /// The largest amount that may leave in any single instant.
    pub fn largest_burst(&self) -> Bytes {
        Bytes::new(self.slots.iter().map(|slot| slot.bytes).max().unwrap_or(0))
    }
}

impl FromStr for Trace {
    type Err = TraceError;
    fn from_str(text: &str) -> Result<Self, TraceError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_millisecond_are_one_burst() {
        let trace = Trace::parse("1\n1\r\n 4").unwrap();
        assert_eq!(trace.slots[..], [Slot { at: 1_000_000, bytes: 3000 }, Slot { at: 4_000_000, bytes: 1500 }]);
        assert_eq!(trace.period(), Duration::from_millis(4));
        // 3 * 1500 B * 8 / 4 ms = 9 Mbit/s
        assert!((trace.mean_rate().as_mbps() - 9.0).abs() < 1e-9);
        assert_eq!(trace.largest_burst(), Bytes::new(3000));
    }

    #[test]
    fn hostile_traces_are_refused_by_line() {
        use TraceError::*;
        for (text, error) in [
            ("", Empty),
            ("0\n0\n", NoPeriod),
            ("1\n\n2", NotANumber { line: 2 }),
            ("1\n-2", NotANumber { line: 2 }),
            ("+1", NotANumber { line: 1 }),
            ("1.5", NotANumber { line: 1 }),
            ("NaN", NotANumber { line: 1 }),
            ("99999999999999999999999", NotANumber { line: 1 }),
            ("18446744073709551615", TooLate { line: 1 }),
            ("3\n2", OutOfOrder { line: 2 }),
        ] {
            assert_eq!(Trace::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(Trace::parse(&"1\n".repeat(MAX_TRACE_LINES + 1)), Err(TooLong));
    }
}
