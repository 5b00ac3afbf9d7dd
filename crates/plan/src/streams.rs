//! Streams, each busy with one inference at a time: threads, or a queue of a device. A request takes a free one for the length of
//! an inference, so more requests than streams wait in line instead of fighting for the device.

use crate::run::cancelled;
use carafe_graph::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How often a request that waits for a stream looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// All streams of a compiled model.
#[derive(Debug)]
pub struct Streams<S> {
    state: Mutex<State<S>>,
    freed: Condvar,
}

#[derive(Debug)]
struct State<S> {
    free: Vec<S>,
    /// How many requests wait: waking nobody would still be a call of the system.
    waiting: usize,
}

/// A stream while an inference has it.
#[derive(Debug)]
pub struct Lease<S> {
    stream: Option<S>,
    home: Arc<Streams<S>>,
}

impl<S> Streams<S> {
    /// These streams, all free.
    pub fn new(streams: Vec<S>) -> Arc<Streams<S>> {
        Arc::new(Streams { state: Mutex::new(State { free: streams, waiting: 0 }), freed: Condvar::new() })
    }
    /// Waits for a free stream, or for the request to be cancelled.
    pub fn lease(self: &Arc<Self>, cancel: &AtomicBool) -> Result<Lease<S>> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(stream) = state.free.pop() {
                return Ok(Lease { stream: Some(stream), home: self.clone() });
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(cancelled());
            }
            state.waiting += 1;
            // Nobody rings when a request is cancelled, so it looks now and then.
            state = self.freed.wait_timeout(state, LOOK).unwrap_or_else(|e| e.into_inner()).0;
            state.waiting -= 1;
        }
    }
}

impl<S> Lease<S> {
    /// The stream.
    pub fn stream(&self) -> &S {
        self.stream.as_ref().expect("a lease holds its stream until it goes")
    }
}

impl<S> Drop for Lease<S> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            let mut state = self.home.state.lock().unwrap_or_else(|e| e.into_inner());
            state.free.push(stream);
            if state.waiting > 0 {
                self.home.freed.notify_one();
            }
        }
    }
}
