//! An extension to start from: an operation, a rule for ONNX, a mapping, a rewrite and a kernel. Build it with
//! `cargo build -p template-extension` and use it with
//! `carafe run model.onnx --extension target/debug/libtemplate_extension.so`.

use carafe_sdk::prelude::*;

/// Keeps what is farther from zero than `threshold`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", inputs = "data", outputs = "output")]
pub struct HardShrink {
    /// Values from `-threshold` to `threshold` become 0.
    #[attr(default = 0.5)]
    pub threshold: f32,
}

impl HardShrink {
    fn apply(&self, x: f32) -> f32 {
        if x.abs() > self.threshold { x } else { 0.0 }
    }
}

impl Op for HardShrink {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.require(self.threshold >= 0.0, || format!("`threshold` must not be negative, found {}", self.threshold))?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().map(|x| self.apply(*x)).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

/// ONNX: `Cube` of domain `acme.rust` becomes Power(x, exponent).
fn cube(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let exponent = n.scalar_like(x, n.attr("exponent", 3.0)?)?;
    Ok(n.emit_named("Power", [], &[x, exponent])?.into())
}

/// A rewrite: Abs of Abs is one Abs.
struct MergeAbs;

impl Matcher for MergeAbs {
    fn name(&self) -> &str {
        "merge_abs"
    }
    fn root(&self) -> Option<&str> {
        Some("Abs")
    }
    fn at(&self, graph: &mut Graph<'_>, root: NodeId) -> Result<Outcome> {
        let inner = graph.input(root, 0)?;
        if graph.node(inner.node)?.op_type != "Abs" {
            return Ok(Outcome::NoMatch);
        }
        graph.replace(Value { node: root, port: 0 }, inner)?;
        Ok(Outcome::Done)
    }
}

/// A kernel for HardShrink on f32: in any layout, where its input lies, on all streams at once. It takes along a ReLU that
/// follows.
struct ShrinkKernel;

impl Kernel for ShrinkKernel {
    fn device(&self) -> &str {
        "CPU"
    }
    fn op(&self) -> &str {
        "HardShrink"
    }
    fn opset(&self) -> Option<&str> {
        Some("acme")
    }
    fn name(&self) -> &str {
        "hard_shrink_rust"
    }
    fn fuses(&self) -> bool {
        true
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        if site.inputs[0].ty != ElementType::F32 {
            return Ok(vec![]);
        }
        let layout = site.input_layouts.first().cloned().unwrap_or_default();
        let port = PortLayout::new(ElementType::F32, layout);
        let config = Config::new(vec![port.clone()], vec![port.in_place_of(0)]);
        Ok(vec![Config { epilogue: usize::from(is_relu(site)), ..config }])
    }
    fn init(&self, site: &Site, _config: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(Shrink { op: HardShrink::from_attrs(&site.attrs)?, relu: is_relu(site) }))
    }
}

fn is_relu(site: &Site) -> bool {
    site.epilogue.first().is_some_and(|op| op.function == Function::Relu)
}

struct Shrink {
    op: HardShrink,
    relu: bool,
}

impl PreparedKernel for Shrink {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        let least = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        io.map::<f32>(0, |x| self.op.apply(x).max(least))
    }
}

carafe_sdk::export_extension! {
    ops: [HardShrink],
    rules: [Rule::new("Cube", cube).framework("onnx").domain("acme.rust")],
    mappings: [
        Mapping::new("acme::HardShrink").framework("onnx").domain("acme.rust").from_type("Shrink2").attr("threshold", "lambd"),
    ],
    front: [MergeAbs],
    kernels: [ShrinkKernel],
}
