//! Scenarios to begin with.

use core::fmt::Write as _;

use manypath_link::QueueLimit;

use crate::topologies::{Role, Topology};

/// How many roles a template has connections for.
const SHOWN_ROLES: usize = 6;

/// A commented scenario to begin with: what `manypath sim new` writes.
pub fn template() -> &'static str {
    include_str!("template.toml")
}

/// The scenario that runs when none is given: one connection over two links.
pub fn built_in() -> &'static str {
    include_str!("built-in.toml")
}

impl Topology {
    /// A commented scenario over this topology to begin with: a connection for every role, up to a few.
    pub fn template(&self) -> String {
        let mut out = String::new();
        let name = self.name;
        // Writing to a string cannot fail.
        let _ = write!(out, "# {name}: {}.\n# {}\n\nname = \"{name}\"\n", self.source, self.about);
        out += "duration = \"60s\"\nwarmup = \"10s\"        # left out of summaries\n";
        out += "sample = \"100ms\"      # interval of time series; none are recorded without it\n";
        let _ = writeln!(out, "topology = \"{name}\"");
        self.write_links(&mut out);
        let (shown, others) = self.roles.split_at(self.roles.len().min(SHOWN_ROLES));
        shown.iter().for_each(|role| write_connection(&mut out, role));
        if !others.is_empty() {
            let names: Vec<_> = others.iter().map(|role| role.name.as_str()).collect();
            let _ = writeln!(out, "\n# Further roles: {}", names.join(", "));
        }
        out
    }

    fn write_links(&self, out: &mut String) {
        *out += "\n# Its links, each with a way back. A [[link]] table with the name of one changes it:\n";
        for link in self.links.iter().filter(|link| !link.name.ends_with("/back")) {
            let config = &link.config;
            let queue = match config.queue {
                QueueLimit::Packets(packets) => format!("{packets}packets"),
                QueueLimit::Bytes(bytes) => bytes.to_string(),
                QueueLimit::Wait(wait) => wait.to_string(),
            };
            let _ = writeln!(out, "#   {:14} {}, {}, {queue}", link.name, config.peak_rate(), config.delay);
        }
        if let Some(first) = self.links.first() {
            let _ =
                write!(out, "# [[link]]\n# name = \"{}\"\n# queue = \"30packets\"\n# loss = \"0.1%\"\n", first.name);
        }
    }
}

fn write_connection(out: &mut String, role: &Role) {
    // Coupling is for those with several paths.
    let cc = if role.paths.len() > 1 { "lia" } else { "reno" };
    let _ = write!(out, "\n[[connection]]\nname = \"{0}\"\nrole = \"{0}\"\ncc = \"{cc}\"\n", role.name);
    for path in &role.paths {
        let _ = writeln!(out, "# a path over {}", path.join(", "));
    }
    *out += "# start-spread = \"100ms\"  # starts up to this much later, at a time of the seed's\n";
}
