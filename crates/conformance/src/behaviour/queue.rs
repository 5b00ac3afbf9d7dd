//! Many inferences on a few requests.

use super::bench::{Bench, Outcome, Stop, panics_can_be_caught, refused, row, same};
use super::{ensure, suite};
use carafe::{AsyncInferQueue, ErrorKind, Tensor};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

suite!("queue":
    every_job_ends_with_its_own_result,
    the_number_of_requests_may_be_the_devices,
    an_idle_queue_is_ready,
    errors_are_kept_for_the_end,
    a_panic_in_the_callback_is_told_at_the_end,
    a_queue_may_be_dropped_while_it_works,
);

type Done = Arc<Mutex<Vec<(usize, carafe::Result<Tensor>)>>>;

fn noting(queue: &AsyncInferQueue<usize>) -> Outcome<Done> {
    let done = Done::default();
    let note = done.clone();
    queue.set_callback(move |finished, job| {
        note.lock().unwrap_or_else(|e| e.into_inner()).push((job, finished.output(0)));
    })?;
    Ok(done)
}

fn every_job_ends_with_its_own_result(b: &Bench) -> Outcome {
    const JOBS: usize = 24;
    let model = b.weighted()?;
    let queue = AsyncInferQueue::new(&b.compile(&model)?, 3)?;
    let done = noting(&queue)?;
    for job in 0..JOBS {
        queue.start_async([(0, row(4, job))], job)?;
    }
    queue.wait_all()?;
    let mut done = std::mem::take(&mut *done.lock().unwrap_or_else(|e| e.into_inner()));
    ensure!(done.len() == JOBS, "{} of {JOBS} jobs were told to the callback", done.len());
    carafe_graph::sort_by_key(&mut done, |(job, _)| *job);
    for (at, (job, found)) in done.into_iter().enumerate() {
        ensure!(at == job, "job {at} was not told to the callback");
        same(&[found?], &model.evaluate(&[row(4, job)])?).map_err(|e| Stop::Failed(format!("job {job}: {e:?}")))?;
    }
    Ok(())
}

fn the_number_of_requests_may_be_the_devices(b: &Bench) -> Outcome {
    let compiled = b.compile(&b.plain())?;
    let best = compiled.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")?;
    let queue: AsyncInferQueue = AsyncInferQueue::new(&compiled, 0)?;
    ensure!(queue.len().to_string() == best.trim(), "{} requests, the model says {best}", queue.len());
    Ok(())
}

fn an_idle_queue_is_ready(b: &Bench) -> Outcome {
    let queue: AsyncInferQueue = AsyncInferQueue::new(&b.compile(&b.plain())?, 2)?;
    ensure!(queue.is_ready(), "a new queue has no idle request");
    let id = queue.get_idle_request_id()?;
    ensure!(id < 2, "request {id} of 2");
    queue.wait_all()?;
    Ok(())
}

fn errors_are_kept_for_the_end(b: &Bench) -> Outcome {
    let queue = AsyncInferQueue::new(&b.compile(&b.plain())?, 2)?;
    let done = noting(&queue)?;
    queue.start_async((), 0)?;
    queue.start_async((), 1)?;
    let e = refused(queue.wait_all(), "two inferences without inputs")?;
    ensure!(e.kind() != ErrorKind::Busy, "the error is another one: {e}");
    queue.wait_all()?;
    queue.start_async([(0, row(4, 1))], 2)?;
    queue.wait_all()?;
    let n = done.lock().unwrap_or_else(|e| e.into_inner()).len();
    ensure!(n == 3, "{n} of 3 jobs were told to the callback");
    refused(queue.start_async([(0, row(5, 1))], 3), "a job with a wrong shape")?;
    queue.start_async([(0, row(4, 1))], 4)?;
    Ok(queue.wait_all()?)
}

fn a_panic_in_the_callback_is_told_at_the_end(b: &Bench) -> Outcome {
    panics_can_be_caught()?;
    let queue = AsyncInferQueue::new(&b.compile(&b.plain())?, 2)?;
    queue.set_callback(|_, job: usize| {
        if job == 1 {
            resume_unwind(Box::new("on purpose".to_string()));
        }
    })?;
    for job in 0..4 {
        queue.start_async([(0, row(4, job))], job)?;
    }
    let e = refused(queue.wait_all(), "a job whose callback panicked")?.to_string();
    ensure!(e.contains("on purpose"), "the error does not tell the text of the panic: {e}");
    queue.start_async([(0, row(4, 5))], 5)?;
    Ok(queue.wait_all()?)
}

fn a_queue_may_be_dropped_while_it_works(b: &Bench) -> Outcome {
    let n = 1 << 14;
    let queue = AsyncInferQueue::new(&b.compile(&b.chain(&format!("1,{n}"), 8))?, 3)?;
    for job in 0..3 {
        queue.start_async([(0, row(n, job))], job)?;
    }
    drop(queue);
    b.check(&b.plain(), &[row(4, 1)])
}
