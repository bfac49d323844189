//! What cannot be done is refused as a whole: nothing half-loaded.

#![cfg(feature = "kernel")]

mod lab;

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab::{Loaded, Pair, is_hindered, two_links, unique_name, wait_until};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use manypath_core::{AlgorithmSpec, SpecError};
use manypath_kernel::{Error, Request, engine};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

fn request(specs: &[&str]) -> Request {
    let controllers = specs.iter().map(|spec| spec.parse::<AlgorithmSpec>().unwrap()).collect();
    Request { controllers, name: Some(unique_name()), ..Request::default() }
}

/// The error of a request that fails, after which nothing has the name that was asked for.
fn refused(request: &Request) -> Error {
    let error = engine::load(request).unwrap_err();
    let name = request.name.as_deref().unwrap();
    assert!(!Path::new("/sys/fs/bpf/manypath").join(name).exists(), "{error}");
    assert!(!available().iter().any(|held| held == name), "{error}");
    error
}

#[test]
fn unknown_controllers_parameters_and_names() {
    if is_hindered() {
        return;
    }
    assert!(matches!(refused(&request(&["nope"])), Error::Unknown { known, .. } if known.contains("lia")));
    // The second fails: the first goes, too.
    assert!(matches!(refused(&request(&["reno", "nope"])), Error::Unknown { .. }));
    assert!(matches!(refused(&request(&["lia", "lia:x=1"])), Error::NotInKernel { .. }));
    // Two of one name: neither is loaded.
    assert!(matches!(refused(&request(&["lia", "balia"])), Error::Twice(_)));
    let all = Request { settings: vec![("x".to_owned(), "1".to_owned())], ..request(&["reno"]) };
    assert!(matches!(refused(&all), Error::NotInKernel { .. }));
    assert!(matches!(refused(&request(&["balia:alpha=7"])), Error::Parameter(SpecError::BadValue { .. })));
    // The simulator takes it.
    assert!(matches!(refused(&request(&["mp-ol:n=9"])), Error::TooMuch { most: 8, .. }));
    for name in ["", "a.b", "../x", "sixteen_letters_"] {
        let request = Request { name: Some(name.to_owned()), ..request(&["lia"]) };
        assert!(matches!(engine::load(&request), Err(Error::Name(_))), "{name}");
    }
}

#[test]
fn what_is_loaded_stays_when_a_second_load_fails() {
    if is_hindered() {
        return;
    }
    let loaded = Loaded::new("lia");
    let again = Request { name: Some(loaded.name.clone()), ..request(&["balia"]) };
    assert!(matches!(engine::load(&again), Err(Error::Loaded(name)) if name == loaded.name));
    assert_eq!(loaded.status().unwrap().name, "lia");
    // The kernel's own names are not ours to take.
    let builtin = Request { name: Some("reno".to_owned()), ..request(&["lia"]) };
    assert!(matches!(engine::load(&builtin), Err(Error::Taken(_))));

    assert!(matches!(engine::set(&loaded.name, &[("x".to_owned(), "1".to_owned())]), Err(Error::NotInKernel { .. })));
    assert!(matches!(engine::set("no_such", &[]), Err(Error::NotLoaded(_))));
    // One of the two is not loaded: neither is unloaded.
    let both = [loaded.name.clone(), "no_such".to_owned()];
    assert!(matches!(engine::unload(&both), Err(Error::NotLoaded(name)) if name == "no_such"));
    assert!(loaded.status().is_some());
}

/// Names of the kernel's controllers.
fn available() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn what_comes_and_goes_meanwhile_is_no_error_of_status() {
    if is_hindered() {
        return;
    }
    let stays = Loaded::new("lia");
    let others = std::thread::spawn(|| {
        for _ in 0..10 {
            drop(Loaded::new("tccc"));
        }
    });
    let (process, _) = stays.name.split_once('_').unwrap();
    let mut seen = 0;
    while !others.is_finished() {
        let found = engine::status().unwrap();
        assert!(found.iter().any(|controller| controller.kernel_name == stays.name));
        // None is seen half-loaded: its parameters are there.
        for tccc in found.iter().filter(|one| one.name == "tccc" && one.kernel_name.starts_with(process)) {
            assert_eq!(tccc.parameters.len(), 5);
            seen += 1;
        }
    }
    others.join().unwrap();
    assert!(seen > 0);
}

#[test]
fn connections_that_come_and_go_are_listed_once() {
    if is_hindered() {
        return;
    }
    let loaded = Loaded::new("lia");
    let map = MapHandle::from_pinned_path(loaded.pin("connections")).unwrap();
    let put = |token: u32| map.update(&token.to_ne_bytes(), &vec![0; map.value_size() as usize], MapFlags::ANY);
    let stays = 1..=200_u32;
    stays.clone().for_each(|token| put(token).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let comes_and_goes = 1000..1200_u32;
                comes_and_goes.clone().for_each(|token| put(token).unwrap());
                comes_and_goes.for_each(|token| map.delete(&token.to_ne_bytes()).unwrap());
            }
        });
        let tokens = || loaded.status().unwrap().connections.iter().map(|one| one.token).collect::<Vec<_>>();
        let seen: Vec<_> = std::iter::repeat_with(tokens).take(100).collect();
        done.store(true, Ordering::Relaxed);
        for tokens in seen {
            assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
            assert!(stays.clone().all(|token| tokens.contains(&token)), "{tokens:?}");
        }
    });
}

#[test]
fn what_is_unloaded_is_what_was_named() {
    if is_hindered() {
        return;
    }
    // A name that ends in another's.
    let loaded = Loaded::with("lia", |request| request.name = Some(format!("x{}", unique_name())));
    let end = loaded.name[1..].to_owned();
    assert!(matches!(engine::unload(std::slice::from_ref(&end)), Err(Error::NotLoaded(name)) if name == end));
    let whole = Loaded::with("lia", |request| request.name = Some(end.clone()));
    assert_eq!(engine::unload(std::slice::from_ref(&end)).unwrap().controllers, [end.as_str()]);
    assert!(available().contains(&loaded.name) && !available().contains(&end));
    assert!(whole.status().is_none() && loaded.status().is_some());
    // Nor what is no name at all.
    for name in ["", ".", ".."] {
        assert!(matches!(engine::unload(&[name.to_owned()]), Err(Error::NotLoaded(_))), "{name:?}");
    }
    assert!(loaded.status().is_some());
}

#[test]
fn what_others_have_registered_stays() {
    if is_hindered() {
        return;
    }
    let lia = manypath_kernel::objects().find(|object| object.name == "lia").unwrap();
    let mut open = libbpf_rs::ObjectBuilder::default().open_memory(lia.elf).unwrap();
    let name = unique_name();
    for mut map in open.maps_mut().filter(|map| map.name() == lia.kernel_name) {
        let value = map.initial_value_mut().unwrap();
        let real = [lia.kernel_name.as_bytes(), &[0]].concat();
        let at = value.windows(real.len()).position(|part| part == real).unwrap();
        value[at..at + 16].fill(0);
        value[at..at + name.len()].copy_from_slice(name.as_bytes());
    }
    let mut object = open.load().unwrap();
    let _link = object.maps_mut().find(|map| map.name() == lia.kernel_name).unwrap().attach_struct_ops().unwrap();
    assert!(matches!(engine::unload(std::slice::from_ref(&name)), Err(Error::Taken(_))));
    assert!(available().contains(&name));
    let again = Request { name: Some(name.clone()), ..request(&["lia"]) };
    assert!(matches!(engine::load(&again), Err(Error::Taken(_))));
}

#[test]
fn reno_is_ours_where_controllers_are_unloaded_and_set() {
    if is_hindered() || available().iter().any(|name| name == "mp_reno") {
        return;
    }
    assert!(matches!(engine::unload(&["reno".to_owned()]), Err(Error::NotLoaded(name)) if name == "mp_reno"));
    engine::load(&Request { name: None, ..request(&["reno"]) }).unwrap();
    let set = engine::set("reno", &[("x".to_owned(), "1".to_owned())]);
    let unloaded = engine::unload(&["reno".to_owned()]);
    assert!(matches!(set, Err(Error::NotInKernel { .. })), "{set:?}");
    assert_eq!(unloaded.unwrap().controllers, ["mp_reno"]);
    assert!(!available().iter().any(|name| name == "mp_reno"));
}

/// The machine's default controller.
fn default() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap()
}

/// Gives this thread, and those it starts, a view of the mounts of its own.
fn leave_mounts() {
    // SAFETY: the thread gives up only what it shares with the others: its view of the mounts, its working
    // directory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
}

/// Where this thread's view of the mounts has BPF file systems.
fn file_systems() -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap();
    let of_line = |line: &str| line.contains(" bpf ").then(|| line.split(' ').nth(1).unwrap().to_owned());
    mounts.lines().filter_map(of_line).collect()
}

#[test]
fn commands_at_once_mount_one_file_system() {
    if is_hindered() {
        return;
    }
    let mount_often = || {
        leave_mounts();
        // As if the machine's first process were here.
        mount_bind("/proc/thread-self", "/proc/1").unwrap();
        for _ in 0..20 {
            file_systems().iter().for_each(|place| unmount(place.as_str(), UnmountFlags::DETACH).unwrap());
            let start = Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        assert!(matches!(engine::set("no_such", &[]), Err(Error::NotLoaded(_))));
                    });
                }
            });
            assert_eq!(file_systems(), ["/sys/fs/bpf"]);
        }
    };
    std::thread::spawn(mount_often).join().unwrap();
}

#[test]
fn a_default_that_could_not_be_given_back_is_not_taken() {
    if is_hindered() {
        return;
    }
    let before = default();
    let load = || {
        leave_mounts();
        mount("none", "/run", "tmpfs", MountFlags::RDONLY, None).unwrap();
        refused(&Request { as_default: true, ..request(&["lia"]) })
    };
    let error = std::thread::spawn(load).join().unwrap();
    assert!(matches!(error, Error::File { path, .. } if path.starts_with("/run")));
    assert_eq!(default(), before);
}

#[test]
fn a_name_is_free_again_while_a_connection_holds_what_had_it() {
    if is_hindered() {
        return;
    }
    let loaded = Loaded::new("lia");
    let links = two_links();
    let pair = Pair::connect(&links, &loaded.name);
    let name = [loaded.name.clone()];
    for _ in 0..3 {
        engine::unload(&name).unwrap();
        engine::load(&Request { name: Some(loaded.name.clone()), ..request(&["lia"]) }).unwrap();
    }
    // The connection goes on with the first.
    assert!(loaded.status().unwrap().connections.is_empty());
    pair.transfer(1 << 20, false);
}

#[test]
fn a_full_map_leaves_further_connections_uncoupled_and_says_so() {
    if is_hindered() {
        return;
    }
    // Each end is a connection: of four, three find no room.
    let loaded = Loaded::with("uni-mptcp", |request| request.connections = Some(1));
    let (one, two) = (two_links(), two_links());
    let pairs = [Pair::connect(&one, &loaded.name), Pair::connect(&two, &loaded.name)];
    for pair in &pairs {
        pair.transfer(1 << 20, false);
        pair.transfer(1 << 20, true);
    }
    let status = loaded.status().unwrap();
    assert_eq!(status.connections.len(), 1);
    assert!(status.counters["full"] >= 3, "{:?}", status.counters);

    // Weights have as much room, and for all that have none.
    engine::set_weights(None, &[1.0, 0.2]).unwrap();
    let token = status.connections[0].token;
    engine::set_weights(Some(token), &[1.0, 0.5]).unwrap();
    assert!((engine::weights(token).unwrap()[1] - 0.5).abs() < 1e-6);
    assert!(matches!(engine::set_weights(Some(token ^ 1), &[1.0]), Err(Error::NoConnection { .. })));
    engine::clear_weights(Some(token)).unwrap();
    let weights = MapHandle::from_pinned_path(loaded.pin("weights")).unwrap();
    weights.update(&1_u32.to_ne_bytes(), &vec![0; weights.value_size() as usize], MapFlags::ANY).unwrap();
    let error = engine::set_weights(Some(token), &[1.0]).unwrap_err();
    assert!(matches!(error, Error::Full { map: "weights", .. }), "{error}");
    drop(pairs);
    wait_until("the connection's entry is gone", || loaded.status().unwrap().connections.is_empty().then_some(()));
}

#[test]
fn a_connection_that_ends_meanwhile_leaves_no_weights() {
    const TOKEN: u32 = 1;
    if is_hindered() {
        return;
    }
    let loaded = Loaded::new("uni-mptcp");
    let [connections, weights] =
        ["connections", "weights"].map(|map| MapHandle::from_pinned_path(loaded.pin(map)).unwrap());
    for round in 0..1000 {
        connections.update(&TOKEN.to_ne_bytes(), &vec![0; connections.value_size() as usize], MapFlags::ANY).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(round % 200));
                // As the programs do.
                connections.delete(&TOKEN.to_ne_bytes()).unwrap();
                let _ = weights.delete(&TOKEN.to_ne_bytes());
            });
            assert!(matches!(engine::set_weights(Some(TOKEN), &[1.0]), Ok(()) | Err(Error::NoConnection { .. })));
        });
        let left = weights.lookup(&TOKEN.to_ne_bytes(), MapFlags::ANY).unwrap();
        assert_eq!(left, None, "round {round}");
    }
}
