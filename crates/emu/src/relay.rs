//! The handle of a running relay.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::config::{RelayConfig, RelayError};
use crate::engine::{Command, Engine, Reading};
use crate::port::kernel_drops;
use crate::stats::RelayStats;
use crate::system::During;
use crate::wait::Waker;

/// A UDP relay on its own thread. Dropping it ends it.
#[derive(Debug)]
pub struct Relay {
    local_addr: SocketAddr,
    down: Arc<AtomicBool>,
    commands: Sender<Command>,
    waker: Waker,
    thread: Option<JoinHandle<Result<Reading, RelayError>>>,
}

impl Relay {
    /// Opens the relay's socket and starts its thread. The links' schedules start now.
    ///
    /// # Errors
    ///
    /// A link that makes no sense, or what the operating system refused.
    pub fn start(config: &RelayConfig) -> Result<Self, RelayError> {
        let down = Arc::new(AtomicBool::new(false));
        let (commands, inbox) = channel();
        let engine = Engine::new(config, down.clone(), inbox)?;
        let local_addr = engine.local_addr()?;
        let waker = engine.waker();
        let named = thread::Builder::new().name("manypath-relay".to_owned());
        let thread = named.spawn(move || engine.run()).during("start the relay's thread")?;
        Ok(Self { local_addr, down, commands, waker, thread: Some(thread) })
    }

    /// Where clients send to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Cuts the link in both directions, or mends it. While it is cut, everything that arrives at either end of it is dropped, at
    /// once; nobody is told. The links' queues go on as if nothing had happened.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Whether the link is cut.
    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// The relay's counters now.
    ///
    /// # Errors
    ///
    /// [`RelayError::Gone`] if the relay's thread has ended of itself.
    pub fn stats(&self) -> Result<RelayStats, RelayError> {
        let (reply, answer) = sync_channel(1);
        self.commands.send(Command::Stats(reply)).map_err(|_| RelayError::Gone)?;
        self.waker.wake();
        answer.recv().map(complete).map_err(|_| RelayError::Gone)
    }

    /// Ends the relay and returns its last counters. What is still on the links is lost.
    ///
    /// # Errors
    ///
    /// What ended the relay's thread before, if anything did.
    pub fn stop(mut self) -> Result<RelayStats, RelayError> {
        self.end().unwrap_or(Err(RelayError::Gone)).map(complete)
    }

    /// Tells the thread to end and waits for it; `None` if that was done before.
    fn end(&mut self) -> Option<Result<Reading, RelayError>> {
        let thread = self.thread.take()?;
        // Both fail only if the thread has ended, and then joining says why.
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        Some(thread.join().unwrap_or(Err(RelayError::Gone)))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls `stop`.
        let _ = self.end();
    }
}

/// Adds what the kernel counts to a reading.
fn complete(reading: Reading) -> RelayStats {
    RelayStats { kernel_drops: kernel_drops(&reading.inodes), ..reading.stats }
}
