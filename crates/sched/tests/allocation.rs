//! In steady state no scheduler allocates for a decision, and neither does the queue it reads.

use manypath_core::{AlgorithmSpec, Bytes, DataRange, DataSeq, Duration, FlowId, SubflowId, SubflowView, Time, View};
use manypath_sched::{Choice, Content, DataAck, Queue, Scheduler, algorithms, create};

/// Every scheduler, and those with a parameter that changes what they do.
fn names() -> impl Iterator<Item = &'static str> {
    let all = algorithms().iter().map(|algorithm| algorithm.name);
    all.chain(["minrtt:rescue=on", "rate-based:rescue=on", "arrival-order:rescue=on"])
}

const HEADER: u64 = 26;
const MSS: u64 = 1400;

/// A connection of four unequal subflows with windows of 20 segments each.
struct Connection {
    scheduler: Box<dyn Scheduler>,
    queue: Queue,
    view: View,
    now: Time,
    written: u64,
    /// What is in flight on each subflow, in the order of sending.
    flights: Vec<std::collections::VecDeque<(DataRange, Bytes)>>,
}

impl Connection {
    fn new(name: &str) -> Self {
        let mut view = View::default();
        for (index, rtt_ms) in [20, 60, 100, 200].into_iter().enumerate() {
            let id = SubflowId(u32::try_from(index).unwrap());
            let mut subflow = SubflowView::new(id, Bytes::new(MSS));
            subflow.srtt = Some(Duration::from_millis(rtt_ms));
            subflow.min_rtt = Duration::from_millis(rtt_ms);
            subflow.cwnd = Bytes::new(20 * MSS);
            subflow.cost = f64::from(id.0 + 1);
            view.subflows.push(subflow);
        }
        Self {
            scheduler: create(&name.parse::<AlgorithmSpec>().unwrap()).unwrap(),
            queue: Queue::new(Bytes::new(HEADER)),
            view,
            now: Time::from_millis(1),
            written: 0,
            flights: vec![std::collections::VecDeque::with_capacity(64); 4],
        }
    }

    /// Ten milliseconds: everything is sent that may be, and one subflow's flight arrives. Returns the number of decisions.
    fn round(&mut self, round: usize) -> usize {
        self.now += Duration::from_millis(10);
        self.queue.extend_window(self.queue.left_edge() + 200 * MSS);
        while self.queue.held() < Bytes::new(300 * MSS) {
            self.queue.admit(Content::Data { flow: FlowId(0), offset: self.written, fin: false }, 64 << 10);
            self.written += 64 << 10;
        }
        let mut decisions = 0;
        while decisions < 1000 {
            decisions += 1;
            let (Choice::Send { subflow, range } | Choice::Duplicate { subflow, range, .. }) =
                self.scheduler.pick(self.now, &self.view, &self.queue)
            else {
                break;
            };
            let bytes = Bytes::new(HEADER + range.len());
            self.queue.on_assigned(self.now, range, subflow);
            self.view.subflows[subflow.index()].in_flight += bytes;
            self.flights[subflow.index()].push_back((range, bytes));
        }
        let arriving = [0, 1, 0, 2, 0, 1, 0, 3][round % 8];
        while let Some((range, bytes)) = self.flights[arriving].pop_front() {
            self.view.subflows[arriving].in_flight -= bytes;
            self.queue.on_copy_ended(range, SubflowId(u32::try_from(arriving).unwrap()), true);
            self.queue.on_selective_ack(range);
        }
        self.acknowledge();
        decisions
    }

    /// The receiver's left edge passes what has arrived.
    fn acknowledge(&mut self) {
        let left = self.queue.left_edge();
        let subflow = self.queue.segment_at(left).map(|segment| segment.last_subflow);
        let mut to = left;
        for segment in self.queue.segments().take_while(|segment| segment.acked) {
            if segment.range.start > to {
                break;
            }
            to = segment.range.end;
        }
        let segments = self.queue.advance_left_edge(to);
        let ack = DataAck {
            newly_acked: Bytes::new(to - left),
            segments,
            left_edge_subflow: subflow.filter(|_| to > left),
            left_edge_retransmitted: false,
            segments_per_ack: 2,
        };
        self.scheduler.on_data_ack(self.now, &ack, &self.view);
    }
}

#[test]
fn steady_state_does_not_allocate() {
    for name in names() {
        let mut connection = Connection::new(name);
        // Tables grow to their working size first.
        for round in 0..20_000 {
            connection.round(round);
        }
        let (mut decisions, before) = (0, connection.queue.left_edge());
        let counted =
            allocation_counter::measure(|| decisions = (0..4_000).map(|round| connection.round(round)).sum::<usize>());
        let moved = connection.queue.left_edge() - before;
        assert!(moved > 10_000 * MSS && decisions > 10_000, "{}: data flows: {moved}", name);
        assert_eq!(counted.count_total, 0, "{}: allocations for {decisions} decisions", name);
        assert!(connection.queue.left_edge() > DataSeq::ZERO);
    }
}
