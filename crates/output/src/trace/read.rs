//! Reading traces.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::{Decided, HEADER};

/// The longest line.
const LONGEST: u64 = 4096;

/// A decision, as a file says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceRow<'a> {
    /// When, seconds.
    pub time_s: f64,
    /// Whose.
    pub connection: &'a str,
    /// What was decided.
    pub decided: Decided,
    /// The subflow that carries the data.
    pub subflow: Option<u32>,
    /// The first data sequence number and the one past the last.
    pub range: Option<(u64, u64)>,
    /// The subflow that is penalised.
    pub penalised: Option<u32>,
    /// The scheduler's reason.
    pub reason: &'a str,
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceReadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is no trace of decisions: it must begin with the line that --trace-schedule writes", path.display())]
    NoTrace {
        /// The file.
        path: PathBuf,
    },
    /// A line makes no sense.
    #[error("{}:{line}: not a decision: '{text}'", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from one.
        line: u64,
        /// Its beginning.
        text: String,
    },
}

/// Reads a trace, decision by decision. A last line without an end, as a full disk leaves it, is passed over.
///
/// # Errors
/// If the file cannot be read or is no trace.
pub fn read_trace(path: &Path, mut row: impl FnMut(TraceRow<'_>)) -> Result<(), TraceReadError> {
    let fail = |source| TraceReadError::Io { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(fail)?);
    let mut buffer = Vec::new();
    for line in 1.. {
        buffer.clear();
        let read = file.by_ref().take(LONGEST).read_until(b'\n', &mut buffer).map_err(fail)?;
        let complete = buffer.pop_if(|last| *last == b'\n').is_some();
        let text = String::from_utf8_lossy(&buffer);
        if line == 1 && text != HEADER {
            return Err(TraceReadError::NoTrace { path: path.to_owned() });
        }
        if read == 0 || (!complete && read as u64 != LONGEST) {
            break;
        }
        if line == 1 || text.starts_with('#') {
            continue;
        }
        let parsed = complete.then(|| parse(&text)).flatten();
        row(parsed.ok_or_else(|| TraceReadError::Line {
            path: path.to_owned(),
            line,
            text: text.chars().take(80).collect(),
        })?);
    }
    Ok(())
}

fn parse(text: &str) -> Option<TraceRow<'_>> {
    let mut fields = text.split('\t');
    let mut next = || fields.next();
    let time_s = next()?.parse::<f64>().ok().filter(|time| time.is_finite())?;
    let (connection, decided) = (next()?, Decided::parse(next()?)?);
    let subflow = optional(next()?)?;
    let range = optional::<u64>(next()?)?.zip(optional::<u64>(next()?)?);
    let (penalised, reason) = (optional(next()?)?, next()?);
    Some(TraceRow { time_s, connection, decided, subflow, range, penalised, reason })
}

/// A number, or `-` for none.
fn optional<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    if text == "-" { Some(None) } else { text.parse().ok().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<Vec<f64>, TraceReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, content).unwrap();
        let mut times = Vec::new();
        read_trace(&path, |row| times.push(row.time_s)).map(|()| times)
    }

    #[test]
    fn remarks_and_a_last_line_that_is_cut_are_passed_over() {
        let good = "1.5\tc\tsend\t0\t0\t10\t-\twhy\n";
        assert_eq!(read(&format!("{HEADER}\n{good}# remark\n{good}2.5\tc\tse")).unwrap(), [1.5, 1.5]);
        assert!(read(&format!("{HEADER}\n")).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_trace_is_an_error() {
        for content in ["", "time\n", "PAR1"] {
            assert!(matches!(read(content), Err(TraceReadError::NoTrace { .. })), "{content}");
        }
        let long = "x".repeat(10_000);
        for line in
            ["nonsense", "NaN\tc\twait\t-\t-\t-\t-\tx", "1\tc\tfly\t-\t-\t-\t-\tx", "1\tc\tsend\tx\t1\t2\t-\tx", &long]
        {
            let error = read(&format!("{HEADER}\n{line}\n")).unwrap_err();
            assert!(error.to_string().contains(":2: not a decision"), "{error}");
        }
        assert!(read_trace(Path::new("/does/not/exist"), |_| ()).is_err());
    }
}
