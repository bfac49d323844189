//! The native module of the Python package `manypath`, which is in `../package`: the simulator, theory, the lab and single
//! controllers, as Python objects. It is thin: what it does is to translate.
//!
//! * The interpreter lock is released while something runs. A controller written in Python takes it for each call.
//! * Columns of numbers are not copied: NumPy arrays and Arrow arrays look at the memory that the simulator filled
//!   (`table.rs`). Texts and flags are made anew, for Arrow stores them in another way.
//! * Errors are those of the crates, word for word, in exceptions of their own (`error.rs`).
//! * Units are seconds, bytes and bits per second, and names end with them.
//!
//! # Why it is a member of the workspace, and not a default one
//!
//! As a member it has the workspace's lock file, lints and documentation. A module for an interpreter is linked without
//! libpython (`.cargo/config.toml` says so to PyO3), so no test program can be made of it: `test = false` leaves it out of
//! `cargo test --workspace`, and `python/tests`, which load the module as a user does, are its tests. `cargo build` alone
//! builds what needs no Python.
//!
//! # Dependencies
//!
//! * `pyo3` 0.30 (MIT or Apache-2.0; since 2017, several releases a year): the bindings. Its feature `abi3-py39` makes one
//!   module that every CPython from 3.9 on loads.
//! * `arrow-array`, `arrow-buffer` and `arrow-schema` 60 (Apache-2.0; Apache Arrow's own): columns, and Arrow's C interface,
//!   by which pandas, polars and others take them over as they are. `parquet`, of the same release, brings most of their
//!   dependencies along already. NumPy needs no crate: its array interface is a dictionary with an address.
//! * `toml` writes descriptions given as dictionaries as the text that the one parser of scenarios reads; `sha2` makes the
//!   keys of runs in sweeps.

mod algorithms;
mod cc;
mod error;
mod lab;
mod quantity;
mod result;
mod scenario;
mod simulate;
mod table;
mod theory;
mod written;

use pyo3::prelude::*;

/// The native part of the package `manypath`, which is what to import.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::algorithms::{Algorithm, Parameter, algorithms, topologies};
    #[pymodule_export]
    use crate::cc::controller::{Controller, create};
    #[pymodule_export]
    use crate::cc::event::Event;
    #[pymodule_export]
    use crate::cc::view::{Limits, SubflowInit, SubflowView};
    #[pymodule_export]
    use crate::error::{
        AlgorithmError, InternalError, LabError, ManypathError, RunError, ScenarioError, TheoryError, UnitError,
    };
    #[pymodule_export]
    use crate::lab::{Outcome, lab_check, lab_list, lab_metrics, lab_run};
    #[pymodule_export]
    use crate::result::{RunResult, restore_result};
    #[pymodule_export]
    use crate::scenario::{Scenario, restore_scenario, template};
    #[pymodule_export]
    use crate::simulate::{code, simulate};
    #[pymodule_export]
    use crate::table::{Column, Table, concat, restore_table};
    #[pymodule_export]
    use crate::theory::{Allocation, Network, lmmf, num};
    #[pymodule_export]
    use pyo3::panic::PanicException;
}
