//! The machine's default controller: where it goes, and that it comes back from everywhere. In a test binary of its own, since it is the
//! whole machine's.

#![cfg(feature = "kernel")]

mod lab;

use std::fs;
use std::path::Path;

use lab::{Loaded, is_hindered, unique_name};
use manypath_emu::tun::Namespace;
use manypath_kernel::{Error, Request, engine};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const BEFORE: &str = "/run/manypath-default-controller";

fn default() -> String {
    fs::read_to_string(SETTING).unwrap().trim().to_owned()
}

/// Only the first network namespace has a default to set and to remember.
fn is_elsewhere(heir: &Namespace) {
    let before = default();
    let controllers = vec!["lia".parse().unwrap()];
    let request = Request { controllers, name: Some(unique_name()), as_default: true, ..Request::default() };
    let refused = heir.run(move || engine::load(&request));
    assert!(matches!(refused, Err(Error::DefaultElsewhere)), "{refused:?}");
    assert_eq!([default(), heir.run(default)], [before.as_str(); 2]);

    let first = Loaded::new("lia");
    let load = || {
        // Every namespace has it.
        fs::write(SETTING, "reno").unwrap();
        Loaded::new("lia")
    };
    let second = heir.run(load);
    assert_eq!(fs::read_to_string(BEFORE).unwrap(), before);
    // Nor where nothing tells which namespace it is.
    let third = heir.run(|| {
        // SAFETY: the thread gives up only what it shares with the others: its view of the mounts, its working
        // directory.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        mount("none", "/proc/sys/net/core", "tmpfs", MountFlags::RDONLY, None).unwrap();
        Loaded::new("lia")
    });
    assert_eq!(fs::read_to_string(BEFORE).unwrap(), before);
    drop((first, second, third));
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
    assert!(others || !Path::new(BEFORE).exists());
    is_elsewhere(&Namespace::new().unwrap());
}
