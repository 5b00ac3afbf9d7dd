//! One asynchronous request: start, wait, callback, cancel. What needs a request that still runs is tried with ever larger
//! inputs; a device that is quicker than all of them is not asked.

use super::bench::{Bench, Outcome, Stop, panics_can_be_caught, refused, row, same};
use super::{ensure, suite};
use carafe::{ErrorKind, InferRequest, Model, Result, Tensor};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

suite!("asynchronous":
    a_started_inference_ends,
    waiting_without_a_start_returns_at_once,
    waiting_for_a_short_time_tells_whether_it_ended,
    a_running_request_is_busy,
    the_callback_is_called_once,
    outputs_can_be_read_inside_the_callback,
    a_synchronous_inference_does_not_call_back,
    the_callback_may_start_the_next_inference,
    a_panic_in_the_callback_is_the_error_of_wait,
    an_error_reaches_wait_and_callback,
    the_callback_goes_with_the_request,
    cancelling_an_idle_request_does_nothing,
    a_running_inference_can_be_cancelled,
    a_cancelled_request_runs_again,
    a_running_request_may_be_dropped,
    handles_of_a_dropped_request_are_refused,
);

const LONG: Duration = Duration::from_secs(60);

fn request(b: &Bench, model: &Model) -> Outcome<InferRequest> {
    Ok(b.compile(model)?.create_infer_request())
}

fn waited<T>(heard: &mpsc::Receiver<T>, what: &str) -> Outcome<T> {
    heard.recv_timeout(LONG).map_err(|_| Stop::Failed(format!("{what} did not come within {LONG:?}")))
}

fn a_started_inference_ends(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let r = request(b, &model)?;
    for seed in 0..3 {
        r.set_input(0, row(4, seed))?;
        r.start_async(())?;
        r.wait()?;
        ensure!(!r.is_busy(), "the request is busy after wait");
        same(&[r.output(0)?], &model.evaluate(&[row(4, seed)])?)?;
    }
    Ok(())
}

fn waiting_without_a_start_returns_at_once(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    r.wait()?;
    ensure!(!r.wait_for(Duration::from_millis(1))?, "an inference that was never started has ended");
    Ok(())
}

fn waiting_for_a_short_time_tells_whether_it_ended(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    r.set_input(0, row(4, 1))?;
    r.start_async(())?;
    r.wait_for(Duration::ZERO)?;
    ensure!(r.wait_for(LONG)?, "the inference did not end within {LONG:?}");
    ensure!(r.wait_for(Duration::ZERO)?, "an inference that has ended has not");
    Ok(())
}

// Calls `f` with a request that was just started and its input, with ever more to do, until `f` says that it still ran.
fn while_running(b: &Bench, mut f: impl FnMut(&InferRequest, Tensor) -> Outcome<bool>) -> Outcome {
    for n in [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20] {
        let r = request(b, &b.chain(&format!("1,{n}"), 16))?;
        let x = row(n, 1);
        r.set_input(0, x.clone())?;
        r.start_async(())?;
        if f(&r, x)? {
            return Ok(());
        }
        r.wait()?;
    }
    Err(Stop::Skipped("every inference had ended before it could be looked at".into()))
}

fn is_busy<T>(result: Result<T>, what: &str) -> Outcome<bool> {
    match result {
        Ok(_) => Ok(false),
        Err(e) if e.kind() == ErrorKind::Busy => Ok(true),
        Err(e) => Err(Stop::Failed(format!("{what} while the request runs gives another error than busy: {e}"))),
    }
}

fn a_running_request_is_busy(b: &Bench) -> Outcome {
    while_running(b, |r, x| {
        // In this order, so that whatever comes first saw a running request if the last one did.
        let all = [
            ("binding an input", is_busy(r.set_input(0, x), "binding an input")?),
            ("reading an output", is_busy(r.output(0), "reading an output")?),
            ("setting a callback", is_busy(r.clear_callback(), "setting a callback")?),
            ("reading the profile", is_busy(r.profile(), "reading the profile")?),
            ("a second start", is_busy(r.start_async(()), "a second start")?),
        ];
        let Some((_, true)) = all.last() else { return Ok(false) };
        let taken = all.iter().find(|(_, busy)| !busy);
        ensure!(taken.is_none(), "{} was taken while the request ran", taken.map_or("", |t| t.0));
        r.wait()?;
        Ok(true)
    })
}

fn the_callback_is_called_once(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    let (send, heard) = mpsc::channel();
    r.set_callback(move |e, _| drop(send.send(e.cloned())))?;
    r.set_input(0, row(4, 1))?;
    for _ in 0..3 {
        r.start_async(())?;
        r.wait()?;
        let error = waited(&heard, "the callback")?;
        ensure!(error.is_none(), "the callback heard of an error: {error:?}");
        ensure!(heard.try_recv().is_err(), "the callback was called twice");
    }
    Ok(())
}

fn outputs_can_be_read_inside_the_callback(b: &Bench) -> Outcome {
    let model = b.plain();
    let r = request(b, &model)?;
    let (send, heard) = mpsc::channel();
    r.set_callback(move |_, r| drop(send.send(r.output(0))))?;
    r.set_input(0, row(4, 2))?;
    r.start_async(())?;
    same(&[waited(&heard, "the callback")??], &model.evaluate(&[row(4, 2)])?)?;
    Ok(r.wait()?)
}

fn a_synchronous_inference_does_not_call_back(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    let (send, heard) = mpsc::channel();
    r.set_callback(move |_, _| send.send(()).unwrap_or_default())?;
    r.set_input(0, row(4, 1))?;
    r.infer(())?;
    ensure!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "the callback was called");
    Ok(())
}

fn the_callback_may_start_the_next_inference(b: &Bench) -> Outcome {
    const TIMES: usize = 10;
    let r = request(b, &b.plain())?;
    let (send, heard) = mpsc::channel();
    let mut left = TIMES;
    r.set_callback(move |e, r| {
        left -= 1;
        let next = if left > 0 { r.start_async(()) } else { Ok(()) };
        let _ = send.send(e.map_or(next, |e| Err(e.clone())));
    })?;
    r.set_input(0, row(4, 1))?;
    r.start_async(())?;
    for n in 0..TIMES {
        waited(&heard, &format!("call {} of {TIMES}", n + 1))?
            .map_err(|e| Stop::Failed(format!("call {} of {TIMES}: {e}", n + 1)))?;
    }
    ensure!(heard.recv_timeout(Duration::from_millis(20)).is_err(), "there were more than {TIMES} calls");
    Ok(())
}

fn a_panic_in_the_callback_is_the_error_of_wait(b: &Bench) -> Outcome {
    panics_can_be_caught()?;
    let r = request(b, &b.plain())?;
    // Without the usual print, for this one is wanted.
    r.set_callback(|_, _| resume_unwind(Box::new("on purpose".to_string())))?;
    r.set_input(0, row(4, 1))?;
    r.start_async(())?;
    let e = refused(r.wait(), "an inference whose callback panicked")?.to_string();
    ensure!(e.contains("on purpose"), "the error does not tell the text of the panic: {e}");
    r.clear_callback()?;
    r.start_async(())?;
    Ok(r.wait()?)
}

fn an_error_reaches_wait_and_callback(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    let (send, heard) = mpsc::channel();
    r.set_callback(move |e, _| drop(send.send(e.cloned())))?;
    r.start_async(())?;
    let e = refused(r.wait(), "an inference without inputs")?;
    let told = waited(&heard, "the callback")?;
    ensure!(told.as_ref() == Some(&e), "wait says `{e}`, the callback heard {told:?}");
    r.set_input(0, row(4, 1))?;
    r.start_async(())?;
    Ok(r.wait()?)
}

fn the_callback_goes_with_the_request(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    let captured = Arc::new(AtomicUsize::new(0));
    let inside = captured.clone();
    r.set_callback(move |_, _| {
        inside.fetch_add(1, Ordering::SeqCst);
    })?;
    r.set_input(0, row(4, 1))?;
    r.start_async(())?;
    r.wait()?;
    ensure!(Arc::strong_count(&captured) == 2, "the callback was copied");
    drop(r);
    ensure!(Arc::strong_count(&captured) == 1, "the callback outlives its request");
    ensure!(captured.load(Ordering::SeqCst) == 1, "the callback was called {} times", captured.load(Ordering::SeqCst));
    Ok(())
}

fn cancelling_an_idle_request_does_nothing(b: &Bench) -> Outcome {
    let model = b.plain();
    let r = request(b, &model)?;
    r.set_input(0, row(4, 1))?;
    r.cancel();
    r.infer(())?;
    r.cancel();
    r.start_async(())?;
    r.wait()?;
    same(&[r.output(0)?], &model.evaluate(&[row(4, 1)])?)
}

fn a_running_inference_can_be_cancelled(b: &Bench) -> Outcome {
    while_running(b, |r, _| {
        r.cancel();
        match r.wait() {
            Ok(()) => Ok(false),
            Err(e) if e.kind() == ErrorKind::Cancelled => Ok(true),
            Err(e) => Err(Stop::Failed(format!("a cancelled inference gives another error: {e}"))),
        }
    })
}

fn a_cancelled_request_runs_again(b: &Bench) -> Outcome {
    while_running(b, |r, x| {
        r.cancel();
        if r.wait().is_ok() {
            return Ok(false);
        }
        r.start_async(())?;
        r.wait()?;
        let model = b.chain(&format!("1,{}", x.len()), 16);
        same(&[r.output(0)?], &model.evaluate(&[x])?)?;
        Ok(true)
    })
}

fn a_running_request_may_be_dropped(b: &Bench) -> Outcome {
    for n in [1 << 8, 1 << 16] {
        let r = request(b, &b.chain(&format!("1,{n}"), 16))?;
        r.set_input(0, row(n, 1))?;
        r.start_async(())?;
        drop(r);
    }
    b.check(&b.plain(), &[row(4, 1)])
}

fn handles_of_a_dropped_request_are_refused(b: &Bench) -> Outcome {
    let r = request(b, &b.plain())?;
    let (send, heard) = mpsc::channel();
    // The request that a callback gets does not keep itself alive.
    r.set_callback(move |_, r| drop(send.send(r.clone())))?;
    r.start_async(row(4, 1))?;
    r.wait()?;
    let handle = heard.recv().map_err(|e| Stop::Failed(e.to_string()))?;
    drop(r);
    refused(handle.start_async(()), "starting a request that was dropped")?;
    refused(handle.output(0), "reading from a request that was dropped")?;
    Ok(())
}
