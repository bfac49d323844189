//! `buffers`: how much memory two paths need (STMS equations 1 to 4).
//!
//! Arguments `fast-rate`, `fast-rtt`, `slow-rate`, `slow-rtt`; symmetric paths. Quantities in bytes: `default` (eq. 1, the
//! default scheduler without opportunistic retransmission), `gap` (eq. 2), `stms` (eq. 3), `fallback` (eq. 4),
//! `fast_window` (what the fast path has in flight).

use manypath_theory::buffers::{Pair, Path};

use super::arguments::Arguments;
use crate::engine::EngineError;
use crate::quantities::Quantities;

pub(super) fn buffers(arguments: &Arguments) -> Result<Quantities, EngineError> {
    arguments.only(&["model", "fast-rate", "fast-rtt", "slow-rate", "slow-rtt"])?;
    let fast = Path::symmetric(arguments.rate("fast-rate")?, arguments.span("fast-rtt")?);
    let slow = Path::symmetric(arguments.rate("slow-rate")?, arguments.span("slow-rtt")?);
    let pair = Pair::new(fast, slow);
    let mut found = Quantities::default();
    let sizes = [
        ("default", pair.default_scheduler()),
        ("gap", pair.true_gap()),
        ("stms", pair.stms()),
        ("fallback", pair.fallback()),
        ("fast_window", fast.bandwidth * fast.rtt),
    ];
    for (name, size) in sizes {
        found.set(name, size.as_f64());
    }
    Ok(found)
}
