//! Bodies of If, Loop and TensorIterator run as plans too: the operation's evaluation asks for its body, and the body has
//! plans of its own, one for each set of shapes it is entered with.

use crate::compiled::Engine;
use crate::run::{Memory, RunCx, run};
use carafe_graph::{EvalEnv, Model, Result, RunBody};
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};
use carafe_tensor::Tensor;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Runs bodies for one request.
#[derive(Debug)]
pub(crate) struct Bodies {
    engine: Arc<Engine>,
    /// Memory of each body, kept from run to run.
    memory: Mutex<HashMap<usize, Memory>>,
    /// Threads of the stream that the request runs on now.
    threads: Mutex<Option<Arc<Pool>>>,
    scratch: Mutex<Option<Scratch>>,
}

impl Bodies {
    pub(crate) fn new(engine: Arc<Engine>) -> Bodies {
        Bodies { engine, memory: Mutex::default(), threads: Mutex::default(), scratch: Mutex::default() }
    }
    /// Says which threads the next inference has.
    pub(crate) fn use_threads(&self, pool: &Arc<Pool>) {
        let mut now = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        if now.as_ref().is_none_or(|p| !Arc::ptr_eq(p, pool)) {
            *now = Some(pool.clone());
        }
    }
}

impl RunBody for Bodies {
    fn run_body(&self, body: &Model, parameters: &[Tensor], env: &mut EvalEnv) -> Result<Vec<Tensor>> {
        let Some(plan) = self.engine.body_plan(body, parameters)? else {
            return carafe_graph::run(body, parameters, env);
        };
        // A body inside a body takes the memory of its own; recursion into the same one cannot be.
        let key = body as *const Model as usize;
        let mut memory = self.memory.lock().unwrap_or_else(|e| e.into_inner()).remove(&key).unwrap_or_default();
        let pool = self.threads.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let pool = pool.unwrap_or_else(|| Arc::new(Pool::new(PoolOptions::threads(1))));
        let kept = self.scratch.lock().unwrap_or_else(|e| e.into_inner()).take();
        let scratch = match kept.filter(|s| s.floats() >= plan.scratch && s.threads() >= pool.threads()) {
            Some(scratch) => scratch,
            None => Scratch::new(pool.threads(), plan.scratch)
                .ok_or_else(|| carafe_graph::Error::invalid("no memory for the scratch of a body"))?,
        };
        let lent = carafe_device::parallel().unwrap_or_else(|| crate::threads::lent(&pool));
        let cancel = env.cancel.clone();
        let exec = Exec::new(&pool, Isa::best(), &scratch);
        let exec = cancel.as_deref().map_or(exec, |cancel| exec.until(cancel));
        let mut cx = RunCx {
            exec: &exec,
            engine: &self.engine,
            lent: &lent,
            inputs: parameters,
            memory: &mut memory,
            env,
            profiled: false,
        };
        let done = run(&plan, &mut cx);
        let outputs = memory.outputs.clone();
        self.memory.lock().unwrap_or_else(|e| e.into_inner()).insert(key, memory);
        *self.scratch.lock().unwrap_or_else(|e| e.into_inner()) = Some(scratch);
        done.map(|()| outputs)
    }
}
