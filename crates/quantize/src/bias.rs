//! Correction of biases: rounding weights and data moves the mean of each output channel. How far follows from the means of the
//! input channels, with and without rounding.

use crate::layers::Layer;
use crate::observe::Runner;
use crate::ranges::Range;
use crate::weights::{Integers, stored};
use carafe_graph::{Model, Result, Value};
use carafe_tensor::Tensor;
use std::collections::HashMap;

/// Numbers of a channel whose mean is worth a correction.
const FEWEST: usize = 16;

/// Sums of one channel.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    float: f64,
    rounded: f64,
}

/// What to add to each output channel of the layers that have a bias. `ranges` are those of their data.
pub(crate) fn corrections(
    model: &Model,
    layers: &[Layer],
    ranges: &HashMap<usize, Range>,
    integers: &HashMap<usize, Integers>,
    runner: &Runner<'_>,
) -> Result<HashMap<usize, Vec<f64>>> {
    let wanted: Vec<usize> = (0..layers.len())
        .filter(|i| layers[*i].bias.is_some() && ranges.contains_key(i) && integers.contains_key(i))
        .collect();
    let values: Vec<Value> = wanted.iter().map(|&i| model.node(layers[i].node).inputs()[0]).collect();
    let mut sums: Vec<Vec<Sums>> = vec![Vec::new(); wanted.len()];
    let mut counts = vec![0usize; wanted.len()];
    runner.observe(model, &values, "samples for the correction of biases", &mut |at, tensor| {
        let layer = wanted[at];
        let Some(weights) = layers[layer].weights else { return Ok(()) };
        let channels = weights.layout.inputs();
        sums[at].resize(channels, Sums::default());
        counts[at] += add(tensor, weights.data_axis_from_end, &ranges[&layer], &mut sums[at])?;
        Ok(())
    })?;
    let mut all = HashMap::new();
    for (at, &i) in wanted.iter().enumerate().filter(|(at, _)| counts[*at] >= FEWEST) {
        let Some(weights) = layers[i].weights else { continue };
        let Some(floats) = stored(model, model.node(layers[i].node).inputs()[weights.input]) else { continue };
        let n = counts[at] as f64;
        let mean = |of: fn(&Sums) -> f64| sums[at].iter().map(|s| of(s) / n).collect::<Vec<f64>>();
        let exact = weights.layout.response(&floats.to_vec::<f32>()?, &mean(|s| s.float));
        let rounded = weights.layout.response(&integers[&i].floats(), &mean(|s| s.rounded));
        let off = exact.iter().zip(rounded).map(|(e, r)| (e - r) * weights.density);
        all.insert(i, off.collect());
    }
    Ok(all)
}

// Adds up channels; gives how many elements each of them has.
fn add(tensor: &Tensor, axis_from_end: usize, range: &Range, sums: &mut [Sums]) -> Result<usize> {
    let shape = tensor.shape();
    let Some(axis) = shape.len().checked_sub(axis_from_end).filter(|a| *a < shape.len()) else { return Ok(0) };
    let inner: usize = shape[axis + 1..].iter().product();
    if shape[axis] != sums.len() || inner == 0 {
        return Ok(0);
    }
    for (i, part) in tensor.as_slice::<f32>()?.chunks_exact(inner).enumerate() {
        let sum = &mut sums[i % shape[axis]];
        for x in part {
            sum.float += f64::from(*x);
            sum.rounded += f64::from(range.round(*x));
        }
    }
    Ok(tensor.len() / shape[axis].max(1))
}
