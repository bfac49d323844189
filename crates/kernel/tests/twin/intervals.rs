//! Monitor intervals drawn at random: for `manypath-cc` packets that are sent, acknowledged and lost; for the programs the numbers
//! that these make.

use manypath_cc::{Acked, Event};
use manypath_core::{Bytes, Duration, PacketNumber, Rate, Time};

use super::{Dice, Real, Report, real};

pub const MSS: u64 = 1250;
pub const SRTT: Duration = Duration::from_millis(40);
/// Packets of an interval: a number that makes no share of them 15%, where slow start of MPCC's release turns.
pub const PACKETS: u64 = 23;
/// Round-trip time of an interval's first packet, nanoseconds.
const BASE_RTT: f64 = 4e7;

/// What an interval shows.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub lost: u64,
    /// Whether what is lost was not sent one after another.
    pub scattered: bool,
    pub slope: f64,
    pub filled: bool,
    pub app_limited: bool,
    /// Whether the application ends it early, and it is sent at its rate until then.
    pub cut_short: bool,
}

/// An interval that has been sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    shown: Interval,
    first: u64,
    start: Time,
    /// Nanoseconds between its packets.
    gap: u64,
    bytes: u64,
    /// Mbit/s.
    rate: f64,
}

impl Interval {
    /// Whether so much was lost that the rate was too high, or nothing arrived for a moment.
    pub fn is_overload(&self) -> bool {
        self.lost * 10 > PACKETS * 3
    }

    /// At a rate in Mbit/s. Losses of up to 10%, rarely more; slopes of up to 0.4, a third of them none.
    pub fn draw(dice: &mut Dice, rate: f64) -> Self {
        let lost = match dice.below(8) {
            0..5 => 0,
            5..7 => dice.below(3),
            _ => dice.below(PACKETS + 1),
        };
        let slope = match dice.below(3) {
            0 => 0.0,
            _ => 0.4 * (2.0 * dice.unit() - 1.0),
        };
        // Below some rate, one packet more would fill any interval (`Report::is_filled`).
        let filled = rate < 1.0 || dice.below(16) > 0;
        let app_limited = !filled && dice.below(2) == 0;
        let scattered = dice.below(2) == 0;
        Self { lost, scattered, slope, filled, app_limited, cut_short: app_limited && dice.below(2) == 0 }
    }

    /// Sends it at a rate in Mbit/s over `length` round-trip times: its first packet opens it, its last closes it, unless it is cut short.
    pub fn send(
        self,
        now: &mut Time,
        next_packet: &mut u64,
        rate: f64,
        length: f64,
        mut event: impl FnMut(Time, Event),
    ) -> Sent {
        let whole = SRTT.mul_f64(length).as_nanos() / (PACKETS - 1) + 1;
        let gap = if self.cut_short { whole / 3 } else { whole };
        // A little above its rate, or far below. Any size does where there is no rate.
        let share = if self.filled || self.cut_short { 1.01 } else { 0.3 };
        let bits = share * rate * 1e6 * (gap * (PACKETS - 1)) as f64 / 1e9;
        let bytes = ((bits / 8.0 / PACKETS as f64).ceil() as u64).max(1);
        let (first, start) = (*next_packet, *now);
        for index in 0..PACKETS {
            if index > 0 {
                *now = Time::from_nanos(now.as_nanos() + gap);
            }
            let app_limited = self.app_limited && index == 0;
            event(*now, Event::Sent { packet: PacketNumber(*next_packet), bytes: Bytes::new(bytes), app_limited });
            *next_packet += 1;
        }
        if self.cut_short {
            *now = Time::from_nanos(now.as_nanos() + (whole - gap) * (PACKETS - 1));
        }
        Sent { shown: self, first, start, gap, bytes, rate }
    }
}

impl Sent {
    /// Round-trip time of a packet, whole nanoseconds.
    fn rtt(&self, index: u64) -> u64 {
        (BASE_RTT + self.shown.slope * (index * self.gap) as f64) as u64
    }

    fn acked(&self) -> u64 {
        PACKETS - self.shown.lost
    }

    /// Acknowledges its packets, the last of them lost. No window grows on them. Scattered losses are told from the last one on, so that
    /// none follows the one before it.
    pub fn settle(&self, mut event: impl FnMut(Event)) {
        for turn in 0..PACKETS {
            let is_backward = self.shown.scattered && turn >= self.acked();
            let index = if is_backward { PACKETS - 1 - (turn - self.acked()) } else { turn };
            let (packet, bytes) = (PacketNumber(self.first + index), Bytes::new(self.bytes));
            let sent_at = Time::from_nanos(1_000_000_000 + index * self.gap);
            event(if index >= self.acked() {
                Event::Lost { packet, bytes, sent_at }
            } else {
                Event::Acked(Acked {
                    packet,
                    bytes,
                    sent_at,
                    rtt: Duration::from_nanos(self.rtt(index)),
                    delivery_rate: Rate::ZERO,
                    delivered_at_send: Bytes::ZERO,
                    in_recovery: true,
                    app_limited: false,
                })
            });
        }
    }

    /// How fast its packets arrived, by their acknowledgements.
    fn arrival(&self) -> Real {
        let Some(more) = self.acked().checked_sub(1).filter(|more| *more > 0) else { return 0 };
        let span = more * self.gap + self.rtt(more) - self.rtt(0);
        real((more * self.bytes * 8) as f64 * 1e3 / span as f64)
    }

    /// What the programs' monitor would report.
    pub fn report(&self, epoch: u32, index: u32) -> Report {
        // Fewer than three samples make no slope, and the last of what the application limited is none.
        let samples = self.acked().saturating_sub(u64::from(self.shown.app_limited));
        let slope = if self.shown.slope.abs() < 0.01 || samples < 3 { 0.0 } else { self.shown.slope };
        let sum: f64 = (0..self.acked()).map(|index| self.rtt(index) as f64).sum();
        Report {
            epoch,
            index,
            rate: real(self.rate),
            loss: real(self.shown.lost as f64 / PACKETS as f64),
            slope: real(slope.abs()),
            negative: u64::from(slope < 0.0),
            rtt: if self.acked() == 0 { 0 } else { real(sum / 1000.0 / self.acked() as f64) },
            arrival: self.arrival(),
            filled: u32::from(self.shown.filled),
            app_limited: u32::from(self.shown.app_limited),
            overload: u32::from(self.shown.is_overload()),
            packets: PACKETS as u32,
            cut_short: u32::from(self.shown.cut_short),
            is_gap: u32::from(self.shown.is_overload() && !self.shown.scattered),
            start_us: self.start.as_nanos() / 1000,
        }
    }
}
