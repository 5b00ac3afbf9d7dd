//! Makes operations from checked layers and adds them to a model, producers first.

use super::Reader;
use super::lookup::Class;
use super::net::{Layer, Net, Source, declared_dims, declared_type};
use super::{constant, info};
use crate::names;
use crate::xml::{child, plain_attributes};
use carafe_graph::{
    AttrMap, AttrValue, Body, Constant, Error, FrameworkNode, Model, NodeId, OpNew, OpRef, Parameter, Result, ResultOp,
    Value, newest,
};
use carafe_tensor::{ElementType, PartialShape};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) fn model(reader: &Reader<'_>, net: &Net<'_>) -> Result<Model> {
    let mut model = Model::default();
    let mut ids: Vec<Option<NodeId>> = vec![None; net.layers.len()];
    let unique = unique_names(net);
    let mut unread: Vec<NodeId> = Vec::new();
    for &i in &net.order {
        let layer = &net.layers[i];
        let make = || {
            let inputs = sources(net, layer, &ids, &model)?;
            let attrs = attributes(layer);
            Ok((operation(reader, layer, &attrs)?, attrs, inputs))
        };
        let (op, attrs, inputs) = make().map_err(|e: Error| e.at(layer.location()))?;
        // An error of inference names the node itself.
        let (op, newest_inputs) = newest(&mut model, &unique[i], op, &inputs)?;
        let id = model.add_ref(unique[i].clone(), op, &newest_inputs)?;
        unread.extend(inputs.iter().filter(|v| !newest_inputs.contains(v)).map(|v| v.node));
        ids[i] = Some(id);
        describe(reader, layer, &attrs, id, &mut model);
    }
    // Constants that older versions of operations had to have.
    for id in unread {
        if model.get(id).is_some_and(|n| n.op().is::<Constant>()) && model.users(id.into()).is_empty() {
            model.remove(id)?;
        }
    }
    check_variables(&model)?;
    if let Some(tree) = child(net.xml, "rt_info") {
        model.rt_info = info::of_net(tree);
    }
    Ok(model)
}

// Parameters and results keep their names first: users look models up by them.
fn unique_names(net: &Net<'_>) -> Vec<String> {
    let is_outer = |i: &usize| net.layers[*i].class.is_parameter() || net.layers[*i].class.is_result();
    let (outer, rest): (Vec<usize>, Vec<usize>) = net.order.iter().partition(|i| is_outer(i));
    let mut unique = vec![String::new(); net.layers.len()];
    let mut taken = HashSet::new();
    let mut tried: HashMap<&str, usize> = HashMap::new();
    for i in outer.into_iter().chain(rest) {
        let name = net.layers[i].name;
        let mut new = name.to_string();
        while !taken.insert(new.clone()) {
            let n = tried.entry(name).or_insert(1);
            *n += 1;
            new = format!("{name}_{n}");
        }
        unique[i] = new;
    }
    unique
}

fn sources(net: &Net<'_>, layer: &Layer<'_>, ids: &[Option<NodeId>], model: &Model) -> Result<Vec<Value>> {
    let value = |source: &Source| {
        let producer = &net.layers[source.layer];
        // Sorting put every producer in front.
        let id = ids[source.layer].ok_or_else(|| Error::invalid(format!("{} is not built", producer.location())))?;
        match model.node(id).outputs().len() {
            n if source.port >= n => {
                Err(Error::invalid(format!("reads output {} of {}, which has {n}", source.port, producer.location())))
            }
            _ => Ok(Value { node: id, port: source.port }),
        }
    };
    layer.sources.iter().map(value).collect()
}

fn attributes(layer: &Layer<'_>) -> AttrMap {
    let data = child(layer.xml, "data");
    let mut attrs: AttrMap = data
        .into_iter()
        .flat_map(plain_attributes)
        .map(|a| (a.name().to_string(), AttrValue::Text(a.value().to_string())))
        .collect();
    if matches!(layer.class, Class::Known(_)) {
        clear_ignored_pads(&mut attrs);
    }
    attrs
}

// Pads beside an automatic padding mean nothing; files hold zeros or leftovers there.
fn clear_ignored_pads(attrs: &mut AttrMap) {
    let text = |attrs: &AttrMap, name: &str| attrs.get(name).and_then(AttrValue::to_text);
    let Some(mode) = text(attrs, "auto_pad").map(|m| m.trim().to_ascii_lowercase()) else { return };
    if matches!(mode.as_str(), "explicit" | "notset" | "") {
        return;
    }
    for name in ["pads_begin", "pads_end"] {
        let numbers: Option<Vec<i64>> = text(attrs, name).and_then(|pads| {
            pads.split(',').map(str::trim).filter(|p| !p.is_empty()).map(|p| p.parse().ok()).collect()
        });
        if let Some(numbers) = numbers {
            attrs.set(name, AttrValue::Ints(vec![0; numbers.len()]));
        }
    }
}

fn operation(reader: &Reader<'_>, layer: &Layer<'_>, attrs: &AttrMap) -> Result<OpRef> {
    Ok(match layer.class {
        Class::Parameter => Arc::new(Parameter::from_attrs(attrs)?),
        Class::Result => Arc::new(ResultOp {}),
        Class::Constant => {
            let data = child(layer.xml, "data").ok_or_else(|| Error::invalid("<data> is required and missing"))?;
            Arc::new(Constant::new(constant::tensor(reader, data)?))
        }
        Class::Unknown => Arc::new(unknown(layer, attrs)?),
        Class::Known(factory) if layer.bodies.is_empty() => factory.create(attrs)?,
        Class::Known(factory) => {
            let mut attrs = attrs.clone();
            for body in &layer.bodies {
                let model = model(reader, &body.net).map_err(|e| e.at(format!("`{}`", body.attribute)))?;
                let value = Body {
                    model,
                    inputs: body.inputs.clone(),
                    outputs: body.outputs.clone(),
                    current_iteration: body.current_iteration,
                    execution_condition: body.execution_condition,
                };
                attrs.set(body.attribute, AttrValue::Body(Box::new(value)));
            }
            factory.create(&attrs)?
        }
    })
}

fn unknown(layer: &Layer<'_>, attrs: &AttrMap) -> Result<FrameworkNode> {
    let mut outputs = Vec::with_capacity(layer.outputs.list.len());
    for &port in &layer.outputs.list {
        let ty = declared_type(port)?.unwrap_or(ElementType::Dynamic);
        // A scalar and an unknown rank look the same here; the unknown rank fits whatever reads it.
        let dims = declared_dims(port)?;
        let shape = if dims.is_empty() { PartialShape::dynamic() } else { PartialShape::new(dims) };
        outputs.push((ty, shape));
    }
    Ok(FrameworkNode {
        type_name: layer.kind.to_string(),
        opset: layer.version.to_string(),
        attrs: attrs.iter().filter(|(_, v)| v.to_text().is_some()).map(|(n, v)| (n.to_string(), v.clone())).collect(),
        outputs,
        rule: None,
    })
}

// Names of tensors, and in v11 what is attached to nodes and ports.
fn describe(reader: &Reader<'_>, layer: &Layer<'_>, attrs: &AttrMap, id: NodeId, model: &mut Model) {
    let n_outputs = model.node(id).outputs().len();
    for (port, xml) in layer.outputs.list.iter().enumerate().take(n_outputs) {
        let value = Value { node: id, port };
        if let Some(list) = xml.attribute("names") {
            model.set_tensor_names(value, names::split(list));
        }
        if reader.version > 10 {
            *model.output_rt_info_mut(value) = info::of_node(*xml);
        }
    }
    if let (Class::Known(_), Some(priority)) = (layer.class, attrs.get("PrimitivesPriority")) {
        let value = priority.to_text().unwrap_or_default();
        model.rt_info_mut(id).set("primitives_priority", "0", vec![("value".into(), value)]);
    }
    if reader.version == 10 {
        return;
    }
    if let (true, Some(list)) = (layer.class.is_result(), layer.xml.attribute("output_names")) {
        model.set_tensor_names(id.into(), names::split(list));
    }
    let own = info::of_node(layer.xml);
    let info = model.rt_info_mut(id);
    info.user = own.user;
    own.attributes.into_iter().for_each(|a| info.set(a.name, &a.version, a.fields));
    for (input, xml) in layer.inputs.list.iter().enumerate().take(layer.sources.len()) {
        let info = info::of_node(*xml);
        if !info.is_empty() {
            model.set_input_rt_info(id, input, info);
        }
    }
}

// Order between reader and writer of a variable is not in the file; it follows from their ids, so both must be there.
fn check_variables(model: &Model) -> Result<()> {
    let variable = |id: NodeId| {
        let attrs = model.node(id).op().attrs();
        attrs.into_iter().find(|(name, _)| name == "variable_id").and_then(|(_, v)| v.to_text())
    };
    let is_reader = |id: &NodeId| {
        let info = model.node(*id).op().info();
        info.stateful && !info.sink
    };
    if model.sinks().is_empty() {
        return Ok(());
    }
    let read: HashSet<String> = model.nodes().map(|(id, _)| id).filter(is_reader).filter_map(variable).collect();
    for &sink in model.sinks().iter().filter(|s| model.node(**s).op().info().stateful) {
        if let Some(id) = variable(sink).filter(|id| !read.contains(id)) {
            return Err(
                Error::invalid(format!("writes variable `{id}`, which nothing reads")).at(model.node(sink).location())
            );
        }
    }
    Ok(())
}
