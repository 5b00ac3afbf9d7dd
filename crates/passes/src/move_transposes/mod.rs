//! A region of nodes between Transposes is computed in the order that leaves the least to be transposed.
//!
//! ```text
//! x -> Conv -> NHWC -> Add -> Relu ----------> Add -> NCHW -> Conv        x -> Conv -> Add -> Relu ----> Add -> Conv
//!                               \-> NCHW -> Conv -> NHWC -/          =>                         \-> Conv -/
//! ```
//!
//! For one order of axes at a time, every node that can be made again in that order ([`Op::reorder`]) either is or is not.
//! A value that one node gives in one order and another wants in the other costs a Transpose of its elements. The choice with
//! the least cost is a minimal cut of a network of these nodes (`region.rs`, `min_cut.rs`); `rebuild.rs` carries it out. Axes
//! of 1 that come and go are taken out of the way first (`ranks.rs`).
//!
//! [`Op::reorder`]: carafe_graph::Op::reorder

mod min_cut;
mod ranks;
mod rebuild;
mod region;

use crate::reordered::{inverse, is_identity};
use crate::shared::{keeps_order, transpose_order};
use carafe_graph::{Model, NodeId, Notes, Pass, Result, in_bodies};
use carafe_ops::movement::Reshape;
use carafe_tensor::Tensor;
use std::collections::BTreeMap;

/// Computes regions in the order of axes that needs the fewest Transposes.
#[derive(Clone, Copy, Debug)]
pub struct MoveTransposes;

impl Pass for MoveTransposes {
    fn name(&self) -> &'static str {
        "move_transposes"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        let mut fired = in_bodies(model, &mut |body| self.run(body, notes))?;
        // A second round meets what the first brought together.
        for _ in 0..2 {
            let mut here = ranks::swap(model)?;
            for order in orders(model) {
                if let Some(choice) = region::choose(model, &order)? {
                    notes.add(|| format!("move_transposes: {} nodes compute in the order {order:?}", choice.moved()));
                    rebuild::carry_out(model, choice)?;
                    model.prune();
                    here += 1;
                }
            }
            fired += here;
            if here == 0 {
                break;
            }
        }
        Ok(fired + into_reshapes(model)?)
    }
}

// The orders of the Transposes there are, each with the one that undoes it; that which brings the last axis forward, as in
// NHWC to NCHW, comes first of the two.
fn orders(model: &Model) -> Vec<Vec<usize>> {
    let mut met: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for (id, _) in model.nodes() {
        if let Some(order) = transpose_order(model, id).filter(|o| o.len() > 2 && !is_identity(o)) {
            let back = inverse(&order);
            let forward = |o: &[usize]| o.iter().position(|&a| a + 1 == o.len());
            let key = if (forward(&order), &order) <= (forward(&back), &back) { order } else { back };
            *met.entry(key).or_default() += 1;
        }
    }
    let mut all: Vec<(Vec<usize>, usize)> = met.into_iter().filter(|(_, n)| *n > 1).collect();
    carafe_graph::sort_by_key(&mut all, |(_, n)| std::cmp::Reverse(*n));
    let both = |order: Vec<usize>| match inverse(&order) {
        back if back == order => vec![order],
        back => vec![order, back],
    };
    all.into_iter().flat_map(|(order, _)| both(order)).collect()
}

// Where a Transpose moves axes of 1 alone, a Reshape says the same. One size may be open.
fn into_reshapes(model: &mut Model) -> Result<usize> {
    let all: Vec<NodeId> = model.nodes().map(|(id, _)| id).filter(|&id| keeps_order(model, id)).collect();
    let mut fired = 0;
    for id in all {
        let Some(dims) = model.fact(id.into()).shape.dims().map(<[_]>::to_vec) else { continue };
        let sizes: Vec<i64> = dims.iter().map(|d| d.get().unwrap_or(-1)).collect();
        if sizes.iter().filter(|&&n| n == -1).count() > 1 || sizes.contains(&0) {
            continue;
        }
        let shape =
            model.constant(&format!("{}/shape", model.node(id).name()), Tensor::from_slice(&[sizes.len()], &sizes)?)?;
        let x = model.node(id).inputs()[0];
        model.set_node(id, std::sync::Arc::new(Reshape { special_zero: false }), &[x, shape])?;
        fired += 1;
    }
    Ok(fired)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use crate::{FoldConstants, RemoveNoOps};
    use carafe_graph::Value;
    use carafe_ops::activation::{Relu, Softmax};
    use carafe_ops::arithmetic::{Add, AutoBroadcast, Multiply};
    use carafe_ops::convolution::Convolution;
    use carafe_ops::convolution::window::PadType;
    use carafe_ops::math::Tanh;
    use carafe_ops::movement::{Concat, Split, Squeeze, Transpose, Unsqueeze};
    use carafe_ops::quantize::FakeQuantize;
    use carafe_ops::reduce::ReduceMean;
    use carafe_ops::shape::ShapeOf;
    use carafe_tensor::ElementType;

    const TO_NCHW: [i64; 4] = [0, 3, 1, 2];
    const TO_NHWC: [i64; 4] = [0, 2, 3, 1];

    fn turned(d: &mut Draft, v: Value, order: &[i64]) -> Value {
        let list = d.ints(order);
        d.add("turn", Transpose, &[v, list])
    }

    // A convolution of data with the channels last, as frontends write it.
    fn conv(d: &mut Draft, name: &str, x: Value, from: usize, to: usize) -> Value {
        let values: Vec<f32> = (0..from * to * 9).map(|i| (i as f32 * 0.7).sin() * 0.2).collect();
        let w = d.model.constant("w", Tensor::from_slice(&[to, from, 3, 3], &values).unwrap()).unwrap();
        let x = turned(d, x, &TO_NCHW);
        let op = Convolution {
            strides: vec![1, 1],
            pads_begin: vec![1, 1],
            pads_end: vec![1, 1],
            dilations: vec![1, 1],
            auto_pad: PadType::Explicit,
        };
        let y = d.add(name, op, &[x, w]);
        turned(d, y, &TO_NHWC)
    }

    // Runs the pass, with sizes known or not, and compares with the model before it.
    fn moved(mut d: Draft) -> Draft {
        let shape = |p: NodeId, d: &Draft| {
            d.model
                .fact(p.into())
                .shape
                .dims()
                .unwrap()
                .iter()
                .map(|n| n.get().unwrap_or(5) as usize)
                .collect::<Vec<_>>()
        };
        let feed: Vec<Tensor> = d
            .model
            .parameters()
            .to_vec()
            .into_iter()
            .map(|p| {
                let s = shape(p, &d);
                let n: usize = s.iter().product();
                Tensor::from_slice(&s, &(0..n).map(|i| (i as f32 * 0.9).sin()).collect::<Vec<_>>()).unwrap()
            })
            .collect();
        let names = |d: &Draft| d.model.results().iter().map(|&r| d.model.result_name(r)).collect::<Vec<_>>();
        let (before, before_names) = (d.model.evaluate(&feed).unwrap(), names(&d));
        d.run(&MoveTransposes);
        d.run(&FoldConstants { decompression: false });
        d.run(&RemoveNoOps);
        assert_eq!(names(&d), before_names);
        for (a, b) in before.iter().zip(d.model.evaluate(&feed).unwrap()) {
            assert_eq!(a.shape(), b.shape());
            let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
            assert!(a.iter().zip(b.iter()).all(|(x, y)| (x - y).abs() < 1e-5));
        }
        d
    }

    #[test]
    fn a_residual_net_is_turned_at_its_ends_alone() {
        for batch in [2, -1] {
            let mut d = Draft::new();
            let x = d.input("x", &[batch, 4, 5, 3]);
            let mut y = conv(&mut d, "stem", x, 3, 8);
            for i in 0..3 {
                let bias = d.floats(&[8], 0.1);
                let a = conv(&mut d, &format!("conv_{i}"), y, 8, 8);
                let a = d.add("bias", Add::default(), &[a, bias]);
                let a = d.add("relu", Relu, &[a]);
                // A gate: the value is read twice.
                let g = d.add("tanh", Tanh, &[a]);
                let a = d.add("gated", Multiply::default(), &[a, g]);
                y = d.add("sum", Add::default(), &[a, y]);
            }
            d.result(y);
            let d = moved(d);
            assert_eq!(d.count("Transpose"), 2);
        }
    }

    #[test]
    fn the_mean_over_an_image_and_what_widens_it_again_need_no_transpose() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, 4, 5, 3]);
        let y = conv(&mut d, "stem", x, 3, 8);
        let axes = d.ints(&[1, 2]);
        let mean = d.add("mean", ReduceMean { keep_dims: false }, &[y, axes]);
        let places = d.ints(&[1, 2]);
        let wide = d.add("wide", Unsqueeze, &[mean, places]);
        let gate = d.add("tanh", Tanh, &[wide]);
        let y = d.add("scaled", Multiply::default(), &[y, gate]);
        let y = conv(&mut d, "last", y, 8, 2);
        let axes = d.ints(&[1, 2]);
        let mean = d.add("pooled", ReduceMean { keep_dims: true }, &[y, axes]);
        let axes = d.ints(&[1, 2]);
        let out = d.add("out", Squeeze { allow_axis_skip: false }, &[mean, axes]);
        d.result(out);
        let d = moved(d);
        assert_eq!(d.count("Transpose"), 1);
    }

    // A convolution along one axis, as frontends write it: in a frame of nodes that insert an axis and drop it.
    fn conv_1d(d: &mut Draft, name: &str, x: Value, from: usize, to: usize, by_reshape: bool) -> Value {
        let axis = d.ints(&[1]);
        let wide = d.add("wide", Unsqueeze, &[x, axis]);
        let y = conv(d, name, wide, from, to);
        if by_reshape {
            let shape = d.ints(&[-1, 5, to as i64]);
            return d.add("narrow", Reshape { special_zero: false }, &[y, shape]);
        }
        let axis = d.ints(&[-3]);
        d.add("narrow", Squeeze { allow_axis_skip: false }, &[y, axis])
    }

    #[test]
    fn convolutions_along_one_axis_are_turned_at_their_ends_alone() {
        for (batch, by_reshape) in [(2, false), (-1, false), (2, true), (1, true)] {
            let mut d = Draft::new();
            let x = d.input("x", &[batch, 5, 3]);
            let y = conv_1d(&mut d, "stem", x, 3, 8, by_reshape);
            let y = d.add("relu", Relu, &[y]);
            let y = conv_1d(&mut d, "last", y, 8, 2, by_reshape);
            d.result(y);
            let d = moved(d);
            assert_eq!(d.count("Transpose"), 2, "batch {batch}, {by_reshape}");
        }
    }

    #[test]
    fn parts_joins_and_quantization_take_the_order() {
        let mut d = Draft::new();
        let x = d.input("x", &[1, 4, 6, 3]);
        let y = conv(&mut d, "stem", x, 3, 8);
        let axis = d.int(-1);
        let parts = d.add("parts", Split { num_splits: 2 }, &[y, axis]);
        let joined = d.add("joined", Concat { axis: 3 }, &[Value { port: 1, ..parts }, parts]);
        let (low, high) = (d.floats(&[8], -1.0), d.floats(&[1, 1, 1, 8], 1.0));
        let fq = FakeQuantize { levels: 256, auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
        let q = d.add("fq", fq, &[joined, low, high, low, high]);
        let y = conv(&mut d, "last", q, 8, 2);
        d.result(y);
        let d = moved(d);
        assert_eq!(d.count("Transpose"), 2);
    }

    #[test]
    fn sizes_are_asked_of_the_value_that_is_there() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, -1, -1, 3]);
        let y = conv(&mut d, "stem", x, 3, 8);
        let y = d.add("relu", Relu, &[y]);
        let sizes = d.add("sizes", ShapeOf { output_type: ElementType::I64 }, &[y]);
        let z = conv(&mut d, "last", y, 8, 2);
        d.result(sizes);
        d.result(z);
        let d = moved(d);
        assert_eq!(d.count("Transpose"), 2);
    }

    #[test]
    fn a_sum_along_the_innermost_axis_stays_there() {
        let mut d = Draft::new();
        let x = d.input("x", &[1, 4, 6, 3]);
        let y = conv(&mut d, "stem", x, 3, 8);
        let y = d.add("softmax", Softmax { axis: 3 }, &[y]);
        d.result(y);
        let d = moved(d);
        let softmax = d.model.find_node("softmax").unwrap();
        assert_eq!(d.model.op_at::<Softmax>(softmax).unwrap().axis, 3);
    }
}
