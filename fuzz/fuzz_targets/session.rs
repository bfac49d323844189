#![no_main]
//! A session with a hostile peer, a hostile carrier and a careless application.

#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::session(data));
