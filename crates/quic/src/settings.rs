//! From a user's settings to a session.

use std::borrow::Cow;

use manypath_core::{Duration, SpecError};
use manypath_session::{Config, PeerLimits, Role, Session};

use crate::carrier::ACK_EVERY;
use crate::config::TransportConfig;
use crate::message::Hello;
use crate::proof;

/// Data acknowledgements are packets of their own. For every two records they took, with QUIC's, 5% of what arrived: all that a way back
/// of a twentieth of the rate carries. Later ones tell STMS-A too little (docs/decisions/quic-pacing.md).
const ACK_INTERVAL: Duration = Duration::from_millis(1);

/// Checks the names of algorithms before anything is connected.
pub(crate) fn check(transport: &TransportConfig) -> Result<(), SpecError> {
    manypath_cc::create(&transport.cc, 0)?;
    manypath_sched::create(&transport.sched)?;
    Ok(())
}

/// A server's settings with the algorithms that a client asks for, where they exist.
pub(crate) fn chosen<'a>(transport: &'a TransportConfig, hello: &Hello) -> Cow<'a, TransportConfig> {
    let mut chosen = Cow::Borrowed(transport);
    if let Some(cc) = hello.cc.parse().ok().filter(|cc| manypath_cc::create(cc, 0).is_ok()) {
        chosen.to_mut().cc = cc;
    }
    if let Some(sched) = hello.sched.parse().ok().filter(|sched| manypath_sched::create(sched).is_ok()) {
        chosen.to_mut().sched = sched;
    }
    chosen
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
        records_per_ack: ACK_EVERY,
        ack_interval: ACK_INTERVAL,
        ..Config::new(role)
    };
    let mut session = Session::new(config, cc, sched);
    if let Some(tracers) = &transport.tracers {
        session.set_tracer(tracers.tracer());
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen_names(cc: &str, sched: &str) -> (String, String) {
        let transport = TransportConfig::default();
        let (cc, sched) = (cc.to_owned(), sched.to_owned());
        let hello = Hello { version: 1, limits: limits(&transport), max_paths: 8, token: Vec::new(), cc, sched };
        let chosen = chosen(&transport, &hello);
        (chosen.cc.to_string(), chosen.sched.to_string())
    }

    #[test]
    fn a_client_chooses_among_what_exists() {
        assert_eq!(chosen_names("reno", "round-robin"), ("reno".into(), "round-robin".into()));
        assert_eq!(chosen_names("", ""), ("cubic".into(), "arrival-order:rescue=on".into()));
        assert_eq!(chosen_names("nothing", "minrtt:no=1"), ("cubic".into(), "arrival-order:rescue=on".into()));
        assert_eq!(chosen_names("\u{fffd}", "round-robin"), ("cubic".into(), "round-robin".into()));
    }
}
