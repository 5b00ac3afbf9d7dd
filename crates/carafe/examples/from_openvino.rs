//! The words of OpenVINO's guides at work. `docs/from-openvino.md` prints these lines beside those of the guides.
//!
//!     cargo run --release --example from_openvino

use carafe::convert::Conversion;
use carafe::prelude::*;
use carafe::{Extension, Mapping, NodeCx, Properties, ReadRequest, Rule, RuleOutputs};
use std::path::Path;

const MODEL: &str = r#"<ir_version: 8, opset_import: ["": 17, "acme": 1]>
net (float[3] x) => (float[3] y) {
    a = acme.MyRelu (x)
    b = acme.Threshold <alpha = 1.5> (a)
    y = acme.Scale <factor = 2.0> (b)
}"#;

/// Multiplies by a constant.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", inputs = "x", outputs = "y")]
struct Scale {
    /// The factor.
    #[attr(default = 1.0)]
    by: f32,
}

impl Op for Scale {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (shape, y) = (cx.shape(0).to_vec(), cx.get::<f32>(0)?.iter().map(|x| x * self.by).collect());
        cx.put(0, &shape, y)
    }
}

fn threshold(node: &mut NodeCx<'_>) -> Result<RuleOutputs> {
    let (x, alpha) = (node.input(0)?, node.attr("alpha", 1.0)?);
    let alpha = node.scalar_like(x, alpha)?;
    let greater = node.emit_named("Greater", [], &[x, alpha])?;
    let casted = node.emit_named("ConvertLike", [], &[greater, x])?;
    Ok(node.emit_named("Multiply", [], &[x, casted])?.into())
}

fn scale(node: &mut NodeCx<'_>) -> Result<RuleOutputs> {
    let (x, by) = (node.input(0)?, node.attr("factor", 1.0)?);
    Ok(node.emit(Scale { by }, &[x])?.into())
}

fn in_one_look(path: &Path, tensor: Tensor) -> Result<Vec<f32>> {
    let core = carafe::core();
    let compiled = core.compile_model(path, "CPU", &Properties::new().with("NUM_STREAMS", 2))?;
    let request = compiled.create_infer_request();
    let outputs = request.infer(&[("image", tensor)])?;
    let y = &outputs["probabilities"];
    Ok(y.to_vec::<f32>()?.into_owned())
}

pub(crate) fn main() -> Result<()> {
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/digits/digits.xml");
    println!("{:?}", in_one_look(&digits, Tensor::zeros(ElementType::F32, &[1, 1, 8, 8])?)?);

    let core = carafe::core();
    core.add_extension(Extension::new("names").mapping(Mapping::new("Relu").from_type("MyRelu")))?;
    core.add_extension(Extension::new("rules").rule(Rule::new("Threshold", threshold)))?;
    core.add_extension(Extension::new("acme").op::<Scale>().rule(Rule::new("Scale", scale).framework("onnx")))?;

    let folder = std::env::temp_dir().join(format!("carafe-from-openvino-{}", std::process::id()));
    let (source, output) = (folder.join("model.onnxtxt"), folder.join("model.xml"));
    let io = |e: std::io::Error| Error::io("cannot write the model", &e);
    std::fs::create_dir_all(&folder).map_err(io)?;
    std::fs::write(&source, MODEL).map_err(io)?;
    let converted = Conversion::new(ReadRequest::new(&source)).run(&core)?;
    carafe::convert::emit(&converted.model, &output, &carafe::Log::default())?;

    let model = core.read_model(&output)?;
    let network = core.compile_model(&model, "CPU", &Properties::new())?;
    let request = network.create_infer_request();
    request.set_input("x", Tensor::from_slice(&[3], &[-1f32, 1.0, 2.0])?)?;
    request.infer(())?;
    let y = request.output("y")?;
    assert_eq!(y.as_slice::<f32>()?, [0.0, 0.0, 4.0]);
    std::fs::remove_dir_all(&folder).map_err(io)
}
