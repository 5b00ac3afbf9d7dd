//! A factor for each channel behind a layer goes into its weights, past a shift:
//!
//! ```text
//! Convolution(x, w) * c          ->  Convolution(x, w * c)
//! (MatMul(x, w) + b) / c         ->  MatMul(x, w / c) + b / c
//! ```

use super::linear::{Step, step};
use super::weights::Layer;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};

/// Takes a factor for each channel into the weights of the layer before it.
#[derive(Clone, Copy, Debug)]
pub struct FoldScale;

impl Rewrite for FoldScale {
    fn name(&self) -> &'static str {
        "fold_scale"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((x, Step::Times(scale))) = step(model, root) else { return Ok(Outcome::NoMatch) };
        let layer = match Layer::before(model, x) {
            Some(Ok(layer)) => layer,
            Some(Err(skip)) => return Ok(skip),
            None => return Ok(Outcome::NoMatch),
        };
        match layer.by_channel(&scale) {
            Some(scale) => layer.replace(model, root, &scale, None),
            None => Ok(Outcome::skip("the factor is not one number for each channel")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold_batch_norm::tests::layer;
    use super::super::testing::{Sketch, fires, stays};
    use super::*;
    use carafe_graph::Value;
    use carafe_ops::arithmetic::{Add, Divide, Multiply, Subtract};
    use carafe_ops::convert::Convert;
    use carafe_ops::linear::MatMul;
    use carafe_tensor::{ElementType, Tensor};

    #[test]
    fn behind_every_kind_of_convolution() {
        let name = ["Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"];
        for kind in 0..4 {
            fires(&FoldScale, name[kind], |g| {
                let x = g.input(&[2, 4, 3, 3]);
                let y = layer(g, kind, x);
                let c = g.noise(&[6, 1, 1], 2.0);
                g.op(Multiply::default(), &[c, y])
            });
            fires(&FoldScale, &format!("{} Add", name[kind]), |g| {
                let x = g.input(&[2, 4, 3, 3]);
                let y = layer(g, kind, x);
                let (b, c) = (g.noise(&[1, 6, 1, 1], 2.0), g.c(4.0));
                let y = g.op(Subtract::default(), &[y, b]);
                g.op(Divide::default(), &[y, c])
            });
        }
    }

    fn product(g: &mut Sketch, w: Value) -> Value {
        let x = g.input(&[2, 3, 4]);
        let y = g.op(MatMul { transpose_a: false, transpose_b: true }, &[x, w]);
        let (b, c) = (g.noise(&[6], 2.0), g.noise(&[1, 1, 6], 3.0));
        let y = g.op(Add::default(), &[y, b]);
        g.op(Multiply::default(), &[y, c])
    }

    #[test]
    fn behind_a_product_with_a_matrix() {
        fires(&FoldScale, "MatMul Add", |g| {
            let w = g.noise(&[6, 4], 0.1);
            product(g, w)
        });
    }

    #[test]
    fn small_weights_stay_small() {
        // Halves behind a Convert get a factor; eight-bit numbers have one already.
        let widened = |g: &mut Sketch, ty: ElementType| {
            let values: Vec<f64> = (0..24).map(|i| f64::from(i % 7) - 3.0).collect();
            let name = format!("w{}", g.model.slots());
            let w = g.model.constant(&name, Tensor::from_f64(ty, &[6, 4], &values).unwrap()).unwrap();
            let to = g.c(0.0);
            let to = g.model.fact(to).ty;
            g.op(Convert { destination_type: to }, &[w])
        };
        fires(&FoldScale, "Convert Multiply MatMul Add", |g| {
            let w = widened(g, ElementType::Bf16);
            product(g, w)
        });
        fires(&FoldScale, "Convert Multiply MatMul Add", |g| {
            let w = widened(g, ElementType::I8);
            let s = g.noise(&[6, 1], 1.0);
            let w = g.op(Multiply::default(), &[w, s]);
            product(g, w)
        });
    }

    #[test]
    fn others_stay() {
        stays(&FoldScale, "not one number for each channel", |g| {
            let x = g.input(&[2, 4, 3, 3]);
            let y = layer(g, 0, x);
            let c = g.noise(&[3], 2.0);
            g.op(Multiply::default(), &[c, y])
        });
        stays(&FoldScale, "has another user", |g| {
            let x = g.input(&[2, 4, 3, 3]);
            let y = layer(g, 0, x);
            let c = g.c(2.0);
            let z = g.op(Multiply::default(), &[c, y]);
            g.op(Add::default(), &[y, z])
        });
        stays(&FoldScale, "weights of the layer before it have another user", |g| {
            let x = g.input(&[2, 4]);
            let w = g.noise(&[4, 4], 0.1);
            let y = g.op(MatMul { transpose_a: false, transpose_b: false }, &[x, w]);
            let y = g.op(MatMul { transpose_a: false, transpose_b: false }, &[y, w]);
            let c = g.c(2.0);
            g.op(Multiply::default(), &[c, y])
        });
        // Constants of a higher rank than the output would widen it.
        stays(&FoldScale, "not one number for each channel", |g| {
            let x = g.input(&[2, 4]);
            let w = g.noise(&[4, 4], 0.1);
            let y = g.op(MatMul { transpose_a: false, transpose_b: false }, &[x, w]);
            let c = g.noise(&[1, 1, 4], 1.0);
            g.op(Multiply::default(), &[c, y])
        });
    }
}
