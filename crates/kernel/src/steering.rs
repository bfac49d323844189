//! Steering connections towards a target rate at least cost (Uni-MPTCP s4.2): for each connection, its costly path's weight
//! is searched by [`manypath_cc::omega::OmegaSearch`] and written where `uni-mptcp` reads it.
//!
//! Sans-IO: what connections do comes in, weights go out. Whoever drives it reads the one and writes the other.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use manypath_cc::omega::{Config, OmegaSearch};
use manypath_core::{Bytes, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::layout::MAX_SUBFLOWS;
use crate::status::{ConnectionStatus, SubflowStatus};

/// Addresses, at either end, whose subflows are on the cheap or on the dear path.
pub type Addresses = Vec<IpAddr>;

/// What was found for a connection, to be held by whoever comes after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The connection.
    pub token: u32,
    /// The target, bits per second.
    pub target_bps: f64,
    /// The weight of its costly path.
    pub omega: f64,
}

/// Weights to write, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The connection.
    pub token: u32,
    /// By place.
    pub weights: Vec<f64>,
    /// The weight of the costly path.
    pub omega: f64,
    /// Whether it has been found, or is tried.
    pub found: bool,
    /// What the weight before gave, on the cheap and on the dear path; `None` for the first, and where paths have other places only.
    pub before: Option<[Rate; 2]>,
}

/// A subflow: its place, and both ends, since at a server all subflows have the listener's port.
type Identity = (usize, SocketAddr, SocketAddr);

/// A connection under search.
#[derive(Debug)]
struct Steered {
    search: OmegaSearch,
    /// The weight found last: whoever comes after holds it, though a search was under way.
    found: Option<f64>,
    /// Weight and progress when the weight was set.
    since: Option<(f64, Time, [Bytes; 2])>,
    /// The weights by place, as they were told last: a path that comes back may have another's place.
    told: Vec<f64>,
    /// Delivered on the cheap and on the dear path since the search began.
    delivered: [Bytes; 2],
    /// Packets that each subflow had delivered when last seen.
    seen: BTreeMap<Identity, u32>,
}

/// The searches of all connections that have both paths.
#[derive(Debug)]
pub struct Steering {
    config: Config,
    target: Rate,
    connections: BTreeMap<u32, Steered>,
    /// Found by somebody before; taken up when the connection is seen.
    found: BTreeMap<u32, Found>,
}

impl Steering {
    /// Begins with what somebody before has found; what was found for another target does not count.
    pub fn new(config: Config, target: Rate, found: impl IntoIterator<Item = Found>) -> Self {
        let found = found.into_iter().filter(|found| found.target_bps.total_cmp(&target.as_bps()).is_eq());
        Self { config, target, connections: BTreeMap::new(), found: found.map(|found| (found.token, found)).collect() }
    }

    /// Takes what connections have done, and returns the weights that change.
    pub fn step(
        &mut self,
        now: Time,
        connections: &[ConnectionStatus],
        cheap: &Addresses,
        dear: &Addresses,
    ) -> Vec<Change> {
        let is_there = |token: &u32| connections.iter().any(|connection| connection.token == *token);
        self.connections.retain(|token, _| is_there(token));
        self.found.retain(|token, _| is_there(token));
        let mut changes = Vec::new();
        for connection in connections {
            let sides = connection.subflows.iter().filter_map(|subflow| Some((side(subflow, cheap, dear)?, subflow)));
            let sides: Vec<(usize, &SubflowStatus)> = sides.collect();
            let has = |wanted: usize| sides.iter().any(|(side, _)| *side == wanted);
            if has(0) && has(1) {
                changes.extend(self.steer(now, connection.token, &sides));
            }
        }
        changes
    }

    fn steer(&mut self, now: Time, token: u32, sides: &[(usize, &SubflowStatus)]) -> Option<Change> {
        let steered = self.connections.entry(token).or_insert_with(|| {
            let search = match self.found.remove(&token) {
                Some(found) => OmegaSearch::found(now, self.config, self.target, found.omega),
                None => OmegaSearch::new(now, self.config, self.target),
            };
            let delivered = [Bytes::ZERO; 2];
            Steered { search, found: None, since: None, told: Vec::new(), delivered, seen: BTreeMap::new() }
        });
        steered.seen.retain(|held, _| sides.iter().any(|(_, subflow)| identity(subflow) == *held));
        for (side, subflow) in sides {
            let before = steered.seen.insert(identity(subflow), subflow.delivered);
            // Of a subflow seen for the first time, what it delivered before does not count.
            let packets = before.map_or(0, |before| progress(before, subflow.delivered));
            steered.delivered[*side] += Bytes::new(u64::from(packets) * u64::from(subflow.mss));
        }
        let weights = steered.search.poll(now, steered.delivered);
        let omega = steered.search.omega();
        if steered.search.is_holding() {
            steered.found = Some(omega);
        }
        let mut by_place = vec![1.0; MAX_SUBFLOWS];
        for (side, subflow) in sides {
            by_place[subflow.place] = weights[*side];
        }
        let moved = steered.told != by_place;
        steered.told.clone_from(&by_place);
        let is_same = steered.since.is_some_and(|(before, ..)| before.total_cmp(&omega).is_eq());
        if is_same && !moved {
            return None;
        }
        let mut before = None;
        if !is_same {
            before = steered.since.map(|(_, since, at)| {
                let span = now.since(since);
                [0, 1].map(|side| (steered.delivered[side] - at[side]) / span)
            });
            steered.since = Some((omega, now, steered.delivered));
        }
        Some(Change { token, weights: by_place, omega, found: steered.search.is_holding(), before })
    }

    /// What has been found for the connections that are there, by whoever: one that has lost a path may have it back.
    pub fn found(&self) -> Vec<Found> {
        let target_bps = self.target.as_bps();
        let found =
            |(token, steered): (&u32, &Steered)| Some(Found { token: *token, target_bps, omega: steered.found? });
        self.connections.iter().filter_map(found).chain(self.found.values().copied()).collect()
    }
}

/// What tells a subflow from the one that has its place next.
const fn identity(subflow: &SubflowStatus) -> Identity {
    (subflow.place, subflow.local, subflow.remote)
}

/// From one count of packets to a later one, which wraps; none if it went back: then they are not of one subflow.
fn progress(before: u32, after: u32) -> u32 {
    let packets = after.wrapping_sub(before);
    if packets > u32::MAX / 2 { 0 } else { packets }
}

/// 0 for a subflow on the cheap path, 1 for one on the dear path.
fn side(subflow: &SubflowStatus, cheap: &Addresses, dear: &Addresses) -> Option<usize> {
    let on =
        |addresses: &Addresses| addresses.contains(&subflow.local.ip()) || addresses.contains(&subflow.remote.ip());
    if on(cheap) { Some(0) } else { on(dear).then_some(1) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::layout::{Connection, Info};

    const CHEAP: [u8; 4] = [10, 1, 0, 1];
    const DEAR: [u8; 4] = [10, 2, 0, 1];

    /// A connection whose subflows, cheap and dear, have delivered so many packets of 1000 bytes.
    fn connection(token: u32, delivered: [u32; 2]) -> ConnectionStatus {
        let mut connection = Connection::default();
        // The dear path's subflow came first.
        for (place, (address, delivered)) in [(DEAR, delivered[1]), (CHEAP, delivered[0])].into_iter().enumerate() {
            let mut local = [0; 16];
            local[..4].copy_from_slice(&address);
            connection.info[place] = Info { family: 2, local, local_port: 9, delivered, mss: 1000, ..Info::default() };
        }
        ConnectionStatus::new(token, &connection)
    }

    fn addresses(address: [u8; 4]) -> Addresses {
        vec![IpAddr::from(address)]
    }

    fn steering(found: &[Found]) -> Steering {
        Steering::new(Config::default(), Rate::from_mbps(3.0), found.iter().copied())
    }

    /// Runs for so many seconds over paths whose rates, packets a second, depend on the weight.
    fn run(steering: &mut Steering, from: u64, seconds: u64, mut rates: impl FnMut(f64) -> [u32; 2]) -> Vec<Change> {
        let mut delivered = [0; 2];
        let (mut omega, mut changes) = (1.0, Vec::new());
        for second in from..from + seconds {
            let now = Time::from_millis(second * 1000);
            let made = steering.step(now, &[connection(7, delivered)], &addresses(CHEAP), &addresses(DEAR));
            if let Some(change) = made.first() {
                omega = change.omega;
            }
            changes.extend(made);
            for (path, rate) in rates(omega).into_iter().enumerate() {
                delivered[path] += rate;
            }
        }
        changes
    }

    /// 1 Mbit/s at 0.01, 5 from a half on.
    fn rates(omega: f64) -> [u32; 2] {
        if omega < 0.5 { [125, 0] } else { [62, 562] }
    }

    #[test]
    fn a_search_ends_with_a_weight_and_says_what_each_gave() {
        let mut steering = steering(&[]);
        let changes = run(&mut steering, 0, 90, rates);
        let tried: Vec<(f64, bool)> = changes.iter().map(|change| (change.omega, change.found)).collect();
        assert_eq!(tried[..3], [(0.01, false), (100.0, false), (1.0, false)]);
        assert_eq!(changes.len(), 4);
        assert!(tried[3].1 && tried[3].0 < 1.0 && tried[3].0 > 0.01);
        // 125 packets of 1000 bytes a second.
        assert_eq!(changes[1].before, Some([Rate::from_mbps(1.0), Rate::from_mbps(0.0)]));
        // By place: the dear subflow has the first. 100 stands for 0.01 and 1.
        assert_eq!(changes[0].weights[..3], [0.01, 1.0, 1.0]);
        assert_eq!(changes[1].weights[..3], [1.0, 0.01, 1.0]);
        assert_eq!(steering.found()[0].omega.total_cmp(&tried[3].0), std::cmp::Ordering::Equal);
    }

    #[test]
    fn whoever_comes_after_holds_what_was_found() {
        let found = Found { token: 7, target_bps: 3e6, omega: 0.2 };
        let mut after = steering(&[found]);
        let changes = run(&mut after, 0, 30, |_| [125, 125]);
        assert_eq!(changes.len(), 1);
        assert!(changes[0].found && (changes[0].omega - 0.2).abs() < 1e-12);
        assert_eq!(after.found(), [found]);
        // For another target it is searched.
        let mut other = steering(&[Found { target_bps: 4e6, ..found }]);
        assert!(!run(&mut other, 0, 1, |_| [125, 125])[0].found);
    }

    #[test]
    fn what_was_found_stays_found_while_it_is_searched_again() {
        let mut steering = steering(&[]);
        // Both paths become slower after 90 s; a search takes 60 s.
        let mut second = 0;
        let changes = run(&mut steering, 0, 150, |omega| {
            second += 1;
            if second > 90 { [31, 31] } else { rates(omega) }
        });
        assert!(changes[3].found && !changes.last().unwrap().found);
        assert!((steering.found()[0].omega - changes[3].omega).abs() < 1e-12);
    }

    #[test]
    fn connections_without_both_paths_are_left_alone_and_those_that_end_forgotten() {
        let mut steering = steering(&[]);
        let mut one = connection(7, [0, 0]);
        one.subflows.remove(0);
        let step = |steering: &mut Steering, connections: &[ConnectionStatus]| {
            steering.step(Time::ZERO, connections, &addresses(CHEAP), &addresses(DEAR))
        };
        assert_eq!(step(&mut steering, &[one]), []);
        assert_eq!(step(&mut steering, &[connection(7, [0, 0])]).len(), 1);
        assert_eq!(step(&mut steering, &[]), []);
        assert!(steering.connections.is_empty());
    }

    #[test]
    fn weights_follow_their_paths_to_other_places() {
        let mut steering = steering(&[Found { token: 7, target_bps: 3e6, omega: 0.2 }]);
        let mut step = |second: u64, connection: &ConnectionStatus| {
            let now = Time::from_millis(second * 1000);
            steering.step(now, std::slice::from_ref(connection), &addresses(CHEAP), &addresses(DEAR))
        };
        let mut connection = connection(7, [0, 0]);
        assert_eq!(step(0, &connection)[0].weights[..3], [0.2, 1.0, 1.0]);
        assert_eq!(step(1, &connection), []);
        // Both paths come back, each at the other's place.
        for subflow in &mut connection.subflows {
            subflow.place = 1 - subflow.place;
        }
        let moved = step(2, &connection);
        assert_eq!(moved[0].weights[..3], [1.0, 0.2, 1.0]);
        assert!(moved[0].found && (moved[0].omega - 0.2).abs() < 1e-12);
        assert_eq!(step(3, &connection), []);
        // A second one on the dear path.
        let mut second = connection.subflows[0].clone();
        (second.place, second.local) = (2, SocketAddr::from((DEAR, 10)));
        connection.subflows.push(second);
        assert_eq!(step(4, &connection)[0].weights[..3], [1.0, 0.2, 0.2]);
    }

    #[test]
    fn a_subflow_that_takes_anothers_place_has_delivered_nothing_yet() {
        let mut steering = steering(&[]);
        // A server's: all subflows have its port.
        let mut connection = connection(7, [0, 20_000]);
        for subflow in &mut connection.subflows {
            (subflow.local, subflow.remote) = (SocketAddr::from(([10, 9, 9, 9], 443)), subflow.local);
        }
        let mut step = |second: u64, port: u16, delivered: u32| {
            connection.subflows[0].remote.set_port(port);
            connection.subflows[0].delivered = delivered;
            let now = Time::from_millis(second * 1000);
            steering.step(now, std::slice::from_ref(&connection), &addresses(CHEAP), &addresses(DEAR));
            let held = &steering.connections[&7];
            (held.delivered[1].get(), held.seen.len())
        };
        assert_eq!(step(0, 40_000, 20_000), (0, 2));
        assert_eq!(step(1, 40_000, 20_010), (10_000, 2));
        assert_eq!(step(2, 40_001, 3), (10_000, 2));
        assert_eq!(step(3, 40_001, 5), (12_000, 2));
        // The port again: its count began anew.
        assert_eq!(step(4, 40_001, 1), (12_000, 2));
        assert_eq!([progress(u32::MAX, 1), progress(20_000, 3)], [2, 0]);
    }

    #[test]
    fn what_was_found_for_a_connection_outlives_the_loss_of_a_path() {
        let [one, other] = [7, 8].map(|token| Found { token, target_bps: 3e6, omega: 0.2 });
        let mut steering = steering(&[one, other, Found { token: 9, ..one }]);
        // Of 8 the dear path is down, 9 is gone.
        let mut lame = connection(8, [0, 0]);
        lame.subflows.remove(0);
        let changes = steering.step(Time::ZERO, &[connection(7, [0, 0]), lame], &addresses(CHEAP), &addresses(DEAR));
        assert_eq!(changes.len(), 1);
        assert_eq!(steering.found(), [one, other]);
    }

    #[test]
    fn a_subflow_between_the_cheap_and_the_dear_path_is_cheap() {
        let mut between = connection(7, [0, 0]).subflows.remove(0);
        (between.local, between.remote) = (SocketAddr::from((DEAR, 1)), SocketAddr::from((CHEAP, 2)));
        assert_eq!(side(&between, &addresses(CHEAP), &addresses(DEAR)), Some(0));
        assert_eq!(side(&between, &vec![], &addresses(DEAR)), Some(1));
        assert_eq!(side(&between, &vec![], &vec![]), None);
    }

    #[test]
    fn paths_are_known_at_either_end() {
        let mut connection = connection(7, [0, 0]);
        for subflow in &mut connection.subflows {
            subflow.remote = std::mem::replace(&mut subflow.local, SocketAddr::from(([10, 9, 9, 9], 1)));
        }
        let changes = steering(&[]).step(Time::ZERO, &[connection], &addresses(CHEAP), &addresses(DEAR));
        assert_eq!(changes.len(), 1);
    }
}
