//! Round trips beyond the timeouts: from the start, and from one moment to the next.

use std::path::Path;

use manypath_sim::run;

/// Goodput in Mbit/s over a link of 10 Mbit/s with this delay.
fn goodput(transport: &str, cc: &str, delay: &str) -> f64 {
    let text = format!(
        "duration = \"60s\"\nwarmup = \"20s\"\n\
         [[link]]\nname = \"link\"\nrate = \"10Mbit\"\nqueue = \"1MB\"\n{delay}\n\
         [[connection]]\nname = \"c\"\ncc = \"{cc}\"\ntransport = \"{transport}\"\n\
         [[connection.path]]\nroute = [\"link\"]\n"
    );
    let scenario = manypath_scenario::parse(&text, "trips.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1).unwrap().goodput_bps / 1e6
}

#[test]
fn a_path_is_used_whose_round_trip_is_longer_than_any_timeout() {
    for transport in ["quic", "tcp"] {
        for cc in ["cubic", "bbr", "mpcc-latency"] {
            for delay in ["delay = \"800ms\"", "delay = \"50ms\"\nschedule = [{ at = \"10s\", delay = \"400ms\" }]"] {
                let goodput = goodput(transport, cc, delay);
                assert!(goodput > 3.0, "{cc} over {transport}, {delay}: {goodput:.2} Mbit/s of 10");
            }
        }
    }
}

/// A handshake has measured the round trip before anything is sent.
#[test]
fn slow_start_is_not_cut_short_by_a_round_trip_longer_than_the_first_timeout() {
    for transport in ["quic", "tcp"] {
        for cc in ["reno", "lia"] {
            let goodput = goodput(transport, cc, "delay = \"600ms\"");
            assert!(goodput > 8.0, "{cc} over {transport}: {goodput:.2} Mbit/s of 10");
        }
    }
}

/// Where every round trip loses something, nothing but the lost is missing.
#[test]
fn losses_that_go_on_cost_bbr_little_more_than_what_they_take() {
    for transport in ["quic", "tcp"] {
        let goodput = goodput(transport, "bbr", "delay = \"50ms\"\nloss = \"5%\"");
        assert!(goodput > 7.5, "{transport}: {goodput:.2} Mbit/s of 10");
    }
}

/// Before the first acknowledgement can come, nothing is known to be lost.
#[test]
fn what_has_not_been_heard_in_the_first_round_trip_is_not_lost() {
    for cc in ["mpcc-connection", "mpcc-loss", "mp-ol"] {
        let goodput = goodput("quic", cc, "delay = \"300ms\"");
        assert!(goodput > 5.0, "{cc}: {goodput:.2} Mbit/s of 10");
    }
}
