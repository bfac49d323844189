//! Colours, dashes and widths.

use core::fmt::Write as _;

/// Colours that the colour-blind can tell apart (after Okabe and Ito), dark enough for light pages and light enough for
/// dark ones; and the dashes of lines.
pub(super) const STYLES: [(&str, &str, &str); 10] = [
    ("#0060a8", "#6cb8ff", ""),
    ("#b84a00", "#ff9d57", "7 3"),
    ("#007a5a", "#3fd0a4", "2 3"),
    ("#8a3a86", "#e59be0", "10 3 2 3"),
    ("#6b5900", "#e6cf4a", "14 4"),
    ("#444b54", "#c2c8d0", "5 2 1 2 1 2"),
    ("#a3143c", "#ff8fa8", "1 2"),
    ("#1b6f80", "#6fd3e6", "12 3 5 3"),
    ("#4a5f00", "#b7d65a", "3 5"),
    ("#5a3fb0", "#b9a6ff", "9 2 1 2 1 2 1 2"),
];

/// Text, ticks, grid and page: on light pages and on dark ones.
const LIGHT: [&str; 4] = ["#1b1f24", "#5a626c", "#d5dae0", "#ffffff"];
const DARK: [&str; 4] = ["#e8eaee", "#a2abb5", "#3a414a", "#15181c"];

/// Shapes, then colours: a light page's, and a dark one's where the reader prefers that. Written out, since viewers outside of
/// browsers know no variables.
pub(super) fn styles(out: &mut String) {
    out.push_str(
        ".figure text { font: 12px system-ui, sans-serif; }\n\
         .figure .title { font-size: 14px; font-weight: 600; }\n\
         .figure .panel { font-weight: 600; }\n\
         .figure .tick { font-size: 11px; }\n\
         .figure .grid { stroke-width: 1; }\n\
         .figure .frame { stroke-width: 1; fill: none; }\n\
         .figure .lead { stroke-width: .7; fill: none; }\n\
         .figure .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }\n\
         .figure .point { fill: none; stroke-width: 1.4; }\n\
         .figure .bar { stroke-width: 1.2; }\n\
         .figure .middle { stroke-width: 2; fill: none; }\n\
         .figure .spread { stroke-width: 1; fill: none; }\n",
    );
    for (index, (_, _, dash)) in STYLES.iter().enumerate() {
        if !dash.is_empty() {
            // Writing into a String cannot fail.
            let _ = writeln!(out, ".figure .l{index} {{ stroke-dasharray: {dash}; }}");
        }
        let _ = writeln!(out, ".figure .b{index} {{ fill: url(#hatch{index}); }}");
    }
    colours(out, LIGHT, STYLES.map(|(light, _, _)| light));
    out.push_str("@media (prefers-color-scheme: dark) {\n");
    colours(out, DARK, STYLES.map(|(_, dark, _)| dark));
    out.push_str("}\n");
}

fn colours(out: &mut String, [ink, soft, grid, page]: [&str; 4], series: [&str; STYLES.len()]) {
    let _ = writeln!(
        out,
        ".figure text {{ fill: {ink}; }} .figure .tick {{ fill: {soft}; }} .figure .page {{ fill: {page}; }}\n\
         .figure .grid {{ stroke: {grid}; }} .figure .frame, .figure .lead {{ stroke: {soft}; }}\n\
         .figure .middle, .figure .spread {{ stroke: {ink}; }}"
    );
    for (index, colour) in series.iter().enumerate() {
        let _ = writeln!(
            out,
            ".figure .l{index}, .figure .p{index}, .figure .b{index} {{ stroke: {colour}; }} .figure .h{index} {{ color: {colour}; }}"
        );
    }
}
