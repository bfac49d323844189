//! What schedulers make of paths that differ, where it takes the session and time to show.

use std::path::Path;

use manypath_sim::run;

/// Goodput in Mbit/s of a connection over these links, given as rate, delay, queue and more lines.
fn goodput(links: &[(&str, &str, &str, &str)], connection: &str) -> f64 {
    let mut text = "duration = \"30s\"\nwarmup = \"5s\"\n".to_owned();
    for (index, (rate, delay, queue, more)) in links.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{index}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n{more}\n"
        );
    }
    text += &format!("[[connection]]\nname = \"c\"\n{connection}\n");
    for index in 0..links.len() {
        text += &format!("[[connection.path]]\nroute = [\"l{index}\"]\n");
    }
    let scenario = manypath_scenario::parse(&text, "schedulers.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1).unwrap().goodput_bps / 1e6
}

/// A copy in the queue of a path of 2 Mbit/s must not take the place of a repair.
#[test]
fn redundant_carries_what_its_fastest_path_does() {
    let links = [("50Mbit", "10ms", "100packets", "loss = \"0.02%\""), ("2Mbit", "30ms", "1000packets", "")];
    let connection = "cc = \"cubic\"\nscheduler = \"redundant\"\nsend-buffer = \"1MiB\"\nreceive-buffer = \"1MiB\"";
    let (alone, both) = (goodput(&links[..1], connection), goodput(&links, connection));
    assert!(both > 0.95 * alone, "{both:.1} Mbit/s over both, {alone:.1} over the fast one alone");
}

/// What is lost holds up all that was sent after it: with small buffers that is the connection.
#[test]
fn a_slow_path_beside_a_lossy_fast_one_costs_nothing_where_the_scheduler_minds_the_window() {
    let links = [("52Mbit", "10ms", "50packets", "loss = \"0.05%\""), ("21Mbit", "40ms", "100packets", "")];
    let buffers = "cc = \"cubic\"\nsend-buffer = \"256KiB\"\nreceive-buffer = \"256KiB\"";
    let alone = goodput(&links[..1], buffers);
    for scheduler in ["ecf", "blest"] {
        let both = goodput(&links, &format!("{buffers}\nscheduler = \"{scheduler}\""));
        assert!(both > 0.97 * alone, "{scheduler}: {both:.1} Mbit/s over both, {alone:.1} over the fast one alone");
    }
}
