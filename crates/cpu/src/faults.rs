//! Tests of kernels that panic and of kernels that take long: an operation of the tests' own, the step that does it in the
//! chunks of the pool, and what becomes of an inference with it.

use crate::CpuDevice;
use crate::backend::Cpu;
use crate::steps::{Built, Io, Site, Step};
use carafe_device::{CompiledModel, Device, Properties, async_request, parallel};
use carafe_graph::{
    Body, BodyInput, BodyOutput, ErrorKind, EvalCx, EvalEnv, InferCx, Model, Op, Result, Value, run as evaluate,
};
use carafe_ops::control::{If, Loop};
use carafe_plan::Layout;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Adds 1 to each element, an element a chunk. Panics at 42, and waits a little at 99.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "test")]
pub(crate) struct Chunks {
    /// Whether the step below does it, or the evaluation.
    #[attr(default = true)]
    kernel: bool,
}

/// Elements of 99 that were done.
static WAITED: AtomicUsize = AtomicUsize::new(0);

fn one(x: f32) -> f32 {
    assert!(x != 42.0, "there is a 42");
    if x == 99.0 {
        WAITED.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    x + 1.0
}

impl Op for Chunks {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let x = cx.get::<f32>(0)?.into_owned();
        let y: Vec<Mutex<f32>> = x.iter().map(|_| Mutex::new(0.0)).collect();
        let work = |i: usize| *y[i].lock().unwrap() = one(x[i]);
        match parallel() {
            Some(threads) => threads.run(x.len(), &work),
            None => (0..x.len()).for_each(work),
        }
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y.into_iter().map(|y| y.into_inner().unwrap()).collect())
    }
}

#[derive(Debug)]
struct ChunksStep;

impl Step<Cpu> for ChunksStep {
    fn kernel(&self) -> String {
        "chunks".into()
    }
    fn scratch_bytes(&self) -> usize {
        4
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output::<f32>(0);
        let x: &[f32] = io.input(0);
        let y: Vec<Mutex<&mut f32>> = out.iter_mut().map(Mutex::new).collect();
        io.exec.each(x.len(), |c, thread| {
            let mut scratch = io.exec.scratch.of(thread);
            scratch[0] = one(x[c]);
            **y[c].lock().unwrap() = scratch[0];
        });
        Ok(())
    }
}

pub(crate) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let taken = site.op.get::<Chunks>().is_some_and(|op| op.kernel);
    Ok(taken.then(|| Built::step(ChunksStep, vec![(0, Layout::PLAIN)], Layout::PLAIN)))
}

const N: usize = 64;

fn chunks(m: &mut Model, name: &str, kernel: bool, x: Value) -> Value {
    m.add(name, Chunks { kernel }, &[x]).unwrap().into()
}

fn one_node(kernel: bool, n: usize) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[n])).unwrap();
    let y = chunks(&mut m, "node", kernel, x);
    m.result("out", y).unwrap();
    m
}

fn body(kernel: bool, inputs: Vec<BodyInput>) -> Body {
    let mut m = Model::new("body");
    let x = m.parameter("p", ElementType::F32, PartialShape::of(&[N])).unwrap();
    let y = chunks(&mut m, "inner", kernel, x);
    m.result("r", y).unwrap();
    let mut body = Body::new(m);
    body.inputs = inputs;
    body.outputs.push(BodyOutput { outer: 0, result: 0, slicing: None });
    body
}

/// Three turns.
fn in_a_loop(kernel: bool) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[N])).unwrap();
    let trips = m.constant("trips", Tensor::scalar(3i64)).unwrap();
    let go = m.constant("go", Tensor::from_i64(ElementType::Boolean, &[], &[1]).unwrap()).unwrap();
    let input = BodyInput { outer: Some(2), parameter: 0, slicing: None, back_edge: Some(0) };
    let y = m.add("loop", Loop { body: body(kernel, vec![input]) }, &[trips, go, x]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

fn in_a_branch(kernel: bool) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[N])).unwrap();
    let zero = m.constant("zero", Tensor::scalar(0f32)).unwrap();
    let axes = m.constant("axes", Tensor::from_slice(&[1], &[0i64]).unwrap()).unwrap();
    let largest = m.add("largest", carafe_ops::reduce::ReduceMax { keep_dims: false }, &[x, axes]).unwrap();
    let go = m.add("go", carafe_ops::compare::Greater::default(), &[largest.into(), zero]).unwrap();
    let branch = || body(kernel, vec![BodyInput { outer: Some(1), parameter: 0, slicing: None, back_edge: None }]);
    let y = m.add("if", If { then_body: branch(), else_body: branch() }, &[go.into(), x]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

fn compile(m: &Model, threads: usize) -> Arc<dyn CompiledModel> {
    let properties = Properties::new().with("INFERENCE_NUM_THREADS", threads);
    CpuDevice::default().compile(m, &properties).unwrap()
}

fn filled(x: f32) -> Tensor {
    Tensor::from_vec(&[N], vec![x; N]).unwrap()
}

fn with(x: f32, other: f32, positions: &[usize]) -> Tensor {
    let mut all = vec![x; N];
    positions.iter().for_each(|&i| all[i] = other);
    Tensor::from_vec(&[N], all).unwrap()
}

/// A bad input, an inference that says so and names the node, and good ones after it on requests old and new.
fn bad_then_good(m: &Model, bad: &Tensor, node: &str) {
    let good = filled(1.0);
    let wanted = evaluate(m, std::slice::from_ref(&good), &mut EvalEnv::default()).unwrap();
    for threads in [1, 2, 4] {
        let compiled = compile(m, threads);
        let mut request = compiled.clone().create_request();
        for _ in 0..20 {
            request.set_input(0, bad.clone()).unwrap();
            let e = request.infer().unwrap_err();
            assert!(e.to_string().contains(node) && e.to_string().contains("there is a 42"), "{e}");
            assert!(request.output(0).is_err());
            for request in [&mut request, &mut compiled.clone().create_request()] {
                request.set_input(0, good.clone()).unwrap();
                request.infer().unwrap();
                assert!(request.output(0).unwrap().content_eq(&wanted[0]));
            }
        }
    }
}

#[test]
fn a_panic_of_a_kernel_in_one_chunk_is_an_error_of_the_inference() {
    bad_then_good(&one_node(true, N), &with(0.0, 42.0, &[7]), "node `node`");
}

#[test]
fn panics_of_a_kernel_in_all_chunks_are_an_error_of_the_inference() {
    bad_then_good(&one_node(true, N), &filled(42.0), "node `node`");
}

#[test]
fn a_panic_of_an_evaluation_on_lent_threads_is_an_error_of_the_inference() {
    bad_then_good(&one_node(false, N), &with(0.0, 42.0, &[0, 9, 63]), "node `node`");
}

#[test]
fn a_panic_of_a_kernel_inside_of_a_loop_names_the_node_of_the_body() {
    // It comes in the second turn.
    bad_then_good(&in_a_loop(true), &with(0.0, 41.0, &[5, 6]), "node `inner`");
}

#[test]
fn a_panic_of_an_evaluation_inside_of_a_loop_names_the_node_of_the_body() {
    bad_then_good(&in_a_loop(false), &with(0.0, 41.0, &[5, 6]), "node `inner`");
}

#[test]
fn a_panic_inside_of_a_branch_names_the_node_of_the_body() {
    for kernel in [true, false] {
        bad_then_good(&in_a_branch(kernel), &with(1.0, 42.0, &[3]), "node `inner`");
    }
}

#[test]
fn a_panic_in_an_asynchronous_inference_ends_it_with_an_error() {
    let compiled = compile(&one_node(true, N), 3);
    let request = async_request(&compiled);
    for turn in 0..40 {
        let bad = turn % 2 == 0;
        request.set_input(0, with(2.0, if bad { 42.0 } else { 2.0 }, &[11])).unwrap();
        request.start_async().unwrap();
        match request.wait() {
            Ok(()) => assert!(!bad && request.output(0).unwrap().content_eq(&filled(3.0))),
            Err(e) => assert!(bad && e.to_string().contains("node `node`"), "{e}"),
        }
    }
}

#[test]
fn many_requests_go_on_beside_one_that_panics() {
    let properties = Properties::new().with("INFERENCE_NUM_THREADS", 4).with("NUM_STREAMS", 2);
    let compiled = CpuDevice::default().compile(&one_node(true, N), &properties).unwrap();
    std::thread::scope(|s| {
        for t in 0..6 {
            let compiled = compiled.clone();
            s.spawn(move || {
                let mut request = compiled.create_request();
                for _ in 0..50 {
                    request.set_input(0, if t < 2 { filled(42.0) } else { filled(t as f32) }).unwrap();
                    assert_eq!(request.infer().is_err(), t < 2);
                    if t >= 2 {
                        assert!(request.output(0).unwrap().content_eq(&filled(t as f32 + 1.0)));
                    }
                }
            });
        }
    });
}

#[test]
fn memory_that_the_user_gave_is_still_written_after_a_panic() {
    let compiled = compile(&one_node(true, N), 2);
    let mut request = compiled.create_request();
    let given = filled(0.0);
    let address = given.bytes().as_ptr();
    request.set_input(0, filled(1.0)).unwrap();
    request.infer().unwrap();
    request.set_output(0, given).unwrap();
    request.set_input(0, filled(42.0)).unwrap();
    request.infer().unwrap_err();
    request.set_input(0, filled(5.0)).unwrap();
    request.infer().unwrap();
    assert!(request.output(0).unwrap().content_eq(&filled(6.0)));
    assert_eq!(request.output(0).unwrap().bytes().as_ptr(), address);
}

#[test]
fn a_cancelled_inference_leaves_the_chunks_that_are_left() {
    const MANY: usize = 1_000_000;
    for threads in [1, 3] {
        let compiled = compile(&one_node(true, MANY), threads);
        let mut request = compiled.clone().create_request();
        request.set_input(0, Tensor::from_vec(&[MANY], vec![99f32; MANY]).unwrap()).unwrap();
        let flag = request.cancel_flag();
        let (before, done) = (WAITED.load(Ordering::Relaxed), AtomicBool::new(false));
        std::thread::scope(|s| {
            s.spawn(|| {
                while WAITED.load(Ordering::Relaxed) < before + 5 && !done.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                flag.set();
            });
            let e = request.infer().unwrap_err();
            done.store(true, Ordering::Relaxed);
            assert_eq!(e.kind(), ErrorKind::Cancelled);
        });
        assert!(WAITED.load(Ordering::Relaxed) - before < MANY / 2);
        assert!(request.output(0).is_err(), "a half done result is handed out");
        // The stream is free again, and the request good.
        request.set_input(0, Tensor::from_vec(&[MANY], vec![1f32; MANY]).unwrap()).unwrap();
        request.infer().unwrap();
        assert!(request.output(0).unwrap().as_slice::<f32>().unwrap().iter().all(|x| *x == 2.0));
    }
}

#[test]
fn a_request_that_waits_for_a_stream_can_be_cancelled() {
    const MANY: usize = 100_000;
    let compiled = compile(&one_node(true, MANY), 1);
    let slow = Tensor::from_vec(&[MANY], vec![99f32; MANY]).unwrap();
    let mut first = compiled.clone().create_request();
    let mut second = compiled.create_request();
    first.set_input(0, slow.clone()).unwrap();
    second.set_input(0, slow).unwrap();
    let (stop_first, stop_second) = (first.cancel_flag(), second.cancel_flag());
    let before = WAITED.load(Ordering::Relaxed);
    std::thread::scope(|s| {
        let running = s.spawn(move || first.infer().unwrap_err().kind());
        while WAITED.load(Ordering::Relaxed) == before {
            std::thread::yield_now();
        }
        let waiting = s.spawn(move || second.run_stage(0).unwrap_err().kind());
        stop_second.set();
        assert_eq!(waiting.join().unwrap(), ErrorKind::Cancelled);
        stop_first.set();
        assert_eq!(running.join().unwrap(), ErrorKind::Cancelled);
    });
}
