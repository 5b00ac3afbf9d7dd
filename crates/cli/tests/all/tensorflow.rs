//! TensorFlow models as users give them: files, folders, checkpoints, and mo's spellings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DATA: &str = "crates/fe-tensorflow/tests/data/containers";

fn carafe(args: &[&str]) -> Output {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).current_dir(repo).output().unwrap()
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
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tensorflow").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

// The bytes of the only output.
fn run(args: &[&str]) -> Vec<u8> {
    let out = folder("outputs");
    ok(&[&["run"], args, &["--fill", "random", "-o", text(&out)]].concat());
    let files = std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().path());
    let mut arrays = files.filter(|f| f.extension().is_some_and(|e| e == "npy"));
    std::fs::read(arrays.next().unwrap()).unwrap()
}

#[test]
fn a_model_comes_in_every_spelling() {
    let (graph, meta) =
        (format!("{DATA}/checkpoint_resource/graph.pb"), format!("{DATA}/checkpoint_resource/model.ckpt.meta"));
    let checkpoint = format!("{DATA}/checkpoint_resource/model.ckpt");
    let wanted = run(&[&meta]);
    assert_eq!(wanted, run(&["--input_meta_graph", &meta]));
    assert_eq!(wanted, run(&[&graph, "--input_checkpoint", &checkpoint]));
    assert_eq!(wanted, run(&["--input_model", &graph, "--weights", &format!("{checkpoint}.index")]));
    assert_eq!(
        run(&[&format!("{DATA}/frozen.pb")]),
        run(&["-m", &format!("{DATA}/frozen.pbtxt"), "--input_model_is_text"])
    );
    let saved = format!("{DATA}/saved_model_v1");
    let served = run(&[&saved]);
    assert_eq!(served, run(&["--saved_model_dir", &saved, "--saved_model_tags", "serve"]));
    assert_ne!(served, run(&[&saved, "--saved_model_tags", "serve,gpu"]));
    assert!(ok(&["inspect", &saved]).contains("scores: f32[?,4]"));
    let out = folder("spellings");
    let options =
        ["--output_dir", text(&out), "--framework", "tf", "--compress_to_fp16=False", "--disable_nhwc_to_nchw"];
    ok(&[&["convert", "--saved_model_dir", &saved], &options[..]].concat());
    assert_eq!(served, run(&[text(&out.join("saved_model_v1.xml"))]));
    ok(&[&["convert", "--input_meta_graph", &meta, "--model_name", "meta"], &options[..]].concat());
    assert_eq!(wanted, run(&[text(&out.join("meta.xml"))]));
}

#[test]
fn a_graph_is_cut_by_signature_keys_and_node_names() {
    let out = folder("cut").join("cut.xml");
    let saved = format!("{DATA}/saved_model_v2");
    let convert = |args: &[&str]| ok(&[&["convert", &saved, "-o", text(&out)], args].concat());
    convert(&["--output", "indices"]);
    let shown = ok(&["inspect", text(&out)]);
    assert!(shown.contains("indices: i32[?,2]") && !shown.contains("values"), "{shown}");
    convert(&["--input", "features[5,3]"]);
    assert!(ok(&["inspect", text(&out)]).contains("features: f32[5,3]"));
}

#[test]
fn what_has_no_meaning_is_refused_with_a_reason() {
    let model = format!("{DATA}/frozen.pb");
    let e = fails(&["convert", &model, "-o", "x.xml", "--tensorboard_logdir", "logs"]);
    assert!(e.contains("--tensorboard_logdir") && e.contains("carafe inspect --dot"), "{e}");
    let e = fails(&["run", &format!("{DATA}/saved_model_v1/assets")]);
    assert!(e.contains("saved_model.pb"), "{e}");
    let e = fails(&["run", &format!("{DATA}/checkpoint_resource/graph.pb")]);
    assert!(e.contains("--input_checkpoint"), "{e}");
    let e = fails(&["run", &model, "--input_proto", "x"]);
    assert!(e.contains("input_proto"), "{e}");
}
