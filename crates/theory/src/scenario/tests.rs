use std::path::Path;

use super::*;
use crate::lmmf;
use crate::num::maximise;

/// Two links of 10 and 20 Mbit/s, 10 ms each way, 100 packets of queue, with lines put in.
fn read_with(top: &str, second: &str, queues: f64) -> Result<Reading, ReadingError> {
    let text = format!(
        "duration = \"1s\"\n{top}\n\
         [[link]]\nname = \"a\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\nqueue = \"100packets\"\n\
         [[link]]\nname = \"b\"\nrate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"100packets\"\n{second}\n"
    );
    let scenario = manypath_scenario::parse(&text, "test.toml", Path::new(".")).unwrap();
    Reading::new(&scenario, queues)
}

fn connection(name: &str, cc: &str, more: &str, routes: &[&str]) -> String {
    let paths: Vec<String> = routes.iter().map(|route| format!("{{ route = [\"{route}\"] }}")).collect();
    format!("[[connection]]\nname = \"{name}\"\ncc = \"{cc}\"\n{more}\npath = [{}]\n", paths.join(", "))
}

fn mbps(rates: &[Rate]) -> Vec<f64> {
    rates.iter().map(|rate| (rate.as_mbps() * 1e3).round() / 1e3).collect()
}

#[test]
fn rates_links_and_round_trips() {
    let both = connection("mp", "lia", "packet = \"1500B\"\noverhead = \"60B\"", &["a", "b"]);
    let reading = read_with("", &(both + &connection("sp", "reno", "", &["b"])), 0.5).unwrap();
    assert_eq!(mbps(reading.network.capacities()), [10.0, 20.0]);
    let subflows = &reading.network.connections()[0].subflows;
    assert_eq!((&subflows[0].links, &subflows[1].links), (&vec![0], &vec![1]));
    // 20 ms of propagation, and half of 100 packets of 1500 bytes at 10 Mbit/s: 60 ms.
    assert_eq!(subflows[0].rtt, Duration::from_millis(80));
    assert_eq!(subflows[1].rtt, Duration::from_millis(50));
    assert_eq!(mbps(&lmmf(&reading.network).unwrap().totals()), [15.0, 15.0]);
    assert!(reading.notes.is_empty(), "{:?}", reading.notes);
    // A record header of the QUIC carrier, and 60 bytes: what is left of 1500.
    let headers = 1500.0 * (1.0 - reading.connections[0].payload);
    assert!(headers > 60.0 && headers < 110.0, "{headers}");
}

#[test]
fn links_without_data_are_no_part_of_it() {
    let reading = read_with("", &connection("sp", "reno", "", &["b"]), 0.0).unwrap();
    assert_eq!((reading.network.capacities().len(), reading.links.as_slice()), (1, &[2][..]));
}

#[test]
fn what_cannot_be_said_is_noted() {
    let changes = "schedule = [{ at = \"1s\", rate = \"1Mbit\" }]\n";
    let backup = "[[connection]]\nname = \"mp\"\ncc = \"lia\"\nstart = \"1s\"\nfile = \"1MB\"\n\
                  path = [{ route = [\"a\"] }, { route = [\"b\"], backup = true }]\n";
    let source =
        "[[source]]\nname = \"s\"\nroute = [\"a\"]\nrate = \"4Mbit\"\non-off = { on = \"1s\", off = \"3s\" }\n";
    let reading = read_with("", &(changes.to_owned() + backup + source), 0.0).unwrap();
    // Path 1, and with it the link that changes, is a backup; the source takes a quarter of 4 Mbit/s.
    assert_eq!(mbps(reading.network.capacities()), [9.0]);
    assert_eq!(reading.connections[0].paths, [0]);
    let said = reading.notes.join("\n");
    for part in ["backup", "all the time", "no end", "source 's'"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let reading = read_with("", &(changes.to_owned() + &connection("sp", "reno", "", &["b"])), 0.0).unwrap();
    assert!(reading.notes[0].contains("its table begins with"), "{:?}", reading.notes);
    assert_eq!(mbps(reading.network.capacities()), [20.0]);
}

#[test]
fn connections_that_were_written_as_one_are_noted_once() {
    let files = "count = 3\nstart = \"0.5s\"\nfile = \"1MB\"";
    let reading = read_with("", &connection("many", "reno", files, &["b"]), 0.0).unwrap();
    assert_eq!(reading.connections.len(), 3);
    let said = ["counts as if it were there all the time", "counts as if its file had no end"];
    assert_eq!(reading.notes, said.map(|what| format!("'many-1' {what}, and so do 2 more")));
}

#[test]
fn parameters_that_no_model_knows_are_named() {
    let unmodelled = |cc: &str| read_with("", &connection("c", cc, "", &["a", "b"]), 0.0).unwrap().unmodelled();
    assert_eq!(unmodelled("lia:count=acks"), ["'c' counts as lia without count=acks"]);
    for cc in ["lia", "ewtcp:weight=root", "semicoupled:a=2", "uni-mptcp:weights=1/0.5,decrease=printed"] {
        assert!(unmodelled(cc).is_empty(), "{cc}");
    }
    assert_eq!(unmodelled("uni-mptcp:weights=1/0.5,epoch=5s").len(), 1);
}

#[test]
fn random_loss_adds_up_over_a_route() {
    let route = "[[link]]\nname = \"c\"\nrate = \"20Mbit\"\ndelay = \"1ms\"\nqueue = \"9packets\"\nloss = \"10%\"\n\
                 [[connection]]\nname = \"x\"\ncc = \"reno\"\npath = [{ route = [\"b\", \"c\"] }]\n";
    let reading = read_with("", &("loss = \"20%\"\n".to_owned() + route), 0.0).unwrap();
    // 1 - 0.8 * 0.9
    assert!((reading.connections[0].loss[0] - 0.28).abs() < 1e-12);
}

#[test]
fn applications_limit_their_connections_in_packets_with_headers() {
    let reading = read_with("", &connection("app", "reno", "rate = \"5Mbit\"", &["b"]), 0.0).unwrap();
    let payload = reading.connections[0].payload;
    assert_eq!(mbps(&lmmf(&reading.network).unwrap().totals()), mbps(&[Rate::from_mbps(5.0 / payload)]));
    assert!(matches!(reading.system(), Err(ReadingError::Limited { connection }) if connection == "app"));
    let files = "arrivals = { size = \"1MB\", every = \"1s\" }";
    let reading = read_with("", &connection("files", "reno", files, &["b"]), 0.0).unwrap();
    assert_eq!(mbps(&lmmf(&reading.network).unwrap().totals()), mbps(&[Rate::from_mbps(8.0 / payload)]));
}

#[test]
fn weights_are_those_of_the_controller() {
    let text = connection("u", "uni-mptcp:weights=1/0.25", "", &["a", "b"]) + &connection("one", "reno", "", &["a"]);
    let reading = read_with("", &(text + &connection("two", "reno", "", &["b"])), 0.0).unwrap();
    let utilities = reading.utilities(1.0);
    assert_eq!(utilities[0].subflow_weights, [1.0, 0.25]);
    // Table I of Uni-MPTCP with n = (1, 1), c = (10, 20), omega = 1/4 is its edge: x = (5, 20), y = (5, 0).
    let optimum = maximise(&reading.network, &utilities).unwrap();
    assert_eq!(mbps(&optimum.allocation.totals()), [5.0, 5.0, 20.0]);
}

#[test]
fn fluid_models_are_found_by_name_and_parameter() {
    let law_of = |cc: &str, routes: &[&str]| {
        let reading = read_with("", &connection("c", cc, "", routes), 0.5).unwrap();
        law(&reading.connections[0], &reading.network.connections()[0])
    };
    assert_eq!(law_of("lisa", &["a", "b"]), Some(Algorithm::Lia));
    assert_eq!(law_of("ewtcp", &["a", "b"]), Some(Algorithm::Ewtcp { a: 0.25 }));
    assert_eq!(law_of("ewtcp:weight=root", &["a", "a", "b", "b"]), Some(Algorithm::Ewtcp { a: 0.5 }));
    assert_eq!(law_of("semicoupled:a=2", &["a", "b"]), Some(Algorithm::Semicoupled { a: 2.0 }));
    assert_eq!(law_of("tccc", &["a", "b"]), Some(Algorithm::TcccHalving));
    assert_eq!(law_of("tccc", &["a", "a"]), Some(Algorithm::Tccc));
    assert_eq!(law_of("uni-mptcp:weights=1/0.5", &["a", "b"]), Some(Algorithm::UniMptcp { weights: vec![1.0, 0.5] }));
    let printed = Algorithm::UniMptcpPrinted { weights: vec![1.0, 0.5] };
    assert_eq!(law_of("uni-mptcp:weights=1/0.5,decrease=printed", &["a", "b"]), Some(printed));
    assert_eq!(law_of("cubic", &["a"]), None);
    let reading = read_with("", &connection("c", "cubic", "", &["a"]), 0.5).unwrap();
    assert!(reading.system().unwrap_err().to_string().contains("there are models of reno"));
}

#[test]
fn a_fluid_model_of_a_scenario() {
    let two = connection("one", "reno", "", &["a"]) + &connection("two", "reno", "", &["a"]);
    let reading = read_with("", &two, 0.5).unwrap();
    let totals = reading.system().unwrap().equilibrium().unwrap().totals();
    assert_eq!(mbps(&totals), [5.0, 5.0]);
    let uneven = connection("one", "reno", "", &["a"]) + &connection("two", "reno", "packet = \"1000B\"", &["a"]);
    let reading = read_with("", &uneven, 0.5).unwrap();
    assert!(matches!(reading.system(), Err(ReadingError::Packets { .. })));
}

#[test]
fn what_leaves_nothing_is_refused() {
    let source = "[[source]]\nname = \"s\"\nroute = [\"a\"]\nrate = \"10Mbit\"\n";
    assert_eq!(read_with("", source, 0.0), Err(ReadingError::NoConnections));
    for source in [source.to_owned(), source.replace("10Mbit", "9.9999999Mbit")] {
        let error = read_with("", &(connection("c", "reno", "", &["a"]) + &source), 0.0).unwrap_err();
        assert!(matches!(error, ReadingError::Full { .. }), "{error:?}");
    }
}
