//! Scenario files: networks, what runs over them, and for how long. The simulator, the emulator and theory read them.
//!
//! A scenario is TOML in which every quantity has its unit. Unknown keys and impossible values are errors that name file,
//! line and remedy; whatever a file says, reading it neither panics nor takes more memory than its size warrants.
//! [`json_schema`] describes the format for editors, [`template`] is a commented example, [`topologies`](topologies()) are
//! the networks of the papers.
//!
//! Dependencies: `toml` and `serde` read the file and know where each value stands; `schemars` and `serde_json` make the
//! JSON schema from the same tables that are read, so that the two cannot differ; `manypath-link` for the model of a link
//! and its checks; `rand_core` and `rand_xoshiro` for the hash that places flows on equal paths and for what sources draw, `libm` for values drawn from a distribution; `thiserror` for error types.

mod background;
mod error;
mod file;
mod joins;
mod model;
mod overrides;
mod read;
mod redraw;
mod resolve;
mod template;
mod topologies;
mod units;

pub use background::{Act, Background};
pub use error::{Problem, ScenarioError};
pub use model::{AckRule, Connection, Draw, Link, Path, Recovery, Redraw, Scenario, Source, Transport, Workload};
pub use overrides::Override;
pub use read::{Document, ReadError, parse, parse_with};
pub use template::{built_in, template};
pub use topologies::{BACK_QUEUE, Role, Topology, topologies, topology};

/// The JSON schema of scenario files, for editors.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(file::File);
    // A schema is a JSON value: writing it cannot fail.
    serde_json::to_string_pretty(schema.as_value()).unwrap_or_default() + "\n"
}
