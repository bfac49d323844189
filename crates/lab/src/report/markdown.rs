//! The same as Markdown, with the pictures as files beside it.

use core::fmt::Write as _;

use super::{Facts, Section, analysis, either, ours, paper, sign, summary, svg, theirs};
use crate::draw::Drawn;
use crate::load::PAPERS;

/// The Markdown of these experiments, and the pictures that it names: file names and contents. `folder` is where the text
/// finds them.
pub fn markdown(sections: &[Section<'_>], facts: &Facts, folder: &str) -> (String, Vec<(String, String)>) {
    let mut out = format!("# Results\n\n{}\n\n{}\n\n", summary(sections), facts.versions);
    // Writing to a string cannot fail.
    for line in &facts.made {
        let _ = writeln!(out, "    {line}");
    }
    out.push_str("\nMade by `manypath lab report`: change the experiments, not this page.\n");
    contents(&mut out, sections);
    let mut pictures = Vec::new();
    for id in PAPERS {
        let of_paper: Vec<_> = sections.iter().filter(|section| section.experiment.paper == id).collect();
        if of_paper.is_empty() {
            continue;
        }
        let _ = write!(out, "\n## {}\n", paper(id));
        for section in of_paper {
            one(&mut out, section, folder, &mut pictures);
        }
    }
    (out, pictures)
}

fn contents(out: &mut String, sections: &[Section<'_>]) {
    out.push_str("\n| experiment | shows | holds | does not | not run | runs |\n|---|---|---|---|---|---|\n");
    for section in sections {
        let [holds, fails, missing] = section.counts();
        let id = &section.experiment.id;
        let _ = writeln!(
            out,
            "| [{id}](#{id}) | {} | {holds} | {fails} | {missing} | {} {} |",
            cell(&section.experiment.title),
            section.runs.0,
            section.mode.as_str()
        );
    }
}

fn one(out: &mut String, section: &Section<'_>, folder: &str, pictures: &mut Vec<(String, String)>) {
    let experiment = section.experiment;
    let _ = write!(
        out,
        "\n<a id=\"{0}\"></a>\n### {0}: {1}\n\n{2}. {3} of {4} {5} {6}.\n\n{7}\n",
        experiment.id,
        experiment.title,
        experiment.place,
        section.runs.0,
        section.runs.1,
        section.mode.as_str(),
        either(section.runs.1, "run", "runs"),
        experiment.about.trim()
    );
    for (index, (title, drawn)) in section.figures.iter().enumerate() {
        match drawn {
            Drawn::Picture(picture) => {
                let name = format!("{}-{}.svg", experiment.id, index + 1);
                let titled = manypath_output::Figure { title: title.clone(), ..picture.clone() };
                let _ = write!(out, "\n![{}]({folder}/{name})\n", cell(title));
                pictures.push((name, svg(&titled)));
            }
            Drawn::Table { head, rows } => table(out, title, head, rows),
        }
    }
    claims(out, section);
    for other in &section.others {
        let (head, rows) = other.table(section.experiment.engines[0]);
        table(out, &other.title(), &head, &rows);
    }
    if let Some(text) = &experiment.analysis {
        let _ = write!(out, "\n**Analysis.** {}\n", text.trim());
    }
    if !experiment.deviations.is_empty() {
        out.push_str("\nOurs differs from the paper's setting, or is our choice where it is silent:\n\n");
        for deviation in &experiment.deviations {
            let _ = writeln!(out, "* {deviation}");
        }
    }
}

fn table(out: &mut String, title: &str, head: &[String], rows: &[Vec<String>]) {
    let _ = write!(out, "\n{title}\n\n");
    row(out, head);
    let _ = writeln!(out, "|{}", "---|".repeat(head.len()));
    rows.iter().for_each(|cells| row(out, cells));
}

fn claims(out: &mut String, section: &Section<'_>) {
    if section.claims.is_empty() {
        return;
    }
    let mut head =
        vec!["verdict".to_owned(), "the paper says".to_owned(), "its number".to_owned(), "ours (seeds)".to_owned()];
    head.extend(section.others.iter().map(|other| format!("on {}", other.engine.as_str())));
    head.push("where".to_owned());
    out.push('\n');
    row(out, &head);
    let _ = writeln!(out, "|{}", "---|".repeat(head.len()));
    for (index, (claim, verdict)) in section.claims.iter().enumerate() {
        let why = analysis(claim, verdict).map(|text| format!("<br>*{text}*")).unwrap_or_default();
        let mut cells = vec![
            sign(verdict).to_owned(),
            format!("{}{why}", claim.says),
            claim.number.clone(),
            ours(verdict, &claim.unit),
        ];
        cells.extend(section.others.iter().map(|other| theirs(&other.verdicts[index], &claim.unit)));
        cells.push(format!("{}, `{}`", claim.place, claim.id));
        row(out, &cells);
    }
}

fn row(out: &mut String, cells: &[String]) {
    out.push('|');
    for text in cells {
        let _ = write!(out, " {} |", cell(text));
    }
    out.push('\n');
}

/// A text in one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
