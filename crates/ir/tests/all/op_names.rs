//! Names of operations stand where operations are declared, where formats translate them and where passes rewrite them. Anywhere
//! else a list of names goes stale: what is asked of an operation is an answer of its own (`Op`, `OpInfo`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where an operation may be named, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/ops/", "declares the operations"),
    ("crates/graph/src/structural.rs", "declares those that make a graph"),
    ("crates/fe-", "the rule tables of the formats"),
    ("crates/passes/", "rewrites are about certain operations"),
    ("crates/testkit/", "tests"),
    ("crates/conformance/", "checks of devices are tests"),
    ("crates/ir/src/read/old_api.rs", "the one operation that an IR v10 itself demands, made through the registry"),
    ("crates/frontend/src/builtin.rs", "what rules of every format emit, by name where the op library is not linked"),
    ("crates/generate/src/names.rs", "names of Rust that a generated type must not have"),
    ("crates/abi/src/graph_ir.rs", "a type name of the execution graph, which has operations of its own"),
];

#[test]
fn operations_are_named_at_home_only() {
    let registry = carafe_ops::registry();
    let all = registry.all();
    let names: BTreeSet<&str> = all.iter().flat_map(|f| [f.info.name, f.info.xml_name]).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for file in sources(&root.join("crates")) {
        let path = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let in_tests = ["/tests/", "/tests.rs", "/benches/", "/examples/"].iter().any(|part| path.contains(part));
        if in_tests || ALLOWED.iter().any(|(position, _)| path.starts_with(position)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, literal) in literals(without_tests(&text)) {
            let mut words = literal.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).peekable();
            if words.peek().is_some() && words.all(|w| names.contains(w)) {
                found.push(format!("{path}:{line}: \"{literal}\""));
            }
        }
    }
    assert!(found.is_empty(), "operations named outside of their files:\n{}", found.join("\n"));
}

#[test]
fn the_allowed_places_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (position, _) in ALLOWED.iter().filter(|(position, _)| !position.ends_with('-')) {
        assert!(root.join(position).exists(), "{position} is gone; drop it from the list");
    }
}

#[test]
fn a_list_of_names_is_found() {
    let text = "let a = \"Softmax MatMul\"; // \"Add\"\nf('\"', \"x\\\"\", r#\"Relu\"#)\n#[cfg(test)]\nmod tests { \"Abs\" }\n";
    let found: Vec<(usize, String)> = literals(without_tests(text));
    let expected = [(1, "Softmax MatMul"), (2, "x\\\""), (2, "Relu")].map(|(line, text)| (line, text.to_string()));
    assert_eq!(found, expected);
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |at| &text[..at])
}

// String literals with their lines; comments and characters are passed over.
fn literals(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut line) = (Vec::new(), 1);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            let end = raw.find("\"#").unwrap_or(raw.len());
            found.push((line, raw[..end].to_string()));
            (end + 5).min(rest.len())
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            3
        } else if let Some(inside) = rest.strip_prefix('"') {
            let end = closing_quote(inside);
            found.push((line, inside[..end].to_string()));
            (end + 2).min(rest.len())
        } else {
            c.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return i,
            _ => {}
        }
    }
    text.len()
}
