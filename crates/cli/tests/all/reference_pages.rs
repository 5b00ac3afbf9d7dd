//! The lists under `docs/reference` are what `carafe operations --markdown` prints. `BLESS=1 cargo test -p carafe-cli reference_pages`
//! writes them anew.

use crate::common::{carafe, ok, repo};

fn check(page: &str, args: &[&str]) {
    let printed = ok(&[&["operations", "--markdown"], args].concat());
    let file = repo().join("docs/reference").join(page);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &printed).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == printed, "docs/reference/{page} is old; BLESS=1 writes it anew");
}

#[test]
fn the_list_of_operations_is_current() {
    check("operations.md", &[]);
}

#[test]
fn the_list_of_each_format_is_current() {
    for format in ["onnx", "tensorflow", "tflite", "paddle", "caffe", "mxnet", "kaldi"] {
        check(&format!("{format}.md"), &["--format", format]);
    }
}

#[test]
fn the_list_of_what_cpu_runs_is_current() {
    check("cpu.md", &["--device", "CPU"]);
}

#[test]
fn one_operation_is_told_with_its_attributes() {
    let text = ok(&["operations", "max_pool"]);
    assert!(text.contains("MaxPool, opset14") && text.contains("rounding_type (floor | ceil"), "{text}");
}

#[test]
fn an_unknown_operation_names_its_likes() {
    let done = carafe(&["operations", "Softmaks"]);
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && text.contains("there is no operation `Softmaks`; similar: Softmax"), "{text}");
}

#[test]
fn an_unknown_format_names_those_that_there_are() {
    let done = carafe(&["operations", "--format", "pytorch"]);
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(text.contains("there is no format `pytorch` with rules; there are: onnx"), "{text}");
}

#[test]
fn every_page_of_the_book_is_there_and_every_page_is_in_the_book() {
    let docs = repo().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let linked: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let missing: Vec<_> = linked.iter().filter(|page| !docs.join(page).is_file()).collect();
    assert!(missing.is_empty(), "SUMMARY.md names pages that are not there: {missing:?}");
    for folder in ["", "reference", "bench"] {
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let page = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let is_page = page.ends_with(".md") && page != "SUMMARY.md";
            assert!(!is_page || linked.contains(&page.as_str()), "docs/{page} is not in SUMMARY.md");
        }
    }
}
