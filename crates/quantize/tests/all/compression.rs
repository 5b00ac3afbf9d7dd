//! What `compress_weights` makes of models.

use crate::nets::{count, matmul, noise};
use carafe::ops::indexing::Gather;
use carafe::quantize::{CompressOptions, CompressedWeights, Compression, WeightMode, compress_weights};
use carafe::{Constant, ElementType, ErrorKind, Model, PartialShape, Progress, Result, Tensor, Value};

fn constant(m: &mut Model, name: &str, shape: &[usize], seed: u64) -> Value {
    let len = shape.iter().product();
    m.constant(name, Tensor::from_vec(shape, noise(len, seed)).unwrap()).unwrap()
}

// A table, and three products of which the second is not transposed.
fn model() -> Model {
    let mut m = Model::new("m");
    let ids = m.parameter("ids", ElementType::I64, PartialShape::of(&[1, 4])).unwrap();
    let table = constant(&mut m, "table", &[50, 64], 1);
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let x = m.add("embedding", Gather { batch_dims: 0 }, &[table, ids, axis]).unwrap().into();
    let w = constant(&mut m, "w1", &[96, 64], 2);
    let y = matmul(&mut m, "first", x, w, true);
    let w = constant(&mut m, "w2", &[96, 48], 3);
    let y = matmul(&mut m, "second", y, w, false);
    let w = constant(&mut m, "w3", &[20, 48], 4);
    let y = matmul(&mut m, "last", y, w, true);
    m.result("r", y).unwrap();
    m
}

fn run(model: &Model, mode: WeightMode, group_size: Option<usize>, ratio: f64) -> Result<CompressedWeights> {
    let options = CompressOptions { mode, group_size, ratio, ..CompressOptions::default() };
    compress_weights(model, &options, Progress::default())
}

fn row<'a>(done: &'a CompressedWeights, name: &str) -> &'a Compression {
    done.layers.iter().find(|l| l.name == name).unwrap()
}

fn constants(m: &Model, ty: ElementType) -> Vec<Vec<usize>> {
    let all = m.nodes().filter_map(|(_, n)| n.op().get::<Constant>());
    all.filter(|c| c.tensor().element_type() == ty).map(|c| c.tensor().shape().to_vec()).collect()
}

fn error(a: &Model, b: &Model) -> f64 {
    let x = [Tensor::from_slice(&[1, 4], &[3i64, 49, 0, 7]).unwrap()];
    let (a, b) = (a.evaluate(&x).unwrap(), b.evaluate(&x).unwrap());
    let (a, b) = (a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
    let off: f32 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    f64::from((off / a.iter().map(|a| a * a).sum::<f32>()).sqrt())
}

#[test]
fn eight_bits_have_a_scale_for_each_row() {
    let done = run(&model(), WeightMode::Int8, None, 1.0).unwrap();
    let shapes = constants(&done.model, ElementType::U8);
    for shape in [[50, 64], [50, 1], [96, 64], [96, 48], [1, 48], [20, 48]] {
        assert!(shapes.contains(&shape.to_vec()), "{shape:?} {shapes:?}");
    }
    assert!(error(&model(), &done.model) < 0.01 && constants(&done.model, ElementType::F32).is_empty());
    let done = run(&model(), WeightMode::Int8Sym, None, 1.0).unwrap();
    assert_eq!((constants(&done.model, ElementType::I8).len(), count(&done.model, "Subtract")), (4, 0));
    assert!(error(&model(), &done.model) < 0.01);
}

#[test]
fn four_bits_come_in_groups_but_for_tables_and_the_last_layer() {
    for (mode, ty) in [(WeightMode::Int4Asym, ElementType::U4), (WeightMode::Int4Sym, ElementType::I4)] {
        let done = run(&model(), mode, Some(32), 1.0).unwrap();
        let shapes = constants(&done.model, ty);
        assert!(shapes.contains(&vec![96, 2, 32]) && shapes.contains(&vec![3, 32, 48]), "{shapes:?}");
        let zeros = mode == WeightMode::Int4Asym;
        assert_eq!(shapes.contains(&vec![96, 2, 1]) && shapes.contains(&vec![3, 1, 48]), zeros, "{shapes:?}");
        assert_eq!(count(&done.model, "Reshape"), 2);
        for name in ["embedding", "last"] {
            assert!(row(&done, name).mode == Some(WeightMode::Int8) && row(&done, name).note.is_some());
        }
        assert!(error(&model(), &done.model) < 0.15, "{}", error(&model(), &done.model));
        assert!(done.bytes[1] * 5 < done.bytes[0], "{:?}", done.bytes);
    }
}

#[test]
fn a_group_size_that_does_not_divide_falls_back_to_eight_bits() {
    let done = run(&model(), WeightMode::Int4Sym, Some(64), 1.0).unwrap();
    assert_eq!(row(&done, "first").mode, Some(WeightMode::Int4Sym));
    assert_eq!(row(&done, "second").note.as_deref(), Some("group size 64 does not divide rows of 96"));
    let e = run(&model(), WeightMode::Int4Sym, Some(7), 1.0).unwrap_err();
    assert!(e.kind() == ErrorKind::Usage && e.to_string().contains("no weights can be stored as int4_sym"), "{e}");
}

#[test]
fn the_ratio_takes_what_loses_least_first() {
    let done = run(&model(), WeightMode::Int4Asym, Some(16), 0.6).unwrap();
    let modes = ["first", "second"].map(|name| row(&done, name).mode.unwrap());
    assert!(modes.contains(&WeightMode::Int4Asym) && modes.contains(&WeightMode::Int8), "{modes:?}");
    let done = run(&model(), WeightMode::Int4Asym, Some(16), 0.0).unwrap();
    assert!(constants(&done.model, ElementType::U4).is_empty());
    assert!(run(&model(), WeightMode::Int4Asym, Some(16), 1.5).is_err());
}

#[test]
fn a_table_that_a_product_shares_is_stored_once() {
    let mut m = Model::new("m");
    let ids = m.parameter("ids", ElementType::I64, PartialShape::of(&[1, 4])).unwrap();
    let table = constant(&mut m, "table", &[50, 64], 1);
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let x = m.add("embedding", Gather { batch_dims: 0 }, &[table, ids, axis]).unwrap().into();
    let y = matmul(&mut m, "head", x, table, true);
    m.result("r", y).unwrap();
    let done = run(&m, WeightMode::Int8, None, 1.0).unwrap();
    assert_eq!((done.layers.len(), constants(&done.model, ElementType::U8).len()), (1, 2));
}

#[test]
fn tiny_weights_keep_f32_scales_and_ignored_ones_all_of_themselves() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 16])).unwrap();
    let tiny: Vec<f32> = noise(256, 1).iter().map(|w| w * 1e-7).collect();
    let w = m.constant("w", Tensor::from_vec(&[16, 16], tiny).unwrap()).unwrap();
    let y = matmul(&mut m, "y", x, w, true);
    m.result("r", y).unwrap();
    let done = run(&m, WeightMode::Int8, None, 1.0).unwrap();
    assert!(row(&done, "y").error < 0.01 && constants(&done.model, ElementType::F16).is_empty());
    let mut options = CompressOptions::default();
    options.ignored.add("y").unwrap();
    let e = compress_weights(&m, &options, Progress::default()).unwrap_err();
    assert!(e.to_string().contains("ignored by name"), "{e}");
}

#[test]
fn a_model_without_weights_is_refused() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 16])).unwrap();
    m.result("r", x).unwrap();
    assert!(run(&m, WeightMode::Int8, None, 1.0).unwrap_err().to_string().contains("no weights to compress"));
}

#[test]
fn a_weight_that_is_no_number_is_named() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 2])).unwrap();
    let w = m.constant("w", Tensor::from_slice(&[2, 2], &[0f32, 1.0, f32::NAN, 2.0]).unwrap()).unwrap();
    let y = matmul(&mut m, "product", x, w, true);
    m.result("r", y).unwrap();
    for mode in [WeightMode::Int8, WeightMode::Int4Sym] {
        let e = run(&m, mode, Some(2), 1.0).unwrap_err();
        assert!(e.to_string().contains("`product`: weight 2 is NaN; expected finite numbers"), "{e}");
    }
}
