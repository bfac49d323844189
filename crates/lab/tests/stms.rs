//! STMS-A over QUIC with more than two paths, on links in real time: that it works, not how fast.

use std::path::Path;

use manypath_lab::{Engine, Input, Quantities, Quic};

#[test]
fn a_file_arrives_over_three_and_over_four_paths_and_each_carries_some_of_it() {
    for count in [3, 4] {
        let mut text = "duration = \"3s\"\n".to_owned();
        let mut routes = String::new();
        for (index, delay) in ["5ms", "10ms", "20ms", "30ms"].iter().take(count).enumerate() {
            text +=
                &format!("[[link]]\nname = \"l{index}\"\nrate = \"20Mbit\"\ndelay = \"{delay}\"\nqueue = \"50ms\"\n");
            routes += &format!("{{ route = [\"l{index}\"] }}, ");
        }
        text += &format!(
            "[[connection]]\nname = \"mp\"\ncc = \"cubic\"\nscheduler = \"stms-a\"\nfile = \"2MB\"\npath = [{routes}]\n"
        );
        let scenario = manypath_scenario::parse(&text, "paths", Path::new(".")).unwrap();
        let Quantities(found) = Quic.run(&Input::Scenario(Box::new(scenario)), 1).unwrap();
        assert_eq!(found["connection.mp.file.completion_s"].len(), 1, "{count} paths: {found:?}");
        for path in 0..count {
            let sent = found[&format!("connection.mp.subflow.{path}.sent_bytes")][0];
            assert!(sent > 0.0, "path {path} of {count}: {found:?}");
        }
    }
}
