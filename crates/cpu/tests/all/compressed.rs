//! Weights that stay compressed, against the evaluation of the model as it is written.

use crate::nets::{Numbers, assert_like_eval, compile};
use carafe_cpu::CpuDevice;
use carafe_device::{Device, Properties};
use carafe_graph::{Model, Value};
use carafe_ops::activation::Relu;
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::{Gather, NonZero};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::{Reshape, Transpose};
use carafe_tensor::{ElementType, PartialShape, Tensor};

const F32: Convert = Convert { destination_type: ElementType::F32 };

/// Compressed weights: `(stored - zero) * scale`, then reshaped.
struct Weights {
    ty: ElementType,
    data: Vec<usize>,
    scale: Vec<usize>,
    zero: Option<Tensor>,
    shape: Vec<usize>,
}

impl Weights {
    fn new(ty: ElementType, data: &[usize], scale: &[usize], shape: &[usize]) -> Weights {
        Weights { ty, data: data.to_vec(), scale: scale.to_vec(), zero: None, shape: shape.to_vec() }
    }
    fn with_zero(self, zero: Tensor) -> Weights {
        Weights { zero: Some(zero), ..self }
    }
    fn build(&self, m: &mut Model) -> Value {
        let mut r = Numbers(3);
        let bytes: Vec<u8> =
            (0..self.ty.byte_len(self.data.iter().product()).unwrap()).map(|_| r.next() as u8).collect();
        let data = m.constant("stored", Tensor::from_bytes(self.ty, &self.data, &bytes).unwrap()).unwrap();
        let mut w: Value = m.add("wide", F32, &[data]).unwrap().into();
        if let Some(zero) = &self.zero {
            let mut zero = m.constant("zero", zero.clone()).unwrap();
            if m.fact(zero).ty != ElementType::F32 {
                zero = m.add("wide_zero", F32, &[zero]).unwrap().into();
            }
            w = m.add("centred", Subtract::default(), &[w, zero]).unwrap().into();
        }
        let scales: Vec<f32> = (0..self.scale.iter().product()).map(|_| 0.01 + r.float().abs() * 0.05).collect();
        let scale = m.constant("scale", Tensor::from_vec(&self.scale, scales).unwrap()).unwrap();
        w = m.add("scaled", Multiply::default(), &[w, scale]).unwrap().into();
        if self.shape != self.data {
            let shape: Vec<i64> = self.shape.iter().map(|n| *n as i64).collect();
            let shape = m.constant("shape", Tensor::from_slice(&[shape.len()], &shape).unwrap()).unwrap();
            w = m.add("reshaped", Reshape { special_zero: false }, &[w, shape]).unwrap().into();
        }
        w
    }
}

fn kernels(m: &Model, inputs: &[Tensor]) -> Vec<String> {
    let mut request = compile(m, &Properties::new().with("PERF_COUNT", "YES")).create_request();
    inputs.iter().enumerate().for_each(|(i, t)| request.set_input(i, t.clone()).unwrap());
    request.infer().unwrap();
    let ran = |k: &String| k != "none" && !k.starts_with("fused");
    request.profile().into_iter().map(|p| p.kernel.replacen("_f32", "", 1)).filter(ran).collect()
}

/// A product of one row and of many; the kernels of the first.
fn product(weights: &Weights, transpose_b: bool) -> Vec<String> {
    let k = weights.shape[usize::from(transpose_b)];
    let build = |rows: usize| {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[rows, k])).unwrap();
        let w = weights.build(&mut m);
        let y = m.add("y", MatMul { transpose_a: false, transpose_b }, &[x, w]).unwrap();
        m.result("r", y.into()).unwrap();
        (m, [Numbers(9).tensor(&[rows, k])])
    };
    for rows in [1, 4, 19] {
        let (m, inputs) = build(rows);
        assert_like_eval(&m, &inputs, 1e-5);
    }
    let (m, inputs) = build(1);
    kernels(&m, &inputs)
}

fn bytes(ty: ElementType, shape: &[usize]) -> Tensor {
    let mut r = Numbers(5);
    let bytes: Vec<u8> = (0..ty.byte_len(shape.iter().product()).unwrap()).map(|_| r.next() as u8).collect();
    Tensor::from_bytes(ty, shape, &bytes).unwrap()
}

#[test]
fn products_run_from_compressed_weights() {
    use ElementType::*;
    for (ty, zero, name) in [
        (I8, None, "i8"),
        (U8, Some(U8), "u8"),
        (U8, None, "u8"),
        (I4, None, "i4"),
        (U4, Some(U4), "u4"),
        (Nf4, None, "nf4"),
        (F4E2M1, None, "f4e2m1"),
        (U2, Some(I8), "u2"),
        (I2, None, "i2"),
        (U3, Some(U3), "u3"),
    ] {
        let with = |w: Weights, shape: &[usize]| match zero {
            Some(ty) => w.with_zero(bytes(ty, shape)),
            None => w,
        };
        let rows = with(Weights::new(ty, &[40, 64], &[40, 1], &[40, 64]), &[40, 1]);
        assert_eq!(product(&rows, true), [format!("gemm_{name}")]);
        let columns = with(Weights::new(ty, &[64, 40], &[1, 40], &[64, 40]), &[1, 40]);
        assert_eq!(product(&columns, false), [format!("gemm_{name}")]);
        let groups = with(Weights::new(ty, &[40, 4, 16], &[40, 4, 1], &[40, 64]), &[40, 4, 1]);
        assert_eq!(product(&groups, true), [format!("gemm_{name}_g16")]);
        let groups = with(Weights::new(ty, &[4, 16, 40], &[4, 1, 40], &[64, 40]), &[4, 1, 40]);
        assert_eq!(product(&groups, false), [format!("gemm_{name}_g16")]);
    }
}

#[test]
fn one_scale_and_one_zero_point_serve_all() {
    let weights = Weights::new(ElementType::U8, &[8, 64], &[1], &[8, 64]).with_zero(Tensor::scalar(77u8));
    assert_eq!(product(&weights, true), ["gemm_u8"]);
}

#[test]
fn a_zero_point_in_the_middle_costs_nothing_and_is_right() {
    let weights = Weights::new(ElementType::U4, &[8, 64], &[8, 1], &[8, 64]).with_zero(Tensor::scalar(8f32));
    assert_eq!(product(&weights, true), ["gemm_u4"]);
}

#[test]
fn what_kernels_do_not_know_is_computed_with_floats() {
    let fraction = Tensor::scalar(2.5f32);
    let far = Tensor::scalar(300f32);
    for zero in [fraction, far] {
        let weights = Weights::new(ElementType::I8, &[8, 64], &[8, 1], &[8, 64]).with_zero(zero);
        assert_eq!(product(&weights, true), ["gemm"]);
    }
    // Groups that end in the middle of a row.
    let across = Weights::new(ElementType::I8, &[4, 3, 16], &[4, 3, 1], &[8, 24]);
    assert_eq!(product(&across, true), ["gemm"]);
    // A scale for each number of a row.
    let each = Weights::new(ElementType::I8, &[8, 64], &[8, 64], &[8, 64]);
    assert_eq!(product(&each, true), ["gemm"]);
}

#[test]
fn bias_and_function_belong_to_the_product() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 3, 64])).unwrap();
    let w = Weights::new(ElementType::I4, &[40, 4, 16], &[40, 4, 1], &[40, 64]).build(&mut m);
    let mut y: Value = m.add("y", MatMul { transpose_a: false, transpose_b: true }, &[x, w]).unwrap().into();
    let bias = m.constant("bias", Numbers(8).tensor(&[40])).unwrap();
    y = m.add("sum", Add::default(), &[y, bias]).unwrap().into();
    y = m.add("relu", Relu, &[y]).unwrap().into();
    m.result("r", y).unwrap();
    let inputs = [Numbers(9).tensor(&[2, 3, 64])];
    assert_like_eval(&m, &inputs, 1e-5);
    assert_eq!(kernels(&m, &inputs), ["gemm_i4_g16+bias+relu"]);
}

// Ids look rows up, the same table is the last layer, by way of a transpose or not.
fn tied(weights: &Weights, turned: bool) -> (Model, [Tensor; 1]) {
    let mut m = Model::new("m");
    let ids = m.parameter("ids", ElementType::I64, PartialShape::of(&[1, 5])).unwrap();
    let table = weights.build(&mut m);
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let rows = m.add("rows", Gather { batch_dims: 0 }, &[table, ids, axis]).unwrap().into();
    let mut last = table;
    if turned {
        let order = m.constant("order", Tensor::from_slice(&[2], &[1i64, 0]).unwrap()).unwrap();
        last = m.add("turned", Transpose, &[last, order]).unwrap().into();
    }
    let y = m.add("y", MatMul { transpose_a: false, transpose_b: !turned }, &[rows, last]).unwrap();
    m.result("r", y.into()).unwrap();
    (m, [Tensor::from_slice(&[1, 5], &[0i64, 31, -1, 7, 40]).unwrap()])
}

#[test]
fn rows_of_a_table_and_the_last_layer_share_it_compressed() {
    for (ty, zero) in [(ElementType::U8, Some(ElementType::U8)), (ElementType::I4, None), (ElementType::Nf4, None)] {
        for turned in [false, true] {
            let mut weights = Weights::new(ty, &[32, 4, 16], &[32, 4, 1], &[32, 64]);
            if let Some(zero) = zero {
                weights = weights.with_zero(bytes(zero, &[32, 4, 1]));
            }
            let (m, inputs) = tied(&weights, turned);
            assert_like_eval(&m, &inputs, 1e-5);
            assert_eq!(kernels(&m, &inputs), [format!("gather_{ty}_g16"), format!("gemm_{ty}_g16")]);
        }
    }
}

#[test]
fn compressed_weights_take_the_memory_of_compressed_weights() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 512])).unwrap();
    let w = Weights::new(ElementType::I4, &[512, 4, 128], &[512, 4, 1], &[512, 512]).build(&mut m);
    let y = m.add("y", MatMul { transpose_a: false, transpose_b: true }, &[x, w]).unwrap();
    m.result("r", y.into()).unwrap();
    let memory = compile(&m, &Properties::new()).property("CPU_MEMORY_STATISTICS").unwrap();
    let words: Vec<&str> = memory.split(' ').collect();
    let packed: usize = words[3].parse().unwrap();
    let constants: usize = words[5].parse().unwrap();
    assert!(words[2] == "packed" && packed < 512 * 512 / 2 * 110 / 100, "{memory}");
    assert!(words[4] == "constants" && constants < 4096, "{memory}");
}

#[test]
fn a_product_behind_shapes_of_data_stays_compressed() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[6, 64])).unwrap();
    let chosen = m.parameter("chosen", ElementType::I32, PartialShape::of(&[6])).unwrap();
    let found = m.add("found", NonZero { output_type: ElementType::I64 }, &[chosen]).unwrap().into();
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let flat = m.constant("flat", Tensor::from_slice(&[1], &[-1i64]).unwrap()).unwrap();
    let list = m.add("list", Reshape { special_zero: false }, &[found, flat]).unwrap().into();
    let rows = m.add("rows", Gather { batch_dims: 0 }, &[x, list, axis]).unwrap().into();
    let w = Weights::new(ElementType::U8, &[40, 64], &[40, 1], &[40, 64]).build(&mut m);
    let y = m.add("y", MatMul { transpose_a: false, transpose_b: true }, &[rows, w]).unwrap();
    m.result("r", y.into()).unwrap();
    let inputs = [Numbers(9).tensor(&[6, 64]), Tensor::from_slice(&[6], &[0i32, 1, 0, 5, 7, 0]).unwrap()];
    assert_like_eval(&m, &inputs, 1e-5);
    assert!(kernels(&m, &inputs).contains(&"gemm_u8".to_string()), "{:?}", kernels(&m, &inputs));
}

const GROUP: &str = "DYNAMIC_QUANTIZATION_GROUP_SIZE";

// The numbers of a product with properties, and its kernel.
fn with_properties(m: &Model, x: &Tensor, pairs: &[(&str, &str)]) -> (Vec<f32>, String) {
    let start = Properties::new().with("PERF_COUNT", "YES");
    let properties = pairs.iter().fold(start, |p, (name, value)| p.with(name, value));
    let compiled = CpuDevice::default().compile(m, &properties).unwrap();
    let mut request = compiled.create_request();
    request.set_input(0, x.clone()).unwrap();
    request.infer().unwrap();
    let kernel = request.profile().into_iter().map(|p| p.kernel).find(|k| k.starts_with("gemm")).unwrap();
    (request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned(), kernel)
}

#[test]
fn data_beside_compressed_weights_is_rounded_in_groups_unless_exact_numbers_are_asked_for() {
    use ElementType::*;
    let fast = carafe_kernels::Numbers::U8I8.is_fast(carafe_kernels::Isa::best());
    for (weights, name) in [
        (Weights::new(I8, &[40, 128], &[40, 1], &[40, 128]), "gemm_i8"),
        (Weights::new(U4, &[40, 2, 64], &[40, 2, 1], &[40, 128]).with_zero(bytes(U4, &[40, 2, 1])), "gemm_u4_g64"),
    ] {
        for rows in [1, 19] {
            let mut m = Model::new("m");
            let x = m.parameter("x", F32, PartialShape::of(&[rows, 128])).unwrap();
            let w = weights.build(&mut m);
            let y = m.add("y", MatMul { transpose_a: false, transpose_b: true }, &[x, w]).unwrap();
            m.result("r", y.into()).unwrap();
            let x = Numbers(9).tensor(&[rows, 128]);
            let (exact, kernel) = with_properties(&m, &x, &[("EXECUTION_MODE_HINT", "ACCURACY")]);
            assert_eq!(kernel, format!("{name}_f32"));
            for off in [("INFERENCE_PRECISION_HINT", "f32"), (GROUP, "0")] {
                assert_eq!(with_properties(&m, &x, &[off]), (exact.clone(), kernel.clone()), "{off:?}");
            }
            let largest = exact.iter().fold(0f32, |m, x| m.max(x.abs()));
            for on in
                [&[][..], &[(GROUP, "32")], &[(GROUP, "1000000")], &[(GROUP, "8"), ("EXECUTION_MODE_HINT", "ACCURACY")]]
            {
                let (found, kernel) = with_properties(&m, &x, on);
                assert_eq!(kernel, if fast { format!("{name}_i8") } else { format!("{name}_f32") });
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 0.01 * largest;
                assert!(found.iter().zip(&exact).all(near), "{name} {rows} {on:?}: {found:?} {exact:?}");
            }
        }
    }
}
