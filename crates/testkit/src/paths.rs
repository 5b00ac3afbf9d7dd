//! The ways a case is run. Each must come to the result that the case states, so one line of text tests them all.

use crate::blocked::run_model;
use crate::case::{Case, CaseFile, Expect};
use crate::dynamic;
use crate::guard::caught;
use crate::runner::{InputsAs, build, check_facts, check_outputs, feed, is_unfoldable, registry, result_facts};
use crate::{reshaped, side_by_side, tidy};
use carafe_graph::{Constant, Error, Model, Notes, Result, run_passes};
use carafe_ir::{Versions, WriteOptions};
use carafe_passes::{FoldConstants, RemoveUnused};
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use std::sync::LazyLock;

/// Larger outputs may stay unfolded.
const ALWAYS_FOLDED_BYTES: usize = 1 << 20;

/// One way of running a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Inputs are parameters, and the model is evaluated.
    Direct,
    /// Inputs are constants, and folding must leave constants alone.
    Folded,
    /// As `Direct` and as `Folded`, but the model is written as IR and read again before it is evaluated.
    Ir,
    /// Compiled for the TEMPLATE device and run by a request.
    Template,
    /// Compiled for the CPU device: all inputs as parameters, and all but the first as constants.
    Cpu,
    /// Convolutions and products compiled for the CPU device in bf16, with all inputs but the first as constants: near the
    /// evaluation.
    Bf16,
    /// The same in f16.
    F16,
    /// Planned for another backend than the CPU device, with blocked layouts and memory of its own: all inputs as parameters,
    /// and all but the first as constants.
    Plan,
    /// Compiled for the GPU device where it says that it has kernels for all of the case: all inputs as parameters, and all but
    /// the first as constants.
    Gpu,
    /// Compiled for HETERO with two devices that take turns from node to node: CPU and TEMPLATE, and the other way round.
    Hetero,
    /// Compiled for the CPU device once and run with several sets of shapes.
    Reshaped,
    /// Inference with shapes made unknown must agree with the real ones.
    Dynamic,
    /// The tidying passes of a conversion change neither results nor their names.
    Tidy,
}

impl Path {
    pub const ALL: &[Path] = &[
        Path::Direct,
        Path::Folded,
        Path::Ir,
        Path::Template,
        Path::Cpu,
        Path::Bf16,
        Path::F16,
        Path::Plan,
        Path::Gpu,
        Path::Hetero,
        Path::Reshaped,
        Path::Dynamic,
        Path::Tidy,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Path::Direct => "direct",
            Path::Folded => "folded",
            Path::Ir => "ir",
            Path::Template => "template",
            Path::Cpu => "cpu",
            Path::Bf16 => "bf16",
            Path::F16 => "f16",
            Path::Plan => "plan",
            Path::Gpu => "gpu",
            Path::Hetero => "hetero",
            Path::Reshaped => "reshaped",
            Path::Dynamic => "dynamic",
            Path::Tidy => "tidy",
        }
    }

    /// Runs one case; the error says what was expected and found. A panic is a failure too.
    pub fn run(self, case: &Case) -> Result<(), String> {
        caught(|| match self {
            Path::Dynamic => dynamic::check(case),
            Path::Direct if case.is_inference() => {
                check_facts(case, build(case, InputsAs::Parameters).map(|m| result_facts(&m)))
            }
            Path::Ir if case.is_inference() => {
                check_facts(case, through_ir(case, InputsAs::Parameters).map(|m| result_facts(&m)))
            }
            // Nothing is evaluated, so these paths add nothing.
            Path::Folded
            | Path::Template
            | Path::Cpu
            | Path::Bf16
            | Path::F16
            | Path::Plan
            | Path::Gpu
            | Path::Hetero
            | Path::Reshaped
            | Path::Tidy
                if case.is_inference() =>
            {
                Ok(())
            }
            Path::Direct => check_outputs(case, direct(case)),
            Path::Folded => check_outputs(case, folded(case)),
            Path::Template => check_outputs(case, on_device(case, "TEMPLATE")),
            Path::Cpu => {
                check_outputs(case, on_device(case, "CPU")).map_err(|e| format!("with parameters: {e}"))?;
                check_outputs(case, on_device_as(case, "CPU", InputsAs::ConstantsButFirst))
                    .map_err(|e| format!("with constants: {e}"))
            }
            Path::Bf16 => in_half(case, "bf16"),
            Path::F16 => in_half(case, "f16"),
            Path::Plan => {
                check_outputs(case, planned(case, InputsAs::Parameters))
                    .map_err(|e| format!("with parameters: {e}"))?;
                check_outputs(case, planned(case, InputsAs::ConstantsButFirst))
                    .map_err(|e| format!("with constants: {e}"))
            }
            Path::Gpu => on_gpu(case),
            Path::Hetero => side_by_side::check(case),
            Path::Reshaped => reshaped::check(case),
            Path::Tidy => tidy::check(case),
            Path::Ir => {
                check_outputs(case, reread(case, InputsAs::Parameters)).map_err(|e| format!("with parameters: {e}"))?;
                check_outputs(case, reread(case, InputsAs::Constants)).map_err(|e| format!("with constants: {e}"))
            }
        })
    }

    /// Runs all cases of a file and gathers every failure with its line.
    pub fn run_file(self, file: &CaseFile) -> Result<(), String> {
        let failures: Vec<String> =
            file.cases.iter().filter_map(|c| self.run(c).err().map(|e| format!("{}: {e}", c.location()))).collect();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}

/// Parameters, evaluated.
pub fn direct(case: &Case) -> Result<Vec<Tensor>> {
    let model = build(case, InputsAs::Parameters)?;
    model.evaluate(&feed(case, &model)?)
}

/// Parameters, compiled for a device and run by a request.
pub fn on_device(case: &Case, device: &str) -> Result<Vec<Tensor>> {
    on_device_as(case, device, InputsAs::Parameters)
}

fn on_device_as(case: &Case, device: &str, inputs_as: InputsAs) -> Result<Vec<Tensor>> {
    let model = build(case, inputs_as)?;
    let compiled = core().compile_model(&model, device, &carafe::Properties::new())?;
    infer(compiled, &feed(case, &model)?)
}

// Without an OpenCL device the query says so, and the case fails.
fn on_gpu(case: &Case) -> Result<(), String> {
    if matches!(case.expect, Expect::Error(_)) {
        return Ok(());
    }
    for (inputs_as, what) in [(InputsAs::Parameters, "parameters"), (InputsAs::ConstantsButFirst, "constants")] {
        let Ok(model) = build(case, inputs_as) else { continue };
        let query = core().query_model(&model, "GPU", &carafe::Properties::new()).map_err(|e| e.to_string())?;
        if query.unsupported.is_empty() {
            check_outputs(case, on_device_as(case, "GPU", inputs_as)).map_err(|e| format!("with {what}: {e}"))?;
        }
    }
    Ok(())
}

/// How far a number may be from the evaluation, of the largest: a few roundings of 2^-9.
const BF16_BOUND: f32 = 0.02;
/// A few of 2^-12.
const F16_BOUND: f32 = 0.003;

fn in_half(case: &Case, hint: &str) -> Result<(), String> {
    let text = |e: Error| e.to_string();
    let Ok(model) = build(case, InputsAs::ConstantsButFirst) else { return Ok(()) };
    let multiplies = |name: &str| ["Convolution", "GroupConvolution", "MatMul"].contains(&name);
    let floats = result_facts(&model).iter().all(|f| f.ty == ElementType::F32);
    let Ok(inputs) = feed(case, &model) else { return Ok(()) };
    if !floats || !model.nodes().any(|(_, n)| multiplies(n.op().type_name())) {
        return Ok(());
    }
    let Ok(wanted) = model.evaluate(&inputs) else { return Ok(()) };
    let properties = carafe::Properties::new().with("INFERENCE_PRECISION_HINT", hint);
    let compiled = core().compile_model(&model, "CPU", &properties).map_err(text)?;
    // What runs where there are no instructions for the type that was asked for.
    let runs = compiled.property("INFERENCE_PRECISION_HINT").map_err(text)?;
    let bound = if runs == "bf16" { BF16_BOUND } else { F16_BOUND };
    let found = infer(compiled, &inputs).map_err(text)?;
    for (k, (a, b)) in found.iter().zip(&wanted).enumerate() {
        let numbers = |t: &Tensor| t.to_vec::<f32>().map(|v| v.into_owned()).map_err(|e| e.to_string());
        let (found, wanted) = (numbers(a)?, numbers(b)?);
        let largest = wanted.iter().filter(|x| x.is_finite()).fold(0f32, |m, x| m.max(x.abs()));
        for (i, (x, y)) in found.iter().zip(&wanted).enumerate().filter(|(_, (_, y))| y.is_finite()) {
            if (x - y).abs() > bound * largest || x.is_nan() {
                return Err(format!("in {runs}: output {k}, element {i} is {x}, expected {y} of {largest}"));
            }
        }
    }
    Ok(())
}

// Matrix products in f64: every f32 is one, and each value changes its type on the way.
fn planned(case: &Case, inputs_as: InputsAs) -> Result<Vec<Tensor>> {
    let model = build(case, inputs_as)?;
    Ok(run_model(&model, &feed(case, &model)?, ElementType::F64)?.1)
}

/// The engine that every path uses.
pub(crate) fn core() -> &'static carafe::Core {
    static CORE: LazyLock<carafe::Core> = LazyLock::new(core_in_f32);
    &CORE
}

/// An engine whose devices compute in f32, also where something else is faster: for numbers that are compared strictly.
pub fn core_in_f32() -> carafe::Core {
    let core = carafe::core();
    let f32 = carafe::Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
    core.set_property("CPU", &f32).expect("the CPU device computes in f32");
    core
}

/// One inference by a new request.
pub(crate) fn infer(compiled: carafe::CompiledModel, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(compiled.infer(inputs)?.into_vec())
}

fn reread(case: &Case, inputs_as: InputsAs) -> Result<Vec<Tensor>> {
    let model = through_ir(case, inputs_as)?;
    model.evaluate(&feed(case, &model)?)
}

/// The model of a case after it was written in the versions that it has, read, written in the oldest versions and read
/// again. The last two models must be the same: reading upgrades what writing downgraded.
fn through_ir(case: &Case, inputs_as: InputsAs) -> Result<Model> {
    let as_it_is = WriteOptions { versions: Versions::Current, ..WriteOptions::default() };
    let read = |written: &(String, Vec<u8>)| {
        let weights = SharedBytes::from_vec(written.1.clone());
        carafe_ir::read(&written.0, weights, registry(), &carafe_ir::ReadOptions::default())
            .map_err(|e| e.at("the written IR"))
    };
    let first = read(&carafe_ir::write_to(&build(case, inputs_as)?, &as_it_is)?)?;
    let model = read(&carafe_ir::write_to(&first, &WriteOptions::default())?).map_err(|e| e.at("in old versions"))?;
    let (written, again) = (carafe_ir::write_to(&first, &as_it_is)?, carafe_ir::write_to(&model, &as_it_is)?);
    if let Some((one, two)) = written.0.lines().zip(again.0.lines()).find(|(one, two)| one != two) {
        let (one, two) = (one.trim(), two.trim());
        return Err(Error::invalid(format!("the IR written is `{one}`, and after it was read `{two}`")));
    }
    if written != again || model.len() != first.len() {
        return Err(Error::invalid("the IR written, and written again after it was read, differ in length or weights"));
    }
    Ok(model)
}

fn folded(case: &Case) -> Result<Vec<Tensor>> {
    let mut model = build(case, InputsAs::Constants)?;
    if is_unfoldable(&model) {
        return model.evaluate(&[]);
    }
    run_passes(&mut model, &[&FoldConstants { decompression: true }, &RemoveUnused], &mut Notes::default())?;
    // A node that cannot be evaluated is left by the pass; this tells its error.
    let outputs = model.evaluate(&[])?;
    for (&r, tensor) in model.results().iter().zip(&outputs) {
        let producer = model.node(model.result_value(r).node);
        if !producer.op().is::<Constant>() && tensor.byte_len() <= ALWAYS_FOLDED_BYTES {
            return Err(Error::invalid(format!("{} was not folded", producer.location())));
        }
    }
    Ok(outputs)
}
