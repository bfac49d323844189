//! Messages on the control stream (`docs/protocol.md`, section 3).

use manypath_core::{Bytes, Duration};
use manypath_session::PeerLimits;

use crate::proof::{Proof, SessionId};

/// The version that HELLO, WELCOME and JOIN carry.
pub(crate) const VERSION: u16 = 1;

/// The longest body.
pub(crate) const MAX_BODY: usize = 4096;

/// The longest token and the longest reason.
pub(crate) const MAX_TEXT: usize = 1024;

/// The longest token that a client can send, in bytes.
pub const MAX_TOKEN: usize = MAX_TEXT;

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const JOIN: u8 = 2;
    pub(super) const WELCOME: u8 = 3;
    pub(super) const JOINED: u8 = 4;
    pub(super) const CLOSE: u8 = 5;
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The client opens a session.
    Hello(Hello),
    /// The client adds a carrier to a session.
    Join(Join),
    /// The server opened the session.
    Welcome(Welcome),
    /// The server added the carrier.
    Joined(Proof),
    /// The application closes the session.
    Close { code: u32, reason: String },
}

/// What a client says to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    pub(crate) limits: PeerLimits,
    pub(crate) max_paths: u32,
    pub(crate) token: Vec<u8>,
    /// The congestion controller that the server is asked to send with, as its name is written; empty: the server's own.
    pub(crate) cc: String,
    /// The same for the scheduler.
    pub(crate) sched: String,
}

/// What a client says to add a carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) version: u16,
    pub(crate) session: SessionId,
    pub(crate) nonce: [u8; 16],
    pub(crate) proof: Proof,
}

/// What a server answers to HELLO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    pub(crate) version: u16,
    pub(crate) session: SessionId,
    pub(crate) limits: PeerLimits,
    pub(crate) max_paths: u32,
    pub(crate) linger: Duration,
}

/// Bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("a control message is shorter than its type requires")]
    Truncated,
    #[error("a control message is longer than allowed")]
    TooLong,
    #[error("a control message has a field out of range")]
    OutOfRange,
}

impl Message {
    /// The message with its type and length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Hello(hello) => {
                body.extend(hello.version.to_be_bytes());
                body.extend([0, 0]);
                put_limits(&mut body, &hello.limits);
                body.extend(hello.max_paths.to_be_bytes());
                put_text(&mut body, &hello.token[..hello.token.len().min(MAX_TEXT)]);
                put_text(&mut body, truncated(&hello.cc).as_bytes());
                put_text(&mut body, truncated(&hello.sched).as_bytes());
                kind::HELLO
            }
            Self::Join(join) => {
                body.extend(join.version.to_be_bytes());
                body.extend([0, 0]);
                body.extend(join.session.0);
                body.extend(join.nonce);
                body.extend(join.proof.0);
                kind::JOIN
            }
            Self::Welcome(welcome) => {
                body.extend(welcome.version.to_be_bytes());
                body.extend([0, 0]);
                body.extend(welcome.session.0);
                put_limits(&mut body, &welcome.limits);
                body.extend(welcome.max_paths.to_be_bytes());
                body.extend(u32::try_from(welcome.linger.as_millis()).unwrap_or(u32::MAX).to_be_bytes());
                kind::WELCOME
            }
            Self::Joined(proof) => {
                body.extend(proof.0);
                kind::JOINED
            }
            Self::Close { code, reason } => {
                body.extend(code.to_be_bytes());
                body.extend(truncated(reason).as_bytes());
                kind::CLOSE
            }
        };
        let mut message = vec![kind];
        message.extend(u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
        message.extend(body);
        message
    }

    /// Reads a body, of at most [`MAX_BODY`]. `None`: a type from a later version, to be skipped.
    pub(crate) fn decode(kind: u8, body: &[u8]) -> Result<Option<Self>, MessageError> {
        let mut input = Reader { rest: body };
        Ok(Some(match kind {
            kind::HELLO => {
                let (version, _) = (input.u16()?, input.u16()?);
                let (limits, max_paths) = (input.limits()?, input.u32()?);
                let token = input.text()?.to_vec();
                let (cc, sched) = (input.text()?, input.text()?);
                let name = |text| String::from_utf8_lossy(text).into_owned(); // what is no text names nothing that exists
                Self::Hello(Hello { version, limits, max_paths, token, cc: name(cc), sched: name(sched) })
            }
            kind::JOIN => {
                let (version, _) = (input.u16()?, input.u16()?);
                let (session, nonce) = (SessionId(input.array()?), input.array()?);
                Self::Join(Join { version, session, nonce, proof: Proof(input.array()?) })
            }
            kind::WELCOME => {
                let (version, _) = (input.u16()?, input.u16()?);
                let session = SessionId(input.array()?);
                let (limits, max_paths) = (input.limits()?, input.u32()?);
                let linger = Duration::from_millis(u64::from(input.u32()?));
                Self::Welcome(Welcome { version, session, limits, max_paths, linger })
            }
            kind::JOINED => Self::Joined(Proof(input.array()?)),
            kind::CLOSE => {
                let code = input.u32()?;
                let reason = &input.rest[..input.rest.len().min(MAX_TEXT)];
                Self::Close { code, reason: readable(reason) }
            }
            _ => return Ok(None),
        }))
    }
}

/// A text cut to what a message carries, at a character's end.
pub(crate) fn truncated(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// `text` without control characters, which a hostile peer could use to write anywhere on a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// What a peer says, for people.
pub(crate) fn readable(said: &[u8]) -> String {
    printable(&String::from_utf8_lossy(said))
}

fn put_limits(out: &mut Vec<u8>, limits: &PeerLimits) {
    out.extend(limits.receive_window.get().to_be_bytes());
    out.extend(limits.flow_window.get().to_be_bytes());
    out.extend(limits.max_flows.to_be_bytes());
}

/// A text of at most [`MAX_TEXT`] bytes, after its length.
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
    out.extend(text);
}

/// What is left of a body.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], MessageError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(MessageError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(MessageError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A text after its length.
    fn text(&mut self) -> Result<&'a [u8], MessageError> {
        let len = usize::from(self.u16()?);
        if len > MAX_TEXT {
            return Err(MessageError::OutOfRange);
        }
        self.take(len)
    }

    /// A window: below 2^62, so that sums never overflow.
    fn window(&mut self) -> Result<Bytes, MessageError> {
        let window = u64::from_be_bytes(self.array()?);
        if window < 1 << 62 { Ok(Bytes::new(window)) } else { Err(MessageError::OutOfRange) }
    }

    fn limits(&mut self) -> Result<PeerLimits, MessageError> {
        Ok(PeerLimits { receive_window: self.window()?, flow_window: self.window()?, max_flows: self.u32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Message> {
        let limits =
            PeerLimits { receive_window: Bytes::new(1 << 24), flow_window: Bytes::new(1 << 20), max_flows: 256 };
        let session = SessionId([7; 16]);
        vec![
            Message::Hello(Hello {
                version: 1,
                limits,
                max_paths: 8,
                token: b"secret".to_vec(),
                cc: "mpcc-loss".to_owned(),
                sched: String::new(),
            }),
            Message::Join(Join { version: 1, session, nonce: [1; 16], proof: Proof([2; 32]) }),
            Message::Welcome(Welcome { version: 1, session, limits, max_paths: 8, linger: Duration::from_secs(60) }),
            Message::Joined(Proof([3; 32])),
            Message::Close { code: 9, reason: "fertig".to_owned() },
        ]
    }

    #[test]
    fn messages_come_back_and_later_fields_are_ignored() {
        for message in examples() {
            let bytes = message.encode();
            let (head, body) = bytes.split_at(3);
            assert_eq!(usize::from(u16::from_be_bytes([head[1], head[2]])), body.len());
            assert_eq!(Message::decode(head[0], body), Ok(Some(message.clone())));
            if !matches!(message, Message::Close { .. }) {
                let longer = [body, &[1, 2, 3]].concat();
                assert_eq!(Message::decode(head[0], &longer), Ok(Some(message)));
            }
        }
    }

    #[test]
    fn truncated_messages_are_errors_and_unknown_ones_are_skipped() {
        for message in examples() {
            let bytes = message.encode();
            let shortest = if matches!(message, Message::Close { .. }) { 4 } else { bytes.len() - 3 };
            for len in 0..shortest {
                assert_eq!(Message::decode(bytes[0], &bytes[3..3 + len]), Err(MessageError::Truncated), "{message:?}");
            }
        }
        assert_eq!(Message::decode(200, &[1, 2]), Ok(None));
    }

    #[test]
    fn what_is_too_long_or_too_large_is_refused_or_cut() {
        let Message::Hello(hello) = examples().remove(0) else { panic!("not a HELLO") };
        let bytes = |hello: &Hello| Message::Hello(hello.clone()).encode()[3..].to_vec();
        let decoded = |body: &[u8]| Message::decode(kind::HELLO, body);
        let token = |len| Hello { token: vec![b'x'; len], ..hello.clone() };
        assert_eq!(decoded(&bytes(&token(MAX_TOKEN))), Ok(Some(Message::Hello(token(MAX_TOKEN)))));
        // A longer one is cut here, and refused from others. It begins after 28 bytes and its length.
        assert_eq!(bytes(&token(MAX_TOKEN + 1)), bytes(&token(MAX_TOKEN)));
        let mut longer = bytes(&token(MAX_TOKEN));
        longer[28..30].copy_from_slice(&u16::try_from(MAX_TOKEN + 1).unwrap().to_be_bytes());
        longer.insert(30, b'x');
        assert_eq!(decoded(&longer), Err(MessageError::OutOfRange));
        // Windows begin after 4 bytes.
        for (place, window, fits) in [(4, (1 << 62) - 1, true), (4, 1_u64 << 62, false), (12, 1 << 62, false)] {
            let mut body = bytes(&hello);
            body[place..place + 8].copy_from_slice(&window.to_be_bytes());
            assert_eq!(decoded(&body).is_ok(), fits, "{place} {window:#x}");
        }
        let close = [&[0, 0, 0, 1], &[b'x'; MAX_TEXT + 9][..]].concat();
        let reason = "x".repeat(MAX_TEXT);
        assert_eq!(Message::decode(kind::CLOSE, &close), Ok(Some(Message::Close { code: 1, reason })));
    }

    #[test]
    fn a_reason_cannot_steer_a_terminal() {
        let bytes = Message::Close { code: 9, reason: "\x1b[2Jbye\r\n\u{9b}".to_owned() }.encode();
        let read = Message::decode(bytes[0], &bytes[3..]);
        let reason = "\u{fffd}[2Jbye\u{fffd}\u{fffd}\u{fffd}".to_owned();
        assert_eq!(read, Ok(Some(Message::Close { code: 9, reason })));
    }

    #[test]
    fn a_reason_is_cut_at_a_character() {
        let reason = "ä".repeat(MAX_TEXT);
        assert_eq!(truncated(&reason).len(), MAX_TEXT);
        let reason = format!("a{reason}");
        assert_eq!(truncated(&reason).len(), MAX_TEXT - 1);
    }
}
