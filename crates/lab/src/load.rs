//! From experiment files to experiments.

mod claims;
mod figures;

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::DeTable;

use crate::axis::{Axis, axis};
use crate::error::{Fault, FileError, Problem};
use crate::experiment::{EngineKind, Experiment, Lengths, MAX_CASES, Metric, Mode, Setup, Source};
use crate::file::{AxisTable, File, MetricTable, PerMode};
use crate::template::{Node, Value};
use claims::claims;
use figures::figure;

/// The longest experiment file, bytes.
const MAX_FILE: usize = 1 << 20;
/// The papers.
pub(crate) const PAPERS: [&str; 5] = ["mpcc", "tccc", "stms", "mp-ol", "uni-mptcp"];
/// The most runs of a case.
const MAX_SEEDS: u32 = 1000;
/// What a list of experiments that is no folder of experiment files has as its status file.
pub(crate) const STATUS_FILE: &str = "status.toml";

/// Reads every experiment of a folder, in the order of papers and then of names as people count.
///
/// # Errors
/// The first fault, with its place and what to do.
pub fn load(folder: &Path) -> Result<Vec<Experiment>, FileError> {
    let unreadable = |path: &Path, error: &std::io::Error| FileError {
        file: path.display().to_string(),
        line: 1,
        problem: Box::new(Problem::Unreadable(error.to_string())),
    };
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let is_status = path.file_name().is_some_and(|name| name == STATUS_FILE);
        if path.extension().is_some_and(|extension| extension == "toml") && !is_status {
            files.push(path);
        }
    }
    files.sort();
    let mut texts = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        texts.push((id, path.display().to_string(), text));
    }
    experiments(&texts, folder)
}

/// The experiments in these texts: id, name of the file, text.
///
/// # Errors
/// The first fault.
pub fn experiments(texts: &[(String, String, String)], folder: &Path) -> Result<Vec<Experiment>, FileError> {
    let mut read = Vec::new();
    for (id, file, text) in texts {
        let source = Source { file: file.clone(), text: text.clone(), folder: folder.to_owned() };
        let (tables, nodes) = tables(text).map_err(|fault| source.error(fault))?;
        read.push((id.clone(), source, tables, nodes));
    }
    let mut done: BTreeMap<String, Experiment> = BTreeMap::new();
    // Those that are like others come after those.
    let (alone, like): (Vec<_>, Vec<_>) = read.into_iter().partition(|(_, _, tables, _)| tables.like.is_none());
    for (id, source, tables, nodes) in alone.into_iter().chain(like) {
        let made = experiment(&id, &source, &tables, &nodes, &done).map_err(|fault| source.error(fault))?;
        done.insert(id, made);
    }
    let mut all: Vec<Experiment> = done.into_values().collect();
    all.sort_by_cached_key(|experiment| {
        let paper = PAPERS.iter().position(|paper| *paper == experiment.paper);
        (paper, natural(&experiment.id))
    });
    Ok(all)
}

/// A name with its numbers as numbers, so that `fig10` follows `fig9`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let (count, behind) = behind.split_at(end);
        parts.push((text.to_owned(), count.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}

/// Reads a file twice: as tables, and as values with their places.
fn tables(text: &str) -> Result<(File, Node), Fault> {
    if text.len() > MAX_FILE {
        return Err((0, Problem::TooLong(text.len())));
    }
    let syntax = |error: &toml::de::Error| {
        (error.span().map_or(0, |span| span.start), Problem::Syntax(error.message().to_owned()))
    };
    let file: File = toml::from_str(text).map_err(|error| syntax(&error))?;
    let table = DeTable::parse(text).map_err(|error| syntax(&error))?;
    Ok((file, Node::table(0, table.get_ref())))
}

fn entry<'a>(nodes: &'a Node, key: &str) -> Option<&'a Node> {
    match &nodes.value {
        Value::Table(entries) => entries.get(key),
        _ => None,
    }
}

fn experiment(
    id: &str,
    source: &Source,
    file: &File,
    nodes: &Node,
    done: &BTreeMap<String, Experiment>,
) -> Result<Experiment, Fault> {
    if !PAPERS.contains(&file.paper.get_ref().as_str()) {
        return Err((file.paper.span().start, Problem::unknown("paper", file.paper.get_ref(), PAPERS.into_iter())));
    }
    let model = match &file.like {
        None => None,
        Some(like) => {
            let found = done.get(like.get_ref()).filter(|found| found.runs_of == found.id);
            let known = done.values().filter(|found| found.runs_of == found.id).map(|found| found.id.as_str());
            let missing = || (like.span().start, Problem::unknown("experiment to be like", like.get_ref(), known));
            Some(found.ok_or_else(missing)?)
        }
    };
    let mut made = match model {
        Some(model) => {
            refuse_own_runs(file)?;
            let mut made = Experiment { claims: Vec::new(), figures: Vec::new(), analysis: None, ..model.clone() };
            made.metrics.iter_mut().for_each(|metric| metric.is_inherited = true);
            made
        }
        None => Experiment { setup_source: source.clone(), ..bare(file, nodes)? },
    };
    id.clone_into(&mut made.id);
    made.title.clone_from(&file.title);
    made.paper.clone_from(file.paper.get_ref());
    made.place.clone_from(&file.place);
    made.about.clone_from(&file.about);
    made.deviations.clone_from(&file.deviations);
    made.analysis.clone_from(&file.analysis);
    made.runs_of = model.map_or(id, |model| &model.id).to_owned();
    made.source = source.clone();
    for (name, table) in &file.metric {
        let metric = metric(name, table);
        made.metrics.retain(|held| held.name != metric.name);
        made.metrics.push(metric);
    }
    check_size(&made)?;
    made.claims = claims(&made, &file.claim)?;
    made.figures = file.figure.iter().map(|table| figure(&made, table)).collect::<Result<_, _>>()?;
    check_metrics(&made)?;
    Ok(made)
}

fn refuse_own_runs(file: &File) -> Result<(), Fault> {
    let own = [
        ("axis", file.axis.first().map(|axis| axis.span().start)),
        ("scenario", file.scenario.as_ref().map(|table| table.span().start)),
        ("theory", file.theory.as_ref().map(|table| table.span().start)),
        ("seeds", file.seeds.as_ref().map(|seeds| seeds.span().start)),
        ("duration", file.duration.as_ref().map(|duration| duration.span().start)),
        ("warmup", file.warmup.as_ref().map(|warmup| warmup.span().start)),
        ("engines", file.engines.first().map(|engine| engine.span().start)),
    ];
    match own.into_iter().find_map(|(key, at)| Some((key, at?))) {
        Some((key, at)) => Err((at, Problem::Both { what: "the experiment".to_owned(), first: "like", second: key })),
        None => Ok(()),
    }
}

/// What is run, without metrics, claims and figures.
fn bare(file: &File, nodes: &Node) -> Result<Experiment, Fault> {
    let (setup, usual) = match (&file.scenario, &file.theory) {
        (Some(table), None) => (Setup::Scenario(table_node(nodes, "scenario", table)?), EngineKind::Sim),
        (None, Some(table)) => (Setup::Theory(table_node(nodes, "theory", table)?), EngineKind::Theory),
        (Some(_), Some(table)) => {
            let problem = Problem::Both { what: "the experiment".to_owned(), first: "scenario", second: "theory" };
            return Err((table.span().start, problem));
        }
        (None, None) => {
            let remedy = "write [scenario] with what is run, [theory] with a model, or like = \"EXPERIMENT\"";
            return Err((0, Problem::Missing { what: "an experiment".to_owned(), key: "scenario", remedy }));
        }
    };
    let axis_nodes = match entry(nodes, "axis").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes.as_slice(),
        _ => &[],
    };
    let axes = file.axis.iter().zip(axis_nodes).map(|(table, nodes)| axis(table, nodes));
    let axes = axes.collect::<Result<Vec<Axis>, _>>()?;
    check_names(&axes, &file.axis)?;
    let engines = if file.engines.is_empty() { vec![usual] } else { engines(&file.engines)? };
    let lengths = [PerMode::quick, PerMode::full].map(|pick| Lengths {
        duration: file.duration.as_ref().map(|text| Node::text(text.span().start, pick(text.get_ref()))),
        warmup: file.warmup.as_ref().map(|text| Node::text(text.span().start, pick(text.get_ref()))),
    });
    Ok(Experiment {
        id: String::new(),
        title: String::new(),
        paper: String::new(),
        place: String::new(),
        about: String::new(),
        deviations: Vec::new(),
        analysis: None,
        runs_of: String::new(),
        engines,
        seeds: seeds(file.seeds.as_ref())?,
        axes,
        metrics: Vec::new(),
        claims: Vec::new(),
        figures: Vec::new(),
        setup,
        lengths,
        source: Source::default(),
        setup_source: Source::default(),
    })
}

fn table_node(nodes: &Node, key: &str, table: &Spanned<toml::Value>) -> Result<Node, Fault> {
    match entry(nodes, key) {
        Some(node) if matches!(node.value, Value::Table(_)) => Ok(node.clone()),
        _ => Err((table.span().start, Problem::Syntax(format!("'{key}' is a table")))),
    }
}

fn check_names(axes: &[Axis], tables: &[Spanned<AxisTable>]) -> Result<(), Fault> {
    for (index, axis) in axes.iter().enumerate() {
        let at = tables[index].get_ref().name.span().start;
        if axes[..index].iter().any(|held| held.name == axis.name) {
            return Err((at, Problem::Twice { what: "the axis", name: axis.name.clone() }));
        }
        let plain = axis.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !plain || !axis.name.starts_with(|c: char| c.is_ascii_alphabetic()) || axis.name == "item" {
            let range = "letters, digits, - and _, beginning with a letter, and not 'item'";
            let value = axis.name.chars().take(40).collect();
            return Err((at, Problem::OutOfRange { what: "the name of an axis".to_owned(), value, range }));
        }
    }
    Ok(())
}

fn engines(names: &[Spanned<String>]) -> Result<Vec<EngineKind>, Fault> {
    let engine = |name: &Spanned<String>| {
        let known = EngineKind::ALL.iter().map(|engine| engine.as_str());
        let unknown = || (name.span().start, Problem::unknown("engine", name.get_ref(), known));
        EngineKind::named(name.get_ref()).ok_or_else(unknown)
    };
    names.iter().map(engine).collect()
}

fn seeds(written: Option<&Spanned<PerMode<u32>>>) -> Result<[u32; 2], Fault> {
    let Some(seeds) = written else { return Ok([1, 1]) };
    let both = [*seeds.get_ref().quick(), *seeds.get_ref().full()];
    match both.into_iter().find(|count| !(1..=MAX_SEEDS).contains(count)) {
        Some(count) => {
            let (what, value) = ("seeds".to_owned(), count.to_string());
            Err((seeds.span().start, Problem::OutOfRange { what, value, range: "1 to 1000" }))
        }
        None => Ok(both),
    }
}

fn check_size(made: &Experiment) -> Result<(), Fault> {
    let sizes = made.axes.iter().map(|axis| axis.values.len());
    let total = sizes.fold(1_usize, usize::saturating_mul);
    if total > MAX_CASES {
        return Err((0, Problem::TooManyCases(total)));
    }
    [Mode::Quick, Mode::Full]
        .into_iter()
        .try_for_each(|mode| made.check_runs(mode, made.seeds(mode)).map_err(|problem| (0, problem)))
}

fn metric(name: &str, table: &Spanned<MetricTable>) -> Metric {
    let file = table.get_ref();
    Metric {
        name: name.to_owned(),
        title: file.title.clone(),
        unit: file.unit.clone(),
        value: file.value.get_ref().clone(),
        at: file.value.span().start,
        is_inherited: false,
    }
}

/// Every metric's expression reads in the first case; what differs from case to case are numbers.
fn check_metrics(made: &Experiment) -> Result<(), Fault> {
    let Some(case) = made.cases(Mode::Full).into_iter().next() else { return Ok(()) };
    for metric in &made.metrics {
        made.expression(metric, &case).map_err(|error| (metric.at, *error.problem))?;
    }
    Ok(())
}
