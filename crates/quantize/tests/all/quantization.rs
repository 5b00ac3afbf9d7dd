//! What `quantize` makes of models.

use crate::nets::{List, attention, biased, block, conv, count, matmul, noise, relu, samples, weights};
use carafe::ops::math::Log;
use carafe::ops::movement::{Concat, Transpose};
use carafe::quantize::{Calibration, ModelType, Preset, QuantizeOptions, Quantized, Report, quantize};
use carafe::{Constant, ElementType, ErrorKind, Model, NodeId, PartialShape, Progress, Result, Tensor};

fn run(model: &Model, data: &List, options: &QuantizeOptions) -> Result<Quantized> {
    quantize(&carafe::core(), model, data, options, Progress::default())
}

fn done(model: &Model, data: &List, options: &QuantizeOptions) -> Quantized {
    run(model, data, options).unwrap_or_else(|e| panic!("{e}"))
}

fn floats_left(model: &Model) -> usize {
    let constants = model.nodes().filter_map(|(_, n)| n.op().get::<Constant>());
    constants.filter(|c| c.tensor().element_type() == ElementType::F32 && c.tensor().len() > 16).count()
}

fn layer<'a>(report: &'a Report, name: &str) -> &'a carafe::quantize::LayerReport {
    report.layers.iter().find(|l| l.name == name).unwrap()
}

// The limits of the FakeQuantize behind a node.
fn limits(model: &Model, name: &str) -> (f32, f32) {
    let fq = model.find_node(&format!("{name}/fq")).unwrap_or_else(|| panic!("`{name}` is not rounded"));
    let number = |i: usize| model.splat_of(model.node(fq).inputs()[i]).unwrap() as f32;
    (number(3), number(4))
}

fn reader(model: &Model, name: &str) -> String {
    let id: NodeId = model.find_node(name).unwrap();
    model.node(model.node(id).inputs()[0].node).name().to_string()
}

#[test]
fn every_layer_computes_with_integers_and_stays_close() {
    for calibration in [Calibration::MinMax, Calibration::Percentile(99.9), Calibration::Entropy] {
        for preset in [Preset::Performance, Preset::Mixed] {
            let options = QuantizeOptions { calibration, preset: Some(preset), ..QuantizeOptions::default() };
            let q = done(&block(), &samples(&[1, 3, 8, 8], 8), &options);
            assert!(q.report.layers.iter().all(|l| l.quantized), "{:?}", q.report.layers);
            assert_eq!((q.report.layers.len(), floats_left(&q.model)), (4, 0));
            assert!(q.report.drop < 0.06, "{calibration:?} {preset:?} {}", q.report.drop);
            assert!(q.report.bytes[1] * 2 < q.report.bytes[0], "{:?}", q.report.bytes);
        }
    }
}

#[test]
fn one_rounding_serves_a_layer_and_the_shortcut_around_it() {
    let q = done(&block(), &samples(&[1, 3, 8, 8], 4), &QuantizeOptions::default());
    assert_eq!(reader(&q.model, "depthwise"), "relu1/fq");
    assert_eq!(reader(&q.model, "sum"), "relu1/fq");
    // What the depthwise convolution makes for the sum alone is not rounded.
    assert_eq!(count(&q.model, "FakeQuantize"), 4);
}

#[test]
fn rectified_data_has_no_negative_steps_and_signed_data_is_symmetric() {
    let q = done(&block(), &samples(&[1, 3, 8, 8], 4), &QuantizeOptions::default());
    assert_eq!(limits(&q.model, "relu1").0, 0.0);
    let (low, high) = limits(&q.model, "x");
    assert!((low / high + 128.0 / 127.0).abs() < 1e-5, "{low} {high}");
}

#[test]
fn the_mixed_preset_gives_signed_data_a_zero_point() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4, 4])).unwrap();
    let w = weights(&mut m, "w", &[4, 4], 1);
    let y = matmul(&mut m, "y", x, w, false);
    m.result("r", y).unwrap();
    let values: Vec<f32> = noise(16, 3).iter().map(|v| v + 0.5).collect();
    let data = List(vec![vec![Tensor::from_vec(&[4, 4], values).unwrap()]]);
    let (low, high) = limits(
        &done(&m, &data, &QuantizeOptions { preset: Some(Preset::Mixed), ..QuantizeOptions::default() }).model,
        "x",
    );
    let zero = -low / ((high - low) / 255.0);
    assert!((zero - zero.round()).abs() < 1e-3 && zero > 0.5 && low.abs() < high / 2.0, "{low} {high}");
}

#[test]
fn what_a_concat_joins_has_one_range() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 8, 8])).unwrap();
    let parts: Vec<_> = (0..2)
        .map(|i| {
            let w = weights(&mut m, "w", &[4, 3, 1, 1], i);
            let y = conv(&mut m, &format!("conv{i}"), x, w, 0);
            let y = biased(&mut m, &format!("bias{i}"), y, 4, 10 + i);
            relu(&mut m, &format!("relu{i}"), y)
        })
        .collect();
    let y = m.add("all", Concat { axis: 1 }, &parts).unwrap().into();
    let w = weights(&mut m, "w", &[2, 8, 1, 1], 9);
    let y = conv(&mut m, "last", y, w, 0);
    m.result("r", y).unwrap();
    let q = done(&m, &samples(&[1, 3, 8, 8], 4), &QuantizeOptions::default());
    assert_eq!(limits(&q.model, "relu0"), limits(&q.model, "relu1"));
    assert!(q.model.find_node("all/fq").is_none());
}

#[test]
fn data_is_rounded_before_it_is_moved() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 3, 4])).unwrap();
    let x = relu(&mut m, "relu", x);
    let order = m.constant("order", Tensor::from_slice(&[3], &[0i64, 2, 1]).unwrap()).unwrap();
    let y = m.add("turned", Transpose {}, &[x, order]).unwrap().into();
    let w = weights(&mut m, "w", &[3, 5], 1);
    let y = matmul(&mut m, "y", y, w, false);
    m.result("r", y).unwrap();
    let q = done(&m, &samples(&[2, 3, 4], 2), &QuantizeOptions::default());
    assert_eq!((reader(&q.model, "turned").as_str(), reader(&q.model, "y").as_str()), ("relu/fq", "turned"));
}

#[test]
fn ignored_layers_stay_in_float_and_say_why() {
    let mut options = QuantizeOptions::default();
    options.ignored.add("type:GroupConvolution").unwrap();
    options.ignored.add("product").unwrap();
    let q = done(&block(), &samples(&[1, 3, 8, 8], 4), &options);
    let reasons = ["depthwise", "product"].map(|name| layer(&q.report, name).reason.clone().unwrap());
    assert_eq!(reasons, ["ignored by type GroupConvolution", "ignored by name"]);
    assert!(layer(&q.report, "conv1").quantized && !layer(&q.report, "product").quantized);
}

#[test]
fn the_worst_layers_are_left_out_until_the_limit_holds() {
    let data = samples(&[1, 3, 8, 8], 6);
    let all = done(&block(), &data, &QuantizeOptions::default()).report.drop;
    let most = all * 0.7;
    let q = done(&block(), &data, &QuantizeOptions { max_drop: Some(most), ..QuantizeOptions::default() });
    assert!(q.report.drop <= most, "{} {most}", q.report.drop);
    let out: Vec<_> = q.report.layers.iter().filter(|l| !l.quantized).collect();
    assert!(!out.is_empty() && out.len() < 4, "{out:?}");
    let worst = q.report.layers.iter().map(|l| l.effect.unwrap()).fold(0.0, f64::max);
    assert!(out.iter().any(|l| l.effect == Some(worst)) && out[0].reason.as_ref().unwrap().contains("left out"));
}

#[test]
fn a_limit_that_cannot_be_held_is_an_error() {
    let options = QuantizeOptions { max_drop: Some(1e-9), ..QuantizeOptions::default() };
    let e = run(&block(), &samples(&[1, 3, 8, 8], 2), &options).unwrap_err();
    assert!(e.kind() == ErrorKind::Invalid && e.to_string().contains("cannot be reached"), "{e}");
}

#[test]
fn smoothing_moves_outliers_of_data_into_weights() {
    let data = samples(&[1, 6, 16], 12);
    let with = done(&attention(), &data, &QuantizeOptions::default()).report;
    assert!(with.transformer && with.smoothed == 1 && with.preset == Preset::Mixed);
    let plain = QuantizeOptions { smooth_quant: None, ..QuantizeOptions::default() };
    let without = done(&attention(), &data, &plain).report;
    assert!(with.drop * 3.0 < without.drop, "{} {}", with.drop, without.drop);
    // Too few numbers say nothing of channels.
    assert_eq!(done(&attention(), &samples(&[1, 6, 16], 4), &QuantizeOptions::default()).report.smoothed, 0);
    let other = QuantizeOptions { model_type: ModelType::Other, ..QuantizeOptions::default() };
    assert_eq!(done(&attention(), &data, &other).report.smoothed, 0);
}

#[test]
fn products_of_computed_matrices_are_quantized_for_speed() {
    let options = QuantizeOptions { preset: Some(Preset::Performance), ..QuantizeOptions::default() };
    let q = done(&attention(), &samples(&[1, 6, 16], 4), &options);
    assert!(layer(&q.report, "scores").quantized && layer(&q.report, "mixed").quantized);
    let q = done(&attention(), &samples(&[1, 6, 16], 4), &QuantizeOptions::default());
    assert!(q.report.layers.iter().all(|l| l.name != "scores"));
}

#[test]
fn a_corrected_bias_brings_the_mean_of_the_outputs_back() {
    // Few and large weights, so that their rounding has a mean; the data has one too.
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[64, 4])).unwrap();
    let w = m.constant("w", Tensor::from_slice(&[4, 2], &[127.0f32, 127.0, 0.49, 0.3, 0.49, -0.3, 0.45, 0.2]).unwrap());
    let y = matmul(&mut m, "y", x, w.unwrap(), false);
    let b = m.constant("b", Tensor::from_slice(&[1, 2], &[0f32, 0.0]).unwrap()).unwrap();
    let y = m.add("sum", carafe::ops::arithmetic::Add::default(), &[y, b]).unwrap();
    m.result("r", y.into()).unwrap();
    let values: Vec<f32> =
        noise(256, 5).iter().enumerate().map(|(i, v)| if i % 4 == 0 { v * 0.01 } else { v.abs() }).collect();
    let data = List(vec![vec![Tensor::from_vec(&[64, 4], values).unwrap()]]);
    let plain = QuantizeOptions { bias_correction: false, ..QuantizeOptions::default() };
    let mean_error = |options: &QuantizeOptions| {
        let q = done(&m, &data, options);
        let (a, b) = (m.evaluate(&data.0[0]).unwrap(), q.model.evaluate(&data.0[0]).unwrap());
        let (a, b) = (a[0].as_slice::<f32>().unwrap(), b[0].as_slice::<f32>().unwrap());
        a.iter().zip(b).step_by(2).map(|(a, b)| f64::from(b - a)).sum::<f64>().abs() / 64.0
    };
    let (with, without) = (mean_error(&QuantizeOptions::default()), mean_error(&plain));
    assert!(without > 0.1 && with < without * 0.05, "{with} {without}");
}

#[test]
fn layers_whose_data_is_not_finite_stay_in_float() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4, 4])).unwrap();
    let w = weights(&mut m, "w", &[4, 4], 1);
    let good = matmul(&mut m, "good", x, w, false);
    m.result("a", good).unwrap();
    let logged = m.add("log", Log {}, &[x]).unwrap().into();
    let bad = matmul(&mut m, "bad", logged, w, false);
    m.result("b", bad).unwrap();
    let q = done(&m, &samples(&[4, 4], 2), &QuantizeOptions::default());
    assert!(layer(&q.report, "good").quantized);
    assert_eq!(layer(&q.report, "bad").reason.as_deref(), Some("values of `log` are not finite"));
}

#[test]
fn models_without_layers_or_data_and_quantized_ones_are_refused() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2])).unwrap();
    let y = relu(&mut m, "y", x);
    m.result("r", y).unwrap();
    let text = |e: Result<Quantized>| e.unwrap_err().to_string();
    let options = QuantizeOptions::default();
    assert!(text(run(&m, &samples(&[2], 1), &options)).contains("no layer to quantize"));
    assert!(text(run(&block(), &List(vec![]), &options)).contains("no data"));
    let twice = done(&block(), &samples(&[1, 3, 8, 8], 2), &options).model;
    assert!(text(run(&twice, &samples(&[1, 3, 8, 8], 2), &options)).contains("quantized already"));
    let wrong = run(&block(), &samples(&[1, 3, 9, 9], 1), &options);
    assert!(text(wrong).contains("takes f32[1,3,8,8]"));
}
