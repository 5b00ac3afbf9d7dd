//! Groups of operations that are one operation written out, recognised and put together. One file a pass, whose head shows
//! the rewrite. Nothing is fused whose inner values are read elsewhere; only quantized integers may have more readers.

mod affine;
mod cells;
mod linear;
mod look;
mod parts;
mod poly;
mod slices;
#[cfg(test)]
mod testing;
mod weights;

mod fold_batch_norm;
mod fold_scale;
mod fold_scale_ahead;
mod fuse_clamp;
mod fuse_embeddings;
mod fuse_gelu;
mod fuse_hsigmoid;
mod fuse_hswish;
mod fuse_layer_norm;
mod fuse_linear;
mod fuse_mish;
mod fuse_normalize_l2;
mod fuse_pad;
mod fuse_prelu;
mod fuse_qdq;
mod fuse_recurrence;
mod fuse_rms_norm;
mod fuse_rotary;
mod fuse_round_trip;
mod fuse_sdpa;
mod fuse_shuffle;
mod fuse_silu;
mod fuse_softmax;
mod fuse_softplus;
mod fuse_tree_walk;
mod keep_compressed;
mod keeps_steps;
mod mark_steps;
mod merge_narrow_layers;
mod one_hot_rows;
mod round_early;
mod spell_batch_norm;
mod spell_transposed_data;
mod store_weights;
mod unit_steps;
mod widen_filters;
mod widen_weights;

pub use fold_batch_norm::FoldBatchNorm;
pub use fold_scale::FoldScale;
pub use fold_scale_ahead::FoldScaleAhead;
pub use fuse_clamp::FuseClamp;
pub use fuse_embeddings::FuseEmbeddings;
pub use fuse_gelu::FuseGelu;
pub use fuse_hsigmoid::FuseHSigmoid;
pub use fuse_hswish::FuseHSwish;
pub use fuse_layer_norm::FuseLayerNorm;
pub use fuse_linear::FuseLinear;
pub use fuse_mish::FuseMish;
pub use fuse_normalize_l2::FuseNormalizeL2;
pub use fuse_pad::FusePad;
pub use fuse_prelu::FusePRelu;
pub use fuse_qdq::FuseQdq;
pub(crate) use fuse_qdq::dequantizes_weights;
pub use fuse_recurrence::FuseRecurrence;
pub use fuse_rms_norm::FuseRmsNorm;
pub use fuse_rotary::FuseRotary;
pub use fuse_round_trip::FuseRoundTrip;
pub use fuse_sdpa::FuseSdpa;
pub use fuse_shuffle::{FuseDepthToSpace, FuseShuffleChannels};
pub use fuse_silu::FuseSilu;
pub use fuse_softmax::FuseSoftmax;
pub use fuse_softplus::FuseSoftPlus;
pub use fuse_tree_walk::FuseTreeWalk;
pub use keep_compressed::KeepCompressed;
pub use keeps_steps::{keeps_steps, passes_on};
pub use mark_steps::MarkSteps;
pub use merge_narrow_layers::MergeNarrowLayers;
pub use one_hot_rows::OneHotRows;
pub use round_early::RoundEarly;
pub use spell_batch_norm::SpellBatchNorm;
pub use spell_transposed_data::SpellTransposedData;
pub use store_weights::StoreWeights;
pub use unit_steps::UnitSteps;
pub use widen_filters::WidenFilters;
pub use widen_weights::WidenWeights;

use carafe_graph::Pass;

/// Recognisers whose results every reader of the numbered opsets knows, in order.
pub const FUSE: &[&dyn Pass] = &[
    // Bodies as they are written, before others look at them.
    &FuseRecurrence,
    &FuseQdq,
    &FuseClamp,
    &FuseSoftPlus,
    &FuseMish,
    &FuseGelu,
    &FuseHSigmoid,
    &FuseHSwish,
    &FuseSilu,
    &FusePRelu,
    &FuseLayerNorm,
    &FuseNormalizeL2,
    &FuseSoftmax,
    &FuseSdpa,
    &FuseDepthToSpace,
    &FuseShuffleChannels,
    &FusePad,
    &FoldBatchNorm,
    // Before shifts are joined: it may leave one behind a layer.
    &FoldScaleAhead,
    &FuseLinear,
    &FoldScale,
];

/// Rewrites whose results have no place in a file; for devices that have kernels for them.
pub const DEVICE_FUSE: &[&dyn Pass] = &[
    &FuseRoundTrip,
    &RoundEarly,
    &UnitSteps,
    &SpellBatchNorm,
    &SpellTransposedData,
    &WidenFilters,
    &MergeNarrowLayers,
    &FuseRmsNorm,
    &FuseRotary,
    &OneHotRows,
    &FuseEmbeddings,
    &FuseTreeWalk,
];

#[cfg(test)]
mod tests {
    use super::testing::kinds;
    use super::*;
    use carafe_graph::{Model, Notes, run_passes};
    use carafe_ops::activation::{Clamp, Sigmoid};
    use carafe_ops::arithmetic::{Add, Divide, Multiply};
    use carafe_ops::linear::MatMul;
    use carafe_ops::normalization::BatchNormInference;
    use carafe_tensor::{ElementType, PartialShape, Tensor};

    // A layer with its normalization, two activations and a chain of factors.
    fn model() -> Model {
        let mut m = Model::new("m");
        let c = |m: &mut Model, shape: &[usize], v: f32| {
            let values: Vec<f32> = (0..shape.iter().product()).map(|i| v + 0.1 * i as f32).collect();
            m.constant("c", Tensor::from_slice(shape, &values).unwrap()).unwrap()
        };
        let x = m.parameter("x", ElementType::F32, "?,4".parse::<PartialShape>().unwrap()).unwrap();
        let w = c(&mut m, &[4, 3], -0.4);
        let mut y = m.add("layer", MatMul { transpose_a: false, transpose_b: false }, &[x, w]).unwrap().into();
        let stats = [1.0, 0.2, 0.1, 1.5].map(|v| c(&mut m, &[3], v));
        let norm = BatchNormInference { epsilon: 1e-3 };
        y = m.add("norm", norm, &[y, stats[0], stats[1], stats[2], stats[3]]).unwrap().into();
        let (three, six) = (c(&mut m, &[], 3.0), c(&mut m, &[], 6.0));
        let line = m.add("line", Add::default(), &[y, three]).unwrap();
        let limited = m.add("limited", Clamp { min: 0.0, max: 6.0 }, &[line.into()]).unwrap();
        y = m.add("product", Multiply::default(), &[y, limited.into()]).unwrap().into();
        y = m.add("hswish", Divide::default(), &[y, six]).unwrap().into();
        let gate = m.add("gate", Sigmoid, &[y]).unwrap();
        y = m.add("silu", Multiply::default(), &[gate.into(), y]).unwrap().into();
        y = m.add("up", Multiply::default(), &[y, three]).unwrap().into();
        y = m.add("down", Divide::default(), &[y, six]).unwrap().into();
        m.add_tensor_name(y, "y");
        m.result("r", y).unwrap();
        m
    }

    #[test]
    fn the_list_is_run_once_and_leaves_nothing_to_do() {
        let before = model();
        let mut after = before.clone();
        run_passes(&mut after, FUSE, &mut Notes::default()).unwrap();
        assert_eq!(kinds(&after), "MatMul Add HSwish Swish Multiply");
        let names: Vec<&str> = after.nodes().map(|(_, n)| n.name()).collect();
        assert!(["layer", "norm", "hswish", "silu", "down"].iter().all(|n| names.contains(n)), "{names:?}");
        for pass in FUSE {
            assert_eq!(pass.run(&mut after, &mut Notes::default()).unwrap(), 0, "{}", pass.name());
        }
        let x = [Tensor::from_slice(&[2, 4], &[1.0f32, -2.0, 3.0, 0.5, -1.0, 4.0, 0.0, 2.0]).unwrap()];
        let (a, b) = (before.evaluate(&x).unwrap(), after.evaluate(&x).unwrap());
        for (a, b) in a[0].as_slice::<f32>().unwrap().iter().zip(b[0].as_slice::<f32>().unwrap()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }

    #[test]
    fn files_never_hold_operations_of_our_own() {
        let in_files: Vec<&str> = FUSE.iter().map(|p| p.name()).collect();
        assert!(DEVICE_FUSE.iter().all(|p| !in_files.contains(&p.name())));
    }
}
