//! What a v10 file means to the API it was written for: mean subtraction in `pre-process`, f32 inputs in place of f16, i32
//! and f32 outputs, and operation names as tensor names. A v11 file says all of this itself.

use super::{Reader, constant};
use crate::xml::{Xml, child, named, number, required, required_number};
use carafe_graph::{AttrMap, AttrValue, Error, Fact, Model, NodeId, OpRef, Parameter, Result, Value};
use carafe_tensor::{ElementType, Tensor};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) fn adjust(reader: &Reader<'_>, net: Xml<'_>, model: &mut Model) -> Result<()> {
    // Looked at only when the newer element is missing.
    if let (None, Some(pre)) = (child(net, "rt_info"), child(net, "pre-process")) {
        subtract_mean(reader, pre, model).map_err(|e| e.at("<pre-process>"))?;
    }
    if reader.options.old_api {
        for parameter in model.parameters().to_vec() {
            let name = model.node(parameter).name().to_string();
            add_name(model, parameter.into(), name);
        }
        for result in model.results().to_vec() {
            let source = model.result_value(result);
            let producer = model.node(source.node);
            let name = match producer.outputs().len() {
                1 => producer.name().to_string(),
                _ => format!("{}.{}", producer.name(), source.port),
            };
            add_name(model, source, name);
        }
        for parameter in model.parameters().to_vec() {
            widen_input(reader, model, parameter)?;
        }
        for result in model.results().to_vec() {
            convert_output(reader, model, result)?;
        }
    }
    model.infer()
}

// A list of tensor names cannot hold an empty one, and only one that ends in a backslash.
fn add_name(model: &mut Model, value: Value, name: String) {
    if !name.is_empty() && !name.ends_with('\\') {
        model.add_tensor_name(value, name);
    }
}

fn convert(reader: &Reader<'_>, to: ElementType) -> Result<OpRef> {
    let factory = reader.registry.find("Convert", "opset1");
    let factory = factory.ok_or_else(|| Error::unsupported("an IR v10 needs Convert of opset1, which is not known"))?;
    factory.create(&AttrMap::from_iter([("destination_type".to_string(), AttrValue::Type(to))]))
}

fn widen_input(reader: &Reader<'_>, model: &mut Model, id: NodeId) -> Result<()> {
    let Some(old) = model.node(id).op().get::<Parameter>().filter(|p| p.element_type == ElementType::F16) else {
        return Ok(());
    };
    let new = Parameter { element_type: ElementType::F32, shape: old.shape.clone() };
    let users = model.users(id.into()).to_vec();
    let name = free_name(model, &format!("{}/convert", model.node(id).name()));
    model.set_op(id, Arc::new(new))?;
    if users.is_empty() {
        return Ok(());
    }
    let back = model.add_ref(name, convert(reader, ElementType::F16)?, &[id.into()])?;
    users.iter().for_each(|u| model.set_input(u.node, u.input, back.into()));
    Ok(())
}

fn convert_output(reader: &Reader<'_>, model: &mut Model, result: NodeId) -> Result<()> {
    use ElementType as E;
    let source = model.result_value(result);
    let to = match model.fact(source).ty {
        E::F32 | E::I32 | E::String => return Ok(()),
        E::I64 | E::U64 | E::U32 => E::I32,
        _ => E::F32,
    };
    let name = free_name(model, &format!("{}/convert", model.node(source.node).name()));
    let value: Value = model.add_ref(name, convert(reader, to)?, &[source])?.into();
    model.set_input(result, 0, value);
    // The names belong to what the user sees; a parameter and a value with further results keep theirs too.
    let names = model.output(source).names.clone();
    let is_shared = model.node(source.node).op().is::<Parameter>()
        || model.users(source).iter().any(|u| model.results().contains(&u.node));
    if is_shared {
        model.set_tensor_names(result.into(), names);
    } else {
        model.set_tensor_names(source, BTreeSet::new());
        model.set_tensor_names(value, names);
    }
    Ok(())
}

fn free_name(model: &Model, wanted: &str) -> String {
    let mut name = wanted.to_string();
    let mut n = 1;
    while model.find_node(&name).is_some() {
        n += 1;
        name = format!("{wanted}_{n}");
    }
    name
}

fn subtract_mean(reader: &Reader<'_>, pre: Xml<'_>, model: &mut Model) -> Result<()> {
    let input = match pre.attribute("reference-layer-name").map(str::trim).filter(|n| !n.is_empty()) {
        Some(name) => model.parameters().iter().copied().find(|p| model.node(*p).name() == name),
        None => model.parameters().iter().copied().find(|p| model.fact((*p).into()).shape.rank() == Some(4)),
    };
    let input = input.ok_or_else(|| Error::invalid("`reference-layer-name` names no input of the model"))?;
    let Some(mean) = mean(reader, pre, model.fact(input.into()))? else { return Ok(()) };
    let factory = reader.registry.find("Subtract", "opset1");
    let factory = factory.ok_or_else(|| Error::unsupported("a mean needs Subtract of opset1, which is not known"))?;
    let users = model.users(input.into()).to_vec();
    if users.is_empty() {
        return Ok(());
    }
    let name = model.node(input).name().to_string();
    let mean = model.constant(&free_name(model, &format!("{name}/mean")), mean)?;
    let subtract = free_name(model, &format!("{name}/subtract_mean"));
    let value: Value = model.add_ref(subtract, factory.create(&AttrMap::new())?, &[input.into(), mean])?.into();
    users.iter().for_each(|u| model.set_input(u.node, u.input, value));
    Ok(())
}

/// The mean of each channel, `[C,1,1]`, or a whole mean image, `[C,H,W]`, in the type of the input.
fn mean(reader: &Reader<'_>, pre: Xml<'_>, input: &Fact) -> Result<Option<Tensor>> {
    let shape = input.shape.to_static().filter(|s| s.len() == 4);
    let shape = shape.ok_or_else(|| Error::invalid(format!("needs an input of static rank 4, found {input}")))?;
    let means: Vec<(u64, Xml<'_>)> = named(pre, "channel")
        .filter_map(|c| Some((c, child(c, "mean")?)))
        .map(|(c, mean)| Ok((required_number(c, "id")?, mean)))
        .collect::<Result<_>>()?;
    if means.is_empty() {
        return Ok(None);
    }
    let channels: Vec<u64> = means.iter().map(|(id, _)| *id).collect();
    if !channels.iter().copied().eq(0..shape[1] as u64) {
        return Err(Error::invalid(format!(
            "needs a mean for channels 0 to {}, found {channels:?}",
            shape[1] as i64 - 1
        )));
    }
    let images = means.iter().filter(|(_, m)| m.attribute("value").is_none()).count();
    let (shape, values) = match images {
        0 => {
            let value = |m: &Xml<'_>| {
                let text = required(*m, "value")?;
                text.trim().parse::<f64>().map_err(|_| Error::invalid(format!("mean `{text}` is not a number")))
            };
            let values = means.iter().map(|(_, m)| value(m)).collect::<Result<Vec<f64>>>()?;
            ([shape[1], 1, 1], values)
        }
        n if n == means.len() => {
            let ty: ElementType = pre.attribute("mean-precision").unwrap_or("FP32").parse()?;
            let mut values = vec![];
            for (_, mean) in &means {
                let (offset, size): (u64, u64) =
                    (number(*mean, "offset")?.unwrap_or(0), required_number(*mean, "size")?);
                let image = constant::slice(reader, ty, &shape[2..], offset, size)?;
                values.extend_from_slice(&image.to_vec::<f64>()?);
            }
            ([shape[1], shape[2], shape[3]], values)
        }
        _ => return Err(Error::invalid("mean values and mean images cannot be mixed")),
    };
    Ok(Some(Tensor::from_f64(input.ty, &shape, &values)?))
}
