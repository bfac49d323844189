//! What every registered scheduler promises, whatever the state of the subflows and the queue.

use manypath_core::{
    AlgorithmSpec, Bytes, DataRange, DataSeq, Duration, FlowId, Priority, Rate, SubflowId, SubflowState, SubflowView,
    Time, View,
};
use manypath_sched::{Choice, Content, DataAck, Queue, Scheduler, algorithms, create};
use proptest::prelude::*;

/// Every scheduler, and those with a parameter that changes what they do.
fn names() -> impl Iterator<Item = &'static str> {
    let all = algorithms().iter().map(|algorithm| algorithm.name);
    all.chain(["minrtt:rescue=on", "rate-based:rescue=on", "arrival-order:rescue=on"])
}

const HEADER: u64 = 30;

fn scheduler(name: &str) -> Box<dyn Scheduler> {
    create(&name.parse::<AlgorithmSpec>().unwrap()).expect("it is registered")
}

/// Carries out what the session would, after checking that it may be carried out. Returns whether to ask again.
fn carry_out(now: Time, name: &str, choice: Choice, view: &mut View, queue: &mut Queue) -> bool {
    let may_carry = |id: SubflowId| view.usable().any(|subflow| subflow.id == id && subflow.has_room());
    let (id, range) = match choice {
        Choice::Wait => return false,
        Choice::Penalise { subflow } => {
            assert!(view.open().any(|held| held.id == subflow), "{name} penalises {subflow}, which is not open");
            return true;
        }
        Choice::Send { subflow, range } => {
            assert!(may_carry(subflow), "{name} sends on {subflow}, which is not usable or has no room");
            match queue.segment_at(range.start) {
                // Data that was sent may be sent again where every copy is lost.
                Some(segment) => {
                    assert!(!segment.acked && !segment.is_in_flight(), "{name} sends {range:?} twice");
                    assert!(segment.range.start <= range.start && range.end <= segment.range.end);
                }
                None => {
                    assert!(queue.unsent_ranges().any(|held| held.intersect(&range) == range), "{name}: {range:?}");
                    assert!(range.end <= queue.window_end(), "{name} sends {range:?} beyond the window");
                }
            }
            (subflow, range)
        }
        Choice::Duplicate { subflow, range, penalise } => {
            assert!(may_carry(subflow), "{name} copies to {subflow}, which is not usable or has no room");
            let segment = queue.segment_at(range.start).expect("a copy is of data that was sent");
            assert!(!segment.acked, "{name} copies what has arrived");
            assert!(!segment.was_carried_by(subflow), "{name} copies to {subflow} what it carried already");
            assert!(range.end <= segment.range.end);
            if let Some(held_up) = penalise {
                assert!(held_up != subflow && segment.was_carried_by(held_up), "{name} penalises {held_up}");
            }
            (subflow, range)
        }
    };
    assert!(!range.is_empty() && range.start >= queue.left_edge());
    let content = queue.content_at(range).expect("the range is admitted");
    let bytes = Bytes::new(HEADER + content.payload_len(range.len()));
    let subflow = &mut view.subflows[id.index()];
    assert!(bytes <= subflow.mss, "{name} makes a record of {bytes} bytes for {}", subflow.mss);
    queue.on_assigned(now, range, id);
    subflow.queued += bytes;
    true
}

/// Checks that a scheduler that waits may wait.
fn check_wait(name: &str, scheduler: &dyn Scheduler, view: &View, queue: &Queue) {
    if !queue.has_pending() {
        return;
    }
    let mut open: Vec<_> = view.usable().filter(|subflow| subflow.has_room()).collect();
    let least = |open: &[&SubflowView], key: fn(&SubflowView) -> u64| {
        let least = view.usable().map(key).min();
        open.iter().any(|subflow| Some(key(subflow)) == least)
    };
    let srtt: fn(&SubflowView) -> u64 = |subflow| subflow.srtt.map_or(0, Duration::as_nanos);
    // Every rule for waiting is the scheduler's own, as its documentation says.
    let breaks_its_rule = match name.split(':').next().unwrap_or(name) {
        "minrtt" | "minrtt-pr" | "linux-default" | "round-robin" | "redundant" => !open.is_empty(),
        "rate-based" => open.iter().any(|subflow| subflow.queued.is_zero() || subflow.pacing.is_none()),
        // They wait for the fastest subflow only: never while it, or its equal, has room.
        "stms-a" | "stms-c" | "blest" | "ecf" | "daps" => {
            let fastest = view.usable().min_by_key(|subflow| (srtt(subflow), subflow.id));
            fastest.is_some_and(SubflowView::has_room)
        }
        // It waits for who arrives first only, whose gap is nothing.
        "arrival-order" => open.iter().any(|subflow| {
            let mut gap = f64::NAN;
            scheduler.inspect(subflow.id, &mut |_, value| gap = value);
            gap < 1.0 && (subflow.queued.is_zero() || subflow.pacing.is_none())
        }),
        // Nobody's queue is in the way of dearer subflows if it is empty. Costs are whole numbers in these tests.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        "backup" => {
            open.retain(|subflow| subflow.in_flight.is_zero() && subflow.queued.is_zero());
            least(&open, |subflow| subflow.cost as u64)
        }
        other => panic!("the rule of {other} for waiting is not written down here"),
    };
    assert!(!breaks_its_rule, "{name} waits with room on {open:?}");
}

fn any_subflow() -> impl Strategy<Value = SubflowView> {
    let amounts = (1_u64..30, 0_u64..30, 0_u64..4, 2_u64..30);
    let times = (prop::option::of(1_u64..300), 0_u64..50, prop::option::of(0.0..100.0_f64));
    let kinds = (0_u8..6, prop::bool::weighted(0.2), prop::bool::ANY, 1_u8..4, 200_u64..1_500, 0_u8..50);
    (amounts, times, kinds).prop_map(|((cwnd, in_flight, queued, ssthresh), (srtt, var, pacing), kinds)| {
        let (state, backup, in_recovery, cost, mss, rate) = kinds;
        let mut subflow = SubflowView::new(SubflowId(0), Bytes::new(mss));
        subflow.state = match state {
            0 => SubflowState::Failed,
            1 => SubflowState::Closed,
            _ => SubflowState::Active,
        };
        subflow.priority = if backup { Priority::Backup } else { Priority::Normal };
        subflow.cost = f64::from(cost);
        subflow.srtt = srtt.map(Duration::from_millis);
        subflow.rttvar = Duration::from_millis(var);
        subflow.pacing = pacing.map(Rate::from_mbps);
        subflow.delivery_rate = Rate::from_mbps(f64::from(rate));
        subflow.min_rtt = subflow.srtt.map_or(Duration::MAX, |srtt| srtt / u64::from(cost));
        subflow.cwnd = subflow.mss * cwnd;
        subflow.in_flight = subflow.mss * in_flight.min(cwnd);
        subflow.queued = subflow.mss * queued;
        subflow.ssthresh = if in_recovery { subflow.mss * ssthresh } else { Bytes::MAX };
        subflow.in_recovery = in_recovery;
        subflow
    })
}

/// What happens to a connection.
#[derive(Clone, Debug)]
struct Walk {
    views: Vec<Vec<SubflowView>>,
    /// Flows and bytes.
    admitted: Vec<(u32, u64)>,
    /// Kinds of happenings, which of several, and how much.
    steps: Vec<(u8, usize, u64)>,
    writer_waits: bool,
}

fn any_walk() -> impl Strategy<Value = Walk> {
    let views = prop::collection::vec(prop::collection::vec(any_subflow(), 1..6), 1..8);
    let admitted = prop::collection::vec((0_u32..3, 1_u64..20_000), 1..8);
    let steps = prop::collection::vec((0_u8..6, 0_usize..1_000, 0_u64..60_000), 1..40);
    (views, admitted, steps, prop::bool::ANY).prop_map(|(views, admitted, steps, writer_waits)| Walk {
        views,
        admitted,
        steps,
        writer_waits,
    })
}

impl Walk {
    /// How long it takes.
    fn length(&self) -> Duration {
        Duration::from_millis(self.steps.iter().map(|(.., amount)| amount / 100).sum())
    }

    /// Takes a scheduler along from a time on; returns what it chose.
    fn take(&self, name: &str, scheduler: &mut dyn Scheduler, from: Time) -> Vec<Choice> {
        let mut queue = Queue::new(Bytes::new(HEADER));
        let mut offsets = [0; 3];
        for (flow, len) in &self.admitted {
            let offset = &mut offsets[*flow as usize];
            queue.admit(Content::Data { flow: FlowId(*flow), offset: *offset, fin: false }, *len);
            *offset += len;
        }
        queue.set_writer_waits(self.writer_waits);
        let (mut copies, mut choices): (Vec<(DataRange, SubflowId)>, Vec<Choice>) = Default::default();
        let mut view = View::default();
        let mut now = from;
        for (index, (kind, which, amount)) in self.steps.iter().enumerate() {
            now += Duration::from_millis(amount / 100);
            match kind {
                0 | 1 => {
                    view.subflows.clone_from(&self.views[which % self.views.len()]);
                    for (id, subflow) in (0..).zip(&mut view.subflows) {
                        subflow.id = SubflowId(id);
                    }
                }
                2 => queue.extend_window(queue.left_edge() + *amount),
                3 if !copies.is_empty() => {
                    let (copy, subflow) = copies.swap_remove(which % copies.len());
                    let delivered = index % 3 == 0;
                    queue.on_copy_ended(copy, subflow, delivered);
                    if !delivered {
                        scheduler.on_lost(subflow, copy);
                    }
                }
                4 if !copies.is_empty() => drop(queue.on_selective_ack(copies[which % copies.len()].0)),
                _ => {
                    let edge = queue.segment_at(queue.left_edge()).copied();
                    let before = queue.left_edge();
                    let segments = queue.advance_left_edge(before + amount / 8);
                    let ack = DataAck {
                        newly_acked: Bytes::new(queue.left_edge() - before),
                        segments,
                        left_edge_subflow: edge.map(|segment| segment.last_subflow),
                        left_edge_retransmitted: edge.is_some_and(|segment| segment.retransmitted),
                        segments_per_ack: 2,
                    };
                    scheduler.on_data_ack(now, &ack, &view);
                }
            }
            for decision in 0.. {
                assert!(decision < 5_000, "{name} does not come to an end");
                let choice = scheduler.pick(now, &view, &queue);
                assert!(!scheduler.reason().is_empty());
                choices.push(choice);
                if let Choice::Send { subflow, range } | Choice::Duplicate { subflow, range, .. } = choice {
                    copies.push((range, subflow));
                }
                if !carry_out(now, name, choice, &mut view, &mut queue) {
                    check_wait(name, scheduler, &view, &queue);
                    break;
                }
            }
        }
        choices
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every decision is one that the session can carry out, decisions come to an end, and nobody waits beyond its rule:
    /// over changing views, acknowledgements and losses in any order.
    #[test]
    fn decisions_are_sound(walk in any_walk()) {
        for name in names() {
            walk.take(name, &mut *scheduler(name), Time::ZERO);
        }
    }

    /// Whoever is given the id of a subflow that has left is another one: when all have, nothing is known of any. (The connection's are round
    /// robin's turn, BLEST's lambda, and how long `backup` has had a backlog.)
    #[test]
    fn nothing_is_remembered_of_subflows_that_have_left(before in any_walk(), walk in any_walk()) {
        for name in names().filter(|name| !["round-robin", "blest", "backup"].contains(name)) {
            let mut used = scheduler(name);
            before.take(name, &mut *used, Time::ZERO);
            for id in 0..6 {
                used.remove_subflow(SubflowId(id));
            }
            let later = Time::ZERO + before.length();
            prop_assert_eq!(walk.take(name, &mut *used, later), walk.take(name, &mut *scheduler(name), later), "{}", name);
        }
    }

    /// The names of subflows mean nothing: with ids reversed the same path is chosen for the first decision. (Round robin
    /// goes by ids; `linux-default` by the kernel's list.)
    #[test]
    fn a_first_decision_does_not_depend_on_ids(
        rtts in prop::collection::btree_set(1_u64..300, 2..5),
        used in prop::collection::vec(0_u64..12, 5),
    ) {
        let rtts: Vec<_> = rtts.into_iter().collect();
        let view = |reverse: bool| {
            let mut view = View::default();
            for index in 0..rtts.len() {
                let path = if reverse { rtts.len() - 1 - index } else { index };
                let mut subflow = SubflowView::new(SubflowId(u32::try_from(index).unwrap()), Bytes::new(1_000));
                subflow.srtt = Some(Duration::from_millis(rtts[path]));
                subflow.cwnd = Bytes::new(12_000);
                subflow.in_flight = Bytes::new(used[path] * 1_000);
                subflow.cost = rtts[path] as f64;
                view.subflows.push(subflow);
            }
            view
        };
        let mut queue = Queue::new(Bytes::new(HEADER));
        queue.extend_window(DataSeq(60_000));
        queue.admit(Content::Data { flow: FlowId(0), offset: 0, fin: false }, 500_000);
        for name in names().filter(|name| !["round-robin", "linux-default"].contains(name)) {
            let first = |reverse: bool| match scheduler(name).pick(Time::ZERO, &view(reverse), &queue) {
                Choice::Send { subflow, range } => {
                    Some((if reverse { rtts.len() - 1 - subflow.index() } else { subflow.index() }, range))
                }
                _ => None,
            };
            prop_assert_eq!(first(false), first(true), "{}", name);
        }
    }
}

#[test]
fn nothing_happens_without_subflows_or_data() {
    let mut empty = Queue::new(Bytes::new(HEADER));
    let mut open = View::default();
    let mut subflow = SubflowView::new(SubflowId(0), Bytes::new(1_000));
    subflow.cwnd = Bytes::new(10_000);
    open.subflows.push(subflow);
    for name in names() {
        let mut scheduler = scheduler(name);
        assert_eq!(scheduler.pick(Time::ZERO, &open, &empty), Choice::Wait, "{}", name);
    }
    empty.extend_window(DataSeq(10_000));
    empty.admit(Content::Data { flow: FlowId(0), offset: 0, fin: false }, 5_000);
    for name in names() {
        let mut scheduler = scheduler(name);
        assert_eq!(scheduler.pick(Time::ZERO, &View::default(), &empty), Choice::Wait, "{}", name);
        let sent = scheduler.pick(Time::ZERO, &open, &empty);
        assert!(matches!(sent, Choice::Send { .. }), "{}: one subflow, no RTT yet: {sent:?}", name);
    }
}
