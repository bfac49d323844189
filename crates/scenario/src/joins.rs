//! When connections start and their subflows join: every engine draws the same times.
//!
//! Without random loss a run would be the same for every seed, and how its flows happen to fall in step would decide it. Times
//! that are drawn make seeds mean something.

use manypath_core::{Duration, Time};
use manypath_link::{generator, uniform};

use crate::model::Connection;

impl Connection {
    /// When each subflow is there, by path, in the run of this seed. The first time is that of the connection's start; a subflow
    /// never joins before the one before it. The draws come from streams named after the connection.
    pub fn joins(&self, seed: u64) -> Vec<Time> {
        let mut joining = generator(seed, &format!("{}/join", self.name));
        let mut at = self.start;
        let each = self.paths.iter().enumerate().map(|(index, path)| {
            at += match index {
                0 => self.start_spread.mul_f64(uniform(&mut generator(seed, &format!("{}/start", self.name)))),
                _ => path.join_after + self.join_spread.mul_f64(uniform(&mut joining)),
            };
            at
        });
        each.collect()
    }

    /// Whether it and all of its subflows are there from the very beginning, whatever the seed.
    pub fn is_there_at_once(&self) -> bool {
        let waits = self.paths.iter().map(|path| path.join_after).chain([self.start_spread, self.join_spread]);
        self.start == Time::ZERO && waits.max() == Some(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(more: &str, paths: &str) -> Connection {
        let text = format!(
            "duration = \"9s\"\ntopology = \"two-links\"\n[[connection]]\nname = \"c\"\ncc = \"lia\"\nstart = \"1s\"\n\
             {more}\npath = [{paths}]\n"
        );
        crate::parse(&text, "joins.toml", std::path::Path::new(".")).unwrap().connections.remove(0)
    }

    const TWO: &str = "{ route = [\"link1\"] }, { route = [\"link2\"] }";

    #[test]
    fn all_are_there_at_the_start_where_nothing_is_said() {
        let plain = connection("", TWO);
        assert_eq!(plain.joins(1), [Time::from_millis(1000); 2]);
        assert_eq!(plain.joins(1), plain.joins(2));
        // It starts later than the run.
        assert!(!plain.is_there_at_once());
        assert!(Connection { start: Time::ZERO, ..plain.clone() }.is_there_at_once());
        assert!(!Connection { start: Time::ZERO, join_spread: Duration::from_millis(1), ..plain }.is_there_at_once());
    }

    #[test]
    fn each_waits_for_the_one_before_it_and_its_own_word_counts() {
        let own = format!("{TWO}, {{ route = [\"link1\"], join-after = \"20ms\" }}");
        let times = connection("join-after = \"500ms\"", &own).joins(1);
        assert_eq!(times, [1000, 1500, 1520].map(Time::from_millis));
    }

    #[test]
    fn draws_are_even_over_their_spread_and_differ_by_seed() {
        let spread = connection("start-spread = \"100ms\"\njoin-after = \"50ms\"\njoin-spread = \"10ms\"", TWO);
        let (mut starts, mut joins) = (0.0, 0.0);
        for seed in 0..1000 {
            let times = spread.joins(seed);
            let (start, join) = ((times[0] - spread.start).as_secs_f64(), (times[1] - times[0]).as_secs_f64());
            assert!((0.0..0.1).contains(&start) && (0.05..0.06).contains(&join), "{times:?}");
            starts += start;
            joins += join;
        }
        // Standard errors: 100 ms * 0.29 / sqrt(1000) = 0.9 ms, and a tenth of it. Four of each.
        assert!((starts / 1000.0 - 0.05).abs() < 0.0037, "{starts}");
        assert!((joins / 1000.0 - 0.055).abs() < 0.00037, "{joins}");
        assert_eq!(spread.joins(7), spread.joins(7));
        let other = Connection { name: "d".to_owned(), ..spread.clone() };
        assert_ne!(other.joins(7)[0], spread.joins(7)[0], "equal connections start at different times");
    }
}
