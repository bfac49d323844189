//! What reports say, against what can be worked out by hand.

use std::path::Path;

use manypath_sim::{Report, run};

fn simulate(text: &str, seed: u64) -> Report {
    let scenario = manypath_scenario::parse(text, "measures.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, seed).unwrap()
}

/// Link `a` of 10 Mbit/s and 10 ms with a queue of 100 packets.
fn link(top: &str, more: &str) -> String {
    format!(
        "{top}\n[[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\nqueue = \"100packets\"\n{more}\n\
         [[connection]]\nname = \"c\"\ncc = \"reno\"\n"
    )
}

const PATH: &str = "path = [{ route = [\"a\"], cost = 2.5 }]\n";

#[test]
fn losses_are_charged_to_the_subflow_by_cause() {
    let top = "duration = \"20s\"\nwarmup = \"2s\"\nsample = \"100ms\"";
    let report = simulate(&(link(top, "loss = \"1%\"") + PATH), 1);
    let (subflow, there) = (&report.connections[0].subflows[0], &report.links[0]);
    // All that goes over the link are this subflow's data packets.
    assert_eq!(subflow.dropped_random, there.dropped_random);
    assert_eq!(subflow.dropped_queue_full, there.dropped_queue_full);
    assert!(subflow.dropped_random > 20, "{subflow:?}");
    // Each is resent once, but for those of the last moments and those lost again.
    assert!(subflow.repeated_packets.abs_diff(subflow.dropped_random) < 10, "{subflow:?}");
    let series = report.series.unwrap();
    let all: u64 = series.connections[0].subflows[0].dropped.random.iter().sum();
    assert!(all >= subflow.dropped_random && all == series.links[0].dropped.random.iter().sum::<u64>());
}

#[test]
fn utilisation_is_of_the_rates_that_were_drawn() {
    let redraw = "redraw = { every = \"2s\", rate = { between = [\"60Mbit\", \"80Mbit\"] } }";
    let report = simulate(&(link("duration = \"10s\"\nsample = \"1s\"", redraw) + PATH), 3);
    let (whole, series) = (report.links[0].utilisation, &report.series.as_ref().unwrap().links[0].utilisation);
    assert!(whole > 0.5 && whole < 1.0, "{whole}");
    assert!(series.iter().all(|share| *share <= 1.0), "{series:?}");
    // Draws below the rate of the table, which is never in force: the link is full once the window has grown.
    let redraw = "redraw = { every = \"2s\", rate = { between = [\"1Mbit\", \"1Mbit\"] } }";
    let report = simulate(&(link("duration = \"10s\"\nwarmup = \"2s\"\nsample = \"1s\"", redraw) + PATH), 3);
    let (whole, series) = (report.links[0].utilisation, &report.series.as_ref().unwrap().links[0].utilisation);
    assert!(whole > 0.98 && series[5] > 0.98, "{whole} {series:?}");
    // A rate that comes when the run is over.
    let later = "schedule = [{ at = \"5s\", rate = \"8Mbit\" }, { at = \"10s\", rate = \"1Gbit\" }]";
    let report = simulate(&(link("duration = \"10s\"\nwarmup = \"2s\"\nsample = \"1s\"", later) + PATH), 3);
    let (whole, series) = (report.links[0].utilisation, &report.series.as_ref().unwrap().links[0].utilisation);
    assert!(whole > 0.8 && series[3] > 0.98, "{whole} {series:?}");
    // A link that is never up.
    let report = simulate(&(link("duration = \"1s\"", "schedule = [{ at = \"0s\", rate = \"0Mbit\" }]") + PATH), 3);
    assert!(report.links[0].utilisation == 0.0 && report.links[0].delivered_bytes == 0, "{:?}", report.links[0]);
}

/// The shortest queues that scenarios take on the way back: acknowledgements pass, one at a time.
#[test]
fn the_smallest_acknowledgement_is_as_large_as_scenarios_take_it_for() {
    for (queue, transport) in [("84B", ""), ("68B", "transport = \"tcp\"\n")] {
        let back = format!("back = {{ queue = \"{queue}\" }}");
        let report = simulate(&(link("duration = \"5s\"", &back) + "overhead = \"60B\"\n" + transport + PATH), 1);
        assert!(report.links[1].delivered_bytes > 0, "{queue}: {:?}", report.links[1]);
    }
}

#[test]
fn series_add_up_to_summaries() {
    let top = "duration = \"10s\"\nsample = \"50ms\"";
    let report = simulate(&(link(top, "loss = \"0.5%\"") + PATH), 3);
    let (connection, series) = (&report.connections[0], report.series.as_ref().unwrap());
    let of = &series.connections[0];
    let count = series.time_s.len();
    assert_eq!(series.time_s[5].to_string(), "0.3", "times are as people write them");
    assert_eq!(count, 200);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(near(mean(&of.goodput_bps), connection.goodput_bps));
    assert!(near(mean(&of.sending_bps), connection.sending_bps));
    assert!(near(mean(&of.cost_per_s), connection.cost_per_s));
    assert!(near(connection.cost_per_s, connection.sending_bps / 8.0 * 2.5));
    assert!(near(mean(&series.links[0].utilisation), report.links[0].utilisation));
    assert_eq!(of.retransmitted_bytes.iter().sum::<u64>(), connection.retransmitted_bytes);
    // A connection alone has all there is.
    assert!(series.jain.iter().all(|jain| jain.is_nan() || near(*jain, 1.0)));
    // Every list has a value for each time.
    let subflow = &of.subflows[0];
    for list in [&of.out_of_order_delay_s, &of.write_to_delivery_s, &of.data_ack_jump_bytes, &subflow.free_window_bytes]
    {
        assert_eq!(list.len(), count);
    }
    for list in [&subflow.srtt_s, &subflow.one_way_delay_s, &subflow.pacing_bps, &series.links[0].queueing_s] {
        assert_eq!(list.len(), count);
    }
    assert!(!subflow.inspected.is_empty() && subflow.inspected.values().all(|values| values.len() == count));
}

#[test]
fn delays_are_those_of_the_path() {
    let top = "duration = \"10s\"\nwarmup = \"1s\"\nsample = \"100ms\"";
    let text = link(top, "") + PATH + "rate = \"5Mbit\"\n";
    let report = simulate(&text, 1);
    let measures = report.connections[0].subflows[0].measures.unwrap();
    // 1500 bytes at 10 Mbit/s take 1.2 ms, and 10 ms of propagation; send times are microseconds.
    let delay = measures.one_way_delay_s;
    assert!((delay.mean.unwrap() - 0.0112).abs() < 2e-6 && (delay.max.unwrap() - 0.0112).abs() < 2e-6, "{delay:?}");
    // A sender at half the rate hardly uses its window: what is free is nearly all of it.
    let (free, cwnd) = (measures.free_window_bytes, measures.cwnd_bytes);
    assert!(free.mean.unwrap() > 0.0 && free.mean.unwrap() <= cwnd.mean.unwrap(), "{measures:?}");
    assert!(measures.pacing_bps.mean.is_none(), "reno is not paced");
    // No jump is larger than what one acknowledgement covers: two packets of 1414 bytes of payload.
    let jump = report.connections[0].measures.unwrap().data_ack_jump_bytes;
    assert!(jump.max.unwrap() <= 2.0 * 1414.0, "{jump:?}");
    // Those that move nothing are none.
    assert!(jump.mean.unwrap() >= 1414.0, "{jump:?}");
}

/// What the window has room for, once a round trip.
#[test]
fn a_receive_buffer_lets_through_its_size_in_a_round_trip() {
    let long = link("duration = \"30s\"\nwarmup = \"5s\"", "").replace("10Mbit", "100Mbit").replace("10ms", "50ms");
    for transport in ["quic", "tcp"] {
        let buffers = format!("receive-buffer = \"200kB\"\nsend-buffer = \"4MB\"\ntransport = \"{transport}\"\n");
        let report = simulate(&(long.clone() + PATH + &buffers), 1);
        let share = report.goodput_bps * 0.1 / (200_000.0 * 8.0);
        assert!((0.97..=1.0).contains(&share), "{transport}: {share:.3} of the window in a round trip");
    }
}

/// The other way a packet is lost that ends the flow of the data's receiver: no data of the sender.
#[test]
fn what_is_lost_on_the_way_back_is_not_the_sender_s() {
    let back = "back = { rate = \"10Mbit\", loss = \"20%\" }\n";
    let arrivals = "arrivals = { size = \"1kB\", every = \"50ms\" }\ntransport = \"tcp\"\n";
    let report = simulate(&(link("duration = \"20s\"", back) + PATH + arrivals), 1);
    let lost_back = report.links[1].dropped_random;
    let lost = report.connections[0].subflows[0].dropped_random;
    assert!(lost_back > 20 && lost == 0, "{lost} of the sender's, {lost_back} on the way back");
}

#[test]
fn a_file_that_is_cut_short_has_no_completion_time() {
    let file = "file = \"100MB\"\nstop = \"5s\"\n";
    let report = simulate(&(link("duration = \"40s\"", "") + PATH + file), 1);
    assert!(report.connections[0].delivered_bytes > 5_000_000);
    assert!(report.connections[0].files.is_empty());
}

#[test]
fn the_queue_over_time_is_the_queue() {
    // A window of 100 packets over a path that holds 17.7: the rest waits at the link.
    let top = "duration = \"10s\"\nwarmup = \"2s\"\nsample = \"100ms\"";
    let text = link(top, "") + PATH + "receive-buffer = \"72kB\"\nsend-buffer = \"1MB\"\n";
    let report = simulate(&text, 1);
    let series = report.series.unwrap();
    let queueing = &series.links[0].queueing_s[20..];
    let mean = queueing.iter().sum::<f64>() / queueing.len() as f64;
    assert!((mean / report.links[0].queueing_mean_s.unwrap() - 1.0).abs() < 0.01, "{mean}");
    // Little's law over the same stretch: bytes waiting are the rate times the wait.
    let queue = &series.links[0].queue_bytes[20..];
    let bytes = queue.iter().sum::<u64>() as f64 / queue.len() as f64;
    let expected = mean * 10e6 / 8.0;
    assert!((bytes - expected).abs() < 3.0 * 1500.0, "{bytes} bytes, {expected} expected");
}

#[test]
fn files_of_any_number_are_summed_up() {
    let arrivals = "arrivals = { size = \"1kB\", every = \"5ms\" }\n";
    let report = simulate(&(link("duration = \"80s\"\nwarmup = \"1s\"", "") + PATH + arrivals), 1);
    let connection = &report.connections[0];
    let summary = connection.file_summary.unwrap();
    assert_eq!(connection.files.len(), 10_000, "the list ends");
    // One each 5 ms from 1 s on; those of the last 11 ms are under way.
    assert!((15_790..=15_800).contains(&summary.count), "{summary:?}");
    assert_eq!(summary.bytes, summary.count * 1000);
    // Each takes its own time on the wire and 10 ms; quantiles are right to 1%.
    let expected = connection.files[5000].completion_s;
    assert!((0.0108..0.0113).contains(&expected), "{expected}");
    for found in [summary.completion_mean_s, summary.completion_p50_s, summary.completion_p99_s] {
        assert!((found / expected - 1.0).abs() < 0.012, "{found} {expected}");
    }
    assert!(summary.completion_max_s >= expected);
    assert!(summary.completion_p99_s <= summary.completion_max_s, "{summary:?}");
}
