//! The connection: what has arrived, what is missing, how much may be in flight end to end?
//!
//! [`Session`] is a sans-IO state machine. It works on ranges of sequence numbers and never sees payload: the engine keeps
//! the bytes. An engine drives it with
//!
//! * what the application does: [`Session::open_flow`], [`write`](Session::write), [`finish`](Session::finish),
//!   [`consume`](Session::consume), ... and [`poll_event`](Session::poll_event) for what it should hear;
//! * what the carriers bring: [`on_record`](Session::on_record) for what the peer sent, [`on_acked`](Session::on_acked) and
//!   [`on_lost`](Session::on_lost) for what became of our packets;
//! * time: [`on_timeout`](Session::on_timeout) when [`next_timeout`](Session::next_timeout) has come;
//!
//! and after any of these calls [`poll_transmit`](Session::poll_transmit) until it returns `None`.
//!
//! Dependencies: `thiserror` for error types.

mod acks;
#[cfg(test)]
mod adversary;
mod application;
mod config;
mod delay;
mod error;
mod flow;
mod idle;
mod incoming;
#[cfg(test)]
mod mutation;
mod outcomes;
mod outgoing;
mod pacer;
mod path;
pub mod record;
mod session;
mod streams;
mod timers;
mod trace;
mod way_back;

pub use config::{Carriage, Config, MAX_PATHS, PathInit, PeerLimits, Role};
pub use error::{FlowError, MIN_DATAGRAM, PathError, ProtocolError};
pub use incoming::Received;
pub use outgoing::Transmit;
pub use record::Record;
pub use session::{Session, SessionEvent, Totals};
pub use trace::{Action, Traced, Tracer, TracerSource};
