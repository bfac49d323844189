//! Amounts of data and rates of data. A rate is made from bytes and time; rate times time gives bytes.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::time::Duration;

/// An amount of data. Subtraction saturates at zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A rate of data in bits per second: finite and never negative.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Bytes {
    /// No data.
    pub const ZERO: Self = Self(0);
    /// More data than any counter holds.
    pub const MAX: Self = Self(u64::MAX);

    /// An amount of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as a float, for equations.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The nearest whole number of bytes; negative and NaN give zero.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // float to integer casts saturate, NaN gives 0
    pub fn from_f64(bytes: f64) -> Self {
        Self((bytes + 0.5) as u64)
    }

    /// Whether there is no data.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time these bytes take at `rate`; [`Duration::MAX`] at rate zero.
    pub fn time_at(self, rate: Rate) -> Duration {
        if rate.0 <= 0.0 {
            return if self.0 == 0 { Duration::ZERO } else { Duration::MAX };
        }
        Duration::from_secs_f64(self.0 as f64 * 8.0 / rate.0)
    }
}

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0.0);

    /// A rate in bits per second; negative and NaN give zero, infinity gives the largest finite value.
    #[allow(clippy::manual_clamp)] // `clamp` keeps NaN; `max` returns its other operand for it
    pub fn from_bps(bits_per_second: f64) -> Self {
        Self(bits_per_second.max(0.0).min(f64::MAX))
    }

    /// A rate in megabits (10^6 bits) per second.
    pub fn from_mbps(megabits_per_second: f64) -> Self {
        Self::from_bps(megabits_per_second * 1e6)
    }

    /// The rate that moves `bytes` in `span`; zero if the span is zero, since nothing was measured.
    pub fn from_bytes_per(bytes: Bytes, span: Duration) -> Self {
        if span.is_zero() { Self::ZERO } else { Self::from_bps(bytes.as_f64() * 8.0 / span.as_secs_f64()) }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> f64 {
        self.0
    }

    /// Megabits (10^6 bits) per second.
    pub fn as_mbps(self) -> f64 {
        self.0 * 1e-6
    }

    /// Bytes per second.
    pub fn as_bytes_per_sec(self) -> f64 {
        self.0 / 8.0
    }

    /// Whether nothing moves.
    pub fn is_zero(self) -> bool {
        self.0 <= 0.0
    }

    /// The bytes that move in `span`, to the nearest byte.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        Bytes::from_f64(self.0 * span.as_secs_f64() / 8.0)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// Division by zero gives [`Bytes::MAX`], as for a floating-point infinity.
impl Div<u64> for Bytes {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl Div<Duration> for Bytes {
    type Output = Rate;
    fn div(self, span: Duration) -> Rate {
        Rate::from_bytes_per(self, span)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl Add for Rate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_bps(self.0 + other.0)
    }
}

impl Sub for Rate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::from_bps(self.0 - other.0)
    }
}

impl Mul<f64> for Rate {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::from_bps(self.0 * factor)
    }
}

impl Mul<Duration> for Rate {
    type Output = Bytes;
    fn mul(self, span: Duration) -> Bytes {
        self.bytes_in(span)
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_over_time_is_a_rate_and_back() {
        // 375,000 B * 8 / 0.03 s = 100 Mbit/s
        let rate = Bytes::new(375_000) / Duration::from_millis(30);
        assert!((rate.as_mbps() - 100.0).abs() < 1e-9);
        assert_eq!(rate * Duration::from_millis(30), Bytes::new(375_000));
        assert_eq!(Bytes::new(1500).time_at(Rate::from_mbps(12.0)), Duration::from_millis(1));
    }

    #[test]
    fn bytes_are_rounded_to_the_nearest() {
        assert_eq!([1.4, 1.5, -0.4].map(Bytes::from_f64), [Bytes::new(1), Bytes::new(2), Bytes::ZERO]);
    }

    #[test]
    fn nonsense_becomes_zero_or_the_largest_value() {
        assert_eq!(Rate::from_bps(f64::NAN), Rate::ZERO);
        assert_eq!(Rate::from_bps(-1.0), Rate::ZERO);
        assert!(Rate::from_bps(f64::INFINITY).as_bps().is_finite());
        assert_eq!(Bytes::new(1).time_at(Rate::ZERO), Duration::MAX);
        assert_eq!(Bytes::ZERO.time_at(Rate::ZERO), Duration::ZERO);
        assert_eq!(Rate::from_mbps(1.0) - Rate::from_mbps(2.0), Rate::ZERO);
        assert_eq!(Bytes::new(1) / 0, Bytes::MAX);
        assert_eq!(Bytes::new(1) / Duration::ZERO, Rate::ZERO);
    }
}
