//! From values to places along an axis, and where its ticks are.

use super::Axis;

/// An axis with its range, laid along a number of pixels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Pixel of the low end and of the high end.
    ends: (f64, f64),
}

/// A tick and its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

impl Scale {
    /// The scale of an axis that shows these values.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, ends: (f64, f64)) -> Self {
        let shown = values.filter(|value| value.is_finite() && (*value > 0.0 || !axis.log));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = axis.range.unwrap_or(if low > high {
            (1.0, 10.0)
        } else if axis.log || axis.tight {
            (low, high)
        } else {
            (low.min(0.0), high.max(0.0))
        });
        let (low, high) = if axis.log { (low.log10(), high.log10()) } else { (low, high) };
        let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
        // Room above, so that a line at the top is seen; the horizontal axis of time ends where it ends.
        let high = if axis.range.is_some() || axis.tight { high } else { high + (high - low) * 0.04 };
        Self { low, high, log: axis.log, ends }
    }

    /// Where bars begin: zero, or the end of the axis that is nearest to it.
    pub(super) fn base(&self) -> f64 {
        if self.log { 10_f64.powf(self.low) } else { 0.0_f64.clamp(self.low, self.high) }
    }

    /// The pixel of a value; `None` if it cannot be drawn.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        let (from, to) = self.ends;
        // A little outside is cut away; far outside is not worth a number with many digits.
        share.is_finite().then(|| from + share.clamp(-10.0, 10.0) * (to - from))
    }

    /// About `count` ticks.
    pub(super) fn ticks(&self, count: f64) -> Vec<Tick> {
        if self.log && self.high - self.low >= 1.0 { self.decades(count) } else { self.steps(count) }
    }

    /// Ticks at multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self, count: f64) -> Vec<Tick> {
        let (low, high) =
            if self.log { (10_f64.powf(self.low), 10_f64.powf(self.high)) } else { (self.low, self.high) };
        let raw = (high - low) / count.max(1.0);
        let power = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= raw * 0.999);
        let step = step.unwrap_or(power);
        if !step.is_normal() {
            return Vec::new();
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few digits
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        let mut ticks = Vec::new();
        let mut index = first;
        while index <= last && ticks.len() < 100 {
            // Adding zero turns -0 into 0.
            let value = index * step + 0.0;
            ticks.extend(self.place(value).map(|at| Tick { at, label: plain(value, digits) }));
            index += 1.0;
        }
        ticks
    }

    /// Ticks at powers of ten; where those are few, at twice and five times them too.
    fn decades(&self, count: f64) -> Vec<Tick> {
        let (first, last) = ((self.low - 1e-9).ceil(), (self.high + 1e-9).floor());
        if last - first < 2.0 {
            let powers = [self.low.floor(), self.low.floor() + 1.0, self.low.floor() + 2.0, self.low.floor() + 3.0];
            let values =
                powers.iter().flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit * 10_f64.powf(*power), *power)));
            let inside = |value: f64| (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10());
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 308
            let label = |(value, power): (f64, f64)| plain(value, (-power).clamp(0.0, 12.0) as usize);
            let ticks = values.filter(|(value, _)| inside(*value));
            return ticks.filter_map(|tick| Some(Tick { at: self.place(tick.0)?, label: label(tick) })).collect();
        }
        let every = ((last - first) / count.max(1.0)).ceil().max(1.0);
        let mut ticks = Vec::new();
        let mut power = first;
        while power <= last && ticks.len() < 100 {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 308
            let digits = (-power).clamp(0.0, 12.0) as usize;
            let value = 10_f64.powf(power);
            ticks.extend(self.place(value).map(|at| Tick { at, label: plain(value, digits) }));
            power += every;
        }
        ticks
    }
}

/// A number with so many decimals, or in powers of ten where it would be long.
fn plain(value: f64, digits: usize) -> String {
    if value.abs() >= 1e7 || (digits > 6 && value.abs() > 0.0) {
        format!("{value:e}")
    } else {
        format!("{value:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], count: f64) -> Vec<String> {
        let scale = Scale::new(axis, values.iter().copied(), (0.0, 100.0));
        scale.ticks(count).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let axis = Axis::new("y");
        assert_eq!(labels(&axis, &[3.0, 97.0], 6.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&axis, &[0.031, 0.048], 5.0), ["0.00", "0.01", "0.02", "0.03", "0.04"]);
        assert_eq!(labels(&axis, &[-1.0, 1.0], 5.0), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        let tight = Axis { tight: true, ..Axis::new("x") };
        assert_eq!(labels(&tight, &[30.0, 60.0], 4.0), ["30", "40", "50", "60"]);
        let log = Axis { log: true, ..Axis::new("y") };
        assert_eq!(labels(&log, &[0.01, 1000.0, -1.0, 0.0], 6.0), ["0.01", "0.1", "1", "10", "100", "1000"]);
        assert_eq!(labels(&log, &[200.0, 900.0], 4.0), ["200", "400", "600", "800"]);
        assert_eq!(labels(&log, &[40.0, 1200.0], 8.0), ["50", "100", "200", "500", "1000"]);
        assert_eq!(labels(&log, &[0.4, 6.0], 8.0), ["0.5", "1", "2", "5"]);
        assert_eq!(labels(&log, &[10.0, 1e8], 8.0).last().unwrap(), "1e8");
    }

    #[test]
    fn nothing_to_show_is_no_fault() {
        let axis = Axis::new("y");
        for values in [&[][..], &[f64::NAN], &[f64::INFINITY], &[0.0], &[5.0, 5.0], &[1e308, -1e308], &[1e-320]] {
            let scale = Scale::new(&axis, values.iter().copied(), (0.0, 100.0));
            assert!(scale.ticks(5.0).len() <= 100, "{values:?}");
            assert!(scale.place(0.0).is_none_or(f64::is_finite));
        }
        assert!(labels(&Axis { log: true, ..axis }, &[-1.0], 5.0).len() > 1);
    }

    #[test]
    fn places_are_along_the_ends() {
        let axis = Axis { range: Some((0.0, 10.0)), ..Axis::new("y") };
        let scale = Scale::new(&axis, [].into_iter(), (200.0, 100.0));
        assert_eq!(scale.place(0.0), Some(200.0));
        assert_eq!(scale.place(5.0), Some(150.0));
        assert_eq!(scale.place(f64::NAN), None);
        let log = Axis { log: true, range: Some((1.0, 100.0)), ..Axis::new("y") };
        assert_eq!(Scale::new(&log, [].into_iter(), (0.0, 100.0)).place(10.0), Some(50.0));
    }
}
