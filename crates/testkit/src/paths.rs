//! The ways a case is run. Each must come to the result that the case states, so one line of text tests them all.

use crate::case::{Case, CaseFile};
use crate::dynamic;
use crate::guard::caught;
use crate::runner::{InputsAs, build, check_facts, check_outputs, feed, is_unfoldable, result_facts};
use carafe_graph::{Constant, Error, EvalEnv, Model, Result, Value, eval_node};
use carafe_tensor::Tensor;

/// Larger outputs may stay unfolded.
const ALWAYS_FOLDED_BYTES: usize = 1 << 20;

/// One way of running a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Inputs are parameters, and the model is evaluated.
    Direct,
    /// Inputs are constants, and folding must leave constants alone.
    Folded,
    /// Inference with shapes made unknown must agree with the real ones.
    Dynamic,
}

impl Path {
    pub const ALL: &[Path] = &[Path::Direct, Path::Folded, Path::Dynamic];

    pub fn name(self) -> &'static str {
        match self {
            Path::Direct => "direct",
            Path::Folded => "folded",
            Path::Dynamic => "dynamic",
        }
    }

    /// Runs one case; the error says what was expected and found. A panic is a failure too.
    pub fn run(self, case: &Case) -> Result<(), String> {
        caught(|| match self {
            Path::Direct | Path::Folded if case.is_inference() => {
                check_facts(case, build(case, InputsAs::Parameters).map(|m| result_facts(&m)))
            }
            Path::Direct => check_outputs(case, direct(case)),
            Path::Folded => check_outputs(case, folded(case)),
            Path::Dynamic => dynamic::check(case),
        })
    }

    /// Runs all cases of a file and gathers every failure with its line.
    pub fn run_file(self, file: &CaseFile) -> Result<(), String> {
        let failures: Vec<String> =
            file.cases.iter().filter_map(|c| self.run(c).err().map(|e| format!("{}: {e}", c.place()))).collect();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

/// Parameters, evaluated.
pub fn direct(case: &Case) -> Result<Vec<Tensor>> {
    let model = build(case, InputsAs::Parameters)?;
    model.evaluate(&feed(case, &model)?)
}

fn folded(case: &Case) -> Result<Vec<Tensor>> {
    let mut model = build(case, InputsAs::Constants)?;
    if is_unfoldable(&model) {
        return model.evaluate(&[]);
    }
    fold(&mut model)?;
    let outputs = model.evaluate(&[])?;
    for (&r, tensor) in model.results().iter().zip(&outputs) {
        let producer = model.node(model.result_value(r).node);
        if !producer.op().is::<Constant>() && tensor.byte_len() <= ALWAYS_FOLDED_BYTES {
            return Err(Error::invalid(format!("{} was not folded", producer.place())));
        }
    }
    Ok(outputs)
}

// Replaces every node whose inputs are constants by its outputs.
fn fold(model: &mut Model) -> Result<()> {
    for id in model.topological_order()? {
        let node = model.node(id);
        let value = |v: &Value| model.node(v.node).op().get::<Constant>().map(|c| c.tensor().clone());
        let tensors: Option<Vec<Tensor>> = node.inputs().iter().map(value).collect();
        let Some(tensors) = tensors.filter(|_| !node.op().is::<Constant>() && !model.results().contains(&id)) else {
            continue;
        };
        let outputs = eval_node(model, id, tensors, &mut EvalEnv::default())?;
        for (port, tensor) in outputs.into_iter().enumerate() {
            let constant = model.constant(&format!("folded.{port}"), tensor)?;
            model.replace_value(Value { node: id, port }, constant);
        }
    }
    model.prune();
    Ok(())
}
