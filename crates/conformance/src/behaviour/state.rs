//! Variables: kept from one inference to the next, by each request for itself.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, floats, parameter, refused, row, run, same};
use super::{ensure, suite};
use carafe::device::InferRequest;
use carafe::{ElementType, Model, Tensor};

suite!("state":
    variables_are_listed,
    a_variable_is_kept_between_inferences,
    a_variable_starts_with_its_initial_value,
    a_variable_can_be_read,
    a_variable_can_be_set,
    a_reset_brings_the_initial_value_back,
    each_request_has_its_own_variables,
    an_unknown_variable_is_refused,
    a_value_of_another_type_is_refused,
    a_model_without_variables_has_none,
);

/// y = x + v; v = y, with v = 1 at first if `initial`, else 0.
pub(super) fn counter(initial: bool) -> Outcome<Model> {
    let mut m = Model::new("counter");
    let x = parameter(&mut m, "x", ElementType::F32, "1,4");
    let init = m.constant("init", floats(&[if initial { 1.0 } else { 0.0 }; 4]))?;
    let v = [("variable_id", "v"), ("variable_type", "f32"), ("variable_shape", "1,4")];
    let read = Bench::add(&mut m, "ReadValue", "read", &v, &[init])?;
    let sum = Bench::add(&mut m, "Add", "sum", &[], &[x, read.into()])?;
    Bench::add(&mut m, "Assign", "write", &v[..1], &[sum.into()])?;
    m.result("y", sum.into())?;
    Ok(m)
}

fn request(b: &Bench) -> Outcome<Box<dyn InferRequest>> {
    Ok(b.compile(&counter(true)?)?.create_request())
}

fn all(n: f32) -> Tensor {
    floats(&[n; 4])
}

fn step(r: &mut dyn InferRequest, x: f32, y: f32) -> Outcome {
    same(&run(r, &[all(x)], 1)?, &[all(y)])
}

fn variables_are_listed(b: &Bench) -> Outcome {
    let found = request(b)?.variables();
    ensure!(found == ["v"], "expected [\"v\"], found {found:?}");
    Ok(())
}

fn a_variable_is_kept_between_inferences(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    step(&mut *r, 2.0, 3.0)?;
    step(&mut *r, 10.0, 13.0)?;
    step(&mut *r, 0.5, 13.5)
}

fn a_variable_starts_with_its_initial_value(b: &Bench) -> Outcome {
    step(&mut *request(b)?, 0.0, 1.0)?;
    let mut r = b.compile(&counter(false)?)?.create_request();
    step(&mut *r, 2.0, 2.0)
}

fn a_variable_can_be_read(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    let before = r.variable("v")?;
    ensure!(before.is_none(), "before the first inference it is {before:?}");
    step(&mut *r, 2.0, 3.0)?;
    let found = r.variable("v")?.ok_or_else(|| Stop::Failed("after an inference it has no value".into()))?;
    same(&[found], &[all(3.0)])
}

fn a_variable_can_be_set(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    r.set_variable("v", all(100.0))?;
    step(&mut *r, 1.0, 101.0)?;
    r.set_variable("v", all(5.0))?;
    let found = r.variable("v")?.ok_or_else(|| Stop::Failed("it was set and has no value".into()))?;
    same(&[found], &[all(5.0)])?;
    step(&mut *r, 1.0, 6.0)
}

fn a_reset_brings_the_initial_value_back(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    step(&mut *r, 2.0, 3.0)?;
    r.reset_variables();
    let found = r.variable("v")?;
    ensure!(found.is_none(), "after a reset it is {found:?}");
    step(&mut *r, 2.0, 3.0)
}

fn each_request_has_its_own_variables(b: &Bench) -> Outcome {
    let compiled = b.compile(&counter(true)?)?;
    let (mut one, mut two) = (compiled.clone().create_request(), compiled.create_request());
    step(&mut *one, 2.0, 3.0)?;
    step(&mut *two, 7.0, 8.0)?;
    step(&mut *one, 2.0, 5.0)?;
    one.reset_variables();
    step(&mut *two, 1.0, 9.0)
}

fn an_unknown_variable_is_refused(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    refused(r.variable("w"), "reading a variable that is not there")?;
    refused(r.set_variable("w", all(1.0)), "setting a variable that is not there")?;
    Ok(())
}

fn a_value_of_another_type_is_refused(b: &Bench) -> Outcome {
    for wrong in [Tensor::zeros(ElementType::I32, &[1, 4])?, row(5, 1)] {
        let mut r = request(b)?;
        let shown = format!("{}{:?}", wrong.element_type(), wrong.shape());
        r.set_input(0, all(1.0))?;
        let result = r.set_variable("v", wrong).and_then(|()| r.infer());
        refused(result, &format!("{shown} for a variable f32[1, 4]"))?;
        r.reset_variables();
        step(&mut *r, 2.0, 3.0)?;
    }
    Ok(())
}

fn a_model_without_variables_has_none(b: &Bench) -> Outcome {
    let mut r = b.compile(&b.plain())?.create_request();
    let found = r.variables();
    ensure!(found.is_empty(), "found {found:?}");
    r.reset_variables();
    refused(r.variable("v"), "reading a variable of a model without any")?;
    Ok(())
}
