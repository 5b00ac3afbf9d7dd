//! Tensors of a request: bound, given back, refused, and left alone.

use super::bench::{Bench, DeviceRequest, Outcome, floats, infer, refused, row, run, same};
use super::{ensure, suite};
use carafe::{ElementType, SharedBytes, Tensor};

suite!("tensors":
    an_input_that_was_set_comes_back,
    an_input_keeps_its_memory_over_an_inference,
    nothing_is_bound_at_first,
    a_wrong_type_is_refused,
    a_wrong_shape_is_refused,
    an_index_that_is_not_there_is_refused,
    what_was_refused_leaves_the_old_tensor_in_place,
    a_missing_input_is_named,
    there_is_no_output_before_an_inference,
    an_inference_does_not_change_its_inputs,
    an_inference_twice_gives_the_same,
    new_inputs_give_new_outputs,
    one_tensor_may_be_bound_twice,
    outputs_go_to_the_memory_that_was_given,
    memory_that_was_given_is_used_again,
    an_output_that_the_user_holds_stays_as_it_is,
    outputs_can_be_inputs_of_the_next_model,
    a_failed_inference_does_not_end_the_request,
    empty_tensors_are_taken,
    tensors_over_read_only_memory_are_taken,
    a_cancellation_before_an_inference_is_forgotten,
    stages_one_by_one_are_an_inference,
);

fn an_input_that_was_set_comes_back(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.pair())?.create_request();
    let tensors = [row(4, 1), row(4, 2)];
    for (i, t) in tensors.iter().enumerate() {
        request.set_input(i, t.clone())?;
    }
    for (i, t) in tensors.iter().enumerate() {
        let found = request.input(i);
        ensure!(found.is_some_and(|f| f.content_eq(t)), "input {i} was set, and is {found:?}");
        let again = request.input(i).map(Tensor::storage_ptr);
        ensure!(again == Some(t.storage_ptr()), "input {i} was copied when it was bound");
    }
    Ok(())
}

fn an_input_keeps_its_memory_over_an_inference(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.plain())?.create_request();
    let x = row(4, 1);
    run(&mut *request, std::slice::from_ref(&x), 1)?;
    let found = request.input(0).map(Tensor::storage_ptr);
    ensure!(found == Some(x.storage_ptr()), "the input lies elsewhere after the inference");
    Ok(())
}

fn nothing_is_bound_at_first(b: &Bench) -> Outcome {
    let request = b.compile(&b.plain())?.create_request();
    ensure!(request.input(7).is_none(), "input 7 of one is bound");
    Ok(())
}

fn a_wrong_type_is_refused(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.plain())?.create_request();
    for ty in [ElementType::I32, ElementType::F16, ElementType::F64, ElementType::U8] {
        let wrong = Tensor::zeros(ty, &[1, 4])?;
        refused(request.set_input(0, wrong.clone()), &format!("{ty} for an f32 input"))?;
        refused(request.set_output(0, wrong), &format!("{ty} for an f32 output"))?;
    }
    Ok(())
}

fn a_wrong_shape_is_refused(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.plain())?.create_request();
    for shape in [&[4][..], &[1, 5], &[1, 3], &[2, 4], &[4, 1], &[1, 1, 4], &[], &[1, 0]] {
        let wrong = Tensor::zeros(ElementType::F32, shape)?;
        refused(request.set_input(0, wrong.clone()), &format!("an input {shape:?} for [1, 4]"))?;
        refused(request.set_output(0, wrong), &format!("an output {shape:?} for [1, 4]"))?;
    }
    Ok(())
}

fn an_index_that_is_not_there_is_refused(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.plain())?.create_request();
    for index in [1, 100, usize::MAX] {
        refused(request.set_input(index, row(4, 1)), &format!("input {index} of one"))?;
        refused(request.set_output(index, row(4, 1)), &format!("output {index} of one"))?;
        ensure!(request.input(index).is_none(), "input {index} of one is bound");
    }
    run(&mut *request, &[row(4, 1)], 1)?;
    refused(request.output(1).cloned(), "reading output 1 of one")?;
    Ok(())
}

fn what_was_refused_leaves_the_old_tensor_in_place(b: &Bench) -> Outcome {
    let model = b.plain();
    let mut request = b.compile(&model)?.create_request();
    request.set_input(0, row(4, 1))?;
    refused(request.set_input(0, row(5, 1)), "an input of another shape")?;
    request.infer()?;
    same(&[request.output(0)?.clone()], &model.evaluate(&[row(4, 1)])?)
}

fn a_missing_input_is_named(b: &Bench) -> Outcome {
    let model = b.pair();
    let mut request = b.compile(&model)?.create_request();
    request.set_input(0, row(4, 1))?;
    let e = refused(request.infer(), "an inference without the second input")?.to_string();
    ensure!(e.contains("x1"), "the error does not name input `x1`: {e}");
    let inputs = [row(4, 1), row(4, 2)];
    same(&run(&mut *request, &inputs, 2)?, &model.evaluate(&inputs)?)
}

fn there_is_no_output_before_an_inference(b: &Bench) -> Outcome {
    let request = b.compile(&b.plain())?.create_request();
    refused(request.output(0).cloned(), "reading an output before any inference")?;
    Ok(())
}

fn an_inference_does_not_change_its_inputs(b: &Bench) -> Outcome {
    let (x, before) = (row(4, 1), row(4, 1));
    for model in [b.plain(), Bench::through(ElementType::F32, "1,4")?, b.chain("1,4", 3)] {
        if b.skip_unsupported(&model).is_ok() {
            infer(&b.compile(&model)?, std::slice::from_ref(&x))?;
            ensure!(x.content_eq(&before), "model `{}` changed its input", model.name);
        }
    }
    Ok(())
}

fn an_inference_twice_gives_the_same(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.weighted()?)?.create_request();
    let first = run(&mut *request, &[row(4, 3)], 1)?;
    request.infer()?;
    let second = request.output(0)?;
    ensure!(second.content_eq(&first[0]), "first {:?}, then {second:?}", first[0]);
    Ok(())
}

fn new_inputs_give_new_outputs(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let mut request = b.compile(&model)?.create_request();
    for seed in 0..5 {
        let x = [row(4, seed)];
        same(&run(&mut *request, &x, 1)?, &model.evaluate(&x)?)?;
    }
    Ok(())
}

fn one_tensor_may_be_bound_twice(b: &Bench) -> Outcome {
    let x = row(4, 4);
    b.check(&b.pair(), &[x.clone(), x])
}

fn outputs_go_to_the_memory_that_was_given(b: &Bench) -> Outcome {
    let model = b.pair();
    let inputs = [row(4, 1), row(4, 2)];
    let mut request = b.compile(&model)?.create_request();
    let memory = [floats(&[9.0; 4]), floats(&[8.0; 4])];
    let locations = memory.each_ref().map(Tensor::storage_ptr);
    for (i, t) in memory.into_iter().enumerate() {
        request.set_output(i, t)?;
    }
    let expected = model.evaluate(&inputs)?;
    same(&run(&mut *request, &inputs, 2)?, &expected)?;
    for (i, location) in locations.iter().enumerate() {
        ensure!(request.output(i)?.storage_ptr() == *location, "output {i} is not in the memory that was given for it");
    }
    Ok(())
}

fn memory_that_was_given_is_used_again(b: &Bench) -> Outcome {
    let model = b.plain();
    let mut request = b.compile(&model)?.create_request();
    let memory = floats(&[9.0; 4]);
    let location = memory.storage_ptr();
    request.set_output(0, memory)?;
    for seed in 0..3 {
        request.set_input(0, row(4, seed))?;
        request.infer()?;
        ensure!(request.output(0)?.storage_ptr() == location, "inference {seed} put the output elsewhere");
        compare_one(&*request, &model.evaluate(&[row(4, seed)])?)?;
    }
    Ok(())
}

// Without a copy of the tensor, which would make its memory shared.
fn compare_one(request: &dyn carafe::device::InferRequest, expected: &[Tensor]) -> Outcome {
    let found = Tensor::from_bytes(ElementType::F32, &[1, 4], request.output(0)?.bytes())?;
    same(&[found], expected)
}

fn an_output_that_the_user_holds_stays_as_it_is(b: &Bench) -> Outcome {
    let model = b.plain();
    let mut request = b.compile(&model)?.create_request();
    let held = run(&mut *request, &[row(4, 1)], 1)?;
    run(&mut *request, &[row(4, 2)], 1)?;
    same(&held, &model.evaluate(&[row(4, 1)])?)
}

fn outputs_can_be_inputs_of_the_next_model(b: &Bench) -> Outcome {
    let (one, two) = (b.weighted()?, b.plain());
    let middle = infer(&b.compile(&one)?, &[row(4, 1)])?;
    let end = infer(&b.compile(&two)?, &middle)?;
    same(&end, &two.evaluate(&one.evaluate(&[row(4, 1)])?)?)
}

fn a_failed_inference_does_not_end_the_request(b: &Bench) -> Outcome {
    let model = b.plain();
    let mut request = b.compile(&model)?.create_request();
    refused(request.infer(), "an inference without inputs")?;
    same(&run(&mut *request, &[row(4, 1)], 1)?, &model.evaluate(&[row(4, 1)])?)
}

fn empty_tensors_are_taken(b: &Bench) -> Outcome {
    b.check(&b.chain("1,0", 2), &[Tensor::zeros(ElementType::F32, &[1, 0])?])
}

fn stages_one_by_one_are_an_inference(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let mut request = b.compile(&model)?.create_request();
    let stages = request.stages();
    ensure!(!stages.is_empty(), "a request has no stages");
    ensure!(stages.iter().all(|s| !s.executor.is_empty()), "a stage names no executor: {stages:?}");
    for seed in 0..2 {
        request.set_input(0, row(4, seed))?;
        request.cancel_flag().clear();
        for stage in 0..stages.len() {
            request.run_stage(stage)?;
        }
        same(&[request.output(0)?.clone()], &model.evaluate(&[row(4, seed)])?)?;
    }
    Ok(())
}

// As a file of inputs that is mapped, from its middle.
fn tensors_over_read_only_memory_are_taken(b: &Bench) -> Outcome {
    let x = row(4, 7);
    let model = b.plain();
    let compiled = b.compile(&model)?;
    for before in [64, 3] {
        let bytes = SharedBytes::from_vec([&vec![0; before][..], x.bytes(), &[0xff; 64]].concat());
        let view = Tensor::view(ElementType::F32, &[1, 4], &bytes, before, x.byte_len())?;
        same(&infer(&compiled, std::slice::from_ref(&view))?, &model.evaluate(std::slice::from_ref(&x))?)?;
        let mut request = compiled.clone().create_request();
        request.set_output(0, view.clone())?;
        same(&run(&mut *request, &[row(4, 8)], 1)?, &model.evaluate(&[row(4, 8)])?)?;
        ensure!(view.content_eq(&x), "memory that others read was written");
    }
    Ok(())
}

fn a_cancellation_before_an_inference_is_forgotten(b: &Bench) -> Outcome {
    let model = b.plain();
    let mut request = b.compile(&model)?.create_request();
    request.cancel_flag().set();
    ensure!(request.cancel_flag().is_set(), "two flags of one request are not the same");
    same(&run(&mut *request, &[row(4, 1)], 1)?, &model.evaluate(&[row(4, 1)])?)
}
