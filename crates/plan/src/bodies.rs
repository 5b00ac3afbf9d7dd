//! Bodies of If, Loop and TensorIterator run as plans too: the operation's evaluation asks for its body, and the body has
//! plans of its own, one for each set of shapes it is entered with.

use crate::backend::Backend;
use crate::planner::Planner;
use crate::run::{RunCx, RunMemory, run};
use carafe_graph::{EvalEnv, Model, Result, RunBody};
use carafe_tensor::Tensor;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Runs bodies for one request.
#[derive(Debug)]
pub struct Bodies<B: Backend> {
    planner: Arc<Planner<B>>,
    /// Memory of each body, kept from run to run.
    memory: Mutex<HashMap<usize, RunMemory<B>>>,
    /// The stream that the request runs on now.
    stream: Mutex<Option<B::Stream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl<B: Backend> Bodies<B> {
    /// For the bodies in the planner's model.
    pub fn new(planner: Arc<Planner<B>>) -> Bodies<B> {
        Bodies { planner, memory: Mutex::default(), stream: Mutex::default() }
    }
    /// Says which stream the next inference runs on.
    pub fn use_stream(&self, stream: &B::Stream) {
        *lock(&self.stream) = Some(stream.clone());
    }
}

impl<B: Backend> RunBody for Bodies<B> {
    fn run_body(&self, body: &Model, parameters: &[Tensor], env: &mut EvalEnv) -> Result<Vec<Tensor>> {
        let stream = lock(&self.stream).clone();
        let (Some(plan), Some(stream)) = (self.planner.body_plan(body, parameters)?, stream) else {
            return carafe_graph::run(body, parameters, env);
        };
        // A body inside a body takes the memory of its own; recursion into the same one cannot be.
        let key = body as *const Model as usize;
        let mut memory = lock(&self.memory).remove(&key).unwrap_or_default();
        let mut cx = RunCx {
            planner: &self.planner,
            stream: &stream,
            inputs: parameters,
            memory: &mut memory,
            env,
            profiled: false,
            leaves: true,
        };
        let done = run(&plan, &mut cx);
        let outputs = memory.outputs.clone();
        lock(&self.memory).insert(key, memory);
        done.map(|()| outputs)
    }
}
