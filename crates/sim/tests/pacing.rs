//! What it means to pace windows.

use std::path::Path;

use manypath_sim::run;

/// Mbit/s of 40 over a queue of this length, with a receiver that acknowledges ten packets at once.
fn goodput(queue: &str, paces: bool) -> f64 {
    let text = format!(
        "duration = \"30s\"\n[[link]]\nname = \"a\"\nrate = \"40Mbit\"\ndelay = \"15ms\"\nqueue = \"{queue}\"\n\
         [[connection]]\nname = \"c\"\ncc = \"cubic\"\npath = [{{ route = [\"a\"] }}]\nack-every = 10\n\
         max-ack-delay = \"5ms\"\npace-windows = {paces}\n"
    );
    let scenario = manypath_scenario::parse(&text, "pacing.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1).unwrap().goodput_bps / 1e6
}

#[test]
fn lumps_of_acknowledgements_overflow_a_shallow_queue_unless_windows_are_paced() {
    let (clocked, paced) = (goodput("10kB", false), goodput("10kB", true));
    assert!(clocked < 10.0 && paced > 25.0, "{clocked:.1} Mbit/s clocked, {paced:.1} paced");
}

#[test]
fn pacing_takes_nothing_from_a_deep_queue() {
    let (clocked, paced) = (goodput("200kB", false), goodput("200kB", true));
    assert!((paced / clocked - 1.0).abs() < 0.01, "{clocked:.1} Mbit/s clocked, {paced:.1} paced");
}
