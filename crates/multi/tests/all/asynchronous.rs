//! Asynchronous requests of devices made of devices.

use crate::common::*;
use carafe::{CompiledModel, ErrorKind, Properties};
use carafe_testkit::FakeDevice;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

// Starts so many requests, waits for all, checks the results; says how long it took.
fn start_all(c: &CompiledModel, n: usize) -> Duration {
    let started = Instant::now();
    let requests: Vec<_> = (0..n)
        .map(|i| {
            let request = c.create_infer_request();
            request.set_input(0, row(i)).unwrap();
            request.start_async(()).unwrap();
            request
        })
        .collect();
    for (i, request) in requests.iter().enumerate() {
        request.wait().unwrap();
        assert!(request.output(0).unwrap().content_eq(&chain().evaluate(&[row(i)]).unwrap()[0]));
    }
    started.elapsed()
}

#[test]
fn the_pieces_of_several_requests_overlap_on_different_devices() {
    let time = Duration::from_millis(60);
    let one =
        |name: &str| FakeDevice::new(name).with_metric("OPTIMAL_NUMBER_OF_INFER_REQUESTS", "1").inferring_for(time);
    let (a, b) = (one("A").refusing(&["Exp", "Add"]), one("B"));
    let core = core_with(&[&a, &b]);
    let c = core.compile_model(&chain(), "HETERO:A,B", &Properties::new()).unwrap();
    assert_eq!(c.property("HETERO_NUMBER_OF_SUBMODELS").unwrap(), "2");
    // One after the other it would be twelve times as long; overlapping it is seven.
    let took = start_all(&c, 6);
    assert!(took < time * 11, "{took:?}");
}

#[test]
fn all_workers_of_multi_are_busy() {
    let a = FakeDevice::new("A").inferring_for(Duration::from_millis(30));
    let b = FakeDevice::new("B").inferring_for(Duration::from_millis(30));
    let core = core_with(&[&a, &b]);
    let c = core.compile_model(&chain(), "MULTI:A(2),B(2)", &Properties::new()).unwrap();
    start_all(&c, 12);
    assert_eq!((a.told().most_running.load(SeqCst), b.told().most_running.load(SeqCst)), (2, 2));
}

#[test]
fn requests_meet_in_a_batch() {
    let a = FakeDevice::new("A");
    let core = core_with(&[&a]);
    let properties = Properties::new().with("AUTO_BATCH_TIMEOUT", 20_000);
    let c = core.compile_model(&chain(), "BATCH:A(4)", &properties).unwrap();
    start_all(&c, 8);
    assert_eq!(c.property("AUTO_BATCH_COUNTS").unwrap(), "batches=2 alone=0");
}

#[test]
fn a_cancelled_request_comes_back_soon_and_works_again() {
    for device in ["HETERO:A", "MULTI:A", "AUTO:A"] {
        let a = FakeDevice::new("A").inferring_for(Duration::from_secs(1));
        let core = core_with(&[&a]);
        let c = core.compile_model(&chain(), device, &Properties::new()).unwrap();
        let request = c.create_infer_request();
        request.set_input(0, row(1)).unwrap();
        let started = Instant::now();
        for _ in 0..20 {
            request.start_async(()).unwrap();
            request.cancel();
            assert_eq!(request.wait().unwrap_err().kind(), ErrorKind::Cancelled, "{device}");
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{device}");
        request.infer(()).unwrap();
        assert!(request.output(0).unwrap().content_eq(&chain().evaluate(&[row(1)]).unwrap()[0]));
    }
}

#[test]
fn the_cache_keeps_a_split_model() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("hetero_cache");
    let _ = std::fs::remove_dir_all(&folder);
    let (a, b) = (FakeDevice::new("A").refusing(&["Exp"]), FakeDevice::new("B"));
    let core = core_with(&[&a, &b]);
    let properties = Properties::new().with("CACHE_DIR", folder.display());
    let loaded: Vec<String> = (0..2)
        .map(|_| {
            let c = core.compile_model(&chain(), "HETERO:A,B", &properties).unwrap();
            assert_same(&infer(&c, &[row(1)]), &chain().evaluate(&[row(1)]).unwrap());
            c.property("LOADED_FROM_CACHE").unwrap()
        })
        .collect();
    assert_eq!(loaded, ["false", "true"]);
}
