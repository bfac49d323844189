//! Scenario files, good and bad.

use std::path::Path;

use manypath_scenario::{
    Problem, Scenario, ScenarioError, Workload, built_in, json_schema, parse, template, topologies,
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
fn a_link_of_a_topology_can_be_changed() {
    let text = "duration = \"1s\"\ntopology = \"mpcc-3c\"\n[[link]]\nname = \"link1\"\nqueue = \"9kB\"\nloss = \"1%\"\n\
                [[connection]]\nname = \"mp\"\ncc = \"lia\"\nrole = \"mp\"\nfile = \"1MB\"\n";
    let scenario = read(text).unwrap();
    assert_eq!(scenario.links.len(), 4);
    assert_eq!(scenario.links[0].config.queue, "9kB".parse().map(manypath_link::QueueLimit::Bytes).unwrap());
    assert_eq!(scenario.connections[0].workload, Workload::File("1MB".parse().unwrap()));
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
        (with("", "", "path = [{ route = [\"b\"] }]"), 12, "there is no link 'b'; there are a, a/back"),
        (with("", "", "path = [{ route = [\"a\", \"a\"] }]"), 12, "passes 'a' twice"),
        (with("", "", "path = [{ route = [] }]"), 12, "the route is empty"),
        (with("", "one-way = true", ROUTE), 12, "has no link back"),
        (with("", "", "count = 1000000000\npath = [{ route = [\"a\"] }]"), 9, "1 to 100000"),
        (with("", "", ""), 9, "[[connection.path]]"),
        (with("", "", "role = \"mp\""), 12, "no role 'mp'"),
        (with("", "", "path = [{ route = [\"a\"], cost = nan }]"), 12, "cost is NaN"),
        (with("topology = \"ring\"", "", ROUTE), 2, "there is no topology 'ring'"),
        (with("warmup = \"1s\"", "", ROUTE), 2, "shorter than the duration"),
        (with("sample = \"0s\"", "", ROUTE), 2, "at least 1us"),
        (with("", "", "file = \"1MB\"\nrate = \"1Mbit\"\npath = [{ route = [\"a\"] }]"), 9, "both 'file' and 'rate'"),
        (with("", "", "packet = \"100B\"\npath = [{ route = [\"a\"] }]"), 9, "above the overhead"),
        ("duration = \"0s\"\n".to_owned(), 1, "above zero"),
        ("duration = \"1s\"\n".to_owned(), 1, "nothing is sent"),
        ("duration = \"1s\"\n[[link]\n".to_owned(), 2, ""),
        (String::new(), 1, "duration"),
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
