//! Numbers below the smallest normal one: kernels take them as zero, unless asked not to; all else keeps them.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use carafe_cpu::CpuDevice;
use carafe_device::{
    Config, Device, InferRequest, Kernel, KernelIo, PortLayout, PreparedKernel, Properties, Site, parallel,
};
use carafe_graph::{Body, BodyInput, BodyOutput, EvalCx, InferCx, Model, Op, Result, Value};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::control::Loop;
use carafe_ops::movement::Concat;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::hint::black_box;
use std::sync::{Arc, Mutex};

/// A denormal number, and enough of them that all threads have some.
const SMALL: f32 = 1e-40;
const N: usize = 100_000;

fn doubled() -> f32 {
    black_box(SMALL) * black_box(2.0)
}

fn small() -> Tensor {
    Tensor::from_vec(&[N], vec![SMALL; N]).unwrap()
}

fn input(m: &mut Model) -> Value {
    m.parameter("x", ElementType::F32, PartialShape::of(&[N])).unwrap()
}

fn twice(m: &mut Model, x: Value) -> Value {
    let two = m.constant("two", Tensor::scalar(2f32)).unwrap();
    m.add("twice", Multiply::default(), &[x, two]).unwrap().into()
}

fn outputs(request: &mut dyn InferRequest) -> Vec<f32> {
    request.set_input(0, small()).unwrap();
    request.infer().unwrap();
    request.output(0).unwrap().to_vec::<f32>().unwrap().to_vec()
}

fn all_are(model: &Model, properties: &Properties, wanted: f32) {
    for threads in [1, 3] {
        let properties = properties.clone().with("INFERENCE_NUM_THREADS", threads);
        let mut request = crate::nets::compile(model, &properties).create_request();
        let found = outputs(&mut *request);
        assert!(found.iter().all(|y| y.to_bits() == wanted.to_bits()), "{} of {wanted:e}", found[0]);
        assert!(doubled() > 0.0, "the thread of the caller still flushes");
    }
}

fn off() -> Properties {
    Properties::new().with("CPU_DENORMALS_OPTIMIZATION", "NO")
}

/// Doubles, on the threads that the device lends.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "test")]
struct Twice;

impl Op for Twice {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        assert!(doubled() > 0.0);
        let x = cx.get::<f32>(0)?.into_owned();
        let parts: Vec<Mutex<Vec<f32>>> = x.chunks(1000).map(|part| Mutex::new(part.to_vec())).collect();
        let work = |i: usize| parts[i].lock().unwrap().iter_mut().for_each(|x| *x = black_box(*x) * 2.0);
        match parallel() {
            Some(threads) => threads.run(parts.len(), &work),
            None => (0..parts.len()).for_each(work),
        }
        assert!(doubled() > 0.0);
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, parts.into_iter().flat_map(|p| p.into_inner().unwrap()).collect())
    }
}

/// A kernel of an extension for it.
struct TwiceKernel;

impl Kernel for TwiceKernel {
    fn device(&self) -> &str {
        "CPU"
    }
    fn op(&self) -> &str {
        "Twice"
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "twice"
    }
    fn configs(&self, _: &Site) -> Result<Vec<Config>> {
        let plain = || vec![PortLayout::plain(ElementType::F32)];
        Ok(vec![Config::new(plain(), plain())])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(TwicePrepared))
    }
}

struct TwicePrepared;

impl PreparedKernel for TwicePrepared {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        io.map::<f32>(0, |x| black_box(x) * 2.0)
    }
}

#[test]
fn kernels_take_them_as_zero() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let y = twice(&mut m, x);
    m.result("y", y).unwrap();
    all_are(&m, &Properties::new(), 0.0);
}

#[test]
fn kernels_keep_them_where_the_property_says_so() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let y = twice(&mut m, x);
    m.result("y", y).unwrap();
    all_are(&m, &off(), 2.0 * SMALL);
}

#[test]
fn evaluations_keep_them_and_so_do_the_threads_they_borrow() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let y = m.add("y", Twice, &[x]).unwrap();
    m.result("y", y.into()).unwrap();
    all_are(&m, &Properties::new(), 2.0 * SMALL);
}

#[test]
fn kernels_of_extensions_keep_them() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let y = m.add("y", Twice, &[x]).unwrap();
    m.result("y", y.into()).unwrap();
    let device = CpuDevice::default();
    device.set_kernels(&[Arc::new(TwiceKernel)]);
    let compiled = device.compile(&m, &Properties::new()).unwrap();
    let mut request = compiled.create_request();
    assert!(outputs(&mut *request).iter().all(|y| y.to_bits() == (2.0 * SMALL).to_bits()));
}

#[test]
fn a_kernel_behind_an_evaluation_flushes_again() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let y = m.add("y", Twice, &[x]).unwrap();
    let z = twice(&mut m, y.into());
    m.result("z", z).unwrap();
    all_are(&m, &Properties::new(), 0.0);
}

#[test]
fn constants_are_folded_with_them() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let small = m.constant("small", Tensor::from_slice(&[1], &[SMALL]).unwrap()).unwrap();
    let folded = twice(&mut m, small);
    let y = m.add("y", Concat { axis: 0 }, &[folded, x]).unwrap();
    m.result("y", y.into()).unwrap();
    let mut request = crate::nets::compile(&m, &Properties::new()).create_request();
    assert_eq!(outputs(&mut *request)[0].to_bits(), (2.0 * SMALL).to_bits());
}

#[test]
fn kernels_of_a_body_flush_and_its_evaluations_do_not() {
    for (evaluated, wanted) in [(true, 8.0 * SMALL), (false, 0.0)] {
        let mut body = Model::new("body");
        let p = body.parameter("p", ElementType::F32, PartialShape::of(&[N])).unwrap();
        let y = if evaluated { body.add("y", Twice, &[p]).unwrap().into() } else { twice(&mut body, p) };
        body.result("r", y).unwrap();
        let mut body = Body::new(body);
        body.inputs.push(BodyInput { outer: Some(2), parameter: 0, slicing: None, back_edge: Some(0) });
        body.outputs.push(BodyOutput { outer: 0, result: 0, slicing: None });
        let mut m = Model::new("m");
        let x = input(&mut m);
        let trips = m.constant("trips", Tensor::scalar(3i64)).unwrap();
        let go = m.constant("go", Tensor::from_i64(ElementType::Boolean, &[], &[1]).unwrap()).unwrap();
        let y = m.add("loop", Loop { body }, &[trips, go, x]).unwrap();
        m.result("y", y.into()).unwrap();
        all_are(&m, &Properties::new(), wanted);
    }
}

#[test]
fn a_thread_that_flushes_on_its_own_computes_exactly_where_that_is_asked_and_flushes_afterwards() {
    let mut m = Model::new("m");
    let x = input(&mut m);
    let y = twice(&mut m, x);
    let z = m.add("z", Add::default(), &[y, x]).unwrap();
    m.result("z", z.into()).unwrap();
    let _own = carafe_kernels::flush_denormals();
    let mut request = crate::nets::compile(&m, &off().with("INFERENCE_NUM_THREADS", 2)).create_request();
    let found = outputs(&mut *request);
    assert!(carafe_kernels::flushes_denormals());
    assert!(found.iter().all(|y| y.to_bits() > 0));
}
