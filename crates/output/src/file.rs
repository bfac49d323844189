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
    // A link leads to the file that is written.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // An error of `make_in` names the temporary file, which nobody has asked for.
    let mut cause = None;
    let make = |beside: &Path| File::create_new(beside).inspect_err(|error| cause = error.raw_os_error());
    let made = tempfile::Builder::new().prefix(".manypath-").make_in(folder, make);
    let mut file = made.map_err(|error| fail(cause.map_or(error, io::Error::from_raw_os_error)))?;
    write(file.as_file_mut()).map_err(fail)?;
    // Else the name may reach the disk before the content does, and a power cut leaves an empty file of this name.
    file.as_file().sync_all().map_err(fail)?;
    file.persist(&target).map(drop).map_err(|error| fail(error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_file(&folder.path().join("none/x"), b"").unwrap_err();
        assert_eq!(error.source.to_string(), "No such file or directory (os error 2)");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_leads_to_the_file_that_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn files_have_the_permissions_of_files_that_people_make() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
        write_file(&folder.path().join("ours"), b"x").unwrap();
        std::fs::write(folder.path().join("theirs"), b"x").unwrap();
        assert_eq!(mode("ours"), mode("theirs"));
    }
}
