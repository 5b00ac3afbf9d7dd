//! Sequences of tensors. They exist only while a model is translated: every rule here takes them apart or puts them
//! together, so their lengths and the positions used must be known.

use super::compose::Compose;
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::VariadicSplit;

pub(crate) const RULES: &[StaticRule] = &[
    rule("ConcatFromSequence", 11, concat_from_sequence),
    rule("SequenceAt", 11, sequence_at),
    rule("SequenceConstruct", 11, sequence_construct),
    rule("SequenceEmpty", 11, sequence_empty),
    rule("SequenceErase", 11, sequence_erase),
    rule("SequenceInsert", 11, sequence_insert),
    rule("SequenceLength", 11, sequence_length),
    rule("SequenceMap", 17, sequence_map),
    rule("SplitToSequence", 11, split_to_sequence),
];

fn sequence(n: &mut NodeCx<'_>, input: usize) -> Result<Vec<Item>> {
    match n.item(input)? {
        Some(Item::Sequence(items)) => Ok(items),
        Some(_) => Err(n.fail(format!("input {input} must be a sequence, found a tensor or nothing"))),
        None => Err(n.fail(format!("input {input} is required and missing"))),
    }
}

fn tensors(n: &NodeCx<'_>, items: Vec<Item>) -> Result<Vec<Value>> {
    let tensor = |item: Item| match item {
        Item::Tensor(v) => Ok(v),
        _ => Err(n.fail("the sequence must hold tensors alone")),
    };
    items.into_iter().map(tensor).collect()
}

// A position in a list of `len`; negative ones count from the end.
fn position(n: &NodeCx<'_>, v: Value, len: usize) -> Result<usize> {
    let at = n.ints(v).and_then(|v| v.first().copied());
    let at = at.ok_or_else(|| n.unsupported("a position in a sequence must be known when the model is read"))?;
    let from_start = if at < 0 { at.saturating_add(len as i64) } else { at };
    let found = usize::try_from(from_start).ok().filter(|&i| i < len);
    found.ok_or_else(|| n.fail(format!("position {at} is outside of a sequence of {len}")))
}

fn sequence_construct(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let items = n.inputs()?.into_iter().map(Item::Tensor).collect();
    Ok(Item::Sequence(items).into())
}

fn sequence_empty(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["dtype"]);
    Ok(Item::Sequence(vec![]).into())
}

fn sequence_length(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let len = sequence(n, 0)?.len();
    Ok(n.i64(len as i64)?.into())
}

fn sequence_at(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let items = sequence(n, 0)?;
    let at = n.input(1)?;
    if n.ints(at).is_some() {
        let at = position(n, at, items.len())?;
        return Ok(items[at].clone().into());
    }
    // An unknown position picks from a stack, when all tensors have one shape.
    let values = tensors(n, items)?;
    let shapes: Vec<_> = values.iter().map(|&v| n.shape(v).to_static()).collect();
    if shapes.is_empty() || shapes[0].is_none() || shapes.iter().any(|s| *s != shapes[0]) {
        return Err(n.unsupported("a position in a sequence of different shapes must be known when the model is read"));
    }
    let rows = values.iter().map(|&v| n.unsqueeze(v, &[0])).collect::<Result<Vec<_>>>()?;
    let stack = n.concat(&rows, 0)?;
    let at = if n.rank(at) == Some(0) { at } else { n.reshape(at, &[])? };
    Ok(n.gather(stack, at, 0)?.into())
}

fn sequence_insert(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut items = sequence(n, 0)?;
    let item = n.item(1)?.ok_or_else(|| n.fail("input 1 is required and missing"))?;
    let at = match n.opt(2)? {
        None => items.len(),
        Some(v) => {
            // The end itself is a place to insert at; from the end, -1 is in front of the last.
            let at = n.ints(v).and_then(|v| v.first().copied());
            match at {
                Some(at) if at == items.len() as i64 => items.len(),
                _ => position(n, v, items.len())?,
            }
        }
    };
    items.insert(at, item);
    Ok(Item::Sequence(items).into())
}

fn sequence_erase(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut items = sequence(n, 0)?;
    let at = match n.opt(1)? {
        None if items.is_empty() => return Err(n.fail("nothing can be erased from an empty sequence")),
        None => items.len() - 1,
        Some(v) => position(n, v, items.len())?,
    };
    items.remove(at);
    Ok(Item::Sequence(items).into())
}

fn concat_from_sequence(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.required("axis")?;
    let new_axis = n.attr("new_axis", 0i64)? != 0;
    let items = sequence(n, 0)?;
    let mut values = tensors(n, items)?;
    if values.is_empty() {
        return Err(n.unsupported("an empty sequence has no concatenation"));
    }
    if new_axis {
        values = values.iter().map(|&v| n.unsqueeze(v, &[axis])).collect::<Result<Vec<_>>>()?;
    }
    Ok(n.concat(&values, axis)?.into())
}

fn split_to_sequence(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let keep = n.attr("keepdims", 1i64)? != 0;
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    let at = n.axis(axis, rank)?;
    let dim = n.shape(x).dim(at).get();
    let parts = |n: &NodeCx<'_>| {
        dim.ok_or_else(|| n.unsupported("the axis to split must be known when the model is read"))
    };
    let lengths = match n.opt(1)? {
        None => vec![1; usize::try_from(parts(n)?).unwrap_or(0)],
        Some(split) => match (n.rank(split), n.ints(split)) {
            (Some(1), Some(lengths)) => lengths,
            (Some(1), None) => return split_by(n, x, at, split),
            (_, Some(size)) => {
                let (total, size) = (parts(n)?, size.first().copied().unwrap_or(0));
                if size < 1 {
                    return Err(n.fail(format!("parts must have 1 or more elements, found {size}")));
                }
                (0..(total + size - 1) / size).map(|i| size.min(total - i * size)).collect()
            }
            _ => return Err(n.unsupported("the number of parts must be known when the model is read")),
        },
    };
    let split = n.i64s(&lengths)?;
    let axis = n.i64(at as i64)?;
    let mut values = n.emit_all(VariadicSplit, &[x, axis, split])?;
    if !keep && !n.has(1) {
        values = values.iter().map(|&v| n.squeeze(v, &[at as i64])).collect::<Result<_>>()?;
    }
    Ok(Item::Sequence(values.into_iter().map(Item::Tensor).collect()).into())
}

// Lengths that come at run time; how many there are is known all the same.
fn split_by(n: &mut NodeCx<'_>, x: Value, axis: usize, split: Value) -> Result<Outputs> {
    if n.shape(split).to_static().is_none() {
        return Err(n.unsupported("the number of parts must be known when the model is read"));
    }
    let axis = n.i64(axis as i64)?;
    let values = n.emit_all(VariadicSplit, &[x, axis, split])?;
    Ok(Item::Sequence(values.into_iter().map(Item::Tensor).collect()).into())
}

fn sequence_map(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let first = sequence(n, 0)?;
    let mut outputs: Vec<Vec<Item>> = vec![vec![]; n.n_outputs()];
    for i in 0..first.len() {
        let mut arguments = vec![];
        for input in 0..n.n_inputs() {
            match n.item(input)? {
                Some(Item::Tensor(v)) => arguments.push(v),
                Some(Item::Sequence(items)) if items.len() == first.len() => {
                    arguments.extend(tensors(n, vec![items[i].clone()])?);
                }
                _ => return Err(n.fail(format!("input {input} must be a tensor or as long as the first sequence"))),
            }
        }
        let facts: Vec<_> = arguments.iter().map(|&v| n.fact(v).clone()).collect();
        let body = n.body("body", &facts)?;
        for (list, item) in outputs.iter_mut().zip(n.inline(&body, &arguments)?) {
            list.push(item);
        }
    }
    Ok(Outputs(outputs.into_iter().map(Item::Sequence).collect()))
}
