//! The handle of running links.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::system::{During, SystemError};
use crate::tun::configure::{Side, set_up, set_up_mptcp};
use crate::tun::device::Device;
use crate::tun::engine::{Command, Engine};
use crate::tun::error::TunError;
use crate::tun::namespace::Namespace;
use crate::tun::plan::{PathPlan, TunConfig};
use crate::tun::stats::TunStats;
use crate::wait::Waker;

/// Two network namespaces and the links between them. Dropping it ends them; if the process ends in whatever way, they go, too.
#[derive(Debug)]
pub struct TunLinks {
    paths: Vec<PathPlan>,
    down: Arc<[AtomicBool]>,
    commands: Sender<Command>,
    waker: Waker,
    thread: Option<JoinHandle<Result<TunStats, SystemError>>>,
    // After the thread, which holds the devices.
    client: Namespace,
    server: Namespace,
}

impl TunLinks {
    /// Makes the namespaces and devices and starts the links. Their schedules start now.
    ///
    /// # Errors
    ///
    /// A link that makes no sense, or what the operating system refused; nothing is left behind then.
    pub fn start(config: &TunConfig) -> Result<Self, TunError> {
        config.check()?;
        let (client, at_client) = end(Side::Client, config)?;
        let (server, at_server) = end(Side::Server, config)?;
        let devices = at_client.into_iter().zip(at_server).map(|(client, server)| [client.queue, server.queue]);
        let down: Arc<[AtomicBool]> = config.paths.iter().map(|_| AtomicBool::new(false)).collect();
        let (commands, inbox) = channel();
        let engine = Engine::new(config, devices.collect(), down.clone(), inbox)?;
        let waker = engine.waker();
        let named = thread::Builder::new().name("manypath-links".to_owned());
        let thread = named.spawn(move || engine.run()).during("start the thread of the links")?;
        Ok(Self { paths: config.paths.clone(), down, commands, waker, thread: Some(thread), client, server })
    }

    /// The client's namespace: where connections begin.
    pub const fn client(&self) -> &Namespace {
        &self.client
    }

    /// The server's namespace.
    pub const fn server(&self) -> &Namespace {
        &self.server
    }

    /// The paths, with their devices and addresses.
    pub fn paths(&self) -> &[PathPlan] {
        &self.paths
    }

    /// Cuts a path in both directions, or mends it. While it is cut, everything that arrives at either end of it is dropped, at
    /// once; nobody is told. The links' queues go on as if nothing had happened. Nothing happens for a path there is not.
    pub fn set_down(&self, path: usize, down: bool) {
        if let Some(held) = self.down.get(path) {
            held.store(down, Ordering::Relaxed);
        }
    }

    /// The counters now.
    ///
    /// # Errors
    ///
    /// [`TunError::Gone`] if the links' thread has ended of itself.
    pub fn stats(&self) -> Result<TunStats, TunError> {
        let (reply, answer) = sync_channel(1);
        self.commands.send(Command::Stats(reply)).map_err(|_| TunError::Gone)?;
        self.waker.wake();
        let stats = answer.recv().map_err(|_| TunError::Gone)?;
        Ok(self.complete(stats))
    }

    /// Ends the links and returns their last counters. What is still on them is lost.
    ///
    /// # Errors
    ///
    /// What ended the links' thread before, if anything did.
    pub fn stop(mut self) -> Result<TunStats, TunError> {
        // The devices go with the thread, and what the kernel counts with them.
        let drops = self.kernel_drops();
        let mut stats = self.end().unwrap_or(Err(TunError::Gone))?;
        add_drops(&mut stats, &drops);
        Ok(stats)
    }

    /// Tells the thread to end and waits for it; `None` if that was done before.
    fn end(&mut self) -> Option<Result<TunStats, TunError>> {
        let thread = self.thread.take()?;
        // Both fail only if the thread has ended, and then joining says why.
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        Some(thread.join().map_or(Err(TunError::Gone), |result| result.map_err(TunError::from)))
    }

    fn complete(&self, mut stats: TunStats) -> TunStats {
        add_drops(&mut stats, &self.kernel_drops());
        stats
    }

    /// Packets that the kernel dropped at each path's devices, the client's and the server's.
    fn kernel_drops(&self) -> [String; 2] {
        [&self.client, &self.server].map(|side| {
            let table = side.run(|| fs::read_to_string(Path::new("/proc/thread-self/net/dev")));
            table.unwrap_or_default()
        })
    }
}

impl Drop for TunLinks {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls `stop`.
        let _ = self.end();
    }
}

/// A new namespace with its devices.
fn end(side: Side, config: &TunConfig) -> Result<(Namespace, Vec<Device>), TunError> {
    let namespace = Namespace::new()?;
    let paths = config.paths.clone();
    let devices = namespace.run(move || set_up(side, &paths))?;
    let chosen = config.mptcp_paths.iter().filter_map(|path| Some((config.paths.get(*path)?, devices.get(*path)?)));
    let chosen: Vec<_> = chosen.map(|(path, device)| (path.clone(), device.index)).collect();
    if config.mptcp && chosen.len() > 1 {
        namespace.run(move || set_up_mptcp(side, &chosen))?;
    }
    Ok((namespace, devices))
}

fn add_drops(stats: &mut TunStats, [client, server]: &[String; 2]) {
    for path in &mut stats.paths {
        path.forward.kernel_drops = device_drops(client, &path.device);
        path.backward.kernel_drops = device_drops(server, &path.device);
    }
}

/// The packets that a device could not send, from a table such as `/proc/net/dev` (proc_pid_net(5)): the 12th number of its line.
fn device_drops(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read_by_name_and_column() {
        let table = "Inter-|   Receive\n face |bytes\n path1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            path11:0 0 0 0 0 0 0 0 0 0 0 7 0 0 0 0\n";
        assert_eq!(device_drops(table, "path1"), Some(12));
        assert_eq!(device_drops(table, "path11"), Some(7));
        assert_eq!(device_drops(table, "path2"), None);
    }
}
