//! An inference takes no memory from the system once a request is warm, and a compiled model none that it does not need.

// A counting allocator cannot be written without.
#![allow(unsafe_code)]

#[path = "all/nets/mod.rs"]
mod nets;

use carafe_cpu::CpuDevice;
use carafe_device::{
    Config, Device, InferRequest, Kernel, KernelIo, Layout as KernelLayout, PortLayout, PreparedKernel, Properties,
    Site,
};
use carafe_graph::{Model, Result};
use carafe_ops::activation::Relu;
use carafe_ops::linear::MatMul;
use carafe_ops::math::Abs;
use carafe_ops::movement::Reshape;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Bytes that are taken and not given back.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counting is for one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

fn allocates_nothing(mut request: Box<dyn InferRequest>, what: &str) {
    for _ in 0..3 {
        request.infer().unwrap();
    }
    // A thread takes some when it starts, which may be after the first inferences.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let before = COUNT.load(Ordering::Relaxed);
    for _ in 0..10 {
        request.infer().unwrap();
    }
    assert_eq!(COUNT.load(Ordering::Relaxed) - before, 0, "{what}");
}

#[test]
fn a_warm_inference_allocates_nothing() {
    let _alone = alone();
    let model = nets::network("1");
    let input = nets::Numbers(3).tensor(&[1, 3, 24, 20]);
    for threads in [1, 2] {
        let compiled = nets::compile(&model, &Properties::new().with("INFERENCE_NUM_THREADS", threads));
        let mut request = compiled.create_request();
        request.set_input(0, input.clone()).unwrap();
        allocates_nothing(request, &format!("with {threads} threads"));
    }
}

/// A kernel of an extension that tells where its memory lies.
#[derive(Clone)]
struct Placed {
    layout: KernelLayout,
    in_place: bool,
    seen: Arc<[AtomicUsize; 2]>,
}

impl Kernel for Placed {
    fn device(&self) -> &str {
        "CPU"
    }
    fn op(&self) -> &str {
        "Abs"
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "placed"
    }
    fn configs(&self, _: &Site) -> Result<Vec<Config>> {
        let port = || PortLayout::new(ElementType::F32, self.layout.clone());
        let output = if self.in_place { port().in_place_of(0) } else { port() };
        let config = Config::new(vec![port()], vec![output]);
        Ok(vec![Config { workspace: 256, scratch: 128, ..config }])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(self.clone()))
    }
}

impl PreparedKernel for Placed {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        assert_eq!(io.workspace.len(), 256);
        assert_eq!(io.in_place.is_some(), self.in_place);
        io.each(4, |_, scratch| assert_eq!(scratch.len(), 128));
        let at = [io.inputs[0].as_ptr(), io.outputs[0].as_ptr()].map(|p| p.addr());
        at.iter().zip(&*self.seen).for_each(|(at, seen)| seen.store(*at, Ordering::Relaxed));
        io.map::<f32>(0, f32::abs)
    }
}

#[test]
fn a_warm_inference_with_a_kernel_of_an_extension_allocates_and_copies_nothing() {
    let _alone = alone();
    let shape = [1, 12, 6, 5];
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&shape)).unwrap();
    let a = m.add("a", Relu, &[x]).unwrap();
    let k = m.add("k", Abs, &[a.into()]).unwrap();
    let b = m.add("b", Relu, &[k.into()]).unwrap();
    m.result("y", b.into()).unwrap();
    for (layout, in_place) in
        [(KernelLayout::Plain, false), (KernelLayout::Plain, true), (KernelLayout::BlockedBy(8), false)]
    {
        let kernel = Placed { layout, in_place, seen: Arc::default() };
        let device = CpuDevice::default();
        device.set_kernels(&[Arc::new(kernel.clone())]);
        let two = Properties::new().with("INFERENCE_NUM_THREADS", 2);
        let mut request = device.compile(&m, &two).unwrap().create_request();
        request.set_input(0, nets::Numbers(3).tensor(&shape)).unwrap();
        request.infer().unwrap();
        let first = [0, 1].map(|i| kernel.seen[i].load(Ordering::Relaxed));
        request.infer().unwrap();
        assert_eq!(first, [0, 1].map(|i| kernel.seen[i].load(Ordering::Relaxed)), "the same slots of one arena");
        allocates_nothing(request, &format!("{} {in_place}", kernel.layout));
    }
    // Alone in a model it works on the tensors of the user themselves.
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&shape)).unwrap();
    let k = m.add("k", Abs, &[x]).unwrap();
    m.result("y", k.into()).unwrap();
    let kernel = Placed { layout: KernelLayout::Plain, in_place: false, seen: Arc::default() };
    let device = CpuDevice::default();
    device.set_kernels(&[Arc::new(kernel.clone())]);
    let mut request = device.compile(&m, &Properties::new()).unwrap().create_request();
    let input = nets::Numbers(3).tensor(&shape);
    request.set_input(0, input.clone()).unwrap();
    request.infer().unwrap();
    let [from, to] = [0, 1].map(|i| kernel.seen[i].load(Ordering::Relaxed));
    assert_eq!(from, input.bytes().as_ptr().addr());
    assert_eq!(to, request.output(0).unwrap().bytes().as_ptr().addr());
}

#[test]
fn weights_at_odd_addresses_are_not_kept_twice() {
    let _alone = alone();
    let n = &mut nets::Numbers(5);
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 256, 8, 8])).unwrap();
    let mut odd = |m: &mut Model, shape: &[usize]| m.constant("w", nets::at_odd_address(&n.tensor(shape))).unwrap();
    let filters = odd(&mut m, &[256, 256, 3, 3]);
    let y = m.add("conv", nets::convolution(&[3, 3], 1), &[x, filters]).unwrap();
    let to = m.constant("to", Tensor::from_slice(&[2], &[16i64, 1024]).unwrap()).unwrap();
    let y = m.add("rows", Reshape { special_zero: false }, &[y.into(), to]).unwrap();
    let matrix = odd(&mut m, &[1024, 1024]);
    let y = m.add("product", MatMul { transpose_a: false, transpose_b: false }, &[y.into(), matrix]).unwrap();
    m.result("y", y.into()).unwrap();
    // What is packed lies in mapped memory, which is not counted.
    let before = TAKEN.load(Ordering::Relaxed);
    let compiled = nets::compile(&m, &Properties::new().with("INFERENCE_PRECISION_HINT", "f32"));
    let more = TAKEN.load(Ordering::Relaxed).saturating_sub(before);
    assert!(more < 1 << 20, "{more} bytes more for {} bytes of weights", 4 * (256 * 256 * 9 + 1024 * 1024));
    drop(compiled);
}
