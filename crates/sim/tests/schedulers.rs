//! What schedulers make of paths that differ, where it takes the session and time to show.

use std::path::Path;

use manypath_sim::{Report, run};

/// A link: rate, delay, queue and more lines.
type Link<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Goodput in Mbit/s of a connection over these links.
fn goodput(links: &[Link<'_>], connection: &str) -> f64 {
    goodput_from(5, links, connection)
}

/// Goodput in Mbit/s from so many seconds on.
fn goodput_from(warmup: u64, links: &[Link<'_>], connection: &str) -> f64 {
    report(&format!("duration = \"30s\"\nwarmup = \"{warmup}s\""), links, connection).goodput_bps / 1e6
}

/// What one run of a connection over these links was like.
fn report(run_for: &str, links: &[Link<'_>], connection: &str) -> Report {
    let mut text = format!("{run_for}\n");
    for (index, (rate, delay, queue, more)) in links.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{index}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n{more}\n"
        );
    }
    text += &format!("[[connection]]\nname = \"c\"\n{connection}\n");
    for index in 0..links.len() {
        // Each dearer than the one before.
        text += &format!("[[connection.path]]\nroute = [\"l{index}\"]\ncost = {}\n", index + 1);
    }
    let scenario = manypath_scenario::parse(&text, "schedulers.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1).unwrap()
}

/// MPCC section 6: `rate-based` for what sends by rate, the default for windows.
#[test]
fn without_one_the_scheduler_fits_the_controller() {
    let links = [("50Mbit", "10ms", "100packets", ""), ("10Mbit", "60ms", "50packets", "")];
    let run = |connection: &str| report("duration = \"5s\"", &links, connection);
    for (cc, fitting) in [("mpcc-loss", "rate-based"), ("mp-ol", "rate-based"), ("lia", "minrtt")] {
        let (chosen, named) =
            (run(&format!("cc = \"{cc}\"")), run(&format!("cc = \"{cc}\"\nscheduler = \"{fitting}\"")));
        assert_eq!(chosen.connections[0].scheduler, fitting, "{cc}");
        assert_eq!(chosen.connections[0].delivered_bytes, named.connections[0].delivered_bytes, "{cc}");
    }
    let other = run("cc = \"mpcc-loss\"\nscheduler = \"minrtt\"");
    assert_eq!(other.connections[0].scheduler, "minrtt", "what is chosen counts");
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
    for scheduler in ["ecf", "blest", "arrival-order"] {
        let both = goodput(&links, &format!("{buffers}\nscheduler = \"{scheduler}\""));
        assert!(both > 0.97 * alone, "{scheduler}: {both:.1} Mbit/s over both, {alone:.1} over the fast one alone");
    }
}

/// The windows that the receiver opens leave by the fastest path, which it has to know.
#[test]
fn the_order_of_paths_means_nothing() {
    let fast = ("40Mbit", "10ms", "100packets", "");
    // One run is a matter of chance: which packet meets the full queue.
    let delays = ["97ms", "99ms", "101ms", "103ms"];
    for scheduler in ["minrtt", "stms-a", "arrival-order"] {
        let connection =
            format!("cc = \"cubic\"\nscheduler = \"{scheduler}\"\nsend-buffer = \"1MiB\"\nreceive-buffer = \"1MiB\"");
        let slow = |delay: &'static str| ("20Mbit", delay, "200packets", "");
        let first: f64 = delays.into_iter().map(|delay| goodput(&[slow(delay), fast], &connection)).sum();
        let last: f64 = delays.into_iter().map(|delay| goodput(&[fast, slow(delay)], &connection)).sum();
        assert!(first > 0.97 * last, "{scheduler}: {first:.1} Mbit/s with the slow path first, {last:.1} with it last");
    }
}

/// What refuses a path for its round trip must hear that it is short again.
#[test]
fn a_path_whose_round_trip_rose_for_a_while_is_used_again() {
    let passing = "schedule = [{ at = \"2s\", delay = \"500ms\" }, { at = \"7s\", delay = \"20ms\" }]";
    let links = |more| [("20Mbit", "10ms", "50packets", ""), ("20Mbit", "20ms", "100packets", more)];
    for (scheduler, buffer) in
        [("ecf", "256KiB"), ("stms-c", "256KiB"), ("blest", "512KiB"), ("arrival-order", "256KiB")]
    {
        let connection = format!(
            "cc = \"cubic\"\nscheduler = \"{scheduler}\"\nsend-buffer = \"{buffer}\"\nreceive-buffer = \"{buffer}\""
        );
        let after = |more| goodput_from(15, &links(more), &connection);
        let (with, without) = (after(passing), after(""));
        assert!(with > 0.95 * without, "{scheduler}: {with:.1} Mbit/s after the rise, {without:.1} without");
    }
}

/// A window that is held wide open says nothing of what a path will carry.
#[test]
fn blest_uses_both_paths_with_paced_controllers() {
    let links = [("30Mbit", "10ms", "100packets", ""), ("30Mbit", "30ms", "100packets", "")];
    for cc in ["bbr", "bbr3"] {
        let connection =
            format!("cc = \"{cc}\"\nscheduler = \"blest\"\nsend-buffer = \"1MiB\"\nreceive-buffer = \"1MiB\"");
        let (alone, both) = (goodput(&links[..1], &connection), goodput(&links, &connection));
        assert!(both > 1.5 * alone, "{cc}: {both:.1} Mbit/s over both, {alone:.1} over one");
    }
}

/// What waits in the network is a backlog as well, and must not take the window from those who could work it off.
#[test]
fn backup_uses_the_dearer_path_where_the_cheaper_one_s_queue_holds_all_there_is() {
    let links = [("1Mbit", "20ms", "10MB", ""), ("20Mbit", "30ms", "100packets", "")];
    let buffers = "cc = \"cubic\"\nscheduler = \"backup\"\nsend-buffer = \"1MiB\"\nreceive-buffer = \"1MiB\"";
    let (dear, both) = (goodput_from(15, &links[1..], buffers), goodput_from(15, &links, buffers));
    assert!(both > dear, "{both:.1} Mbit/s over both, {dear:.1} over the dearer alone");
    // Where it is the window that bounds what the cheaper path carries, the dearer one would only take from it.
    let links = [("20Mbit", "100ms", "10MB", ""), ("20Mbit", "90ms", "100packets", "")];
    let buffers = "cc = \"cubic\"\nscheduler = \"backup\"\nsend-buffer = \"128KiB\"\nreceive-buffer = \"128KiB\"";
    let (cheap, both) = (goodput_from(15, &links[..1], buffers), goodput_from(15, &links, buffers));
    assert!(
        both > 0.99 * cheap && both < 1.06 * cheap,
        "{both:.1} Mbit/s over both, {cheap:.1} over the cheaper alone"
    );
}

/// What is acknowledged by way of a slow path leaves room on it for what it carries itself.
#[test]
fn acknowledgements_of_other_paths_do_not_fill_a_slow_one() {
    let text = "duration = \"30s\"\nwarmup = \"10s\"\n\
        [[link]]\nname = \"slow\"\nrate = \"1Mbit\"\ndelay = \"20ms\"\nqueue = \"10MB\"\n\
        [[link]]\nname = \"a\"\nrate = \"40Mbit\"\ndelay = \"10ms\"\nqueue = \"50packets\"\nloss = \"0.1%\"\n\
        [[link]]\nname = \"b\"\nrate = \"40Mbit\"\ndelay = \"15ms\"\nqueue = \"50packets\"\nloss = \"0.1%\"\n\
        [[connection]]\nname = \"c\"\ncc = \"bbr\"\n\
        path = [{ route = [\"slow\"] }, { route = [\"a\"] }, { route = [\"b\"] }]\n";
    let scenario = manypath_scenario::parse(text, "acks.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    let report = run(&scenario, 1).unwrap();
    let back = report.links.iter().find(|link| link.name == "slow/back").unwrap();
    assert!(back.queueing_mean_s.unwrap() < 0.01, "{back:?}");
}

/// What a far slower path holds is all that a transfer waits for at its end, and while its window is full. Over the satellite nothing is
/// heard for 600 ms: the scheduler has to be asked again though nothing happens.
#[test]
fn with_rescue_nobody_waits_for_a_path_that_is_far_slower() {
    let fibre = ("100Mbit", "5ms", "250kB", "");
    let satellite = ("20Mbit", "300ms", "1MB", "");
    let bad = ("1Mbit", "50ms", "100kB", "");
    for (file, slow, cc, scheduler) in [
        ("100kB", satellite, "cubic", "minrtt"),
        ("10MB", bad, "cubic", "minrtt"),
        ("10MB", bad, "mpcc-loss", "rate-based"),
    ] {
        let seconds = |links: &[Link<'_>], rescue| {
            let connection = format!("cc = \"{cc}\"\nscheduler = \"{scheduler}{rescue}\"\nfile = \"{file}\"");
            report("duration = \"60s\"", links, &connection).connections[0].files[0].completion_s
        };
        let alone = seconds(&[fibre], "");
        let [without, with] = ["", ":rescue=on"].map(|rescue| seconds(&[fibre, slow], rescue));
        let said = format!("{file}, {scheduler}: alone {alone:.2} s, without {without:.2} s, with rescue {with:.2} s");
        assert!(without > 1.4 * alone && with < 1.6 * alone && with < without / 1.4, "{said}");
    }
}

/// Mean delay of data that waits for earlier data, seconds, and goodput in Mbit/s.
fn disorder(links: &[Link<'_>], connection: &str) -> (f64, f64) {
    let report = report("duration = \"30s\"\nwarmup = \"5s\"\nsample = \"100ms\"", links, connection);
    (report.connections[0].measures.unwrap().out_of_order_delay_s.mean.unwrap(), report.goodput_bps / 1e6)
}

#[test]
fn arrival_order_causes_less_than_half_of_the_disorder_of_stms() {
    let fast = ("30Mbit", "10ms", "50ms", "loss = \"0.01%\"");
    let slow = |delay| ("30Mbit", delay, "500ms", "loss = \"0.01%\"");
    for links in [vec![fast, slow("100ms")], vec![fast, slow("30ms"), slow("60ms"), slow("100ms")]] {
        let with = |scheduler: &str| {
            let buffers = "send-buffer = \"4MB\"\nreceive-buffer = \"4MB\"";
            disorder(&links, &format!("cc = \"cubic\"\nscheduler = \"{scheduler}\"\n{buffers}"))
        };
        let (ours, stms_a, stms_c) = (with("arrival-order"), with("stms-a"), with("stms-c"));
        assert!(ours.0 < 0.5 * stms_a.0.min(stms_c.0), "{ours:?}, {stms_a:?}, {stms_c:?}: {} paths", links.len());
        // Single runs differ by two per cent.
        assert!(ours.1 > 0.97 * stms_a.1.max(stms_c.1), "{ours:?}, {stms_a:?}, {stms_c:?}: {} paths", links.len());
    }
}

/// The fast path's queue makes it the slower one, many times a second.
#[test]
fn arrival_order_follows_paths_that_change_places() {
    let path = ("30Mbit", "10ms", "50ms", "loss = \"0.01%\"");
    let links = [path, ("30Mbit", "20ms", "500ms", "loss = \"0.01%\"")];
    let with = |scheduler: &str| {
        let buffers = "send-buffer = \"208kB\"\nreceive-buffer = \"208kB\"";
        goodput(&links, &format!("cc = \"cubic\"\nscheduler = \"{scheduler}\"\n{buffers}"))
    };
    let (ours, stms) = (with("arrival-order"), with("stms-a"));
    assert!(ours > 1.15 * stms, "{ours:.1} Mbit/s, {stms:.1} with stms-a");
}

/// While the window is held up nothing is sent, and the rates of that time are not what paths can do.
#[test]
fn arrival_order_does_not_fill_a_thin_path_while_repairs_hold_up_a_fast_one() {
    let links = [("80Mbit", "20ms", "200ms", "loss = \"1%\""), ("1Mbit", "90ms", "80ms", "")];
    let connection = "cc = \"bbr\"\nscheduler = \"arrival-order\"\nsend-buffer = \"1MB\"\nreceive-buffer = \"1MB\"";
    let (alone, both) = (goodput(&links[..1], connection), goodput(&links, connection));
    assert!(both > 0.97 * alone, "{both:.1} Mbit/s over both, {alone:.1} over the fast one alone");
}

/// What a thin path loses holds up the window that a long fat path needs, if it was to arrive just in time.
#[test]
fn arrival_order_does_not_let_losses_of_a_thin_path_hold_up_a_long_one() {
    let links = [("100Mbit", "100ms", "500ms", ""), ("4Mbit", "40ms", "100ms", "loss = \"2%\"")];
    for cc in ["cubic", "mpcc-loss"] {
        let connection =
            format!("cc = \"{cc}\"\nscheduler = \"arrival-order\"\nsend-buffer = \"2MB\"\nreceive-buffer = \"2MB\"");
        let (alone, both) = (goodput(&links[..1], &connection), goodput(&links, &connection));
        assert!(both > 1.1 * alone, "{cc}: {both:.1} Mbit/s over both, {alone:.1} over the long one alone");
    }
}

/// A stream over two paths, the faster of which changes so from 10 s on, until it is back at `back`.
fn stream_over_a_path_that_goes_away(change: &str, back: &str, scheduler: &str) -> Report {
    let away =
        format!("schedule = [{{ at = \"10s\", {change} }}, {{ at = \"{back}\", rate = \"20Mbit\", loss = \"0%\" }}]");
    let links = [("20Mbit", "10ms", "96ms", away.as_str()), ("40Mbit", "30ms", "272ms", "")];
    let connection = format!("scheduler = \"{scheduler}\"\nrate = \"6Mbit\"\ncc = \"cubic\"\npace-windows = true");
    report("duration = \"30s\"\nwarmup = \"5s\"\nsample = \"100ms\"", &links, &connection)
}

/// It is given up after 250 ms.
#[test]
fn a_stream_waits_less_for_a_silent_path_than_until_it_is_given_up() {
    let waits = |scheduler: &str| {
        let report = stream_over_a_path_that_goes_away("loss = \"100%\"", "12s", scheduler);
        report.connections[0].measures.unwrap().write_to_delivery_s.max.unwrap()
    };
    for scheduler in ["minrtt", "arrival-order"] {
        let (without, with) = (waits(scheduler), waits(&format!("{scheduler}:rescue=on")));
        assert!(without > 0.25 && with < 0.75 * without, "{scheduler}: {with:.3} s with copies, {without:.3} without");
    }
}

/// What was given up arrives late, with what the queue held, and says nothing about the way back.
#[test]
fn a_stream_returns_to_a_path_that_has_come_back() {
    let report = stream_over_a_path_that_goes_away("rate = \"0Mbit\"", "11200ms", "arrival-order");
    let sent = report.connections[0].subflows.iter().map(|subflow| subflow.sent_packets).collect::<Vec<_>>();
    assert!(sent[0] > 5 * sent[1], "{sent:?} packets");
}
