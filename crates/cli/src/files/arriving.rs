//! A file that arrives piece by piece: it grows as `NAME.part` and becomes `NAME` in one step when it is complete. No
//! list of what has arrived is needed beside it: the part is always the beginning of the file, and its hash says of which.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;

use cap_fs_ext::{FollowSymlinks, MetadataExt as _, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions};
use rustix::io::Errno;
use sha2::Sha256;

use super::store::StoreError;

/// What the name of an incomplete file ends with.
pub(crate) const SUFFIX: &str = ".part";

/// Whether a name is that of an incomplete file, for a file system that knows no case, too.
pub(crate) fn is_part(name: &OsStr) -> bool {
    name.as_encoded_bytes().to_ascii_lowercase().ends_with(SUFFIX.as_bytes())
}

/// An incomplete file, locked against other transfers. Nothing is left of one in which nothing has arrived, wherever the
/// transfer breaks off.
#[derive(Debug)]
pub(crate) struct Arriving {
    dir: Dir,
    name: OsString,
    part: OsString,
    file: File,
    complete: bool,
}

impl Arriving {
    /// Opens or makes `NAME.part` in `dir`.
    pub(crate) fn open(dir: Dir, name: &OsStr) -> Result<Self, StoreError> {
        // It may be the part of another transfer, or become it before this one ends: the rename would put this file in its
        // place, and the other transfer's rename would give it the other's name.
        if is_part(name) {
            return Err(StoreError::PartName);
        }
        // Neither a folder nor a device or a pipe, which a rename would replace.
        match dir.metadata(name) {
            Ok(found) if found.is_dir() => return Err(StoreError::Folder),
            Ok(found) if !found.is_file() => return Err(StoreError::NotAFile),
            _ => {}
        }
        let mut part = name.to_owned();
        part.push(SUFFIX);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).follow(FollowSymlinks::No).nonblock(true);
        let file = dir.open_with(&part, &options).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => StoreError::LinkedPart,
            _ => error.into(),
        })?;
        let file = file.into_std();
        if !file.metadata()?.is_file() {
            return Err(StoreError::NotAFile);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // A transfer that ended between our opening and our locking has renamed what we hold: it is complete, not ours.
        let held = Metadata::from_file(&file)?;
        let named = dir.symlink_metadata(&part).map_err(|_| StoreError::Busy)?;
        if (held.dev(), held.ino()) != (named.dev(), named.ino()) {
            return Err(StoreError::Busy);
        }
        let arriving = Self { dir, name: name.to_owned(), part, file, complete: false };
        // As private as the file that it will replace, before anything is in it.
        if let Ok(old) = arriving.dir.metadata(name) {
            let mode = cap_std::fs::MetadataExt::mode(&old) & 0o777;
            arriving.file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(arriving)
    }

    /// Hashes what is there of an earlier attempt; more than `limit` bytes are not of the same file and are forgotten. Reads
    /// that much, while it is `wanted`: call it where blocking is allowed.
    pub(crate) fn resume(&mut self, limit: u64, wanted: &dyn Fn() -> bool) -> io::Result<(Sha256, u64)> {
        if self.file.metadata()?.len() > limit {
            self.restart()?;
        }
        self.file.seek(SeekFrom::Start(0))?;
        super::hash_prefix(&mut self.file, limit, wanted)
    }

    /// Forgets what is there.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(drop)
    }

    /// Makes the part the file: durable first, then visible.
    pub(crate) fn commit(mut self) -> Result<(), StoreError> {
        self.file.sync_all()?;
        self.dir.rename(&self.part, &self.dir, &self.name)?;
        self.complete = true;
        // The rename itself is durable only when the folder is. Some file systems cannot sync one, and need not.
        if let Err(error) = self.dir.open(".").and_then(|dir| dir.sync_all()) {
            tracing::debug!(%error, "the folder cannot be synced");
        }
        Ok(())
    }

    /// Keeps what has arrived for later: makes it durable. Returns its length.
    pub(crate) fn keep(self) -> io::Result<u64> {
        self.file.sync_all()?;
        Ok(self.file.metadata()?.len())
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // The lock still holds, so that the name is this file's.
        if !self.complete && self.file.metadata().is_ok_and(|part| part.len() == 0) {
            let _ = self.dir.remove_file(&self.part);
        }
    }
}

impl Write for Arriving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cap_std::ambient_authority;

    use super::super::Hash;
    use super::*;

    fn open(folder: &tempfile::TempDir) -> Result<Arriving, StoreError> {
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        Arriving::open(dir, OsStr::new("f"))
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let mut arriving = open(&folder).unwrap();
        arriving.write_all(b"hello").unwrap();
        assert!(!folder.path().join("f").exists());
        arriving.commit().unwrap();
        assert_eq!(fs::read(folder.path().join("f")).unwrap(), b"hello");
        assert!(!folder.path().join("f.part").exists());
    }

    #[test]
    fn a_kept_part_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let mut arriving = open(&folder).unwrap();
        arriving.write_all(b"hel").unwrap();
        assert_eq!(arriving.keep().unwrap(), 3);
        let mut arriving = open(&folder).unwrap();
        let (hasher, length) = arriving.resume(5, &|| true).unwrap();
        let (expected, _) = super::super::hash_prefix(&mut &b"hel"[..], 3, &|| true).unwrap();
        assert_eq!((length, Hash::of(&hasher)), (3, Hash::of(&expected)));
        arriving.write_all(b"lo").unwrap();
        arriving.commit().unwrap();
        assert_eq!(fs::read(folder.path().join("f")).unwrap(), b"hello");
    }

    #[test]
    fn a_part_longer_than_the_file_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f.part"), "much too long").unwrap();
        let mut arriving = open(&folder).unwrap();
        assert_eq!(arriving.resume(5, &|| true).unwrap().1, 0);
        arriving.write_all(b"hel").unwrap();
        drop(arriving);
        assert_eq!(fs::read(folder.path().join("f.part")).unwrap(), b"hel");
    }

    #[test]
    fn nothing_is_left_of_a_file_of_which_nothing_has_arrived() {
        let folder = tempfile::tempdir().unwrap();
        let left = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        drop(open(&folder).unwrap());
        assert_eq!(left(), [""; 0]);
        assert_eq!(open(&folder).unwrap().keep().unwrap(), 0);
        assert_eq!(left(), [""; 0]);
        // A complete file that is empty is not one of which nothing has arrived.
        open(&folder).unwrap().commit().unwrap();
        assert_eq!(left(), ["f"]);
    }

    #[test]
    fn two_transfers_do_not_write_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let _first = open(&folder).unwrap();
        assert!(matches!(open(&folder), Err(StoreError::Busy)));
    }

    #[test]
    fn no_transfer_writes_over_the_part_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(&folder).unwrap();
        first.write_all(b"hello").unwrap();
        for name in ["f.part", "F.PART", ".part"] {
            let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
            assert!(matches!(Arriving::open(dir, OsStr::new(name)), Err(StoreError::PartName)), "{name}");
        }
        first.commit().unwrap();
        assert_eq!(fs::read(folder.path().join("f")).unwrap(), b"hello");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("f")).unwrap();
        assert!(matches!(open(&folder), Err(StoreError::Folder)));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("f")).unwrap();
        assert!(matches!(open(&folder), Err(StoreError::NotAFile)));
        assert!(!folder.path().join("f.part").exists());
    }
}
