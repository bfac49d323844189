//! Network namespaces that have no name: they live as long as somebody is in them, so nothing is left behind, however a
//! process ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::process::{Signal, getpid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, gettid, move_into_link_name_space, unshare_unsafe};

use crate::system::{During, SystemError};

type Job = Box<dyn FnOnce() + Send>;

/// A thread that lives in a network namespace and runs jobs there. Sockets that a job opens belong to the namespace and may be
/// taken out; threads and programs that it starts are in the namespace, too.
#[derive(Debug)]
pub struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Namespace {
    /// A new namespace, with nothing in it but a loopback device that is down.
    ///
    /// # Errors
    ///
    /// The kernel refuses, mostly because the process lacks `CAP_SYS_ADMIN`.
    pub fn new() -> Result<Self, SystemError> {
        Self::start(|| {
            // SAFETY: the call changes nothing but the network namespace of this thread, which has just begun and shares nothing
            // that depends on it: no file descriptors, no memory.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.during("make a network namespace")
        })
    }

    /// The namespace behind a path such as `/proc/PID/ns/net`.
    ///
    /// # Errors
    ///
    /// There is none, or the process may not enter it.
    pub fn enter(path: &Path) -> Result<Self, SystemError> {
        let namespace: OwnedFd = File::open(path).during("open a network namespace")?.into();
        Self::start(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).during("enter a network namespace")
        })
    }

    fn start(enter: impl FnOnce() -> Result<(), SystemError> + Send + 'static) -> Result<Self, SystemError> {
        let (jobs, inbox) = channel::<Job>();
        let (told, entered) = sync_channel(1);
        let main = move || {
            let result = enter().map(|()| namespace_path());
            let failed = result.is_err();
            // The starter waits for it.
            let _ = told.send(result);
            if !failed {
                inbox.into_iter().for_each(|job| job());
            }
        };
        let thread = thread::Builder::new().name("manypath-netns".to_owned()).spawn(main).during("start a thread")?;
        let path = entered.recv().unwrap_or_else(|_| {
            Err(SystemError { action: "enter a network namespace", reason: io::Error::other("the thread is gone") })
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), path })
    }

    /// Where the kernel shows the namespace, for `nsenter --net=PATH` and [`Self::enter`], as long as this object lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `job` in the namespace and returns what it returns. Jobs wait for each other.
    ///
    /// # Panics
    ///
    /// If the job panics.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (reply, answer) = sync_channel(1);
        let job = move || {
            // A panic is the caller's; the thread goes on.
            let _ = reply.send(catch_unwind(AssertUnwindSafe(job)));
        };
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(Box::new(job)).is_ok());
        match answer.recv() {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => resume_unwind(panic),
            // The thread ends only when the channel closes, which `drop` alone does, and jobs cannot unwind it.
            Err(_) => unreachable!("the thread of a namespace outlives its jobs (sent: {sent})"),
        }
    }

    /// Starts a program in the namespace. It is killed when this object goes away, or the process that holds it, however that
    /// ends.
    ///
    /// # Errors
    ///
    /// What starting the program gives.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let parent = getpid();
        let leash = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have gone in between.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        // SAFETY: between fork and exec the closure makes two system calls and touches no memory of others.
        unsafe { command.pre_exec(leash) };
        self.run(move || command.spawn())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It ends when its last job has ended, and jobs catch their panics.
            let _ = thread.join();
        }
    }
}

/// Where the kernel shows the namespace of the calling thread.
fn namespace_path() -> PathBuf {
    let (process, thread) = (getpid().as_raw_nonzero(), gettid().as_raw_nonzero());
    PathBuf::from(format!("/proc/{process}/task/{thread}/ns/net"))
}
