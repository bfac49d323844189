//! Manypath: the sans-IO link model.
