#![no_main]
//! Scenario files: arbitrary text, and overrides.

#[path = "../scenario_bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::scenario(data));
