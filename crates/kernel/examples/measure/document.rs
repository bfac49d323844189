//! Tables between marks in docs/kernel.md and docs/validation.md: `<!-- measured: NAME -->` and `<!-- end -->`.

use std::path::Path;

use crate::Failure;

/// Replaces what stands between a table's marks.
pub(crate) fn replace(name: &str, text: &str) -> Result<(), Failure> {
    let page = if name == "validation" { "../../docs/validation.md" } else { "../../docs/kernel.md" };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let document = std::fs::read_to_string(&file)?;
    let mark = format!("<!-- measured: {name} -->\n");
    let begin = document.find(&mark).ok_or_else(|| format!("no mark '{}' in {}", mark.trim(), file.display()))?;
    let begin = begin + mark.len();
    let length = document[begin..].find("<!-- end -->").ok_or("a mark has no end")?;
    let new = format!("{}{}\n\n{}", &document[..begin], text.trim_end(), &document[begin + length..]);
    Ok(std::fs::write(&file, new)?)
}
