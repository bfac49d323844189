//! Applications over the kernel's TCP: who writes what when. They are the simulator's, at the same times, but that a connection is one
//! stream of bytes: a file that begins while others are on their way waits for them.

use std::io;
use std::time::{Duration, Instant};

use manypath_core::{Bytes, Duration as Span, Time};
use manypath_link::exponential;
use manypath_scenario::{Connection, Scenario, Workload};

use super::flow::Client;

/// What one connection of a scenario sends.
#[derive(Clone, Debug)]
pub(super) struct Application {
    workload: Workload,
    /// How much a rate's application writes at once.
    quantum: Bytes,
    /// What its times are drawn with.
    seed: u64,
    stream: String,
    pub(super) start: Instant,
    stop: Instant,
}

impl Application {
    /// Of a run that began then.
    pub(super) fn new(scenario: &Scenario, described: &Connection, begun: Instant, seed: u64) -> Self {
        let at = |time: Time| begun + Duration::from(time.since(Time::ZERO));
        Self {
            workload: described.workload.clone(),
            quantum: described.packet - described.overhead - described.record_header,
            seed,
            stream: format!("{}/application", described.name),
            start: described.joins(seed).first().map_or(begun, |start| at(*start)),
            stop: at(described.stop.unwrap_or(Time::ZERO + scenario.duration)),
        }
    }

    /// The size of each file, where there are files.
    pub(super) fn file(&self) -> Option<Bytes> {
        match self.workload {
            Workload::File(size) | Workload::Arrivals { size, .. } => Some(size),
            Workload::Endless | Workload::Rate(_) | Workload::OnOff { .. } => None,
        }
    }

    /// Writes until it stops or all is written; its start has come.
    pub(super) fn run(self, client: &mut Client<'_>) -> io::Result<()> {
        let Self { start, stop, .. } = self;
        let mut random = manypath_link::generator(self.seed, &self.stream);
        let mut drawn =
            |mean: Span, is_random| Duration::from(if is_random { exponential(&mut random, mean) } else { mean });
        match self.workload {
            Workload::Endless => client.write(u64::MAX, stop).map(|_| ()),
            Workload::File(size) => {
                client.begin(start);
                client.write(size.get(), stop).map(|_| ())
            }
            Workload::Arrivals { size, every, poisson } => {
                let mut next = start + if poisson { drawn(every, poisson) } else { Duration::ZERO };
                while next < stop && client.wait(next) {
                    client.begin(next);
                    client.write(size.get(), stop)?;
                    next += drawn(every, poisson);
                }
                Ok(())
            }
            Workload::Rate(rate) => {
                let (mut next, mut written) = (start, Bytes::ZERO);
                while next < stop && client.wait(next) {
                    written += Bytes::new(client.write(self.quantum.get(), stop)?);
                    next = start + Duration::from(written.time_at(rate));
                }
                Ok(())
            }
            Workload::OnOff { on, off, random: is_random } => {
                let mut next = start;
                while next < stop && client.wait(next) {
                    next += drawn(on, is_random);
                    client.write(u64::MAX, next.min(stop))?;
                    next += drawn(off, is_random);
                }
                Ok(())
            }
        }
    }
}
