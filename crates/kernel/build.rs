//! Compiles `bpf/*.bpf.c`: with clang to BPF objects (feature `kernel`), and with the host's compiler, without their callbacks,
//! to a library for tests.
//!
//! The library that `manypath kernel run` loads into programs (`preload/preload.c`) is compiled with the host's compiler too.
//!
//! Without clang the crate builds all the same, with no object in it, and a warning says what to install.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const INSTALL: &str = "install clang and libbpf-dev (Debian: apt-get install clang libbpf-dev libelf-dev zlib1g-dev)";

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let bpf = root.join("bpf");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", bpf.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let objects = if env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        compile(&bpf, &out).unwrap_or_else(|why| {
            println!("cargo::warning=no BPF programs in this build: {why}; {INSTALL}");
            // What is missing may be there at the next build: a file that never is makes cargo look each time.
            println!("cargo::rerun-if-changed={}", out.join("clang-was-missing").display());
            Vec::new()
        })
    } else {
        Vec::new()
    };
    fs::write(out.join("objects.rs"), list(&objects)).expect("OUT_DIR is writable");
    let sources = sources(&bpf).expect("the folder is there");
    let mut host = cc::Build::new();
    // Functions that only the kernel's callbacks use are unused here.
    host.file(bpf.join("host.c")).files(sources).std("gnu11").warnings_into_errors(true);
    host.flag_if_supported("-Wno-unused-function").out_dir(out.join("host")).compile("manypath_bpf_host");
    preload(&root, &out);
}

/// The programs, in alphabetical order.
fn sources(bpf: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut sources: Vec<PathBuf> = fs::read_dir(bpf)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".bpf.c"))
        .collect();
    sources.sort();
    Ok(sources)
}

/// Objects of all programs, by name, in alphabetical order.
fn compile(bpf: &Path, out: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let sources = sources(bpf).map_err(|error| format!("{}: {error}", bpf.display()))?;
    sources.iter().map(|source| compile_one(&clang, source, out)).collect()
}

fn compile_one(clang: &str, source: &Path, out: &Path) -> Result<(String, PathBuf), String> {
    let file = source.file_name().unwrap_or_default().to_string_lossy();
    let name = file.trim_end_matches(".bpf.c").to_owned();
    let object = out.join(format!("{name}.bpf.o"));
    // -mcpu=v3: atomic operations that return a value, in every kernel since 5.12. -g: BTF.
    let result = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .map_err(|error| format!("`{clang}` does not run ({error})"))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        // A missing header of libbpf is a matter of set-up; anything else is an error of ours.
        if said.contains("'bpf/") && said.contains("file not found") {
            return Err("libbpf's headers are missing".to_owned());
        }
        panic!("{}: {said}", source.display());
    }
    Ok((name, object))
}

fn list(objects: &[(String, PathBuf)]) -> String {
    let rows: String = objects
        .iter()
        .map(|(name, path)| format!("    ({name:?}, aligned!({:?})),\n", path.display().to_string()))
        .collect();
    format!("&[\n{rows}]\n")
}

/// The library that `manypath kernel run` loads into programs.
fn preload(root: &Path, out: &Path) {
    let source = root.join("preload/preload.c");
    println!("cargo::rerun-if-changed={}", source.display());
    let compiler = cc::Build::new().opt_level(2).debug(false).pic(true).get_compiler();
    let flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fvisibility=hidden", "-s", "-o"];
    let mut command = compiler.to_command();
    command.args(flags).arg(out.join("libmanypath_preload.so")).arg(&source).arg("-ldl");
    let status = command.status().unwrap_or_else(|error| panic!("{} does not run: {error}", compiler.path().display()));
    assert!(status.success(), "{} does not compile", source.display());
}
