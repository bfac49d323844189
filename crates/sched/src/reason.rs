//! The words that several schedulers share when they say why they decided as they did.

use crate::queue::Queue;
use crate::scheduler::Choice;

/// Nothing was decided yet.
pub(crate) const NOTHING_YET: &str = "no decision yet";

/// A copy of what a subflow holds that is not heard.
pub(crate) const SILENT: &str = "copy of what a silent subflow holds";

/// A copy of what a much slower subflow carries.
pub(crate) const RESCUE: &str = "nothing else to send: copy of what a much slower subflow carries";

/// Why nothing could be sent whatever the rule: no data, no window, or no subflow with room.
pub(crate) fn of_wait(queue: &Queue) -> &'static str {
    if queue.has_pending() {
        "no subflow with room"
    } else if queue.is_window_blocked() {
        "receive window full"
    } else {
        "nothing to send"
    }
}

/// Why opportunistic retransmission chose as it did.
pub(crate) fn of_rescue(choice: Choice, queue: &Queue) -> &'static str {
    match choice {
        Choice::Duplicate { .. } => "window held up: copy of the oldest segment",
        Choice::Penalise { .. } => "window held up: its holder is penalised",
        _ => of_wait(queue),
    }
}
