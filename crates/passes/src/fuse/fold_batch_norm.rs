//! Normalization with stored statistics behind a layer goes into the layer:
//!
//! ```text
//! BatchNormInference(Convolution(x, w) [+ b], gamma, beta, mean, variance)
//!     ->  Convolution(x, w * s) + ([b * s] + beta - mean * s),   s = gamma / sqrt(variance + epsilon)
//! ```
//!
//! The same for grouped and transposed convolutions, and for a product with a stored matrix when its columns are the
//! channels.

use super::weights::{Layer, numbers};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::normalization::BatchNormInference;

/// Takes normalization with stored statistics into the layer before it.
#[derive(Clone, Copy, Debug)]
pub struct FoldBatchNorm;

impl Rewrite for FoldBatchNorm {
    fn name(&self) -> &'static str {
        "fold_batch_norm"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((data, [gamma, beta, mean, variance], epsilon)) = parts(model, root) else {
            return Ok(Outcome::NoMatch);
        };
        let all = [gamma, beta, mean, variance].map(|v| numbers(model, v));
        let [Some(gamma), Some(beta), Some(mean), Some(variance)] = all else {
            return Ok(Outcome::skip("its statistics are computed"));
        };
        let layer = match Layer::before(model, data) {
            Some(Ok(layer)) => layer,
            Some(Err(skip)) => return Ok(skip),
            None => {
                return Ok(Outcome::skip(format!(
                    "a {} is before it, no layer",
                    model.node(data.node).op().type_name()
                )));
            }
        };
        if !layer.lies_on(1) || layer.channels != gamma.len() {
            return Ok(Outcome::skip("its channels are not those of the layer"));
        }
        let scale: Vec<f64> = gamma.iter().zip(&variance).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
        let shift: Vec<f64> = beta.iter().zip(&mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
        layer.replace(model, root, &scale, Some(&shift))
    }
}

/// Data, statistics (gamma, beta, mean, variance) and epsilon of a normalization.
pub(super) fn parts(model: &Model, root: NodeId) -> Option<(Value, [Value; 4], f64)> {
    let inputs = model.get(root)?.inputs();
    let op = model.op_at::<BatchNormInference>(root)?;
    let &[x, gamma, beta, mean, variance] = inputs else { return None };
    Some((x, [gamma, beta, mean, variance], f64::from(op.epsilon)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Sketch, fires, stays};
    use super::*;
    use carafe_ops::activation::Relu;
    use carafe_ops::arithmetic::Add;
    use carafe_ops::convolution::window::PadType;
    use carafe_ops::convolution::{
        Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData,
    };
    use carafe_ops::linear::MatMul;
    use carafe_ops::movement::Reshape;
    use carafe_ops::shape::ShapeOf;
    use carafe_tensor::ElementType;

    pub(in super::super) fn norm(g: &mut Sketch, x: Value, channels: usize) -> Value {
        let (gamma, beta, mean) = (g.noise(&[channels], 1.0), g.noise(&[channels], 0.0), g.noise(&[channels], 0.2));
        let variance = g.noise(&[channels], 1.0);
        g.op(BatchNormInference { epsilon: 1e-3 }, &[x, gamma, beta, mean, variance])
    }

    pub(in super::super) fn layer(g: &mut Sketch, kind: usize, x: Value) -> Value {
        let (strides, pads_begin, pads_end, dilations) = (vec![1, 1], vec![1, 1], vec![0, 0], vec![1, 1]);
        let (auto_pad, output_padding) = (PadType::Explicit, vec![]);
        match kind {
            0 => {
                let w = g.noise(&[6, 4, 2, 2], 0.1);
                g.op(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, w])
            }
            1 => {
                let w = g.noise(&[2, 3, 2, 2, 2], 0.1);
                g.op(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, w])
            }
            2 => {
                let w = g.noise(&[4, 6, 2, 2], 0.1);
                let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
                g.op(op, &[x, w])
            }
            _ => {
                let w = g.noise(&[2, 2, 3, 2, 2], 0.1);
                let op =
                    GroupConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
                g.op(op, &[x, w])
            }
        }
    }

    #[test]
    fn behind_every_kind_of_convolution() {
        for kind in 0..4 {
            for bias in [false, true] {
                let name =
                    ["Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"];
                fires(&FoldBatchNorm, &format!("{} Add", name[kind]), |g| {
                    let x = g.input(&[2, 4, 3, 3]);
                    let mut y = layer(g, kind, x);
                    if bias {
                        let b = g.noise(&[1, 6, 1, 1], 0.0);
                        y = g.op(Add::default(), &[b, y]);
                    }
                    norm(g, y, 6)
                });
            }
        }
    }

    #[test]
    fn behind_a_product_with_a_matrix() {
        for transpose_b in [false, true] {
            fires(&FoldBatchNorm, "MatMul Add", |g| {
                let x = g.input(&[2, 4]);
                let w = g.noise(if transpose_b { &[6, 4] } else { &[4, 6] }, 0.1);
                let y = g.op(MatMul { transpose_a: false, transpose_b }, &[x, w]);
                norm(g, y, 6)
            });
        }
    }

    #[test]
    fn the_shape_of_the_layer_may_be_asked_for() {
        for bias in [false, true] {
            fires(&FoldBatchNorm, "Convolution Add ShapeOf Reshape", |g| {
                let x = g.input(&[2, 4, 3, 3]);
                let mut y = layer(g, 0, x);
                let mut shape = g.op(ShapeOf { output_type: ElementType::I64 }, &[y]);
                if bias {
                    let b = g.noise(&[1, 6, 1, 1], 0.0);
                    y = g.op(Add::default(), &[b, y]);
                    shape = g.op(ShapeOf { output_type: ElementType::I64 }, &[y]);
                }
                let z = norm(g, y, 6);
                g.op(Reshape { special_zero: false }, &[z, shape])
            });
        }
    }

    #[test]
    fn others_stay() {
        stays(&FoldBatchNorm, "a ReLU is before it", |g| {
            let x = g.input(&[2, 4, 3, 3]);
            let y = g.op(Relu, &[x]);
            norm(g, y, 4)
        });
        stays(&FoldBatchNorm, "Convolution `Convolution2` has another user", |g| {
            let x = g.input(&[2, 4, 3, 3]);
            let y = layer(g, 0, x);
            let z = norm(g, y, 6);
            g.op(Add::default(), &[y, z])
        });
        stays(&FoldBatchNorm, "weights of the layer before it are computed", |g| {
            let (x, w) = (g.input(&[2, 4, 3, 3]), g.input(&[6, 4, 1, 1]));
            let (strides, dilations, pads) = (vec![1, 1], vec![1, 1], vec![0, 0]);
            let op = Convolution {
                strides,
                pads_begin: pads.clone(),
                pads_end: pads,
                dilations,
                auto_pad: PadType::Explicit,
            };
            let y = g.op(op, &[x, w]);
            norm(g, y, 6)
        });
        stays(&FoldBatchNorm, "channels are not those of the layer", |g| {
            let x = g.input(&[2, 6, 4]);
            let w = g.noise(&[4, 6], 0.1);
            let y = g.op(MatMul { transpose_a: false, transpose_b: false }, &[x, w]);
            norm(g, y, 6)
        });
        stays(&FoldBatchNorm, "not one number for each channel", |g| {
            let x = g.input(&[2, 4, 3, 3]);
            let y = layer(g, 0, x);
            let b = g.noise(&[3], 0.0);
            let y = g.op(Add::default(), &[b, y]);
            norm(g, y, 6)
        });
        stays(&FoldBatchNorm, "not finite", |g| {
            let x = g.input(&[2, 4, 3, 3]);
            let y = layer(g, 0, x);
            let (ones, zeros) = (g.tensor(&[6], &[1.0; 6]), g.tensor(&[6], &[0.0; 6]));
            g.op(BatchNormInference { epsilon: 0.0 }, &[y, ones, zeros, zeros, zeros])
        });
    }
}
