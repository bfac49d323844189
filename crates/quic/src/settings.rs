//! From a user's settings to a session.

use manypath_core::{AlgorithmSpec, SpecError};
use manypath_session::{Config, PeerLimits, Role, Session};

use crate::config::TransportConfig;
use crate::proof;

/// Checks the names of algorithms before anything is connected.
pub(crate) fn check(transport: &TransportConfig) -> Result<(), SpecError> {
    let named = |spec: &AlgorithmSpec| spec.clone();
    manypath_cc::create(&named(&transport.cc), 0)?;
    manypath_sched::create(&named(&transport.sched))?;
    Ok(())
}

/// What this end tells the other.
pub(crate) fn limits(transport: &TransportConfig) -> PeerLimits {
    PeerLimits {
        receive_window: transport.receive_window,
        flow_window: transport.flow_window,
        max_flows: transport.max_flows,
    }
}

/// A session with these settings, against a peer with those limits.
pub(crate) fn session(
    transport: &TransportConfig,
    role: Role,
    peer: PeerLimits,
    max_paths: u32,
) -> Result<Session, SpecError> {
    // Without entropy the controller is merely predictable.
    let seed = transport.seed.unwrap_or_else(|| proof::random().map_or(0, u64::from_le_bytes));
    let cc = manypath_cc::create(&transport.cc, seed)?;
    let sched = manypath_sched::create(&transport.sched)?;
    let config = Config {
        send_buffer: transport.send_buffer,
        receive_window: transport.receive_window,
        flow_window: transport.flow_window,
        max_flows: transport.max_flows,
        max_paths,
        peer,
        ..Config::new(role)
    };
    Ok(Session::new(config, cc, sched))
}
