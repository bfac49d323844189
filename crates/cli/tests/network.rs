//! A network that changes under a transfer, in network namespaces.

#![cfg(target_os = "linux")]

mod support;

use std::process::{Command, Stdio};

use support::{Place, Said, skip};

/// Makes two namespaces with a link between them, `a0` with 10.88.0.1 here and `b0` with 10.88.0.2 there, and a server
/// of measurements there. `$0` is the program, `$1` a folder.
const NETWORK: &str = r#"
unshare --net sleep 60 >/dev/null 2>&1 & far=$!
trap 'kill $far' EXIT
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
there() { nsenter -t $far -n "$@"; }
ip link add a0 type veth peer name b0 netns $far
for each in 'ip link set lo up' 'ip addr add 10.88.0.2/24 dev b0' 'ip link set b0 up'; do there $each; done
ip link set lo up; ip addr add 10.88.0.1/24 dev a0; ip link set a0 up
there tc qdisc add dev b0 root tbf rate 50mbit burst 32k latency 30ms
echo made >&2
nsenter -t $far -n "$0" perf -s --listen 10.88.0.2:4433 --state "$1/state" > "$1/said" & server=$!
trap 'kill $server $far' EXIT
until [ -s "$1/said" ]; do kill -0 $server; sleep 0.02; done
pin=$(sed 's/.*--pin \([0-9a-f]*\).*/\1/' "$1/said")
"#;

/// Runs a script in a network of its own; `None` if this machine has none to give.
fn in_network(place: &Place, script: &str) -> Option<Said> {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-ec", &[NETWORK, script].concat()]);
    command.arg(env!("CARGO_BIN_EXE_manypath")).arg(place.path("."));
    let said: Said = command.stdin(Stdio::null()).output().unwrap().into();
    if !said.err.contains("made\n") {
        skip(&format!("no network namespaces: {}", said.err));
        return None;
    }
    Some(said)
}

/// By when it was measured, in seconds, the megabits that came on the first path in each interval.
fn rates(report: &serde_json::Value) -> Vec<(f64, f64)> {
    let intervals = report["intervals"].as_array().unwrap().iter();
    intervals.map(|span| (span["end"].as_f64().unwrap(), span["paths"][0]["mbps"].as_f64().unwrap())).collect()
}

/// That a measurement of 6 s, whose only path had to be made anew after two, had not to wait for an attempt from an address that
/// nobody can answer, or until the path had failed for long: both are 10 s. A busy machine has the others.
#[track_caller]
fn ends_in_time(report: &serde_json::Value) {
    assert!(report["end"]["seconds"].as_f64().unwrap() < 10.0, "{report}");
}

#[test]
fn a_path_whose_address_changed_comes_up_again_at_once() {
    let place = Place::new();
    let script = r#"
(sleep 2; ip addr del 10.88.0.1/24 dev a0; ip addr add 10.88.0.7/24 dev a0) &
timeout 40 "$0" perf -c 10.88.0.2 --pin $pin --path a0 -R -t 6s --json
"#;
    let Some(said) = in_network(&place, script) else { return };
    ends_in_time(&said.json());
}

/// While it is away, packets leave from another address of this host, which the server cannot answer.
#[test]
fn a_path_whose_address_was_away_comes_up_again_at_once() {
    let place = Place::new();
    let script = r#"
ip addr add 10.99.0.1/32 dev lo; ip route add 10.88.0.2/32 dev a0
(sleep 2; ip addr del 10.88.0.1/24 dev a0; sleep 3; ip addr add 10.88.0.1/24 dev a0) &
timeout 40 "$0" perf -c 10.88.0.2 --pin $pin --path a0 -R -t 6s -i 200ms --json
"#;
    let Some(said) = in_network(&place, script) else { return };
    let report = said.json();
    let rates = rates(&report);
    let (mut came, mut silence) = (0.0, 0.0_f64);
    for (at, mbps) in &rates {
        silence = silence.max(at - came);
        if *mbps > 0.0 {
            came = *at;
        }
    }
    assert!(silence > 1.0, "{rates:?}");
    ends_in_time(&report);
}

#[test]
fn what_an_interface_carried_counts_on_after_it_was_gone() {
    let place = Place::new();
    let script = r#"
ip route add default via 10.88.0.2 dev a0
(sleep 2; ip link set a0 down; sleep 1; ip link set a0 up; ip route add default via 10.88.0.2 dev a0) &
timeout 40 "$0" perf -c 10.88.0.2 --pin $pin -R -t 6s --json
"#;
    let Some(said) = in_network(&place, script) else { return };
    let report = said.json();
    let (rates, end) = (rates(&report), &report["end"]);
    assert!(rates.iter().any(|(at, mbps)| *at > 4.0 && *mbps > 0.0), "{rates:?}");
    let paths = end["paths"].as_array().unwrap();
    assert_eq!(paths[0]["name"], "a0", "{end}");
    let of = |counts: &serde_json::Value| counts["bytes"].as_f64().unwrap();
    // Without a default route the server, a neighbour, may have been reached without it.
    assert!(of(&paths[0]) > 0.5 * of(end), "{end}");
    // A window may have come before the measurement began.
    assert!(paths.iter().map(of).sum::<f64>() > 0.99 * of(end) - 65_536.0, "{end}");
}

#[test]
fn a_server_that_no_route_leads_to_is_named_with_the_cause() {
    let place = Place::new();
    let script = r#"
timeout 40 "$0" perf -c 203.0.113.9 --pin $pin --timeout 1s
"#;
    let Some(said) = in_network(&place, script) else { return };
    said.fails_with(&["default: cannot send from any address: Network is unreachable"]);
}

#[test]
fn a_path_too_narrow_for_quic_is_named_with_its_mtu() {
    let place = Place::new();
    let Some(said) = in_network(
        &place,
        r#"
ip link set a0 mtu 1227
timeout 40 "$0" perf -c 10.88.0.2 --pin $pin --path a0 -t 1s
"#,
    ) else {
        return;
    };
    said.fails_with(&["a0: cannot send from a0", "1227 bytes", "QUIC needs 1228"]);
}
