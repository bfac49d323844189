//! Puts into the crate what code its results come from, as hashes. A run is repeated when the code that it depends on has
//! changed, and only then.

// It is how a build script speaks to Cargo.
#![allow(clippy::print_stdout)]

mod registry;
mod sources;
mod tokens;

use std::path::Path;

use sources::{ENGINES, Hashes, hashes};

fn main() {
    // Where the sources are now, not where this program was compiled: a tree may be copied with what was built in it, and its
    // results would go by the code of the other.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo says where the crate is");
    let crates = Path::new(&here).parent().expect("this crate is one of several");
    let mut code = String::new();
    for (engine, whole, files, named) in ENGINES {
        for name in whole.iter().chain(&["cc", "sched"]) {
            let folder = name.split('-').next().expect("at least one part");
            println!("cargo::rerun-if-changed={}", crates.join(folder).display());
        }
        for file in files {
            println!("cargo::rerun-if-changed={}", crates.join(file).display());
        }
        let Hashes { all, core, controllers, schedulers } = hashes(crates, whole, files, named);
        let (controllers, schedulers): (Vec<_>, Vec<_>) = (controllers.iter().collect(), schedulers.iter().collect());
        code += &format!(
            "pub(crate) static {engine}: Code = Code {{ all: {all:?}, core: {core:?}, controllers: &{controllers:?}, \
             schedulers: &{schedulers:?} }};\n"
        );
    }
    println!("cargo::rerun-if-changed=build");
    let out = std::env::var_os("OUT_DIR").expect("Cargo says where generated code goes");
    std::fs::write(Path::new(&out).join("code.rs"), code).expect("Cargo's folder can be written to");
}
