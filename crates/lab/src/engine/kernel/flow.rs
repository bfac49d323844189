//! A connection between the namespaces, from its start to its end.

use core::ops::Range;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use manypath_core::Bytes;
use manypath_emu::tun::Namespace;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use super::application::Application;
use super::failed;
use crate::arrived::{File, Files};
use crate::engine::EngineError;

/// What is written and read at once.
const CHUNK: usize = 128 * 1024;
/// How long calls wait before they look whether the run is over.
const LOOK: Duration = Duration::from_millis(50);
/// The least that a call can wait; no time at all is without end.
const LEAST: Duration = Duration::from_millis(1);

/// A connection that is wanted.
pub(super) struct Wish<'a> {
    pub(super) client: &'a Namespace,
    pub(super) server: &'a Namespace,
    /// The controller's name in the kernel.
    pub(super) controller: &'a str,
    /// Multipath TCP, or plain TCP.
    pub(super) is_multipath: bool,
    pub(super) from: Ipv4Addr,
    pub(super) to: SocketAddr,
    pub(super) application: Application,
    /// When the scenario began.
    pub(super) begun: Instant,
}

/// What both ends of a connection and its owner share.
#[derive(Debug, Default)]
struct Shared {
    received: AtomicU64,
    stop: AtomicBool,
    /// Whether all has arrived that was to be sent.
    done: AtomicBool,
    /// When each file that has begun did.
    starts: Mutex<Vec<Instant>>,
    files: Files,
    error: Mutex<Option<String>>,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until then; whether the run still goes on.
    fn wait(&self, until: Instant) -> bool {
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(LOOK));
        }
        false
    }

    /// Remembers what went wrong, unless the run is over.
    fn fail(&self, what: &str, error: &io::Error) {
        if !self.is_over()
            && let Ok(mut held) = self.error.lock()
        {
            held.get_or_insert(format!("cannot {what}: {error}"));
        }
    }
}

/// A connection under way; it ends when dropped.
#[derive(Debug)]
pub(super) struct Flow {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Listens at the server; the client connects and sends when it is time.
    pub(super) fn start(wish: &Wish<'_>) -> Result<Self, EngineError> {
        let Wish { from, to, begun, .. } = *wish;
        let (application, size) = (wish.application.clone(), wish.application.file());
        let listener = open(wish.server, wish)?;
        let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, to.port()));
        let listen = listener.bind(&anywhere.into()).and_then(|()| listener.listen(1));
        listen.and_then(|()| listener.set_nonblocking(true)).map_err(|error| failed(&error))?;
        let client = open(wish.client, wish)?;
        client.bind(&SocketAddr::from((from, 0)).into()).map_err(|error| failed(&error))?;
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = (Arc::clone(&shared), Arc::clone(&shared));
        let send = move || {
            if !sender.wait(application.start) {
                return;
            }
            match connect(&client, to, &sender) {
                Ok(()) => write(&client, application, &sender),
                Err(error) => sender.fail("connect", &error),
            }
        };
        let receive = move || {
            // Further subflows come in by the port that the first came in by, while it listens.
            if let Some(socket) = accept(&listener, &receiver) {
                read(&socket, size, begun, &receiver);
            }
        };
        Ok(Self { shared, threads: vec![thread::spawn(send), thread::spawn(receive)] })
    }

    /// Bytes that the server has read.
    pub(super) fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// Whether all has arrived that was to be sent.
    pub(super) fn is_done(&self) -> bool {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// What went wrong.
    pub(super) fn error(&self) -> Option<String> {
        self.shared.error.lock().ok()?.clone()
    }

    /// Ends it; the files that have arrived.
    pub(super) fn stop(mut self) -> Result<Files, EngineError> {
        self.end();
        self.error().map_or_else(|| Ok(self.shared.files.clone()), |error| Err(failed(&error)))
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic in it has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

fn open(namespace: &Namespace, wish: &Wish<'_>) -> Result<Socket, EngineError> {
    let controller = wish.controller.to_owned();
    let protocol = if wish.is_multipath { Protocol::MPTCP } else { Protocol::TCP };
    let opened = namespace.run(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.set_reuse_address(true)?;
        socket.set_tcp_congestion(controller.as_bytes())?;
        socket.set_write_timeout(Some(LOOK))?;
        // As in the simulator, the end of what is written does not wait until all before it is acknowledged.
        socket.set_tcp_nodelay(true)?;
        Ok::<_, io::Error>(socket)
    });
    let controller = wish.controller;
    opened.map_err(|error| failed(&format_args!("cannot open a socket with the controller {controller}: {error}")))
}

/// Connects, however long the round trip: the write timeout, by which a run that is over ends, bounds a call of this, too, and
/// the handshake goes on meanwhile.
fn connect(socket: &Socket, to: SocketAddr, shared: &Shared) -> io::Result<()> {
    loop {
        let error = match socket.connect(&to.into()) {
            Err(error) if !shared.is_over() => error,
            done => return done,
        };
        if !matches!(Errno::from_io_error(&error), Some(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR)) {
            return Err(error);
        }
    }
}

fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn accept(listener: &Socket, shared: &Shared) -> Option<Socket> {
    while !shared.is_over() {
        match listener.accept() {
            Ok((socket, _)) => {
                let ready = socket.set_nonblocking(false).and_then(|()| socket.set_read_timeout(Some(LOOK)));
                return ready.map_err(|error| shared.fail("read", &error)).is_ok().then_some(socket);
            }
            Err(error) if is_patience(&error) => thread::sleep(Duration::from_millis(1)),
            Err(error) => {
                shared.fail("accept", &error);
                return None;
            }
        }
    }
    None
}

/// The client's end.
pub(super) struct Client<'a> {
    socket: &'a Socket,
    shared: &'a Shared,
    chunk: Vec<u8>,
    written: u64,
}

impl Client<'_> {
    /// Writes up to so many bytes until then; how many it took.
    pub(super) fn write(&mut self, bytes: u64, until: Instant) -> io::Result<u64> {
        let mut left = bytes;
        while left > 0 && !self.shared.is_over() {
            let patience = until.saturating_duration_since(Instant::now());
            if patience.is_zero() {
                break;
            }
            self.socket.set_write_timeout(Some(patience.clamp(LEAST, LOOK)))?;
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
            match self.socket.write(&self.chunk[..most]) {
                Ok(written) => left -= written as u64,
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.written += bytes - left;
        Ok(bytes - left)
    }

    /// Waits until then; whether the run still goes on.
    pub(super) fn wait(&self, until: Instant) -> bool {
        self.shared.wait(until)
    }

    /// A file begins.
    pub(super) fn begin(&self, start: Instant) {
        if let Ok(mut starts) = self.shared.starts.lock() {
            starts.push(start);
        }
    }
}

fn write(socket: &Socket, application: Application, shared: &Shared) {
    let mut client = Client { socket, shared, chunk: vec![0x5a; CHUNK], written: 0 };
    if let Err(error) = application.run(&mut client) {
        return shared.fail("send", &error);
    }
    // What is closed while data waits may be cut off.
    while !shared.is_over() && shared.received.load(Ordering::Relaxed) < client.written {
        thread::sleep(LOOK);
    }
    shared.done.store(true, Ordering::Relaxed);
}

/// Reads until the run is over; files are one after another, each of `size`.
fn read(mut socket: &Socket, size: Option<Bytes>, begun: Instant, shared: &Shared) {
    let mut chunk = vec![0; CHUNK];
    while !shared.is_over() {
        match socket.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => {
                let before = shared.received.fetch_add(read as u64, Ordering::Relaxed);
                if let Some(size) = size {
                    let ended = |bytes: u64| bytes / size.get().max(1);
                    add_files(ended(before)..ended(before + read as u64), size, begun, shared);
                }
            }
            Err(error) if is_patience(&error) => {}
            Err(error) => return shared.fail("receive", &error),
        }
    }
}

/// Files have arrived, by their numbers.
fn add_files(numbers: Range<u64>, size: Bytes, begun: Instant, shared: &Shared) {
    let Ok(starts) = shared.starts.lock() else { return };
    for start in numbers.filter_map(|number| starts.get(usize::try_from(number).ok()?)) {
        let since = start.saturating_duration_since(begun).as_secs_f64();
        shared.files.add(File { start: since, completion: start.elapsed().as_secs_f64(), size });
    }
}
