//! Post-training quantization, step by step.

use crate::build::Plan;
use crate::error::{Reference, drop_of, inside};
use crate::exclude::exclude;
use crate::histogram::Histogram;
use crate::layers::{self, Layer};
use crate::observe::{Runner, Samples};
use crate::options::{ModelType, Preset, QuantizeOptions};
use crate::points::{self, Point, Points};
use crate::ranges::{Range, range_of};
use crate::report::{LayerReport, OutputReport, Report};
use crate::weights::{Integers, stored};
use crate::{bias, smooth};
use carafe_frontend::Progress;
use carafe_graph::{Constant, Error, Model, Result, Value};
use carafe_ops::activation::Softmax;
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_runtime::Core;
use std::collections::{HashMap, HashSet};

/// Samples that the result is judged by.
const JUDGES: usize = 64;
/// Samples that layers are compared by.
const INSIDE: usize = 8;

/// A quantized model and what it cost.
#[derive(Debug)]
pub struct Quantized {
    /// The model, ready to be written.
    pub model: Model,
    /// What was done.
    pub report: Report,
}

/// Quantizes a model in f32 to 8 bits with the help of data. The model should have gone through the passes of a conversion, so
/// that biases and normalizations belong to their layers.
///
/// Runs the model on the device of the options: three times over the data, once more for transformers, and again for each
/// layer when a limit does not hold at once. Fails when there is nothing to quantize, when the model is quantized already, and
/// when the limit cannot be held.
pub fn quantize(
    core: &Core,
    model: &Model,
    samples: &dyn Samples,
    options: &QuantizeOptions,
    progress: Progress<'_>,
) -> Result<Quantized> {
    if samples.count() == 0 {
        return Err(Error::usage("there is no data to calibrate with"));
    }
    if let Some((_, node)) = model.nodes().find(|(_, n)| n.op().info().quantizes) {
        let (name, ty) = (node.name(), node.op().type_name());
        return Err(Error::invalid(format!("the model is quantized already: `{name}` is {ty}")));
    }
    let runner = Runner::new(core, &options.device, samples, progress);
    let transformer = match options.model_type {
        ModelType::Auto => has_attention(model),
        ModelType::Transformer => true,
        ModelType::Other => false,
    };
    let preset = options.preset.unwrap_or(if transformer { Preset::Mixed } else { Preset::Performance });
    let mut smoothed = model.clone();
    let layers = layers::find(&smoothed, &options.ignored, preset)?;
    let n_smoothed = match options.smooth_quant.filter(|_| transformer) {
        Some(alpha) => smooth::smooth(&mut smoothed, &layers, alpha, &runner)?,
        None => 0,
    };
    let plan = plan(smoothed, layers, preset, options, &runner)?;
    let reference = Reference::new(&runner, model, samples.count().min(JUDGES))?;
    let judged = judge(&plan, &reference, options, &runner)?;
    let quantized = |i: usize| plan.layers[i].reason.is_none() && !judged.excluded.contains(&i);
    let errors = layer_errors(&plan, &quantized, &runner)?;
    let finished = plan.finish(&quantized)?;
    let layer = |(i, l): (usize, &Layer)| {
        let left_out = || format!("left out to hold the difference of {}", options.max_drop.unwrap_or_default());
        LayerReport {
            name: l.name.clone(),
            type_name: l.type_name.clone(),
            quantized: quantized(i),
            error: errors.get(&i).copied(),
            effect: judged.effects.get(&i).copied(),
            reason: l.reason.clone().or_else(|| judged.excluded.contains(&i).then(left_out)),
        }
    };
    let report = Report {
        layers: plan.layers.iter().enumerate().map(layer).collect(),
        drop: drop_of(&judged.outputs, options.metric)?,
        outputs: judged.outputs,
        metric: options.metric,
        samples: samples.count(),
        transformer,
        preset,
        points: plan.points.iter().filter(|p| p.active(&quantized).next().is_some()).count(),
        smoothed: n_smoothed,
        corrected: plan.corrections.keys().filter(|i| quantized(**i)).count(),
        bytes: [bytes(model), bytes(&finished)],
    };
    Ok(Quantized { model: finished, report })
}

// Softmax of scores that then weigh values.
fn has_attention(model: &Model) -> bool {
    let softmax_of_scores = |id| {
        let weighs = |v: Value| model.users(v).iter().any(|u| model.op_at::<MatMul>(u.node).is_some());
        let scores =
            model.node(id).inputs().first().is_some_and(|v| model.fact(*v).shape.rank().is_some_and(|r| r >= 3));
        scores && weighs(Value::from(id))
    };
    model
        .nodes()
        .any(|(id, n)| n.op().is::<ScaledDotProductAttention>() || (n.op().is::<Softmax>() && softmax_of_scores(id)))
}

// Ranges, integers and corrections. Layers whose data has no range get a reason.
fn plan(
    model: Model,
    mut layers: Vec<Layer>,
    preset: Preset,
    options: &QuantizeOptions,
    runner: &Runner<'_>,
) -> Result<Plan> {
    let points = points::find(&model, &layers);
    let ranges = ranges(&model, &points.all, preset, options, runner)?;
    for (i, layer) in layers.iter_mut().enumerate().filter(|(_, l)| l.reason.is_none()) {
        let mut own = points.data.get(&i).into_iter().flatten().map(|&p| &points.all[p]);
        if let Some(point) = own.find(|p| !ranges.contains_key(&p.group)) {
            let name = model.node(point.value.node).name();
            layer.reason = Some(format!("values of `{name}` are not finite"));
        }
    }
    let mut integers = HashMap::new();
    for i in 0..layers.len() {
        let layer = &layers[i];
        let Some(weights) = layer.weights.filter(|_| layer.reason.is_none()) else { continue };
        let Some(floats) = stored(&model, model.node(layer.node).inputs()[weights.input]) else { continue };
        match Integers::of(&floats, weights.layout) {
            Ok(found) => {
                integers.insert(i, found);
            }
            Err(e) => layers[i].reason = Some(e.message().to_string()),
        }
    }
    if layers.iter().all(|l| l.reason.is_some()) {
        let why = layers.iter().find_map(|l| Some(format!("`{}`: {}", l.name, l.reason.as_ref()?)));
        return Err(Error::invalid(format!("no layer can be quantized: {}", why.unwrap_or_default())));
    }
    let corrections = match options.bias_correction {
        true => {
            let of_layer = data_ranges(&points, &ranges);
            bias::corrections(&model, &layers, &of_layer, &integers, runner)?
        }
        false => HashMap::new(),
    };
    Ok(Plan { model, layers, points: points.all, ranges, integers, corrections })
}

// By group of points, over all data.
fn ranges(
    model: &Model,
    points: &[Point],
    preset: Preset,
    options: &QuantizeOptions,
    runner: &Runner<'_>,
) -> Result<HashMap<usize, Range>> {
    let values: Vec<Value> = points.iter().map(|p| p.value).collect();
    let mut seen: Vec<Histogram> = vec![Histogram::default(); points.len()];
    runner.observe(model, &values, "samples for ranges", &mut |i, tensor| {
        seen[i].add(tensor.as_slice::<f32>()?);
        Ok(())
    })?;
    let mut groups: HashMap<usize, Histogram> = HashMap::new();
    for (point, seen) in points.iter().zip(&seen) {
        groups.entry(point.group).or_default().join(seen);
    }
    let range = |(group, seen): (usize, Histogram)| Some((group, range_of(&seen, options.calibration, preset)?));
    Ok(groups.into_iter().filter_map(range).collect())
}

// The range of the data of each layer.
fn data_ranges(points: &Points, ranges: &HashMap<usize, Range>) -> HashMap<usize, Range> {
    let range = |of: &[usize]| ranges.get(&points.all[*of.first()?].group).copied();
    points.data.iter().filter_map(|(layer, of)| Some((*layer, range(of)?))).collect()
}

/// Which layers stay in float, and how far the model is then.
struct Judged {
    excluded: HashSet<usize>,
    effects: HashMap<usize, f64>,
    outputs: Vec<OutputReport>,
}

fn judge(plan: &Plan, reference: &Reference, options: &QuantizeOptions, runner: &Runner<'_>) -> Result<Judged> {
    let model = plan.build(&|i| plan.layers[i].reason.is_none())?;
    let outputs = reference.compare(runner, &model, "samples quantized")?;
    let drop = drop_of(&outputs, options.metric)?;
    match options.max_drop.filter(|most| drop > *most) {
        None => Ok(Judged { excluded: HashSet::new(), effects: HashMap::new(), outputs }),
        Some(most) => {
            let found = exclude(plan, reference, runner, options.metric, most, drop)?;
            Ok(Judged { excluded: found.layers, effects: found.effects, outputs: found.outputs })
        }
    }
}

fn layer_errors(plan: &Plan, quantized: &dyn Fn(usize) -> bool, runner: &Runner<'_>) -> Result<HashMap<usize, f64>> {
    let model = plan.build(quantized)?;
    let all: Vec<usize> = (0..plan.layers.len()).collect();
    let values: Vec<Value> = all.iter().map(|&i| plan.layers[i].output).collect();
    let samples = runner.samples.count().min(INSIDE);
    let errors = inside(runner, &plan.model, &model, &values, samples)?;
    Ok(all.into_iter().zip(errors).collect())
}

fn bytes(model: &Model) -> u64 {
    let constants = model.nodes().filter_map(|(_, n)| n.op().get::<Constant>());
    constants.map(|c| c.tensor().byte_len() as u64).sum()
}
