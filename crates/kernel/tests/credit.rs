//! What a paced subflow may send at once because timers were late (`bpf/credit.h`), as compiled for the host.

mod twin;

use twin::{Dice, PathView};

/// `struct credit`.
#[derive(Default)]
#[repr(C)]
struct Credit {
    at_us: u64,
    sent: u64,
    bytes: i64,
}

unsafe extern "C" {
    fn host_credit(credit: *mut Credit, path: *const PathView, rate: u64) -> u64;
}

const MSS: u32 = 1448;
/// What TCP sends at once, bytes: less than that is not made good.
const PIECE: u64 = 65_536;
/// Bytes per second: a piece lasts for 52 us.
const RATE: u64 = 1_250_000_000;
/// What is made good at most, bytes: half a millisecond of it.
const MOST: u64 = RATE / 2000;

/// A subflow that has sent for a while.
struct Subflow {
    credit: Credit,
    path: PathView,
}

impl Subflow {
    /// At a moment when nothing is owed.
    fn new() -> Self {
        let path = PathView { now_us: 5_000_000, bytes_sent: 1 << 40, mss: MSS, ..PathView::default() };
        let credit = Credit { at_us: path.now_us, sent: path.bytes_sent, bytes: 0 };
        Self { credit, path }
    }

    /// Sends so many bytes in so many microseconds, at the end of which an acknowledgement comes; the packets that are owed.
    fn go_on(&mut self, microseconds: u64, bytes: u64, rate: u64) -> u64 {
        self.path.now_us += microseconds;
        self.path.bytes_sent += bytes;
        // SAFETY: it reads the path and reads and writes the credit.
        unsafe { host_credit(&raw mut self.credit, &raw const self.path, rate) }
    }
}

#[test]
fn timers_that_keep_the_rate_go_on() {
    let mut subflow = Subflow::new();
    assert!((0..10_000).all(|_| subflow.go_on(52, 52 * RATE / 1_000_000, RATE) == 0));
}

#[test]
fn what_late_timers_have_not_sent_is_owed() {
    let mut subflow = Subflow::new();
    // Each piece 30 us late, which is 37,500 bytes: after two there is more than a piece to be made good.
    let sent = 52 * RATE / 1_000_000;
    assert_eq!(subflow.go_on(52 + 30, sent, RATE), 0);
    let owed = subflow.go_on(52 + 30, sent, RATE);
    assert_eq!(owed, 75_000 / u64::from(MSS));
    assert_eq!(subflow.go_on(0, owed * u64::from(MSS), RATE), 0, "once");
}

#[test]
fn silence_earns_half_a_millisecond() {
    let mut subflow = Subflow::new();
    assert_eq!(subflow.go_on(60_000_000, 0, RATE), MOST / u64::from(MSS));
    assert_eq!(subflow.go_on(0, 0, RATE), MOST / u64::from(MSS));
}

#[test]
fn what_was_sent_too_fast_is_forgotten_after_half_a_millisecond() {
    let mut subflow = Subflow::new();
    assert_eq!(subflow.go_on(0, 1 << 30, RATE), 0);
    assert_eq!(subflow.go_on(500, 0, RATE), 0);
    assert_eq!(subflow.go_on(500, 0, RATE), MOST / u64::from(MSS));
}

#[test]
fn slow_subflows_are_left_to_timers() {
    // Half a millisecond of it is less than a piece.
    let slow = PIECE * 2000 - 1;
    let mut subflow = Subflow::new();
    assert_eq!(subflow.go_on(60_000_000, 0, slow), 0);
    assert_eq!(subflow.go_on(60_000_000, 0, 0), 0);
}

#[test]
fn no_rate_overflows() {
    let mut subflow = Subflow::new();
    assert!(subflow.go_on(u64::MAX / 2, 0, u64::MAX) > 0);
    assert_eq!(subflow.go_on(1, u64::from(u32::MAX), 1), 0);
}

#[test]
fn with_what_is_owed_the_rate_is_reached_and_kept() {
    let mut dice = Dice::new(7);
    for _ in 0..200 {
        let mut subflow = Subflow::new();
        let (start, before) = (subflow.path.now_us, subflow.path.bytes_sent);
        let mut next = 0;
        for _ in 0..2000 {
            // Acknowledgements come every 1 to 100 us; what they let leave, leaves.
            let owed = subflow.go_on(1 + dice.below(100), next, RATE);
            next = owed * u64::from(MSS);
            let sent = subflow.path.bytes_sent - before + next;
            let allowed = RATE * (subflow.path.now_us - start) / 1_000_000;
            assert!(sent <= allowed && allowed - sent < PIECE + u64::from(MSS), "{sent} of {allowed}");
        }
    }
}
