//! `--isolate` and `--timeout` with libraries that misbehave in every way a library can.

use carafe_testkit::libraries::{Workshop, root};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The example in C with other lines in place of some.
fn plugin(workshop: &Workshop, changes: &[(&str, &str)]) -> String {
    let mut source = std::fs::read_to_string(root().join("examples/template-plugin-c/plugin.c")).unwrap();
    for (old, new) in changes {
        assert!(source.contains(old), "the example has no `{old}` any more");
        source = source.replacen(old, new, 1);
    }
    format!("BAD={}", workshop.c("bad", &source).display())
}

fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).output().unwrap()
}

fn text(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

fn relu(workshop: &Workshop) -> String {
    let graph = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }"#;
    workshop.write("m.onnxtxt", graph).display().to_string()
}

const RESET: &str = "static void request_reset(void *request) {\n    Request *r = request;\n";
const PROFILE: &str = "static CarafeStatus request_profile(void *request, CarafeProfileSink row, void *sink) {\n";
const QUERY: &str = "static CarafeStatus device_query(void *device, CarafeGraph *g, CarafeProperties p, CarafeAnswer answer, void *sink) {\n";
const INFER: &str = "static CarafeStatus request_infer(void *request) {\n";
const EXPORT: &str = "static CarafeStatus compiled_export_to(void *compiled, CarafeWrite write, void *sink) {\n";
const ENTRY: &str =
    "CARAFE_C CARAFE_EXPORT CarafeStatus CreatePluginEngine(const CarafeHost *host, CarafeDevice *device) {\n";
// It sleeps: a loop that is awake would only take the processor from other tests.
const HANG: &str = "    for (;;) nanosleep(&(struct timespec){1, 0}, NULL);\n";
const CRASH: &str = "    *(volatile int *)8 = 1;\n";

fn with(line: &str, more: &str) -> (String, String) {
    (line.to_string(), format!("{line}{more}"))
}

#[test]
fn a_crash_an_exit_and_a_loop_fail_one_check_each_and_the_others_go_on() {
    let workshop = Workshop::new();
    let changes = [with(RESET, CRASH), with(PROFILE, "    exit(3);\n"), with(EXPORT, HANG)];
    let changes: Vec<(&str, &str)> = changes.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let plugin = plugin(&workshop, &changes);
    let json = workshop.path("report.json").display().to_string();
    let common = ["conformance", "--plugin", &plugin, "-d", "BAD", "--isolate", "--timeout", "2", "--json", &json];
    let run = |filter: &str| {
        let done = carafe(&[&common[..], &["--filter", filter]].concat());
        assert_eq!(done.status.code(), Some(1), "{}", text(&done));
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        report["behaviours"].as_array().unwrap().clone()
    };
    let message = |rows: &[serde_json::Value], name: &str| {
        let row = rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no row {name}"));
        row["message"].as_str().unwrap_or(row["verdict"].as_str().unwrap()).to_string()
    };
    let state = run("state::");
    assert_eq!(state.len(), 10);
    let crashed = message(&state, "a_reset_brings_the_initial_value_back");
    assert!(crashed.contains("signal 11 (SIGSEGV)"), "{crashed}");
    assert_eq!(message(&state, "a_variable_can_be_set"), "passed");
    let profiling = run("profiling::");
    assert!(message(&profiling, "something_was_executed").contains("exit code 3"));
    assert_eq!(message(&profiling, "profiling_does_not_change_results"), "passed");
    let export = run("export::a_model");
    assert_eq!(export.len(), 2);
    assert!(message(&export, "a_model_comes_back").contains("no end after 2 s"));
    assert!(message(&export, "a_model_with_variables_comes_back").contains("no end after 2 s"));
}

#[test]
fn an_operation_that_crashes_fails_its_cases_only() {
    let workshop = Workshop::new();
    let line = "static CarafeStatus run_node(Request *r, const Node *node) {\n";
    let crash = "    if (carafe_str_is(node->info.op_type, \"Tan\")) abort();\n";
    let plugin = plugin(&workshop, &[(line, &format!("{line}{crash}"))]);
    let done = carafe(&["conformance", "--plugin", &plugin, "-d", "BAD", "--isolate", "--filter", "ops::tan", "--all"]);
    let text = text(&done);
    assert!(text.contains("signal 6 (SIGABRT)"), "{text}");
    let passed = |name: &str| {
        let line = text.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("no line {name}: {text}"));
        line.split_whitespace().nth(2).unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(passed("Tan (opset1)"), 0);
    assert!(passed("Tanh (opset1)") > 0);
}

#[test]
fn a_library_that_crashes_when_it_is_opened_is_a_failure_in_the_report() {
    let workshop = Workshop::new();
    let plugin = plugin(&workshop, &[(ENTRY, &format!("{ENTRY}{CRASH}"))]);
    let done = carafe(&["conformance", "--plugin", &plugin, "-d", "BAD", "--isolate"]);
    assert_eq!(done.status.code(), Some(1));
    let text = text(&done);
    assert!(text.contains("process::the_device_can_be_made") && text.contains("SIGSEGV"), "{text}");
}

#[test]
fn a_sound_device_has_the_same_report_with_and_without_isolation() {
    let plain = carafe(&["conformance", "-d", "TEMPLATE", "--filter", "version::", "--all"]);
    let isolated = carafe(&["conformance", "-d", "TEMPLATE", "--filter", "version::", "--all", "--isolate"]);
    assert_eq!(text(&plain), text(&isolated));
    assert!(isolated.status.success());
    let wrong = carafe(&["conformance", "-d", "NONE", "--filter", "version::", "--isolate"]);
    assert!(!wrong.status.success() && text(&wrong).contains("NONE"), "{}", text(&wrong));
}

#[test]
fn a_query_of_a_library_that_crashes_or_never_answers_is_answered() {
    let workshop = Workshop::new();
    let model = relu(&workshop);
    let crash = plugin(&workshop, &[(QUERY, &format!("{QUERY}{CRASH}"))]);
    let done = carafe(&["query", &model, "--plugin", &crash, "-d", "BAD", "--isolate"]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(
        text(&done).contains("device BAD did not answer: the process ended by signal 11 (SIGSEGV)"),
        "{}",
        text(&done)
    );
    let done = carafe(&["query", &model, "--plugin", &crash, "-d", "BAD", "--isolate", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&answer["signal"], &answer["device"]), (&11.into(), &"BAD".into()));
    let hang = plugin(&workshop, &[(QUERY, &format!("{QUERY}{HANG}"))]);
    let done = carafe(&["query", &model, "--plugin", &hang, "-d", "BAD", "--isolate", "--timeout", "1"]);
    assert!(text(&done).contains("did not end within 1 s"), "{}", text(&done));
    let fine = carafe(&["query", &model, "-d", "CPU", "--isolate"]);
    assert!(fine.status.success() && text(&fine).contains("nodes run on CPU"), "{}", text(&fine));
}

fn timed_out(plugin: &str, model: &str, out: &Path) -> (String, Duration) {
    let start = Instant::now();
    let out_text = out.display().to_string();
    let done = carafe(&["run", model, "--plugin", plugin, "-d", "BAD", "--timeout", "0.5", "-o", &out_text]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(!out.exists(), "something was written");
    (text(&done), start.elapsed())
}

#[test]
fn a_run_beyond_its_time_is_cancelled_and_writes_nothing() {
    let workshop = Workshop::new();
    let (model, out) = (relu(&workshop), workshop.path("out"));
    // It looks whether it was cancelled.
    let waits = "    while (!atomic_load(&((Request *)request)->cancelled)) {}\n    return carafe_fail(carafe, CARAFE_CANCELLED, \"so be it\");\n";
    let obedient = plugin(&workshop, &[(INFER, &format!("{INFER}{waits}"))]);
    let (text, time) = timed_out(&obedient, &model, &out);
    assert!(text.contains("the run took longer than the 0.5 s of --timeout") && !text.contains("was ended"), "{text}");
    assert!(time < Duration::from_secs(20), "{time:?}");
    // It does not.
    let hang = plugin(&workshop, &[(INFER, &format!("{INFER}{HANG}"))]);
    let (text, time) = timed_out(&hang, &model, &out);
    assert!(text.contains("--timeout") && text.contains("the process was ended"), "{text}");
    assert!(time < Duration::from_secs(30), "{time:?}");
}

#[test]
fn a_run_within_its_time_is_as_without() {
    let workshop = Workshop::new();
    let model = relu(&workshop);
    let (with, without) = (carafe(&["run", &model, "--timeout", "60"]), carafe(&["run", &model]));
    assert_eq!(text(&with), text(&without));
    assert!(with.status.success());
    for wrong in ["0", "-1", "soon", "nan"] {
        assert_eq!(carafe(&["run", &model, &format!("--timeout={wrong}")]).status.code(), Some(2));
    }
}
