//! `carafe quantize` and `carafe compress-weights` as a user types them, on the demo model.

use crate::common::{MODEL, carafe, folder, repo};
use carafe::{ElementType, Properties, Tensor};
use std::path::Path;

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{args:?}: {said}");
    // A pipe is no terminal: nothing of the progress may be in it.
    assert_eq!(said, "", "{args:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Exit code and message of a command that must fail, and must leave nothing behind.
fn fails(args: &[&str], output: &Path) -> (i32, String) {
    let done = carafe(&[args, &["-o", output.to_str().unwrap()]].concat());
    assert!(!done.status.success(), "{args:?} succeeded");
    assert!(!output.exists() && !output.with_extension("bin").exists(), "{args:?} left a file");
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

fn write_npz(path: &Path, arrays: &[(&str, Tensor)]) -> String {
    let arrays: Vec<(String, Tensor)> = arrays.iter().map(|(n, t)| (n.to_string(), t.clone())).collect();
    std::fs::write(path, carafe_npy::write_npz(&arrays).unwrap()).unwrap();
    path.to_str().unwrap().to_string()
}

// Images that the demo was not trained on, as its input takes them, and what they show.
fn unseen() -> (Tensor, Vec<usize>) {
    let file = std::fs::read(repo().join("crates/cli/tests/digits-test.npz")).unwrap();
    let arrays = carafe_npy::read_npz(&file).unwrap();
    let array = |name: &str| arrays.iter().find(|(n, _)| n == name).unwrap().1.clone();
    let digits = array("digit").to_vec::<i64>().unwrap().iter().map(|d| *d as usize).collect();
    (array("image").cast(ElementType::F32).unwrap(), digits)
}

// Images that a model classifies right.
fn right(model: &str) -> usize {
    let (images, digits) = unseen();
    let compiled = carafe::core().compile_model(model, "CPU", &Properties::new()).unwrap();
    let scores = compiled.infer(images).unwrap().into_vec().remove(0);
    let rows = scores.as_slice::<f32>().unwrap().chunks_exact(10).zip(&digits);
    let greatest = |row: &[f32]| (0..10).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
    rows.filter(|(row, digit)| greatest(row) == **digit).count()
}

#[test]
fn the_demo_keeps_its_accuracy() {
    let dir = folder("quantize_accuracy");
    let float = right(repo().join(MODEL).to_str().unwrap());
    assert_eq!((float, unseen().1.len()), (438, 450));
    let out = dir.join("int8.xml");
    let out = out.to_str().unwrap();
    for calibration in ["min-max", "percentile", "entropy"] {
        ok(&["quantize", MODEL, "--data", "demo/digits", "-o", out, "--calibration", calibration]);
        let int8 = right(out);
        assert!(int8 + 3 >= float, "{calibration}: {int8} of 450 right, {float} in float");
    }
    for (mode, least) in [("int8", 437), ("int8_sym", 437), ("int4_asym", 433), ("int4_sym", 433)] {
        ok(&["compress-weights", MODEL, "-o", out, "--mode", mode, "--group-size", "32"]);
        assert!(right(out) >= least, "{mode}: {} of 450 right", right(out));
    }
}

#[test]
fn quantize_reports_layers_and_outputs() {
    let dir = folder("quantize_report");
    let out = dir.join("int8.xml");
    let out = out.to_str().unwrap();
    let text = ok(&["quantize", MODEL, "--data", "demo/digits", "-o", out]);
    for part in
        ["layer0/product  MatMul", "2 of 2 layers quantized with 10 samples", "output probabilities: error 0.0", out]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let json = ok(&["quantize", MODEL, "--data", "demo/digits", "-o", out, "--json", "--subset", "4"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["samples"].as_u64(), json["layers"].as_array().unwrap().len()), (Some(4), 2));
    assert!(json["drop"].as_f64().unwrap() < 0.05 && json["layers"][0]["sqnr_db"].as_f64().unwrap() > 20.0);
    let inspected = ok(&["inspect", out]);
    assert!(inspected.contains("FakeQuantize"), "{inspected}");
}

#[test]
fn data_may_be_one_npz_with_a_first_axis_of_samples() {
    let dir = folder("quantize_npz");
    let data = write_npz(&dir.join("data.npz"), &[("image", unseen().0)]);
    let out = dir.join("out.xml");
    let json = ok(&["quantize", MODEL, "--data", &data, "-o", out.to_str().unwrap(), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["samples"], 300);
}

#[test]
fn weights_stored_as_f16_are_quantized_too() {
    let dir = folder("quantize_f16");
    let (small, out) = (dir.join("small.xml"), dir.join("out.xml"));
    ok(&["convert", MODEL, "-o", small.to_str().unwrap()]);
    ok(&["quantize", small.to_str().unwrap(), "--data", "demo/digits", "-o", out.to_str().unwrap()]);
    assert!(std::fs::metadata(out.with_extension("bin")).unwrap().len() < 6000);
}

#[test]
fn ignored_layers_and_the_largest_drop_are_obeyed() {
    let dir = folder("quantize_scope");
    let out = dir.join("out.xml");
    let out = out.to_str().unwrap();
    let text = ok(&["quantize", MODEL, "--data", "demo/digits", "-o", out, "--ignored-scope", "regex:layer1.*"]);
    assert!(text.contains("1 of 2 layers") && text.contains("in float: ignored by pattern"), "{text}");
    let text = ok(&["quantize", MODEL, "--data", "demo/digits", "-o", out, "--max-drop", "0.5", "--metric", "top1"]);
    assert!(text.contains("2 of 2 layers"), "{text}");
}

#[test]
fn bad_data_is_told_before_anything_is_written() {
    let dir = folder("quantize_bad");
    let out = dir.join("out.xml");
    let run = |data: &str| fails(&["quantize", MODEL, "--data", data], &out);
    let (code, text) = run(dir.join("nowhere").to_str().unwrap());
    assert!(code == 1 && text.contains("cannot read"), "{text}");
    std::fs::create_dir(dir.join("empty")).unwrap();
    let (code, text) = run(dir.join("empty").to_str().unwrap());
    assert!(code == 1 && text.contains("holds no samples"), "{text}");
    let tensor =
        |shape: &[usize], x: f64| Tensor::from_f64(ElementType::F32, shape, &vec![x; shape.iter().product()]).unwrap();
    let data = write_npz(&dir.join("name.npz"), &[("picture", tensor(&[1, 1, 8, 8], 1.0))]);
    let (code, text) = run(&data);
    assert!(code == 2 && text.contains("has no input `picture`; it has: image"), "{text}");
    let data = write_npz(&dir.join("shape.npz"), &[("image", tensor(&[4, 1, 9, 9], 1.0))]);
    let (code, text) = run(&data);
    assert!(code == 2 && text.contains("no list of samples of that shape"), "{text}");
    let data = write_npz(&dir.join("nan.npz"), &[("image", tensor(&[4, 1, 8, 8], f64::NAN))]);
    let (code, text) = run(&data);
    assert!(code == 1 && text.contains("sample 0 of the calibration data") && text.contains("NaN"), "{text}");
    std::fs::create_dir(dir.join("mixed")).unwrap();
    std::fs::write(dir.join("mixed/a.npy"), carafe_npy::write_npy(&tensor(&[1, 1, 7, 8], 1.0)).unwrap()).unwrap();
    let (code, text) = run(dir.join("mixed").to_str().unwrap());
    assert!(code == 2 && text.contains("a.npy") && text.contains("takes f32[?,1,8,8]"), "{text}");
}

#[test]
fn wrong_options_are_told() {
    let dir = folder("quantize_options");
    let out = dir.join("out.xml");
    let quantize = |more: &[&str]| fails(&[&["quantize", MODEL, "--data", "demo/digits"], more].concat(), &out);
    for (more, part, code) in [
        (&["--max-drop", "0.0000000001"][..], "cannot be reached", 1),
        (&["--max-drop", "nan"], "--max-drop must not be below 0", 2),
        (&["--max-drop", "-1"], "--max-drop must not be below 0, found -1", 2),
        (&["--percentile", "-3"], "--percentile must be above 0 and at most 100, found -3", 2),
        (&["--ignored-scope", "nobody"], "has no node `nobody`", 2),
        (&["--ignored-scope", "type:MatMul"], "nothing is left to quantize", 2),
        (&["--smooth-quant", "7"], "--smooth-quant must be from 0 to 1", 2),
        (&["--percentile", "0"], "--percentile must be above 0", 2),
        (&["--subset", "0"], "--subset must be at least 1", 2),
        (&["--device", "NOWHERE"], "NOWHERE", 1),
    ] {
        let (found, text) = quantize(more);
        assert!(found == code && text.contains(part), "{more:?}: {found} {text}");
    }
    let compress = |more: &[&str]| fails(&[&["compress-weights", MODEL], more].concat(), &out);
    for (more, part, code) in [
        (&["--group-size", "0"][..], "--group-size must be at least 1", 2),
        (&["--mode", "int4_sym", "--group-size", "7"], "no weights can be stored as int4_sym", 2),
        (&["--ratio", "2"], "ratio must be from 0 to 1", 2),
        (&["--ratio", "-0.1"], "ratio must be from 0 to 1, found -0.1", 2),
        (&["--ignored-scope", "type:MatMul"], "ignored by type MatMul", 1),
    ] {
        let (found, text) = compress(more);
        assert!(found == code && text.contains(part), "{more:?}: {found} {text}");
    }
    let (code, text) = fails(&["compress-weights", MODEL], &dir.join("out.bin"));
    assert!(code == 2 && text.contains("must end with .xml"), "{text}");
}

#[test]
fn compress_weights_reports_what_each_layer_became() {
    let dir = folder("compress_report");
    let out = dir.join("out.xml");
    let out = out.to_str().unwrap();
    let text = ok(&["compress-weights", MODEL, "-o", out, "--mode", "int4_asym", "--group-size", "32"]);
    for part in ["int4_asym  32", "the last layer stays at 8 bits", "weights: 18944 bytes before"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let json = ok(&["compress-weights", MODEL, "-o", out, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["layers"][0]["mode"], "int8");
}
