//! Folders with a model, its inputs and the outputs another engine or a specification gives for them. A test target with
//! its own `main` calls [`run_all`]; each folder must load, run on every device and give the same numbers, as it is and
//! after it was written as IR and read again. The tensors of a sequence count as outputs one by one.

use crate::compare::{Tolerance, compare};
use carafe::{Core, ItemType, Model, Properties, SharedBytes, Tensor};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// Runs every folder of these sets under `fixtures/` as a test and ends the process. Fewer folders than `least` mean
/// that the fixtures are not where they should be, and panic.
pub fn run_all(sets: &[&str], least: usize) -> ! {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut trials = Vec::new();
    for set in sets {
        let Ok(list) = std::fs::read_dir(root.join(set)) else { continue };
        for dir in list.flatten().map(|e| e.path()).filter(|d| d.join("case.json").exists()) {
            let name = format!("{set}::{}", dir.file_name().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(name, move || check(&dir)));
        }
    }
    assert!(trials.len() >= least, "fixtures are missing: {} found", trials.len());
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}

fn check(dir: &Path) -> Result<(), Failed> {
    let case: Json = serde_json::from_slice(&std::fs::read(dir.join("case.json"))?)?;
    let core = crate::core_in_f32();
    let file = ["model.xml", "model.onnx"].iter().map(|f| dir.join(f)).find(|f| f.exists()).ok_or("no model file")?;
    let model = core.read_model(file)?;
    run(&core, &model, dir, &case)?;
    let (xml, weights) = carafe::ir::write_to(&model, &Default::default())?;
    let options = carafe::ir::ReadOptions { old_api: false, ..Default::default() };
    let again = carafe::ir::read(&xml, SharedBytes::from_vec(weights), &core.registry(), &options)?;
    run(&core, &again, dir, &case)
        .map_err(|e| Failed::from(format!("after writing and reading: {}", e.message().unwrap_or(""))))
}

fn run(core: &Core, model: &Model, dir: &Path, case: &Json) -> Result<(), Failed> {
    for device in core.available_devices() {
        // Numbers are compared more strictly than halves can be.
        let words = core.get_property(&device, "OPTIMIZATION_CAPABILITIES")?;
        if words.contains("FP16") && !words.contains("FP32") {
            continue;
        }
        let compiled = core.compile_model(model, &device, &Properties::new())?;
        let request = compiled.create_infer_request();
        for (name, file) in case["inputs"].as_object().ok_or("no inputs")? {
            let index = model.find_parameter(name).ok_or_else(|| format!("no input `{name}`"))?;
            let tensor = match model.packed_type(model.parameters()[index]) {
                Some(ty) => load_packed(dir, file, &ty)?,
                None => load(dir, file)?.cast(compiled.inputs()[index].ty)?,
            };
            request.set_input(index, tensor)?;
        }
        for _ in 0..case["repeat"].as_u64().unwrap_or(1) {
            request.infer(())?;
        }
        let expected = case["outputs"].as_array().ok_or("no outputs")?;
        let mut outputs = Vec::new();
        for (i, &result) in model.results().iter().enumerate() {
            match model.packed_type(result) {
                Some(ty) => outputs.extend(ty.unpack(&request.output(i)?)?.into_iter().flatten()),
                None => outputs.push(request.output(i)?),
            }
        }
        if expected.len() != outputs.len() {
            return Err(format!("{} outputs, expected {}", outputs.len(), expected.len()).into());
        }
        for (i, (row, found)) in expected.iter().zip(&outputs).enumerate() {
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

// A list of files is a sequence, one file an optional with content, null one without.
fn load_packed(dir: &Path, files: &Json, ty: &ItemType) -> Result<Tensor, Failed> {
    let items = match files {
        Json::Null => None,
        Json::Array(list) => Some(list.iter().map(|f| load(dir, f)).collect::<Result<Vec<_>, _>>()?),
        one => Some(vec![load(dir, one)?]),
    };
    let cast = |t: &Tensor| if ty.element_type().is_dynamic() { Ok(t.clone()) } else { t.cast(ty.element_type()) };
    let items = items.map(|list| list.iter().map(cast).collect::<Result<Vec<_>, _>>()).transpose()?;
    Ok(ty.pack(items.as_deref())?)
}

fn load(dir: &Path, file: &Json) -> Result<Tensor, Failed> {
    let path: PathBuf = dir.join(file.as_str().ok_or("no file name")?);
    Ok(carafe_npy::read_npy(&std::fs::read(path)?)?)
}
