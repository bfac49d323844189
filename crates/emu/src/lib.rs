//! Manypath: real-time link emulation.
