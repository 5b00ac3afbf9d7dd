//! What the engine keeps for a plugin goes with it, and is not made anew with each load and each extension.

#![allow(unsafe_code)]

use carafe_abi::load_plugin;
use carafe_device::{Config, Device, Kernel, PreparedKernel, Properties, Site};
use carafe_graph::{Error, Model, Result};
use carafe_tensor::{ElementType, PartialShape};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Counts the bytes that are in use.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: passed on from the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: passed on from the caller.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test at a time, so that each counts its own bytes.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// The device of `examples/template-plugin-c`.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libleaks_plugin.so");
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-shared", "-fPIC", "-I"]).arg(root.join("include"));
        cc.arg(root.join("examples/template-plugin-c/plugin.c")).arg("-o").arg(&out);
        assert!(cc.status().expect("a compiler").success());
        out
    })
}

fn device() -> Arc<dyn Device> {
    load_plugin(library()).unwrap().device
}

// Bytes that a hundred more rounds keep, after some that fill what is made once. The least of three counts: the harness starts
// other tests meanwhile, which takes memory of its own.
fn growth(mut round: impl FnMut()) -> isize {
    (0..3).for_each(|_| round());
    let mut count = || {
        let before = LIVE.load(Ordering::Relaxed);
        (0..100).for_each(|_| round());
        LIVE.load(Ordering::Relaxed) - before
    };
    [count(), count(), count()].into_iter().min().unwrap_or_default()
}

struct Idle;

impl Kernel for Idle {
    fn device(&self) -> &str {
        "C"
    }
    fn op(&self) -> &str {
        "ReLU"
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "idle"
    }
    fn configs(&self, _: &Site) -> Result<Vec<Config>> {
        Ok(vec![])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Err(Error::unsupported("it never runs"))
    }
}

#[test]
fn a_library_that_is_loaded_again_and_again_costs_no_memory() {
    let _alone = alone();
    let kept = growth(|| drop(device()));
    assert!(kept < 4096, "{kept} bytes for 100 loads");
}

#[test]
fn kernels_that_are_said_again_and_again_cost_no_memory() {
    let _alone = alone();
    let device = device();
    let kept = growth(|| device.set_kernels(&[Arc::new(Idle), Arc::new(Idle)]));
    assert!(kept < 4096, "{kept} bytes for 100 times");
}

#[test]
fn a_compiled_model_keeps_the_kernels_that_its_device_had() {
    let _alone = alone();
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1])).unwrap();
    m.result("y", x).unwrap();
    let (device, kernel) = (device(), Arc::new(Idle));
    let weak = Arc::downgrade(&kernel);
    device.set_kernels(&[kernel]);
    let compiled = device.compile(&m, &Properties::new()).unwrap();
    device.set_kernels(&[]);
    assert!(weak.upgrade().is_some());
    drop(device);
    assert!(weak.upgrade().is_some());
    drop(compiled);
    assert!(weak.upgrade().is_none());
}
