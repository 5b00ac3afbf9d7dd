//! How extensions come into a core: once, in any order, by path, name, list, object or environment.

use crate::support::*;
use carafe::{Extension, Mapping};
use carafe_testkit::libraries::Workshop;
use std::process::Command;

#[test]
fn a_library_counts_once() {
    let path = &ALL_KINDS[1].1;
    let core = core_with(path);
    core.add_extension(path).unwrap();
    core.add_extension([path.clone(), path.clone()]).unwrap();
    // Another way to the same file.
    let roundabout = path.parent().unwrap().join(".").join(path.file_name().unwrap());
    core.add_extension(roundabout).unwrap();
    core.add_extension(path.to_str().unwrap()).unwrap();
    assert_eq!(core.extensions().len(), 1);
}

#[test]
fn an_object_counts_once() {
    let core = carafe::core();
    for _ in 0..2 {
        core.add_extension(Extension::new("mine").mapping(Mapping::new("Relu").from_type("MyRelu"))).unwrap();
    }
    assert_eq!(core.extensions().len(), 1);
    let model = onnx(&core, "g (float[2] x) => (float[2] y) { y = kinds.MyRelu(x) }").unwrap();
    assert_eq!(floats(&run(&core, &model, &[-1.0, 1.0]).unwrap()), [0.0, 1.0]);
}

#[test]
fn the_order_does_not_matter() {
    let shop = Workshop::new();
    let a = shop.example("template_extension_c", "examples/template-extension-c/extension.c");
    let b = shop.example("template_extension_cpp", "examples/template-extension-cpp/extension.cpp");
    let graph = "g (float[2] x) => (float[2] y) { a = acme.ai.Cube(x)  y = acme.cpp.Cube(a) }";
    for order in [[&a, &b], [&b, &a]] {
        let core = carafe::core();
        core.add_extension(order.to_vec()).unwrap();
        let model = onnx(&core, graph).unwrap();
        assert_eq!(floats(&run(&core, &model, &[1.0, 2.0]).unwrap()), [1.0, 512.0]);
    }
}

#[test]
fn a_reader_knows_only_what_its_core_was_given() {
    let with = core_with(&ALL_KINDS[1].1);
    let without = carafe::core();
    let graph = "g (float[2] x) => (float[2] y) { y = kinds.Twice(x) }";
    onnx(&with, graph).unwrap();
    // The library is in the process, but not in this core; neither asking for devices nor compiling changes that.
    tells(onnx(&without, graph), &["Twice"]);
    let model = ir(&without, "Abs", "opset1", "", "FP32").unwrap();
    run(&without, &model, &[1.0; 4]).unwrap();
    without.available_devices();
    tells(onnx(&without, graph), &["Twice"]);
    // A model that was read keeps its operations.
    let model = onnx(&with, graph).unwrap();
    drop(with);
    assert_eq!(floats(&run(&without, &model, &[1.0, 2.0]).unwrap()), [2.0, 4.0]);
}

#[test]
fn what_came_from_a_library_outlives_the_core() {
    for (_, path) in &*ALL_KINDS {
        let core = core_with(path);
        let model = ir(&core, "Twice", "kinds", "", "FP32").unwrap();
        let r = request(&core, &model).unwrap();
        drop(core);
        drop(model);
        r.set_input(0, carafe::Tensor::from_slice(&[4], &[1f32; 4]).unwrap()).unwrap();
        r.infer(()).unwrap();
        let y = r.output(0).unwrap().clone();
        drop(r);
        assert_eq!(floats(&y), [2.0; 4]);
    }
}

// The test itself in another process, with an environment of its own.
fn child(name: &str, environment: &[(&str, String)]) {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .envs(environment.iter().map(|(k, v)| (*k, v.as_str())))
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn the_environment_names_libraries() {
    let shop = Workshop::new();
    let bad = shop.write("bad.so", "not a library at all, but long enough");
    let list = std::env::join_paths([&ALL_KINDS[1].1, &bad]).unwrap().into_string().unwrap();
    child("registering::child_with_libraries", &[("CARAFE_EXTENSIONS", list)]);
}

#[test]
#[ignore = "run by another test"]
fn child_with_libraries() {
    // The bad one is told on the error stream; the good one is there.
    let core = carafe::core();
    assert_eq!(core.extensions().len(), 1);
    assert_eq!(core.extensions()[0].name, "all kinds");
    let errors = core.add_environment_extensions();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("bad.so"), "{}", errors[0]);
}

#[test]
fn the_environment_names_folders() {
    let folder = ALL_KINDS[1].1.parent().unwrap().to_str().unwrap().to_string();
    child("registering::child_with_folders", &[("CARAFE_EXTENSION_PATH", format!("/nowhere:{folder}"))]);
}

#[test]
#[ignore = "run by another test"]
fn child_with_folders() {
    let core = carafe::core();
    core.add_extension("all_kinds_c").unwrap();
    core.add_extension("liball_kinds_c.so").unwrap();
    assert_eq!(core.extensions().len(), 1);
    tells(core.add_extension("acme_nothing"), &["there is no such file"]);
}
