//! Shapes that only a run knows.

use super::bench::{Bench, DeviceRequest, Outcome, infer, refused, row, run, same};
use super::{ensure, suite};
use carafe::{Model, Tensor};

suite!("dynamic":
    ports_tell_what_is_known,
    several_shapes_in_turn,
    a_shape_within_the_bounds_is_taken,
    a_shape_out_of_bounds_is_refused,
    another_rank_is_refused,
    any_rank_is_taken_where_none_is_known,
    an_empty_dimension_is_taken,
    memory_of_the_right_shape_is_used,
    memory_of_another_shape_does_no_harm,
    two_requests_have_their_own_shapes,
);

fn ports_tell_what_is_known(b: &Bench) -> Outcome {
    let models: Vec<Model> = ["1,?", "1,2..8", "?,?", "..."].iter().map(|s| b.chain(s, 1)).collect();
    for model in models {
        super::compile::check_ports(&b.compile(&model)?, &model)?;
    }
    Ok(())
}

fn several_shapes_in_turn(b: &Bench) -> Outcome {
    let model = b.chain("1,?", 2);
    let mut request = b.compile(&model)?.create_request();
    for n in [4, 9, 1, 4, 1000, 3] {
        let x = [row(n, n)];
        same(&run(&mut *request, &x, 1)?, &model.evaluate(&x)?)?;
    }
    Ok(())
}

fn a_shape_within_the_bounds_is_taken(b: &Bench) -> Outcome {
    let model = b.chain("1,2..8", 1);
    let compiled = b.compile(&model)?;
    for n in [2, 5, 8] {
        same(&infer(&compiled, &[row(n, 1)])?, &model.evaluate(&[row(n, 1)])?)?;
    }
    Ok(())
}

fn a_shape_out_of_bounds_is_refused(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.chain("1,2..8", 1))?.create_request();
    for n in [0, 1, 9, 1000] {
        let x = Tensor::zeros(carafe::ElementType::F32, &[1, n])?;
        let result = request.set_input(0, x).and_then(|()| request.infer());
        refused(result, &format!("{n} for the dimension 2..8"))?;
    }
    run(&mut *request, &[row(3, 1)], 1)?;
    Ok(())
}

fn another_rank_is_refused(b: &Bench) -> Outcome {
    let mut request = b.compile(&b.chain("1,?", 1))?.create_request();
    for shape in [&[4][..], &[1, 2, 2], &[]] {
        let x = Tensor::zeros(carafe::ElementType::F32, shape)?;
        refused(request.set_input(0, x), &format!("{shape:?} for [1,?]"))?;
    }
    Ok(())
}

fn any_rank_is_taken_where_none_is_known(b: &Bench) -> Outcome {
    let model = b.chain("...", 1);
    let compiled = b.compile(&model)?;
    for shape in [&[4][..], &[1, 2, 2], &[], &[2, 3]] {
        let n: usize = shape.iter().product();
        let x = [row(n, 1).reshaped(shape)?];
        same(&infer(&compiled, &x)?, &model.evaluate(&x)?)?;
    }
    Ok(())
}

fn an_empty_dimension_is_taken(b: &Bench) -> Outcome {
    b.check(&b.chain("1,?", 2), &[Tensor::zeros(carafe::ElementType::F32, &[1, 0])?])
}

fn memory_of_the_right_shape_is_used(b: &Bench) -> Outcome {
    let model = b.chain("1,?", 1);
    let mut request = b.compile(&model)?.create_request();
    let memory = row(6, 9);
    let location = memory.storage_ptr();
    request.set_output(0, memory)?;
    request.set_input(0, row(6, 1))?;
    request.infer()?;
    ensure!(request.output(0)?.storage_ptr() == location, "the output is not in the memory that was given for it");
    same(&[request.output(0)?.clone()], &model.evaluate(&[row(6, 1)])?)
}

fn memory_of_another_shape_does_no_harm(b: &Bench) -> Outcome {
    let model = b.chain("1,?", 1);
    let mut request = b.compile(&model)?.create_request();
    for given in [2, 60] {
        request.set_output(0, row(given, 9))?;
        same(&run(&mut *request, &[row(6, 1)], 1)?, &model.evaluate(&[row(6, 1)])?)?;
    }
    Ok(())
}

fn two_requests_have_their_own_shapes(b: &Bench) -> Outcome {
    let model = b.chain("1,?", 2);
    let compiled = b.compile(&model)?;
    let (mut one, mut two) = (compiled.clone().create_request(), compiled.create_request());
    let (x, y) = ([row(3, 1)], [row(7, 2)]);
    let (a, c) = (run(&mut *one, &x, 1)?, run(&mut *two, &y, 1)?);
    same(&a, &model.evaluate(&x)?)?;
    same(&c, &model.evaluate(&y)?)?;
    same(&run(&mut *one, &y, 1)?, &model.evaluate(&y)?)
}
