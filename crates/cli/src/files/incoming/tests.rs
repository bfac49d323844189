//! Sender and receiver against each other over a pipe, and the receiver against a hostile sender.

use std::fs::{File, Metadata};
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::time::SystemTime;

use tokio::io::AsyncWriteExt as _;

use super::super::outgoing::{Outgoing, SendError};
use super::*;

const SILENCE: Duration = Duration::from_secs(5);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn content(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

/// An old file, so that a write to it changes its time of modification.
fn file(content: &[u8]) -> (File, Metadata) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file.rewind().unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let metadata = file.metadata().unwrap();
    (file, metadata)
}

/// What is sent of `content` to a peer that has the first `have` bytes of it.
fn outgoing(content: &[u8], have: usize) -> Outgoing {
    let (file, opened) = file(content);
    Outgoing::new(file, opened, have as u64, hashed(&content[..have]).1, &|| true).unwrap()
}

fn hashed(content: &[u8]) -> (Sha256, Hash) {
    let hasher = Sha256::new_with_prefix(content);
    let hash = Hash::of(&hasher);
    (hasher, hash)
}

/// Sends `content` to a receiver that has `have`; returns what it wrote and both ends' words.
fn transfer(content: &[u8], have: &[u8]) -> (Written<Vec<u8>>, End) {
    let (hasher, hash) = hashed(have);
    let (file, opened) = file(content);
    let outgoing = Outgoing::new(file, opened, have.len() as u64, hash, &|| true).unwrap();
    let from = outgoing.from();
    runtime().block_on(async {
        let (mut near, mut far) = tokio::io::duplex(1000);
        let position = Position::default();
        let (have, hasher) = if from == 0 { (Vec::new(), Sha256::new()) } else { (have.to_vec(), hasher) };
        let mut incoming = Incoming::start(have, hasher, from);
        let sent = outgoing.send(&mut near, None, &position, || 42);
        let received = Position::default();
        let receive = incoming.receive(&mut far, content.len() as u64, SILENCE, &received);
        let (sent, end) = tokio::join!(sent, receive);
        assert_eq!(sent.unwrap(), *end.as_ref().unwrap());
        assert_eq!(received.get(), content.len() as u64);
        (incoming.finish().await.unwrap(), end.unwrap())
    })
}

#[test]
fn content_arrives_whole() {
    for length in [0, 1, wire::MAX_DATA, wire::MAX_DATA + 1, 1_000_000] {
        let content = content(length);
        let (written, end) = transfer(&content, b"");
        assert_eq!(written.sink, content);
        assert_eq!((written.length, written.hash), (end.length, end.hash));
        assert_eq!(end.hash, hashed(&content).1);
        assert_eq!(end.retransmitted, 42);
    }
}

#[test]
fn a_matching_part_is_continued_and_covered_by_the_hash() {
    let content = content(300_000);
    let (written, end) = transfer(&content, &content[..123_456]);
    assert_eq!(written.sink, content);
    assert_eq!((written.hash, end.hash), (hashed(&content).1, hashed(&content).1));
}

#[test]
fn another_files_part_is_not_continued() {
    let content = content(300_000);
    for have in [&content[1..1000], &[0; 400_000][..]] {
        let (written, _) = transfer(&content, have);
        assert_eq!(written.sink, content);
    }
}

#[test]
fn a_time_limit_ends_the_body_with_a_hash_of_what_was_sent() {
    let content = content(1_000_000);
    let outgoing = outgoing(&content, 0);
    runtime().block_on(async {
        let (mut near, mut far) = tokio::io::duplex(1000);
        let mut incoming = Incoming::start(Vec::new(), Sha256::new(), 0);
        let position = Position::default();
        let send = outgoing.send(&mut near, Some(Duration::ZERO), &position, || 0);
        let (_, end) = tokio::join!(send, incoming.receive(&mut far, 1_000_000, SILENCE, &position));
        let (end, written) = (end.unwrap(), incoming.finish().await.unwrap());
        assert!(end.length < 1_000_000);
        let length = usize::try_from(end.length).unwrap();
        assert_eq!((written.sink.as_slice(), end.hash), (&content[..length], hashed(&content[..length]).1));
    });
}

#[test]
fn a_file_that_changes_is_noticed() {
    let content = content(300_000);
    let shrink = |file: &File| file.set_len(280_000).unwrap();
    // A byte of what the peer has changes after it was hashed: none of that is read again.
    let rewrite = |file: &File| file.write_all_at(b"x", 0).unwrap();
    for change in [shrink, rewrite] {
        let (file, opened) = file(&content);
        let hash = hashed(&content[..250_000]).1;
        let outgoing = Outgoing::new(file.try_clone().unwrap(), opened, 250_000, hash, &|| true).unwrap();
        assert_eq!(outgoing.from(), 250_000);
        change(&file);
        let outcome = runtime().block_on(async {
            let mut out = tokio::io::sink();
            outgoing.send(&mut out, None, &Position::default(), || 0).await
        });
        assert!(matches!(outcome, Err(SendError::Changed)), "{outcome:?}");
    }
}

/// What a receiver of at most 10 bytes says to these frames, and what it had written by then.
fn answer(frames: &[Frame]) -> (Result<End, ReceiveError>, Vec<u8>) {
    runtime().block_on(async {
        let mut bytes = Vec::new();
        for frame in frames {
            wire::write(&mut bytes, frame).await.unwrap();
        }
        let mut incoming = Incoming::start(Vec::new(), Sha256::new(), 0);
        let outcome = incoming.receive(&mut bytes.as_slice(), 10, SILENCE, &Position::default()).await;
        (outcome, incoming.finish().await.unwrap().sink)
    })
}

#[test]
fn a_hostile_sender_is_bounded() {
    let (outcome, written) = answer(&[Frame::Data(vec![1; 6]), Frame::Data(vec![2; 6])]);
    assert!(matches!(outcome, Err(ReceiveError::Read(ReadError::Malformed(_)))));
    assert_eq!(written, [1; 6]);
    let end = End { length: 7, hash: Hash([0; 32]), retransmitted: 0 };
    let (outcome, _) = answer(&[Frame::Data(vec![1; 6]), Frame::End(end)]);
    assert!(matches!(outcome, Err(ReceiveError::Read(ReadError::Malformed(_)))));
    let (outcome, _) = answer(&[Frame::Ready]);
    assert!(matches!(outcome, Err(ReceiveError::Read(ReadError::Malformed(_)))));
    let (outcome, written) = answer(&[Frame::Data(vec![1; 6])]);
    assert!(matches!(outcome, Err(ReceiveError::Read(ReadError::Ended))));
    assert_eq!(written, [1; 6], "what arrived is kept");
}

#[test]
fn silence_ends_the_wait() {
    let outcome = runtime().block_on(async {
        let (_near, mut far) = tokio::io::duplex(10);
        let mut incoming = Incoming::start(Vec::new(), Sha256::new(), 0);
        incoming.receive(&mut far, 10, Duration::from_millis(10), &Position::default()).await
    });
    assert!(matches!(outcome, Err(ReceiveError::Silent(_))));
}

#[test]
fn content_that_comes_slowly_is_no_silence() {
    let patience = Duration::from_millis(500);
    let (outcome, written) = runtime().block_on(async {
        let mut bytes = Vec::new();
        wire::write(&mut bytes, &Frame::Data(vec![1; 10])).await.unwrap();
        wire::write(&mut bytes, &Frame::End(End { length: 10, hash: hashed(&[1; 10]).1, retransmitted: 0 }))
            .await
            .unwrap();
        let (mut near, mut far) = tokio::io::duplex(1000);
        let sending = tokio::spawn(async move {
            // A frame of 53 bytes takes longer than the patience.
            for piece in bytes.chunks(5) {
                near.write_all(piece).await.unwrap();
                tokio::time::sleep(patience / 5).await;
            }
        });
        let mut incoming = Incoming::start(Vec::new(), Sha256::new(), 0);
        let outcome = incoming.receive(&mut far, 10, patience, &Position::default()).await;
        sending.await.unwrap();
        (outcome, incoming.finish().await.unwrap().sink)
    });
    outcome.unwrap();
    assert_eq!(written, [1; 10]);
}

/// A disk that is full after a few bytes.
#[derive(Debug)]
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_stops_the_receiver() {
    let content = content(3_000_000);
    let outgoing = outgoing(&content, 0);
    let (outcome, written) = runtime().block_on(async {
        let (mut near, mut far) = tokio::io::duplex(1000);
        let sending =
            tokio::spawn(async move { outgoing.send(&mut near, None, &Position::default(), || 0).await.is_ok() });
        let mut incoming = Incoming::start(Full(100_000), Sha256::new(), 0);
        let outcome = incoming.receive(&mut far, 3_000_000, SILENCE, &Position::default()).await;
        drop(far);
        assert!(!sending.await.unwrap());
        (outcome, incoming.finish().await.unwrap())
    });
    assert!(matches!(outcome, Err(ReceiveError::Writing)));
    assert_eq!(written.outcome.unwrap_err().kind(), io::ErrorKind::StorageFull);
}
