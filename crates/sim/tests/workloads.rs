//! What applications write and when, against what can be worked out by hand.

use std::path::Path;

use manypath_sim::{ConnectionReport, Report, run};

/// A connection over a link of 10 Mbit/s and 10 ms.
fn simulate(top: &str, link: &str, connection: &str, seed: u64) -> Report {
    let text = format!(
        "{top}\n[[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\nqueue = \"100packets\"\n{link}\n\
         [[connection]]\nname = \"c\"\ncc = \"reno\"\npath = [{{ route = [\"a\"] }}]\n{connection}\n"
    );
    let scenario = manypath_scenario::parse(&text, "workloads.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, seed).unwrap()
}

fn connection(top: &str, link: &str, connection: &str) -> ConnectionReport {
    simulate(top, link, connection, 1).connections.remove(0)
}

/// Payload of a full packet.
const FULL: u64 = 1414;

/// How many packets leave within so many microseconds at a rate of bits per second: the first does at once.
const fn packets(rate: u64, micros: u64) -> u64 {
    rate * micros / 8_000_000 / FULL + 1
}

#[test]
fn a_rate_is_kept_from_the_start_on_in_full_packets() {
    let found = connection("duration = \"10s\"", "", "rate = \"5Mbit\"\nstart = \"3s\"");
    assert_eq!(found.delivered_bytes, found.delivered_packets * FULL);
    // The first packet leaves at 3 s, the last that arrives 11.2 ms before the end.
    assert_eq!(found.delivered_packets, packets(5_000_000, 7_000_000 - 11_200));
}

#[test]
fn what_a_rate_could_not_write_in_an_outage_is_written_afterwards() {
    let outage = "schedule = [{ at = \"2s\", rate = \"0bit\" }, { at = \"4s\", rate = \"10Mbit\" }]";
    let found = connection("duration = \"20s\"", outage, "rate = \"2Mbit\"\nsend-buffer = \"50kB\"");
    assert_eq!(found.delivered_bytes, packets(2_000_000, 20_000_000 - 11_200) * FULL);
}

#[test]
fn an_application_is_busy_and_silent_by_turns() {
    let times =
        "on-off = { on = \"1s\", off = \"2s\", timing = \"periodic\" }\nstart = \"10ms\"\nsend-buffer = \"30kB\"";
    let series = simulate("duration = \"6s\"\nsample = \"250ms\"", "", times, 1).series.unwrap();
    let sending = &series.connections[0].sending_bps;
    for (place, sent) in sending.iter().enumerate() {
        // What is in the send buffer at the end of a busy second leaves within 24 ms.
        match place % 12 {
            0..4 => assert!(*sent > 5e6, "{place}: {sending:?}"),
            4 => assert!(*sent < 1.2e6, "{place}: {sending:?}"),
            _ => assert!(*sent < 1.0, "{place}: {sending:?}"),
        }
    }
}

#[test]
fn times_are_of_the_seed_s_where_they_are_random_and_only_there() {
    let share = |timing: &str, seed| {
        let times = format!("on-off = {{ on = \"4s\", off = \"2s\", timing = \"{timing}\" }}\nsend-buffer = \"10kB\"");
        let slow = "schedule = [{ at = \"0s\", rate = \"1Mbit\" }]";
        simulate("duration = \"1200s\"", slow, &times, seed).connections[0].sending_bps / 1e6
    };
    assert_eq!(share("periodic", 1).to_bits(), share("periodic", 2).to_bits());
    let random = [1, 2, 3, 4].map(|seed| share("poisson", seed));
    assert!(random.windows(2).all(|pair| pair[0].to_bits() != pair[1].to_bits()), "{random:?}");
    // Two thirds of the time, by some 800 turns of each kind: a deviation of 2%.
    let mean = random.iter().sum::<f64>() / 4.0;
    assert!((mean / (2.0 / 3.0) - 1.0).abs() < 0.06, "{random:?}");
}

#[test]
fn files_arrive_at_equal_times_from_the_start_on_or_at_random_ones_after_it() {
    let starts = |timing: &str, stop: &str| -> Vec<f64> {
        let arrivals = format!("arrivals = {{ size = \"1kB\", every = \"100ms\", timing = \"{timing}\" }}");
        let found = connection("duration = \"300s\"", "", &format!("{arrivals}\nstart = \"1s\"\nstop = \"{stop}\""));
        found.files.iter().map(|file| file.start_s).collect()
    };
    // None begins at the very time of the stop.
    let equal = starts("periodic", "2s");
    assert_eq!(equal.len(), 10);
    assert!(equal.iter().zip(10..).all(|(found, tenths)| (found - f64::from(tenths) / 10.0).abs() < 1e-9), "{equal:?}");
    let random = starts("poisson", "201s");
    assert!(random[0] > 1.0);
    // 2000 are expected, give or take 45; of exponential gaps the mean square is twice the square of the mean.
    assert!(random.len().abs_diff(2_000) < 200, "{}", random.len());
    let gaps: Vec<f64> = random.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean_square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    assert!((mean_square / 0.02 - 1.0).abs() < 0.2, "{mean_square}");
}

#[test]
fn after_its_stop_an_application_writes_nothing() {
    for workload in ["", "on-off = { on = \"9s\", off = \"1s\", timing = \"periodic\" }"] {
        let found = connection("duration = \"6s\"", "", &format!("{workload}\nstop = \"2s\"\nsend-buffer = \"60kB\""));
        let seconds = found.sending_bps * 6.0 / 10e6;
        // Then the send buffer leaves in 50 ms.
        assert!(seconds > 1.8 && seconds < 2.06, "{workload}: {seconds}");
    }
    let found = connection("duration = \"6s\"", "", "rate = \"1Mbit\"\nstop = \"2s\"");
    assert_eq!(found.delivered_packets, packets(1_000_000, 2_000_000));
}

#[test]
fn files_beyond_what_flows_may_be_open_are_refused_and_counted() {
    let arrivals = "arrivals = { size = \"10kB\", every = \"1ms\", timing = \"periodic\" }";
    let found = connection("duration = \"5s\"", "schedule = [{ at = \"0s\", rate = \"0bit\" }]", arrivals);
    assert_eq!((found.files_refused, found.files.len()), (5_001 - 4_096, 0));
}

/// Mean time to complete bursts of 1 MB over WiFi and LTE, seconds. They are shorter than a round of probing there.
fn bursts_over_wifi_and_lte(wifi_rate: &str, schedule: &str, bursts: &str, seed: u64) -> f64 {
    let text = format!(
        "duration = \"60s\"\nwarmup = \"30s\"\n\
         [[link]]\nname = \"wifi\"\nrate = \"{wifi_rate}\"\ndelay = \"10ms\"\nqueue = \"100kB\"\nschedule = [{schedule}]\n\
         [[link]]\nname = \"lte\"\nrate = \"30Mbit\"\ndelay = \"40ms\"\nqueue = \"400kB\"\n\
         [[connection]]\nname = \"c\"\n\
         cc = \"mpcc-latency:slow-start=tolerant,brake=any,queue=heeded,low=near,bursts={bursts}\"\n\
         path = [{{ route = [\"wifi\"] }}, {{ route = [\"lte\"] }}]\n\
         arrivals = {{ size = \"1MB\", every = \"500ms\" }}\n"
    );
    let scenario = manypath_scenario::parse(&text, "bursts.toml", std::path::Path::new(".")).unwrap();
    let report = manypath_sim::run(&scenario, seed).unwrap();
    report.connections[0].file_summary.as_ref().unwrap().completion_mean_s
}

/// With `bursts=ignored` the rate stays what slow start found.
#[test]
fn mpcc_finds_what_a_path_has_come_to_carry_in_bursts_where_it_heeds_them() {
    let rises = "{ at = \"10s\", rate = \"80Mbit\" }";
    for seed in 1..4 {
        let [heeded, ignored] =
            ["heeded", "ignored"].map(|bursts| bursts_over_wifi_and_lte("10Mbit", rises, bursts, seed));
        assert!(heeded < 0.7 * ignored, "seed {seed}: {heeded} and {ignored} s");
    }
}

/// In one burst that meets little capacity WiFi's rate falls, and LTE is handed more than it can carry. No burst fills an interval after that.
#[test]
fn mpcc_gets_over_a_moment_of_little_capacity_in_bursts_where_it_heeds_them() {
    let dips = "{ at = \"10s\", rate = \"10Mbit\" }, { at = \"10.2s\", rate = \"50Mbit\" }";
    let (mut after, mut without) = (0.0, 0.0);
    for seed in 1..4 {
        after += bursts_over_wifi_and_lte("50Mbit", dips, "heeded", seed);
        without += bursts_over_wifi_and_lte("50Mbit", "", "heeded", seed);
    }
    assert!(after < 1.1 * without, "{after} and {without} s");
}
