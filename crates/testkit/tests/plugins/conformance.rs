//! The conformance suite itself: a device that does everything right passes, one that does a thing wrong is caught by the
//! check that is about that thing, and what a device says it cannot do is skipped.

use carafe_conformance::{Report, Row, Target, Verdict};
use carafe_testkit::{FakeDevice, Fault};
use std::sync::Arc;
use std::time::Duration;

fn judged(device: &FakeDevice, filter: &str) -> Report {
    let device = device.clone();
    let mut target = Target::new("FAKE", move || {
        let core = carafe::core();
        device.add_to(&core);
        Ok(core)
    });
    target.patience = Duration::from_secs(60);
    carafe_conformance::run(&Arc::new(target), filter, &mut |_| {}).unwrap()
}

fn row<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.behaviours.iter().find(|r| format!("{}::{}", r.suite, r.name) == name).unwrap_or_else(|| panic!("{name}"))
}

#[track_caller]
fn catches(fault: Fault, check: &str, message: &str) {
    let device = FakeDevice::new("FAKE").with_fault(fault);
    // A promise too much needs something that it cannot do.
    let device = if fault == Fault::PromisesTooMuch { device.refusing(&["Add"]) } else { device };
    let report = judged(&device, check);
    match &row(&report, check).verdict {
        Verdict::Failed(found) => assert!(found.contains(message), "expected `{message}`, found `{found}`"),
        other => panic!("{check} gives {other:?} with {fault:?}"),
    }
    assert!(report.has_failures());
}

#[test]
fn a_device_that_does_everything_right_passes() {
    let report = judged(&FakeDevice::new("FAKE"), "::");
    assert_eq!(report.failures(), []);
    let (behaviours, cases) = (report.behaviour_totals(), report.op_totals());
    assert!(behaviours.passed > 140 && cases.passed > 1000 && cases.left_out == 0, "{behaviours:?} {cases:?}");
}

#[test]
fn what_a_query_denies_is_skipped_or_unsupported() {
    let device = FakeDevice::new("FAKE").refusing(&["Add", "Relu"]).that_cannot_export();
    let report = judged(&device, "::");
    assert_eq!(report.failures(), []);
    let Verdict::Skipped(why) = &row(&report, "state::variables_are_listed").verdict else { panic!("not skipped") };
    assert!(why.contains("FAKE has no Add"), "{why}");
    let Verdict::Skipped(why) = &row(&report, "export::a_model_comes_back").verdict else { panic!("not skipped") };
    assert!(why.contains("EXPORT_IMPORT"), "{why}");
    // Another operation takes the place of Relu.
    assert_eq!(row(&report, "tensors::an_inference_twice_gives_the_same").suite, "tensors");
    assert_eq!(row(&report, "compile::a_model_compiles_and_runs").verdict, Verdict::Passed);
    let add = report.ops.iter().find(|o| o.name == "Add").unwrap();
    assert!(add.passed == 0 && add.failures.is_empty() && add.unsupported.len() > 3);
}

fn judged_builtin(device: &str, properties: carafe::Properties) -> Report {
    let mut target = Target::new(device, || Ok(carafe::core()));
    target.properties = properties;
    carafe_conformance::run(&Arc::new(target), "::", &mut |_| {}).unwrap()
}

#[test]
fn the_reference_device_passes_everything() {
    let report = judged_builtin("TEMPLATE", carafe::Properties::new());
    assert_eq!(report.failures(), []);
    assert_eq!((report.behaviour_totals().left_out, report.op_totals().left_out), (0, 0));
}

// Here and in all that runs on GPU: without an OpenCL device the test fails and says so. `scripts/test` installs PoCL.
#[test]
fn the_opencl_device_passes_everything_that_it_takes() {
    let report = judged_builtin("GPU", carafe::Properties::new());
    assert_eq!(report.failures(), []);
    assert_eq!(report.behaviour_totals().left_out, 0);
}

#[test]
fn the_default_device_passes_everything() {
    let report = judged_builtin("CPU", carafe::Properties::new());
    assert_eq!(report.failures(), []);
    assert_eq!((report.behaviour_totals().left_out, report.op_totals().left_out), (0, 0));
}

#[test]
fn devices_made_of_devices_pass() {
    for device in ["HETERO:TEMPLATE", "MULTI:TEMPLATE", "AUTO:TEMPLATE", "HETERO:CPU", "MULTI:CPU", "AUTO:CPU"] {
        let report = judged_builtin(device, carafe::Properties::new());
        assert_eq!((device, report.failures()), (device, vec![]));
        assert_eq!(report.op_totals().left_out, 0);
    }
    let short = carafe::Properties::new().with("AUTO_BATCH_TIMEOUT", "5");
    for device in ["BATCH:TEMPLATE(2)", "BATCH:CPU(2)"] {
        assert_eq!((device, judged_builtin(device, short.clone()).failures()), (device, vec![]));
    }
}

#[test]
fn queries_that_lie_are_caught() {
    catches(Fault::LosesNodes, "query::every_node_is_answered_once", "is answered 0 times");
    catches(Fault::PromisesTooMuch, "query::what_is_supported_compiles", "FAKE has no Add");
    catches(Fault::GivesNoReason, "query::an_unknown_node_is_named_with_a_reason", "no reason");
}

#[test]
fn careless_properties_are_caught() {
    catches(Fault::TakesAnyProperty, "properties::wrong_values_are_refused", "COLOUR: `NO_SUCH_WORD`");
    catches(Fault::TakesAnyProperty, "properties::read_only_properties_cannot_be_set", "AVAILABLE_DEVICES");
    catches(Fault::TakesAnyProperty, "properties::unknown_properties_are_refused", "must be refused");
    catches(Fault::TakesAnyProperty, "export::wrong_properties_are_refused", "must be refused");
    catches(
        Fault::ForgetsProperties,
        "properties::a_compiled_model_has_the_value_it_was_compiled_with",
        "COLOUR: device TEMPLATE has no property",
    );
}

#[test]
fn careless_requests_are_caught() {
    catches(Fault::LosesNames, "compile::ports_are_those_of_the_model", "tensor names {}");
    catches(Fault::TakesAnyTensor, "tensors::a_wrong_type_is_refused", "i32 for an f32 input");
    catches(Fault::TakesAnyTensor, "tensors::a_wrong_shape_is_refused", "must be refused");
    catches(Fault::TakesAnyTensor, "dynamic::another_rank_is_refused", "must be refused");
    catches(Fault::CopiesInputs, "tensors::an_input_that_was_set_comes_back", "was copied");
    catches(Fault::IgnoresOutputMemory, "tensors::outputs_go_to_the_memory_that_was_given", "not in the memory");
}

#[test]
fn wrong_numbers_are_caught() {
    catches(Fault::WrongNumbers, "compile::a_model_compiles_and_runs", "output 0: ");
    catches(Fault::StaleOutputs, "dynamic::several_shapes_in_turn", "output 0: ");
    catches(Fault::StaleOutputs, "parallel::asynchronous_requests_run_at_once", "output 0: ");
    catches(Fault::StaleOutputs, "queue::every_job_ends_with_its_own_result", "output 0: ");
}

#[test]
fn a_panic_is_a_failure_with_its_text() {
    catches(Fault::Panics, "compile::a_model_compiles_and_runs", "FAKE is told to panic");
    catches(Fault::Panics, "asynchronous::a_started_inference_ends", "the device panicked: FAKE is told to panic");
}

#[test]
fn a_check_that_never_ends_is_a_failure() {
    let device = FakeDevice::new("FAKE").with_fault(Fault::NeverEnds);
    let mut target = Target::new("FAKE", move || {
        let core = carafe::core();
        device.add_to(&core);
        Ok(core)
    });
    target.patience = Duration::from_millis(500);
    let target = Arc::new(target);
    let report = carafe_conformance::run(&target, "compile::a_model_compiles", &mut |_| {}).unwrap();
    let Verdict::Failed(message) = &report.behaviours[0].verdict else { panic!("it passed") };
    assert_eq!(message, "there was no end after 0.5 s");
    let report = carafe_conformance::run(&target, "ops::Tan", &mut |_| {}).unwrap();
    assert!(
        report.ops[0].failures.iter().all(|(_, m)| m.contains("there was no end")) && report.op_totals().passed == 0
    );
}

#[test]
fn careless_exports_are_caught() {
    catches(Fault::ImportsAnything, "export::a_blob_that_is_cut_is_refused", "cut at 0");
    catches(Fault::CutsExports, "export::several_inputs_and_outputs_come_back", "the exported model is cut short");
}

#[test]
fn a_runtime_model_that_tells_too_little_is_caught() {
    catches(Fault::OneNameForAll, "runtime_model::node_names_are_unique", "two nodes are called");
    catches(Fault::TellsNoOrder, "runtime_model::nodes_tell_their_order", "has no execOrder");
    catches(Fault::ShowsNothing, "runtime_model::nodes_tell_what_runs_them", "nothing runs in the runtime model");
    catches(Fault::NeverProfiles, "profiling::something_was_executed", "no row is executed");
}

#[test]
fn profiles_nobody_asked_for_and_states_that_stay_are_caught() {
    catches(Fault::AlwaysProfiles, "profiling::there_is_nothing_without_perf_count", "rows without PERF_COUNT");
    catches(Fault::IgnoresResets, "state::a_reset_brings_the_initial_value_back", "after a reset it is");
}

#[test]
fn operations_with_wrong_numbers_are_in_all_reports() {
    let device = FakeDevice::new("FAKE").with_fault(Fault::WrongNumbers);
    let report = judged(&device, "ops::Softmax");
    assert!(report.behaviours.is_empty() && report.op_totals().failed > 3);
    let (text, html) = (report.to_text(false), report.to_html());
    for position in ["Softmax (opset8)", "softmax.case:"] {
        assert!(text.contains(position), "{text}");
    }
    assert!(html.contains("softmax.case:") && html.contains("<h2>Failures</h2>"));
    let json = report.to_json();
    assert_eq!((json["passed"].as_bool(), json["totals"]["behaviours"]["failed"].as_u64()), (Some(false), Some(0)));
    assert!(json["operations"][0]["failed"][0]["message"].is_string());
}
