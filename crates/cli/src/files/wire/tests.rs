use proptest::prelude::*;

use super::*;

const HASH: Hash = Hash([0xab; 32]);

fn bytes(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

fn parse(bytes: &[u8]) -> Result<Frame, ReadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(read(&mut &bytes[..]))
}

fn frames() -> Vec<Frame> {
    vec![
        Frame::Get { path: "a/b".into(), have: 7, hash: HASH, limit_ms: 8000 },
        Frame::Put { path: "ä".into(), size: u64::MAX },
        Frame::Perf { direction: Direction::Upload, duration_ms: 10 },
        Frame::Perf { direction: Direction::Download, duration_ms: 10 },
        Frame::File { size: 3, from: 2 },
        Frame::Have { length: 1, hash: HASH },
        Frame::From { from: 1 },
        Frame::Ready,
        Frame::Data(vec![1, 2, 3]),
        Frame::End(End { length: 3, hash: HASH, retransmitted: 9 }),
        Frame::Done { length: 3, hash: HASH },
        Frame::Error { refusal: Refusal::NotFound, message: "no".into() },
        Frame::Error { refusal: Refusal::Other(999), message: String::new() },
    ]
}

#[test]
fn frames_survive_the_wire() {
    for frame in frames() {
        assert_eq!(parse(&bytes(&frame)).unwrap(), frame);
    }
}

/// The example of `docs/files.md`.
#[test]
fn a_request_has_the_documented_bytes() {
    let frame = Frame::Get { path: "a.iso".into(), have: 0x0102, hash: HASH, limit_ms: 0 };
    let mut expected = vec![0x01, 0, 0, 0, 50, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2];
    expected.extend([0xab; 32]);
    expected.extend(b"a.iso");
    assert_eq!(bytes(&frame), expected);
}

#[test]
fn content_written_directly_is_a_data_frame() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut out = Vec::new();
    runtime.block_on(write_data(&mut out, b"xyz")).unwrap();
    assert_eq!(out, bytes(&Frame::Data(b"xyz".to_vec())));
}

#[test]
fn every_truncation_is_noticed() {
    for frame in frames() {
        let whole = bytes(&frame);
        for length in 0..whole.len() {
            assert!(matches!(parse(&whole[..length]), Err(ReadError::Ended)), "{frame:?} cut at {length}");
        }
    }
}

#[test]
fn a_length_out_of_bounds_is_refused_before_it_is_believed() {
    for kind in [0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x14, 0x20, 0x21, 0x22, 0x2f, 0x77] {
        assert!(matches!(parse(&[kind, 0xff, 0xff, 0xff, 0xff]), Err(ReadError::Malformed(_))), "{kind:#x}");
    }
    assert!(matches!(parse(&[0x20, 0, 0, 0, 0]), Err(ReadError::Malformed(_))), "empty content");
}

#[test]
fn a_message_is_cut_between_characters_and_cannot_steer_a_terminal() {
    let long = Frame::Error { refusal: Refusal::Storage, message: "ä".repeat(1000) };
    let Frame::Error { message, .. } = parse(&bytes(&long)).unwrap() else { panic!("not an error") };
    assert_eq!(message, "ä".repeat(512));
    let hostile = Frame::Error { refusal: Refusal::Storage, message: "\x1b[2Jhello\r\n".into() };
    let Frame::Error { message, .. } = parse(&bytes(&hostile)).unwrap() else { panic!("not an error") };
    assert_eq!(message, "\u{fffd}[2Jhello\u{fffd}\u{fffd}");
}

#[test]
fn another_version_is_named() {
    let mut bytes = bytes(&Frame::Put { path: "a".into(), size: 1 });
    bytes[5] = 2;
    assert!(parse(&bytes).unwrap_err().to_string().contains("another version"));
}

proptest! {
    #[test]
    fn no_bytes_panic(kind in prop_oneof![0_u8..0x30, any::<u8>()], body in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut bytes = vec![kind];
        bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend(&body);
        if let Ok(frame) = parse(&bytes) {
            // What was understood means the same when sent again.
            let mut again = Vec::new();
            frame.encode(&mut again);
            prop_assert_eq!(parse(&again).unwrap(), frame);
        }
    }
}
