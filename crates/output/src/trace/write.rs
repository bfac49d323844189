//! Writing traces, on a thread of their own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use manypath_session::{Action, Traced, Tracer, TracerSource};

use super::{Decided, HEADER};
use crate::file::WriteError;

/// How many decisions wait for the disk at most: some megabytes.
const WAITING: usize = 1 << 16;

/// What happens to decisions that come faster than the disk takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backpressure {
    /// Whoever decides waits: for simulations, in which time stands still meanwhile.
    Wait,
    /// They are left out, and the file says how many: for what runs in real time.
    LeaveOut,
}

/// What goes to the thread.
#[derive(Debug)]
enum Message {
    Decision(Arc<str>, Traced),
    End,
}

/// A trace file that is being written.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// What tracers share.
#[derive(Debug)]
struct Shared {
    decisions: SyncSender<Message>,
    backpressure: Backpressure,
    /// Sessions so far, which name connections that have no name.
    sessions: AtomicU64,
    state: Arc<State>,
}

/// What tracers and the thread tell each other. The thread has no sender, so that it ends with the last tracer at the latest.
#[derive(Debug, Default)]
struct State {
    left_out: AtomicU64,
    failure: Mutex<Option<io::Error>>,
}

impl State {
    fn failure(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceFile {
    /// Makes the file and begins to write.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path, backpressure: Backpressure) -> Result<Self, WriteError> {
        let fail = |source| WriteError { path: path.to_owned(), source };
        let mut file = BufWriter::new(File::create(path).map_err(fail)?);
        let (decisions, receiver) = sync_channel(WAITING);
        let state = Arc::new(State::default());
        let thread = std::thread::Builder::new().name("trace".to_owned()).spawn({
            let state = Arc::clone(&state);
            move || {
                if let Err(error) = write(&mut file, receiver, &state.left_out) {
                    *state.failure() = Some(error);
                }
            }
        });
        let shared = Arc::new(Shared { decisions, backpressure, sessions: AtomicU64::new(0), state });
        Ok(Self { path: path.to_owned(), shared, thread: thread.map_err(fail)? })
    }

    /// A tracer for the connection of this name.
    pub fn tracer(&self, connection: &str) -> Box<dyn Tracer> {
        self.shared.tracer_for(connection)
    }

    /// Tracers for the sessions of an engine, which are called 1, 2, ... in the order in which they are opened.
    pub fn source(&self) -> Arc<dyn TracerSource> {
        Arc::new(Source(Arc::clone(&self.shared)))
    }

    /// Whether writing has failed, so that there is no use in going on.
    pub fn has_failed(&self) -> bool {
        self.shared.state.failure().is_some()
    }

    /// Writes what waits, and ends the file; later decisions are not in it. Returns how many were left out.
    ///
    /// # Errors
    /// If something could not be written. What was written before is there.
    pub fn finish(self) -> Result<u64, WriteError> {
        // If the thread is gone it has failed, and its failure is read below.
        let _ = self.shared.decisions.send(Message::End);
        let panicked = self.thread.join().is_err();
        let failure = self.shared.state.failure().take();
        match failure.or(panicked.then(|| io::Error::other("its thread has panicked, which is a bug"))) {
            Some(source) => Err(WriteError { path: self.path, source }),
            None => Ok(self.shared.state.left_out.load(Ordering::Relaxed)),
        }
    }
}

impl Shared {
    fn tracer_for(self: &Arc<Self>, connection: &str) -> Box<dyn Tracer> {
        Box::new(ToFile { shared: Arc::clone(self), connection: connection.into() })
    }
}

#[derive(Debug)]
struct Source(Arc<Shared>);

impl TracerSource for Source {
    fn tracer(&self) -> Box<dyn Tracer> {
        let number = self.0.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.tracer_for(&number.to_string())
    }
}

/// The tracer of one connection.
#[derive(Debug)]
struct ToFile {
    shared: Arc<Shared>,
    connection: Arc<str>,
}

impl Tracer for ToFile {
    fn on_decision(&mut self, decision: &Traced) {
        let message = Message::Decision(Arc::clone(&self.connection), *decision);
        let taken = match self.shared.backpressure {
            Backpressure::Wait => self.shared.decisions.send(message).is_ok(),
            Backpressure::LeaveOut => self.shared.decisions.try_send(message).is_ok(),
        };
        if !taken {
            self.shared.state.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(file: &mut impl Write, decisions: Receiver<Message>, left_out: &AtomicU64) -> io::Result<()> {
    writeln!(file, "{HEADER}")?;
    let mut known = 0;
    for message in decisions {
        let missing = left_out.load(Ordering::Relaxed);
        if missing > known {
            writeln!(file, "# {} decisions left out here: the disk was too slow", missing - known)?;
            known = missing;
        }
        let Message::Decision(connection, traced) = message else { break };
        line(file, &connection, &traced)?;
    }
    file.flush()
}

fn line(file: &mut impl Write, connection: &str, traced: &Traced) -> io::Result<()> {
    let (decided, subflow, range, penalised) = match traced.action {
        Action::Send(subflow, range) => (Decided::Send, Some(subflow), Some(range), None),
        Action::Resend(subflow, range) => (Decided::Resend, Some(subflow), Some(range), None),
        Action::Duplicate { subflow, range, penalised } => (Decided::Duplicate, Some(subflow), Some(range), penalised),
        Action::Penalise(subflow) => (Decided::Penalise, None, None, Some(subflow)),
        Action::Wait => (Decided::Wait, None, None, None),
    };
    let nanos = traced.at.as_nanos();
    write!(file, "{}.{:09}\t{connection}\t{}\t", nanos / 1_000_000_000, nanos % 1_000_000_000, decided.as_str())?;
    match subflow {
        Some(subflow) => write!(file, "{}\t", subflow.0)?,
        None => file.write_all(b"-\t")?,
    }
    match range {
        Some(range) => write!(file, "{}\t{}\t", range.start.0, range.end.0)?,
        None => file.write_all(b"-\t-\t")?,
    }
    match penalised {
        Some(subflow) => write!(file, "{}\t", subflow.0)?,
        None => file.write_all(b"-\t")?,
    }
    writeln!(file, "{}", traced.reason)
}

#[cfg(test)]
mod tests {
    use manypath_core::{DataRange, DataSeq, SubflowId, Time};

    use super::super::read_trace;
    use super::*;

    fn send(at: u64) -> Traced {
        let range = DataRange::new(DataSeq(at * 10), 10);
        Traced { at: Time::from_nanos(at), action: Action::Send(SubflowId(1), range), reason: "for a test" }
    }

    #[test]
    fn lines_say_everything_and_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let trace = TraceFile::create(&path, Backpressure::Wait).unwrap();
        let mut tracer = trace.tracer("phone");
        tracer.on_decision(&send(1_500_000_001));
        let copy = Action::Duplicate {
            subflow: SubflowId(0),
            range: DataRange::new(DataSeq(7), 3),
            penalised: Some(SubflowId(2)),
        };
        tracer.on_decision(&Traced { action: copy, ..send(2_000_000_000) });
        tracer.on_decision(&Traced { action: Action::Penalise(SubflowId(3)), ..send(2_000_000_000) });
        trace.source().tracer().on_decision(&Traced { action: Action::Wait, ..send(3_000_000_000) });
        assert_eq!(trace.finish().unwrap(), 0);
        tracer.on_decision(&send(4)); // too late: nobody hears it
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "1.500000001\tphone\tsend\t1\t15000000010\t15000000020\t-\tfor a test");
        assert_eq!(lines[2], "2.000000000\tphone\tduplicate\t0\t7\t10\t2\tfor a test");
        assert_eq!(lines[3], "2.000000000\tphone\tpenalise\t-\t-\t-\t3\tfor a test");
        assert_eq!(lines[4], "3.000000000\t1\twait\t-\t-\t-\t-\tfor a test");
        assert_eq!((lines[0], lines.len()), (HEADER, 5));
        let mut rows = Vec::new();
        read_trace(&path, |row| rows.push(format!("{} {}", row.connection, row.decided.as_str()))).unwrap();
        assert_eq!(rows, ["phone send", "phone duplicate", "phone penalise", "1 wait"]);
    }

    /// A disk that takes nothing until it is told to.
    struct Stuck(Receiver<()>, Vec<u8>);

    impl Write for &mut Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Once the other end is gone, everything goes through.
            let _ = self.0.recv();
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_disk_costs_lines_and_the_file_says_so() {
        let (decisions, receiver) = sync_channel(4);
        let (backpressure, state) = (Backpressure::LeaveOut, Arc::new(State::default()));
        let shared =
            Arc::new(Shared { decisions, backpressure, sessions: AtomicU64::new(0), state: Arc::clone(&state) });
        let (unblock, blocked) = sync_channel::<()>(0);
        let mut disk = Stuck(blocked, Vec::new());
        let mut tracer = shared.tracer_for("c");
        (0..10).for_each(|at| tracer.on_decision(&send(at)));
        assert_eq!(state.left_out.load(Ordering::Relaxed), 6, "four wait, the others are left out");
        drop(unblock);
        let writer = std::thread::spawn(move || {
            write(&mut &mut disk, receiver, &state.left_out).unwrap();
            disk.1
        });
        shared.decisions.send(Message::End).unwrap();
        let text = String::from_utf8(writer.join().unwrap()).unwrap();
        assert!(text.contains("# 6 decisions left out"), "{text}");
        assert_eq!(text.lines().count(), 1 + 1 + 4);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_ends_the_trace_and_nothing_else() {
        let trace = TraceFile::create(Path::new("/dev/full"), Backpressure::Wait).unwrap();
        let mut tracer = trace.tracer("c");
        // More than fits into all buffers: it must end, whatever becomes of the lines.
        (0..1_000_000).take_while(|_| !trace.has_failed()).for_each(|at| tracer.on_decision(&send(at)));
        tracer.on_decision(&send(1));
        let error = trace.finish().unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
        assert!(TraceFile::create(Path::new("/does/not/exist"), Backpressure::Wait).is_err());
    }
}
