//! The library as a C program sees it: programs are compiled against our headers, linked with what cargo built, and run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A folder with the library under the names that programs look for, and the programs that were built.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let own = std::env::current_exe().expect("the path of the test");
        let places = own.ancestors().skip(1).take(2).map(|f| f.join("libopenvino_c.so"));
        // Cargo leaves copies of both kinds; the newer one is of this build.
        let newest = places.filter(|p| p.is_file()).max_by_key(|p| p.metadata().and_then(|m| m.modified()).ok());
        let library = newest.expect("the library beside the test");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-api-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["libopenvino_c.so", "libopenvino_c.so.2641"] {
            let _ = std::fs::remove_file(folder.join(name));
            std::os::unix::fs::symlink(&library, folder.join(name)).expect("a link");
        }
        folder
    })
}

fn build(compiler: &str, standard: &str, source: &str, program: &str) -> PathBuf {
    let out = folder().join(program);
    let done = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&out)
        .arg(root().join(source))
        .arg(format!("-I{}", root().join("crates/capi/include").display()))
        .args([&format!("-L{}", folder().display()), "-lopenvino_c", "-lpthread", "-ldl", "-lm"])
        .output()
        .expect("a compiler");
    assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    out
}

fn run(program: &Path, args: &[&str]) -> String {
    let done = Command::new(program).args(args).env("LD_LIBRARY_PATH", folder()).current_dir(folder()).output();
    let done = done.expect("the program starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{:?}: {text}{}", done.status, String::from_utf8_lossy(&done.stderr));
    text
}

fn digits() -> String {
    root().join("demo/digits/digits.xml").display().to_string()
}

fn check(program: &str, name: &str) {
    static PROGRAMS: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let source = format!("crates/capi/tests/c/{program}.c");
    let mut programs = PROGRAMS.lock().expect("no build has panicked");
    let built = programs.entry(program.to_string()).or_insert_with(|| build("cc", "-std=gnu11", &source, program));
    let built = built.clone();
    drop(programs);
    run(&built, &[name, &digits()]);
}

macro_rules! checks {
    ($program:literal: $($name:ident)*) => { $(#[test] fn $name() { check($program, stringify!($name)); })* };
}

// These need an OpenCL device (apt-get install pocl-opencl-icd).
checks! { "remote":
    input_and_output_stay_on_the_device a_context_a_queue_and_buffers_of_the_program_are_shared
    what_cannot_be_shared_is_named
}

checks! { "checks":
    an_output_handle_sees_every_inference output_goes_to_memory_of_the_program a_callback_runs_at_the_end
    waiting_for_nothing_is_not_ready profiling_tells_times_of_nodes a_model_is_reshaped_and_its_ports_follow
    an_open_batch_gives_outputs_of_its_size properties_come_as_arguments_and_as_arrays wrong_properties_are_errors
    an_unknown_device_is_named null_is_an_error_everywhere a_freed_handle_is_an_error a_handle_of_another_kind_is_an_error
    a_tensor_that_does_not_fit_is_refused sizes_beyond_memory_are_errors a_file_that_is_no_model_is_an_error
    a_model_is_exported_and_imported a_picture_is_prepared_inside_of_the_model eight_threads_infer_at_once
    one_request_of_eight_threads_is_busy_or_fine a_request_may_be_freed_in_its_callback
}

#[test]
fn every_symbol_of_the_original_is_there_and_nothing_else() {
    let done = Command::new("nm").args(["-D", "--defined-only"]).arg(folder().join("libopenvino_c.so")).output();
    let text = String::from_utf8(done.expect("nm").stdout).expect("names");
    let mut names: Vec<&str> = text.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    names.sort_unstable();
    let mut wanted: Vec<&str> = include_str!("../symbols.txt").lines().collect();
    wanted.sort_unstable();
    assert_eq!(names, wanted);
}

// A sample in both languages, whose programs are called NAME and NAME_cpp.
fn samples(name: &str) -> [PathBuf; 2] {
    [
        build("cc", "-std=c11", &format!("samples/c/{name}.c"), name),
        build("c++", "-std=c++17", &format!("samples/cpp/{name}.cpp"), &format!("{name}_cpp")),
    ]
}

#[test]
fn the_samples_classify() {
    // A seven in gray values.
    let picture: [u8; 64] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 60, 255, 0, 0, 0, 0, 0, 0, 200, 120, 0,
        0, 0, 0, 0, 60, 255, 0, 0, 0, 0, 0, 0, 200, 120, 0, 0, 0, 0, 0, 60, 255, 0, 0, 0, 0, 0, 0, 200, 120, 0, 0, 0,
        0,
    ];
    let file = folder().join("picture.txt");
    std::fs::write(&file, picture.map(|p| p.to_string()).join(" ")).expect("a file");
    for program in samples("classify") {
        let text = run(&program, &[&digits(), &file.display().to_string(), "CPU"]);
        assert!(text.starts_with("class 7, "), "{text}");
    }
}

#[test]
fn the_samples_keep_requests_busy() {
    for program in samples("async_queue") {
        let text = run(&program, &[&digits(), "CPU", "4", "200"]);
        assert!(text.starts_with("200 inferences with 4 requests"), "{text}");
    }
}

#[test]
fn the_samples_find_objects_at_another_size() {
    let model = root().join("crates/fe-caffe/tests/fixtures/ssd.prototxt").display().to_string();
    for program in samples("reshape_ssd") {
        let text = run(&program, &[&model, "48", "CPU"]);
        assert!(text.contains("class 1, score") && text.contains("objects in a picture of 48 by 48"), "{text}");
    }
}

#[test]
fn the_samples_time_an_operation_of_an_extension() {
    let library = folder().join("libextension.so");
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(root().join("examples/template-extension-c/extension.c"))
        .arg(format!("-I{}", root().join("include").display()))
        .arg("-lm")
        .output()
        .expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let model = folder().join("shrink.onnxtxt");
    let text = "<ir_version: 8, opset_import: [\"\": 17, \"acme.ai\": 1]>\nnet (float[3] x) => (float[3] y) { y = acme.ai.SoftSwish (x) }\n";
    std::fs::write(&model, text).expect("a file");
    for program in samples("benchmark_extension") {
        let text = run(&program, &[&model.display().to_string(), &library.display().to_string(), "CPU", "0.01"]);
        assert!(text.contains(" inferences, ") && text.contains("ms at least"), "{text}");
    }
}
