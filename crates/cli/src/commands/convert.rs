//! `carafe convert`: read, clean, write.

use super::{print, read};
use crate::args::{ConvertArgs, LogLevel};
use carafe::passes::{COMMON, CompressToFp16};
use carafe::{Core, Error, Model, Notes, Result, run_passes};
use std::path::Path;

pub(crate) fn run(core: &Core, args: &ConvertArgs) -> Result<()> {
    let model = read(core, &args.model, false)?;
    let mut notes = if args.log_level == LogLevel::Debug { Notes::enabled() } else { Notes::default() };
    let written = convert(model, &args.output, args.compress_to_fp16, &mut notes);
    for line in &notes.lines {
        eprintln!("[ DEBUG ] {line}");
    }
    written?;
    print(&format!("{}\n{}\n", args.output.display(), args.output.with_extension("bin").display()))
}

/// Cleans a model and writes it.
pub(crate) fn convert(mut model: Model, output: &Path, compress_to_fp16: bool, notes: &mut Notes) -> Result<()> {
    if output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("xml")) {
        return Err(Error::usage(format!("output `{}` must end with .xml", output.display())));
    }
    run_passes(&mut model, COMMON, notes)?;
    if compress_to_fp16 {
        run_passes(&mut model, &[&CompressToFp16], notes)?;
    }
    if let Some(folder) = output.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::io(format!("cannot create folder `{}`", folder.display()), &e))?;
    }
    let options = carafe::ir::WriteOptions { runtime_version: Some(format!("carafe {}", carafe::VERSION)) };
    carafe::ir::write_file(&model, output, &options).map_err(|e| e.at(format!("output `{}`", output.display())))
}
