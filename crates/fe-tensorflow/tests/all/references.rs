//! Every graph under `data` gives the numbers that lie beside it in an `.npz`: arrays `i.NAME` are inputs, `o.NAME` outputs, by
//! tensor name. The scripts `scripts/fixtures/tf*` write them with TensorFlow.

use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::ReadRequest;
use carafe_graph::Model;
use carafe_tensor::Tensor;
use std::path::{Path, PathBuf};

const TOLERANCE: f64 = 1e-4;

fn graphs(folder: &Path, found: &mut Vec<PathBuf>) {
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        match file.is_dir() {
            true => graphs(&file, found),
            false if file.extension().is_some_and(|e| e == "pb") && file.with_extension("npz").is_file() => {
                found.push(file);
            }
            false => {}
        }
    }
}

#[test]
fn graphs_give_the_numbers_beside_them() {
    let mut all = vec![];
    graphs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), &mut all);
    all.sort();
    let mut failures = vec![];
    for path in &all {
        let found = carafe_frontend::read(&TensorFlow, &ReadRequest::new(path)).map_err(|e| e.to_string());
        if let Err(e) = found.and_then(|model| check(&model, path)) {
            failures.push(format!("{}: {e}", path.file_stem().unwrap_or_default().display()));
        }
    }
    assert!(failures.is_empty(), "{} of {} graphs:\n{}", failures.len(), all.len(), failures.join("\n"));
}

/// Runs a model on the inputs of an archive and compares with its outputs.
pub(crate) fn check(model: &Model, path: &Path) -> Result<(), String> {
    carafe_graph::verify(model).map_err(|e| format!("not a sound model: {e}"))?;
    let arrays = std::fs::read(path.with_extension("npz")).map_err(|e| e.to_string())?;
    let arrays = carafe_npy::read_npz(&arrays).map_err(|e| e.to_string())?;
    let named = |kind: &str, names: &mut dyn Iterator<Item = &String>| -> Option<Tensor> {
        let names: Vec<String> = names.map(|n| format!("{kind}.{n}")).collect();
        arrays.iter().find(|(n, _)| names.contains(n)).map(|(_, t)| t.clone())
    };
    let mut inputs = vec![];
    for &p in model.parameters() {
        let input = named("i", &mut model.output(p.into()).names.iter());
        inputs.push(input.ok_or_else(|| format!("no array for the input `{}`", model.node(p).name()))?);
    }
    let outputs = model.evaluate(&inputs).map_err(|e| e.to_string())?;
    let mut compared = 0;
    for (&r, found) in model.results().iter().zip(&outputs) {
        let mut names = model.output(model.result_value(r)).names.iter().chain(&model.output(r.into()).names);
        let Some(wanted) = named("o", &mut names) else { continue };
        compared += 1;
        same(found, &wanted).map_err(|e| format!("output `{}`: {e}", model.node(r).name()))?;
    }
    let wanted = arrays.iter().filter(|(n, _)| n.starts_with("o.")).count();
    if compared == wanted { Ok(()) } else { Err(format!("{compared} of {wanted} outputs were compared")) }
}

fn same(found: &Tensor, wanted: &Tensor) -> Result<(), String> {
    let (a, b) = (found.element_type(), wanted.element_type());
    if (a, found.shape()) != (b, wanted.shape()) {
        return Err(format!("{a}{:?}, wanted {b}{:?}", found.shape(), wanted.shape()));
    }
    if let (Ok(a), Ok(b)) = (found.strings(), wanted.strings()) {
        return if a == b { Ok(()) } else { Err(format!("{a:?}, wanted {b:?}")) };
    }
    let values = |t: &Tensor| t.to_vec::<f64>().map(|v| v.into_owned()).map_err(|e| e.to_string());
    let (found, wanted) = (values(found)?, values(wanted)?);
    let close = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= TOLERANCE * (1.0 + b.abs());
    match found.iter().zip(&wanted).position(|(a, b)| !close(*a, *b)) {
        None => Ok(()),
        Some(i) => Err(format!("element {i} is {}, wanted {}", found[i], wanted[i])),
    }
}
