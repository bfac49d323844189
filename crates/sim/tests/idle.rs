//! Subflows that stand idle: a backup, after it has carried the connection through an outage.

use std::path::Path;

use manypath_sim::run;

/// Goodput from 15 s on in Mbit/s over a link that is down, if `outage` says so, from 5 to 8 s, with a faster backup beside it.
fn goodput(cc: &str, transport: &str, outage: bool) -> f64 {
    let schedule = "schedule = [{ at = \"5s\", rate = \"0bit\" }, { at = \"8s\", rate = \"5Mbit\" }]";
    let text = format!(
        "duration = \"45s\"\nwarmup = \"15s\"\n\
         [[link]]\nname = \"wifi\"\nrate = \"5Mbit\"\ndelay = \"10ms\"\nqueue = \"50packets\"\nloss = \"0.1%\"\n{}\n\
         [[link]]\nname = \"lte\"\nrate = \"40Mbit\"\ndelay = \"30ms\"\nqueue = \"500packets\"\n\
         [[connection]]\nname = \"phone\"\ncc = \"{cc}\"\ntransport = \"{transport}\"\n\
         [[connection.path]]\nroute = [\"wifi\"]\n[[connection.path]]\nroute = [\"lte\"]\nbackup = true\n",
        if outage { schedule } else { "" }
    );
    let scenario = manypath_scenario::parse(&text, "idle.toml", Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1).unwrap().goodput_bps / 1e6
}

/// Coupled controllers count the windows of all subflows; one that nobody uses must not slow the others down.
#[test]
fn a_backup_that_carried_an_outage_slows_nobody_afterwards() {
    for transport in ["quic", "tcp"] {
        for algorithm in manypath_cc::algorithms() {
            let cc = algorithm.name;
            let (with, without) = (goodput(cc, transport, true), goodput(cc, transport, false));
            assert!(with > 0.85 * without, "{cc} over {transport}: {with:.1} Mbit/s, {without:.1} without the outage");
        }
    }
}
