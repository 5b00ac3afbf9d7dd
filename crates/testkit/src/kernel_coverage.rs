//! Which operations the CPU device runs by kernels, found from the cases and held against a list in the repository, so that a
//! kernel that begins to decline is seen although every result stays right.

use crate::case::{Case, CaseFile, Expect, Subject};
use crate::paths::core;
use crate::runner::{InputsAs, build, find_op, make_op};
use carafe_graph::{Constant, Model, Parameter, Result, ResultOp, Value};
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Operation, type of its first input, and how that lies: what the list has a line for.
type Key = (String, String, &'static str);

/// Set to write the list instead of checking it.
const BLESS: &str = "BLESS";

/// How many cases run by kernels alone, for each key that has such a case.
fn found(files: &[CaseFile]) -> BTreeMap<Key, usize> {
    let mut counts = BTreeMap::new();
    let cases = files.iter().flat_map(|f| &f.cases);
    for case in cases.filter(|c| !c.is_inference() && !matches!(c.expect, Expect::Error(_))) {
        let Subject::Op { name, opset } = &case.subject else { continue };
        let (Ok(factory), Some(first)) = (find_op(name, opset.as_deref()), case.inputs.first()) else { continue };
        let plain = [InputsAs::Parameters, InputsAs::ConstantsButFirst]
            .into_iter()
            .any(|inputs_as| build(case, inputs_as).is_ok_and(|m| runs_by_kernels(&m)));
        let last = channels_last(case).is_ok_and(|m| m.is_some_and(|m| runs_by_kernels(&m)));
        for (taken, layout) in [(plain, "plain"), (last, "channels_last")] {
            if taken {
                let key = (format!("{}.{}", factory.info.opset, factory.info.name), first.ty.to_string(), layout);
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    counts
}

// The case with its first input behind a convolution that leaves its numbers as they are, and the others as constants.
fn channels_last(case: &Case) -> Result<Option<Model>> {
    let (Some(op), Some(first)) = (make_op(case)?, case.inputs.first()) else { return Ok(None) };
    let Some(shape) = first.value.as_ref().map(|t| t.shape().to_vec()) else { return Ok(None) };
    if first.ty != ElementType::F32 || !(3..=5).contains(&shape.len()) || shape.contains(&0) {
        return Ok(None);
    }
    let (channels, spatial) = (shape[1], shape.len() - 2);
    let mut model = Model::new("case");
    let x = model.parameter("x", ElementType::F32, PartialShape::of(&shape))?;
    let same: Vec<f32> = (0..channels * channels).map(|i| f32::from(i / channels == i % channels)).collect();
    let filters: Vec<usize> = [channels, channels].into_iter().chain(vec![1; spatial]).collect();
    let filters = model.constant("filters", Tensor::from_vec(&filters, same)?)?;
    let front = Convolution {
        strides: vec![1; spatial],
        pads_begin: vec![0; spatial],
        pads_end: vec![0; spatial],
        dilations: vec![1; spatial],
        auto_pad: PadType::Explicit,
    };
    let mut inputs: Vec<Value> = vec![model.add("front", front, &[x, filters])?.into()];
    for input in &case.inputs[1..] {
        let Some(tensor) = &input.value else { return Ok(None) };
        inputs.push(model.constant(&input.label, tensor.clone())?);
    }
    let node = model.add_ref("op", op, &inputs)?;
    for port in 0..model.node(node).outputs().len() {
        model.result(&format!("result_{port}"), Value { node, port })?;
    }
    Ok(Some(model))
}

// Whether the device evaluates no operation of the model by its definition.
fn runs_by_kernels(model: &Model) -> bool {
    let Ok(compiled) = core().compile_model(model, "CPU", &carafe::Properties::new()) else { return false };
    let runtime = compiled.runtime_model();
    let nodes = runtime.nodes().filter(|(_, n)| {
        let op = n.op();
        !(op.is::<Parameter>() || op.is::<Constant>() || op.is::<ResultOp>())
    });
    let kernel = |n: &carafe_graph::Node| Some(n.rt_info.get("primitiveType")?.fields.first()?.1.clone());
    let kernels: Vec<Option<String>> = nodes.map(|(_, n)| kernel(n)).collect();
    !kernels.is_empty() && kernels.iter().all(|k| k.as_deref().is_some_and(|k| k != "reference"))
}

fn text(counts: &BTreeMap<Key, usize>) -> String {
    let mut out = String::from(
        "# Operations that the CPU device runs by kernels: operation, type of the first input, how that lies, and the number of\n\
         # cases (at least). BLESS=1 cargo test -p carafe-testkit --test op_cases -- cpu_kernels writes it anew.\n",
    );
    for ((op, ty, layout), n) in counts {
        let _ = writeln!(out, "{op} {ty} {layout} {n}");
    }
    out
}

/// Every line of the list holds, and every kernel has its line.
pub fn cpu_kernels_are_those_of_the_list(files: &[CaseFile], list: &Path) -> Result<(), String> {
    let found = found(files);
    if std::env::var_os(BLESS).is_some() {
        return std::fs::write(list, text(&found)).map_err(|e| format!("{}: {e}", list.display()));
    }
    let written = std::fs::read_to_string(list).map_err(|e| format!("{}: {e}", list.display()))?;
    let mut listed: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for line in written.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [op, ty, layout, n] = words[..] else { return Err(format!("{}: line `{line}`", list.display())) };
        listed.insert((op, ty, layout), n.parse().map_err(|e| format!("{}: `{line}`: {e}", list.display()))?);
    }
    let mut wrong = vec![];
    for (&(op, ty, layout), &least) in &listed {
        let key = (op.to_string(), ty.to_string(), ["plain", "channels_last"][usize::from(layout != "plain")]);
        let n = found.get(&key).copied().unwrap_or(0);
        if n < least {
            wrong.push(format!("{op} {ty} {layout}: {n} cases run by kernels, {least} did"));
        }
    }
    for ((op, ty, layout), n) in &found {
        if !listed.contains_key(&(op.as_str(), ty.as_str(), *layout)) {
            wrong.push(format!("{op} {ty} {layout}: {n} cases run by kernels; add the line"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{BLESS}=1 writes {} anew", wrong.join("\n"), list.display())),
    }
}
