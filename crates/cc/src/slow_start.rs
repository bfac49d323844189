//! How a subflow leaves slow start before packets are lost: not at all, by HyStart++, or by the classic hybrid slow start.

use manypath_core::{Params, SpecError, SubflowView, Time};

use crate::event::Acked;
use crate::hystart::{Growth, HyStart};
use crate::hystart_classic::ClassicHyStart;

/// The choice that a parameter makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Early {
    /// Slow start ends by a loss.
    #[default]
    Never,
    /// HyStart++ (RFC 9406), in the first slow start.
    PlusPlus,
    /// Hybrid slow start as in Linux' CUBIC, in every slow start.
    Classic,
}

impl Early {
    /// Reads the parameter `hystart`.
    ///
    /// # Errors
    /// If it is none of the choices.
    pub fn from_params(params: &Params<'_>) -> Result<Self, SpecError> {
        params.choice("hystart", &[("off", Self::Never), ("on", Self::PlusPlus), ("classic", Self::Classic)])
    }
}

/// The state of one subflow.
#[derive(Clone, Debug, PartialEq)]
pub enum SlowStart {
    /// Nothing to watch.
    Standard,
    /// HyStart++ in the first slow start.
    PlusPlus(HyStart),
    /// Classic hybrid slow start.
    Classic(ClassicHyStart),
}

impl SlowStart {
    /// Before the first acknowledgement.
    pub fn new(early: Early) -> Self {
        match early {
            Early::Never => Self::Standard,
            Early::PlusPlus => Self::PlusPlus(HyStart::default()),
            Early::Classic => Self::Classic(ClassicHyStart::default()),
        }
    }

    /// Takes an acknowledgement in slow start: when, the subflow after it, and the window in packets.
    pub fn on_ack(&mut self, now: Time, acked: &Acked, view: &SubflowView, window: f64) -> Growth {
        let growth = match self {
            Self::Standard => Growth::Grow(1.0),
            Self::PlusPlus(hystart) => hystart.on_ack(acked, view.delivered),
            Self::Classic(hystart) => hystart.on_ack(now, acked, view, window),
        };
        if growth == Growth::Exit {
            self.ended();
        }
        growth
    }

    /// Slow start has ended, or a loss has come: HyStart++ is for the first only (RFC 9406 s4.2), the classic one begins
    /// anew with the next.
    pub fn ended(&mut self) {
        *self = match self {
            Self::Standard | Self::PlusPlus(_) => Self::Standard,
            Self::Classic(_) => Self::Classic(ClassicHyStart::default()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_classic_one_begins_anew() {
        for (early, next) in [(Early::PlusPlus, Early::Never), (Early::Classic, Early::Classic)] {
            let mut slow_start = SlowStart::new(early);
            slow_start.ended();
            assert_eq!(slow_start, SlowStart::new(next));
        }
    }
}
