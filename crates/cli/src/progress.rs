//! How far a transfer is, and the bar that shows it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use manypath_quic::{Connection, ConnectionStats, PathState};

use crate::transfer::has_served;

/// A position in a file, written by the transfer and read by whoever shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position(Arc<AtomicU64>);

impl Position {
    /// Moves on by `bytes`.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Moves to `position`.
    pub(crate) fn set(&self, position: u64) {
        self.0.store(position, Ordering::Relaxed);
    }

    /// Where the transfer is.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Which end of a transfer this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Rates are of what is sent.
    Sending,
    /// Rates are of what is received.
    Receiving,
}

impl Side {
    /// What the connection has moved in this direction, each byte once.
    pub(crate) fn goodput(self, stats: &ConnectionStats) -> u64 {
        match self {
            Self::Sending => stats.delivered.get(),
            Self::Receiving => stats.received.get(),
        }
    }

    /// What one path has moved in this direction.
    pub(crate) fn bytes(self, stats: &ConnectionStats, path: usize) -> u64 {
        stats.paths.get(path).map_or(0, |path| match self {
            Self::Sending => path.bytes_sent.get(),
            Self::Receiving => path.bytes_received.get(),
        })
    }
}

/// The time between two pictures of the bar.
const REFRESH: Duration = Duration::from_millis(200);

/// The time over which the bar's rates are means.
const SMOOTHING: Duration = Duration::from_secs(1);

/// A bar for `size` bytes on standard error. Nothing is drawn where that is not a terminal.
pub(crate) fn bar(size: u64) -> ProgressBar {
    let bar = ProgressBar::new(size);
    let template = "{bar:24} {percent:>3}%  {bytes} of {total_bytes}  {eta} left  {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Keeps `bar` up to date; never returns, so run it beside the transfer.
pub(crate) async fn show(bar: &ProgressBar, connection: &Connection, side: Side, position: &Position) -> Infallible {
    let mut ticks = tokio::time::interval(REFRESH);
    let mut before = (Instant::now(), connection.stats());
    loop {
        ticks.tick().await;
        bar.set_position(position.get());
        let (elapsed, now) = (before.0.elapsed(), connection.stats());
        if elapsed >= SMOOTHING {
            bar.set_message(rates(&before.1, &now, side, elapsed).join("  "));
            before = (Instant::now(), now);
        }
    }
}

/// `wifi 48.1 Mbit/s` for every path.
fn rates(before: &ConnectionStats, now: &ConnectionStats, side: Side, elapsed: Duration) -> Vec<String> {
    let paths = now.paths.iter().enumerate().filter(|(_, path)| has_served(path));
    let texts = paths.map(|(index, path)| match path.state {
        PathState::Active => {
            let bytes = side.bytes(now, index).saturating_sub(side.bytes(before, index));
            format!("{} {:.1} Mbit/s", path.name, mbps(bytes, elapsed))
        }
        PathState::Connecting => format!("{} connecting", path.name),
        PathState::Failed => format!("{} silent", path.name),
        PathState::Removed => format!("{} gone", path.name),
    });
    texts.collect()
}

/// A rate in megabits (10^6 bits) per second; zero if no time has passed.
pub(crate) fn mbps(bytes: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { bytes as f64 * 8e-6 / elapsed.as_secs_f64() }
}

/// A time in milliseconds that fits the fields of 32 bits.
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal() {
        assert!((mbps(1_250_000, Duration::from_secs(1)) - 10.0).abs() < 1e-9);
        assert!(mbps(1, Duration::ZERO) < 1e-9);
    }
}
