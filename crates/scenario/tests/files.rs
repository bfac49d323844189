//! Scenario files, good and bad.

use std::path::Path;

use manypath_scenario::{
    Override, Problem, Scenario, ScenarioError, Workload, built_in, json_schema, parse, parse_with, template,
    topologies,
};
use proptest::prelude::*;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    parse(text, "test.toml", Path::new("."))
}

/// A connection over one link, with lines put in.
fn with(top: &str, link: &str, connection: &str) -> String {
    format!(
        "duration = \"1s\"\n{top}\n[[link]]\nname = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nqueue = \"10packets\"\n{link}\n\
         [[connection]]\nname = \"c\"\ncc = \"reno\"\n{connection}\n"
    )
}

const ROUTE: &str = "path = [{ route = [\"a\"] }]";

#[test]
fn the_examples_are_scenarios() {
    let scenario = read(template()).unwrap();
    assert_eq!((scenario.links.len(), scenario.connections.len(), scenario.sources.len()), (4, 11, 1));
    assert_eq!(scenario.connections[10].name, "download-10");
    assert_eq!(scenario.connections[0].paths[1].forward, [2]);
    assert_eq!(scenario.connections[0].paths[1].backward, [3]);
    assert_eq!(read(built_in()).unwrap().name, "two-links");
}

#[test]
fn every_role_of_every_topology_can_be_taken() {
    for topology in topologies() {
        for role in &topology.roles {
            let text = format!(
                "duration = \"1s\"\ntopology = \"{}\"\n[[connection]]\nname = \"c\"\ncc = \"reno\"\nrole = \"{}\"\n",
                topology.name, role.name
            );
            let scenario = read(&text).unwrap_or_else(|error| panic!("{} {}: {error}", topology.name, role.name));
            assert_eq!(scenario.connections[0].paths.len(), role.paths.len());
        }
    }
}

#[test]
fn the_template_of_every_topology_is_a_scenario() {
    for topology in topologies() {
        let scenario = read(&topology.template()).unwrap_or_else(|error| panic!("{}: {error}", topology.name));
        assert_eq!(scenario.connections.len(), topology.roles.len().min(6));
        assert_eq!((scenario.name.as_str(), scenario.links.len()), (topology.name, topology.links.len()));
    }
}

#[test]
fn a_link_of_a_topology_can_be_changed() {
    let text = "duration = \"1s\"\ntopology = \"mpcc-3c\"\n[[link]]\nname = \"link1\"\nqueue = \"9kB\"\nloss = \"1%\"\n\
                [[connection]]\nname = \"mp\"\ncc = \"lia\"\nrole = \"mp\"\nfile = \"1MB\"\n";
    let scenario = read(text).unwrap();
    assert_eq!(scenario.links.len(), 4);
    assert_eq!(scenario.links[0].config.queue, "9kB".parse().map(manypath_link::QueueLimit::Bytes).unwrap());
    assert_eq!(scenario.connections[0].workload, Workload::File("1MB".parse().unwrap()));
}

fn source(more: &str) -> String {
    format!("[[source]]\nname = \"s\"\nroute = [\"a\"]\nrate = \"1Mbit\"\n{more}\n")
}

/// A link whose queue holds so much, with lines of the connection put in.
fn with_queue(queue: &str, connection: &str) -> String {
    let connection = format!("{connection}\n{ROUTE}");
    with("", "", &connection).replace("queue = \"10packets\"", &format!("queue = \"{queue}\""))
}

#[test]
fn a_queue_in_bytes_has_room_for_a_packet() {
    for (text, message) in [
        (
            with_queue("1B", ""),
            "its queue of 1B never has room for a packet of 1500B, which 'c' sends: write queue = \"1500B\"",
        ),
        (with_queue("1499B", ""), "1499B"),
        (with_queue("1500B", "packet = \"9kB\""), "a packet of 9kB"),
        (with_queue("1500B", "file = \"3kB\"\npacket = \"9kB\""), "a packet of 3086B"),
        (with_queue("1500B", "") + &source("packet = \"2kB\""), "a packet of 2kB, which 's' sends"),
    ] {
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.starts_with("test.toml:3:1: link 'a':") && error.contains(message), "{error}");
    }
    // Not even the shortest acknowledgement: in datagrams and in TCP.
    let back = |queue: &str, more: &str| {
        with("", &format!("back = {{ queue = \"{queue}\" }}"), &format!("overhead = \"60B\"\n{more}\n{ROUTE}"))
    };
    for (text, packet) in [(back("83B", ""), "84B"), (back("67B", "transport = \"tcp\""), "68B")] {
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.starts_with("test.toml:3:1: link 'a/back':") && error.contains(packet), "{error}");
    }
    // A packet at a time, files of one small packet, acknowledgements on the way back: all can be meant.
    for text in [
        with_queue("1500B", ""),
        with_queue("1packet", ""),
        with_queue("1ns", ""),
        with_queue("586B", "file = \"500B\""),
        back("84B", ""),
        back("68B", "transport = \"tcp\""),
    ] {
        read(&text).unwrap();
    }
}

#[test]
fn what_never_starts_is_known() {
    let early = with("", "", &format!("start = \"999ms\"\nstart-spread = \"5s\"\n{ROUTE}"));
    assert_eq!(read(&(early + &source("start = \"0s\""))).unwrap().never_starts(), []);
    let late = with("", "", &format!("start = \"1s\"\ncount = 3\n{ROUTE}")) + &source("start = \"2s\"");
    let [second, third] = [1, 2].map(manypath_core::Duration::from_secs);
    assert_eq!(read(&late).unwrap().never_starts(), [(9, "c-1", second), (0, "s", third)]);
}

#[test]
fn the_way_back_may_have_a_table_of_its_own() {
    let scenario =
        read(&(with("", "", ROUTE) + "[[link]]\nname = \"a/back\"\none-way = true\nloss = \"1%\"\n")).unwrap();
    assert_eq!(scenario.links.len(), 2);
    let given = "link=[{name='a',rate='1Mbit',delay='1ms',queue='9packets'},{name='a',rate='2Mbit'}]".parse().unwrap();
    let error = parse_with(&with("", "", ROUTE), "test.toml", Path::new("."), &[given]).unwrap_err().to_string();
    assert!(error.contains("two [[link]] tables of the name 'a': give"), "{error}");
}

#[test]
fn a_link_and_its_way_back_draw_the_same() {
    let redraw = "redraw = { every = \"1s\", delay = { between = [\"1ms\", \"90ms\"] } }\n";
    let back = format!("[[link]]\nname = \"a/back\"\none-way = true\n{redraw}");
    let scenario = read(&(with("", redraw, ROUTE) + &back)).unwrap();
    let delays = |index: usize| {
        let drawn = scenario.links[index].drawn(manypath_core::Duration::from_secs(20), 7);
        drawn.schedule.iter().map(|change| change.delay).collect::<Vec<_>>()
    };
    assert_eq!(scenario.links[1].name, "a/back");
    assert_eq!(delays(0).len(), 20);
    assert_eq!(delays(0), delays(1));
}

/// Where tables stand, and whether they come from the file or from outside, changes no network.
#[test]
fn a_way_back_keeps_its_own_values_wherever_its_table_stands() {
    let own = |name: &str, rate: &str| {
        format!("[[link]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"7ms\"\nqueue = \"9packets\"\n")
    };
    let tables = [own("a", "50Mbit"), own("a/back", "40kbit"), own("a/back/back", "1Mbit")];
    let links = |order: [usize; 3]| {
        let text = format!("duration = \"1s\"\n{}{}", order.map(|table| tables[table].as_str()).concat(), source(""));
        let mut links = read(&text).unwrap().links;
        links.sort_by(|one, other| one.name.cmp(&other.name));
        links
    };
    let there_first = links([0, 1, 2]);
    assert_eq!(there_first[1].config.peak_rate().to_string(), "40kbit");
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(links(order), there_first, "{order:?}");
    }
    // A table that is made of an override stands last.
    let given = "link.link1.rate=50Mbit".parse::<Override>().unwrap();
    let text = format!("{}\n[[link]]\nname = \"link1/back\"\nrate = \"20kbit\"\n", built_in());
    let scenario = parse_with(&text, "x", Path::new("."), &[given]).unwrap();
    assert_eq!(scenario.links[1].name, "link1/back");
    assert_eq!(scenario.links[1].config.peak_rate().to_string(), "20kbit");
}

#[test]
fn faults_are_named_with_their_place_and_remedy() {
    let cases = [
        (with("", "speed = 3", ROUTE), 8, "unknown field `speed`"),
        (with("", "jitter = 5", ROUTE), 8, "'5' has no unit: write 5ms"),
        (with("", "jitter = \"5MB\"", ROUTE), 8, "unknown unit 'MB'"),
        (with("", "loss = nan", ROUTE), 8, "percent"),
        (with("", "loss = \"200%\"", ROUTE), 8, "between 0% and 100%"),
        (with("", "back = { rate = \"0bit\" }", ROUTE), 3, "the rate is zero"),
        (with("", "loss-burst = 3.0", ROUTE), 3, "needs 'loss'"),
        (with("", "loss = \"60%\"\nloss-burst = 1.2", ROUTE), 3, "loss-burst is 1.2"),
        (with("", "schedule = [{ at = \"1s\" }]", ROUTE), 3, "rate, delay, jitter or loss"),
        (with("", "redraw = { every = \"1s\" }", ROUTE), 3, "rate, delay or loss"),
        (with("", "loss = \"1%\"\nloss-burst = 0.5", ROUTE), 3, "loss-burst is 0.5"),
        (with("", "redraw = { every = \"500us\", loss = { one-of = [\"1%\"] } }", ROUTE), 3, "at least 1ms"),
        (with("", "redraw = { every = \"1s\", loss = { one-of = [] } }", ROUTE), 3, "write between = [LOW, HIGH]"),
        (with("", "redraw = { every = \"1s\", loss = { between = [\"2%\", \"1%\"] } }", ROUTE), 3, "write between"),
        (with("", "", "path = [{ route = [\"b\"] }]"), 12, "there is no link 'b'; there are a, a/back"),
        (with("", "", "path = [{ route = [\"a\", \"a\"] }]"), 12, "passes 'a' twice"),
        (with("", "", "path = [{ route = [] }]"), 12, "the route is empty"),
        (with("", "one-way = true", ROUTE), 12, "has no link back"),
        (with("", "", "count = 1000000000\npath = [{ route = [\"a\"] }]"), 9, "1 to 100000"),
        (with("", "", ""), 9, "[[connection.path]]"),
        ("duration = \"1s\"\n[[connection]]\ncc = \"lia\"\n".to_owned(), 2, "needs 'name'"),
        (with("", "", "role = \"mp\""), 12, "with a role needs 'topology'"),
        (with("", "", "path = [{ route = [\"a\"], cost = nan }]"), 12, "cost is NaN"),
        (with("topology = \"ring\"", "", ROUTE), 2, "there is no topology 'ring'"),
        (with("warmup = \"1s\"", "", ROUTE), 2, "shorter than the duration"),
        (with("sample = \"0s\"", "", ROUTE), 2, "at least 1us"),
        (with("", "", "file = \"1MB\"\nrate = \"1Mbit\"\npath = [{ route = [\"a\"] }]"), 9, "both 'file' and 'rate'"),
        (with("", "", "packet = \"100B\"\npath = [{ route = [\"a\"] }]"), 9, "above the overhead"),
        (with("", "", "min-rto = \"1s\"\npath = [{ route = [\"a\"] }]"), 9, "write transport = \"tcp\""),
        (with("", "", "recovery = \"sack\"\npath = [{ route = [\"a\"] }]"), 9, "write transport = \"tcp\""),
        (with("", "", "ack-rule = \"window\"\npath = [{ route = [\"a\"] }]"), 9, "write transport = \"tcp\""),
        (with("", "", "transport = \"tcp\"\nmin-rto = \"0s\"\npath = [{ route = [\"a\"] }]"), 9, "1ms to 60s"),
        (with("", "", "start-spread = \"5\"\npath = [{ route = [\"a\"] }]"), 12, "'5' has no unit"),
        (with("", "", "stop = \"1s\"\nstart-spread = \"1s\"\npath = [{ route = [\"a\"] }]"), 9, "and its spread"),
        (with("", "", "path = [{ route = [\"a\"], join-after = \"1s\" }]"), 12, "the first path of connection 'c'"),
        (
            with("", "", ROUTE) + &source("on-off = { on = \"1s\", off = \"1s\", timing = \"periodic\" }"),
            17,
            "`timing`, expected",
        ),
        (with("", "", ROUTE) + "[[link]]\nname = \"a\"\nloss = \"1%\"\n", 13, "'a', the other one in line 3: give"),
        (
            with("", "red = { min = \"5packets\", max = \"5packets\", max-probability = \"1%\" }", ROUTE),
            3,
            "min 5packets",
        ),
        (with("name = \" \"", "", ROUTE), 2, "is not empty"),
        (with("", "", &format!("rate = \"2Tbit\"\n{ROUTE}")), 9, "at most 1Tbit"),
        ("duration = \"0s\"\n".to_owned(), 1, "above zero"),
        ("duration = \"1s\"\n".to_owned(), 1, "nothing is sent"),
        ("duration = \"1s\"\n[[link]\n".to_owned(), 2, ""),
        (String::new(), 1, "missing field `duration`: write duration = \"30s\" above the first table"),
        (
            with("", "", ROUTE) + "[[source]]\nname = \"s\"\nroute = [\"a\"]\n",
            13,
            "missing field `rate`: write rate = \"",
        ),
        (with("", "schedule = [{ rate = \"1Mbit\" }]", ROUTE), 8, "missing field `at`: write at = \""),
        (with("", "", &format!("on-off = {{ on = \"1s\" }}\n{ROUTE}")), 12, "missing field `off`: write off = \""),
    ];
    for (text, line, message) in cases {
        let error = read(&text).expect_err(&text);
        assert!(error.to_string().contains(message), "{error}\n{text}");
        assert!(error.line == line, "line {line} expected: {error}\n{text}");
        assert!(error.to_string().starts_with("test.toml:"));
    }
}

#[test]
fn routes_over_nodes_must_be_connected_and_go_nowhere_twice() {
    let link = |name: &str, from: &str, to: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
             queue = \"9packets\"\n"
        )
    };
    let links = [link("ab", "a", "b"), link("bc", "b", "c"), link("ca", "c", "a")].concat();
    let route = |route: &str| {
        read(&format!(
            "duration = \"1s\"\n{links}[[connection]]\nname = \"c\"\ncc = \"reno\"\npath = [{{ route = {route} }}]\n"
        ))
        .map_err(|error| *error.problem)
    };
    assert!(route("[\"ab\", \"bc\"]").is_ok());
    assert!(matches!(route("[\"ab\", \"ca\"]"), Err(Problem::Broken { .. })));
    assert!(matches!(route("[\"ab\", \"bc\", \"ca\"]"), Err(Problem::Cycle(_))));
}

#[test]
fn nodes_of_a_topologys_links_are_those_that_the_tables_give() {
    let read = |links: &str, route: &str| {
        let path = format!("path = [{{ route = {route} }}]");
        read(&format!(
            "duration = \"1s\"\ntopology = \"two-links\"\n{links}\n[[connection]]\nname = \"c\"\ncc = \"reno\"\n{path}\n"
        ))
        .map_err(|error| *error.problem)
    };
    let link = |name: &str, more: &str| format!("[[link]]\nname = \"{name}\"\n{more}\n");
    let between = |name: &str, from: &str, to: &str| link(name, &format!("from = \"{from}\"\nto = \"{to}\""));
    let both = "[\"link1\", \"link2\"]";
    assert!(matches!(
        read(&(between("link1", "a", "b") + &between("link2", "c", "d")), both),
        Err(Problem::Broken { end, begin, .. }) if end == "b" && begin == "c"
    ));
    let scenario = read(&(between("link1", "a", "b") + &between("link2", "b", "c")), both).unwrap();
    assert_eq!((scenario.links[1].from.as_str(), scenario.links[1].to.as_str()), ("b", "a"));
    assert_eq!(scenario.connections[0].paths[0].backward, [3, 1]);
    // What cannot be done is said; a way back of a table's own has none itself if it says so.
    assert_eq!(read(&link("link1", "one-way = true"), both), Err(Problem::TwoWay("link1".to_owned())));
    assert_eq!(read(&link("link1/back", "one-way = true"), both).unwrap().links.len(), 4);
}

#[test]
fn overrides_replace_values_and_obey_the_same_rules() {
    let read = |given: &[&str]| {
        let overrides: Vec<Override> = given.iter().map(|text| text.parse().unwrap()).collect();
        parse_with(template(), "test.toml", Path::new("."), &overrides)
    };
    let scenario = read(&[
        "duration=5s",
        "warmup=0s",
        "connection.cc=olia",
        "connection.phone.cc=\"mpcc-latency:omega=0.1\"",
        "connection.download.count=2",
        "connection.download.initial-window=4",
        "connection.download.initial-ssthresh=40",
        "link.wifi.loss=2%",
        "link.lte.back={ rate = '1Mbit' }",
        "source.video.on-off.on=7s",
    ])
    .unwrap();
    assert_eq!(scenario.duration, manypath_core::Duration::from_secs(5));
    assert_eq!(scenario.connections.len(), 3);
    assert_eq!(scenario.connections[0].cc.to_string(), "mpcc-latency:omega=0.1");
    assert_eq!((scenario.connections[1].cc.to_string(), scenario.connections[1].initial_window), ("olia".into(), 4));
    assert_eq!([0, 1].map(|index| scenario.connections[index].initial_ssthresh), [None, Some(40)]);
    let named = template().lines().position(|line| line.starts_with("name = \"download\"")).unwrap();
    assert_eq!(scenario.connections[1].line, named, "the line before its name");
    assert_eq!(scenario.links[0].config.loss, manypath_link::Loss::Random(0.02));
    assert_eq!(scenario.links[3].config.peak_rate().as_bps().to_string(), "1000000");
    assert_eq!(scenario.sources[0].on_off.unwrap().0, manypath_core::Duration::from_secs(7));
    for (given, message) in [
        ("connection.phone.speed=3", "connection.phone.speed=3:1:18: unknown field `speed`"),
        (
            "connection.phone.initial-ssthresh=1",
            "test.toml:34:1: initial-ssthresh is 1: it must be 2 to 100000 packets",
        ),
        ("duration=5", "duration=5:1:10: '5' has no unit: write 5s"),
        ("link.wifi.rate=fast", "link.wifi.rate=fast:1:16: 'fast' does not start with a number"),
        (
            "connection.nobody.cc=lia",
            "connection.nobody.cc=lia:1:12: there is no connection 'nobody' to change; there are phone",
        ),
        (
            "link.nothing.rate=5Mbit",
            "link.nothing.rate=5Mbit:1:6: there is no link 'nothing' to change; there are wifi, lte",
        ),
        ("duration='", "duration=':1:10: ''' does not start with a number"),
        ("wind=strong", "wind=strong:1:1: unknown field `wind`"),
    ] {
        let error = read(&[given]).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    // A text with quotes and what looks like escapes.
    assert_eq!(read(&[r#"name=it's "C:\new""#]).unwrap().name, r#"it's "C:\new""#);
    // The second of two: its own place.
    let error = read(&["duration=30s", "warmup=31s"]).unwrap_err().to_string();
    assert!(error.starts_with("warmup=31s:1:8: warmup is 31s"), "{error}");
    for bad in ["", "duration", "=5s", "a b=3", "#x=3", "a=1\nb=2", "a='1'\nb='2'"] {
        assert!(bad.parse::<Override>().is_err(), "{bad}");
    }
}

#[test]
fn links_of_a_topology_can_be_changed_from_outside() {
    let given = "link.link2.queue=9kB".parse::<Override>().unwrap();
    let scenario = parse_with(built_in(), "x", Path::new("."), &[given]).unwrap();
    assert_eq!(scenario.links[2].config.queue, manypath_link::QueueLimit::Bytes("9kB".parse().unwrap()));
}

#[test]
fn the_schema_knows_every_key_of_the_template() {
    let schema = json_schema();
    for line in template().lines().filter(|line| !line.trim_start().starts_with('#')) {
        if let Some((key, _)) = line.split_once(" = ")
            && key.trim().chars().all(|c| c.is_ascii_lowercase() || c == '-')
        {
            assert!(schema.contains(&format!("\"{}\"", key.trim())), "{key}");
        }
    }
    assert!(schema.contains("additionalProperties"));
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        let _ = read(&text);
    }

    /// Changes of one character somewhere in a good file.
    #[test]
    fn no_change_of_a_good_file_panics(at in 0_usize..2000, byte in any::<u8>()) {
        let mut bytes = template().as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read(&String::from_utf8_lossy(&bytes));
    }
}
