//! Libraries print nothing: what they notice goes to the log hook.

use std::path::{Path, PathBuf};

/// What may print, with the reason.
const MAY_PRINT: &[&str] = &[
    // The command is what prints.
    "crates/command/",
    // So does the C API where the program has set no log callback: the original prints there too.
    "crates/capi/src/log.rs",
    // Handlers that a program asks for by `report_crashes`; they run when the process is dying.
    "crates/abi/src/crash.rs",
];

const WAYS: &[&str] = &["println!", "print!", "dbg!", "io::stdout()", "io::stderr()", "STDERR_FILENO", "STDOUT_FILENO"];

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "benches", "examples", "target"].contains(&name.as_str()) {
            sources(&path, all);
        } else if name.ends_with(".rs") && name != "build.rs" {
            all.push(path);
        }
    }
}

#[test]
fn no_library_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![];
    sources(&root.join("crates"), &mut files);
    let mut found = vec![];
    for file in &files {
        let shown = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        if MAY_PRINT.iter().any(|p| shown.starts_with(p)) {
            continue;
        }
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        let prints = code.filter(|(_, line)| WAYS.iter().any(|way| line.contains(way)));
        found.extend(prints.map(|(n, line)| format!("{shown}:{}: {}", n + 1, line.trim())));
    }
    assert!(files.len() > 300, "only {} files were looked at", files.len());
    assert!(found.is_empty(), "use the log hook (carafe_graph::log) instead:\n{}", found.join("\n"));
}
