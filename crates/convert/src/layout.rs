//! `--layout`, `--source_layout` and `--target_layout`: what the axes of inputs and outputs mean, and Transposes where the
//! converted model shall take or give another order. The source is the order inside the model, the target the one outside.

use super::places::{self, find_input};
use super::{ConversionOptions, NamedInput, syntax};
use carafe_graph::{Error, Model, NodeId, Parameter, Result, Value};
use carafe_preprocess::Layout;
use carafe_preprocess::nodes::{self, redirect};
use carafe_tensor::PartialShape;
use std::sync::Arc;

/// Layouts the user gave for inputs (Parameters) and outputs (Results).
#[derive(Debug, Default)]
pub(super) struct Layouts(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    node: NodeId,
    name: String,
    source: Option<Layout>,
    target: Option<Layout>,
}

impl Layouts {
    fn source(&self, model: &Model, parameter: NodeId) -> Result<Option<Layout>> {
        if let Some(entry) = self.0.iter().find(|e| e.node == parameter) {
            return Ok(entry.source.clone());
        }
        Layout::of(model, parameter.into())
    }

    /// Whether anything is known of the axes of this input.
    pub(super) fn has(&self, model: &Model, parameter: NodeId) -> bool {
        self.source(model, parameter).is_ok_and(|l| l.is_some())
    }

    /// The axis of this name inside the model, where the layout tells it.
    pub(super) fn axis(&self, model: &Model, parameter: NodeId, name: &str) -> Result<Option<usize>> {
        let (Some(layout), Some(rank)) = (self.source(model, parameter)?, model.fact(parameter.into()).shape.rank())
        else {
            return Ok(None);
        };
        layout.axis(name, rank)
    }
}

/// Reads the three options against the inputs and outputs of the model.
pub(super) fn read(model: &Model, inputs: &[NamedInput], options: &ConversionOptions) -> Result<Layouts> {
    let mut all = Layouts::default();
    let parts = [
        ("option `--layout`", &options.layout, Half::Both),
        ("option `--source_layout`", &options.source_layout, Half::Source),
        ("option `--target_layout`", &options.target_layout, Half::Target),
    ];
    for (option, text, half) in parts {
        if let Some(text) = text {
            read_one(model, inputs, text, half, &mut all).map_err(|e| e.at(option))?;
        }
    }
    Ok(all)
}

#[derive(Clone, Copy, PartialEq)]
enum Half {
    Both,
    Source,
    Target,
}

fn read_one(model: &Model, inputs: &[NamedInput], text: &str, half: Half, all: &mut Layouts) -> Result<()> {
    let items = syntax::list(text)?;
    let named = |item: &str| matches!(syntax::name_and_group(item, &[('(', ')')]), (name, Some(_)) if !name.is_empty());
    if items.iter().any(|i| named(i)) != items.iter().all(|i| named(i)) {
        return Err(Error::usage("some layouts have a name and some have none; name all of them or none"));
    }
    if !named(items[0]) && items.len() != inputs.len() {
        let names: Vec<String> = inputs.iter().map(|n| model.parameter_name(n.parameter)).collect();
        return Err(Error::usage(format!(
            "found {} layouts without a name for {} inputs ({}); name them, such as {}({})",
            items.len(),
            names.len(),
            places::some_of(&names),
            names.first().map_or("name", String::as_str),
            items[0]
        )));
    }
    for (position, item) in items.iter().enumerate() {
        let (name, inside) = match syntax::name_and_group(item, &[('(', ')')]) {
            (name, Some(inside)) if !name.is_empty() => (name.to_string(), inside),
            _ => (model.parameter_name(inputs[position].parameter), *item),
        };
        let node = if named(item) { find_port(model, inputs, &name)? } else { inputs[position].parameter };
        let (source, target) = match (inside.split_once("->"), half) {
            (Some((a, b)), Half::Both) => (Some(a.trim().parse()?), Some(b.trim().parse()?)),
            (Some(_), _) => return Err(Error::usage(format!("`{item}`: `->` belongs to --layout"))),
            (None, Half::Target) => (None, Some(inside.parse()?)),
            (None, _) => (Some(inside.parse()?), None),
        };
        match all.0.iter_mut().find(|e| e.node == node) {
            Some(entry) if entry.target.is_none() && half == Half::Target => entry.target = target,
            Some(_) => return Err(Error::usage(format!("`{name}` has two layouts"))),
            None => all.0.push(Entry { node, name, source, target }),
        }
    }
    Ok(())
}

// A Parameter or a Result.
fn find_port(model: &Model, inputs: &[NamedInput], name: &str) -> Result<NodeId> {
    find_input(model, inputs, name).or_else(|_| {
        let mut known: Vec<String> = model.parameters().iter().map(|&p| model.parameter_name(p)).collect();
        known.extend(model.results().iter().map(|&r| model.result_name(r)));
        let like = places::near(name, known.iter().map(String::as_str));
        model.find_result(name).map(|i| model.results()[i]).ok_or_else(|| {
            let known = places::some_of(&known);
            Error::not_found(format!("the model has no input or output `{name}`{like}; it has: {known}"))
        })
    })
}

/// Writes the layouts into the model and inserts the Transposes.
pub(super) fn apply(model: &mut Model, layouts: &Layouts) -> Result<()> {
    for entry in &layouts.0 {
        let at = |e: Error| e.at(format!("layout of `{}`", entry.name));
        if model.parameters().contains(&entry.node) {
            at_input(model, entry).map_err(at)?;
        } else {
            at_output(model, entry).map_err(at)?;
        }
    }
    Ok(())
}

fn at_input(model: &mut Model, entry: &Entry) -> Result<()> {
    let v = Value::from(entry.node);
    let Some(old) = model.node(entry.node).op().get::<Parameter>().cloned() else { return Ok(()) };
    if let Some(rank) = old.shape.rank() {
        entry.source.iter().chain(&entry.target).try_for_each(|l| l.axes(rank).map(|_| ()))?;
    }
    if let Some(order) = order(entry, old.shape.rank())? {
        // Axis i outside is axis order[i] inside.
        let dims = old.shape.dims().unwrap_or_default();
        let shape = PartialShape::new(order.iter().map(|&i| dims[i]));
        let readers = model.users(v).to_vec();
        model.set_op(entry.node, Arc::new(Parameter { shape, element_type: old.element_type }))?;
        let mut back = vec![0; order.len()];
        for (outside, &inside) in order.iter().enumerate() {
            back[inside] = outside;
        }
        let inside = transpose(model, v, &back)?;
        redirect(model, &readers, inside);
    }
    if let Some(layout) = entry.target.as_ref().or(entry.source.as_ref()) {
        layout.note(model, v);
    }
    Ok(())
}

fn at_output(model: &mut Model, entry: &Entry) -> Result<()> {
    let mut v = model.result_value(entry.node);
    if let Some(rank) = model.fact(v).shape.rank() {
        entry.source.iter().chain(&entry.target).try_for_each(|l| l.axes(rank).map(|_| ()))?;
    }
    if let Some(order) = order(entry, model.fact(v).shape.rank())? {
        let mut names = model.output(v).names.clone();
        if names.is_empty() {
            names.insert(model.result_name(entry.node));
        }
        let turned = transpose(model, v, &order)?;
        // The output keeps its name; the tensor inside is another one now.
        model.set_tensor_names(v, Default::default());
        model.set_tensor_names(turned, names);
        model.set_input(entry.node, 0, turned);
        v = turned;
    }
    if let Some(layout) = entry.target.as_ref().or(entry.source.as_ref()) {
        layout.note(model, v);
    }
    Ok(())
}

// For each axis of the target, the axis of the source that holds it; nothing when the order stays.
fn order(entry: &Entry, rank: Option<usize>) -> Result<Option<Vec<usize>>> {
    let (Some(source), Some(target)) = (&entry.source, &entry.target) else {
        return match &entry.target {
            Some(target) => Err(Error::usage(format!(
                "the target layout is {target}, but not what the model has now; give its source layout too"
            ))),
            None => Ok(None),
        };
    };
    if source == target {
        return Ok(None);
    }
    let Some(rank) = rank else {
        let text = "the rank is not known, so axes cannot be reordered; give the shape with --input_shape";
        return Err(Error::usage(text).with_code(16));
    };
    source.order_to(target, rank)
}

fn transpose(model: &mut Model, v: Value, order: &[usize]) -> Result<Value> {
    let name = format!("{}/layout", model.node(v.node).name());
    nodes::transpose(model, &name, v, order)
}
