//! Estimating the slow-start threshold from the first window's acknowledgements (Hoe, SIGCOMM 1996 s3.1).
//!
//! Packets sent closely spaced leave the bottleneck at its rate, and so do their acknowledgements: the slope of what was
//! acknowledged over time is the bottleneck's rate, and that rate times the smallest round-trip time is the window it holds.
//! Compressed acknowledgements give too much. Packets that left when the application had them tell how fast it writes: then there
//! is no estimate.

use manypath_core::{Bytes, Params, SpecError, Time};

use crate::event::Acked;

/// Acknowledgements of one estimate: Hoe uses three.
const CLOSE: usize = 3;

/// What is made of the estimates (TCCC s4.3 says: the larger in changing networks, the average in stable ones).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// One regression over all acknowledgements of the first window.
    #[default]
    Mean,
    /// The largest of the regressions over three acknowledgements in a row.
    Largest,
}

impl Choice {
    /// Reads the parameter `estimate`.
    ///
    /// # Errors
    /// If the value is out of range.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        params.choice("estimate", &[("mean", Self::Mean), ("largest", Self::Largest)])
    }
}

/// Least squares of bytes over seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slope {
    n: f64,
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
}

impl Slope {
    fn add(&mut self, (t, y): (f64, f64)) {
        self.n += 1.0;
        self.t += t;
        self.y += y;
        self.tt += t * t;
        self.ty += t * y;
    }

    /// Bytes per second; `None` from fewer than three points or all at one time.
    fn get(&self) -> Option<f64> {
        let stt = self.tt - self.t * self.t / self.n;
        let slope = (self.ty - self.t * self.y / self.n) / stt;
        (self.n >= CLOSE as f64 && stt > 0.0 && slope.is_finite() && slope > 0.0).then_some(slope)
    }
}

/// The estimator of one subflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hoe {
    choice: Choice,
    origin: Option<Time>,
    bytes: f64,
    /// Smallest round-trip time of the first window, seconds.
    rtt: f64,
    all: Slope,
    last: [(f64, f64); CLOSE],
    seen: usize,
    /// Largest slope of three points, bytes per second.
    largest: f64,
    done: bool,
}

impl Hoe {
    /// An estimator that has seen nothing.
    pub fn new(choice: Choice) -> Self {
        Self { choice, ..Self::default() }
    }

    /// Takes an acknowledgement; once, when the first window has been acknowledged, gives the threshold in bytes.
    pub fn on_ack(&mut self, now: Time, acked: &Acked) -> Option<f64> {
        if self.done {
            return None;
        }
        if acked.delivered_at_send > Bytes::ZERO {
            // A packet of the second window.
            self.done = true;
            let slope = match self.choice {
                Choice::Mean => self.all.get(),
                Choice::Largest => Some(self.largest).filter(|slope| *slope > 0.0),
            };
            return slope.map(|slope| slope * self.rtt);
        }
        if acked.app_limited {
            self.done = true;
            return None;
        }
        let rtt = acked.rtt.as_secs_f64();
        self.rtt = if self.seen == 0 { rtt } else { self.rtt.min(rtt) };
        self.bytes += acked.bytes.as_f64();
        let point = (now.since(*self.origin.get_or_insert(now)).as_secs_f64(), self.bytes);
        self.all.add(point);
        // Packets acknowledged together are one point, or three in a row would not span as many acknowledgements.
        let together = self.seen > 0 && self.last[(self.seen - 1) % CLOSE].0 >= point.0;
        self.seen += usize::from(!together);
        self.last[(self.seen - 1) % CLOSE] = point;
        if self.seen >= CLOSE {
            let mut close = Slope::default();
            self.last.iter().for_each(|point| close.add(*point));
            self.largest = self.largest.max(close.get().unwrap_or(0.0));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::{Duration, PacketNumber, Rate};

    use super::*;

    fn ack(delivered_at_send: u64, rtt_ms: u64) -> Acked {
        Acked {
            packet: PacketNumber(0),
            bytes: Bytes::new(1000),
            sent_at: Time::ZERO,
            rtt: Duration::from_millis(rtt_ms),
            delivery_rate: Rate::ZERO,
            delivered_at_send: Bytes::new(delivered_at_send),
            in_recovery: false,
            app_limited: false,
        }
    }

    fn estimate(choice: Choice, times_ms: &[u64]) -> Option<f64> {
        let mut hoe = Hoe::new(choice);
        for &at in times_ms {
            assert_eq!(hoe.on_ack(Time::from_millis(at), &ack(0, at)), None);
        }
        let found = hoe.on_ack(Time::from_millis(500), &ack(1000, 500));
        assert_eq!(hoe.on_ack(Time::from_millis(501), &ack(2000, 500)), None);
        found
    }

    #[test]
    fn evenly_spaced_acknowledgements() {
        // 1000 bytes every 2 ms = 500,000 B/s; times the first round trip of 100 ms = 50,000 bytes.
        let found = estimate(Choice::Mean, &[100, 102, 104, 106]).unwrap();
        assert!((found - 50_000.0).abs() < 1e-6);
    }

    #[test]
    fn the_largest_of_three_in_a_row() {
        // 0, 2, 4, 14 ms: the first three give 500 B/ms, the last three less.
        let largest = estimate(Choice::Largest, &[100, 102, 104, 114]).unwrap();
        assert!((largest - 50_000.0).abs() < 1e-6);
        // All four: t mean 5, y mean 2500; Sty = 5*1500 + 3*500 - 1*500 + 9*1500 = 22000; Stt = 25+9+1+81 = 116.
        let mean = estimate(Choice::Mean, &[100, 102, 104, 114]).unwrap();
        assert!((mean - 22_000.0 / 116.0 * 100.0).abs() < 1e-6);
    }

    #[test]
    fn packets_acknowledged_together_are_one_point_of_three() {
        // 2000 bytes every 2 ms = 1e6 B/s; times 100 ms.
        let largest = estimate(Choice::Largest, &[100, 100, 102, 102, 104, 104]).unwrap();
        assert!((largest - 100_000.0).abs() < 1e-6, "{largest}");
        // Two acknowledgements are no three, however many packets they cover.
        assert_eq!(estimate(Choice::Largest, &[100, 100, 102, 102]), None);
    }

    #[test]
    fn writes_of_the_application_are_no_estimate() {
        for choice in [Choice::Mean, Choice::Largest] {
            for limited in 0..3 {
                let mut hoe = Hoe::new(choice);
                // Three packets 30 ms apart would make a threshold of 1000 / 0.03 * 0.1 = 3333 bytes.
                for (index, at) in [100, 130, 160].into_iter().enumerate() {
                    let acked = Acked { app_limited: index == limited, ..ack(0, 100) };
                    assert_eq!(hoe.on_ack(Time::from_millis(at), &acked), None);
                }
                assert_eq!(hoe.on_ack(Time::from_millis(260), &ack(1000, 100)), None, "{choice:?}");
            }
        }
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(estimate(Choice::Mean, &[100, 102]), None);
        assert_eq!(estimate(Choice::Largest, &[100, 100, 100]), None);
    }
}
