//! The cache of compiled models, as far as the device has a part in it.

use super::bench::{Bench, Outcome, infer, row, same};
use super::{ensure, suite};
use carafe::{CompiledModel, Model, Properties};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

suite!("cache":
    a_folder_does_no_harm,
    the_second_compilation_is_loaded,
    another_core_loads_it_too,
    another_model_is_not_loaded,
    another_property_is_not_loaded,
    a_damaged_entry_is_compiled_again,
);

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        Folder(std::env::temp_dir().join(format!("carafe-conformance-{}-{n}", std::process::id())))
    }
    fn properties(&self) -> Properties {
        Properties::new().with("CACHE_DIR", self.0.display())
    }
    fn files(&self) -> Vec<PathBuf> {
        let list = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        list.map(|e| e.path()).filter(|p| p.is_file()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_loaded(compiled: &CompiledModel) -> Outcome<bool> {
    Ok(compiled.property("LOADED_FROM_CACHE")? == "true")
}

fn right(compiled: &CompiledModel, model: &Model) -> Outcome {
    same(&infer(compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}

fn a_folder_does_no_harm(b: &Bench) -> Outcome {
    let (folder, model) = (Folder::new(), b.weighted()?);
    for _ in 0..2 {
        let compiled = b.compile_with(&model, &folder.properties())?;
        right(&compiled, &model)?;
        ensure!(b.can_export() || !is_loaded(&compiled)?, "loaded by a device that cannot import");
    }
    Ok(())
}

fn the_second_compilation_is_loaded(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let (folder, model) = (Folder::new(), b.weighted()?);
    let first = b.compile_with(&model, &folder.properties())?;
    ensure!(!is_loaded(&first)?, "the first compilation says that it was loaded");
    let second = b.compile_with(&model, &folder.properties())?;
    ensure!(is_loaded(&second)?, "the second compilation was not loaded");
    super::compile::check_ports(&second, &model)?;
    right(&second, &model)
}

fn another_core_loads_it_too(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let (folder, model) = (Folder::new(), b.weighted()?);
    b.compile_with(&model, &folder.properties())?;
    let properties = b.properties().overlaid(&folder.properties());
    let second = b.target.core()?.compile_model(&model, b.device(), &properties)?;
    ensure!(is_loaded(&second)?, "the compilation of another core was not loaded");
    right(&second, &model)
}

fn another_model_is_not_loaded(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let (folder, one, two) = (Folder::new(), b.chain("1,4", 2), b.chain("1,4", 3));
    b.compile_with(&one, &folder.properties())?;
    let compiled = b.compile_with(&two, &folder.properties())?;
    ensure!(!is_loaded(&compiled)?, "another model was loaded");
    right(&compiled, &two)
}

fn another_property_is_not_loaded(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    if !b.has_property("PERF_COUNT") {
        return Err(super::bench::Stop::Skipped("PERF_COUNT is not in the table".into()));
    }
    let (folder, model) = (Folder::new(), b.plain());
    b.compile_with(&model, &folder.properties().with("PERF_COUNT", "false"))?;
    let compiled = b.compile_with(&model, &folder.properties().with("PERF_COUNT", "true"))?;
    let found = compiled.property("PERF_COUNT")?;
    ensure!(found == "true", "compiled with PERF_COUNT=true, the loaded model says {found}");
    right(&compiled, &model)
}

fn a_damaged_entry_is_compiled_again(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let (folder, model) = (Folder::new(), b.weighted()?);
    b.compile_with(&model, &folder.properties())?;
    for file in folder.files() {
        let mut bytes = std::fs::read(&file).unwrap_or_default();
        let half = bytes.len() / 2;
        bytes.truncate(half);
        let mut open = std::fs::metadata(&file).map(|m| m.permissions());
        if let Ok(p) = &mut open {
            #[allow(clippy::permissions_set_readonly_false)]
            p.set_readonly(false);
            let _ = std::fs::set_permissions(&file, p.clone());
        }
        std::fs::write(&file, bytes).map_err(|e| carafe::Error::io("cannot damage the entry", &e))?;
    }
    right(&b.compile_with(&model, &folder.properties())?, &model)
}
