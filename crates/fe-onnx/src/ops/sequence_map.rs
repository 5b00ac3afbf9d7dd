//! SequenceMap. Over a sequence whose elements are known one by one the body is laid out once for each; over one that only
//! a run knows it becomes a Loop that takes an element of each input and appends to each output.

use super::control::capture;
use super::sequence::{Sequence, element, sequence};
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, SubModel, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Fact, ItemType, Parameter, Result, Value};
use carafe_ops::control::Loop;
use carafe_ops::carafe::{SequenceAt, SequenceInsert, SequenceLength};
use carafe_tensor::{ElementType, PartialShape, Tensor, pack_sequence};
use std::sync::Arc;

pub(crate) const RULES: &[StaticRule] = &[rule("SequenceMap", 17, sequence_map)];

fn sequence_map(n: &mut NodeCx<'_>) -> Result<Outputs> {
    match sequence(n, 0)? {
        Sequence::Known(first) => each(n, first.len()),
        Sequence::Packed(first, _) => at_run_time(n, first),
    }
}

fn each(n: &mut NodeCx<'_>, count: usize) -> Result<Outputs> {
    let mut outputs: Vec<Vec<Item>> = vec![vec![]; n.n_outputs()];
    for i in 0..count {
        let (mut arguments, mut types) = (vec![], vec![]);
        for input in 0..n.n_inputs() {
            let item = match n.item(input)? {
                Some(Item::Sequence(items)) if items.len() == count => items[i].clone(),
                Some(Item::Packed { value, ty: ItemType::Sequence(inner) }) => {
                    let at = n.i64(i as i64)?;
                    element(n, value, *inner, at)?
                }
                Some(item @ Item::Tensor(_)) => item,
                _ => return Err(n.fail(format!("input {input} must be a tensor or as long as the first sequence"))),
            };
            let ty = item.ty(n.model())?;
            arguments.push(n.pack(&item, &ty)?);
            types.push(ty);
        }
        let body = n.body_of("body", &types)?;
        for (list, item) in outputs.iter_mut().zip(n.inline(&body, &arguments)?) {
            list.push(item);
        }
    }
    Ok(Outputs(outputs.into_iter().map(Item::Sequence).collect()))
}

fn at_run_time(n: &mut NodeCx<'_>, first: Value) -> Result<Outputs> {
    let trips = n.emit(SequenceLength, &[first])?;
    let condition = n.constant(truth()?)?;
    let mut inputs = vec![trips, condition];
    let (mut types, mut sequences) = (vec![], vec![]);
    for input in 0..n.n_inputs() {
        match n.item(input)? {
            Some(item @ Item::Tensor(v)) => {
                types.push(item.ty(n.model())?);
                inputs.push(v);
            }
            _ => {
                let (value, inner) = sequence(n, input)?.packed(n)?;
                sequences.push(input);
                types.push(inner);
                inputs.push(value);
            }
        }
    }
    let mut sub = n.body_of("body", &types)?;
    let elements = sub.outputs.iter().map(|o| o.ty(&sub.model)).collect::<Result<Vec<_>>>()?;
    if sub.model.parameters().len() - sub.captured.len() != types.len() {
        return Err(n.fail(format!("the body must have {} inputs, one for each of the node", types.len())));
    }
    sub.settle(&elements.iter().cloned().map(Some).collect::<Vec<_>>())?;
    let captured = std::mem::take(&mut sub.captured);
    let mut body = iteration(sub, &sequences, &types)?;
    for parameter in 0..types.len() {
        body.inputs.push(BodyInput { outer: Some(2 + parameter), parameter, slicing: None, back_edge: None });
    }
    let start = body.current_iteration.unwrap_or(0) + 1;
    for i in 0..elements.len() {
        let empty = n.constant(pack_sequence(&[])?)?;
        let outer = Some(inputs.len());
        body.inputs.push(BodyInput { outer, parameter: start + i, slicing: None, back_edge: Some(i) });
        body.outputs.push(BodyOutput { outer: i, result: i, slicing: None });
        inputs.push(empty);
    }
    let captured = capture(&mut body, &captured, inputs.len());
    inputs.extend(captured);
    let values = n.emit_all(Loop { body }, &inputs)?;
    let item = |(value, ty)| Item::Packed { value, ty: ItemType::sequence(ty) };
    Ok(Outputs(values.into_iter().zip(elements).map(item).collect()))
}

// The body of the Loop: parameters that were elements become the sequences, and behind all others come the counter and
// what each output has so far. The results are the outputs, each one longer, and the condition.
fn iteration(sub: SubModel, sequences: &[usize], types: &[ItemType]) -> Result<Body> {
    let mut model = sub.model;
    let packed = ItemType::sequence(ItemType::Unknown).fact();
    let counter = model.parameter("iteration", ElementType::I64, PartialShape::scalar())?;
    let current_iteration = model.parameters().len() - 1;
    for &i in sequences {
        let parameter = model.parameters()[i];
        let (element_type, shape) = (packed.ty, packed.shape.clone());
        model.set_op(parameter, Arc::new(Parameter { shape, element_type }))?;
        let Fact { ty: element_type, shape, .. } = types[i].fact();
        let name = format!("element/{i}");
        let at = model.add(name, SequenceAt { element_type, shape }, &[parameter.into(), counter])?;
        model.replace_value(parameter.into(), at.into());
    }
    let results = model.results().to_vec();
    for (i, &result) in results.iter().enumerate() {
        let so_far = model.parameter(&format!("so far/{i}"), packed.ty, packed.shape.clone())?;
        let item = model.result_value(result);
        let longer = model.add(format!("longer/{i}"), SequenceInsert, &[so_far, item])?;
        model.set_input(result, 0, longer.into());
    }
    let go_on = model.constant("go on", truth()?)?;
    model.result("condition", go_on)?;
    model.infer()?;
    let mut body = Body::new(model);
    body.inputs.push(BodyInput { outer: None, parameter: current_iteration, slicing: None, back_edge: None });
    body.current_iteration = Some(current_iteration);
    body.execution_condition = Some(results.len());
    Ok(body)
}

fn truth() -> Result<Tensor> {
    Ok(Tensor::from_i64(ElementType::Boolean, &[], &[1])?)
}
