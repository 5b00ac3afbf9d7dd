//! Puts a model on disk. Both files are written beside their final places and then renamed, so a failure leaves what was
//! there before, and weights that are mapped from the very file that is replaced stay readable.

use super::write_text;
use crate::WriteOptions;
use carafe_graph::{Error, Model, Result};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes `xml_path` and the weights beside it, with the extension `.bin`.
pub fn write_file(model: &Model, xml_path: &Path, options: &WriteOptions) -> Result<()> {
    write_both(model, xml_path, options).map_err(|e| e.at(format!("model `{}`", xml_path.display())))
}

fn write_both(model: &Model, xml_path: &Path, options: &WriteOptions) -> Result<()> {
    if !xml_path.extension().is_some_and(|e| e.eq_ignore_ascii_case("xml")) {
        return Err(Error::usage("the file of an IR must have the extension `.xml`"));
    }
    let bin_path = xml_path.with_extension("bin");
    for path in [xml_path, &bin_path] {
        if path.is_dir() {
            return Err(Error::usage(format!("`{}` is a folder", path.display())));
        }
    }
    let (mut bin, mut xml) = (Beside::create(&bin_path)?, Beside::create(xml_path)?);
    let mut out = BufWriter::with_capacity(1 << 20, bin.file());
    let text = write_text(model, options, &mut out)?;
    out.flush().map_err(|e| Error::io("cannot write weights", &e))?;
    drop(out);
    xml.file().write_all(text.as_bytes()).map_err(|e| Error::io("cannot write", &e))?;
    bin.finish()?;
    xml.finish().inspect_err(|_| drop(fs::remove_file(&bin_path)))
}

/// A file with a name of its own, in the folder of the file it will become; removed when that does not happen.
struct Beside<'p> {
    target: &'p Path,
    path: PathBuf,
    file: Option<File>,
}

impl<'p> Beside<'p> {
    fn create(target: &'p Path) -> Result<Beside<'p>> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let unique = format!(".{name}.{}-{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = target.with_file_name(unique);
        let file = File::create_new(&path)
            .map_err(|e| Error::io(format!("cannot create a file in the folder of `{}`", target.display()), &e))?;
        Ok(Beside { target, path, file: Some(file) })
    }

    fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("open until `finish`")
    }

    // Not synchronised with the disk: that would take longer than all the rest, for a file that can be made again.
    fn finish(mut self) -> Result<()> {
        self.file = None;
        fs::rename(&self.path, self.target)
            .map_err(|e| Error::io(format!("cannot write `{}`", self.target.display()), &e))
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.file = None;
        // Gone already after a rename.
        let _ = fs::remove_file(&self.path);
    }
}
