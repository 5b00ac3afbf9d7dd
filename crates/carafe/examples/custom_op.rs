//! A custom operation in one file: declare it, register it, run a model that contains it.
//!
//!     cargo run --release --example custom_op

use carafe::Properties;
use carafe::prelude::*;

/// `x * sigmoid(beta * x)`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct SoftSwish {
    /// Steepness of the curve.
    #[attr(default = 1.0)]
    beta: f32,
}

impl Op for SoftSwish {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().map(|x| x / (1.0 + (-self.beta * x).exp())).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

// What a converter would have written: x -> SoftSwish(beta=2) -> y.
const MODEL: &str = r#"<net name="custom" version="11"><layers>
    <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?" element_type="f32"/>
        <output><port id="0" precision="FP32" names="x"><dim>-1</dim></port></output></layer>
    <layer id="1" name="act" type="SoftSwish" version="acme"><data beta="2"/>
        <input><port id="0"><dim>-1</dim></port></input>
        <output><port id="1" precision="FP32" names="y"><dim>-1</dim></port></output></layer>
    <layer id="2" name="out" type="Result" version="opset1"><input><port id="0"><dim>-1</dim></port></input></layer>
</layers><edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
</edges></net>"#;

pub(crate) fn main() -> Result<()> {
    let core = carafe::core();
    println!("before: {}", core.read_model_from(MODEL, None).unwrap_err());

    core.add_ops([OpFactory::of::<SoftSwish>()]);
    let compiled = core.compile_model(&core.read_model_from(MODEL, None)?, "CPU", &Properties::new())?;
    let outputs = compiled.infer(&[("x", Tensor::from_slice(&[3], &[-1f32, 0.0, 2.0])?)])?;
    println!("after:  {:.4?}", outputs["y"].as_slice::<f32>()?);
    Ok(())
}
