//! Manypath: the sans-IO connection state machine.
