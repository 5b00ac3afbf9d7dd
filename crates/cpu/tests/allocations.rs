//! An inference takes no memory from the system once a request is warm.

// A counting allocator cannot be written without.
#![allow(unsafe_code)]

#[path = "all/nets/mod.rs"]
mod nets;

use carafe_device::Properties;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_warm_inference_allocates_nothing() {
    let model = nets::network("1");
    let input = nets::Numbers(3).tensor(&[1, 3, 24, 20]);
    for threads in [1, 2] {
        let compiled = nets::compile(&model, &Properties::new().with("INFERENCE_NUM_THREADS", threads));
        let mut request = compiled.create_request();
        request.set_input(0, input.clone()).unwrap();
        for _ in 0..3 {
            request.infer().unwrap();
        }
        // A thread takes some when it starts, which may be after the first inferences.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let before = COUNT.load(Ordering::Relaxed);
        for _ in 0..10 {
            request.infer().unwrap();
        }
        assert_eq!(COUNT.load(Ordering::Relaxed) - before, 0, "with {threads} threads");
    }
}
