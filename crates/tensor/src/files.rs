//! Files that a user or a model names. Only regular files are read: a pipe or a device would block or never end. A file is
//! written beside its final name and then renamed, so that a failure leaves what was there before.

use crate::memory::ensure_memory;
use crate::{SharedBytes, TensorError};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Larger descriptions (XML, JSON, protobuf text, lists of labels) are not read.
pub const MOST_TEXT_BYTES: u64 = 1 << 30;

thread_local! {
    static OPENED: RefCell<Option<Vec<PathBuf>>> = const { RefCell::new(None) };
}

/// Runs `work` and says which files it opened on this thread, each once: the files that a model consists of.
pub fn watched<T>(work: impl FnOnce() -> T) -> (T, Vec<PathBuf>) {
    /// Ends the list, also when the work panics.
    struct Before(Option<Vec<PathBuf>>);
    impl Drop for Before {
        fn drop(&mut self) {
            OPENED.replace(self.0.take());
        }
    }
    let before = Before(OPENED.replace(Some(vec![])));
    let done = work();
    let files = OPENED.take().unwrap_or_default();
    drop(before);
    (done, files)
}

fn note(path: &Path) {
    OPENED.with_borrow_mut(|files| {
        if let Some(files) = files
            && !files.iter().any(|f| f == path)
        {
            files.push(path.to_path_buf());
        }
    });
}

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened, since opening a pipe waits for a writer; and after it, should the name mean another file by then.
    check_kind(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    check_kind(&file.metadata()?)?;
    note(path);
    Ok(file)
}

fn check_kind(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = if found.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    let what = if found.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
    Err(io::Error::new(kind, format!("it is {what}, not a regular file")))
}

/// Maps a regular file for reading, see [`SharedBytes::map_file`]. An empty file gives no bytes.
pub fn map(path: &Path) -> io::Result<SharedBytes> {
    let file = open(path)?;
    // An empty file cannot be mapped everywhere.
    if file.metadata()?.len() == 0 { Ok(SharedBytes::from_vec(vec![])) } else { SharedBytes::map_file(&file) }
}

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    let too_large = |size: u64| {
        io::Error::new(ErrorKind::FileTooLarge, format!("it has {size} bytes, more than {most} are not read"))
    };
    if size > most {
        return Err(too_large(size));
    }
    let mut bytes = Vec::new();
    usize::try_from(size)
        .map_err(|_| too_large(size))
        .and_then(|size| reserve(&mut bytes, size).map_err(|e| io::Error::new(ErrorKind::OutOfMemory, e)))?;
    // One byte more shows that it grew meanwhile.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

fn reserve(bytes: &mut Vec<u8>, size: usize) -> Result<(), TensorError> {
    ensure_memory(size)?;
    bytes.try_reserve_exact(size).map_err(|_| TensorError::OutOfMemory { bytes: size })
}

/// Reads a regular file of text in UTF-8, of at most [`MOST_TEXT_BYTES`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, MOST_TEXT_BYTES)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 text: byte {at} is wrong"))
    })
}

/// Reads a whole open file to a 64-byte boundary. Unlike a mapping, what was read stays when the file is cut short later.
pub fn read_aligned(mut file: &File) -> io::Result<SharedBytes> {
    let no_memory = |e: TensorError| io::Error::new(ErrorKind::OutOfMemory, e);
    let size = usize::try_from(file.metadata()?.len()).map_err(|_| io::Error::from(ErrorKind::FileTooLarge))?;
    let mut bytes = SharedBytes::zeroed(size).map_err(no_memory)?;
    let to = bytes.unique_mut().unwrap_or_default();
    file.read_exact(to)?;
    Ok(bytes)
}

/// Writes a whole file, beside its name first.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = Beside::create(path)?;
    beside.file().write_all(bytes)?;
    beside.finish()
}

/// A file with a name of its own, in the folder of the file it will become; removed when that does not happen.
#[derive(Debug)]
pub struct Beside<'p> {
    target: &'p Path,
    path: PathBuf,
    file: Option<File>,
}

impl<'p> Beside<'p> {
    /// Starts the file that becomes `target`.
    pub fn create(target: &'p Path) -> io::Result<Beside<'p>> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let unique = format!(".{name}.{}-{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = target.with_file_name(unique);
        let file = File::create_new(&path)?;
        Ok(Beside { target, path, file: Some(file) })
    }

    /// Where to write to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("open until `finish`")
    }

    /// Gives it its name. Not synchronised with the disk: that would take longer than all the rest, for a file that can be
    /// made again.
    pub fn finish(mut self) -> io::Result<()> {
        self.file = None;
        fs::rename(&self.path, self.target)
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.file = None;
        // Gone already after a rename.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("carafe-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    #[cfg(unix)]
    fn a_device_is_refused_rather_than_read_for_ever() {
        let e = read(Path::new("/dev/zero"), 10).unwrap_err();
        assert_eq!(e.to_string(), "it is a pipe, a socket or a device, not a regular file");
        assert!(map(Path::new("/dev/zero")).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_is_refused_rather_than_waited_for() {
        let dir = folder("pipe");
        let path = dir.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(open(&path).unwrap_err().to_string().contains("not a regular file"));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_folder_is_refused_by_its_kind() {
        assert_eq!(open(&std::env::temp_dir()).unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn files_that_were_opened_are_known_once() {
        let dir = folder("watched");
        let (one, two) = (dir.join("one"), dir.join("two"));
        fs::write(&one, "1").unwrap();
        fs::write(&two, "2").unwrap();
        let (text, files) = watched(|| {
            let inner = watched(|| map(&two).unwrap());
            assert_eq!(inner.1, std::slice::from_ref(&two));
            assert!(open(&dir.join("three")).is_err());
            map(&one).unwrap();
            read_text(&one).unwrap()
        });
        assert_eq!((text.as_str(), files), ("1", vec![one]));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn more_bytes_than_allowed_are_not_read() {
        let dir = folder("most");
        let path = dir.join("x");
        write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().to_string(), "it has 5 bytes, more than 4 are not read");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_what_was_there() {
        let dir = folder("beside");
        let path = dir.join("x");
        write(&path, b"old").unwrap();
        let mut beside = Beside::create(&path).unwrap();
        beside.file().write_all(b"ne").unwrap();
        drop(beside);
        assert_eq!(read(&path, 10).unwrap(), b"old");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_empty_file_maps_to_no_bytes() {
        let dir = folder("empty");
        let path = dir.join("x");
        write(&path, b"").unwrap();
        assert!(map(&path).unwrap().is_empty());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn bytes_that_were_read_stay_when_the_file_is_cut() {
        let dir = folder("cut");
        let path = dir.join("x");
        write(&path, &[7; 10_000]).unwrap();
        let bytes = read_aligned(&open(&path).unwrap()).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert!(bytes.as_slice() == [7; 10_000]);
        fs::remove_dir_all(dir).unwrap();
    }
}
