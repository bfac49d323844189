//! One end's half of a subflow: loss detection and acknowledgements, as QUIC has them or as TCP has them.

use manypath_core::{Duration, PacketNumber, SubflowId, Time};
use manypath_session::Session;

use crate::ack::CarrierAck;
use crate::packet::{DataPacket, Number};
use crate::{quic, tcp};

/// What became of a packet, and of the carrier's recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Acked,
    Lost,
    /// New congestion marks are charged to it; its acknowledgement follows.
    Marked,
    /// TCP: the packet is lost, as is reported next, and with it fast recovery begins.
    BeginsRecovery,
    /// TCP: fast recovery is over.
    Recovered,
    /// TCP: the retransmission timer ran out, and with it everything in flight is lost.
    TimedOut {
        /// Not the first time since an acknowledgement advanced.
        repeated: bool,
        /// How many packets were in flight.
        lost: u32,
        /// Whether its data is offered to other subflows.
        reinject: bool,
    },
    /// TCP: a round trip that took this long, measured by a time stamp where no packet measures it.
    Measured(Duration),
    /// TCP: what first left in this packet and was reported lost has arrived before it left again.
    ArrivedAfterAll,
}

impl Fate {
    /// How many packets this declares lost.
    pub(crate) fn lost(self) -> u64 {
        match self {
            Self::Lost => 1,
            Self::TimedOut { lost, .. } => lost.into(),
            _ => 0,
        }
    }

    /// Tells the session what became of a packet.
    pub(crate) fn report(self, session: &mut Session, now: Time, id: SubflowId, packet: PacketNumber) {
        match self {
            Self::Acked => session.on_acked(now, id, packet),
            Self::Lost => session.on_lost(now, id, packet),
            Self::Marked => session.on_ecn(now, id, packet),
            Self::BeginsRecovery => session.on_recovery(now, id, packet),
            Self::Recovered => session.on_recovered(id),
            Self::TimedOut { repeated, reinject, .. } => session.on_retransmission_timeout(now, id, repeated, reinject),
            Self::Measured(rtt) => session.on_round_trip(now, id, rtt),
            Self::ArrivedAfterAll => session.on_acked_late(now, id, packet),
        }
    }
}

/// A packet that leaves to be acknowledged, and its number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe {
    /// QUIC: one without data.
    Empty(Number),
    /// TCP: the data of this packet once more.
    Repeats(PacketNumber, Number),
}

/// The half that sends.
#[derive(Debug)]
pub(crate) enum Sender {
    Quic(quic::Sender),
    Tcp(tcp::Sender),
}

impl Sender {
    /// Takes the round trip of the handshake.
    pub(crate) fn on_handshake(&mut self, rtt: Duration) {
        match self {
            Self::Quic(sender) => sender.on_handshake(rtt),
            Self::Tcp(sender) => sender.on_handshake(rtt),
        }
    }

    /// Notes a packet that leaves; returns its number. `repeats`: the packet whose data it sends again on this subflow.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, packet: PacketNumber, repeats: Option<PacketNumber>) -> Number {
        match self {
            Self::Quic(sender) => sender.on_sent(now, Some(packet)),
            Self::Tcp(sender) => sender.on_sent(now, packet, repeats),
        }
    }

    /// Takes an acknowledgement; tells `fate` of every packet that it decides.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: &CarrierAck, fate: impl FnMut(PacketNumber, Fate)) {
        match self {
            Self::Quic(sender) => sender.on_ack(now, ack, fate),
            Self::Tcp(sender) => sender.on_ack(now, ack, fate),
        }
    }

    /// When [`on_timeout`](Self::on_timeout) must be called; [`Time::MAX`]: never.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        match self {
            Self::Quic(sender) => sender.deadline(),
            Self::Tcp(sender) => sender.deadline(),
        }
    }

    /// Has fetched what is acknowledged next and where the next packet is noted.
    pub(crate) fn prefetch(&self) {
        match self {
            Self::Quic(sender) => sender.prefetch(),
            // Not measured.
            Self::Tcp(_) => {}
        }
    }

    /// Time has passed; returns a probe that must leave.
    pub(crate) fn on_timeout(&mut self, now: Time, fate: impl FnMut(PacketNumber, Fate)) -> Option<Probe> {
        match self {
            Self::Quic(sender) => sender.on_timeout(now, fate).then(|| Probe::Empty(sender.on_sent(now, None))),
            Self::Tcp(sender) => {
                let (repeats, number) = sender.on_timeout(now, fate)?;
                Some(Probe::Repeats(repeats, number))
            }
        }
    }
}

/// The half that receives.
#[derive(Debug)]
pub(crate) enum Receiver {
    Quic(quic::Receiver),
    Tcp(tcp::Receiver),
}

impl Receiver {
    /// The next segment that is in order, of those that the carrier held back.
    pub(crate) fn take(&mut self) -> Option<DataPacket> {
        match self {
            Self::Quic(_) => None,
            Self::Tcp(receiver) => receiver.take(),
        }
    }

    /// Payload that the carrier holds back.
    pub(crate) fn held_bytes(&self) -> u64 {
        match self {
            Self::Quic(_) => 0,
            Self::Tcp(receiver) => receiver.held_bytes(),
        }
    }

    /// Payload that arrived again and that the session has not seen.
    pub(crate) fn received_again(&self) -> u64 {
        match self {
            Self::Quic(_) => 0,
            Self::Tcp(receiver) => receiver.received_again(),
        }
    }

    /// Writes an acknowledgement, which leaves now.
    #[inline]
    pub(crate) fn write_ack(&mut self, now: Time, ack: &mut CarrierAck) {
        match self {
            Self::Quic(receiver) => receiver.write_ack(now, ack),
            Self::Tcp(receiver) => receiver.write_ack(ack),
        }
    }

    /// When an acknowledgement must leave; [`Time::MAX`]: never.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        match self {
            Self::Quic(receiver) => receiver.due(),
            Self::Tcp(receiver) => receiver.due(),
        }
    }
}

/// One end's half of a subflow. The route stands between the halves: both need it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Carrier {
    pub(crate) receiver: Receiver,
    /// Where its route to the other end begins in the network's table.
    pub(crate) route: u32,
    pub(crate) sender: Sender,
    /// Data packets sent and their bytes on the wire.
    pub(crate) sent: Sent,
    /// Data packets that the carrier declared lost.
    pub(crate) lost: u64,
}

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Those of the packets whose data had been sent before.
    pub(crate) repeated: u64,
}
