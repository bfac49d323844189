//! Manypath: the QUIC transport.
