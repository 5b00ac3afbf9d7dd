//! Tensors in the memory of the device, and values that stay there from one plan to the next.

use carafe_device::{Device, InferRequest, Properties, RemoteContext};
use carafe_gpu::ClContext;
use carafe_gpu::opencl::{Buffer, Context, Queue, devices};
use carafe_graph::{Model, Value};
use carafe_ops::activation::Relu;
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::any::Any;
use std::sync::Arc;

fn gpu() -> Arc<dyn Device> {
    let [(_, gpu), _] = carafe_gpu::devices();
    gpu
}

fn context(device: &dyn Device) -> Arc<dyn RemoteContext> {
    device.context(&Properties::new()).expect("these tests need an OpenCL device (apt-get install pocl-opencl-icd)")
}

fn cl(context: &dyn RemoteContext) -> &ClContext {
    let any: &dyn Any = context;
    any.downcast_ref().unwrap()
}

fn times(factor: f32) -> Model {
    let mut m = Model::new("times");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 3])).unwrap();
    let by = m.constant("by", Tensor::scalar(factor)).unwrap();
    let y = m.add("y", Multiply::default(), &[x, by]).unwrap();
    m.result("out", y.into()).unwrap();
    m.infer().unwrap();
    m
}

fn request(device: &dyn Device, model: &Model, properties: &Properties) -> Box<dyn InferRequest> {
    device.compile(model, properties).unwrap().create_request()
}

fn numbers(first: f32) -> Tensor {
    Tensor::from_vec(&[2, 3], (0..6).map(|i| first + i as f32).collect::<Vec<_>>()).unwrap()
}

fn is(tensor: &Tensor, wanted: [f32; 6]) {
    assert_eq!(tensor.to_host().unwrap().as_slice::<f32>().unwrap(), wanted);
}

#[test]
fn two_models_are_chained_in_the_memory_of_the_device() {
    let device = gpu();
    let context = context(&*device);
    let (mut first, mut second) =
        (request(&*device, &times(2.0), &context.properties()), request(&*device, &times(10.0), &context.properties()));
    let between = context.create_tensor(ElementType::F32, &[2, 3]).unwrap();
    first.set_output(0, between.clone()).unwrap();
    second.set_input(0, between.clone()).unwrap();
    for start in [0.0, 1.0] {
        first.set_input(0, numbers(start)).unwrap();
        first.infer().unwrap();
        second.infer().unwrap();
        let wanted = std::array::from_fn(|i| (start + i as f32) * 20.0);
        is(second.output(0).unwrap(), wanted);
        assert!(second.output(0).unwrap().remote_memory().is_none());
        assert!(first.output(0).unwrap().remote_memory().is_some(), "it came back through the host");
        is(&between, wanted.map(|x| x / 10.0));
    }
}

#[test]
fn buffers_may_be_changed_from_run_to_run() {
    let device = gpu();
    let context = context(&*device);
    let mut request = request(&*device, &times(3.0), &context.properties());
    let memory: Vec<Tensor> = (0..3).map(|_| context.create_tensor(ElementType::F32, &[2, 3]).unwrap()).collect();
    let mut start = memory[0].clone();
    start.copy_elements(0, &numbers(1.0), 0, 6).unwrap();
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 1)] {
        request.set_input(0, memory[from].clone()).unwrap();
        request.set_output(0, memory[to].clone()).unwrap();
        request.infer().unwrap();
    }
    is(&memory[1], std::array::from_fn(|i| (1.0 + i as f32) * 81.0));
}

#[test]
fn a_buffer_that_is_both_input_and_output_is_read_before_it_is_written() {
    let device = gpu();
    let context = context(&*device);
    let mut request = request(&*device, &times(2.0), &context.properties());
    let mut state = context.create_tensor(ElementType::F32, &[2, 3]).unwrap();
    state.copy_elements(0, &numbers(1.0), 0, 6).unwrap();
    request.set_input(0, state.clone()).unwrap();
    request.set_output(0, state.clone()).unwrap();
    for _ in 0..3 {
        request.infer().unwrap();
    }
    is(&state, std::array::from_fn(|i| (1.0 + i as f32) * 8.0));
}

#[test]
fn a_buffer_of_other_code_is_used_where_it_lies() {
    let device = gpu();
    let context = context(&*device);
    let cl = cl(&*context);
    let mut request = request(&*device, &times(2.0), &context.properties());
    let (theirs, queue) = (Buffer::new(cl.opencl(), 24).unwrap(), Queue::new(cl.opencl(), false).unwrap());
    queue.write(&theirs, 0, numbers(5.0).bytes()).unwrap();
    let input = context.share_tensor(ElementType::F32, &[2, 3], theirs.clone()).unwrap();
    assert_eq!(cl.buffer_of(&input).unwrap().raw(), theirs.raw());
    request.set_input(0, input).unwrap();
    request.infer().unwrap();
    is(request.output(0).unwrap(), std::array::from_fn(|i| (5.0 + i as f32) * 2.0));
    // What they write later is what the next inference reads.
    queue.write(&theirs, 0, numbers(0.0).bytes()).unwrap();
    request.infer().unwrap();
    is(request.output(0).unwrap(), std::array::from_fn(|i| i as f32 * 2.0));
}

#[test]
fn a_context_of_other_code_is_shared() {
    let device = gpu();
    let theirs = Context::new(&devices().unwrap()[0]).unwrap();
    let context = device.share_context(theirs.clone(), &Properties::new()).unwrap();
    assert_eq!(context.handles()[0], ("OCL_CONTEXT", theirs.raw()));
    let mut request = request(&*device, &times(4.0), &context.properties());
    let buffer = Buffer::new(&theirs, 24).unwrap();
    let output = context.share_tensor(ElementType::F32, &[2, 3], buffer).unwrap();
    request.set_input(0, numbers(0.0)).unwrap();
    request.set_output(0, output.clone()).unwrap();
    request.infer().unwrap();
    is(&output, std::array::from_fn(|i| i as f32 * 4.0));
}

#[test]
fn memory_of_another_context_is_copied_through_the_host() {
    let device = gpu();
    let theirs = Context::new(&devices().unwrap()[0]).unwrap();
    let other = device.share_context(theirs, &Properties::new()).unwrap();
    let (mut input, output) = (
        other.create_tensor(ElementType::F32, &[2, 3]).unwrap(),
        other.create_tensor(ElementType::F32, &[2, 3]).unwrap(),
    );
    input.copy_elements(0, &numbers(1.0), 0, 6).unwrap();
    let mut request = request(&*device, &times(2.0), &Properties::new());
    request.set_input(0, input).unwrap();
    request.set_output(0, output.clone()).unwrap();
    request.infer().unwrap();
    is(&output, std::array::from_fn(|i| (1.0 + i as f32) * 2.0));
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let device = gpu();
    let context = context(&*device);
    let small = Buffer::new(cl(&*context).opencl(), 8).unwrap();
    let short = context.share_tensor(ElementType::F32, &[2, 3], small).unwrap_err().to_string();
    assert!(short.contains("need 24 bytes, found 8"), "{short}");
    let strange = context.share_tensor(ElementType::F32, &[1], Arc::new(7u8)).unwrap_err().to_string();
    assert!(strange.contains("opencl::Buffer"), "{strange}");
    let theirs = Context::new(&devices().unwrap()[0]).unwrap();
    let foreign = Buffer::new(&theirs, 24).unwrap();
    let foreign = context.share_tensor(ElementType::F32, &[2, 3], foreign).unwrap_err().to_string();
    assert!(foreign.contains("another OpenCL context"), "{foreign}");
    let gone = device.share_context(theirs, &Properties::new()).unwrap().properties();
    let gone = device.compile(&times(1.0), &gone).err().unwrap().to_string();
    assert!(gone.contains("is gone"), "{gone}");
}

#[test]
fn outputs_that_no_kernel_writes_come_into_given_memory_too() {
    let device = gpu();
    let context = context(&*device);
    let mut m = Model::new("same");
    let x: Value = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 3])).unwrap();
    let y = m.add("y", Relu, &[x]).unwrap();
    let z = m.add("z", Add::default(), &[y.into(), y.into()]).unwrap();
    for (name, v) in [("a", x), ("b", y.into()), ("c", y.into()), ("d", z.into())] {
        m.result(name, v).unwrap();
    }
    m.infer().unwrap();
    let mut request = request(&*device, &m, &context.properties());
    request.set_input(0, numbers(1.0)).unwrap();
    let outputs: Vec<Tensor> = (0..4).map(|_| context.create_tensor(ElementType::F32, &[2, 3]).unwrap()).collect();
    outputs.iter().enumerate().for_each(|(i, t)| request.set_output(i, t.clone()).unwrap());
    request.infer().unwrap();
    for (i, t) in outputs.iter().enumerate() {
        is(t, std::array::from_fn(|k| (1.0 + k as f32) * if i == 3 { 2.0 } else { 1.0 }));
    }
}
