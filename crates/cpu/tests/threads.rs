//! Many threads that share one compiled model.

#[path = "all/nets/mod.rs"]
mod nets;

use carafe_cpu::CpuDevice;
use carafe_device::{Device, Properties};
use carafe_graph::{AttrMap, AttrValue, ErrorKind, Model};
use carafe_tensor::{ElementType, PartialShape, Tensor};
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

#[test]
fn throughput_gives_each_thread_a_stream_unless_the_model_needs_much_memory() {
    let streams = |side: usize, properties: Properties| {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 4, side, side])).unwrap();
        let a = m.add("a", carafe_ops::math::Exp, &[x]).unwrap();
        let axes = m.constant("axes", Tensor::from_slice(&[1], &[1i64]).unwrap()).unwrap();
        let sum = m.add("sum", carafe_ops::reduce::ReduceSum { keep_dims: true }, &[a.into(), axes]).unwrap();
        let y = m.add("y", carafe_ops::arithmetic::Add::default(), &[a.into(), sum.into()]).unwrap();
        m.result("out", y.into()).unwrap();
        let properties = properties.with("INFERENCE_NUM_THREADS", 4);
        let compiled = CpuDevice::default().compile(&m, &properties).unwrap();
        compiled.property("NUM_STREAMS").unwrap()
    };
    let throughput = || Properties::new().with("PERFORMANCE_HINT", "THROUGHPUT");
    assert_eq!(streams(16, throughput()), "4");
    // 64 MiB an image; how many have room depends on the machine.
    assert!(["1", "2", "4"].contains(&streams(2048, throughput()).as_str()));
    assert_eq!(streams(2048, throughput().with("NUM_STREAMS", 2)), "2");
    assert_eq!(streams(2048, throughput().with("PERFORMANCE_HINT_NUM_REQUESTS", 4)), "4");
    assert_eq!(streams(2048, Properties::new()), "1");
}

#[test]
fn a_model_whose_kernels_want_no_scratch_runs_on_all_threads() {
    let mut attrs = AttrMap::default();
    for (name, value) in [("axis", "-1"), ("mode", "max"), ("sort", "value"), ("index_element_type", "i32")] {
        attrs.set(name, AttrValue::Text(value.into()));
    }
    let top = carafe_ops::registry().newest("TopK").unwrap().create(&attrs).unwrap();
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[100, 500])).unwrap();
    let k = m.constant("k", Tensor::scalar(5i32)).unwrap();
    let y = m.add_ref("y", top, &[x, k]).unwrap();
    m.result("r", y.into()).unwrap();
    let input = nets::Numbers(3).tensor(&[100, 500]);
    let expected = m.evaluate(std::slice::from_ref(&input)).unwrap();
    let compiled = nets::compile(&m, &Properties::new().with("INFERENCE_NUM_THREADS", 4));
    let mut request = compiled.create_request();
    request.set_input(0, input).unwrap();
    for _ in 0..50 {
        request.infer().unwrap();
        assert!(request.output(0).unwrap().content_eq(&expected[0]));
    }
}
