//! Every controller under a connection of two subflows, over emulated links: loaded, used, unloaded, gone.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was done")]

mod lab;

use std::net::IpAddr;

use lab::{Loaded, Pair, is_hindered, two_links, wait_until};
use libbpf_rs::{MapCore as _, MapHandle};
use manypath_kernel::status::SubflowStatus;
use manypath_kernel::{engine, objects};

const BYTES: usize = 3 << 20;

/// Both subflows, one from each of the client's addresses, have taken the controller at both ends and share an entry there.
fn assert_coupled(loaded: &Loaded, pair: &Pair, client: [IpAddr; 2]) {
    for (side, end) in pair.ends().into_iter().enumerate() {
        let subflows = wait_until("both subflows take the controller", || {
            let subflows = loaded.connection_at(end)?.subflows;
            (subflows.len() == 2).then_some(subflows)
        });
        let client_address = |subflow: &SubflowStatus| if side == 0 { subflow.local } else { subflow.remote }.ip();
        let mut addresses: Vec<IpAddr> = subflows.iter().map(client_address).collect();
        addresses.sort();
        assert_eq!(addresses, client, "one subflow a path");
        assert_ne!(subflows[0].place, subflows[1].place);
    }
}

/// Both subflows of the end that sends have delivered packets.
fn assert_both_used(loaded: &Loaded, pair: &Pair, end: usize) {
    wait_until("both subflows deliver", || {
        let subflows = loaded.connection_at(pair.ends()[end])?.subflows;
        subflows.iter().all(|subflow| subflow.delivered > 10 && subflow.srtt_us > 0).then_some(())
    });
}

#[test]
fn two_subflows_under_every_controller() {
    if is_hindered() {
        return;
    }
    let links = two_links();
    let client = [0, 1].map(|path: usize| IpAddr::from(links.paths()[path].client));
    for object in objects() {
        let loaded = Loaded::new(object.name);
        let pair = Pair::connect(&links, &loaded.name);
        pair.transfer(BYTES, false);
        assert_coupled(&loaded, &pair, client);
        assert_both_used(&loaded, &pair, 0);
        // The subflows of the end that was connected to are as good.
        pair.transfer(BYTES, true);
        assert_both_used(&loaded, &pair, 1);

        let maps = ["controller", "connections", "weights", "counters"]
            .map(|map| MapHandle::from_pinned_path(loaded.pin(map)).unwrap().info().unwrap().info.id);
        // The connection goes on without the controller's name, and takes the maps with it when it ends.
        engine::unload(std::slice::from_ref(&loaded.name)).unwrap();
        assert!(!loaded.pin("").exists() && loaded.status().is_none());
        pair.transfer(BYTES / 4, false);
        pair.transfer(BYTES / 4, true);
        assert!(maps.iter().all(|id| MapHandle::from_map_id(*id).is_ok()), "the connection uses them");
        drop(pair);
        wait_until("the maps are gone", || maps.iter().all(|id| MapHandle::from_map_id(*id).is_err()).then_some(()));
        println!("{}: two subflows an end, both directions, unloaded while alive, nothing left", object.name);
    }
}
