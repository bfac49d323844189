//! The lab: experiments, their runs, the papers' claims about them, and reports.
//!
//! An experiment is a TOML file (`docs/experiments.md`): a scenario with placeholders, axes whose values fill them, metrics of
//! each run, and a paper's claims about the metrics as data. [`load`] reads a folder of them, [`Plan`] makes the runs that
//! are missing, [`Results`] reads runs from the [`Store`] and gives a [`Table`] of metrics, by which a [`Claim`] is judged.
//!
//! A run is known by a hash of its scenario, its seed and the sources of the code that made it, the algorithms that it names
//! among them ([`Code`]): what is there is not made again, and what an older code made does not count.
//!
//! The expressions of metrics and claims are a language of our own (`expression`): values are arrays with named axes,
//! selection is by label (`use[cc=lia|olia]`), reduction is along an axis, and names are those of reports, with `-`, `/` and
//! `*` in them. Libraries for expressions were considered. `evalexpr` is under the AGPL since its version 12. `rhai` and `cel`
//! parse names, calls and arithmetic, but neither has such names, selections or arrays: their grammars would have to be
//! bent, and parsing is the third of our code that they could replace; arrays, axes and the functions over them, the other
//! two thirds, would stay, with a layer of foreign values added. So nothing would get shorter.
//!
//! Dependencies: `manypath-scenario` and `manypath-sim` check and run scenarios, `manypath-quic` and `manypath-emu` (with
//! `tokio`), and `manypath-kernel` (with `socket2`, which makes sockets of Multipath TCP, and `rustix`, which names what
//! they answer while they connect) run them in real time,
//! `manypath-cc` and `manypath-sched` say which algorithms there are, `manypath-theory` computes what the papers derive,
//! `manypath-link` and `rand_core` draw its random states, `manypath-output` writes and reads tables; `toml` and `serde` read
//! files and know where each value stands; `serde_json` turns reports into names and numbers; `sha2` makes the keys of runs,
//! and of the code at build time, which `proc-macro2` reads as tokens; `libm` for functions that agree on every machine;
//! `thiserror` for error types.

mod arrived;
mod axis;
mod choose;
mod claim;
mod code;
mod compare;
mod draw;
mod engine;
mod error;
mod experiment;
mod expression;
mod figure;
mod file;
mod load;
mod models;
mod plan;
mod quantities;
mod report;
mod results;
mod status;
mod store;
mod table;
mod template;
mod validation;

pub use axis::{Axis, AxisValue, fitting_scheduler};
pub use choose::{ChoiceError, chosen, engine, nearest, runs_needed};
pub use claim::{Claim, Ours, Statement, Verdict, short};
pub use code::Code;
pub use compare::{Compared, compare};
pub use draw::{Drawn, draw};
pub use engine::{Engine, EngineError, Input, Kernel, Quic, Simulator};
pub use error::{FileError, Problem};
pub use experiment::{Case, EngineKind, Experiment, Metric, Mode};
pub use expression::functions;
pub use figure::{ErrorBars, Figure, FigureKind};
pub use load::{experiments, load};
pub use models::{Arguments, Theory, models};
pub use plan::{Failure, LabError, Outcome, Plan, Run, runs};
pub use quantities::Quantities;
pub use report::{Beside, Facts, Other, Section, html, markdown, section};
pub use results::Results;
pub use status::{Status, StatusError};
pub use store::{Record, Store, StoreError};
pub use table::Table;
pub use validation::{
    Agreement, Effort, Goodput, TOLERANCE, VALIDATION_TITLE, comparisons, validate, validation_markdown,
};
