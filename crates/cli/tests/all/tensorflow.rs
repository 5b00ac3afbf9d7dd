//! TensorFlow models as users give them: files, folders, checkpoints, and mo's spellings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

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
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let out = folder(&format!("outputs{}", RUNS.fetch_add(1, Ordering::Relaxed)));
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

// A graph with a picture of three channels, channels last, and a flag that chooses what is done with it.
const PICTURE: &str = r#"
node { name: "picture" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } dim { size: 2 } dim { size: 3 } } } } }
node { name: "is_training" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } }
    attr { key: "shape" value { shape { } } } }
node { name: "bad" op: "Neg" input: "picture" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Select" input: "is_training" input: "bad" input: "picture" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1900 }
"#;

fn picture(name: &str) -> PathBuf {
    let file = folder(name).join("picture.pbtxt");
    std::fs::write(&file, PICTURE).unwrap();
    file
}

#[test]
fn a_flag_is_frozen_to_a_value() {
    let (model, out) = (picture("freeze"), folder("frozen").join("frozen.xml"));
    let convert = |args: &[&str]| ok(&[&["convert", text(&model), "-o", text(&out)], args].concat());
    for args in [
        &["--freeze_placeholder_with_value", "is_training->False"][..],
        &["--freeze_placeholder_with_value", "is_training->False", "--input", "picture"],
        &["--freeze_placeholder_with_value", "is_training->0", "--input_shape", "[1,2,2,3]"],
        &["--input", "picture,is_training->False"],
    ] {
        convert(args);
        let shown = ok(&["inspect", text(&out)]);
        assert!(shown.contains("picture: f32[1,2,2,3]") && !shown.contains("is_training"), "{args:?}: {shown}");
    }
    let refused = |value: &str, more: &[&str], wanted: &str| {
        let args = [&["convert", text(&model), "-o", "x.xml", "--freeze_placeholder_with_value", value], more].concat();
        let e = fails(&args);
        assert!(e.contains(wanted), "{e}");
    };
    refused("is_training", &[], "`is_training` has no value");
    refused("nobody->1", &[], "nobody");
    refused("is_training->7", &[], "True or False");
    refused("is_training->True", &["--input", "is_training->False,picture"], "both give `is_training` a value");
}

#[test]
fn channels_are_found_behind_the_axes_of_a_picture() {
    let (model, out) = (picture("channels"), folder("reversed").join("picture.xml"));
    let frozen = ["--freeze_placeholder_with_value", "is_training->False", "--compress_to_fp16=False"];
    let values = out.with_file_name("picture.raw");
    let pixels: Vec<u8> = [1f32, 2.0, 4.0].repeat(4).iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(&values, pixels).unwrap();
    let run_with = |args: &[&str]| {
        ok(&[&["convert", text(&model), "-o", text(&out)], &frozen[..], args].concat());
        ok(&["run", text(&out), "-i", text(&values)])
    };
    assert!(run_with(&["--mean_values", "[1,2,3]"]).contains(" 0 0 1 0 0 1"));
    assert!(run_with(&["--mean_values", "picture[1,2,3]", "--layout", "nhwc"]).contains(" 0 0 1 0 0 1"));
    assert!(run_with(&["--mean_values", "[1,2,3]", "--reverse_input_channels"]).contains(" 3 0 -2 3 0 -2"));
    run_with(&["--layout", "picture(nhwc->nchw)"]);
    assert!(ok(&["inspect", text(&out)]).contains("picture: f32[1,3,2,2]"));
}

#[test]
fn what_belongs_to_saving_is_no_output() {
    for name in ["resource", "sharded", "version1"] {
        let shown = ok(&["inspect", &format!("{DATA}/checkpoint_{name}/model.ckpt.meta")]);
        assert!(shown.contains("output      y: f32[?,4]") && !shown.contains("save"), "{shown}");
    }
}

#[test]
fn what_is_no_graph_says_what_it_is() {
    let checkpoint = format!("{DATA}/checkpoint_resource/model.ckpt");
    let e = fails(&["run", &checkpoint]);
    assert!(e.contains("beside it lie") && e.contains("`model.ckpt.meta`"), "{e}");
    for file in [format!("{checkpoint}.index"), format!("{DATA}/checkpoint_version1/model.ckpt")] {
        let e = fails(&["inspect", &file]);
        assert!(e.contains("this is a checkpoint") && e.contains("--input_checkpoint"), "{e}");
    }
    let e = fails(&["run", &format!("{DATA}/saved_model_v1"), "--saved_model_tags", "train"]);
    assert!(e.contains("no graph with the tags `train`; pass one of `serve`, `gpu,serve`"), "{e}");
    let e = fails(&["run", &format!("{DATA}/frozen.pb"), "--input_checkpoint", "nowhere/model.ckpt"]);
    assert!(e.contains("there is no checkpoint `nowhere/model.ckpt`"), "{e}");
    let empty = folder("empty");
    let e = fails(&["convert", "--saved_model_dir", text(&empty), "-o", "x.xml"]);
    assert!(e.contains("holds no model"), "{e}");
    let keras = empty.join("model.h5");
    std::fs::write(&keras, b"\x89HDF\r\n\x1a\n").unwrap();
    let e = fails(&["convert", text(&keras), "-o", "x.xml"]);
    assert!(e.contains("load_model(FILE).export(FOLDER)"), "{e}");
}

#[test]
fn a_saved_model_without_signatures_gives_what_nobody_reads() {
    // The graph of a SavedModel as its only field: no tags, no signatures.
    let graph =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DATA).join("frozen.pb")).unwrap();
    let wrapped = |tag: u8, bytes: &[u8]| {
        let mut out = vec![tag];
        let mut n = bytes.len();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        [out, bytes.to_vec()].concat()
    };
    let saved = [vec![0x08, 1], wrapped(0x12, &wrapped(0x12, &graph))].concat();
    let dir = folder("unsigned");
    std::fs::write(dir.join("saved_model.pb"), saved).unwrap();
    assert_eq!(run(&[text(&dir)]), run(&[&format!("{DATA}/frozen.pb")]));
}

#[test]
fn types_that_nobody_knows_are_one_list_and_can_be_cut_off() {
    let model = picture("unknown");
    let unknown = PICTURE.replace("\"Select\"", "\"Elect\"").replace("\"Neg\"", "\"Nego\"");
    std::fs::write(&model, unknown).unwrap();
    let e = fails(&["convert", text(&model), "-o", "x.xml"]);
    for wanted in
        ["2 nodes of 2 operations", "1 x `Elect`", "1 x `Nego`", "`bad`", "`y`", "did you mean", "--extension"]
    {
        assert!(e.contains(wanted), "wanted `{wanted}` in {e}");
    }
    assert!(ok(&["inspect", text(&model)]).contains("Elect"));
    std::fs::write(&model, PICTURE.replace("\"Select\"", "\"Elect\"")).unwrap();
    let out = folder("cut_off").join("cut.xml");
    let shown = ok(&["convert", text(&model), "-o", text(&out), "--output", "bad", "--explain"]);
    assert!(shown.contains("left out"), "{shown}");
}

#[test]
fn a_signature_is_chosen_by_its_key() {
    let saved = format!("{DATA}/saved_model_v1");
    let shown = ok(&["inspect", &saved, "--signature", "words"]);
    assert!(shown.contains("words: string") && shown.contains("ids: ") && !shown.contains("scores"), "{shown}");
    let e = fails(&["inspect", &saved, "--signature", "nobody"]);
    assert!(e.contains("there is no signature `nobody`; the model has `serving_default`, `words`"), "{e}");
    let e = fails(&["inspect", &saved, "--subgraph", "1"]);
    assert!(e.contains("subgraph"), "{e}");
}

#[test]
fn signatures_and_sub_graphs_of_tflite_files_are_chosen() {
    let file = "crates/fe-tflite/tests/fixtures/two_signatures.tflite";
    let (first, second) = (run(&[file]), run(&[file, "--signature", "shifted"]));
    assert_ne!(first, second);
    assert_eq!(first, run(&[file, "--signature", "double"]));
    for choice in ["graph_shifted", "1"] {
        assert_eq!(second, run(&[file, "--subgraph", choice]));
    }
    assert!(ok(&["inspect", file, "--signature", "shifted"]).contains("given: f32[3]"));
    assert!(fails(&["run", file, "--signature", "other"]).contains("`double`, `shifted`"));
}
