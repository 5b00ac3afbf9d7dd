//! Compiling, and the ports that a compiled model shows.

use super::bench::{Bench, Outcome, Stop, infer, refused, row, same};
use super::{ensure, suite};
use carafe::{ElementType, Model, Port, Properties, SharedBytes};

suite!("compile":
    a_model_compiles_and_runs,
    a_model_with_weights_runs,
    a_model_that_was_written_and_read_runs,
    a_model_with_empty_properties_compiles,
    two_compiled_models_live_side_by_side,
    the_same_model_compiles_twice,
    compiling_does_not_change_the_model,
    ports_are_those_of_the_model,
    ports_of_several_inputs_and_outputs_keep_their_order,
    element_types_of_ports_are_those_of_the_model,
    a_parameter_that_is_a_result_runs,
    a_constant_that_is_a_result_runs,
    one_value_may_be_two_results,
    an_unused_input_stays,
    names_may_hold_any_characters,
    a_device_that_is_not_there_is_refused,
);

fn a_model_compiles_and_runs(b: &Bench) -> Outcome {
    b.check(&b.plain(), &[row(4, 1)])
}

fn a_model_with_weights_runs(b: &Bench) -> Outcome {
    b.check(&b.weighted()?, &[row(4, 2)])
}

fn a_model_that_was_written_and_read_runs(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let (xml, weights) = carafe::ir::write_to(&model, &Default::default())?;
    let again = carafe::ir::read(&xml, SharedBytes::from_vec(weights), &b.core.registry(), &Default::default())?;
    let compiled = b.compile(&again)?;
    same(&infer(&compiled, &[row(4, 3)])?, &model.evaluate(&[row(4, 3)])?)
}

fn a_model_with_empty_properties_compiles(b: &Bench) -> Outcome {
    b.skip_unsupported(&b.plain())?;
    b.core.compile_model(&b.plain(), b.device(), &Properties::new())?;
    Ok(())
}

fn two_compiled_models_live_side_by_side(b: &Bench) -> Outcome {
    let (plain, pair) = (b.plain(), b.pair());
    let (one, two) = (b.compile(&plain)?, b.compile(&pair)?);
    for seed in 0..3 {
        let (x, y) = (row(4, seed), row(4, seed + 9));
        same(&infer(&one, std::slice::from_ref(&x))?, &plain.evaluate(std::slice::from_ref(&x))?)?;
        let both = [x, y];
        same(&infer(&two, &both)?, &pair.evaluate(&both)?)?;
    }
    Ok(())
}

fn the_same_model_compiles_twice(b: &Bench) -> Outcome {
    let model = b.plain();
    let (one, two) = (b.compile(&model)?, b.compile(&model)?);
    drop(one);
    same(&infer(&two, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}

fn compiling_does_not_change_the_model(b: &Bench) -> Outcome {
    for model in [b.weighted()?, b.pair(), b.chain("1,4", 5)] {
        let before = model.clone();
        let text = carafe::ir::write_to(&model, &Default::default())?;
        let compiled = b.compile(&model)?;
        let inputs: Vec<_> = compiled.inputs().iter().map(|_| row(4, 1)).collect();
        infer(&compiled, &inputs)?;
        ensure!(model.same_as(&before), "model `{}` is another after compiling", model.name);
        let after = carafe::ir::write_to(&model, &Default::default())?;
        ensure!(text == after, "model `{}` is written otherwise after compiling", model.name);
    }
    Ok(())
}

fn same_ports(what: &str, found: &[Port], expected: &[Port]) -> Outcome {
    ensure!(found.len() == expected.len(), "expected {} {what}s, found {}", expected.len(), found.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        ensure!(f.name == e.name, "{what} {i} is called `{}`, in the model `{}`", f.name, e.name);
        ensure!(f.names == e.names, "{what} {i} has tensor names {:?}, in the model {:?}", f.names, e.names);
        ensure!(f.ty == e.ty, "{what} {i} has type {}, in the model {}", f.ty, e.ty);
        // As text: symbols of dimensions are of one model alone.
        let (found, wanted) = (f.shape.to_string(), e.shape.to_string());
        ensure!(found == wanted, "{what} {i} has shape [{found}], in the model [{wanted}]");
    }
    Ok(())
}

pub(super) fn check_ports(compiled: &carafe::CompiledModel, model: &Model) -> Outcome {
    same_ports("input", compiled.inputs(), &Port::inputs_of(model))?;
    same_ports("output", compiled.outputs(), &Port::outputs_of(model))
}

fn ports_are_those_of_the_model(b: &Bench) -> Outcome {
    for model in [b.plain(), b.weighted()?] {
        check_ports(&b.compile(&model)?, &model)?;
    }
    Ok(())
}

fn ports_of_several_inputs_and_outputs_keep_their_order(b: &Bench) -> Outcome {
    let mut model = b.pair();
    check_ports(&b.compile(&model)?, &model)?;
    let (mut ps, mut rs) = (model.parameters().to_vec(), model.results().to_vec());
    ps.reverse();
    rs.reverse();
    model.order_parameters(ps);
    model.order_results(rs);
    let compiled = b.compile(&model)?;
    check_ports(&compiled, &model)?;
    let inputs = [row(4, 1), row(4, 2)];
    same(&infer(&compiled, &inputs)?, &model.evaluate(&inputs)?)
}

fn element_types_of_ports_are_those_of_the_model(b: &Bench) -> Outcome {
    use ElementType::{Bf16, Boolean, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let (mut taken, mut wrong) = (0, Vec::new());
    for ty in [F32, F16, Bf16, F64, I8, I16, I32, I64, U8, U16, U32, U64, Boolean] {
        let model = Bench::through(ty, "1,4")?;
        let data = carafe::Tensor::from_i64(ty, &[1, 4], &[0, 1, 1, 0])?;
        let checked = || {
            let compiled = b.compile(&model)?;
            check_ports(&compiled, &model)?;
            same(&infer(&compiled, std::slice::from_ref(&data))?, std::slice::from_ref(&data))
        };
        match checked() {
            Ok(()) => taken += 1,
            Err(Stop::Skipped(_)) => {}
            Err(Stop::Failed(m)) => wrong.push(format!("{ty}: {m}")),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    if taken == 0 {
        return Err(Stop::Skipped("an input that is an output is taken in no element type".into()));
    }
    Ok(())
}

fn a_parameter_that_is_a_result_runs(b: &Bench) -> Outcome {
    b.check(&Bench::through(ElementType::F32, "1,4")?, &[row(4, 5)])
}

fn a_constant_that_is_a_result_runs(b: &Bench) -> Outcome {
    b.check(&Bench::constant()?, &[])
}

fn one_value_may_be_two_results(b: &Bench) -> Outcome {
    let mut model = b.plain();
    let value = model.result_value(model.results()[0]);
    model.result("again", value)?;
    b.check(&model, &[row(4, 6)])
}

fn an_unused_input_stays(b: &Bench) -> Outcome {
    let mut model = b.plain();
    super::bench::parameter(&mut model, "unused", ElementType::F32, "1,4");
    let compiled = b.compile(&model)?;
    check_ports(&compiled, &model)?;
    let inputs = [row(4, 1), row(4, 2)];
    same(&infer(&compiled, &inputs)?, &model.evaluate(&inputs)?)
}

fn a_device_that_is_not_there_is_refused(b: &Bench) -> Outcome {
    for name in ["NO_SUCH_DEVICE", ""] {
        refused(b.core.compile_model(&b.plain(), name, &Properties::new()), &format!("device `{name}`"))?;
        let set = b.core.set_property("NO_SUCH_DEVICE", &Properties::new().with("PERF_COUNT", "true"));
        refused(set, "a property of a device that is not there")?;
    }
    Ok(())
}

fn names_may_hold_any_characters(b: &Bench) -> Outcome {
    let mut model = b.chain("1,4", 2);
    model.name = "a model/with: <a> \"name\" & Größe 模型".into();
    let ids: Vec<_> = model.nodes().map(|(id, n)| (id, format!("{} <&> 'ü'/層:{}", n.name(), id.0))).collect();
    for (id, name) in ids {
        model.add_tensor_name(id.into(), format!("tensor of {name}"));
        model.set_name(id, name);
    }
    let compiled = b.compile(&model)?;
    check_ports(&compiled, &model)?;
    let name = compiled.property("NETWORK_NAME")?;
    ensure!(name == model.name, "the model is called `{}`, the compiled one `{name}`", model.name);
    same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}
