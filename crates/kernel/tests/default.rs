//! The machine's default controller: where it goes, and that it comes back from everywhere. In a test binary of its own, since it is the
//! whole machine's.

#![cfg(feature = "kernel")]

mod lab;

use std::fs;
use std::path::Path;

use lab::{Loaded, is_hindered};
use manypath_emu::tun::Namespace;
use manypath_kernel::engine;

const SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

fn default() -> String {
    fs::read_to_string(SETTING).unwrap().trim().to_owned()
}

#[test]
fn what_was_the_default_is_so_again_everywhere() {
    if is_hindered() {
        return;
    }
    let before = default();
    let loaded = Loaded::with("lia", |request| request.as_default = true);
    let heir = Namespace::new().unwrap();
    assert_eq!([default(), heir.run(default)], [loaded.name.as_str(); 2]);
    let unloaded = engine::unload(std::slice::from_ref(&loaded.name)).unwrap();
    assert_eq!((unloaded.default.as_deref(), unloaded.namespaces > 0), (Some(before.as_str()), true));
    assert_eq!([default(), heir.run(default)], [before.as_str(); 2]);

    // From another namespace, and made the default by hand.
    let loaded = Loaded::new("lia");
    fs::write(SETTING, &loaded.name).unwrap();
    let name = loaded.name.clone();
    let unloaded = heir.run(move || engine::unload(&[name])).unwrap();
    assert_eq!((unloaded.default, unloaded.namespaces > 0), (None, true));
    assert_eq!(default(), before);

    // Another of ours after one that was made the default by hand.
    let loaded = Loaded::new("lia");
    fs::write(SETTING, &loaded.name).unwrap();
    let second = Loaded::with("lia", |request| request.as_default = true);
    assert_eq!(default(), second.name);
    drop(second);
    assert_eq!(default(), before);
    drop(loaded);
    let others = Path::new("/sys/fs/bpf/manypath").exists();
    assert!(others || !Path::new("/run/manypath-default-controller").exists());
}
