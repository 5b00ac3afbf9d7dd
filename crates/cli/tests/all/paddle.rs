//! Paddle models as users give them: parameters beside the program or given, folders, programs in JSON, and mo's spellings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fe-paddle/tests/fixtures").join(name)
}

fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{args:?}: {err}");
    String::from_utf8(done.stdout).unwrap()
}

fn fails(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    String::from_utf8(done.stderr).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paddle").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

// The file of the only output, over an input that is the same each time.
fn run(args: &[&str]) -> Vec<u8> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let out = folder(&format!("out-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
    ok(&[&["run"], args, &["--fill", "random", "-o", text(&out)]].concat());
    let files = std::fs::read_dir(out).unwrap().map(|f| f.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|f| f.extension().is_some_and(|e| e == "npy")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::read(&files[0]).unwrap()
}

#[test]
fn a_program_finds_its_parameters_in_every_layout() {
    let (program, params) = (fixture("net.pdmodel"), fixture("net.pdiparams"));
    let beside = run(&[text(&program)]);
    let apart = folder("apart");
    let alone = apart.join("alone.pdmodel");
    std::fs::copy(&program, &alone).unwrap();
    assert_eq!(beside, run(&[text(&alone), "--weights", text(&params)]));
    let old = folder("old");
    std::fs::copy(&program, old.join("__model__")).unwrap();
    std::fs::copy(&params, old.join("__params__")).unwrap();
    assert_eq!(beside, run(&[text(&old)]));
    let err = fails(&["run", text(&alone), "--fill", "random"]);
    assert!(err.contains("pass the file of the parameters as weights"), "{err}");
}

#[test]
fn a_program_in_json_runs_and_is_shown() {
    let program = fixture("net_json.json");
    assert!(ok(&["inspect", text(&program)]).contains("MatMul"));
    run(&[text(&program)]);
}

#[test]
fn a_converted_program_gives_the_same() {
    for name in ["net.pdmodel", "net_json.json"] {
        let program = fixture(name);
        let out = folder(&format!("converted-{}", name.len()));
        let options = ["--output_dir", text(&out), "--framework", "paddle", "--compress_to_fp16=False", "-n", "net"];
        ok(&[&["convert", "--input_model", text(&program)], &options[..]].concat());
        assert_eq!(run(&[text(&program)]), run(&[text(&out.join("net.xml"))]));
    }
}

#[test]
fn a_program_of_another_framework_is_refused() {
    let program = fixture("net.pdmodel");
    let out = folder("other");
    let err = fails(&["convert", text(&program), "--framework", "onnx", "--output_dir", text(&out)]);
    assert!(err.contains("is PaddlePaddle, not onnx"), "{err}");
}
