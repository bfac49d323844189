//! What the engine is asked to do, and what it answers.

use manypath_core::AlgorithmSpec;

/// A parameter and its value, in the registry's notation.
pub type Setting = (String, String);

/// What to load.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Controllers, with their parameters.
    pub controllers: Vec<AlgorithmSpec>,
    /// Parameters for all of them.
    pub settings: Vec<Setting>,
    /// The name in the kernel of the only controller, if not its usual one: one may be loaded twice with other parameters.
    pub name: Option<String>,
    /// Connections that each can couple at once, if not 4096.
    pub connections: Option<u32>,
    /// Whether the only controller becomes the machine's default.
    pub as_default: bool,
}

/// What was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Kernel names.
    pub controllers: Vec<String>,
    /// Whether the BPF file system was mounted for them.
    pub mounted: bool,
}

/// What was unloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Kernel names.
    pub controllers: Vec<String>,
    /// The machine's default controller, if it was one of them before.
    pub default: Option<String>,
    /// Other network namespaces whose default was one of them, and is what was before.
    pub namespaces: usize,
}
