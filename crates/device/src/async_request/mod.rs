//! Asynchronous requests: the stages of a request run one after another on named executors, so that stages of several
//! requests of one compiled model overlap. Nothing here knows what a stage does.

mod callback;
mod executor;
mod executors;
mod queue;
mod request;
mod ticket;

pub use executor::{Executor, Task};
pub use executors::Executors;
pub use queue::{AsyncInferQueue, Finished};
pub use request::{AsyncInferRequest, RequestHandle};

use crate::CompiledModel;
use carafe_graph::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

/// A new asynchronous request of the model, on the executors that all requests of the model share.
pub fn async_request(compiled: &Arc<dyn CompiledModel>) -> AsyncInferRequest {
    AsyncInferRequest::new(compiled.clone().create_request(), &compiled.executors())
}

// What is behind these locks is put right before anything that may panic is called, so a poisoned lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the inference was cancelled")
}
