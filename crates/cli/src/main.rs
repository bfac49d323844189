//! Manypath: the command line.
fn main() {}
