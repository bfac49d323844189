//! Frames of the file service: `docs/files.md` has their exact bytes. Whatever arrives is checked here before anything
//! else sees it: a length is bounded by the frame's kind before memory is set aside for it.

use std::io;

use manypath_quic::printable;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Hash;

/// The version of the file service in requests.
const VERSION: u8 = 1;

/// The most bytes of content in one DATA frame.
pub(crate) const MAX_DATA: usize = 64 * 1024;

/// The longest path in a request, in bytes.
pub(crate) const MAX_PATH: usize = 4096;

/// The longest text in an ERROR frame, in bytes.
const MAX_MESSAGE: usize = 1024;

mod kind {
    pub(super) const GET: u8 = 0x01;
    pub(super) const PUT: u8 = 0x02;
    pub(super) const PERF: u8 = 0x03;
    pub(super) const FILE: u8 = 0x11;
    pub(super) const HAVE: u8 = 0x12;
    pub(super) const FROM: u8 = 0x13;
    pub(super) const READY: u8 = 0x14;
    pub(super) const DATA: u8 = 0x20;
    pub(super) const END: u8 = 0x21;
    pub(super) const DONE: u8 = 0x22;
    pub(super) const ERROR: u8 = 0x2f;
}

/// Why a peer refused or gave up, as a number that programs can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request makes no sense to the server.
    BadRequest,
    /// There is no such file.
    NotFound,
    /// The server does not allow it.
    Forbidden,
    /// It is a folder or a device.
    NotAFile,
    /// Somebody else is writing the file.
    Busy,
    /// The disk is full.
    NoSpace,
    /// The disk or the file system failed.
    Storage,
    /// The file changed while it was being read.
    Changed,
    /// What arrived is not what was sent.
    Corrupt,
    /// The server does other things than this.
    Unsupported,
    /// A code from a later version.
    Other(u16),
}

impl Refusal {
    const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 1,
            Self::NotFound => 2,
            Self::Forbidden => 3,
            Self::NotAFile => 4,
            Self::Busy => 5,
            Self::NoSpace => 6,
            Self::Storage => 7,
            Self::Changed => 8,
            Self::Corrupt => 9,
            Self::Unsupported => 10,
            Self::Other(code) => code,
        }
    }

    const fn from_code(code: u16) -> Self {
        match code {
            1 => Self::BadRequest,
            2 => Self::NotFound,
            3 => Self::Forbidden,
            4 => Self::NotAFile,
            5 => Self::Busy,
            6 => Self::NoSpace,
            7 => Self::Storage,
            8 => Self::Changed,
            9 => Self::Corrupt,
            10 => Self::Unsupported,
            other => Self::Other(other),
        }
    }
}

/// Who sends in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the client to the server.
    Upload,
    /// From the server to the client.
    Download,
}

/// What closes a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The length of what `hash` covers: for a whole file, its size.
    pub(crate) length: u64,
    /// SHA-256 of all of it, the part that was there before included; zeros in a measurement.
    pub(crate) hash: Hash,
    /// Bytes of content that the sender's connection has sent again so far.
    pub(crate) retransmitted: u64,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Asks for a file.
    Get {
        /// Its path in the served folder, with `/` between parts.
        path: String,
        /// How many bytes of it the client has.
        have: u64,
        /// The hash of those bytes.
        hash: Hash,
        /// End the body after this many milliseconds even if there is more; 0: never.
        limit_ms: u32,
    },
    /// Asks to store a file.
    Put {
        /// Its path in the served folder, with `/` between parts.
        path: String,
        /// Its size.
        size: u64,
    },
    /// Asks for a measurement.
    Perf {
        /// Who sends.
        direction: Direction,
        /// For how long.
        duration_ms: u32,
    },
    /// Answers GET: content from `from` follows.
    File {
        /// The file's size.
        size: u64,
        /// Where the content starts: what the client has if it is the same file, else 0.
        from: u64,
    },
    /// Answers PUT: what is there of an earlier attempt.
    Have {
        /// How many bytes.
        length: u64,
        /// Their hash.
        hash: Hash,
    },
    /// Answers HAVE: content from here follows, what was beyond is to be forgotten.
    From {
        /// `length` of HAVE, or 0.
        from: u64,
    },
    /// Answers PERF: the measurement may begin.
    Ready,
    /// Content.
    Data(Vec<u8>),
    /// The content is complete.
    End(End),
    /// Answers END: everything arrived and is stored.
    Done {
        /// How much there is now.
        length: u64,
        /// Its hash.
        hash: Hash,
    },
    /// The request was refused or could not be completed.
    Error {
        /// Why, for programs.
        refusal: Refusal,
        /// Why, for people.
        message: String,
    },
}

/// Why the next frame could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The flow ended where a frame was expected.
    #[error("the other side ended the flow too early")]
    Ended,
    /// The flow broke.
    #[error(transparent)]
    Flow(io::Error),
    /// What arrived is not a frame.
    #[error("the other side does not follow the protocol: {0}")]
    Malformed(&'static str),
}

/// The lengths a body of this kind may have.
fn lengths(kind: u8) -> Result<(usize, usize), ReadError> {
    Ok(match kind {
        kind::GET => (45 + 1, 45 + MAX_PATH),
        kind::PUT => (9 + 1, 9 + MAX_PATH),
        kind::PERF => (6, 6),
        kind::FILE => (16, 16),
        kind::HAVE | kind::DONE => (40, 40),
        kind::FROM => (8, 8),
        kind::READY => (0, 0),
        kind::DATA => (1, MAX_DATA),
        kind::END => (48, 48),
        kind::ERROR => (2, 2 + MAX_MESSAGE),
        _ => return Err(ReadError::Malformed("unknown kind of frame")),
    })
}

/// Takes fields off the front of a body.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(ReadError::Malformed("a frame is too short"))?;
        self.0 = rest;
        Ok(*field)
    }

    fn u8(&mut self) -> Result<u8, ReadError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, ReadError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, ReadError> {
        self.take().map(u64::from_be_bytes)
    }

    fn hash(&mut self) -> Result<Hash, ReadError> {
        self.take().map(Hash)
    }

    fn version(&mut self) -> Result<(), ReadError> {
        let version = self.u8()?;
        (version == VERSION).then_some(()).ok_or(ReadError::Malformed("another version of the file service"))
    }

    fn path(self) -> Result<String, ReadError> {
        let text = std::str::from_utf8(self.0).map_err(|_| ReadError::Malformed("a path is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

impl Frame {
    fn decode(kind: u8, body: Vec<u8>) -> Result<Self, ReadError> {
        if kind == kind::DATA {
            return Ok(Self::Data(body));
        }
        let mut fields = Fields(&body);
        Ok(match kind {
            kind::GET => {
                fields.version()?;
                let (limit_ms, have, hash) = (fields.u32()?, fields.u64()?, fields.hash()?);
                Self::Get { path: fields.path()?, have, hash, limit_ms }
            }
            kind::PUT => {
                fields.version()?;
                let size = fields.u64()?;
                Self::Put { path: fields.path()?, size }
            }
            kind::PERF => {
                fields.version()?;
                let direction = match fields.u8()? {
                    0 => Direction::Upload,
                    1 => Direction::Download,
                    _ => return Err(ReadError::Malformed("unknown direction")),
                };
                Self::Perf { direction, duration_ms: fields.u32()? }
            }
            kind::FILE => Self::File { size: fields.u64()?, from: fields.u64()? },
            kind::HAVE => Self::Have { length: fields.u64()?, hash: fields.hash()? },
            kind::FROM => Self::From { from: fields.u64()? },
            kind::READY => Self::Ready,
            kind::END => Self::End(End { length: fields.u64()?, hash: fields.hash()?, retransmitted: fields.u64()? }),
            kind::DONE => Self::Done { length: fields.u64()?, hash: fields.hash()? },
            kind::ERROR => {
                let refusal = Refusal::from_code(u16::from_be_bytes(fields.take()?));
                Self::Error { refusal, message: printable(&String::from_utf8_lossy(fields.0)) }
            }
            _ => return Err(ReadError::Malformed("unknown kind of frame")),
        })
    }

    /// Appends the frame to `out`.
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; 5]);
        let kind = match self {
            Self::Get { path, have, hash, limit_ms } => {
                out.push(VERSION);
                out.extend(limit_ms.to_be_bytes());
                out.extend(have.to_be_bytes());
                out.extend(hash.0);
                out.extend(path.as_bytes());
                kind::GET
            }
            Self::Put { path, size } => {
                out.push(VERSION);
                out.extend(size.to_be_bytes());
                out.extend(path.as_bytes());
                kind::PUT
            }
            Self::Perf { direction, duration_ms } => {
                out.extend([VERSION, u8::from(*direction == Direction::Download)]);
                out.extend(duration_ms.to_be_bytes());
                kind::PERF
            }
            Self::File { size, from } => {
                out.extend(size.to_be_bytes());
                out.extend(from.to_be_bytes());
                kind::FILE
            }
            Self::Have { length, hash } | Self::Done { length, hash } => {
                out.extend(length.to_be_bytes());
                out.extend(hash.0);
                if matches!(self, Self::Have { .. }) { kind::HAVE } else { kind::DONE }
            }
            Self::From { from } => {
                out.extend(from.to_be_bytes());
                kind::FROM
            }
            Self::Ready => kind::READY,
            Self::Data(content) => {
                out.extend(content);
                kind::DATA
            }
            Self::End(end) => {
                out.extend(end.length.to_be_bytes());
                out.extend(end.hash.0);
                out.extend(end.retransmitted.to_be_bytes());
                kind::END
            }
            Self::Error { refusal, message } => {
                out.extend(refusal.code().to_be_bytes());
                let end = message.floor_char_boundary(MAX_MESSAGE);
                out.extend(&message.as_bytes()[..end]);
                kind::ERROR
            }
        };
        let length = u32::try_from(out.len() - start - 5).unwrap_or(u32::MAX); // frames are at most MAX_DATA long
        out[start] = kind;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }
}

/// Reads the next frame.
pub(crate) async fn read(flow: &mut (impl AsyncRead + Unpin)) -> Result<Frame, ReadError> {
    let mut header = [0; 5];
    read_exact(flow, &mut header).await?;
    let [kind, length @ ..] = header;
    let (least, most) = lengths(kind)?;
    let length =
        usize::try_from(u32::from_be_bytes(length)).map_err(|_| ReadError::Malformed("a frame is too long"))?;
    if !(least..=most).contains(&length) {
        return Err(ReadError::Malformed("a frame has the wrong length"));
    }
    let mut body = vec![0; length];
    read_exact(flow, &mut body).await?;
    Frame::decode(kind, body)
}

async fn read_exact(flow: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> Result<(), ReadError> {
    match flow.read_exact(buffer).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(ReadError::Ended),
        Err(error) => Err(ReadError::Flow(error)),
    }
}

/// Writes one frame.
pub(crate) async fn write(flow: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(128);
    frame.encode(&mut bytes);
    flow.write_all(&bytes).await
}

/// Writes content as one DATA frame.
pub(crate) async fn write_data(flow: &mut (impl AsyncWrite + Unpin), content: &[u8]) -> io::Result<()> {
    debug_assert!((1..=MAX_DATA).contains(&content.len()));
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    flow.write_all(&[kind::DATA, length[0], length[1], length[2], length[3]]).await?;
    flow.write_all(content).await
}

#[cfg(test)]
mod tests;
