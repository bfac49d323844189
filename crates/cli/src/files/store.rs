//! The served folder. Paths come from strangers: the operating system itself resolves them beneath the folder's handle,
//! so that neither `..` nor a symbolic link, also one planted between check and use, leads out of it.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use rustix::io::Errno;

use super::arriving::{Arriving, is_part};
use super::wire::{MAX_PATH, Refusal};

/// A folder that others may read from, and write to if it says so.
#[derive(Debug)]
pub(crate) struct Store {
    dir: Dir,
    writable: bool,
}

/// Why a file cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The path is not one that a file can have here.
    #[error("the path {0}: write it relative to the served folder, with '/' between its parts")]
    BadPath(&'static str),
    /// The name is one of a part.
    #[error("names that end with '.part' are those of files that are incomplete: choose another name")]
    PartName,
    /// There is no such file or folder.
    #[error("there is no such file or folder")]
    NotFound,
    /// The path leads out of the served folder, or the file's permissions forbid it.
    #[error("it is outside the served folder, or its permissions forbid it")]
    Forbidden,
    /// Nothing may be stored.
    #[error("the server is read-only: start it with --writable to allow this")]
    ReadOnly,
    /// It is a folder.
    #[error("it is a folder: name a file in it")]
    Folder,
    /// It is a device, a pipe or a socket.
    #[error("it is not a regular file")]
    NotAFile,
    /// Somebody has put a link where a part is to be.
    #[error(
        "a symbolic link has the name of its part, the same with '.part' at its end: remove the link, and try again"
    )]
    LinkedPart,
    /// The file system knows no such names.
    #[error("the name is too long for the file system, which also takes '.part' at its end while a file arrives")]
    LongName,
    /// Another transfer writes the same file.
    #[error(
        "another transfer is writing this file: wait until it has ended; one whose client is gone ends within two minutes"
    )]
    Busy,
    /// The disk is full.
    #[error("the disk is full: free some space; what has arrived is kept, the same command resumes")]
    NoSpace,
    /// Anything else that the file system reports.
    #[error("the file system reports: {0}")]
    Storage(io::Error),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            io::ErrorKind::IsADirectory => Self::NotAFile,
            io::ErrorKind::InvalidFilename => Self::LongName,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            // Of a socket, and of a device that is not there (open(2)).
            _ if Errno::from_io_error(&error) == Some(Errno::NXIO) => Self::NotAFile,
            _ => Self::Storage(error),
        }
    }
}

impl StoreError {
    /// The code that tells a peer.
    pub(crate) const fn refusal(&self) -> Refusal {
        match self {
            Self::BadPath(_) | Self::PartName | Self::LongName => Refusal::BadRequest,
            Self::NotFound => Refusal::NotFound,
            Self::Forbidden | Self::ReadOnly | Self::LinkedPart => Refusal::Forbidden,
            Self::Folder | Self::NotAFile => Refusal::NotAFile,
            Self::Busy => Refusal::Busy,
            Self::NoSpace => Refusal::NoSpace,
            Self::Storage(_) => Refusal::Storage,
        }
    }
}

impl Store {
    /// Opens the folder.
    pub(crate) fn open(dir: &Path, writable: bool) -> io::Result<Self> {
        Ok(Self { dir: Dir::open_ambient_dir(dir, ambient_authority())?, writable })
    }

    /// Opens a file for reading.
    pub(crate) fn read(&self, path: &str) -> Result<(File, Metadata), StoreError> {
        let path = checked(path)?;
        // Without waiting: opening a pipe that nobody writes to would otherwise never return.
        let file = self.dir.open_with(path, OpenOptions::new().read(true).nonblock(true))?.into_std();
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(StoreError::Folder);
        }
        if metadata.is_file() { Ok((file, metadata)) } else { Err(StoreError::NotAFile) }
    }

    /// Prepares to store a file, or to go on storing it.
    pub(crate) fn write(&self, path: &str) -> Result<Arriving, StoreError> {
        if !self.writable {
            return Err(StoreError::ReadOnly);
        }
        let path = checked(path)?;
        let name = path.file_name().ok_or(StoreError::BadPath("names no file"))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let dir = match parent {
            Some(parent) => self.dir.open_dir(parent)?,
            None => self.dir.try_clone()?,
        };
        Arriving::open(dir, name)
    }

    /// A file to show in an example: the first by name directly in the folder.
    pub(crate) fn example(&self) -> Option<String> {
        let entries = self.dir.entries().ok()?.take(10_000).filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = files.map(|entry| entry.file_name()).filter(|name| !is_part(name));
        let names = names.filter_map(|name| name.into_string().ok());
        names.filter(|name| !name.starts_with('.') && !name.chars().any(char::is_control)).min()
    }
}

/// The path if it could name a file beneath the folder. This is for clear messages; safety comes from how it is opened.
fn checked(path: &str) -> Result<PathBuf, StoreError> {
    if path.is_empty() || path.len() > MAX_PATH {
        return Err(StoreError::BadPath("is empty or too long"));
    }
    if path.contains('\0') {
        return Err(StoreError::BadPath("contains a NUL character"));
    }
    if path.ends_with('/') {
        return Err(StoreError::BadPath("names a folder"));
    }
    let path = PathBuf::from(path);
    for component in path.components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err(StoreError::BadPath("contains '..'")),
            Component::RootDir | Component::Prefix(_) => return Err(StoreError::BadPath("is absolute")),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;

    use super::*;

    fn folder() -> (tempfile::TempDir, Store) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("served");
        fs::create_dir_all(inner.join("sub")).unwrap();
        fs::write(inner.join("sub/b"), "inside").unwrap();
        fs::write(outer.path().join("secret"), "outside").unwrap();
        let store = Store::open(&inner, true).unwrap();
        (outer, store)
    }

    #[test]
    fn files_beneath_the_folder_are_read() {
        let (_outer, store) = folder();
        let (mut file, metadata) = store.read("sub/b").unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), metadata.len()), ("inside", 6));
    }

    #[test]
    fn no_path_leads_out() {
        let (outer, store) = folder();
        let secret = outer.path().join("secret");
        let absolute = secret.to_str().unwrap();
        for path in ["../secret", "sub/../../secret", "sub/..", absolute, "", "a\0b", "sub/", &"x/".repeat(3000)] {
            assert!(matches!(store.read(path), Err(StoreError::BadPath(_))), "{path}");
            assert!(matches!(store.write(path), Err(StoreError::BadPath(_))), "{path}");
        }
        assert!(matches!(store.read("sub"), Err(StoreError::Folder)));
        assert!(matches!(store.read("nothing"), Err(StoreError::NotFound)));
        assert!(matches!(store.write("no/folder"), Err(StoreError::NotFound)));
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_work_inside_and_fail_outside() {
        use std::os::unix::fs::symlink;
        let (outer, store) = folder();
        let served = outer.path().join("served");
        symlink("sub/b", served.join("inside")).unwrap();
        symlink("../secret", served.join("relative")).unwrap();
        symlink(outer.path().join("secret"), served.join("absolute")).unwrap();
        symlink(outer.path(), served.join("folder")).unwrap();
        assert!(store.read("inside").is_ok());
        for path in ["relative", "absolute", "folder/secret"] {
            assert!(matches!(store.read(path), Err(StoreError::Forbidden)), "{path}");
        }
        assert!(store.write("folder/new").is_err());
        // A link in the place of the partial file is not followed, wherever it leads.
        symlink("sub/b", served.join("x.part")).unwrap();
        assert!(matches!(store.write("x"), Err(StoreError::LinkedPart)));
        assert_eq!(fs::read_to_string(served.join("sub/b")).unwrap(), "inside");
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_no_file() {
        let (outer, store) = folder();
        let _socket = std::os::unix::net::UnixListener::bind(outer.path().join("served/socket")).unwrap();
        assert!(matches!(store.read("socket"), Err(StoreError::NotAFile)));
    }

    #[test]
    fn a_read_only_folder_stores_nothing() {
        let (outer, _) = folder();
        let store = Store::open(&outer.path().join("served"), false).unwrap();
        assert!(matches!(store.write("new"), Err(StoreError::ReadOnly)));
    }

    #[test]
    fn the_example_is_a_file() {
        let (outer, store) = folder();
        assert_eq!(store.example(), None);
        fs::write(outer.path().join("served/a.bin.part"), "").unwrap();
        assert_eq!(store.example(), None, "a part is not worth fetching");
        fs::write(outer.path().join("served/b.iso"), "").unwrap();
        fs::write(outer.path().join("served/a.iso"), "").unwrap();
        assert_eq!(store.example().as_deref(), Some("a.iso"));
    }
}
