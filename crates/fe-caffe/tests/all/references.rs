//! Every net under `fixtures` gives the numbers that lie beside it. `scripts/fixtures/caffe.py` writes them; the head of each
//! .prototxt says whose numbers they are and who else agrees.

use carafe_fe_caffe::Caffe;
use carafe_frontend::ReadRequest;
use carafe_graph::Model;
use carafe_tensor::Tensor;
use std::path::{Path, PathBuf};

const TOLERANCE: f64 = 1e-4;

fn nets() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path());
    let mut nets: Vec<PathBuf> = files.filter(|f| f.extension().is_some_and(|e| e == "prototxt")).collect();
    nets.sort();
    nets
}

#[test]
fn nets_give_the_numbers_beside_them() {
    let nets = nets();
    assert!(nets.len() > 150, "{} nets", nets.len());
    let mut failures = vec![];
    for path in &nets {
        let found = carafe_frontend::read(&Caffe::default(), &ReadRequest::new(path)).map_err(|e| e.to_string());
        if let Err(e) = found.and_then(|model| check(&model, path)) {
            failures.push(format!("{}: {e}", path.file_stem().unwrap_or_default().display()));
        }
    }
    assert!(failures.is_empty(), "{} of {} nets:\n{}", failures.len(), nets.len(), failures.join("\n"));
}

fn check(model: &Model, path: &Path) -> Result<(), String> {
    let arrays = std::fs::read(path.with_extension("npz")).map_err(|e| e.to_string())?;
    let arrays = carafe_npy::read_npz(&arrays).map_err(|e| e.to_string())?;
    let named = |name: String| arrays.iter().find(|(n, _)| *n == name).map(|(_, t)| t.clone());
    let mut inputs = vec![];
    for &p in model.parameters() {
        let name = model.node(p).name();
        inputs.push(named(format!("in:{name}")).ok_or_else(|| format!("no array for input `{name}`"))?);
    }
    let outputs = model.evaluate(&inputs).map_err(|e| e.to_string())?;
    let wanted: Vec<_> = arrays.iter().filter(|(n, _)| n.starts_with("out:")).collect();
    if wanted.len() != outputs.len() {
        return Err(format!("{} outputs, expected {}", outputs.len(), wanted.len()));
    }
    for (&result, found) in model.results().iter().zip(&outputs) {
        let source = model.node(result).inputs()[0];
        let names = [&model.output(source).names, &model.output(result.into()).names];
        let is = |name: &str| names.iter().any(|all| all.contains(&name["out:".len()..]));
        let Some((name, wanted)) = wanted.iter().find(|(n, _)| is(n)) else {
            return Err(format!("no array for output `{}`", model.node(result).name()));
        };
        compare(wanted, found).map_err(|e| format!("`{name}`: {e}"))?;
    }
    Ok(())
}

// The largest relative error, where numbers far below the largest one count as a thousandth of it.
fn compare(wanted: &Tensor, found: &Tensor) -> Result<(), String> {
    if wanted.shape() != found.shape() {
        return Err(format!("shape {:?}, expected {:?}", found.shape(), wanted.shape()));
    }
    let (wanted, found) = (wanted.to_vec::<f64>().unwrap(), found.to_vec::<f64>().unwrap());
    let largest = wanted.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (i, (w, f)) in wanted.iter().zip(found.iter()).enumerate() {
        let error = (w - f).abs() / w.abs().max(1e-3 * largest).max(1e-3);
        if error.is_nan() || error > TOLERANCE {
            return Err(format!("element {i} is {f}, expected {w}"));
        }
    }
    Ok(())
}
