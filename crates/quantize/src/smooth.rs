//! SmoothQuant: channels of data with outliers are divided by a number, and the weights that meet them are multiplied by it.
//! Products stay the same, and the range of the data no longer follows its worst channel.

use crate::layers::Layer;
use crate::observe::Runner;
use crate::weights::stored;
use carafe_graph::{Model, Result, Value};
use carafe_ops::arithmetic::Multiply;
use carafe_ops::linear::MatMul;
use carafe_tensor::Tensor;
use std::collections::BTreeMap;

/// Factors closer to 1 than this are left out: nothing would be gained.
const NEGLIGIBLE: f32 = 1e-3;
/// Smallest factor.
const SMALLEST: f32 = 1e-5;
/// Numbers of a channel that must have been seen: of fewer, the largest says little about those to come, and a channel that was
/// quiet by chance would be made too large.
const FEWEST: usize = 64;

/// Smooths the data of all products with constant weights; gives how many values were smoothed.
pub(crate) fn smooth(model: &mut Model, layers: &[Layer], alpha: f64, runner: &Runner<'_>) -> Result<usize> {
    let mut readers: BTreeMap<Value, Vec<&Layer>> = BTreeMap::new();
    for layer in layers.iter().filter(|l| l.reason.is_none()) {
        let plain = model.op_at::<MatMul>(layer.node).is_some_and(|op| !op.transpose_a);
        if let Some(v) = layer.weights.filter(|_| plain).and(model.input(layer.node, 0)) {
            readers.entry(v).or_default().push(layer);
        }
    }
    let values: Vec<Value> = readers.keys().copied().collect();
    let mut peaks: Vec<Vec<f32>> = vec![Vec::new(); values.len()];
    let mut rows = vec![0; values.len()];
    runner.observe(model, &values, "samples for SmoothQuant", &mut |i, tensor| {
        let width = tensor.shape().last().copied().unwrap_or(1);
        rows[i] += tensor.len() / width.max(1);
        peaks[i].resize(width, 0.0);
        for row in tensor.as_slice::<f32>()?.chunks_exact(width.max(1)) {
            peaks[i].iter_mut().zip(row).for_each(|(peak, x)| *peak = peak.max(x.abs()));
        }
        Ok(())
    })?;
    let mut done = 0;
    for (((v, layers), peaks), _) in readers.iter().zip(&peaks).zip(rows).filter(|(_, rows)| *rows >= FEWEST) {
        done += usize::from(smooth_value(model, *v, layers, peaks, alpha)?);
    }
    Ok(done)
}

fn smooth_value(model: &mut Model, v: Value, layers: &[&Layer], peaks: &[f32], alpha: f64) -> Result<bool> {
    let mut weights = Vec::new();
    let mut met = vec![0f32; peaks.len()];
    for layer in layers {
        let port = layer.weights.expect("only layers with weights are smoothed");
        let Some(tensor) = stored(model, model.node(layer.node).inputs()[port.input]) else { return Ok(false) };
        if port.layout.inputs() != peaks.len() {
            return Ok(false);
        }
        let own = port.layout.input_peaks(&tensor.to_vec::<f32>()?);
        met.iter_mut().zip(own).for_each(|(m, w)| *m = m.max(w));
        weights.push((layer, port, tensor));
    }
    let factor = |(x, w): (&f32, &f32)| match (*x, *w) {
        (x, w) if x > 0.0 && w > 0.0 && x.is_finite() => {
            (f64::from(x).powf(alpha) / f64::from(w).powf(1.0 - alpha)).max(SMALLEST.into()) as f32
        }
        _ => 1.0,
    };
    let factors: Vec<f32> = peaks.iter().zip(&met).map(factor).collect();
    let most = factors.iter().fold(0f32, |m, f| m.max(*f));
    let least = factors.iter().fold(f32::INFINITY, |m, f| m.min(*f));
    // One number for all channels changes nothing.
    if !most.is_finite() || most <= least * (1.0 + NEGLIGIBLE) {
        return Ok(false);
    }
    let name = format!("{}/smooth", model.node(v.node).name());
    let inverse: Vec<f32> = factors.iter().map(|f| 1.0 / f).collect();
    let inverse = model.constant(&format!("{name}_factors"), Tensor::from_vec(&[peaks.len()], inverse)?)?;
    let divided = model.add(name, Multiply::default(), &[v, inverse])?;
    for (layer, port, tensor) in weights {
        let mut values = tensor.to_vec::<f32>()?.into_owned();
        port.layout.scale_inputs(&mut values, &factors);
        let new = Tensor::from_vec(tensor.shape(), values)?;
        let new = model.constant(&format!("{}/smoothed_weights", layer.name), new)?;
        model.set_input(layer.node, port.input, new);
        let data = layer.data[0];
        model.set_input(layer.node, data, divided.into());
    }
    Ok(true)
}
