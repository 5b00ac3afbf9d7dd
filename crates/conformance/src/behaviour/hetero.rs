//! The device as a part of HETERO, together with the reference device.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, infer, row, run, same};
use super::{ensure, suite};
use carafe::{Properties, SharedBytes};

suite!("hetero":
    the_device_comes_first,
    the_device_comes_last,
    a_model_is_split_between_both,
    variables_are_kept,
    a_split_model_is_exported,
    nodes_the_device_refuses_go_to_the_other,
);

const OTHER: &str = "TEMPLATE";

fn name(b: &Bench, order: [&str; 2]) -> Outcome<String> {
    b.skip_composite()?;
    if b.core.device(OTHER).is_err() {
        return Err(Stop::Skipped(format!("device {OTHER} is not here")));
    }
    Ok(match order[0] == order[1] {
        true => format!("HETERO:{}", order[0]),
        false => format!("HETERO:{},{}", order[0], order[1]),
    })
}

fn listed(b: &Bench, order: [&str; 2]) -> Outcome {
    let model = b.weighted()?;
    let compiled = b.core.compile_model(&model, &name(b, order)?, &Properties::new())?;
    same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}

fn the_device_comes_first(b: &Bench) -> Outcome {
    listed(b, [b.device(), OTHER])
}

fn the_device_comes_last(b: &Bench) -> Outcome {
    listed(b, [OTHER, b.device()])
}

// a0, a2 on the device, a1, a3 on the other.
fn split(b: &Bench) -> Outcome<carafe::Model> {
    let mut model = b.chain("1,4", 4);
    b.skip_unsupported(&model)?;
    for i in 0..4 {
        let id = model.find_node(&format!("a{i}")).ok_or_else(|| Stop::Failed("a node is missing".into()))?;
        carafe::multi::set_affinity(&mut model, id, if i % 2 == 0 { b.device() } else { OTHER });
    }
    Ok(model)
}

fn a_model_is_split_between_both(b: &Bench) -> Outcome {
    let device = name(b, [b.device(), OTHER])?;
    let model = split(b)?;
    let compiled = b.core.compile_model(&model, &device, &Properties::new())?;
    let parts = compiled.property("HETERO_NUMBER_OF_SUBMODELS")?;
    ensure!(b.device() == OTHER || parts == "4", "the model was split into {parts} parts, expected 4");
    for seed in 0..3 {
        same(&infer(&compiled, &[row(4, seed)])?, &model.evaluate(&[row(4, seed)])?)?;
    }
    Ok(())
}

fn variables_are_kept(b: &Bench) -> Outcome {
    let model = super::state::counter(true)?;
    let compiled = b.core.compile_model(&model, &name(b, [b.device(), OTHER])?, &Properties::new())?;
    let mut request = compiled.create_request();
    let ones = super::bench::floats(&[1.0; 4]);
    for wanted in [2.0, 3.0, 4.0] {
        same(&run(&mut *request, std::slice::from_ref(&ones), 1)?, &[super::bench::floats(&[wanted; 4])])?;
    }
    Ok(())
}

fn a_split_model_is_exported(b: &Bench) -> Outcome {
    let device = name(b, [b.device(), OTHER])?;
    let model = split(b)?;
    let mut blob = Vec::new();
    b.core.compile_model(&model, &device, &Properties::new())?.export(&mut blob)?;
    let compiled = b.core.import_model(SharedBytes::from_vec(blob), &device, &Properties::new())?;
    same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}

fn nodes_the_device_refuses_go_to_the_other(b: &Bench) -> Outcome {
    let device = name(b, [b.device(), OTHER])?;
    // One of these a device with few operations refuses; one with all of them runs the model alone.
    let mut model = b.weighted()?;
    let sum = model.result_value(model.results()[0]);
    let erf = Bench::add(&mut model, "Erf", "erf", &[], &[sum])?;
    let up = Bench::add(&mut model, "Tanh", "up", &[], &[erf.into()])?;
    model.result("z", up.into())?;
    let compiled = b.core.compile_model(&model, &device, &Properties::new())?;
    same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}
