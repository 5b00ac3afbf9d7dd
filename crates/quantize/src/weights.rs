//! Weights of layers: where their channels lie, and their rounding to 8 bits, one scale for each output channel.

use carafe_graph::{Error, Model, Result, Value};
use carafe_ops::arithmetic::Multiply;
use carafe_ops::convert::Convert;
use carafe_ops::movement::Reshape;
use carafe_tensor::{ElementType, Tensor};

/// Order of the elements of weights: groups, then outputs and inputs of a group in either order, then taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WeightLayout {
    pub groups: usize,
    pub outs: usize,
    pub ins: usize,
    pub taps: usize,
    /// Inputs stand before outputs, as in transposed convolutions and in products that are not transposed.
    pub ins_first: bool,
}

impl WeightLayout {
    fn at(&self, group: usize, out: usize, input: usize) -> usize {
        let (first, second, n) = if self.ins_first { (input, out, self.outs) } else { (out, input, self.ins) };
        ((group * self.outs * self.ins) + first * n + second) * self.taps
    }

    /// Output channels of all groups.
    pub(crate) fn channels(&self) -> usize {
        self.groups * self.outs
    }

    /// Input channels of all groups.
    pub(crate) fn inputs(&self) -> usize {
        self.groups * self.ins
    }

    /// Calls `f` with the output channel, the input channel and the taps that connect them.
    pub(crate) fn each(&self, values: &[f32], mut f: impl FnMut(usize, usize, &[f32])) {
        for g in 0..self.groups {
            for o in 0..self.outs {
                for i in 0..self.ins {
                    let at = self.at(g, o, i);
                    f(g * self.outs + o, g * self.ins + i, &values[at..at + self.taps]);
                }
            }
        }
    }

    // The same, for writing.
    fn each_mut(&self, values: &mut [f32], mut f: impl FnMut(usize, usize, &mut [f32])) {
        for g in 0..self.groups {
            for o in 0..self.outs {
                for i in 0..self.ins {
                    let at = self.at(g, o, i);
                    f(g * self.outs + o, g * self.ins + i, &mut values[at..at + self.taps]);
                }
            }
        }
    }

    /// Mean of each output channel when each input channel has this mean; taps beyond the border are not thought of.
    pub(crate) fn response(&self, values: &[f32], means: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.channels()];
        self.each(values, |o, i, taps| out[o] += means[i] * taps.iter().map(|w| f64::from(*w)).sum::<f64>());
        out
    }

    /// Largest magnitude that meets each input channel.
    pub(crate) fn input_peaks(&self, values: &[f32]) -> Vec<f32> {
        let mut peaks = vec![0f32; self.inputs()];
        self.each(values, |_, i, taps| peaks[i] = taps.iter().fold(peaks[i], |m, w| m.max(w.abs())));
        peaks
    }

    /// Multiplies what meets each input channel by a number.
    pub(crate) fn scale_inputs(&self, values: &mut [f32], factors: &[f32]) {
        self.each_mut(values, |_, i, taps| taps.iter_mut().for_each(|w| *w *= factors[i]));
    }

    // One scale for each output channel, or for each group where two axes would need scales.
    fn scales_by_group(&self) -> bool {
        self.ins_first && self.groups > 1 && self.outs > 1
    }
}

/// Weights as floats: a constant, or one that is stored in a smaller float type.
pub(crate) fn stored(model: &Model, v: Value) -> Option<Tensor> {
    let tensor = match model.constant_of(v) {
        Some(t) => t.clone(),
        None => {
            let (id, _) = model.producer::<Convert>(v)?;
            model.constant_of(model.input(id, 0)?)?.clone()
        }
    };
    let float = tensor.element_type().is_float() && model.fact(v).ty == ElementType::F32;
    if !float {
        return None;
    }
    if tensor.element_type() == ElementType::F32 { Some(tensor) } else { tensor.cast(ElementType::F32).ok() }
}

/// Weights as i8 with their scales.
#[derive(Clone, Debug)]
pub(crate) struct Integers {
    values: Vec<i8>,
    /// By output channel.
    scales: Vec<f32>,
    shape: Vec<usize>,
    layout: WeightLayout,
}

impl Integers {
    /// Rounds to -127..=127.
    pub(crate) fn of(weights: &Tensor, layout: WeightLayout) -> Result<Integers> {
        let floats = weights.to_vec::<f32>()?;
        if let Some(bad) = floats.iter().find(|w| !w.is_finite()) {
            return Err(Error::invalid(format!("a weight is {bad}")));
        }
        let mut peaks = vec![0f32; layout.channels()];
        layout.each(&floats, |o, _, taps| peaks[o] = taps.iter().fold(peaks[o], |m, w| m.max(w.abs())));
        if layout.scales_by_group() {
            for group in peaks.chunks_mut(layout.outs) {
                let peak = group.iter().fold(0f32, |m, p| m.max(*p));
                group.fill(peak);
            }
        }
        // A channel of zeros has any scale; one of denormal numbers is zeros.
        let scales: Vec<f32> = peaks.iter().map(|p| if *p > 1e-30 { p / 127.0 } else { 1.0 / 127.0 }).collect();
        let mut rounded = floats.into_owned();
        layout.each_mut(&mut rounded, |o, _, taps| {
            taps.iter_mut().for_each(|w| *w = (*w / scales[o]).round_ties_even().clamp(-127.0, 127.0));
        });
        let values = rounded.into_iter().map(|w| w as i8).collect();
        Ok(Integers { values, scales, shape: weights.shape().to_vec(), layout })
    }

    /// The numbers they stand for.
    pub(crate) fn floats(&self) -> Vec<f32> {
        let mut floats: Vec<f32> = self.values.iter().map(|w| f32::from(*w)).collect();
        let scales = &self.scales;
        self.layout.each_mut(&mut floats, |o, _, taps| taps.iter_mut().for_each(|w| *w *= scales[o]));
        floats
    }

    /// `Multiply(Convert(integers), scales)`, in the shape of the weights.
    pub(crate) fn add_to(&self, model: &mut Model, name: &str) -> Result<Value> {
        let WeightLayout { groups, outs, ins_first, .. } = self.layout;
        // Readers know scales of one axis; groups and their outputs are one axis until the end.
        let merged = !ins_first && groups > 1 && outs > 1;
        let mut shape = self.shape.clone();
        if merged {
            shape.splice(..2, [groups * outs]);
        }
        let grouped = groups > 1 && shape.len() == self.shape.len();
        let axis = match (grouped, ins_first) {
            (true, _) | (false, false) => 0,
            (false, true) => 1,
        };
        let mut scale_shape = vec![1; shape.len()];
        scale_shape[axis] = shape[axis];
        let scales: Vec<f32> = match self.layout.scales_by_group() {
            true => self.scales.iter().step_by(outs).copied().collect(),
            false => self.scales.clone(),
        };
        let integers = model.constant(&format!("{name}/integers"), Tensor::from_slice(&shape, &self.values)?)?;
        let scale = model.constant(&format!("{name}/scale"), Tensor::from_vec(&scale_shape, scales)?)?;
        let wide = Convert { destination_type: ElementType::F32 };
        let wide = model.add(format!("{name}/convert"), wide, &[integers])?;
        let scaled = model.add(format!("{name}/dequantized"), Multiply::default(), &[wide.into(), scale])?;
        if !merged {
            return Ok(scaled.into());
        }
        let to: Vec<i64> = self.shape.iter().map(|n| *n as i64).collect();
        let to = model.constant(&format!("{name}/shape"), Tensor::from_slice(&[to.len()], &to)?)?;
        Ok(model.add(format!("{name}/grouped"), Reshape { special_zero: false }, &[scaled.into(), to])?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: &[usize], layout: WeightLayout) -> Model {
        let n: usize = shape.iter().product();
        let floats: Vec<f32> = (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.01 * (1.0 + i as f32)).collect();
        let weights = Tensor::from_slice(shape, &floats).unwrap();
        let integers = Integers::of(&weights, layout).unwrap();
        let mut m = Model::new("m");
        let w = integers.add_to(&mut m, "w").unwrap();
        m.result("r", w).unwrap();
        let out = m.evaluate(&[]).unwrap();
        assert_eq!(out[0].shape(), shape);
        assert_eq!(out[0].as_slice::<f32>().unwrap(), integers.floats());
        let (mut peaks, mut off) = (vec![0f32; layout.channels()], vec![0f32; layout.channels()]);
        layout.each(&floats, |o, _, taps| taps.iter().for_each(|w| peaks[o] = peaks[o].max(w.abs())));
        let diff: Vec<f32> = floats.iter().zip(integers.floats()).map(|(a, b)| (a - b).abs()).collect();
        layout.each(&diff, |o, _, taps| taps.iter().for_each(|d| off[o] = off[o].max(*d)));
        if !layout.scales_by_group() {
            assert!(peaks.iter().zip(&off).all(|(p, d)| *d <= p / 253.9), "{peaks:?} {off:?}");
        }
        m
    }

    #[test]
    fn every_output_channel_has_a_scale_of_its_own() {
        check(&[4, 3, 2, 2], WeightLayout { groups: 1, outs: 4, ins: 3, taps: 4, ins_first: false });
        check(&[3, 4, 2, 2], WeightLayout { groups: 1, outs: 4, ins: 3, taps: 4, ins_first: true });
        check(&[5, 1, 1, 3, 3], WeightLayout { groups: 5, outs: 1, ins: 1, taps: 9, ins_first: false });
        check(&[8, 6], WeightLayout { groups: 1, outs: 8, ins: 6, taps: 1, ins_first: false });
        check(&[8, 6], WeightLayout { groups: 1, outs: 6, ins: 8, taps: 1, ins_first: true });
    }

    #[test]
    fn groups_of_several_outputs_are_reshaped_behind_the_scale() {
        let m = check(&[2, 3, 4, 1, 1], WeightLayout { groups: 2, outs: 3, ins: 4, taps: 1, ins_first: false });
        assert!(m.nodes().any(|(_, n)| n.op().is::<Reshape>()));
        check(&[2, 4, 3, 1, 1], WeightLayout { groups: 2, outs: 3, ins: 4, taps: 1, ins_first: true });
    }

    #[test]
    fn a_channel_of_zeros_and_a_weight_that_is_no_number() {
        let layout = WeightLayout { groups: 1, outs: 2, ins: 2, taps: 1, ins_first: false };
        let zeros = Tensor::from_slice(&[2, 2], &[0f32, 0.0, 1.0, -1.0]).unwrap();
        assert_eq!(Integers::of(&zeros, layout).unwrap().floats(), [0.0, 0.0, 1.0, -1.0]);
        let bad = Tensor::from_slice(&[2, 2], &[0f32, f32::NAN, 1.0, -1.0]).unwrap();
        assert!(Integers::of(&bad, layout).unwrap_err().to_string().contains("NaN"));
    }
}
