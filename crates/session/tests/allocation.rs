//! In steady state a session allocates nothing per packet.

use manypath_core::{AlgorithmSpec, Bytes, Duration, FlowId, Time};
use manypath_session::{Config, PathInit, Role, Session};

/// Two sessions over two perfect paths with a fixed delay between them.
struct Pair {
    sender: Session,
    receiver: Session,
    flow: FlowId,
    now: Time,
    in_flight: Vec<(manypath_core::SubflowId, manypath_core::PacketNumber)>,
}

fn session(role: Role, cc: &str, scheduler: &str) -> Session {
    let cc = manypath_cc::create(&AlgorithmSpec::named(cc), 1).expect("registered");
    let scheduler = manypath_sched::create(&AlgorithmSpec::named(scheduler)).expect("registered");
    let mut session = Session::new(Config::new(role), cc, scheduler);
    for _ in 0..2 {
        session.add_path(Time::ZERO, PathInit::new(Bytes::new(1400))).expect("two paths are allowed");
    }
    session
}

impl Pair {
    fn new(cc: &str, scheduler: &str) -> Self {
        let mut sender = session(Role::Client, cc, scheduler);
        let flow = sender.open_flow().expect("the first flow");
        let receiver = session(Role::Server, cc, scheduler);
        Self { sender, receiver, flow, now: Time::from_millis(1), in_flight: Vec::with_capacity(4096) }
    }

    /// One round: at most 64 packets there, everything back. Every 50th packet is lost.
    fn round(&mut self) -> usize {
        self.now += Duration::from_millis(1);
        while self.sender.write(self.now, self.flow, 1 << 20).expect("the flow is open") > 0 {}
        self.sender.on_timeout(self.now);
        self.receiver.on_timeout(self.now);
        self.in_flight.clear();
        while self.in_flight.len() < 64
            && let Some(transmit) = self.sender.poll_transmit(self.now)
        {
            let lost = transmit.packet.is_some_and(|packet| packet.0 % 50 == 49);
            if !lost {
                self.receiver.on_record(self.now, transmit.subflow, &transmit.record, false).expect("honest");
            }
            self.in_flight.extend(transmit.packet.map(|packet| (transmit.subflow, packet)));
        }
        self.now += Duration::from_millis(10);
        let readable = self.receiver.readable(self.flow);
        self.receiver.consume(self.now, self.flow, readable.end - readable.start);
        while let Some(transmit) = self.receiver.poll_transmit(self.now) {
            self.sender.on_record(self.now, transmit.subflow, &transmit.record, false).expect("honest");
        }
        for (subflow, packet) in &self.in_flight {
            if packet.0 % 50 == 49 {
                self.sender.on_lost(self.now, *subflow, *packet);
            } else {
                self.sender.on_acked(self.now, *subflow, *packet);
            }
        }
        while self.receiver.poll_event().is_some() || self.sender.poll_event().is_some() {}
        self.in_flight.len()
    }
}

#[test]
fn steady_state_does_not_allocate() {
    for (cc, scheduler) in [("lia", "minrtt"), ("cubic", "round-robin"), ("mpcc-loss", "rate-based")] {
        let mut pair = Pair::new(cc, scheduler);
        // Tables grow to their working size first.
        let warm: usize = (0..20_000).map(|_| pair.round()).sum();
        assert!(warm > 20_000, "{cc}: packets flow");
        let mut packets = 0;
        let counted = allocation_counter::measure(|| packets = (0..5_000).map(|_| pair.round()).sum::<usize>());
        assert!(packets > 5_000, "{cc}: packets flow");
        assert_eq!(counted.count_total, 0, "{cc} with {scheduler}: allocations for {packets} packets");
    }
}
