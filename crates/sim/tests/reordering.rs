//! Paths that reorder: what is late is not lost.

use std::path::Path;

use manypath_sim::run;

/// Goodput in Mbit/s of 50 over a round trip of 40 ms and more, where packets overtake each other by up to 20 ms.
fn goodput(transport: &str, cc: &str) -> f64 {
    let text = format!(
        "duration = \"30s\"\nwarmup = \"5s\"\n\
        [[link]]\nname = \"a\"\nrate = \"50Mbit\"\ndelay = \"20ms\"\nqueue = \"100ms\"\njitter = \"20ms\"\nreorder = true\n\
        [[connection]]\nname = \"c\"\ncc = \"{cc}\"\n{transport}\npath = [{{ route = [\"a\"] }}]\n"
    );
    let scenario = manypath_scenario::parse(&text, "reordering.toml", Path::new(".")).unwrap();
    run(&scenario, 1).unwrap().goodput_bps * 1e-6
}

/// RFC 8985 s6.2 step 4: a quarter of a round trip is 10 ms here.
#[test]
fn rack_learns_how_late_segments_are() {
    let tcp = |recovery| goodput(&format!("transport = \"tcp\"\nrecovery = \"{recovery}\""), "reno");
    let (rack, sack) = (tcp("rack"), tcp("sack"));
    assert!(rack > 35.0 && sack < 5.0, "{rack:.2} and {sack:.2} of 50 Mbit/s");
}

/// Three packets later is a third of a millisecond here, and an eighth of a round trip 5 ms.
#[test]
fn quic_learns_how_late_packets_are() {
    for cc in ["reno", "cubic", "bbr"] {
        let quic = goodput("transport = \"quic\"", cc);
        assert!(quic > 35.0, "{cc}: {quic:.2} of 50 Mbit/s");
    }
}
