//! Applications over QUIC: who writes what when. They are the simulator's, at the same times, but that a file has arrived when its
//! sender hears so.

use std::io;
use std::time::{Duration, Instant};

use manypath_core::{Bytes, Duration as Span, Time};
use manypath_link::exponential;
use manypath_quic::{Connection, SendFlow};
use manypath_scenario::{Connection as Described, Scenario, Workload};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use super::failed;
use crate::arrived::{File, Files};
use crate::engine::EngineError;

/// How much is written at once, bytes.
const CHUNK: usize = 1 << 14;

/// What one connection of a scenario sends.
#[derive(Clone, Debug)]
pub(super) struct Application {
    described: Described,
    connection: Connection,
    /// When the scenario began, and when this begins and stops.
    begun: Instant,
    start: Instant,
    stop: Instant,
    files: Files,
}

impl Application {
    pub(super) fn new(
        scenario: &Scenario,
        described: &Described,
        connection: Connection,
        begun: Instant,
        seed: u64,
    ) -> Self {
        let at = |time: Time| begun + Duration::from(time.since(Time::ZERO));
        Self {
            described: described.clone(),
            connection,
            begun,
            start: described.joins(seed).first().map_or(begun, |start| at(*start)),
            stop: at(described.stop.unwrap_or(Time::ZERO + scenario.duration)),
            files: Files::default(),
        }
    }

    /// The files that arrive.
    pub(super) fn files(&self) -> Files {
        self.files.clone()
    }

    /// Writes from its start until it stops or all is written, and waits until that has arrived.
    pub(super) async fn run(self, seed: u64) -> Result<(), EngineError> {
        let mut random = manypath_link::generator(seed, &format!("{}/application", self.described.name));
        let mut drawn =
            move |mean, is_random| Duration::from(if is_random { exponential(&mut random, mean) } else { mean });
        let Workload::Arrivals { every, poisson, .. } = self.described.workload else { return self.flow(drawn).await };
        let mut next = self.start + if poisson { drawn(every, poisson) } else { Duration::ZERO };
        let mut files = JoinSet::new();
        while next < self.stop {
            sleep_until(next.into()).await;
            files.spawn(Self { start: next, ..self.clone() }.flow(|_, _| Duration::ZERO));
            next += drawn(every, poisson);
        }
        while let Some(done) = files.join_next().await {
            done.map_err(|error| failed(&error))??;
        }
        Ok(())
    }

    /// Writes to a flow of its own.
    async fn flow(self, drawn: impl FnMut(Span, bool) -> Duration) -> Result<(), EngineError> {
        sleep_until(self.start.into()).await;
        let (mut flow, _back) = self.connection.open_flow().await.map_err(|error| failed(&error))?;
        // When it stops, what is written by then still arrives.
        let written = timeout_at(self.stop.into(), self.write(&mut flow, drawn)).await;
        let is_whole = written.is_ok();
        written.unwrap_or(Ok(())).and_then(|()| flow.finish()).map_err(|error| failed(&error))?;
        flow.delivered().await.map_err(|error| failed(&error))?;
        if let Workload::File(size) | Workload::Arrivals { size, .. } = self.described.workload
            && is_whole
        {
            let start = self.start.duration_since(self.begun).as_secs_f64();
            self.files.add(File { start, completion: self.start.elapsed().as_secs_f64(), size });
        }
        Ok(())
    }

    /// Writes what the workload says. `drawn` makes a span of a mean and whether it is random.
    async fn write(&self, flow: &mut SendFlow, mut drawn: impl FnMut(Span, bool) -> Duration) -> io::Result<()> {
        match self.described.workload {
            Workload::Endless => write(flow, u64::MAX).await,
            Workload::File(size) | Workload::Arrivals { size, .. } => write(flow, size.get()).await,
            Workload::Rate(rate) => {
                let Described { packet, overhead, record_header, .. } = self.described;
                let (quantum, mut written) = (packet - overhead - record_header, Bytes::ZERO);
                loop {
                    write(flow, quantum.get()).await?;
                    written += quantum;
                    sleep_until((self.start + Duration::from(written.time_at(rate))).into()).await;
                }
            }
            Workload::OnOff { on, off, random } => {
                let mut next = self.start;
                loop {
                    next += drawn(on, random);
                    timeout_at(next.into(), write(flow, u64::MAX)).await.unwrap_or(Ok(()))?;
                    next += drawn(off, random);
                    sleep_until(next.into()).await;
                }
            }
        }
    }
}

/// Writes so many bytes, of no meaning.
async fn write(flow: &mut SendFlow, mut bytes: u64) -> io::Result<()> {
    let chunk = [0; CHUNK];
    while bytes > 0 {
        let most = usize::try_from(bytes).unwrap_or(CHUNK).min(CHUNK);
        bytes -= flow.write(&chunk[..most]).await? as u64;
    }
    Ok(())
}
