//! Steady state allocates nothing per packet.

use std::path::Path;

use manypath_core::Duration;

#[test]
fn ten_more_seconds_cost_no_allocations() {
    let text =
        "duration = \"1s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"mp\"\nrole = \"mp\"\ncc = \"lia\"\n";
    let mut scenario = manypath_scenario::parse(text, "steady", Path::new(".")).unwrap();
    let mut cost = |seconds| {
        scenario.duration = Duration::from_secs(seconds);
        let mut packets = 0;
        let counts = allocation_counter::measure(|| {
            packets = manypath_sim::run(&scenario, 1).unwrap().connections[0].delivered_packets;
        });
        (packets, counts.count_total, counts.bytes_max)
    };
    let (short, long) = (cost(40), cost(50));
    assert!(long.0 - short.0 > 100_000, "{short:?} {long:?}");
    // Rings that grow to a new largest size now and then are not a cost per packet.
    assert!(long.1 - short.1 < 20, "{short:?} {long:?}");
    // Flat in simulated time, and small.
    assert!(long.2 < 32 << 20 && long.2 <= short.2 + (1 << 20), "{short:?} {long:?}");
}
