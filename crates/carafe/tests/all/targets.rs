//! A crate without unit tests, or without examples in its docs, says so in its Cargo.toml and is not compiled again to look for
//! them. Whoever adds the first one must hear of it.

use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// Whether a doc comment opens a block of Rust.
fn has_example(text: &str) -> bool {
    let docs = text.lines().map(str::trim_start).filter_map(|l| l.strip_prefix("///").or(l.strip_prefix("//!")));
    let fences = docs.filter_map(|l| l.trim().strip_prefix("```"));
    // Every second one closes.
    fences.step_by(2).any(|words| !words.split(',').any(|word| word == "text"))
}

#[test]
fn a_crate_that_turns_tests_off_has_none() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = std::fs::read_to_string(crates.join("../scripts/test")).unwrap();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        // A package of its own may compile the same files for their tests.
        let has_units = crates.join(format!("testkit/{name}-units/Cargo.toml")).is_file();
        let package = if name == "carafe" { name } else { format!("carafe-{name}") };
        let is_asked_for = script.split_whitespace().any(|word| word == package);
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let off = |line: &str| manifest.lines().any(|l| l == line);
        for file in sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let is_tested = !off("test = false") || has_units;
            assert!(is_tested || !text.contains("#[test]"), "{}: `test = false`", file.display());
            let runs = !off("doctest = false") && is_asked_for;
            assert!(runs || !has_example(&text), "{}: `doctest = false`, or not in scripts/test", file.display());
        }
    }
}
