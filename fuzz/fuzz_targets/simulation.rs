#![no_main]
//! Whatever is a scenario, run for a while.

#[path = "../scenario_bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::simulation(data));
