//! `--mean_values`, `--mean_file`, `--scale_values`, `--scale` and `--reverse_input_channels`. Whatever the order of the options, an input
//! has its channels swapped first, then the mean subtracted, then is divided by the scale.

use super::layout::Layouts;
use super::places::{self, find_input};
use super::{ConversionOptions, NamedInput, syntax};
use carafe_graph::{Error, Model, NodeId, Result, Value};
use carafe_ops::convert::Convert;
use carafe_preprocess::nodes::{along_axis, divide, redirect, reverse_channels, subtract};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::path::Path;

/// What happens to one input.
#[derive(Debug, Default)]
struct Steps {
    reverse: bool,
    mean: Option<Vec<f64>>,
    /// One value for each element of the input.
    mean_image: Option<Tensor>,
    scale: Option<Vec<f64>>,
}

pub(super) fn apply(
    model: &mut Model,
    inputs: &[NamedInput],
    layouts: &Layouts,
    options: &ConversionOptions,
) -> Result<()> {
    let mut plan: Vec<(NodeId, Steps)> = model.parameters().iter().map(|&p| (p, Steps::default())).collect();
    let read = |text: &Option<String>, option: &str| match text {
        Some(text) => values(model, inputs, text).map_err(|e| e.at(option)),
        None => Ok(Vec::new()),
    };
    for (id, mean) in read(&options.mean_values, "option `--mean_values`")? {
        steps_of(&mut plan, id).mean = Some(mean);
    }
    if let Some(file) = &options.mean_file {
        let (id, mean) = mean_image(model, file, options).map_err(|e| e.at("option `--mean_file`").with_code(4))?;
        steps_of(&mut plan, id).mean_image = Some(mean);
    }
    for (id, scale) in read(&options.scale_values, "option `--scale_values`")? {
        require_divisors(&scale).map_err(|e| e.at("option `--scale_values`"))?;
        steps_of(&mut plan, id).scale = Some(scale);
    }
    if let Some(scale) = options.scale {
        let floats = |id: NodeId| model.fact(insertion_point(model, id)).ty.is_float();
        require_divisors(&[scale]).map_err(|e| e.at("option `--scale`"))?;
        let ids: Vec<NodeId> = plan.iter().map(|(id, _)| *id).filter(|&id| floats(id)).collect();
        if ids.is_empty() {
            return Err(Error::usage("no input is of a float type").at("option `--scale`"));
        }
        ids.into_iter().for_each(|id| steps_of(&mut plan, id).scale = Some(vec![scale]));
    }
    if options.reverse_input_channels {
        mark_reversed(model, layouts, &mut plan).map_err(|e| e.at("option `--reverse_input_channels`"))?;
    }
    for (id, steps) in plan {
        let name = model.parameter_name(id);
        insert(model, id, layouts, &steps).map_err(|e| e.at(format!("input `{name}`")))?;
    }
    Ok(())
}

fn steps_of(plan: &mut Vec<(NodeId, Steps)>, id: NodeId) -> &mut Steps {
    let at = plan.iter().position(|(p, _)| *p == id).unwrap_or_else(|| {
        plan.push((id, Steps::default()));
        plan.len() - 1
    });
    &mut plan[at].1
}

#[cfg(feature = "caffe")]
use carafe_fe_caffe::read_mean;

#[cfg(not(feature = "caffe"))]
fn read_mean(file: &Path) -> Result<(Vec<usize>, Vec<f32>)> {
    let file = file.display();
    Err(Error::unsupported(format!("`{file}` is an image of Caffe: this build has no Caffe (feature `caffe`)")))
}

// The image of a file, cut to the size of the only input: in the middle, or where the offsets say.
fn mean_image(model: &Model, file: &Path, options: &ConversionOptions) -> Result<(NodeId, Tensor)> {
    let &[id] = model.parameters() else {
        return Err(Error::usage(format!("the model has {} inputs, it must have one", model.parameters().len())));
    };
    let shape = &model.fact(id.into()).shape;
    let dims = shape.dims().map(|d| d.iter().map(|d| d.get().map(|d| d as usize)).collect::<Vec<_>>());
    let Some([_, Some(channels), Some(height), Some(width)]) = dims.as_deref() else {
        return Err(Error::usage(format!("the input must be an image of known size [N,C,H,W], found [{shape}]")));
    };
    let (mean, values) = read_mean(file)?;
    let &[c, h, w] = mean.as_slice() else {
        return Err(Error::invalid(format!("expected an image [C,H,W], found {mean:?}")));
    };
    if c != *channels || h < *height || w < *width {
        return Err(Error::invalid(format!(
            "the mean image is [{c},{h},{w}], the input [{channels},{height},{width}]: it must have as many channels and \
             be no smaller"
        )));
    }
    let (left, top) = match &options.mean_file_offsets {
        None => ((w - width) / 2, (h - height) / 2),
        Some(text) => offsets(text).map_err(|e| e.at("option `--mean_file_offsets`"))?,
    };
    if left.checked_add(*width).is_none_or(|right| right > w) || top.checked_add(*height).is_none_or(|low| low > h) {
        return Err(Error::usage(format!("offsets ({left},{top}) leave no {width} x {height} of an image {w} x {h}")));
    }
    let mut cut = Vec::with_capacity(c * height * width);
    for row in (0..c).flat_map(|c| (top..top + height).map(move |y| (c * h + y) * w)) {
        cut.extend_from_slice(&values[row + left..row + left + width]);
    }
    Ok((id, Tensor::from_slice(&[1, c, *height, *width], &cut)?))
}

// `(x,y)`
fn offsets(text: &str) -> Result<(usize, usize)> {
    let inside = text.trim().strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let numbers = inside.and_then(|t| t.split_once(',')).map(|(x, y)| (x.trim().parse(), y.trim().parse()));
    match numbers {
        Some((Ok(x), Ok(y))) => Ok((x, y)),
        _ => Err(Error::usage(format!("`{text}` must have the form (x,y)"))),
    }
}

fn require_divisors(scale: &[f64]) -> Result<()> {
    if scale.iter().any(|s| *s == 0.0 || !s.is_finite()) {
        return Err(Error::usage("inputs are divided by these values, so none may be 0 or infinite"));
    }
    Ok(())
}

// `(1,2,3)` an input in order, or `name(1,2,3)`.
fn values(model: &Model, inputs: &[NamedInput], text: &str) -> Result<Vec<(NodeId, Vec<f64>)>> {
    const BRACKETS: &[(char, char)] = &[('(', ')'), ('[', ']')];
    let items: Vec<(&str, Vec<f64>)> = syntax::list(text)?
        .into_iter()
        .map(|item| match syntax::name_and_group(item, BRACKETS) {
            (name, Some(inside)) => Ok((name, syntax::numbers(inside)?)),
            _ => Err(Error::usage(format!("`{item}` has no values; expected such as (1,2,3) or name(1,2,3)"))),
        })
        .collect::<Result<_>>()?;
    let n_named = items.iter().filter(|(name, _)| !name.is_empty()).count();
    if n_named != 0 && n_named != items.len() {
        return Err(Error::usage("some values have a name and some have none; name all of them or none"));
    }
    if n_named == 0 && items.len() != inputs.len() {
        let names: Vec<String> = inputs.iter().map(|n| model.parameter_name(n.parameter)).collect();
        return Err(Error::usage(format!(
            "found {} lists of values for {} inputs ({}); name them, such as {}(1,2,3)",
            items.len(),
            names.len(),
            places::some_of(&names),
            names.first().map_or("name", String::as_str)
        )));
    }
    let mut found: Vec<(NodeId, Vec<f64>)> = Vec::new();
    for (position, (name, list)) in items.into_iter().enumerate() {
        let id = if name.is_empty() { inputs[position].parameter } else { find_input(model, inputs, name)? };
        if found.iter().any(|(other, _)| *other == id) {
            return Err(Error::usage(format!("`{name}` has values already")));
        }
        found.push((id, list));
    }
    Ok(found)
}

fn mark_reversed(model: &Model, layouts: &Layouts, plan: &mut [(NodeId, Steps)]) -> Result<()> {
    let mut any = false;
    for (id, steps) in plan.iter_mut() {
        let shape = &model.fact((*id).into()).shape;
        let axis = layouts.axis(model, *id, "C")?;
        let told = axis.is_some_and(|a| shape.dim(a).get().is_none_or(|n| n == 3));
        steps.reverse = told || (!layouts.has(model, *id) && guess_channels(shape, 3).is_ok());
        any |= steps.reverse;
    }
    if any {
        return Ok(());
    }
    let known: Vec<String> = model
        .parameters()
        .iter()
        .map(|&p| format!("{}: [{}]", model.parameter_name(p), model.fact(p.into()).shape))
        .collect();
    Err(Error::usage(format!(
        "no input has 3 channels: {}; where the channels cannot be guessed, name their axis C with --layout",
        places::some_of(&known)
    )))
}

// The axis of the channels by size, at the places where frameworks put it.
fn guess_channels(shape: &PartialShape, n: usize) -> Result<usize> {
    let ask = "name the axis of the channels C with --layout";
    let Some(dims) = shape.dims() else {
        return Err(Error::usage(format!("the rank is not known; {ask}")));
    };
    let usual: &[usize] = match dims.len() {
        1 => &[0],
        2 => &[1],
        3 => &[0, 2],
        4 => &[1, 3],
        5 => &[1, 4],
        _ => &[],
    };
    let fits: Vec<usize> = usual.iter().copied().filter(|&a| dims[a] == Dim::from(n)).collect();
    match fits.as_slice() {
        [axis] => Ok(*axis),
        [] => Err(Error::usage(format!("shape [{shape}] has no axis of {n} channels at a usual place; {ask}"))),
        _ => Err(Error::usage(format!("shape [{shape}] has {n} channels at axis {} or {}; {ask}", fits[0], fits[1]))),
    }
}

// Behind the Convert that `--input name{type}` put there, else right behind the input.
fn insertion_point(model: &Model, id: NodeId) -> Value {
    let v = Value::from(id);
    if let (false, [only]) = (model.fact(v).ty.is_float(), model.users(v)) {
        let node = model.node(only.node);
        if node.op().is::<Convert>() && node.outputs()[0].fact.ty.is_float() {
            return only.node.into();
        }
    }
    v
}

fn insert(model: &mut Model, id: NodeId, layouts: &Layouts, steps: &Steps) -> Result<()> {
    let start = if steps.mean.is_some() || steps.mean_image.is_some() || steps.scale.is_some() {
        insertion_point(model, id)
    } else {
        id.into()
    };
    let (ty, shape) = (model.fact(start).ty, model.fact(start).shape.clone());
    let readers = model.users(start).to_vec();
    let name = model.node(id).name().to_string();
    let told = layouts.axis(model, id, "C")?;
    let axis_of = |n: usize| match told {
        Some(axis) if shape.dim(axis).get().is_some_and(|d| d != n as i64) => Err(Error::usage(format!(
            "found {n} values, the input has {} channels (shape [{shape}], axis {axis})",
            shape.dim(axis)
        ))),
        Some(axis) => Ok(axis),
        None => guess_channels(&shape, n),
    };
    let mut v = start;
    if steps.reverse {
        v = reverse_channels(model, &format!("{name}/reverse"), v, axis_of(3)?)?;
    }
    let mean = steps.mean.as_ref().filter(|m| m.iter().any(|x| *x != 0.0));
    let scale = steps.scale.as_ref().filter(|s| s.iter().any(|x| *x != 1.0));
    if (mean.is_some() || steps.mean_image.is_some() || scale.is_some()) && !ty.is_float() {
        return Err(Error::usage(format!(
            "mean and scale need a float input, this one is {ty}; give it a float type with --input {name}{{f32}}"
        )));
    }
    if let Some(mean) = mean {
        let mean = along(mean, ty, shape.rank(), &axis_of)?;
        v = subtract(model, &format!("{name}/mean"), v, mean)?;
    }
    if let Some(image) = &steps.mean_image {
        v = subtract(model, &format!("{name}/mean"), v, image.cast(ty)?)?;
    }
    if let Some(scale) = scale {
        let scale = along(scale, ty, shape.rank(), &axis_of)?;
        v = divide(model, &format!("{name}/scale"), v, scale)?;
    }
    redirect(model, &readers, v);
    Ok(())
}

// The values as a tensor that broadcasts along the channels.
fn along(
    values: &[f64],
    ty: ElementType,
    rank: Option<usize>,
    axis_of: &dyn Fn(usize) -> Result<usize>,
) -> Result<Tensor> {
    if let [one] = values {
        return Ok(Tensor::from_f64(ty, &[], &[*one])?);
    }
    let axis = axis_of(values.len())?;
    let rank =
        rank.ok_or_else(|| Error::usage("the rank is not known; give the shape with --input_shape").with_code(16))?;
    along_axis(values, ty, rank, axis)
}
