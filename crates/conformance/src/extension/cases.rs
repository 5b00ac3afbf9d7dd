//! The cases of a project: `tests/cases.json` lists models, what goes in and what must come out.

use super::{Outcome, is_half, run};
use crate::compare::{Tolerance, compare};
use carafe::{Core, ElementType, Error, Properties, Result, Tensor};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A model with one set of inputs and outputs.
#[derive(Clone, Debug)]
pub struct ModelCase {
    pub name: String,
    pub path: PathBuf,
    inputs: Vec<Data>,
    outputs: Vec<Data>,
    tolerance: f64,
}

#[derive(Clone, Debug)]
struct Data {
    shape: Vec<usize>,
    values: Vec<f64>,
}

/// Reads a list of cases; paths of models are relative to the file.
pub fn read_cases(path: &Path) -> Result<Vec<ModelCase>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(format!("cannot read `{}`", path.display()), &e))?;
    let wrong = |what: String| Error::invalid(format!("`{}`: {what}", path.display()));
    let all: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("not JSON: {e}")))?;
    let all = all.as_array().ok_or_else(|| wrong("expected a list of cases".into()))?;
    let one = |(i, v): (usize, &Value)| {
        let model = v["model"].as_str().ok_or_else(|| wrong(format!("$[{i}].model: expected the path of a model")))?;
        let data = |key: &str| -> Result<Vec<Data>> {
            let list = v[key].as_array().ok_or_else(|| wrong(format!("$[{i}].{key}: expected a list of tensors")))?;
            list.iter()
                .enumerate()
                .map(|(k, v)| tensor(v).map_err(|e| wrong(format!("$[{i}].{key}[{k}]: {e}"))))
                .collect()
        };
        Ok(ModelCase {
            name: model.rsplit('/').next().unwrap_or_default().to_string(),
            path: path.parent().unwrap_or(Path::new(".")).join(model),
            inputs: data("inputs")?,
            outputs: data("outputs")?,
            tolerance: v["tolerance"].as_f64().unwrap_or(1e-5),
        })
    };
    all.iter().enumerate().map(one).collect()
}

fn tensor(v: &Value) -> Result<Data, String> {
    let shape: Option<Vec<usize>> =
        v["shape"].as_array().and_then(|s| s.iter().map(|d| d.as_u64().map(|d| d as usize)).collect());
    let shape = shape.ok_or("`shape`: expected a list of sizes")?;
    let values: Option<Vec<f64>> = v["data"].as_array().and_then(|s| s.iter().map(Value::as_f64).collect());
    let values = values.ok_or("`data`: expected a list of numbers")?;
    let n: usize = shape.iter().product();
    match n == values.len() {
        true => Ok(Data { shape, values }),
        false => Err(format!("shape {shape:?} has {n} elements, `data` {}", values.len())),
    }
}

impl ModelCase {
    pub(super) fn run(&self, core: &Core, device: &str) -> Outcome {
        match self.compare(core, device) {
            Ok(outcome) => outcome,
            Err(e) => Outcome::Failed(e),
        }
    }

    fn compare(&self, core: &Core, device: &str) -> Result<Outcome, String> {
        let model = core.read_model(&self.path).map_err(|e| e.to_string())?;
        let query = core.query_model(&model, device, &Properties::new()).map_err(|e| e.to_string())?;
        if let Some(u) = query.unsupported.first() {
            return Ok(Outcome::Skipped(format!("the device does not take `{}`: {}", u.name, u.reason)));
        }
        let ports = model.parameters();
        if ports.len() != self.inputs.len() {
            return Err(format!("the model has {} inputs, the case {}", ports.len(), self.inputs.len()));
        }
        let inputs = ports.iter().zip(&self.inputs).map(|(p, data)| {
            let ty = model.fact((*p).into()).ty;
            Tensor::from_f64(ty, &data.shape, &data.values).map_err(|e| e.to_string())
        });
        let found = run(core, &model, device, &inputs.collect::<Result<Vec<_>, _>>()?)?;
        if found.len() != self.outputs.len() {
            return Err(format!("the model has {} outputs, the case {}", found.len(), self.outputs.len()));
        }
        let tolerance = if is_half(device) { self.tolerance.max(5e-3) } else { self.tolerance };
        for (i, (t, wanted)) in found.iter().zip(&self.outputs).enumerate() {
            let wanted =
                Tensor::from_f64(ElementType::F64, &wanted.shape, &wanted.values).map_err(|e| e.to_string())?;
            let t = t.cast(ElementType::F64).map_err(|e| e.to_string())?;
            compare(&wanted, &t, Tolerance { rtol: tolerance, atol: tolerance })
                .map_err(|e| format!("output {i}: {e}"))?;
        }
        let s = if found.len() == 1 { "" } else { "s" };
        Ok(Outcome::Passed(format!("{} output{s}", found.len())))
    }
}
