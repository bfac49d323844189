//! What a subflow may hold (`bpf/holding.h`), as compiled for the host.

mod twin;

use twin::MAX_SUBFLOWS;

unsafe extern "C" {
    safe fn host_most_unsent(window: u64, rtt_us: u64, longest_us: u64) -> u64;
    fn host_unsent_if_slow(rate: *const u64, rtt_us: *const u32, busy: u32) -> u32;
    fn host_holding(rtt_us: *const u32, busy: u32, cwnd: u32, buffers: *mut u32) -> u64;
}

/// The longest round trip, microseconds, and the windows in the first one's send buffer.
fn holding(round_trips: &[u32], busy: u32, cwnd: u32) -> (u64, u32) {
    let mut rtt_us = [0; MAX_SUBFLOWS];
    rtt_us[..round_trips.len()].copy_from_slice(round_trips);
    let mut buffers = 0;
    // SAFETY: it reads as many round trips as a connection has places, and writes the one number.
    let longest = unsafe { host_holding(rtt_us.as_ptr(), busy, cwnd, &raw mut buffers) };
    (longest, buffers)
}

#[test]
fn what_waits_unsent_lasts_for_the_longest_round_trip() {
    // Ten windows are a tenth of the longest round trip each.
    assert_eq!(host_most_unsent(75_000, 20_000, 200_000), 750_000);
    assert_eq!(host_most_unsent(750_000, 200_000, 200_000), 750_000);
    // A window where no subflow is slower, or nothing is known.
    assert_eq!(host_most_unsent(75_000, 30_000, 30_000), 75_000);
    assert_eq!(host_most_unsent(75_000, 30_000, 0), 75_000);
    assert_eq!(host_most_unsent(75_000, 0, 200_000), 75_000);
    // But not less than 16 KB, and nothing that overflows.
    assert_eq!(host_most_unsent(2_896, 20_000, 60_000), 16_384);
    assert_eq!(host_most_unsent(1 << 31, 1, 60_000_000), 1 << 29);
}

/// What may wait unsent in the first of subflows with these rates in bytes a second and round trips in microseconds.
fn unsent_if_slow(subflows: &[(u64, u32)], busy: u32) -> u32 {
    let (mut rate, mut rtt_us) = ([0; MAX_SUBFLOWS], [0; MAX_SUBFLOWS]);
    for (place, subflow) in subflows.iter().enumerate() {
        (rate[place], rtt_us[place]) = *subflow;
    }
    // SAFETY: it reads as many rates and round trips as a connection has places.
    unsafe { host_unsent_if_slow(rate.as_ptr(), rtt_us.as_ptr(), busy) }
}

#[test]
fn what_waits_in_a_slow_subflow_lasts_for_three_round_trips_of_the_others() {
    // One of its own is in flight: 125 bytes a millisecond for 590.
    assert_eq!(unsent_if_slow(&[(125_000, 10_000), (12_500_000, 200_000)], 0b11), 73_750);
    // The longest counts, of those that carry something.
    let three = [(125_000, 10_000), (12_500_000, 200_000), (125_000, 400_000)];
    assert_eq!(unsent_if_slow(&three, 0b111), 148_750);
    assert_eq!(unsent_if_slow(&three, 0b011), 73_750);
}

#[test]
fn what_waits_in_a_slow_subflow_lasts_for_a_tenth_of_a_second_and_is_16_kilobytes_at_least() {
    assert_eq!(unsent_if_slow(&[(500_000, 80_000), (12_500_000, 30_000)], 0b11), 50_000);
    assert_eq!(unsent_if_slow(&[(125_000, 300_000), (12_500_000, 30_000)], 0b11), 16_384);
    // A terabit a second, beside two minutes: nothing overflows.
    assert_eq!(unsent_if_slow(&[(125_000_000_000, 1), (1_000_000_000_000, 120_000_000)], 0b11), 1 << 29);
}

#[test]
fn a_subflow_that_is_not_slow_has_no_such_bound() {
    assert_eq!(unsent_if_slow(&[(1_000_000, 30_000), (2_000_002, 30_000)], 0b11), 100_000);
    assert_eq!(unsent_if_slow(&[(1_000_000, 30_000), (2_000_000, 30_000)], 0b11), u32::MAX);
    // Nor one beside others that carry nothing, or alone.
    assert_eq!(unsent_if_slow(&[(125_000, 30_000), (12_500_000, 30_000)], 0b01), u32::MAX);
    assert_eq!(unsent_if_slow(&[(125_000, 30_000)], 0b1), u32::MAX);
}

#[test]
fn subflows_that_carry_nothing_do_not_count() {
    let round_trips = [20_000, 200_000, 900_000];
    assert_eq!(holding(&round_trips, 0b111, 50).0, 900_000);
    assert_eq!(holding(&round_trips, 0b011, 50).0, 200_000);
    assert_eq!(holding(&round_trips, 0b001, 50).0, 20_000);
}

#[test]
fn the_send_buffer_outlasts_what_the_others_hold() {
    // Two windows are held and sent for 30 ms each; so are 32 KB, for 20 ms: three round trips, twice.
    assert_eq!(holding(&[30_000, 30_000], 0b11, 50).1, 6);
    // The slow one holds two windows of 200 ms, and 32 KB for 131 ms: 27 round trips of 20 ms.
    assert_eq!(holding(&[20_000, 200_000], 0b11, 50).1, 54);
    // The fast one holds a round trip of the slow one's: less than two of these.
    assert_eq!(holding(&[200_000, 20_000], 0b11, 50).1, 4);
    assert_eq!(holding(&[20_000], 0b1, 50).1, 2);
}
