//! The thread on which everything of an endpoint runs: noq's tasks, the sessions, timers.
//!
//! One thread, because that is what makes the reports about packets exact (see `reports`), keeps the locks that noq and we
//! take per packet free of contention, and is faster than two threads that wake each other. The application keeps its own
//! runtime; it meets the session in the flows' buffers only.
//!
//! A panic of any task, noq's or ours, is a defect, and what it leaves may be torn: noq's handles panic again when they are
//! used or dropped. Then the thread ends, and every session on it with an error. Without that the application would wait for
//! a session that nobody works for.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::thread;
use std::time::Instant;

use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::ecn;
use crate::engine::Engine;

/// What a network thread knows of itself.
#[derive(Default)]
struct Network {
    engines: RefCell<Vec<Weak<Engine>>>,
    /// The defect that ends it.
    defect: RefCell<Option<String>>,
    ends: Arc<Notify>,
}

thread_local! {
    static NETWORK: Network = Network::default();
}

/// Starts the thread; it ends when the main task does. After a panic of any task `on_defect` is called, when the sessions
/// have ended.
pub(crate) fn start<M, F>(main: M, on_defect: impl FnOnce() + Send + 'static) -> io::Result<Handle>
where
    M: FnOnce(Handle) -> F + Send + 'static,
    F: Future<Output = ()>,
{
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let network = handle.clone();
    thread::Builder::new().name("manypath".to_owned()).spawn(move || {
        let mut main = Guarded::new(main(network));
        let ends = NETWORK.with(|network| Arc::clone(&network.ends));
        let is_defect = runtime.block_on(async {
            tokio::select! {
                biased;
                () = ends.notified() => true,
                () = &mut main => false,
            }
        });
        if is_defect {
            end_sessions();
            on_defect();
            // Who waits for the main task's answer hears that there is none.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(main)));
            // What is left may panic when it is dropped, some of it while something else does.
            std::mem::forget(runtime);
        }
    })?;
    Ok(handle)
}

/// Ends a session on this thread when the thread does.
pub(crate) fn watch(engine: &Arc<Engine>) {
    NETWORK.with(|network| {
        let engines = &mut *network.engines.borrow_mut();
        engines.retain(|held| held.strong_count() > 0);
        engines.push(Arc::downgrade(engine));
    });
}

/// Starts a task on this thread.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(Guarded::new(task));
}

fn end_sessions() {
    NETWORK.with(|network| {
        let defect = network.defect.borrow().clone().unwrap_or_default();
        for engine in network.engines.take().iter().filter_map(Weak::upgrade) {
            engine.on_defect(&defect);
        }
    });
}

/// A task whose panic ends the thread. It is not dropped then, nor is any task of the thread continued.
pub(crate) struct Guarded<F>(Option<Pin<Box<F>>>);

impl<F: Future<Output = ()>> Guarded<F> {
    pub(crate) fn new(task: F) -> Self {
        Self(Some(Box::pin(task)))
    }
}

impl<F: Future<Output = ()>> Future for Guarded<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if NETWORK.with(|network| network.defect.borrow().is_some()) {
            return Poll::Pending;
        }
        let Some(task) = &mut self.0 else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => {
                std::mem::forget(self.0.take());
                NETWORK.with(|network| {
                    *network.defect.borrow_mut() = Some(message(panic.as_ref()));
                    network.ends.notify_one();
                });
                Poll::Pending
            }
        }
    }
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// noq's runtime: Tokio, with guarded tasks.
#[derive(Debug)]
pub(crate) struct QuicRuntime;

impl Runtime for QuicRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        spawn(task);
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        Ok(Box::new(ecn::Socket(TokioRuntime.wrap_udp_socket(socket)?)))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}
