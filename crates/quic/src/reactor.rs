//! The thread on which everything of an endpoint runs: noq's tasks, the sessions, timers.
//!
//! One thread, because that is what makes the reports about packets exact (see `reports`), keeps the locks that noq and we
//! take per packet free of contention, and is faster than two threads that wake each other. The application keeps its own
//! runtime; it meets the session in the flows' buffers only.

use std::future::Future;
use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};

/// Starts the thread; it ends when the main task does.
pub(crate) fn start<M, F>(main: M) -> io::Result<Handle>
where
    M: FnOnce(Handle) -> F + Send + 'static,
    F: Future<Output = ()>,
{
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let network = handle.clone();
    thread::Builder::new().name("manypath".to_owned()).spawn(move || runtime.block_on(main(network)))?;
    Ok(handle)
}
