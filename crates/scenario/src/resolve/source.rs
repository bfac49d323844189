//! Traffic that does not react.

use manypath_core::{Bytes, Duration, Time};

use super::names::Names;
use super::{MAX_PACKET, MIN_INTERVAL, check_name, out_of_range};
use crate::error::Problem;
use crate::file::SourceTable;
use crate::model::Source;
use crate::units::Timing;

pub(super) fn source(table: SourceTable, names: &Names) -> Result<Source, Problem> {
    check_name(&table.name)?;
    let route = names.route(&table.route)?;
    let packet = table.packet.map_or(Bytes::new(1500), |packet| packet.0);
    if packet.is_zero() || packet > MAX_PACKET {
        return Err(out_of_range("packet", packet, "1B to 65535B"));
    }
    let rate = table.rate.0;
    if rate.is_zero() || packet.time_at(rate) < Duration::from_nanos(1) {
        return Err(out_of_range("rate", rate, "above zero, and at most one packet a nanosecond"));
    }
    let on_off = table.on_off.map(|times| (times.on.0, times.off.0));
    if let Some((on, off)) = on_off.filter(|(on, off)| (*on).min(*off) < MIN_INTERVAL) {
        return Err(out_of_range("an interval", on.min(off), "at least 1us"));
    }
    let start = Time::ZERO + table.start.map_or(Duration::ZERO, |start| start.0);
    let stop = table.stop.map(|stop| Time::ZERO + stop.0);
    if let Some(stop) = stop.filter(|stop| *stop <= start) {
        return Err(out_of_range("stop", stop.since(Time::ZERO), "later than the start"));
    }
    Ok(Source { name: table.name, route, rate, packet, poisson: table.timing == Timing::Poisson, on_off, start, stop })
}
