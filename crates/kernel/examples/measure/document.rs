//! Tables between marks in docs/kernel.md and docs/validation.md: `<!-- measured: NAME -->` and `<!-- end -->`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::Failure;

/// The document that a table is in, its text, and where in it the table stands.
fn find(name: &str) -> Result<(PathBuf, String, Range<usize>), Failure> {
    let page = if name == "validation" { "../../docs/validation.md" } else { "../../docs/kernel.md" };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let document = std::fs::read_to_string(&file)?;
    let mark = format!("<!-- measured: {name} -->\n");
    let begin = document.find(&mark).ok_or_else(|| format!("no mark '{}' in {}", mark.trim(), file.display()))?;
    let begin = begin + mark.len();
    let length = document[begin..].find("<!-- end -->").ok_or("a mark has no end")?;
    Ok((file, document, begin..begin + length))
}

/// Fails for a table that has no place: before it is measured, not hours later.
pub(crate) fn ensure_place(name: &str) -> Result<(), Failure> {
    find(name).map(drop)
}

/// Replaces what stands between a table's marks.
pub(crate) fn replace(name: &str, text: &str) -> Result<(), Failure> {
    let (file, mut document, place) = find(name)?;
    document.replace_range(place, &format!("{}\n\n", text.trim_end()));
    Ok(std::fs::write(&file, document)?)
}
