//! Many threads that share one compiled model.

mod nets;

use carafe_device::Properties;
use carafe_graph::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inferences of each thread; a thread sanitizer has no time for all.
fn turns() -> usize {
    std::env::var("CARAFE_TEST_TURNS").ok().and_then(|t| t.parse().ok()).unwrap_or(1250)
}

#[test]
fn ten_thousand_inferences_from_eight_threads_give_the_same_bits() {
    let model = nets::network("1");
    let properties = Properties::new().with("NUM_STREAMS", 2).with("INFERENCE_NUM_THREADS", 4);
    let compiled = nets::compile(&model, &properties);
    let inputs: Vec<_> = (0..4).map(|i| nets::Numbers(11 + i).tensor(&[1, 3, 24, 20])).collect();
    let expected: Vec<_> = inputs
        .iter()
        .map(|input| {
            let mut request = compiled.clone().create_request();
            request.set_input(0, input.clone()).unwrap();
            request.infer().unwrap();
            request.output(0).unwrap().clone()
        })
        .collect();
    let (done, cancelled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|s| {
        for t in 0..8 {
            let (compiled, inputs, expected) = (compiled.clone(), &inputs, &expected);
            let (done, cancelled) = (&done, &cancelled);
            s.spawn(move || {
                let mut request = compiled.create_request();
                let flag = request.cancel_flag();
                for k in 0..turns() {
                    let which = (t + k) % inputs.len();
                    request.set_input(0, inputs[which].clone()).unwrap();
                    // Every hundredth is stopped before it begins, every fiftieth perhaps on its way.
                    if k % 100 == 0 {
                        flag.set();
                        let e = request.run_stage(0).unwrap_err();
                        assert_eq!(e.kind(), ErrorKind::Cancelled);
                        flag.clear();
                        cancelled.fetch_add(1, Ordering::Relaxed);
                    }
                    request.infer().unwrap();
                    assert!(request.output(0).unwrap().content_eq(&expected[which]), "thread {t}, turn {k}");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((done.into_inner(), cancelled.into_inner()), (8 * turns(), 8 * turns().div_ceil(100)));
}

#[test]
fn the_number_of_streams_does_not_change_the_bits() {
    let model = nets::network("1");
    let input = nets::Numbers(5).tensor(&[1, 3, 24, 20]);
    let results: Vec<_> = [("1", "2"), ("2", "4"), ("3", "6")]
        .iter()
        .map(|(streams, threads)| {
            let properties = Properties::new().with("NUM_STREAMS", streams).with("INFERENCE_NUM_THREADS", threads);
            let mut request = nets::compile(&model, &properties).create_request();
            request.set_input(0, input.clone()).unwrap();
            request.infer().unwrap();
            request.output(0).unwrap().clone()
        })
        .collect();
    assert!(results.iter().all(|r| r.content_eq(&results[0])));
}
