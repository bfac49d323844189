//! Many runs at once. Runs share nothing, so their reports do not depend on how many threads there are.

use std::num::NonZeroUsize;

use manypath_scenario::Scenario;
use rayon::prelude::*;

use crate::error::RunError;
use crate::observer::Observer;
use crate::report::Report;

/// A run to be made.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What to simulate.
    pub scenario: &'a Scenario,
    /// With which seed.
    pub seed: u64,
}

/// Runs all jobs on so many threads, or as many as there are jobs; the reports come in the order of the jobs. `observer` gives each job, by its index,
/// someone who looks on.
///
/// # Errors
/// That of the first job in order that failed.
pub fn run_all<O: Observer>(
    jobs: &[Job<'_>],
    threads: NonZeroUsize,
    observer: impl Fn(usize) -> O + Sync,
) -> Result<Vec<Report>, RunError> {
    let one = |(index, job): (usize, &Job<'_>)| crate::run_observed(job.scenario, job.seed, &mut observer(index));
    let threads = threads.get().min(jobs.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let reports: Vec<_> = match pool {
        Ok(pool) => pool.install(|| jobs.par_iter().enumerate().map(one).collect()),
        // The system gives no threads: this one has to do it.
        Err(_) => jobs.iter().enumerate().map(one).collect(),
    };
    reports.into_iter().collect()
}
