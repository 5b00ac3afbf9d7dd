//! A library that ends the process: the command says which one it was.
#![cfg(target_os = "linux")]

use carafe_testkit::libraries::Workshop;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const C: &str = r#"#include "carafe.h"
#include <pthread.h>
#include <stdlib.h>
CARAFE_LIBRARY
static CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static void *elsewhere(void *none) {
    (void)none;
    abort();
}
static void part(void *user, size_t begin, size_t end) {
    (void)user;
    if (begin <= 70000 && 70000 < end) abort();
}
static CarafeStatus eval(const void *i, CarafeEval *cx) {
    (void)i, (void)cx, (void)elsewhere, (void)part;
    volatile int *nowhere = NULL;
    pthread_t thread;
    (void)nowhere, (void)thread;
    END
    return CARAFE_OK;
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    static const CarafePort port[] = {{"x", 0, 0}};
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "End";
    op.inputs = op.outputs = port;
    op.n_inputs = op.n_outputs = 1;
    op.infer = infer;
    op.eval = eval;
    return r->fns->add_op(r, &op);
}
"#;

const MODEL: &str = r#"<?xml version="1.0"?>
<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/><output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="1" name="node" type="End" version="extension"><input><port id="0"><dim>4</dim></port></input><output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;

// How the process ended, and what it said.
fn run(shop: &Workshop, library: &Path) -> (Option<i32>, String) {
    let model = shop.write("m.xml", MODEL);
    let done = Command::new(env!("CARGO_BIN_EXE_carafe"))
        .args(["run", "-d", "TEMPLATE", "--extensions"])
        .args([library, &model])
        .output()
        .unwrap();
    (done.status.signal(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[track_caller]
fn ends(name: &str, end: &str, signal: i32, wanted: &str) {
    let shop = Workshop::new();
    let library = shop.c(name, &C.replace("END", end));
    let (ended, said) = run(&shop, &library);
    assert_eq!(ended, Some(signal), "{said}");
    assert!(said.contains(wanted), "wanted `{wanted}` in `{said}`");
    assert_eq!(said.matches("carafe: SIG").count(), 1, "{said}");
}

const SIGILL: i32 = 4;
const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;

#[test]
fn an_abort_names_the_library() {
    ends("aborts", "abort();", SIGABRT, "carafe: SIGABRT inside of library `libaborts.so`, in a call of `eval`");
}

#[test]
fn a_segmentation_fault_names_the_library() {
    ends("faults", "*nowhere = 1;", SIGSEGV, "carafe: SIGSEGV inside of library `libfaults.so`, in a call of `eval`");
}

#[test]
fn an_instruction_that_does_not_exist_names_the_library() {
    ends("traps", "__builtin_trap();", SIGILL, "carafe: SIGILL inside of library `libtraps.so`");
}

#[test]
fn a_part_of_a_loop_that_aborts_names_the_library() {
    let end = "carafe->parallel_for(100000, part, NULL);";
    ends("part_aborts", end, SIGABRT, "inside of library `libpart_aborts.so`, in a call of `a part of a loop`");
}

#[test]
fn a_thread_of_the_library_itself_names_the_one_called_last() {
    let end = "pthread_create(&thread, NULL, elsewhere, NULL); pthread_join(thread, NULL);";
    ends("elsewhere", end, SIGABRT, "outside of the libraries; the one called last is `libelsewhere.so`");
}

#[test]
fn an_exception_that_leaves_a_callback_names_the_library() {
    let shop = Workshop::new();
    let source = C
        .replace("static void *elsewhere(void *none) {\n    (void)none;\n    abort();\n}\n", "")
        .replace("(void)elsewhere, ", "")
        .replace("CarafeOp op = {0};", "CarafeOp op = {};")
        .replace("CARAFE_EXPORT CarafeStatus", "CARAFE_C CARAFE_EXPORT CarafeStatus")
        .replace("END", "throw 7;");
    let (ended, said) = run(&shop, &shop.cpp("throws", &source));
    assert_eq!(ended, Some(SIGABRT), "{said}");
    assert!(said.contains("library `libthrows.so` let an exception out of `eval`"), "{said}");
    assert!(said.contains("carafe: SIGABRT inside of library `libthrows.so`, in a call of `eval`"), "{said}");
}

// Other machines give zero.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_division_by_zero_names_the_library() {
    let end = "volatile int zero = 0; volatile int y = 7 / zero; (void)y;";
    ends("divides", end, 8, "carafe: SIGFPE inside of library `libdivides.so`");
}
