use super::*;
use crate::testing::{queue, segments, send, subflow, view};
use manypath_core::{Priority, SubflowId, SubflowState};

fn pick(view: &View, queue: &Queue) -> (Choice, &'static str) {
    let mut scheduler = MinRtt::new(Config::default());
    let choice = scheduler.pick(Time::ZERO, view, queue);
    (choice, scheduler.reason())
}

#[test]
fn the_lowest_rtt_with_room_sends() {
    let queue = queue(10, 10);
    assert_eq!(pick(&view([subflow(0, 50, 10, 0), subflow(1, 20, 10, 9)]), &queue).0, send(1, 0));
    assert_eq!(pick(&view([subflow(0, 50, 10, 0), subflow(1, 20, 10, 10)]), &queue).0, send(0, 0));
    // What is queued on the subflow counts against its window.
    let mut full = subflow(1, 20, 10, 5);
    full.queued = full.mss * 5;
    assert_eq!(pick(&view([subflow(0, 50, 10, 0), full]), &queue).0, send(0, 0));
}

#[test]
fn ties_go_to_the_lowest_id_and_the_unmeasured_goes_first() {
    let queue = queue(10, 10);
    assert_eq!(pick(&view([subflow(0, 20, 10, 0), subflow(1, 20, 10, 0)]), &queue).0, send(0, 0));
    let mut unknown = subflow(1, 20, 10, 0);
    unknown.srtt = None;
    assert_eq!(pick(&view([subflow(0, 1, 10, 0), unknown]), &queue).0, send(1, 0));
}

#[test]
fn backups_and_failed_subflows_are_left_alone() {
    let queue = queue(10, 10);
    let mut backup = subflow(0, 1, 10, 0);
    backup.priority = Priority::Backup;
    let full = subflow(1, 20, 10, 10);
    assert_eq!(pick(&view([backup.clone(), full.clone()]), &queue), (Choice::Wait, "no subflow with room"));
    let mut failed = full;
    failed.state = SubflowState::Failed;
    assert_eq!(pick(&view([backup, failed]), &queue).0, send(0, 0));
}

#[test]
fn lost_data_goes_on_the_fastest_subflow_and_what_was_lost_again_on_another() {
    let mut queue = queue(10, 10);
    let (both, alone) = ([10, 10], [10, 0]);
    let paths = |[fast, slow]: [u64; 2]| view([subflow(0, 10, 10, 10 - fast), subflow(1, 100, 10, 10 - slow)]);
    let lose = |queue: &mut Queue, id| {
        queue.on_assigned(Time::ZERO, segments(0, 1), SubflowId(id));
        queue.on_copy_ended(segments(0, 1), SubflowId(id), false);
    };
    lose(&mut queue, 0);
    assert_eq!(pick(&paths(both), &queue).0, send(0, 0));
    lose(&mut queue, 0);
    assert_eq!(pick(&paths(both), &queue).0, send(1, 0));
    assert_eq!(pick(&paths(alone), &queue).0, send(0, 0));
    lose(&mut queue, 1);
    assert_eq!(pick(&paths(both), &queue).0, send(0, 0));
}

#[test]
fn it_says_why_it_waits() {
    let view = view([subflow(0, 20, 10, 0)]);
    assert_eq!(pick(&view, &queue(0, 10)), (Choice::Wait, "nothing to send"));
    assert_eq!(pick(&view, &queue(10, 0)), (Choice::Wait, "receive window full"));
}
