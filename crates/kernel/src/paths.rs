//! One subflow a path: what the path manager must be told, and what stands in the way.
//!
//! A client gets exactly one subflow a path with one `subflow` endpoint for every path, the first included: the kernel
//! accounts the endpoint whose address the first subflow leaves from as used, whichever that is (Linux 6.0, "mptcp: fix
//! local endpoint accounting"). A server that announces addresses would make it more, so none are accepted.

use std::io;
use std::net::IpAddr;

use serde::Serialize;

use crate::interfaces::{self, Path};
use crate::path_manager::{Endpoint, Flags, Limits, MAX_ENDPOINTS, PathManager};
use crate::sysctl;

/// What decides which subflows a connection gets, in this network namespace.
#[derive(Clone, Debug, Serialize)]
pub struct Paths {
    /// Addresses that connections can leave from.
    pub paths: Vec<Path>,
    /// Endpoints of the path manager.
    pub endpoints: Vec<Endpoint>,
    /// Limits of the path manager.
    pub limits: Limits,
    /// `net.mptcp.enabled`.
    pub enabled: bool,
    /// Whether the kernel manages paths, not a program.
    pub kernel_manages: bool,
}

/// Something that keeps connections from having one subflow a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is so.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl Finding {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// Changes that make it one subflow a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Endpoints to delete.
    pub delete: Vec<Endpoint>,
    /// Endpoints to add.
    pub add: Vec<Endpoint>,
    /// New limits, if others than now.
    pub limits: Option<Limits>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A name is neither an interface nor an address of one.
    #[error("no interface that is up is called '{0}' or has that address; there are: {1}")]
    Unknown(String, String),
    /// The kernel takes at most eight endpoints.
    #[error(
        "{0} addresses are more than the {MAX_ENDPOINTS} endpoints that the kernel takes: name the interfaces to use"
    )]
    TooMany(usize),
    /// Nothing leads out.
    #[error("no interface has a default route: name the interfaces to use")]
    None,
}

impl Paths {
    /// Reads the state of this network namespace.
    ///
    /// # Errors
    /// `NotFound` if the kernel has no Multipath TCP.
    pub fn read() -> io::Result<Self> {
        let mut manager = PathManager::open()?;
        Ok(Self {
            paths: interfaces::paths()?,
            endpoints: manager.endpoints()?,
            limits: manager.limits()?,
            enabled: sysctl::number(&["net", "mptcp", "enabled"]) == Some(1),
            // The name replaced the number in Linux 6.15; before 5.19 there was no other manager.
            kernel_manages: match sysctl::read(&["net", "mptcp", "path_manager"]) {
                Some(name) => name == "kernel",
                None => sysctl::number(&["net", "mptcp", "pm_type"]).unwrap_or(0) == 0,
            },
        })
    }

    /// The endpoint of an address.
    pub fn endpoint_of(&self, address: IpAddr) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.address == address)
    }

    /// The paths that `names`, of interfaces or addresses, select; without names those with a default route.
    ///
    /// # Errors
    /// If a name selects nothing, or there are too many addresses.
    pub fn select(&self, names: &[String]) -> Result<Vec<Path>, PlanError> {
        // An address may be written in more than one way.
        let has = |path: &Path, name: &str| name.parse().is_ok_and(|ip: IpAddr| ip.to_canonical() == path.address);
        let is_called = |path: &Path, name: &str| path.interface == name || has(path, name);
        if let Some(name) = names.iter().find(|name| !self.paths.iter().any(|path| is_called(path, name))) {
            return Err(PlanError::Unknown(name.clone(), self.listing()));
        }
        // A second address of the same family on an interface is the same path. The endpoint must have the one that connections leave
        // from, which is the first subflow's: with another, that path would have two.
        let wanted = |path: &&Path| match names {
            [] => path.default_route && path.preferred,
            names => names.iter().any(|name| has(path, name)) || (path.preferred && names.contains(&path.interface)),
        };
        let selected: Vec<Path> = self.paths.iter().filter(wanted).cloned().collect();
        match selected.len() {
            0 => Err(PlanError::None),
            count if count > MAX_ENDPOINTS => Err(PlanError::TooMany(count)),
            _ => Ok(selected),
        }
    }

    fn listing(&self) -> String {
        let names = self.paths.iter().map(|path| format!("{} ({})", path.interface, path.address));
        let names = names.collect::<Vec<_>>().join(", ");
        if names.is_empty() { "none".to_owned() } else { names }
    }

    /// What to change so that connections have one subflow on each of `paths`.
    pub fn plan(&self, paths: &[Path]) -> Plan {
        let wanted: Vec<Endpoint> = paths.iter().map(|path| Endpoint::subflow(path.address, path.index)).collect();
        let is_there = |endpoint: &Endpoint| self.endpoints.iter().any(|held| same_use(held, endpoint));
        let limits = Limits {
            subflows: self.limits.subflows.max(extra_subflows(paths)),
            // Addresses that the peer announces would get subflows besides.
            accepted_addresses: 0,
        };
        Plan {
            delete: self.endpoints.iter().filter(|held| !wanted.iter().any(|e| same_use(held, e))).cloned().collect(),
            add: wanted.iter().filter(|endpoint| !is_there(endpoint)).cloned().collect(),
            limits: (limits != self.limits).then_some(limits),
        }
    }

    /// What keeps connections from having one subflow a path.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if !self.enabled {
            found.push(Finding::new("Multipath TCP is switched off", "sysctl -w net.mptcp.enabled=1"));
        }
        if !self.kernel_manages {
            found.push(Finding::new(
                "a program manages paths, not the kernel: endpoints do nothing",
                "stop mptcpd and sysctl -w net.mptcp.pm_type=0, or give it the addresses",
            ));
        }
        let out: Vec<&Path> = self.paths.iter().filter(|path| path.default_route).collect();
        if out.iter().all(|path| path.interface == out[0].interface) {
            found.push(Finding::new(
                format!("{} has a default route: connections have one path", names(&out)),
                "bring up a second uplink with a default route, of a higher metric than the first's",
            ));
        }
        self.endpoint_findings(&mut found);
        self.filter_findings(&mut found);
        found
    }

    fn endpoint_findings(&self, found: &mut Vec<Finding>) {
        let subflows: Vec<&Endpoint> = self.endpoints.iter().filter(|e| e.flags.contains(Flags::SUBFLOW)).collect();
        let set = "manypath kernel paths set";
        if subflows.is_empty() {
            let what =
                "no endpoint has the flag subflow: this host opens no second subflow (one that only serves needs none)";
            return found.push(Finding::new(what, set));
        }
        let with = |flag| self.endpoints.iter().find(|endpoint| endpoint.flags.contains(flag));
        if let Some(endpoint) = with(Flags::SIGNAL).or_else(|| with(Flags::FULLMESH)) {
            let what =
                format!("endpoint {} is {}: there may be more subflows than paths", endpoint.address, endpoint.flags);
            found.push(Finding::new(what, set));
        }
        if self.limits.accepted_addresses > 0 {
            let what = "addresses announced by servers get subflows besides: there may be more subflows than paths";
            found.push(Finding::new(what, set));
        }
        let used: Vec<Path> =
            self.paths.iter().filter(|path| subflows.iter().any(|e| e.address == path.address)).cloned().collect();
        let needed = extra_subflows(&used);
        if self.limits.subflows < needed {
            let what =
                format!("the limit of {} extra subflows leaves out paths: {needed} are needed", self.limits.subflows);
            found.push(Finding::new(what, set));
        }
        for endpoint in subflows {
            match (endpoint.interface, self.paths.iter().find(|path| path.address == endpoint.address)) {
                (_, None) => {
                    found.push(Finding::new(format!("no interface has the address {}", endpoint.address), set))
                }
                (None, Some(_)) => found.push(Finding::new(
                    format!("endpoint {} is bound to no interface: its packets may leave by another", endpoint.address),
                    set,
                )),
                (Some(_), Some(path)) if !path.default_route => found.push(Finding::new(
                    format!("{} has no default route: only its own network can be reached by it", path.interface),
                    format!("ip route add default via GATEWAY dev {} metric 1000", path.interface),
                )),
                (Some(_), Some(path)) if !path.preferred => found.push(Finding::new(
                    format!(
                        "connections leave {} from another address than endpoint {}: there may be two subflows on it",
                        path.interface, endpoint.address
                    ),
                    set,
                )),
                _ => {}
            }
        }
    }

    fn filter_findings(&self, found: &mut Vec<Finding>) {
        for path in self.paths.iter().filter(|path| path.strict_filter && self.endpoint_of(path.address).is_some()) {
            let interface = &path.interface;
            found.push(Finding::new(
                format!("{interface} drops packets whose way back is another interface (rp_filter is strict)"),
                format!("sysctl -w net.ipv4.conf.{interface}.rp_filter=2"),
            ));
        }
    }
}

/// Subflows beyond the first: one a further interface, for a connection of one address family.
fn extra_subflows(paths: &[Path]) -> u32 {
    let count = |ipv4: bool| paths.iter().filter(|path| path.address.is_ipv4() == ipv4).count();
    u32::try_from(count(true).max(count(false)).saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Whether two endpoints differ in their ids only.
fn same_use(a: &Endpoint, b: &Endpoint) -> bool {
    (a.address, a.port, a.interface, a.flags) == (b.address, b.port, b.interface, b.flags)
}

fn names(paths: &[&Path]) -> String {
    match paths {
        [] => "no interface".to_owned(),
        [first, ..] => format!("only {}", first.interface),
    }
}

impl Plan {
    /// Whether there is nothing to change.
    pub const fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.add.is_empty() && self.limits.is_none()
    }

    /// Makes the changes. What is deleted goes first: the kernel takes an address once.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_ADMIN`: then nothing was changed.
    pub fn apply(&self) -> io::Result<()> {
        let mut manager = PathManager::open()?;
        if let Some(limits) = self.limits {
            manager.set_limits(limits)?;
        }
        for endpoint in &self.delete {
            manager.delete(endpoint)?;
        }
        for endpoint in &self.add {
            manager.add(endpoint)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(interface: &str, index: u32, address: &str) -> Path {
        let address = address.parse().unwrap();
        let interface = interface.to_owned();
        Path { interface, index, address, default_route: true, preferred: true, strict_filter: false }
    }

    fn state(paths: Vec<Path>) -> Paths {
        Paths {
            paths,
            endpoints: Vec::new(),
            limits: Limits { subflows: 2, accepted_addresses: 0 },
            enabled: true,
            kernel_manages: true,
        }
    }

    fn two() -> Paths {
        state(vec![path("wlan0", 2, "10.0.1.2"), path("wwan0", 3, "10.0.2.2")])
    }

    /// The state after a plan.
    fn after(mut state: Paths, plan: &Plan) -> Paths {
        state.endpoints.retain(|endpoint| !plan.delete.contains(endpoint));
        state.endpoints.extend(plan.add.iter().cloned());
        state.limits = plan.limits.unwrap_or(state.limits);
        state
    }

    #[test]
    fn a_plan_gives_every_path_its_endpoint_and_leaves_nothing_to_find() {
        let mut state = two();
        // Left by someone else: an announced address, addresses accepted, no subflow allowed.
        let flags = Flags::SIGNAL;
        state.endpoints = vec![Endpoint { flags, id: 1, ..Endpoint::subflow("10.0.1.2".parse().unwrap(), 2) }];
        state.limits = Limits { subflows: 0, accepted_addresses: 4 };
        assert!(!state.findings().is_empty());
        let plan = state.plan(&state.select(&[]).unwrap());
        assert_eq!((plan.delete.len(), plan.add.len()), (1, 2));
        assert_eq!(plan.limits, Some(Limits { subflows: 1, accepted_addresses: 0 }));
        let state = after(state, &plan);
        assert_eq!(state.findings(), []);
        assert!(state.plan(&state.select(&[]).unwrap()).is_empty());
    }

    #[test]
    fn paths_are_selected_by_interface_or_address() {
        let mut state = two();
        state.paths.push(Path { default_route: false, ..path("eth0", 4, "10.0.3.2") });
        state.paths.push(Path { preferred: false, ..path("wlan0", 2, "2001:db8::2") });
        state.paths.push(path("wlan0", 2, "2001:db8::3"));
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            state.select(&names).map(|paths| paths.iter().map(|path| path.address.to_string()).collect::<Vec<_>>())
        };
        // One address a family and interface, that which connections leave from, of interfaces that lead out.
        assert_eq!(chosen(&[]).unwrap(), ["10.0.1.2", "10.0.2.2", "2001:db8::3"]);
        assert_eq!(chosen(&["eth0", "wlan0"]).unwrap(), ["10.0.1.2", "10.0.3.2", "2001:db8::3"]);
        assert_eq!(chosen(&["2001:db8::2"]).unwrap(), ["2001:db8::2"]);
        assert_eq!(chosen(&["2001:DB8:0::2", "::ffff:10.0.1.2", "10.0.1.2"]).unwrap(), ["10.0.1.2", "2001:db8::2"]);
        assert!(matches!(chosen(&["wlan1"]), Err(PlanError::Unknown(name, _)) if name == "wlan1"));
    }

    #[test]
    fn a_plan_leaves_what_does_no_harm_and_counts_the_subflows_of_either_family() {
        // A limit that is higher already.
        let mut state = two();
        assert_eq!(state.plan(&state.paths).limits, None);
        // Three interfaces have IPv6 addresses, two IPv4 ones.
        for (index, interface) in ["wlan0", "wwan0", "eth0", "eth1"].into_iter().enumerate() {
            state.paths.push(path(interface, 2 + u32::try_from(index).unwrap(), &format!("2001:db8::{index}")));
        }
        let plan = state.plan(&state.paths);
        assert_eq!(plan.limits.map(|limits| limits.subflows), Some(3));
        // An endpoint with a port is another than one without.
        let mut state = after(two(), &two().plan(&two().paths));
        state.endpoints[0].port = Some(443);
        let plan = state.plan(&state.paths);
        assert_eq!((plan.delete.len(), plan.add.len()), (1, 1));
    }

    #[test]
    fn too_many_or_no_paths_are_errors() {
        let so_many =
            |count: u8| state((0..count).map(|n| path(&format!("e{n}"), n.into(), &format!("10.0.{n}.2"))).collect());
        assert_eq!(so_many(8).select(&[]).unwrap().len(), 8);
        assert!(matches!(so_many(9).select(&[]), Err(PlanError::TooMany(9))));
        assert!(matches!(state(Vec::new()).select(&[]), Err(PlanError::None)));
    }

    #[test]
    fn each_obstacle_is_found() {
        let good = {
            let state = two();
            let plan = state.plan(&state.paths);
            after(state, &plan)
        };
        assert_eq!(good.findings(), []);
        let found = |change: &dyn Fn(&mut Paths)| {
            let mut state = good.clone();
            change(&mut state);
            let found = state.findings();
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].what.clone()
        };
        assert!(found(&|s| s.enabled = false).contains("switched off"));
        assert!(found(&|s| s.kernel_manages = false).contains("a program manages"));
        assert!(found(&|s| s.limits.subflows = 0).contains("1 are needed"));
        assert!(found(&|s| s.limits.accepted_addresses = 1).contains("announced by servers"));
        assert!(found(&|s| s.endpoints[0].flags = Flags::FULLMESH).contains("fullmesh"));
        assert!(found(&|s| s.endpoints.clear()).contains("no endpoint has the flag subflow"));
        assert!(found(&|s| s.endpoints[1].interface = None).contains("bound to no interface"));
        assert!(found(&|s| s.endpoints[1].address = "10.9.9.9".parse().unwrap()).contains("no interface has"));
        assert!(found(&|s| s.paths[1].preferred = false).contains("leave wwan0 from another address"));
        assert!(found(&|s| s.paths[1].strict_filter = true).contains("wwan0 drops"));
        // One that no connection uses may filter.
        let mut idle = good.clone();
        idle.paths.push(Path { strict_filter: true, ..path("eth0", 4, "10.0.3.2") });
        assert_eq!(idle.findings(), []);
        // Of three, so that two lead out nevertheless.
        let mut three = state([&two().paths[..], &[path("eth0", 4, "10.0.3.2")]].concat());
        three = after(three.clone(), &three.plan(&three.paths));
        three.paths[2].default_route = false;
        let findings = three.findings();
        assert!(findings.len() == 1 && findings[0].what.contains("eth0 has no default route"), "{findings:?}");
        assert!(found(&|s| s.paths[1].interface = "wlan0".to_owned()).contains("only wlan0"));
    }
}
