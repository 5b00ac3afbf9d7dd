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
    free: Mutex<Vec<S>>,
    freed: Condvar,
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
        Arc::new(Streams { free: Mutex::new(streams), freed: Condvar::new() })
    }
    /// Waits for a free stream, or for the request to be cancelled.
    pub fn lease(self: &Arc<Self>, cancel: &AtomicBool) -> Result<Lease<S>> {
        let mut free = self.free.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(stream) = free.pop() {
                return Ok(Lease { stream: Some(stream), home: self.clone() });
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(cancelled());
            }
            // Nobody rings when a request is cancelled, so it looks now and then.
            free = self.freed.wait_timeout(free, LOOK).unwrap_or_else(|e| e.into_inner()).0;
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
            self.home.free.lock().unwrap_or_else(|e| e.into_inner()).push(stream);
            self.home.freed.notify_one();
        }
    }
}
