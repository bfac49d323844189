//! Ctrl-C, and the polite request to end that service managers send. The first ends the command cleanly, the second at once.

use std::io;

use tokio::sync::watch;

/// Tells that the user wants the command to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts to listen. From now on the signals do nothing else.
    pub(crate) fn listen() -> io::Result<Self> {
        let (told, receiver) = watch::channel(false);
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            signals.next().await;
            told.send_replace(true);
            signals.next().await;
            std::process::exit(crate::EXIT_ERROR.into());
        });
        Ok(Self(receiver))
    }

    /// Waits for the first signal.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as the process.
        if self.0.clone().wait_for(|told| *told).await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
