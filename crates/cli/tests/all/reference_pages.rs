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
fn the_list_of_what_gpu_runs_is_current() {
    check("gpu.md", &["--device", "GPU"]);
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

/// The name of a heading in a link.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_between_pages_lead_to_headings_that_are_there() {
    let docs = repo().join("docs");
    let pages = ["", "reference"].iter().flat_map(|folder| std::fs::read_dir(docs.join(folder)).unwrap());
    let pages = pages.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md"));
    let mut broken = vec![];
    for page in pages.chain([repo().join("README.md"), repo().join("samples/README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = match (target.is_dir(), std::fs::read_to_string(&target)) {
                (true, _) => heading.is_empty(),
                (_, Ok(text)) => {
                    heading.is_empty()
                        || text
                            .lines()
                            .filter(|l| l.starts_with('#'))
                            .any(|l| anchor(l.trim_start_matches('#')) == heading)
                }
                (_, Err(_)) => target.is_file(),
            };
            if !found {
                broken.push(format!("{}: {link}", page.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_words_of_the_guides_are_in_the_index_with_code_beside_code() {
    let read = |page: &str| std::fs::read_to_string(repo().join("docs").join(page)).unwrap();
    let (index, page) = (read("word-index.md"), read("from-openvino.md"));
    for word in [
        "OpExtension",
        "ConversionExtension",
        "NodeContext",
        "add_extension",
        "Model Optimizer",
        "extractor",
        "executable network",
    ] {
        assert!(index.contains(word), "`{word}` is not in the index");
        let sections = page.split("\n### ").skip(1);
        let section = sections.filter(|s| s.lines().next().unwrap().to_lowercase().contains(&word.to_lowercase()));
        let has_both = |s: &str| (s.contains("```cpp") || s.contains("```python")) && s.contains("```rust");
        assert!(section.into_iter().any(has_both), "from-openvino.md has no code beside code for `{word}`");
    }
}

#[test]
fn every_block_of_code_on_a_page_is_run() {
    let script = std::fs::read_to_string(repo().join("scripts/test")).unwrap();
    for entry in std::fs::read_dir(repo().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".md") else { continue };
        let text = std::fs::read_to_string(repo().join("docs").join(&name)).unwrap();
        let walked = script.contains(&format!("--page docs/{name}\n"));
        // Fences open and close in turns.
        let mut before = "";
        for (i, part) in text.split("\n```").enumerate() {
            if i % 2 == 1 {
                let language = part.lines().next().unwrap_or_default();
                let is_file = before.trim_end().ends_with("`:");
                // Code of the original stands beside ours; ours there is in an example, which a test of crate carafe compares.
                let compared = ["from-openvino", "frontend-extensions"].contains(&stem);
                let original = compared && ["cpp", "python"].contains(&language);
                let example = stem == "from-openvino" && language == "rust";
                assert!(
                    original || example || (walked && (language == "console" || is_file)),
                    "docs/{name}: nothing runs the block `{language}` behind `{}`",
                    before.trim_end().lines().next_back().unwrap_or_default()
                );
            }
            before = part;
        }
    }
}
