//! A model that remembers: its variable lives in the request, and can be read, set and reset.
//!
//!     cargo run --release --example state

use carafe::ops::arithmetic::Add;
use carafe::ops::state::{Assign, ReadValue};
use carafe::{ElementType, Model, Properties, Result, Tensor};

/// sum += x.
fn accumulator() -> Result<Model> {
    let mut model = Model::new("accumulator");
    let x = model.parameter("x", ElementType::F32, "1".parse()?)?;
    let zero = model.constant("zero", Tensor::zeros(ElementType::F32, &[1])?)?;
    let read = ReadValue { variable_id: "sum".into(), variable_type: ElementType::F32, variable_shape: "1".parse()? };
    let old = model.add("old", read, &[zero])?;
    let new = model.add("new", Add::default(), &[old.into(), x])?;
    model.add("keep", Assign { variable_id: "sum".into() }, &[new.into()])?;
    model.result("out", new.into())?;
    Ok(model)
}

pub(crate) fn main() -> Result<()> {
    let compiled = carafe::core().compile_model(&accumulator()?, "CPU", &Properties::new())?;
    let request = compiled.create_infer_request();
    let add = |x: f32| -> Result<f32> {
        Ok(request.infer(&[("x", Tensor::from_slice(&[1], &[x])?)])?[0].as_slice::<f32>()?[0])
    };

    assert_eq!([add(1.0)?, add(2.0)?, add(3.0)?], [1.0, 3.0, 6.0]);
    for variable in request.query_state()? {
        println!("{} = {:?}", variable.name(), variable.get()?.map(|t| t.to_vec::<f32>().map(|v| v.to_vec())));
    }

    request.state("sum")?.set(Tensor::from_slice(&[1], &[100f32])?)?;
    assert_eq!(add(1.0)?, 101.0);
    request.reset_state()?;
    assert_eq!(add(1.0)?, 1.0);

    // Another request has a state of its own.
    let other = compiled.create_infer_request();
    let first = other.infer(&[("x", Tensor::from_slice(&[1], &[5f32])?)])?;
    println!("another request begins with {:?}", first[0].as_slice::<f32>()?);
    Ok(())
}
