//! Every controller loads into this kernel, moves bytes over plain TCP and Multipath TCP on loopback, and leaves while a
//! connection is alive; its state goes with the connection.

#![cfg(feature = "kernel")]
#![allow(clippy::print_stdout, reason = "what was loaded")]

mod lab;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use lab::is_hindered;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use manypath_kernel::{Counter, objects};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// A controller in the kernel, under a name of this process' own: other tests may have it loaded under its real one.
struct Loaded {
    name: String,
    /// Before the object, which it needs to unregister.
    link: Option<Link>,
    object: Object,
}

fn load(controller: &manypath_kernel::Object) -> Loaded {
    let mut open = ObjectBuilder::default().open_memory(controller.elf).unwrap();
    let name =
        format!("{}{}", &controller.kernel_name[..controller.kernel_name.len().min(8)], std::process::id() % 1_000_000);
    let real = controller.kernel_name.as_bytes();
    for mut map in open.maps_mut() {
        if map.name() == controller.kernel_name {
            let value = map.initial_value_mut().unwrap();
            let at =
                value.windows(real.len() + 1).position(|part| part[..real.len()] == *real && part[real.len()] == 0);
            let at = at.expect("the name is in the structure");
            value[at..at + 16].fill(0);
            value[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
    }
    let mut object = open.load().unwrap_or_else(|error| panic!("{}: {error:?}", controller.name));
    let mut map = object.maps_mut().find(|map| map.name() == controller.kernel_name).unwrap();
    let link = map.attach_struct_ops().unwrap();
    Loaded { name, link: Some(link), object }
}

impl Loaded {
    fn counter(&self, counter: Counter) -> u64 {
        let map = self.object.maps().find(|map| map.name() == "counters").unwrap();
        let cpus = map.lookup_percpu(&(counter as u32).to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        cpus.iter().map(|value| u64::from_ne_bytes(value[..8].try_into().unwrap())).sum()
    }

    fn connections(&self) -> usize {
        self.object.maps().find(|map| map.name() == "connections").unwrap().keys().count()
    }
}

/// Two connected sockets under a controller; MPTCP or plain TCP.
fn connect(name: &str, multipath: bool) -> (Socket, Socket) {
    let protocol = if multipath { Protocol::MPTCP } else { Protocol::TCP };
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
        socket.set_tcp_congestion(name.as_bytes()).unwrap();
        socket
    };
    let (listener, client) = (open(), open());
    listener.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))).unwrap();
    listener.listen(1).unwrap();
    client.connect(&listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Moves bytes both ways and checks them.
fn move_bytes(client: &Socket, server: &Socket) {
    const BYTES: usize = 4 << 20;
    let pattern: Vec<u8> = (0..BYTES).map(|at| at.wrapping_mul(31).wrapping_add(at / 251).to_le_bytes()[0]).collect();
    for (mut from, mut to) in [(client, server), (server, client)] {
        let sent = &pattern;
        let mut received = vec![0; BYTES];
        thread::scope(|scope| {
            scope.spawn(move || from.write_all(sent).unwrap());
            to.read_exact(&mut received).unwrap();
        });
        assert!(received == pattern, "bytes changed on the way");
    }
}

#[test]
fn every_controller_loads_moves_bytes_and_leaves() {
    if is_hindered() {
        return;
    }
    for controller in objects() {
        let mut loaded = load(&controller);
        let (client, server) = connect(&loaded.name, false);
        move_bytes(&client, &server);
        // Both ends of a plain connection, and nothing in the map.
        assert_eq!(loaded.counter(Counter::Plain), 2, "{}", controller.name);
        assert_eq!(loaded.connections(), 0);
        drop((client, server));

        let (client, server) = connect(&loaded.name, true);
        move_bytes(&client, &server);
        assert_eq!(loaded.connections(), 2, "{}: each end is a connection", controller.name);
        assert_eq!(loaded.counter(Counter::Subflows), 2);

        // Unregistered with a connection alive: it goes on, no new one can begin.
        drop(loaded.link.take());
        move_bytes(&client, &server);
        let late = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        assert!(late.set_tcp_congestion(loaded.name.as_bytes()).is_err(), "{} is still there", controller.name);
        drop((client, server));
        // The last subflow closes when the end of the stream has been acknowledged.
        let waits = (0..500).find(|_| {
            thread::sleep(std::time::Duration::from_millis(10));
            loaded.connections() == 0
        });
        assert!(waits.is_some(), "{}: {} connections are left", controller.name, loaded.connections());
        assert_eq!(loaded.counter(Counter::Freed), 2);
        println!("{}: loaded as {}, 2 connections, state freed", controller.name, loaded.name);
    }
}
