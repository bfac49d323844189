//! What code a result comes from, as hashes of sources.
//!
//! A simulated run depends on the engine, on what the registries share, and on the algorithms that its scenario names: the
//! modules that their rows of the registry reach. Which those are is read from the sources: a module is reached by whatever
//! has its name in it. That finds too much (a variable that is called like a module), never too little: a module that is not
//! named cannot be used, and what crates offer at their root belongs to all. Comments, layout and tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::registry::Table;
use crate::tokens::{Token, tokens};

/// An engine's name in the generated code, the crates and files that decide all its runs, and whether runs name algorithms.
/// `emu-tun` is `emu` without its module `tun`.
type Engine = (&'static str, &'static [&'static str], &'static [&'static str], bool);

/// The engines. What the lab makes of a run decides its numbers too.
pub(crate) const ENGINES: [Engine; 4] = [
    ("SIM", &["core", "session", "link", "scenario", "sim"], &["lab/src/engine.rs", "lab/src/quantities.rs"], true),
    (
        "THEORY",
        &["core", "theory"],
        &[
            "lab/src/models.rs",
            "lab/src/models/arguments.rs",
            "lab/src/models/buffers.rs",
            "lab/src/models/law.rs",
            "lab/src/models/network.rs",
            "lab/src/models/uni.rs",
            "lab/src/quantities.rs",
            // Its random states are drawn with this.
            "link/src/random.rs",
        ],
        false,
    ),
    (
        "QUIC",
        &["core", "session", "link", "scenario", "emu-tun", "quic"],
        &[
            "lab/src/engine.rs",
            "lab/src/arrived.rs",
            "lab/src/engine/quic.rs",
            "lab/src/engine/quic/application.rs",
            "lab/src/quantities.rs",
        ],
        true,
    ),
    (
        "KERNEL",
        &["core", "link", "scenario", "emu", "kernel"],
        &[
            "lab/src/engine.rs",
            "lab/src/arrived.rs",
            "lab/src/engine/kernel.rs",
            "lab/src/engine/kernel/application.rs",
            "lab/src/engine/kernel/flow.rs",
            "lab/src/quantities.rs",
        ],
        false,
    ),
];

/// Files with what is in them.
type Files = Vec<(PathBuf, Vec<Token>)>;

/// A crate of algorithms.
#[derive(Debug)]
pub(crate) struct Algorithms {
    /// The modules that decide every run.
    pub(crate) core: BTreeSet<String>,
    /// The modules that each algorithm adds, by the algorithm's name.
    pub(crate) named: BTreeMap<String, BTreeSet<String>>,
    /// The sources of each module at the root.
    modules: BTreeMap<String, Files>,
    root: Vec<Token>,
}

impl Algorithms {
    /// Reads a crate's `src`.
    pub(crate) fn read(src: &Path) -> Self {
        let root = tokens(&text(&src.join("lib.rs")));
        let mut modules = BTreeMap::new();
        for name in declared(&root) {
            let mut files = Files::new();
            add_files(src, &name, &mut files);
            modules.insert(name, files);
        }
        let mut read = Self { core: BTreeSet::new(), named: BTreeMap::new(), modules, root };
        read.find_out();
        read
    }

    fn find_out(&mut self) {
        let registry = self.modules.remove("registry").expect("a crate of algorithms has a registry");
        let is_table =
            |tokens: &[Token]| tokens.windows(2).any(|two| two[0].says("static") && two[1].says("ALGORITHMS"));
        let (tables, rest): (Vec<_>, Vec<_>) = registry.iter().partition(|(_, tokens)| is_table(tokens));
        let [(_, table)] = tables[..] else { panic!("a registry has one table of ALGORITHMS") };
        let table = Table::read(table, &self.modules.keys().map(String::as_str).collect());
        let mut core = table.beside_rows();
        core.extend(offered(&self.root).filter(|name| self.modules.contains_key(*name)).map(str::to_owned));
        core.extend(rest.iter().flat_map(|(_, tokens)| self.mentioned(tokens)));
        let named: BTreeMap<_, _> = table.rows().map(|(name, reached)| (name.clone(), self.closure(reached))).collect();
        // What no algorithm reaches must be for all of them.
        let theirs: BTreeSet<&String> = named.values().flatten().collect();
        core.extend(self.modules.keys().filter(|name| !theirs.contains(name)).cloned());
        self.core = self.closure(core);
        self.core.insert("registry".to_owned());
        self.named = named.into_iter().map(|(name, modules)| (name, &modules - &self.core)).collect();
        self.modules.insert("registry".to_owned(), registry);
    }

    /// The modules whose names stand in a text.
    fn mentioned<'a>(&'a self, tokens: &'a [Token]) -> impl Iterator<Item = String> + 'a {
        tokens.iter().filter_map(Token::word).filter(|word| self.modules.contains_key(*word)).map(str::to_owned)
    }

    /// Modules with all that they use.
    fn closure(&self, mut modules: BTreeSet<String>) -> BTreeSet<String> {
        let mut open: Vec<String> = modules.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for used in self.modules[&name].iter().flat_map(|(_, tokens)| self.mentioned(tokens)) {
                if modules.insert(used.clone()) {
                    open.push(used);
                }
            }
        }
        modules
    }

    /// Adds the text of modules to a hash.
    fn hash<'a>(&self, modules: impl IntoIterator<Item = &'a String>, hash: &mut Sha256) {
        for (_, tokens) in modules.into_iter().flat_map(|name| &self.modules[name]) {
            add_tokens(tokens, hash);
        }
    }

    /// The hash of what an algorithm adds.
    pub(crate) fn hash_of(&self, algorithm: &str) -> String {
        let mut hash = Sha256::new();
        self.hash(&self.named[algorithm], &mut hash);
        written(hash, 4)
    }
}

/// The modules that a file declares in files of their own.
fn declared(tokens: &[Token]) -> Vec<String> {
    let is_mod = |three: &&[Token]| three[0].says("mod") && three[2].is(';');
    tokens.windows(3).filter(is_mod).filter_map(|three| three[1].word().map(str::to_owned)).collect()
}

/// What a crate's root takes from its modules, for others to use.
fn offered(root: &[Token]) -> impl Iterator<Item = &str> {
    root.windows(3).filter(|three| three[1].is(':') && three[2].is(':')).filter_map(|three| three[0].word())
}

/// Reads a module and the modules in it.
fn add_files(folder: &Path, name: &str, files: &mut Files) {
    let path = folder.join(format!("{name}.rs"));
    let read = tokens(&text(&path));
    let inner = declared(&read);
    files.push((path, read));
    for module in inner {
        add_files(&folder.join(name), &module, files);
    }
}

/// A whole crate, or `NAME-MODULE` without one: the modules of its library, and whatever else is in its sources.
fn add_crate(crates: &Path, name: &str, hash: &mut Sha256) {
    let (name, without) = name.split_once('-').unwrap_or((name, ""));
    let folder = crates.join(name);
    let src = folder.join("src");
    let root = tokens(&text(&src.join("lib.rs")));
    let mut files = Files::new();
    for module in declared(&root).iter().filter(|module| *module != without) {
        add_files(&src, module, &mut files);
    }
    add_tokens(&root, hash);
    files.iter().for_each(|(_, tokens)| add_tokens(tokens, hash));
    for folder in [src, folder.join("bpf")] {
        if folder.is_dir() {
            add_others(&folder, hash);
        }
    }
}

/// Adds every file that is no Rust, in the order of names.
fn add_others(folder: &Path, hash: &mut Sha256) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add_others(&path, hash);
        } else if path.extension().is_none_or(|extension| extension != "rs") {
            add_bytes(text(&path).as_bytes(), hash);
        }
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn add_tokens(tokens: &[Token], hash: &mut Sha256) {
    hash.update((tokens.len() as u64).to_le_bytes());
    for token in tokens {
        match token {
            Token::Word(text) | Token::Text(text) => add_bytes(text.as_bytes(), hash),
            Token::Sign(sign) => add_bytes(sign.to_string().as_bytes(), hash),
        }
    }
}

fn add_bytes(bytes: &[u8], hash: &mut Sha256) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn written(hash: Sha256, bytes: usize) -> String {
    hash.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

/// The hashes of an engine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hashes {
    /// Of everything.
    pub(crate) all: String,
    /// Of what decides every run.
    pub(crate) core: String,
    /// Of what controllers add, by name.
    pub(crate) controllers: BTreeMap<String, String>,
    /// Of what schedulers add, by name.
    pub(crate) schedulers: BTreeMap<String, String>,
}

/// The hashes of an engine: of whole crates, of single files, and of algorithms where its runs name any.
pub(crate) fn hashes(crates: &Path, whole: &[&str], files: &[&str], named: bool) -> Hashes {
    let mut core = Sha256::new();
    whole.iter().for_each(|name| add_crate(crates, name, &mut core));
    for file in files {
        add_tokens(&tokens(&text(&crates.join(file))), &mut core);
    }
    let mut each = Vec::new();
    for name in if named { &["cc", "sched"][..] } else { &[] } {
        let read = Algorithms::read(&crates.join(name).join("src"));
        add_tokens(&read.root, &mut core);
        read.hash(&read.core, &mut core);
        each.push(read.named.keys().map(|name| (name.clone(), read.hash_of(name))).collect::<BTreeMap<_, _>>());
    }
    let core = written(core, 6);
    let mut all = Sha256::new();
    add_bytes(core.as_bytes(), &mut all);
    each.iter().flatten().flat_map(|(name, hash)| [name, hash]).for_each(|text| add_bytes(text.as_bytes(), &mut all));
    let mut each = each.into_iter();
    let mut next = || each.next().unwrap_or_default();
    Hashes { all: written(all, 6), core, controllers: next(), schedulers: next() }
}
