//! Places in a connection's group (`bpf/places.h`), as compiled for the host: who comes and goes in which order.

use manypath_kernel::{Group, MAX_SUBFLOWS};

unsafe extern "C" {
    fn host_take_place(group: *mut Group) -> u32;
    fn host_leave_place(group: *mut Group, place: u32) -> bool;
    fn host_return_place(group: *mut Group, place: u32);
}

/// `ALONE`.
#[allow(clippy::cast_possible_truncation, reason = "eight")]
const NONE: u32 = MAX_SUBFLOWS as u32;

fn take(group: &mut Group) -> u32 {
    // SAFETY: it reads and writes the group alone.
    unsafe { host_take_place(group) }
}

fn leave(group: &mut Group, place: u32) -> bool {
    // SAFETY: as above.
    unsafe { host_leave_place(group, place) }
}

/// As a subflow of another connection does that finds itself in this one's group.
fn give_back(group: &mut Group, place: u32) {
    // SAFETY: as above.
    unsafe { host_return_place(group, place) };
}

#[test]
fn the_last_to_leave_closes_the_group() {
    let mut group = Group::default();
    let places: Vec<u32> = (0..MAX_SUBFLOWS).map(|_| take(&mut group)).collect();
    assert!(places.iter().copied().eq(0..NONE) && take(&mut group) == NONE);
    assert!(!leave(&mut group, 3));
    assert_eq!(take(&mut group), 3);
    let last: Vec<bool> = places.iter().map(|&place| leave(&mut group, place)).collect();
    assert_eq!(last, [false, false, false, false, false, false, false, true]);
    // Whoever left last deletes the entry: nobody comes any more.
    assert_eq!(take(&mut group), NONE);
}

#[test]
fn a_stranger_who_leaves_last_leaves_the_group_open() {
    let mut group = Group::default();
    let (own, stranger) = (take(&mut group), take(&mut group));
    assert!(!leave(&mut group, own), "the stranger is there still");
    give_back(&mut group, stranger);
    let next = take(&mut group);
    assert_eq!(next, 0, "the connection's next subflow finds a place");
    assert!(leave(&mut group, next), "and the entry goes with it");
}

#[test]
fn a_stranger_among_others_takes_nothing_away() {
    let mut group = Group::default();
    let (stranger, own) = (take(&mut group), take(&mut group));
    give_back(&mut group, stranger);
    assert_eq!(take(&mut group), stranger);
    assert!(!leave(&mut group, stranger) && leave(&mut group, own));
}
