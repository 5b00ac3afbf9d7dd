//! What an asynchronous request promises, on a device that does what the test tells it.

use crate::fake::{Behaviour, Fake, compiled, number, value};
use carafe_device::{AsyncInferRequest, CompiledModel, async_request};
use carafe_graph::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

fn request(fake: &Arc<Fake>) -> AsyncInferRequest {
    async_request(&(fake.clone() as Arc<dyn CompiledModel>))
}

fn quick() -> AsyncInferRequest {
    request(&compiled(Behaviour::default()))
}

/// Runs until it is cancelled.
fn endless() -> AsyncInferRequest {
    request(&compiled(Behaviour { endless: Some(1), ..Behaviour::default() }))
}

fn message(done: carafe_graph::Result<()>) -> (ErrorKind, String) {
    let e = done.unwrap_err();
    (e.kind(), e.to_string())
}

#[test]
fn the_output_is_there_after_wait() {
    let r = quick();
    r.set_input(0, value(4.0)).unwrap();
    r.start_async().unwrap();
    r.wait().unwrap();
    assert_eq!(number(&r.output(0).unwrap()), 5.0);
}

#[test]
fn waiting_without_a_start_returns_at_once() {
    let r = quick();
    r.wait().unwrap();
    assert!(!r.wait_for(Duration::MAX).unwrap());
}

#[test]
fn waiting_for_a_short_time_says_not_ready() {
    let r = endless();
    r.start_async().unwrap();
    assert!(!r.wait_for(Duration::ZERO).unwrap());
    assert!(!r.wait_for(Duration::from_millis(2)).unwrap());
    r.cancel();
    assert_eq!(r.wait_for(Duration::MAX).unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn everything_is_refused_while_running() {
    let r = endless();
    r.start_async().unwrap();
    let kinds = [
        r.start_async().unwrap_err().kind(),
        r.infer().unwrap_err().kind(),
        r.set_input(0, value(0.0)).unwrap_err().kind(),
        r.set_output(0, value(0.0)).unwrap_err().kind(),
        r.input(0).unwrap_err().kind(),
        r.output(0).unwrap_err().kind(),
        r.profile().unwrap_err().kind(),
        r.variables().unwrap_err().kind(),
        r.variable("v").unwrap_err().kind(),
        r.set_variable("v", value(0.0)).unwrap_err().kind(),
        r.reset_variables().unwrap_err().kind(),
        r.set_callback(|_, _| {}).unwrap_err().kind(),
        r.clear_callback().unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Busy; 13]);
}

#[test]
fn a_cancelled_request_says_so_and_runs_again() {
    let fake = compiled(Behaviour { endless: Some(1), ..Behaviour::default() });
    let r = request(&fake);
    for _ in 0..10 {
        r.start_async().unwrap();
        r.cancel();
        assert_eq!(r.wait().unwrap_err().kind(), ErrorKind::Cancelled);
    }
    fake.behaviour.lock().unwrap().endless = None;
    r.start_async().unwrap();
    r.wait().unwrap();
}

#[test]
fn cancelling_an_idle_request_does_nothing() {
    let r = quick();
    r.cancel();
    r.start_async().unwrap();
    r.wait().unwrap();
    r.cancel();
    r.wait().unwrap();
}

#[test]
fn a_blocking_inference_is_cancelled_from_another_thread() {
    let r = endless();
    let handle = r.handle();
    std::thread::scope(|s| {
        s.spawn(|| {
            while !handle.is_busy() {
                std::thread::yield_now();
            }
            handle.cancel();
        });
        assert_eq!(r.infer().unwrap_err().kind(), ErrorKind::Cancelled);
    });
}

#[test]
fn an_error_of_any_stage_reaches_wait_and_the_callback() {
    for stage in 0..3 {
        let r = request(&compiled(Behaviour { fail_in: Some(stage), ..Behaviour::default() }));
        let (send, heard) = mpsc::channel();
        r.set_callback(move |e, _| send.send(e.unwrap().to_string()).unwrap()).unwrap();
        r.start_async().unwrap();
        let text = format!("stage {stage} fails");
        assert_eq!(message(r.wait()), (ErrorKind::Invalid, text.clone()));
        assert_eq!(heard.recv().unwrap(), text);
        assert_eq!(message(r.infer()).1, text);
    }
}

#[test]
fn a_panic_of_the_device_becomes_an_error_with_its_text() {
    let fake = compiled(Behaviour { panic_in: Some(1), ..Behaviour::default() });
    let r = request(&fake);
    r.start_async().unwrap();
    assert_eq!(message(r.wait()).1, "the device panicked: stage 1 gives up");
    assert_eq!(message(r.infer()).1, "the device panicked: stage 1 gives up");
    fake.behaviour.lock().unwrap().panic_in = None;
    r.infer().unwrap();
}

#[test]
fn a_panic_of_the_callback_becomes_an_error_of_wait() {
    let r = quick();
    let mut first = true;
    r.set_callback(move |_, _| {
        if std::mem::take(&mut first) {
            std::panic::resume_unwind(Box::new("no more"));
        }
    })
    .unwrap();
    r.start_async().unwrap();
    assert_eq!(message(r.wait()).1, "the callback panicked: no more");
    r.start_async().unwrap();
    r.wait().unwrap();
}

#[test]
fn a_panic_with_a_payload_that_panics_again_is_contained() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("again"));
        }
    }
    let r = quick();
    r.set_callback(|_, _| std::panic::resume_unwind(Box::new(Bomb))).unwrap();
    r.start_async().unwrap();
    assert_eq!(message(r.wait()).1, "the callback panicked: without a text");
}

#[test]
fn a_blocking_inference_never_calls_back() {
    let r = quick();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    r.set_callback(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
    })
    .unwrap();
    r.infer().unwrap();
    r.wait().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[test]
fn the_callback_starts_the_next_run_and_none_is_lost() {
    let r = quick();
    let (send, heard) = mpsc::channel();
    let mut runs = 0;
    r.set_callback(move |e, request| {
        assert!(e.is_none());
        runs += 1;
        let x = number(&request.output(0).unwrap());
        send.send(x).unwrap();
        if runs < 100 {
            request.set_input(0, value(x)).unwrap();
            request.start_async().unwrap();
            // The next run may be over before this one's callback is.
            std::thread::yield_now();
        }
    })
    .unwrap();
    r.start_async().unwrap();
    let all: Vec<f32> = heard.iter().take(100).collect();
    assert_eq!(all, (1..=100).map(|i| i as f32).collect::<Vec<_>>());
    r.wait().unwrap();
}

#[test]
fn the_callback_may_run_a_blocking_inference_and_set_another_callback() {
    let r = quick();
    let (send, heard) = mpsc::channel();
    r.set_callback(move |_, request| {
        request.infer().unwrap();
        let send = send.clone();
        request.set_callback(move |_, _| send.send("second").unwrap()).unwrap();
    })
    .unwrap();
    for _ in 0..2 {
        r.start_async().unwrap();
        r.wait().unwrap();
    }
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), ["second"]);
}

#[test]
fn waiting_for_itself_inside_the_callback_is_refused() {
    let r = quick();
    let (send, heard) = mpsc::channel();
    r.set_callback(move |_, request| send.send(message(request.wait()).0).unwrap()).unwrap();
    r.start_async().unwrap();
    r.wait().unwrap();
    assert_eq!(heard.recv().unwrap(), ErrorKind::Usage);
}

#[test]
fn a_callback_may_wait_for_a_request_without_a_callback() {
    let fake = compiled(Behaviour::default());
    let (r, other) = (request(&fake), request(&fake));
    let (send, heard) = mpsc::channel();
    r.set_callback(move |_, _| {
        other.start_async().unwrap();
        send.send(other.wait().is_ok()).unwrap();
    })
    .unwrap();
    r.start_async().unwrap();
    r.wait().unwrap();
    assert!(heard.recv().unwrap());
}

#[test]
fn stages_of_several_requests_overlap() {
    let fake = compiled(Behaviour { endless: Some(1), ..Behaviour::default() });
    let first = request(&fake);
    first.start_async().unwrap();
    // The first stays in its second stage; sooner or later another is in its first stage meanwhile.
    while fake.most_at_once.load(Ordering::SeqCst) < 2 {
        let other = request(&fake);
        other.start_async().unwrap();
        std::thread::yield_now();
    }
    first.cancel();
    assert!(first.wait().is_err());
}

#[test]
fn dropping_a_running_request_stops_it_and_frees_everything() {
    let fake = compiled(Behaviour { endless: Some(1), ..Behaviour::default() });
    let r = request(&fake);
    let captured = Arc::new(());
    let seen = captured.clone();
    r.set_callback(move |_, _| drop(seen.clone())).unwrap();
    r.start_async().unwrap();
    let handle = r.handle();
    drop(r);
    assert_eq!((Arc::strong_count(&captured), fake.requests_alive.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(handle.start_async().unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(handle.wait().unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn the_compiled_model_may_go_first() {
    let fake = compiled(Behaviour::default());
    let r = request(&fake);
    drop(fake);
    r.start_async().unwrap();
    r.wait().unwrap();
}

#[test]
fn a_request_may_be_dropped_inside_its_own_callback() {
    for restart in [false, true] {
        let fake = compiled(Behaviour::default());
        let position = Arc::new(Mutex::new(Some(request(&fake))));
        let (send, heard) = mpsc::channel();
        let (inside, alive) = (position.clone(), fake.clone());
        let callback = move |_: Option<&_>, handle: &carafe_device::RequestHandle| {
            if restart {
                handle.start_async().unwrap();
            }
            drop(inside.lock().unwrap().take());
            send.send(alive.requests_alive.load(Ordering::SeqCst)).unwrap();
        };
        {
            let r = position.lock().unwrap();
            r.as_ref().unwrap().set_callback(callback).unwrap();
            r.as_ref().unwrap().start_async().unwrap();
        }
        assert_eq!(heard.recv().unwrap(), 0);
        // The callback went with it, so nothing else can be heard.
        assert!(heard.recv().is_err());
    }
}

#[test]
fn a_handle_of_a_finished_run_keeps_its_outcome() {
    let fake = compiled(Behaviour { fail_in: Some(0), ..Behaviour::default() });
    let r = request(&fake);
    r.start_async().unwrap();
    assert!(r.wait().is_err() && r.wait().is_err());
    fake.behaviour.lock().unwrap().fail_in = None;
    r.start_async().unwrap();
    r.wait().unwrap();
}
