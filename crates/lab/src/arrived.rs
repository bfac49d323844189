//! Files that arrived in runs in real time, and what is said of them.

use std::sync::{Arc, Mutex, PoisonError};

use manypath_core::Bytes;

use crate::quantities::Quantities;

/// A file that arrived; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// When it began, since the scenario did.
    pub(crate) start: f64,
    pub(crate) completion: f64,
    pub(crate) size: Bytes,
}

/// The files of a connection that arrived, in the order of their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Arc<Mutex<Vec<File>>>);

impl Files {
    pub(crate) fn add(&self, file: File) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    /// Sets what the simulator says of files, with its names. `prefix` is the connection's; summaries are of those that began
    /// after the warm-up, seconds.
    pub(crate) fn report(&self, found: &mut Quantities, prefix: &str, warmup: f64) {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.is_empty() {
            let mut list = |key: &str, value: fn(&File) -> f64| {
                found.0.insert(format!("{prefix}.file.{key}"), files.iter().map(value).collect());
            };
            list("start_s", |file| file.start);
            list("completion_s", |file| file.completion);
            list("bytes", |file| file.size.as_f64());
        }
        let later: Vec<&File> = files.iter().filter(|file| file.start >= warmup).collect();
        let mut times: Vec<f64> = later.iter().map(|file| file.completion).collect();
        times.sort_unstable_by(f64::total_cmp);
        let Some(longest) = times.last() else { return };
        let mut set = |key: &str, value| found.set(&format!("{prefix}.file_summary.{key}"), value);
        set("count", times.len() as f64);
        set("bytes", later.iter().map(|file| file.size.as_f64()).sum());
        set("completion_mean_s", times.iter().sum::<f64>() / times.len() as f64);
        for percent in [50, 95, 99] {
            set(&format!("completion_p{percent}_s"), times[(times.len() * percent).div_ceil(100) - 1]);
        }
        set("completion_max_s", *longest);
    }
}

/// Runs of every workload, for the tests of engines.
#[cfg(test)]
pub(crate) mod workloads {
    use manypath_scenario::Scenario;

    use super::Quantities;

    /// A connection of each over a link of its own. Two seconds, in which each link carries 2.5 MB, 1.9 MB after the warm-up. `transport`
    /// is a line of each connection.
    pub(crate) fn scenario(transport: &str) -> Scenario {
        let each = [
            ("files", "arrivals = { size = \"20kB\", every = \"100ms\" }"),
            ("drawn", "arrivals = { size = \"20kB\", every = \"100ms\", timing = \"poisson\" }"),
            ("one", "file = \"20kB\""),
            ("rate", "rate = \"2Mbit\""),
            ("bursts", "on-off = { on = \"500ms\", off = \"500ms\" }"),
            ("brief", "stop = \"500ms\""),
        ];
        let one = |(name, workload): (&str, &str)| {
            format!(
                "[[link]]\nname = \"{name}\"\nrate = \"10Mbit\"\ndelay = \"5ms\"\nqueue = \"50kB\"\n[[connection]]\n\
                name = \"{name}\"\ncc = \"cubic\"\n{transport}\nsend-buffer = \"64kB\"\n\
                path = [{{ route = [\"{name}\"] }}]\n{workload}\n"
            )
        };
        let connections = each.map(one).concat();
        let text = format!("duration = \"2s\"\nwarmup = \"500ms\"\n{connections}");
        manypath_scenario::parse(&text, "x", std::path::Path::new(".")).unwrap()
    }

    /// Fails unless what such a run found is what and when the applications are to write.
    pub(crate) fn are_as_told(found: &Quantities) {
        let of = |key: &str| found.0[&format!("connection.{key}")].clone();
        // However late they were on this machine, they began when they were to.
        let (starts, drawn) = (of("files.file.start_s"), of("drawn.file.start_s"));
        assert!((2..=20).contains(&starts.len()) && starts.contains(&0.0), "{starts:?}");
        let is_tenth = |start: &f64| (start * 10.0 - (start * 10.0).round()).abs() < 1e-6;
        assert!(starts.iter().all(is_tenth) && !drawn.iter().all(is_tenth), "{starts:?} {drawn:?}");
        assert!(of("files.file_summary.count")[0] <= 15.0 && of("files.file_summary.completion_mean_s")[0] > 0.01);
        assert!(of("one.file.completion_s")[0] > 0.02, "{found:?}");
        let delivered = |name: &str| of(&format!("{name}.delivered_bytes"))[0];
        assert!(delivered("rate") > 0.0 && delivered("rate") <= 1e6, "{found:?}");
        // Half of the time, and the send buffer of each of two busy times.
        assert!(delivered("bursts") > 0.0 && delivered("bursts") <= 1.25e6 + 128e3, "{found:?}");
        assert!(delivered("brief") <= 1e6, "{found:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(start: f64, completion: f64) -> File {
        File { start, completion, size: Bytes::new(1000) }
    }

    #[test]
    #[allow(clippy::float_cmp)] // the numbers are exact
    fn summaries_are_of_the_files_that_began_after_the_warm_up() {
        let (files, mut found) = (Files::default(), Quantities::default());
        files.report(&mut found, "connection.mp", 1.0);
        assert!(found.0.is_empty(), "{found:?}");
        files.add(file(0.5, 9.0));
        files.report(&mut found, "connection.mp", 1.0);
        assert_eq!(found.0["connection.mp.file.completion_s"], [9.0]);
        assert!(!found.0.contains_key("connection.mp.file_summary.count"), "{found:?}");
        // From 1.00 s to 0.01 s.
        (1..=100).rev().for_each(|hundredth| files.add(file(1.0, f64::from(hundredth) / 100.0)));
        files.report(&mut found, "connection.mp", 1.0);
        assert_eq!(found.0["connection.mp.file.start_s"].len(), 101);
        let of = |key: &str| found.0[&format!("connection.mp.file_summary.{key}")][0];
        assert_eq!((of("count"), of("bytes")), (100.0, 100_000.0));
        assert!((of("completion_mean_s") - 0.505).abs() < 1e-12, "{found:?}");
        assert_eq!(["p50", "p95", "p99", "max"].map(|key| of(&format!("completion_{key}_s"))), [0.5, 0.95, 0.99, 1.0]);
    }
}
