//! Asynchronous requests as a program uses them, on the TEMPLATE device.

use carafe::ops::activation::Sigmoid;
use carafe::{AsyncInferQueue, CompiledModel, ElementType, ErrorKind, Model, Properties, Tensor, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

/// `depth` times sigmoid, any length.
fn compiled(depth: usize) -> CompiledModel {
    let mut m = Model::new("sigmoids");
    let mut x: Value = m.parameter("x", ElementType::F32, "?".parse().unwrap()).unwrap();
    for i in 0..depth {
        x = m.add(format!("y{i}"), Sigmoid, &[x]).unwrap().into();
    }
    m.result("out", x).unwrap();
    // The Core goes here already.
    carafe::core().compile_model(&m, "TEMPLATE", &Properties::new()).unwrap()
}

fn first(t: &Tensor) -> f32 {
    t.as_slice::<f32>().unwrap()[0]
}

#[test]
fn requests_of_one_model_run_at_once_with_their_own_tensors() {
    let compiled = compiled(1);
    let requests: Vec<_> = (0..8).map(|_| compiled.create_infer_request()).collect();
    drop(compiled);
    for _ in 0..20 {
        for (i, r) in requests.iter().enumerate() {
            r.set_input(0, floats(&[i as f32])).unwrap();
            r.start_async(()).unwrap();
        }
        for (i, r) in requests.iter().enumerate() {
            r.wait().unwrap();
            let wanted = 1.0 / (1.0 + (-(i as f32)).exp());
            assert!((first(&r.output(0).unwrap()) - wanted).abs() < 1e-6);
        }
    }
}

#[test]
fn a_missing_input_is_told_by_wait_and_callback() {
    let r = compiled(1).create_infer_request();
    let (send, heard) = mpsc::channel();
    r.set_callback(move |e, _| send.send(e.cloned()).unwrap()).unwrap();
    r.start_async(()).unwrap();
    let e = r.wait().unwrap_err();
    assert!(e.to_string().contains("input `x` has no tensor"), "{e}");
    assert_eq!(heard.recv().unwrap(), Some(e));
}

#[test]
fn a_long_inference_is_cancelled_and_the_request_runs_again() {
    let r = compiled(300).create_infer_request();
    r.set_input(0, floats(&[0.5; 20_000])).unwrap();
    r.start_async(()).unwrap();
    assert_eq!(r.set_input(0, floats(&[0.0])).unwrap_err().kind(), ErrorKind::Busy);
    r.cancel();
    assert_eq!(r.wait().unwrap_err().kind(), ErrorKind::Cancelled);
    r.set_input(0, floats(&[0.5])).unwrap();
    r.infer(()).unwrap();
    assert_eq!(r.output(0).unwrap().shape(), [1]);
}

#[test]
fn a_queue_feeds_a_model() {
    let queue = AsyncInferQueue::new(&compiled(2), 3).unwrap();
    let (send, heard) = mpsc::channel();
    queue.set_callback(move |done, n: usize| send.send((n, done.output(0).unwrap().len())).unwrap()).unwrap();
    for n in 1..=50 {
        queue.start_async([(0, floats(&vec![0.0; n]))], n).unwrap();
    }
    queue.wait_all().unwrap();
    let all: Vec<_> = heard.try_iter().collect();
    assert!(all.len() == 50 && all.iter().all(|(n, len)| n == len));
}

#[test]
fn starts_cancels_and_drops_from_several_threads() {
    let compiled = compiled(5);
    let calls = Arc::new(AtomicUsize::new(0));
    let runs = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for thread in 0..4 {
            let (compiled, calls, runs) = (&compiled, &calls, &runs);
            s.spawn(move || {
                for round in 0..250 {
                    let r = compiled.create_infer_request();
                    let counted = calls.clone();
                    r.set_callback(move |_, _| {
                        counted.fetch_add(1, Ordering::SeqCst);
                    })
                    .unwrap();
                    r.set_input(0, floats(&[1.0; 64])).unwrap();
                    for _ in 0..2 {
                        r.start_async(()).unwrap();
                        if (thread + round) % 3 == 0 {
                            r.cancel();
                        }
                        let done = r.wait();
                        assert!(done.is_ok() || done.unwrap_err().kind() == ErrorKind::Cancelled);
                        runs.fetch_add(1, Ordering::SeqCst);
                    }
                    // Uncounted, dropped while it runs.
                    r.clear_callback().unwrap();
                    r.start_async(()).unwrap();
                }
            });
        }
    });
    assert_eq!((calls.load(Ordering::SeqCst), runs.into_inner()), (2000, 2000));
}
