//! What checks share: a `Core` of their own, small models, and the words for what must hold. Models have a first dimension
//! of 1 and use one operation that the device takes, so that a device with few operations can be judged too.

use crate::compare::{Tolerance, compare};
use crate::runner::registry;
use crate::target::Target;
use carafe::device::InferRequest;
use carafe::{
    AttrMap, AttrValue, CompiledModel, Core, ElementType, Error, Model, NodeId, Properties, PropertyInfo, Result,
    Tensor, TensorError, Value,
};
use std::sync::Arc;

/// Numbers are the operation suite's to judge; here a device may compute in a lower precision.
const LOOSE: Tolerance = Tolerance { rtol: 1e-2, atol: 1e-3 };

/// Any of these will do as the operation of small models, the first that the device takes.
const UNARY: &[&str] = &["Relu", "Abs", "Sigmoid", "Tanh", "Negative", "Exp", "Floor", "Sqrt"];

/// Why a check did not pass.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    Failed(String),
    Skipped(String),
}

pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// For checks that panic on purpose: a program that stops at panics leaves them out.
pub(crate) fn panics_can_be_caught() -> Outcome {
    let why = "this program stops at a panic; the tests of a project run this check";
    if cfg!(panic = "unwind") { Ok(()) } else { Err(Stop::Skipped(why.into())) }
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Failed(e.to_string())
    }
}

impl From<TensorError> for Stop {
    fn from(e: TensorError) -> Stop {
        Stop::Failed(e.to_string())
    }
}

pub(crate) struct Bench {
    pub(crate) core: Core,
    pub(crate) target: Arc<Target>,
    unary: &'static str,
}

impl Bench {
    pub(crate) fn new(target: Arc<Target>) -> Outcome<Bench> {
        let core = target.core()?;
        // A damaged cache is on purpose here.
        core.set_log_hook(carafe::log::Level::Error, |_, _| {});
        let mut bench = Bench { core, target, unary: UNARY[0] };
        for name in UNARY {
            bench.unary = name;
            let query = bench.core.query_model(&bench.plain(), bench.device(), bench.properties());
            if query.is_ok_and(|q| q.unsupported.is_empty()) {
                return Ok(bench);
            }
        }
        bench.unary = UNARY[0];
        Ok(bench)
    }

    pub(crate) fn device(&self) -> &str {
        &self.target.device
    }
    pub(crate) fn properties(&self) -> &Properties {
        &self.target.properties
    }
    pub(crate) fn table(&self) -> Outcome<&'static [PropertyInfo]> {
        Ok(self.core.device(self.device())?.properties())
    }
    pub(crate) fn has_property(&self, name: &str) -> bool {
        self.table().is_ok_and(|t| t.iter().any(|p| p.name == name))
    }
    /// Devices made of devices take what they do not know, for the devices of their list.
    pub(crate) fn is_composite(&self) -> bool {
        self.has_property(carafe::multi::PRIORITIES)
    }
    pub(crate) fn skip_composite(&self) -> Outcome {
        match self.is_composite() {
            true => Err(Stop::Skipped(format!("{} is made of other devices", self.device()))),
            false => Ok(()),
        }
    }
    pub(crate) fn can_export(&self) -> bool {
        let all = self.core.get_property(self.device(), "OPTIMIZATION_CAPABILITIES").unwrap_or_default();
        all.split_whitespace().any(|c| c == "EXPORT_IMPORT")
    }
    pub(crate) fn skip_without_export(&self) -> Outcome {
        match self.can_export() {
            true => Ok(()),
            false => Err(Stop::Skipped("EXPORT_IMPORT is not among OPTIMIZATION_CAPABILITIES".into())),
        }
    }

    /// Skips the check when the device says that it does not take the model.
    pub(crate) fn compile(&self, model: &Model) -> Outcome<CompiledModel> {
        self.compile_with(model, &Properties::new())
    }
    pub(crate) fn compile_with(&self, model: &Model, more: &Properties) -> Outcome<CompiledModel> {
        self.skip_unsupported(model)?;
        Ok(self.core.compile_model(model, self.device(), &self.properties().overlaid(more))?)
    }
    pub(crate) fn skip_unsupported(&self, model: &Model) -> Outcome {
        let query = self.core.query_model(model, self.device(), self.properties())?;
        match query.unsupported.first() {
            Some(u) => Err(Stop::Skipped(format!("`{}` ({}): {}", u.name, u.type_name, u.reason))),
            None => Ok(()),
        }
    }
    /// Compiles, runs and compares with the reference.
    pub(crate) fn check(&self, model: &Model, inputs: &[Tensor]) -> Outcome {
        let compiled = self.compile(model)?;
        same(&infer(&compiled, inputs)?, &model.evaluate(inputs)?)
    }

    /// A node of the newest operation of that name.
    pub(crate) fn add(
        m: &mut Model,
        ty: &str,
        name: &str,
        attrs: &[(&str, &str)],
        inputs: &[Value],
    ) -> Outcome<NodeId> {
        let attrs: AttrMap = attrs.iter().map(|(k, v)| (k.to_string(), AttrValue::Text(v.to_string()))).collect();
        let factory = registry().newest(ty).ok_or_else(|| Stop::Failed(format!("there is no operation {ty}")))?;
        Ok(m.add_ref(name, factory.create(&attrs)?, inputs)?)
    }
    pub(crate) fn unary(&self, m: &mut Model, name: &str, input: Value) -> Value {
        let node = Bench::add(m, self.unary, name, &[], &[input]).expect("a unary operation takes floats");
        m.add_tensor_name(node.into(), format!("{name}:0"));
        node.into()
    }

    /// x: f32[1,4] -> a -> y.
    pub(crate) fn plain(&self) -> Model {
        self.chain("1,4", 1)
    }
    /// As `plain` with the shape as text and several operations in a row, named a0, a1 and so on.
    pub(crate) fn chain(&self, shape: &str, depth: usize) -> Model {
        let mut m = Model::new("chain");
        let x = parameter(&mut m, "x", ElementType::F32, shape);
        let end = (0..depth).fold(x, |v, i| self.unary(&mut m, &format!("a{i}"), v));
        m.result("y", end).expect("any value can be a result");
        m
    }
    /// x0, x1: f32[1,4] -> y0 = a(x0), y1 = b(x1).
    pub(crate) fn pair(&self) -> Model {
        let mut m = Model::new("pair");
        for i in 0..2 {
            let x = parameter(&mut m, &format!("x{i}"), ElementType::F32, "1,4");
            let a = self.unary(&mut m, &format!("a{i}"), x);
            m.result(&format!("y{i}"), a).expect("any value can be a result");
        }
        m
    }
    /// x: f32[1,4] -> y = a(x) + weights.
    pub(crate) fn weighted(&self) -> Outcome<Model> {
        let mut m = Model::new("weighted");
        let x = parameter(&mut m, "x", ElementType::F32, "1,4");
        let a = self.unary(&mut m, "a", x);
        let k = m.constant("weights", floats(&[1.0, 2.0, 3.0, 4.0]))?;
        let sum = Bench::add(&mut m, "Add", "sum", &[], &[a, k])?;
        m.result("y", sum.into())?;
        Ok(m)
    }
    /// x -> y, with nothing in between.
    pub(crate) fn through(ty: ElementType, shape: &str) -> Outcome<Model> {
        let mut m = Model::new("through");
        let x = parameter(&mut m, "x", ty, shape);
        m.result("y", x)?;
        Ok(m)
    }
    /// A constant -> y.
    pub(crate) fn constant() -> Outcome<Model> {
        let mut m = Model::new("constant");
        let c = m.constant("c", floats(&[1.0, -2.0, 3.0, -4.0]))?;
        m.result("y", c)?;
        Ok(m)
    }
    /// A node of a type nobody knows behind one that everybody does.
    pub(crate) fn unknown(&self) -> Outcome<Model> {
        let mut m = Model::new("unknown");
        let x = parameter(&mut m, "x", ElementType::F32, "1,4");
        let a = self.unary(&mut m, "a", x);
        let op = carafe::FrameworkNode {
            type_name: "NobodyKnowsThis".into(),
            opset: "nowhere".into(),
            attrs: AttrMap::default(),
            outputs: vec![(ElementType::F32, "1,4".parse()?)],
            rule: None,
        };
        let b = m.add("mystery", op, &[a])?;
        m.result("y", b.into())?;
        Ok(m)
    }
}

pub(crate) fn parameter(m: &mut Model, name: &str, ty: ElementType, shape: &str) -> Value {
    let shape = shape.parse().expect("a shape of the suite");
    let x = m.parameter(name, ty, shape).expect("a parameter takes any type and shape");
    m.add_tensor_name(x, format!("{name}:0"));
    x
}

/// A row f32[1,n].
pub(crate) fn floats(data: &[f32]) -> Tensor {
    Tensor::from_slice(&[1, data.len()], data).expect("the shape is that of the data")
}

/// A row f32[1,n] of numbers that differ from seed to seed, negative ones among them.
pub(crate) fn row(n: usize, seed: usize) -> Tensor {
    let data: Vec<f32> = (0..n).map(|i| ((i * 7 + seed * 13) % 31) as f32 / 8.0 - 1.5).collect();
    floats(&data)
}

/// Requests of the device itself, below what users hold: the suites look at each call that a device answers.
pub(crate) trait DeviceRequest {
    fn create_request(&self) -> Box<dyn InferRequest>;
}

impl DeviceRequest for CompiledModel {
    fn create_request(&self) -> Box<dyn InferRequest> {
        self.device_model().clone().create_request()
    }
}

/// One inference on a new request.
pub(crate) fn infer(compiled: &CompiledModel, inputs: &[Tensor]) -> Outcome<Vec<Tensor>> {
    let mut request = compiled.clone().create_request();
    run(&mut *request, inputs, compiled.outputs().len())
}

pub(crate) fn run(request: &mut dyn InferRequest, inputs: &[Tensor], outputs: usize) -> Outcome<Vec<Tensor>> {
    for (i, tensor) in inputs.iter().enumerate() {
        request.set_input(i, tensor.clone())?;
    }
    request.infer()?;
    Ok((0..outputs).map(|i| request.output(i).cloned()).collect::<Result<_>>()?)
}

pub(crate) fn same(found: &[Tensor], expected: &[Tensor]) -> Outcome {
    if found.len() != expected.len() {
        return Err(Stop::Failed(format!("expected {} outputs, found {}", expected.len(), found.len())));
    }
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let tolerance = if e.element_type().is_float() { LOOSE } else { Tolerance::EXACT };
        compare(e, f, tolerance).map_err(|m| Stop::Failed(format!("output {i}: {m}")))?;
    }
    Ok(())
}

/// The error of something that must not be taken.
pub(crate) fn refused<T>(result: Result<T>, what: &str) -> Outcome<Error> {
    match result {
        Ok(_) => Err(Stop::Failed(format!("{what} was taken, and must be refused"))),
        Err(e) if e.to_string().trim().is_empty() => Err(Stop::Failed(format!("{what} was refused without a word"))),
        Err(e) => Ok(e),
    }
}
