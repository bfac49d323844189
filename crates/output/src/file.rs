//! Files that are whole or not there.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Why a file was not written. Nothing of it is left, and what was there before is still there.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Writes a file.
///
/// # Errors
/// If the folder is not there or not writable, or the disk is full.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    write_with(path, |file| file.write_all(content))
}

/// Writes a file with a function that does it: beside its place first, unless the place is a device or a pipe.
pub(crate) fn write_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), WriteError> {
    let fail = |source| WriteError { path: path.to_owned(), source };
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return File::create(path).and_then(|mut file| write(&mut file)).map_err(fail);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".manypath-");
    #[cfg(unix)]
    // What files have that people make; the umask takes its part.
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(fail)?;
    write(file.as_file_mut()).map_err(fail)?;
    file.persist(path).map(drop).map_err(|error| fail(error.error))
}
