//! What a subflow may hold (`bpf/holding.h`), as compiled for the host.

mod twin;

use twin::MAX_SUBFLOWS;

unsafe extern "C" {
    safe fn host_most_unsent(window: u64, rtt_us: u64, longest_us: u64) -> u64;
    fn host_unsent_of_rate(rate: *const u64, rtt_us: *const u32, busy: u32) -> u32;
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
fn unsent_of_rate(subflows: &[(u64, u32)], busy: u32) -> u32 {
    let (mut rate, mut rtt_us) = ([0; MAX_SUBFLOWS], [0; MAX_SUBFLOWS]);
    for (place, subflow) in subflows.iter().enumerate() {
        (rate[place], rtt_us[place]) = *subflow;
    }
    // SAFETY: it reads as many rates and round trips as a connection has places.
    unsafe { host_unsent_of_rate(rate.as_ptr(), rtt_us.as_ptr(), busy) }
}

#[test]
fn little_waits_unsent_in_a_thin_subflow() {
    let (thin, thick) = ((125_000, 300_000), (12_500_000, 60_000));
    assert_eq!(unsent_of_rate(&[thin, thick], 0b11), 16_384);
    // With a short round trip: what lasts, with what is in flight, for two round trips of the other. 125 bytes a millisecond for 390.
    assert_eq!(unsent_of_rate(&[(125_000, 10_000), (12_500_000, 200_000)], 0b11), 48_750);
    // Two minutes at a terabit a second beside a million of them.
    let most = unsent_of_rate(&[(125_000_000_000, 1), (125_000_000_000_000_000, 60_000_000)], 0b11);
    assert_eq!(most, 1 << 29);
}

#[test]
fn a_subflow_with_a_fifth_of_the_rate_is_not_thin() {
    assert_eq!(unsent_of_rate(&[(999_999, 30_000), (4_000_001, 30_000)], 0b11), 29_999);
    assert_eq!(unsent_of_rate(&[(1_000_000, 30_000), (4_000_000, 30_000)], 0b11), u32::MAX);
    // Nor is one beside others that carry nothing, or alone.
    assert_eq!(unsent_of_rate(&[(125_000, 30_000), (12_500_000, 30_000)], 0b01), u32::MAX);
    assert_eq!(unsent_of_rate(&[(125_000, 30_000)], 0b1), u32::MAX);
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
