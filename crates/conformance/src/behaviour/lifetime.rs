//! Objects may go in any order; what is left goes on working.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, row, run, same};
use super::suite;
use carafe::device::{Device, InferRequest};
use carafe::{CompiledModel, Core, Model, Tensor};
use std::sync::Arc;

suite!("lifetime":
    a_compiled_model_outlives_its_core,
    a_request_outlives_its_model,
    an_output_outlives_its_request,
    objects_may_go_in_any_order,
    an_asynchronous_request_outlives_everything,
    an_imported_model_outlives_its_core,
    a_variable_outlives_its_request,
);

// All of one core that no one else holds.
struct Things {
    core: Option<Core>,
    device: Option<Arc<dyn Device>>,
    compiled: Option<CompiledModel>,
    request: Option<Box<dyn InferRequest>>,
    output: Option<Tensor>,
}

impl Things {
    fn make(b: &Bench, model: &Model) -> Outcome<Things> {
        b.skip_unsupported(model)?;
        let core = b.target.core()?;
        let device = core.device(b.device())?;
        let compiled = core.compile_model(model, b.device(), b.properties())?;
        let mut request = compiled.clone().create_request();
        let output = run(&mut *request, &[row(4, 1)], 1)?.pop();
        Ok(Things { core: Some(core), device: Some(device), compiled: Some(compiled), request: Some(request), output })
    }
    fn release(&mut self, what: usize) {
        match what {
            0 => drop(self.core.take()),
            1 => drop(self.device.take()),
            2 => drop(self.compiled.take()),
            3 => drop(self.request.take()),
            _ => drop(self.output.take()),
        }
    }
    // Whatever is left works.
    fn check(&mut self, model: &Model) -> Outcome {
        let expected = model.evaluate(&[row(4, 1)])?;
        if let Some(request) = &mut self.request {
            same(&run(&mut **request, &[row(4, 1)], 1)?, &expected)?;
        }
        if let Some(compiled) = &self.compiled {
            same(&run(&mut *compiled.clone().create_request(), &[row(4, 1)], 1)?, &expected)?;
            compiled.property("NETWORK_NAME")?;
            compiled.runtime_model();
        }
        if let Some(device) = &self.device {
            device.metric("FULL_DEVICE_NAME")?;
        }
        match &self.output {
            Some(output) => same(std::slice::from_ref(output), &expected),
            None => Ok(()),
        }
    }
}

fn a_compiled_model_outlives_its_core(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let mut things = Things::make(b, &model)?;
    (0..2).for_each(|i| things.release(i));
    things.check(&model)
}

fn a_request_outlives_its_model(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let mut things = Things::make(b, &model)?;
    (0..3).for_each(|i| things.release(i));
    things.check(&model)
}

fn an_output_outlives_its_request(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let mut things = Things::make(b, &model)?;
    (0..4).for_each(|i| things.release(i));
    things.check(&model)
}

fn objects_may_go_in_any_order(b: &Bench) -> Outcome {
    let model = b.plain();
    // Every object goes first once, and every other one after it.
    for first in 0..5 {
        for second in (0..5).filter(|s| *s != first) {
            let mut things = Things::make(b, &model)?;
            let rest = (0..5).filter(|i| *i != first && *i != second);
            for what in [first, second].into_iter().chain(rest) {
                things.release(what);
                things.check(&model).map_err(|e| Stop::Failed(format!("{first} before {second}, {what}: {e:?}")))?;
            }
        }
    }
    Ok(())
}

fn an_asynchronous_request_outlives_everything(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let mut things = Things::make(b, &model)?;
    let request = things.compiled.as_ref().map(CompiledModel::create_infer_request);
    (0..5).for_each(|i| things.release(i));
    let request = request.ok_or_else(|| Stop::Failed("there is no model".into()))?;
    request.set_input(0, row(4, 1))?;
    request.start_async(())?;
    request.wait()?;
    same(&[request.output(0)?], &model.evaluate(&[row(4, 1)])?)
}

fn an_imported_model_outlives_its_core(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let model = b.weighted()?;
    let mut blob = Vec::new();
    b.compile(&model)?.export(&mut blob)?;
    let blob = carafe::SharedBytes::from_vec(blob);
    let compiled = b.target.core()?.import_model(blob, b.device(), b.properties())?;
    same(&run(&mut *compiled.create_request(), &[row(4, 1)], 1)?, &model.evaluate(&[row(4, 1)])?)
}

fn a_variable_outlives_its_request(b: &Bench) -> Outcome {
    let model = super::state::counter(true)?;
    let mut request = b.compile(&model)?.create_request();
    let output = run(&mut *request, &[row(4, 1)], 1)?;
    let kept = request.variable("v")?.ok_or_else(|| Stop::Failed("there is no value".into()))?;
    drop(request);
    same(&[kept], &output)
}
