//! Controllers one by one: driven from Python, and written in Python.

pub(crate) mod controller;
pub(crate) mod event;
pub(crate) mod view;
pub(crate) mod written;
