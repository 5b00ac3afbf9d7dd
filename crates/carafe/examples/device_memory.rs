//! Two models one after the other on GPU, with what lies between them in the device's memory: nothing is copied to the host but
//! the last result.
//!
//! `cargo run -p carafe --example device_memory`

use carafe::gpu::{ClContext, opencl};
use carafe::prelude::*;
use carafe::{Properties, ops};

fn model(name: &str, factor: f32) -> carafe::Result<Model> {
    let mut model = Model::new(name);
    let x = model.parameter("x", ElementType::F32, PartialShape::of(&[2, 3]))?;
    let by = model.constant("factor", Tensor::scalar(factor))?;
    let product = model.add("product", ops::arithmetic::Multiply::default(), &[x, by])?;
    model.result("y", product.into())?;
    model.infer()?;
    Ok(model)
}

pub(crate) fn main() -> carafe::Result<()> {
    let core = carafe::core();
    let context = match core.create_context("GPU", &Properties::new()) {
        Ok(context) => context,
        Err(e) => {
            println!("{e}");
            return Ok(());
        }
    };
    let first = core.compile_model_in(&model("first", 2.0)?, &*context, &Properties::new())?.create_infer_request();
    let second = core.compile_model_in(&model("second", 10.0)?, &*context, &Properties::new())?.create_infer_request();

    // A tensor of the device is the output of one and the input of the other.
    let between = context.create_tensor(ElementType::F32, &[2, 3])?;
    first.set_output(0, between.clone())?;
    second.set_input("x", between.clone())?;
    first.infer(Tensor::from_vec(&[2, 3], vec![1f32, 2., 3., 4., 5., 6.])?)?;
    let result = second.infer(())?;
    println!("{between:?} -> {:?}", result[0].as_slice::<f32>()?);

    // Memory that other code made: any `opencl::Buffer`, also one over a `cl_mem` by `Buffer::from_raw`.
    let any: &dyn std::any::Any = &*context;
    let cl = any.downcast_ref::<ClContext>().expect("a context of GPU is one of OpenCL");
    let buffer = opencl::Buffer::new(cl.opencl(), 24).map_err(|e| carafe::Error::invalid(e.to_string()))?;
    let mine = cl.tensor_of(ElementType::F32, &[2, 3], buffer)?;
    second.set_output(0, mine.clone())?;
    second.infer(())?;
    println!("{mine:?} has {:?}", mine.to_host()?.as_slice::<f32>()?);
    Ok(())
}
