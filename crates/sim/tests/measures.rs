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
    assert!(series.jain.iter().filter(|jain| !jain.is_nan()).count() > 190, "{:?}", series.jain);
    let (there, there_of) = (&connection.subflows[0], &of.subflows[0]);
    assert!(near(mean(&there_of.delivered_bps), there.delivered_bps));
    assert_eq!(there_of.lost_packets.iter().sum::<u64>(), there.lost_packets);
    assert_eq!(there_of.repeated_packets.iter().sum::<u64>(), there.repeated_packets);
    assert!(there.lost_packets > 20 && there.repeated_packets > 20, "{there:?}");
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
fn marks_and_early_drops_over_time_add_up_too() {
    let red = "red = { min = \"5packets\", max = \"60packets\", max-probability = \"20%\", ecn = true }";
    for ecn in [true, false] {
        let text = link("duration = \"10s\"\nsample = \"100ms\"", red) + PATH + &format!("ecn = {ecn}\n");
        let report = simulate(&text, 1);
        let (found, series) = (&report.links[0], &report.series.as_ref().unwrap().links[0]);
        assert_eq!((found.marked > 5, found.dropped_early > 5), (ecn, !ecn), "{found:?}");
        assert_eq!(series.marked.iter().sum::<u64>(), found.marked);
        assert_eq!(series.dropped.early.iter().sum::<u64>(), found.dropped_early);
    }
}

/// What is counted after a warm-up, and what a run as long as the warm-up counts, are what a run without one counts.
#[test]
fn a_warm_up_leaves_out_what_came_before_it_and_nothing_else() {
    let counts = |duration: &str, warmup: &str| -> Vec<u64> {
        let back = "[[link]]\nname = \"b\"\nrate = \"5Mbit\"\ndelay = \"30ms\"\nqueue = \"20packets\"\n\
                    red = { min = \"2packets\", max = \"19packets\", max-probability = \"50%\", ecn = true }\nloss = \"1%\"\n";
        let more = "scheduler = \"redundant\"\necn = true\npath = [{ route = [\"a\"] }, { route = [\"b\"] }]\n";
        let top = format!("duration = \"{duration}\"\nwarmup = \"{warmup}\"\n{back}");
        let report = simulate(&(link(&top, "loss = \"2%\"") + more), 1);
        let connection = &report.connections[0];
        let mut counts = vec![
            connection.delivered_packets,
            connection.delivered_bytes,
            connection.retransmitted_bytes,
            connection.duplicated_bytes,
            connection.received_again_bytes,
        ];
        for subflow in &connection.subflows {
            counts.extend([subflow.sent_packets, subflow.sent_bytes, subflow.repeated_packets, subflow.lost_packets]);
        }
        for link in report.links.iter().filter(|link| !link.name.ends_with("back")) {
            counts.extend([link.offered_packets, link.delivered_bytes, link.dropped_random]);
        }
        counts.push(report.links.iter().map(|link| link.marked).sum());
        let spent = connection.cost_per_s * (report.duration_s - report.warmup_s);
        assert!((spent / connection.cost - 1.0).abs() < 1e-9, "{spent} {}", connection.cost);
        counts
    };
    let (all, first, rest) = (counts("8.0001s", "0s"), counts("3.0001s", "0s"), counts("8.0001s", "3.0001s"));
    let sums: Vec<u64> = first.iter().zip(&rest).map(|(first, rest)| first + rest).collect();
    assert!(first.iter().all(|count| *count > 0), "{first:?}");
    assert_eq!(all, sums);
}

/// The application reads what is in order at once: what waits does so in the subflow's end, for a segment of its own.
#[test]
fn what_waits_behind_a_gap_of_its_own_subflow_is_held_there_and_no_fault_of_the_scheduler() {
    // Whichever of the subflows it is that sends.
    for paths in ["{ route = [\"a\"] }", "{ route = [\"a\"], backup = true }, { route = [\"a\"] }"] {
        let text = link("duration = \"10s\"\nsample = \"100ms\"", "loss = \"1%\"");
        let report = simulate(&(text + &format!("path = [{paths}]\ntransport = \"tcp\"\n")), 1);
        let measures = report.connections[0].measures.unwrap();
        assert!(measures.out_of_order_delay_s.max.unwrap() > 0.02, "{measures:?}");
        assert!(measures.scheduling_delay_s.max.unwrap() < 1e-9, "{measures:?}");
        assert!(report.series.unwrap().connections[0].receive_buffer_bytes.iter().any(|held| *held > 0));
    }
}

/// A copy that comes when its data was read waits for nothing.
#[test]
fn copies_of_what_was_read_are_not_out_of_order() {
    let slow = "[[link]]\nname = \"b\"\nrate = \"10Mbit\"\ndelay = \"30ms\"\nqueue = \"100packets\"\n";
    let more = "path = [{ route = [\"a\"] }, { route = [\"b\"] }]\nscheduler = \"redundant\"\ntransport = \"tcp\"\n\
                rate = \"1Mbit\"\n";
    let report = simulate(&(link(&format!("duration = \"10s\"\nsample = \"100ms\"\n{slow}"), "") + more), 1);
    let connection = &report.connections[0];
    assert!(connection.received_again_bytes > 500_000, "{connection:?}");
    assert!(connection.measures.unwrap().out_of_order_delay_s.max.unwrap() < 1e-9, "{connection:?}");
}

/// In an outage everything under way is lost, and a timeout says so.
#[test]
fn what_a_timeout_gives_up_is_counted_as_lost() {
    let outage = "schedule = [{ at = \"5s\", loss = \"100%\" }, { at = \"6s\", loss = \"0%\" }]";
    let text = link("duration = \"10s\"", outage) + PATH + "transport = \"tcp\"\nreceive-buffer = \"30kB\"\n";
    let report = simulate(&text, 1);
    let subflow = &report.connections[0].subflows[0];
    // A probe leaves first, which is lost, too, but under the number of what it repeats.
    assert!(subflow.dropped_random > 15 && subflow.lost_packets + 1 == subflow.dropped_random, "{subflow:?}");
    assert_eq!(subflow.repeated_packets, subflow.dropped_random);
}

/// Each value of a series is of its own interval.
#[test]
fn a_delay_that_changes_is_another_from_then_on() {
    let later = "schedule = [{ at = \"2s\", delay = \"30ms\" }]";
    let text = link("duration = \"4s\"\nsample = \"500ms\"", later) + PATH + "rate = \"1Mbit\"\n";
    let report = simulate(&text, 1);
    let delays = &report.series.unwrap().connections[0].subflows[0].one_way_delay_s;
    // 1.2 ms for the packet.
    assert!(delays[1..4].iter().all(|delay| (delay - 0.0112).abs() < 2e-6), "{delays:?}");
    assert!(delays[5..].iter().all(|delay| (delay - 0.0312).abs() < 2e-6), "{delays:?}");
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
    let subflow = &report.connections[0].subflows[0];
    let (least, most) = (subflow.min_rtt_s.unwrap(), subflow.max_rtt_s.unwrap());
    // The first packet finds no queue; of the window's 51 packets 18 are on the path.
    assert!((least - 0.0212).abs() < 0.002 && (most - least - 33.0 * 0.0012).abs() < 0.004, "{least} {most}");
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
