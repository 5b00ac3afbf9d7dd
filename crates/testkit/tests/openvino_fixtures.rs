//! Models that OpenVINO and the old converters wrote, with the outputs OpenVINO computed: each must load, run on every
//! device and give the same numbers, as it is and after it was written and read by us. Made by
//! `scripts/crosscheck-openvino --fixtures` and `scripts/fixtures/old-converters`.

use carafe::{Core, Model, Properties, SharedBytes, Tensor};
use carafe_testkit::compare::{Tolerance, compare};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut trials = Vec::new();
    for set in ["crosscheck", "old-converters"] {
        let Ok(list) = std::fs::read_dir(root.join(set)) else { continue };
        for dir in list.flatten().map(|e| e.path()).filter(|d| d.join("case.json").exists()) {
            let name = format!("{set}::{}", dir.file_name().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(name, move || check(&dir)));
        }
    }
    assert!(trials.len() > 100, "fixtures are missing: {} found", trials.len());
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn check(dir: &Path) -> Result<(), Failed> {
    let case: Json = serde_json::from_slice(&std::fs::read(dir.join("case.json"))?)?;
    let core = carafe::core();
    let model = core.read_model(dir.join("model.xml"))?;
    run(&core, &model, dir, &case)?;
    let (xml, weights) = carafe::ir::write_to(&model, &Default::default())?;
    let options = carafe::ir::ReadOptions { old_api: false, ..Default::default() };
    let again = carafe::ir::read(&xml, SharedBytes::from_vec(weights), &core.registry(), &options)?;
    run(&core, &again, dir, &case)
        .map_err(|e| Failed::from(format!("after writing and reading: {}", e.message().unwrap_or(""))))
}

fn run(core: &Core, model: &Model, dir: &Path, case: &Json) -> Result<(), Failed> {
    for device in core.available_devices() {
        let compiled = core.compile_model(model, &device, &Properties::new())?;
        let mut request = compiled.clone().create_request();
        for (name, file) in case["inputs"].as_object().ok_or("no inputs")? {
            let index = model.find_parameter(name).ok_or_else(|| format!("no input `{name}`"))?;
            request.set_input(index, load(dir, file)?.cast(compiled.inputs()[index].ty)?)?;
        }
        for _ in 0..case["repeat"].as_u64().unwrap_or(1) {
            request.infer()?;
        }
        let expected = case["outputs"].as_array().ok_or("no outputs")?;
        if expected.len() != compiled.outputs().len() {
            return Err(format!("{} outputs, expected {}", compiled.outputs().len(), expected.len()).into());
        }
        for (i, row) in expected.iter().enumerate() {
            let found = request.output(i)?;
            let ty = row["element_type"].as_str().ok_or("no element type")?;
            if found.element_type().name() != ty {
                return Err(format!("output {i} has type {}, expected {ty}", found.element_type()).into());
            }
            if case["judge"] == "values" {
                let expected = load(dir, &row["file"])?.cast(found.element_type())?;
                let number = |key: &str| row[key].as_f64().or(case[key].as_f64()).unwrap_or(0.0);
                let tolerance = Tolerance { rtol: number("rtol"), atol: number("atol") };
                compare(&expected, found, tolerance).map_err(|e| format!("output {i} on {device}: {e}"))?;
            }
        }
    }
    Ok(())
}

fn load(dir: &Path, file: &Json) -> Result<Tensor, Failed> {
    let path: PathBuf = dir.join(file.as_str().ok_or("no file name")?);
    Ok(carafe_npy::read_npy(&std::fs::read(path)?)?)
}
