//! Cases as `scripts/fixtures/kaldi.py` writes them, and utterances run through a model frame by frame.

use carafe::{CompiledModel, Core, Model, Properties, SharedBytes, Tensor};
use std::collections::BTreeSet;
use std::path::Path;

/// Relative error, measured against at least a hundredth of the largest of the output.
pub(crate) const TOLERANCE: f64 = 1e-4;

pub(crate) const FAMILIES: &[&str] = &["descriptors", "nnet1", "nnet2", "nnet3", "recurrent", "statistics"];

/// A network in both forms, what it is given and what it gives.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) binary: SharedBytes,
    pub(crate) text: SharedBytes,
    /// Frames that are repeated before the first and behind the last.
    pub(crate) context: (usize, usize),
    /// Only the output of the last frame is known.
    pub(crate) is_last: bool,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
}

/// All cases of a family.
pub(crate) fn cases(family: &str) -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{family}.npz"));
    let arrays = carafe_npy::read_npz(&std::fs::read(file).unwrap()).unwrap();
    let names: BTreeSet<&str> = arrays.iter().map(|(n, _)| n.split(':').next().unwrap()).collect();
    let case = |name: &str| {
        let one = |kind: &str| arrays.iter().find(|(n, _)| *n == format!("{name}:{kind}")).map(|(_, t)| t).unwrap();
        let list = |kind: &str| {
            let all = (0..).map(|i| arrays.iter().find(|(n, _)| *n == format!("{name}:{kind}:{i}")));
            all.map_while(|a| Some(a?.1.clone())).collect()
        };
        let bytes = |kind: &str| SharedBytes::from_vec(one(kind).bytes().to_vec());
        let context = one("context").to_vec::<i64>().unwrap().into_owned();
        Case {
            name: name.to_string(),
            binary: bytes("binary"),
            text: bytes("text"),
            context: (context[0] as usize, context[1] as usize),
            is_last: context[2] == 1,
            inputs: list("in"),
            outputs: list("out"),
        }
    };
    names.into_iter().map(case).collect()
}

/// One case.
pub(crate) fn case(family: &str, name: &str) -> Case {
    cases(family).into_iter().find(|c| c.name == name).unwrap_or_else(|| panic!("there is no case {family}/{name}"))
}

pub(crate) fn compile(core: &Core, model: &Model, device: &str) -> Result<CompiledModel, String> {
    core.compile_model(model, device, &Properties::new()).map_err(|e| e.to_string())
}

/// One row of a matrix, as a model takes it.
pub(crate) fn row(frames: &Tensor, at: usize) -> Tensor {
    let dim = frames.shape()[1];
    let values = frames.to_vec::<f32>().unwrap();
    Tensor::from_slice(&[1, dim], &values[at * dim..(at + 1) * dim]).unwrap()
}

impl Case {
    /// The frames of a step, the first and the last repeated as far as it takes.
    pub(crate) fn frame(&self, step: usize) -> Vec<Tensor> {
        let frames = self.inputs[0].shape()[0];
        let at = step.saturating_sub(self.context.0).min(frames - 1);
        self.inputs.iter().map(|x| row(x, at)).collect()
    }
    pub(crate) fn steps(&self) -> usize {
        self.inputs[0].shape()[0] + self.context.0 + self.context.1
    }

    /// Runs the utterance frame by frame, twice, with the state reset in between, and compares.
    pub(crate) fn run(&self, compiled: &CompiledModel) -> Result<(), String> {
        let request = compiled.create_infer_request();
        for round in 0..2 {
            let mut found: Vec<Vec<f32>> = vec![vec![]; self.outputs.len()];
            for step in 0..self.steps() {
                for (i, x) in self.frame(step).into_iter().enumerate() {
                    request.set_input(i, x).map_err(|e| e.to_string())?;
                }
                request.infer(()).map_err(|e| e.to_string())?;
                let is_wanted = match self.is_last {
                    true => step + 1 == self.steps(),
                    false => step >= self.context.0 + self.context.1,
                };
                for (i, rows) in found.iter_mut().enumerate().filter(|_| is_wanted) {
                    let y = request.output(i).map_err(|e| e.to_string())?;
                    rows.extend_from_slice(&y.to_vec::<f32>().unwrap());
                }
            }
            for (i, (found, wanted)) in found.iter().zip(&self.outputs).enumerate() {
                compare(&wanted.to_vec::<f64>().unwrap(), found)
                    .map_err(|e| format!("round {round}, output {i}: {e}"))?;
            }
            request.reset_state().map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

pub(crate) fn compare(wanted: &[f64], found: &[f32]) -> Result<(), String> {
    if wanted.len() != found.len() {
        return Err(format!("{} numbers, expected {}", found.len(), wanted.len()));
    }
    let largest = wanted.iter().fold(0.0f64, |m, w| m.max(w.abs()));
    for (i, (w, f)) in wanted.iter().zip(found).enumerate() {
        let is_same = (w - f64::from(*f)).abs() <= TOLERANCE * w.abs().max(1e-2 * largest);
        if !is_same {
            return Err(format!("element {i} is {f}, expected {w}"));
        }
    }
    Ok(())
}
