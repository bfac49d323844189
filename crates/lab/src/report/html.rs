//! The page: self-contained, legible on paper and without colour.

use core::fmt::Write as _;

use super::{Facts, Section, analysis, either, ours, paper, sign, summary, svg, theirs};
use crate::draw::Drawn;
use crate::load::PAPERS;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5a626c; --grid: #d5dae0; --paper: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaee; --soft: #a2abb5; --grid: #3a414a; --paper: #15181c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 1000px; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 3rem; } h3 { font-size: 1.05rem; margin: 2.2rem 0 .2rem; }
p, li { max-width: 70rem; } .soft { color: var(--soft); }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid); }
caption { text-align: left; padding: .3rem 0; }
td.sign { white-space: nowrap; font-weight: 600; }
svg.figure { max-width: 100%; height: auto; display: block; margin: .8rem 0; }
";

/// The page of these experiments.
pub fn html(sections: &[Section<'_>], facts: &Facts) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width\"><title>Manypath: the papers' results again</title>\
         <style>{STYLE}</style></head><body>\n<h1>The papers' results again</h1>\n<p>{}</p>\n<p class=\"soft\">{}</p>\n",
        escape(&summary(sections)),
        escape(&facts.versions)
    );
    for line in &facts.made {
        let _ = writeln!(out, "<p class=\"soft\"><code>{}</code></p>", escape(line));
    }
    contents(&mut out, sections);
    for id in PAPERS {
        let of_paper: Vec<_> = sections.iter().filter(|section| section.experiment.paper == id).collect();
        if of_paper.is_empty() {
            continue;
        }
        let _ = writeln!(out, "<h2>{}</h2>", paper(id));
        for section in of_paper {
            one(&mut out, section);
        }
    }
    out.push_str("</body></html>\n");
    out
}

fn contents(out: &mut String, sections: &[Section<'_>]) {
    out.push_str(
        "<table><thead><tr><th>experiment<th>shows<th>holds<th>does not<th>not run<th>runs</tr></thead><tbody>\n",
    );
    for section in sections {
        let [holds, fails, missing] = section.counts();
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#{0}\">{0}</a><td>{1}<td>{holds}<td>{fails}<td>{missing}<td>{2} {3}</tr>",
            escape(&section.experiment.id),
            escape(&section.experiment.title),
            section.runs.0,
            section.mode.as_str()
        );
    }
    out.push_str("</tbody></table>\n");
}

fn one(out: &mut String, section: &Section<'_>) {
    let experiment = section.experiment;
    let _ = write!(
        out,
        "<section id=\"{0}\"><h3>{0}: {1}</h3>\n<p class=\"soft\">{2}. {3} of {4} {5} {6}.</p>\n<p>{7}</p>\n",
        escape(&experiment.id),
        escape(&experiment.title),
        escape(&experiment.place),
        section.runs.0,
        section.runs.1,
        section.mode.as_str(),
        either(section.runs.1, "run", "runs"),
        escape(&experiment.about)
    );
    for (title, drawn) in &section.figures {
        match drawn {
            Drawn::Picture(picture) => {
                let titled = manypath_output::Figure { title: title.clone(), ..picture.clone() };
                out.push_str(&svg(&titled));
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
        let _ = writeln!(out, "<p><b>Analysis.</b> {}</p>", escape(text));
    }
    if !experiment.deviations.is_empty() {
        out.push_str("<p class=\"soft\">Ours differs from the paper's setting, or is our choice where it is silent:</p><ul class=\"soft\">\n");
        for deviation in &experiment.deviations {
            let _ = writeln!(out, "<li>{}</li>", escape(deviation));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}

fn table(out: &mut String, title: &str, head: &[String], rows: &[Vec<String>]) {
    let _ = write!(out, "<table><caption>{}</caption><thead><tr>", escape(title));
    for cell in head {
        let _ = write!(out, "<th>{}", escape(cell));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
}

fn claims(out: &mut String, section: &Section<'_>) {
    if section.claims.is_empty() {
        return;
    }
    out.push_str("<table><thead><tr><th>verdict<th>the paper says<th>its number<th>ours (seeds)");
    for other in &section.others {
        let _ = write!(out, "<th>on {}", other.engine.as_str());
    }
    out.push_str("<th>where</tr></thead><tbody>\n");
    for (index, (claim, verdict)) in section.claims.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td class=\"sign\">{}<td>{}{}<td>{}<td>{}",
            sign(verdict),
            escape(&claim.says),
            analysis(claim, verdict)
                .map(|text| format!("<br><span class=\"soft\">{}</span>", escape(text)))
                .unwrap_or_default(),
            escape(&claim.number),
            escape(&ours(verdict, &claim.unit))
        );
        for other in &section.others {
            let _ = write!(out, "<td>{}", escape(&theirs(&other.verdicts[index], &claim.unit)));
        }
        let _ = writeln!(out, "<td>{}<br><span class=\"soft\">{}</span></tr>", escape(&claim.place), escape(&claim.id));
    }
    out.push_str("</tbody></table>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
