//! One test per case file and path: `leaky_relu::direct`. Narrow with a filter argument (`-- leaky_relu`), or with the
//! environment variable `CASES`: a case file, a folder of them, or `file:line` for a single case.

use carafe_testkit::{CaseError, CaseFile, Path as CasePath, coverage, kernel_coverage};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let wanted = std::env::var("CASES").ok();
    let mut trials = Vec::new();
    let mut files = Vec::new();
    for read in read_files(wanted.as_deref()) {
        match read {
            Ok(file) => files.push(Arc::new(file)),
            Err(e) => {
                let name = format!("{}::parse", e.file.file_stem().unwrap_or_default().to_string_lossy());
                trials.push(Trial::test(name, move || Err(Failed::from(e.to_string()))));
            }
        }
    }
    for file in &files {
        for &path in CasePath::ALL {
            let file = Arc::clone(file);
            let name = format!("{}::{}", file.name, path.name());
            trials.push(Trial::test(name, move || Ok(path.run_file(&file)?)));
        }
    }
    let all: Vec<CaseFile> = files.iter().map(|f| (**f).clone()).collect();
    let again = all.clone();
    trials.push(Trial::test("every_op_round_trips_its_attributes", move || {
        Ok(coverage::every_op_round_trips_its_attributes(&again)?)
    }));
    if wanted.is_none() {
        let (kernels, own) = (all.clone(), all.clone());
        trials.push(Trial::test("every_own_op_has_an_oracle", move || Ok(coverage::every_own_op_has_an_oracle(&own)?)));
        trials.push(Trial::test("every_op_has_three_cases", move || Ok(coverage::every_op_has_three_cases(&all)?)));
        trials.push(Trial::test("cpu_kernels_are_those_of_the_list", move || {
            let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("cpu-kernels.txt");
            Ok(kernel_coverage::cpu_kernels_are_those_of_the_list(&kernels, &list)?)
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The case files that `CASES` names, or all of them.
fn read_files(wanted: Option<&str>) -> Vec<Result<CaseFile, CaseError>> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(wanted) = wanted else { return read_folder(&crate_folder.join("cases")) };
    let (path, line) = match wanted.rsplit_once(':').map(|(p, n)| (p, n.parse::<usize>())) {
        Some((path, Ok(line))) => (path, Some(line)),
        _ => (wanted, None),
    };
    // Tests run in the folder of their crate, while people type paths from the root of the workspace.
    let candidates =
        [PathBuf::from(path), crate_folder.join("../..").join(path), crate_folder.join("cases").join(path)];
    let path = candidates.iter().find(|p| p.exists()).unwrap_or(&candidates[0]);
    if path.is_dir() {
        return read_folder(path);
    }
    let mut file = CaseFile::read(path);
    if let (Ok(file), Some(line)) = (&mut file, line) {
        let at = file.cases.iter().rposition(|c| c.line <= line).unwrap_or(0);
        file.cases = file.cases.split_off(at);
        file.cases.truncate(1);
    }
    vec![file]
}

fn read_folder(folder: &Path) -> Vec<Result<CaseFile, CaseError>> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry of the folder").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "case"));
    paths.sort();
    paths.iter().map(|p| CaseFile::read(p)).collect()
}
