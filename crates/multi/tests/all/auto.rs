//! AUTO and MULTI over devices that fail, are slow or have few workers.

use crate::common::*;
use carafe::{CompiledModel, Core, ErrorKind, Model, Properties};
use carafe_testkit::{FakeDevice, Told};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

fn property(c: &CompiledModel, name: &str) -> String {
    c.property(name).unwrap()
}

fn error(core: &Core, model: &Model, device: &str, properties: &Properties) -> String {
    core.compile_model(model, device, properties).expect_err("it must fail").to_string()
}

fn discrete(name: &str) -> FakeDevice {
    FakeDevice::new(name).with_metric("DEVICE_TYPE", "discrete")
}

fn wait_for(c: &CompiledModel, devices: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while property(c, "EXECUTION_DEVICES") != devices {
        assert!(Instant::now() < end, "still on {}", property(c, "EXECUTION_DEVICES"));
        std::thread::sleep(Duration::from_millis(2));
    }
}

// So many threads with a request each, all inferring at the same time; results are checked.
fn infer_in_parallel(c: &CompiledModel, threads: usize, times: usize) {
    std::thread::scope(|s| {
        for t in 0..threads {
            s.spawn(move || {
                let request = c.create_infer_request();
                for i in 0..times {
                    let x = row(t * 100 + i);
                    request.set_input(0, x.clone()).unwrap();
                    request.infer(()).unwrap();
                    assert!(request.output(0).unwrap().content_eq(&chain().evaluate(&[x]).unwrap()[0]));
                }
            });
        }
    });
}

fn n_inferences(told: &Told) -> usize {
    told.n_inferences.load(SeqCst)
}

#[test]
fn auto_takes_the_first_of_a_list_that_compiles() {
    let core = core_with(&[&FakeDevice::new("A").failing_to_compile(), &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "AUTO:A,B", &Properties::new()).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "B");
    assert_same(&infer(&c, &[row(1)]), &chain().evaluate(&[row(1)]).unwrap());
}

#[test]
fn auto_without_a_list_prefers_discrete_then_integrated_then_the_host() {
    let integrated = FakeDevice::new("B").with_metric("DEVICE_TYPE", "integrated");
    let core = core_with(&[&FakeDevice::new("A"), &integrated, &discrete("C")]);
    let of = |list: &str| {
        let c = core.compile_model(&chain(), list, &Properties::new().with("ENABLE_STARTUP_FALLBACK", false)).unwrap();
        property(&c, "EXECUTION_DEVICES")
    };
    assert_eq!(of("AUTO"), "C");
    assert_eq!(of("AUTO:-C"), "B");
    assert_eq!(of("AUTO:-C,-B"), "A");
}

#[test]
fn auto_without_other_devices_takes_the_fast_host_device_at_once() {
    let core = core_with(&[]);
    let c = core.compile_model(&chain(), "AUTO", &Properties::new()).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "CPU");
}

#[test]
fn auto_prefers_a_device_that_computes_in_the_models_precision() {
    let core = core_with(&[&discrete("A").with_metric("OPTIMIZATION_CAPABILITIES", "FP16"), &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "AUTO", &Properties::new()).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "B");
}

#[test]
fn when_no_device_compiles_the_error_says_why_for_each() {
    let core = core_with(&[&FakeDevice::new("A").failing_to_compile(), &FakeDevice::new("B").refusing(&["Exp"])]);
    for device in ["AUTO:A,B", "MULTI:A,B"] {
        let e = error(&core, &chain(), device, &Properties::new());
        assert!(e.contains("A: A is told to fail; B: node `b`: B has no Exp"), "{e}");
    }
}

#[test]
fn nothing_left_to_run_on_is_an_error() {
    let core = core_with(&[&FakeDevice::new("A")]);
    assert!(error(&core, &chain(), "AUTO:A,-A", &Properties::new()).contains("no device left"));
    assert!(error(&core, &chain(), "AUTO:-A,-CPU,-TEMPLATE", &Properties::new()).contains("no device left"));
    assert!(error(&core, &chain(), "MULTI", &Properties::new()).contains("no devices given"));
}

#[test]
fn a_count_of_zero_and_a_nested_device_are_errors() {
    let core = core_with(&[&FakeDevice::new("A")]);
    assert!(error(&core, &chain(), "MULTI:A(0)", &Properties::new()).contains("whole number from 1 on"));
    for device in ["MULTI:A,HETERO", "AUTO:BATCH"] {
        assert!(error(&core, &chain(), device, &Properties::new()).contains("is made of other devices"));
    }
}

#[test]
fn an_unknown_property_is_accepted_and_a_wrong_value_is_not() {
    let core = core_with(&[&FakeDevice::new("A")]);
    core.compile_model(&chain(), "AUTO:A", &Properties::new().with("NOBODY_KNOWS", 1)).unwrap();
    let e = error(&core, &chain(), "AUTO:A", &Properties::new().with("SCHEDULE_POLICY", "RANDOM"));
    assert!(e.contains("takes one of DEVICE_PRIORITY, ROUND_ROBIN"), "{e}");
}

#[test]
fn the_host_stands_in_while_the_chosen_device_compiles() {
    let slow = discrete("A").compiling_for(Duration::from_millis(400));
    let host = FakeDevice::new("B");
    let core = core_with(&[&slow, &host]);
    let started = Instant::now();
    let c = core.compile_model(&chain(), "AUTO:A,B", &Properties::new()).unwrap();
    assert!(started.elapsed() < Duration::from_millis(350));
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "(B)");
    let request = c.create_infer_request();
    request.set_input(0, row(1)).unwrap();
    request.infer(()).unwrap();
    assert_eq!((n_inferences(&slow.told()), n_inferences(&host.told())), (0, 1));
    wait_for(&c, "A");
    request.infer(()).unwrap();
    assert_eq!((n_inferences(&slow.told()), n_inferences(&host.told())), (1, 1));
    assert!(request.output(0).unwrap().content_eq(&chain().evaluate(&[row(1)]).unwrap()[0]));
}

#[test]
fn a_stand_in_stays_when_the_chosen_device_fails() {
    let bad = discrete("A").compiling_for(Duration::from_millis(50)).failing_to_compile();
    let core = core_with(&[&bad, &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "AUTO:A,B", &Properties::new()).unwrap();
    wait_for(&c, "B");
    assert_same(&infer(&c, &[row(1)]), &chain().evaluate(&[row(1)]).unwrap());
}

#[test]
fn without_startup_fallback_compiling_waits_for_the_chosen_device() {
    let (slow, host) = (discrete("A").compiling_for(Duration::from_millis(50)), FakeDevice::new("B"));
    let core = core_with(&[&slow, &host]);
    let properties = Properties::new().with("ENABLE_STARTUP_FALLBACK", false);
    let c = core.compile_model(&chain(), "AUTO:A,B", &properties).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "A");
    assert!(host.told().compiled.lock().unwrap().is_empty());
}

#[test]
fn a_failing_request_is_run_again_on_another_device() {
    let (a, b) = (FakeDevice::new("A").failing_to_infer(), FakeDevice::new("B"));
    let core = core_with(&[&a, &b]);
    for device in ["AUTO:A,B", "MULTI:A,B"] {
        let c = core.compile_model(&chain(), device, &Properties::new()).unwrap();
        assert_same(&infer(&c, &[row(1)]), &chain().evaluate(&[row(1)]).unwrap());
        let before = n_inferences(&a.told());
        infer(&c, &[row(2)]);
        assert_eq!(n_inferences(&a.told()), before, "{device} goes on with the device that works");
    }
}

#[test]
fn without_runtime_fallback_the_error_comes_back() {
    let core = core_with(&[&FakeDevice::new("A").failing_to_infer(), &FakeDevice::new("B")]);
    for device in ["AUTO:A,B", "MULTI:A,B"] {
        let c = core.compile_model(&chain(), device, &Properties::new().with("ENABLE_RUNTIME_FALLBACK", "NO")).unwrap();
        let request = c.create_infer_request();
        request.set_input(0, row(1)).unwrap();
        assert!(request.infer(()).unwrap_err().to_string().contains("A is told to fail"));
        assert!(request.output(0).is_err());
    }
}

#[test]
fn when_all_devices_fail_the_first_error_comes_back() {
    let core = core_with(&[&FakeDevice::new("A").failing_to_infer(), &FakeDevice::new("B").failing_to_infer()]);
    for device in ["AUTO:A,B", "MULTI:A,B"] {
        let c = core.compile_model(&chain(), device, &Properties::new()).unwrap();
        let request = c.create_infer_request();
        request.set_input(0, row(1)).unwrap();
        let e = request.infer(()).unwrap_err().to_string();
        assert!(e.contains("device `A`: A is told to fail"), "{e}");
    }
}

#[test]
fn a_missing_input_is_nobodys_fault() {
    let (a, b) = (FakeDevice::new("A"), FakeDevice::new("B"));
    let core = core_with(&[&a, &b]);
    for device in ["AUTO:A,B", "MULTI:A,B", "HETERO:A,B", "BATCH:A(2)"] {
        let c = core.compile_model(&chain(), device, &Properties::new()).unwrap();
        let e = c.create_infer_request().infer(()).unwrap_err();
        assert_eq!(e.to_string(), "input `x` has no tensor");
    }
    assert_eq!(n_inferences(&a.told()) + n_inferences(&b.told()), 0);
}

#[test]
fn a_name_stands_for_all_instances_of_the_device() {
    let core = core_with(&[&FakeDevice::new("A").with_metric("AVAILABLE_DEVICES", "0 1")]);
    let devices =
        |list: &str| property(&core.compile_model(&chain(), list, &Properties::new()).unwrap(), "EXECUTION_DEVICES");
    assert_eq!(devices("MULTI:A"), "A.0 A.1");
    assert_eq!(devices("MULTI:A,-A.0"), "A.1");
    assert_eq!(devices("AUTO:A.1"), "A.1");
}

#[test]
fn a_query_of_multi_gives_what_all_take_and_of_auto_what_the_best_takes() {
    let core = core_with(&[&FakeDevice::new("A").refusing(&["Exp"]), &FakeDevice::new("B")]);
    let unsupported = |device: &str| core.query_model(&chain(), device, &Properties::new()).unwrap().unsupported.len();
    assert_eq!((unsupported("MULTI:A,B"), unsupported("AUTO:A,B")), (1, 0));
}

#[test]
fn multi_skips_a_device_that_does_not_compile() {
    let core = core_with(&[&FakeDevice::new("A").failing_to_compile(), &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "MULTI:A,B", &Properties::new()).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "B");
}

#[test]
fn multi_has_as_many_workers_as_counts_or_the_devices_say() {
    let core = core_with(&[&FakeDevice::new("A"), &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "MULTI:A(5),B", &Properties::new()).unwrap();
    assert_eq!(property(&c, "OPTIMAL_NUMBER_OF_INFER_REQUESTS"), "7");
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "A B");
}

#[test]
fn parallel_requests_spread_over_the_devices() {
    let time = Duration::from_millis(20);
    let (a, b) = (FakeDevice::new("A").inferring_for(time), FakeDevice::new("B").inferring_for(time));
    let core = core_with(&[&a, &b]);
    let c = core.compile_model(&chain(), "MULTI:A(1),B(2)", &Properties::new()).unwrap();
    infer_in_parallel(&c, 6, 3);
    let (a, b) = (a.told(), b.told());
    assert_eq!(n_inferences(&a) + n_inferences(&b), 18);
    assert!(n_inferences(&a) > 0 && n_inferences(&b) > 0);
    assert_eq!(a.most_running.load(SeqCst), 1, "no more than its workers");
    assert!(b.most_running.load(SeqCst) <= 2);
}

#[test]
fn one_request_at_a_time_stays_on_the_first_device() {
    let (a, b) = (FakeDevice::new("A"), FakeDevice::new("B"));
    let core = core_with(&[&a, &b]);
    let c = core.compile_model(&chain(), "MULTI:A,B", &Properties::new()).unwrap();
    infer_in_parallel(&c, 1, 4);
    assert_eq!((n_inferences(&a.told()), n_inferences(&b.told())), (4, 0));
}

#[test]
fn with_round_robin_devices_take_turns() {
    let (a, b) = (FakeDevice::new("A"), FakeDevice::new("B"));
    let core = core_with(&[&a, &b]);
    let c =
        core.compile_model(&chain(), "MULTI:A,B", &Properties::new().with("SCHEDULE_POLICY", "ROUND_ROBIN")).unwrap();
    infer_in_parallel(&c, 1, 4);
    assert_eq!((n_inferences(&a.told()), n_inferences(&b.told())), (2, 2));
}

#[test]
fn auto_with_cumulative_throughput_uses_all_devices() {
    let core = core_with(&[&FakeDevice::new("A"), &FakeDevice::new("B")]);
    let hint = Properties::new().with("PERFORMANCE_HINT", "CUMULATIVE_THROUGHPUT");
    let c = core.compile_model(&chain(), "AUTO:A,B", &hint).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "A B");
}

fn counting() -> Model {
    let mut m = Model::new("counting");
    let x = parameter(&mut m, "x", "1");
    let init = m.constant("init", floats(&[1], &[0.0])).unwrap();
    let v = [("variable_id", "v"), ("variable_type", "f32"), ("variable_shape", "1")];
    let read = add(&mut m, "ReadValue", "read", &v, &[init]);
    let sum = op(&mut m, "Add", "sum", &[x, read.into()]);
    add(&mut m, "Assign", "write", &v[..1], &[sum]);
    m.result("y", sum).unwrap();
    m
}

#[test]
fn a_stateful_model_keeps_its_variables_on_one_device() {
    let core = core_with(&[&discrete("A"), &FakeDevice::new("B")]);
    for device in ["AUTO:A,B", "MULTI:A"] {
        let c = core.compile_model(&counting(), device, &Properties::new()).unwrap();
        assert_eq!(property(&c, "EXECUTION_DEVICES"), "A", "no stand-in");
        let (one, other) = (c.create_infer_request(), c.create_infer_request());
        one.set_input(0, floats(&[1], &[1.0])).unwrap();
        other.set_input(0, floats(&[1], &[10.0])).unwrap();
        for _ in 0..3 {
            one.infer(()).unwrap();
            other.infer(()).unwrap();
        }
        assert_eq!(one.output(0).unwrap().as_slice::<f32>().unwrap(), [3.0]);
        assert_eq!(other.output(0).unwrap().as_slice::<f32>().unwrap(), [30.0]);
        assert_eq!(one.query_state().unwrap()[0].name(), "v");
    }
}

#[test]
fn a_stateful_model_on_several_devices_at_once_is_refused() {
    let core = core_with(&[&FakeDevice::new("A"), &FakeDevice::new("B")]);
    let e = error(&core, &counting(), "MULTI:A,B", &Properties::new());
    assert!(e.contains("keeps variables from one inference to the next"), "{e}");
}

#[test]
fn neither_exports() {
    let core = core_with(&[&FakeDevice::new("A")]);
    for device in ["AUTO:A", "MULTI:A", "BATCH:A(2)"] {
        let c = core.compile_model(&chain(), device, &Properties::new()).unwrap();
        assert_eq!(c.export(&mut Vec::new()).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn given_memory_receives_the_output() {
    let core = core_with(&[&FakeDevice::new("A")]);
    for device in ["AUTO:A", "MULTI:A"] {
        let c = core.compile_model(&chain(), device, &Properties::new()).unwrap();
        let request = c.create_infer_request();
        request.set_input(0, row(1)).unwrap();
        let memory = floats(&[1, 4], &[0.0; 4]);
        let position = memory.storage_ptr();
        request.set_output(0, memory).unwrap();
        for _ in 0..2 {
            request.infer(()).unwrap();
            assert_eq!(request.output(0).unwrap().storage_ptr(), position, "{device}");
        }
    }
}

#[test]
fn given_memory_moves_along_to_another_device() {
    let a = FakeDevice::new("A");
    let core = core_with(&[&a, &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "AUTO:A,B", &Properties::new()).unwrap();
    let request = c.create_infer_request();
    request.set_input(0, row(1)).unwrap();
    let memory = floats(&[1, 4], &[0.0; 4]);
    let position = memory.storage_ptr();
    request.set_output(0, memory).unwrap();
    request.infer(()).unwrap();
    // Another request finds out that the device fails.
    a.told().fails_to_infer.store(true, SeqCst);
    infer(&c, &[row(2)]);
    request.infer(()).unwrap();
    assert_eq!(property(&c, "EXECUTION_DEVICES"), "B");
    assert_eq!(request.output(0).unwrap().storage_ptr(), position);
}

#[test]
fn a_request_that_waits_for_a_worker_can_be_cancelled() {
    let a = FakeDevice::new("A").inferring_for(Duration::from_secs(20));
    let core = core_with(&[&a]);
    let c = core.compile_model(&chain(), "MULTI:A(1)", &Properties::new()).unwrap();
    let mut requests: Vec<_> = (0..2).map(|_| c.create_infer_request()).collect();
    let flags: Vec<_> = requests.iter().map(|r| r.cancel_flag()).collect();
    let started = Instant::now();
    std::thread::scope(|s| {
        let threads: Vec<_> = requests
            .iter_mut()
            .map(|r| {
                r.set_input(0, row(1)).unwrap();
                s.spawn(|| r.infer(()).unwrap_err().kind())
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        flags.iter().for_each(|f| f.set());
        for t in threads {
            assert_eq!(t.join().unwrap(), ErrorKind::Cancelled);
        }
    });
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn many_threads_with_cancellations_and_a_device_that_fails_now_and_then() {
    let a = FakeDevice::new("A").inferring_for(Duration::from_millis(1));
    let b = FakeDevice::new("B");
    let core = core_with(&[&a, &b]);
    let c = core.compile_model(&chain(), "MULTI:A(2),B(2)", &Properties::new()).unwrap();
    let expected: Vec<_> = (0..8).map(|t| chain().evaluate(&[row(t)]).unwrap().remove(0)).collect();
    let requests: Vec<_> = (0..8).map(|_| c.create_infer_request()).collect();
    let flags: Vec<_> = requests.iter().map(|r| r.cancel_flag()).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        let threads: Vec<_> = requests
            .into_iter()
            .enumerate()
            .map(|(t, request)| {
                let expected = &expected[t];
                s.spawn(move || {
                    request.set_input(0, row(t)).unwrap();
                    for _ in 0..60 {
                        match request.infer(()) {
                            Ok(_) => assert!(request.output(0).unwrap().content_eq(expected)),
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}"),
                        }
                    }
                })
            })
            .collect();
        let told = a.told();
        let (flags, done) = (&flags, &done);
        s.spawn(move || {
            let mut i = 0usize;
            while !done.load(SeqCst) {
                flags[i % flags.len()].set();
                told.fails_to_infer.store(i.is_multiple_of(5), SeqCst);
                i += 3;
                std::thread::sleep(Duration::from_micros(700));
            }
        });
        let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        done.store(true, SeqCst);
        results.into_iter().for_each(|r| r.unwrap());
    });
    assert_eq!(a.told().n_running.load(SeqCst) + b.told().n_running.load(SeqCst), 0);
}

#[test]
fn the_compiled_model_may_go_while_the_chosen_device_compiles() {
    let slow = discrete("A").compiling_for(Duration::from_millis(100));
    let core = core_with(&[&slow, &FakeDevice::new("B")]);
    let c = core.compile_model(&chain(), "AUTO:A,B", &Properties::new()).unwrap();
    drop(core);
    infer(&c, &[row(1)]);
    drop(c);
    std::thread::sleep(Duration::from_millis(150));
}
