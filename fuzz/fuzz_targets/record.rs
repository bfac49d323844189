#![no_main]
//! The record parser on arbitrary bytes.

#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::record(data));
