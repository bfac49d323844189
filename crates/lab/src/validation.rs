//! Whether engines agree: the same scenarios with the same controller and scheduler in the simulator, and over the QUIC
//! transport on links in real time.

use core::fmt::Write as _;

use crate::engine::{Engine, EngineError, Input, Quic, Simulator};

/// Runs in the simulator: they cost little.
const SIMULATED: u32 = 20;
/// How far goodputs may be apart, as a share of the simulator's.
pub const TOLERANCE: f64 = 0.1;

/// Two links and one connection. Packets are what QUIC makes of an MTU of 1452 bytes: 28 bytes of IPv4 and UDP, 38 of QUIC
/// with DATAGRAM frame and tag. Acknowledgements come as the transport's QUIC sends them, after four packets or 5 ms, and
/// windows leave as they do there.
const TEMPLATE: &str = r#"
duration = "{duration}"
warmup = "{warmup}"

[[link]]
name = "link1"
rate = "30Mbit"
delay = "{delay1}"
queue = "{queue1}"
loss = "{loss}"
jitter = "{jitter}"
reorder = true

[[link]]
name = "link2"
rate = "20Mbit"
delay = "{delay2}"
queue = "{queue2}"
loss = "{loss}"
jitter = "{jitter}"
reorder = true

[[connection]]
name = "mp"
cc = "{cc}"
scheduler = "{scheduler}"
path = [{ route = ["link1"] }, { route = ["link2"] }]
packet = "1480B"
overhead = "66B"
ack-every = 4
max-ack-delay = "5ms"
pace-windows = true
pacing-burst = "500us"
"#;

/// A scenario of the comparison.
#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    about: &'static str,
    delays: [&'static str; 2],
    queues: [&'static str; 2],
    loss: &'static str,
    jitter: &'static str,
}

const CLEAN: Setting = Setting {
    name: "clean",
    about: "15 ms each way on both; 150 and 100 kB of queue",
    delays: ["15ms", "15ms"],
    queues: ["150kB", "100kB"],
    loss: "0%",
    jitter: "0ms",
};

const SETTINGS: [Setting; 5] = [
    CLEAN,
    Setting { name: "loss", about: "the same with 1% of all packets lost", loss: "1%", ..CLEAN },
    Setting { name: "shallow", about: "30 kB of queue on link 1", queues: ["30kB", "100kB"], ..CLEAN },
    // With 100 kB on the slow link the overshoot of slow start lies at an edge: LIA halves its window once or twice, by
    // fractions of a millisecond, and needs minutes to make up for it. That would compare chance, not engines.
    Setting {
        name: "unequal",
        about: "10 and 50 ms each way; 150 and 200 kB of queue (at about 100 kB, slow start on the slow link ends with one halving \
                or two in either engine, by fractions of a millisecond)",
        delays: ["10ms", "50ms"],
        queues: ["150kB", "200kB"],
        ..CLEAN
    },
    Setting {
        name: "reordering",
        about: "the first, with packets that overtake each other by up to 10 ms",
        jitter: "10ms",
        ..CLEAN
    },
];

const ALGORITHMS: [(&str, &str); 2] = [("lia", "minrtt"), ("mpcc-loss", "rate-based")];

/// A scenario as both engines ran it.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Which scenario.
    pub scenario: &'static str,
    /// Controller and scheduler.
    pub algorithms: (&'static str, &'static str),
    /// Goodput in the simulator.
    pub sim: Goodput,
    /// Goodput over QUIC.
    pub quic: Goodput,
}

/// Goodput of a scenario's runs, Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodput {
    /// The mean.
    pub mean: f64,
    /// The least of any run.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Agreement {
    /// How far the goodput over QUIC is from the simulator's, as a share of that.
    pub fn difference(&self) -> f64 {
        self.quic.mean / self.sim.mean - 1.0
    }

    /// Whether it is close enough.
    pub fn agrees(&self) -> bool {
        self.difference().abs() <= TOLERANCE
    }
}

/// How long and how often each scenario is run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Seconds, of which the first quarter does not count.
    pub seconds: u32,
    /// Runs over QUIC: seeds of the losses and of the controllers. Where packets are lost at random, three times as many.
    pub seeds: u32,
}

/// Runs every scenario with every pair of algorithms in both engines; `progress` hears of each that is done. Takes as long
/// as all scenarios together.
///
/// # Errors
/// If an engine cannot run a scenario.
pub fn validate(effort: Effort, progress: &mut dyn FnMut(&Agreement)) -> Result<Vec<Agreement>, EngineError> {
    let mut found = Vec::new();
    for setting in &SETTINGS {
        for algorithms in ALGORITHMS {
            let input = Input::Scenario(Box::new(scenario(setting, algorithms, effort)?));
            let seeds = if setting.loss == "0%" { effort.seeds } else { effort.seeds * 3 };
            let (sim, quic) = (goodput(&Simulator, &input, SIMULATED)?, goodput(&Quic, &input, seeds)?);
            let agreement = Agreement { scenario: setting.name, algorithms, sim, quic };
            progress(&agreement);
            found.push(agreement);
        }
    }
    Ok(found)
}

fn goodput(engine: &dyn Engine, input: &Input, seeds: u32) -> Result<Goodput, EngineError> {
    let mut found = Vec::new();
    for seed in 1..=seeds {
        let quantities = engine.run(input, u64::from(seed))?;
        let goodput = quantities.0.get("goodput_bps").and_then(|values| values.first());
        found.push(goodput.copied().unwrap_or(f64::NAN) * 1e-6);
    }
    Ok(Goodput {
        mean: found.iter().sum::<f64>() / f64::from(seeds),
        least: found.iter().copied().fold(f64::INFINITY, f64::min),
        most: found.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// How many comparisons there are.
pub const fn comparisons() -> usize {
    SETTINGS.len() * ALGORITHMS.len()
}

fn scenario(
    setting: &Setting,
    (cc, scheduler): (&str, &str),
    effort: Effort,
) -> Result<manypath_scenario::Scenario, EngineError> {
    let mut text = TEMPLATE.to_owned();
    let (duration, warmup) = (format!("{}s", effort.seconds), format!("{}ms", effort.seconds * 250));
    for (name, value) in [
        ("duration", duration.as_str()),
        ("warmup", &warmup),
        ("delay1", setting.delays[0]),
        ("delay2", setting.delays[1]),
        ("queue1", setting.queues[0]),
        ("queue2", setting.queues[1]),
        ("loss", setting.loss),
        ("jitter", setting.jitter),
        ("cc", cc),
        ("scheduler", scheduler),
    ] {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    manypath_scenario::parse(&text, setting.name, std::path::Path::new("."))
        .map_err(|error| EngineError(error.to_string()))
}

/// The title of the section that [`validation_markdown`] makes.
pub const VALIDATION_TITLE: &str = "## Simulator and QUIC";

/// The comparison as a section of Markdown. `made` says how.
pub fn validation_markdown(found: &[Agreement], made: &str) -> String {
    let mut out = format!(
        "{VALIDATION_TITLE}\n\n\
         The same scenarios, controllers and schedulers in the simulator (`sim`) and over the QUIC transport on links that the emulator \
         makes in real time (`emu` + `quic`). Two links, 30 and 20 Mbit/s; one connection. Goodput after the first quarter of the run: mean of all runs, least and most.\n\n\
         Made by `{made}`, manypath {}. Runs in real time need an idle machine: on a busy one goodput over QUIC is lower.\n\n\
         | scenario | controller | scheduler | sim (Mbit/s) | emu + quic (Mbit/s) | difference | within {:.0}% |\n|---|---|---|---|---|---|---|\n",
        env!("CARGO_PKG_VERSION"),
        TOLERANCE * 100.0
    );
    for row in found {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {:+.1}% | {} |",
            row.scenario,
            row.algorithms.0,
            row.algorithms.1,
            of_runs(&row.sim),
            of_runs(&row.quic),
            row.difference() * 100.0,
            if row.agrees() { "yes" } else { "no" }
        );
    }
    out.push('\n');
    for setting in SETTINGS {
        let _ = writeln!(out, "* {}: {}", setting.name, setting.about);
    }
    out
}

/// Mean, and least and most where runs differ.
fn of_runs(goodput: &Goodput) -> String {
    let Goodput { mean, least, most } = goodput;
    if most - least < 0.005 { format!("{mean:.2}") } else { format!("{mean:.2} ({least:.2} to {most:.2})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_comparison_makes_sense() {
        for setting in &SETTINGS {
            for algorithms in ALGORITHMS {
                let scenario = scenario(setting, algorithms, Effort { seconds: 8, seeds: 1 }).unwrap();
                assert_eq!(scenario.warmup, manypath_core::Duration::from_secs(2));
                manypath_sim::run(&scenario, 1).unwrap();
            }
        }
    }

    /// Its goodput is the square of its seed, in Mbit/s.
    struct Square;

    impl Engine for Square {
        fn kind(&self) -> crate::experiment::EngineKind {
            crate::experiment::EngineKind::Sim
        }

        fn code(&self) -> &'static crate::code::Code {
            Simulator.code()
        }

        fn run(&self, _input: &Input, seed: u64) -> Result<crate::quantities::Quantities, EngineError> {
            let goodput = ("goodput_bps".to_owned(), vec![(seed * seed) as f64 * 1e6]);
            Ok(crate::quantities::Quantities([goodput].into()))
        }
    }

    #[test]
    fn a_goodput_is_the_mean_of_its_runs() {
        let input = scenario(&SETTINGS[0], ALGORITHMS[0], Effort { seconds: 8, seeds: 1 }).unwrap();
        let found = goodput(&Square, &Input::Scenario(Box::new(input)), 4).unwrap();
        // Not the median, which is 6.5.
        assert_eq!(found, Goodput { mean: 7.5, least: 1.0, most: 16.0 });
    }

    #[test]
    fn what_is_off_by_more_than_a_tenth_does_not_agree() {
        let goodput = |mean| Goodput { mean, least: mean, most: mean + 1.0 };
        let row = |mean| Agreement {
            scenario: "clean",
            algorithms: ("lia", "minrtt"),
            sim: Goodput { most: 40.0, ..goodput(40.0) },
            quic: goodput(mean),
        };
        assert!(row(36.1).agrees() && row(43.9).agrees());
        assert!(!row(35.9).agrees() && !row(44.1).agrees() && !row(f64::NAN).agrees());
        let text = validation_markdown(&[row(35.0)], "manypath lab validate");
        assert!(text.contains("| clean | lia | minrtt | 40.00 | 35.00 (35.00 to 36.00) | -12.5% | no |"), "{text}");
    }
}
