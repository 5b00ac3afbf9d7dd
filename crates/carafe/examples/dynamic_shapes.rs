//! One compiled model, inputs of any size: an open dimension is planned when a size first comes, and known from then on.
//!
//!     cargo run --release --example dynamic_shapes

use carafe::{ElementType, Model, Properties, Result, Tensor, ops};

pub(crate) fn main() -> Result<()> {
    // y = softmax(x) over rows of 2 to 16 numbers, any number of rows.
    let mut model = Model::new("softmax");
    let x = model.parameter("x", ElementType::F32, "?,2..16".parse()?)?;
    let y = model.add("y", ops::activation::Softmax { axis: 1 }, &[x])?;
    model.result("out", y.into())?;

    let compiled = carafe::core().compile_model(&model, "CPU", &Properties::new())?;
    println!("input [{}], output [{}]", compiled.input("x")?.shape, compiled.output("y")?.shape);
    let request = compiled.create_infer_request();
    for (rows, n) in [(1, 4), (3, 2), (1, 4)] {
        let outputs = request.infer(&[("x", Tensor::zeros(ElementType::F32, &[rows, n])?)])?;
        let y = &outputs["y"];
        println!("{:?}: {:?}", y.shape(), y.as_slice::<f32>()?);
        assert_eq!(y.as_slice::<f32>()?, vec![1.0 / n as f32; rows * n]);
    }

    // What does not fit is refused, with what was expected and found.
    let refused = request.infer(&[("x", Tensor::zeros(ElementType::F32, &[1, 99])?)]);
    println!("{}", refused.unwrap_err());
    Ok(())
}
