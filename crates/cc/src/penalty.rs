//! The penalty of the default scheduler of Linux' Multipath TCP, for controllers with a window.

/// The smallest threshold that a penalty leaves, packets.
const MIN_SSTHRESH: f64 = 2.0;

/// Window and slow-start threshold of a penalised subflow, in units of which `packet` is a packet's size. Linux MPTCP 0.9x
/// halves the window, and the threshold only after slow start, whatever the controller takes for a loss.
pub(crate) fn penalised(cwnd: f64, ssthresh: f64, packet: f64) -> (f64, f64) {
    let ssthresh = if cwnd < ssthresh { ssthresh } else { (ssthresh / 2.0).max(MIN_SSTHRESH * packet) };
    ((cwnd / 2.0).max(packet), ssthresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_penalty_leaves_a_packet_and_a_threshold_of_two() {
        assert_eq!(penalised(1500.0, 1500.0, 1000.0), (1000.0, 2000.0));
    }
}
