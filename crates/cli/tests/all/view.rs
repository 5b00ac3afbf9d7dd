//! `carafe view`: the page in a browser, and the server. Without a browser the tests that need one say so and check what they can;
//! `scripts/test` sets CARAFE_BROWSER, and then one must be there.

use crate::common::{MODEL, folder, ok, repo};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

fn browser() -> Option<String> {
    let asked = std::env::var("CARAFE_BROWSER").ok();
    let known = ["chromium-headless-shell", "chromium", "google-chrome", "chromium-browser"];
    let names = asked.iter().map(String::as_str).chain(known);
    let found = names.map(str::to_string).find(|n| Command::new(n).arg("--version").output().is_ok());
    if found.is_none() {
        assert!(asked.is_none(), "CARAFE_BROWSER is {asked:?}, which does not start");
        eprintln!("no browser is here (chromium-headless-shell, chromium): the page was not opened");
    }
    found
}

/// The document after its scripts ran.
fn opened(browser: &str, page: &Path, fragment: &str) -> String {
    let profile = page.with_extension("profile");
    let done = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--window-size=1300,900"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--dump-dom", &format!("file://{}{fragment}", page.canonicalize().unwrap().display())])
        .output()
        .unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A page made with these options, in a folder of that name.
fn page(name: &str, model: &str, options: &[&str]) -> std::path::PathBuf {
    let file = folder(name).join("page.html");
    let text = ok(&[&["view", model, "-o", file.to_str().unwrap()], options].concat());
    assert!(text.contains("nodes, ") && text.contains("written to"), "{text}");
    file
}

#[test]
fn a_page_passes_its_own_test_in_a_browser() {
    let file = page("view_digits", MODEL, &["--run", "--repeat", "2"]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("Content-Security-Policy") && text.contains("gemm_"), "the kernels are missing");
    let Some(browser) = browser() else { return };
    let shown = opened(&browser, &file, "#selftest");
    assert!(shown.contains("<title>ok 10 nodes</title>"), "{}", selftest(&shown));
    assert!(selftest(&shown).contains("nodes 10 edges 9 drawn 10 sheets 1"), "{}", selftest(&shown));
}

fn selftest(document: &str) -> &str {
    document.split("id=\"selftest\"").nth(1).and_then(|t| t.split("</pre>").next()).unwrap_or("no self test")
}

#[test]
fn a_link_opens_its_node() {
    let file = page("view_link", MODEL, &["-d", "CPU"]);
    let Some(browser) = browser() else { return };
    let shown = opened(&browser, &file, "#node=layer0%2Frelu");
    assert!(shown.contains("id=\"chosen\">layer0/relu</p>"), "the panel does not show the node");
}

#[test]
fn names_that_are_html_stay_names() {
    let dir = folder("view_hostile");
    let text = r#"<ir_version: 8, opset_import: ["" : 17]>
evil (float[2] x) => (float[2] y) { y = Relu(x) }"#;
    let model = dir.join("m.onnxtxt");
    std::fs::write(&model, text).unwrap();
    let xml = dir.join("m.xml");
    ok(&["convert", model.to_str().unwrap(), "-o", xml.to_str().unwrap()]);
    let evil = "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&lt;script&gt;document.title='no'&lt;/script&gt;";
    let changed = std::fs::read_to_string(&xml).unwrap().replace("name=\"y\"", &format!("name=\"{evil}\""));
    assert!(changed.contains(evil));
    std::fs::write(&xml, changed).unwrap();
    let file = page("view_hostile_page", xml.to_str().unwrap(), &[]);
    let Some(browser) = browser() else { return };
    let shown = opened(&browser, &file, "#selftest");
    assert!(shown.contains("<title>ok 3 nodes</title>"), "{}", selftest(&shown));
}

#[test]
fn a_model_with_an_operation_that_nobody_knows_is_shown() {
    let dir = folder("view_unknown");
    let model = dir.join("m.onnxtxt");
    let text = r#"<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
m (float[2] x) => (float[2] y) { y = acme.Mystery(x) }"#;
    std::fs::write(&model, text).unwrap();
    let file = page("view_unknown_page", model.to_str().unwrap(), &[]);
    assert!(std::fs::read_to_string(file).unwrap().contains("Mystery"));
}

#[test]
fn a_served_page_is_for_this_machine_and_for_get() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_carafe"))
        .args(["view", MODEL, "--serve"])
        .current_dir(repo())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|t| t.split('/').next()).unwrap_or_default().to_string();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let ask = |request: String| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A server that refuses may close before all was read.
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let page = ask(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let wrong = [
        (format!("POST / HTTP/1.1\r\nHost: {address}\r\n\r\n"), "405"),
        (format!("GET /etc/passwd HTTP/1.1\r\nHost: {address}\r\n\r\n"), "404"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_string(), "403"),
    ];
    let answers: Vec<(String, &str)> = wrong.into_iter().map(|(request, status)| (ask(request), status)).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("</html>"), "{}", &page[..page.len().min(300)]);
    for (answer, status) in answers {
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
    }
}

#[test]
fn a_file_for_model_explorer_has_the_graph() {
    let file = folder("model_explorer").join("out.json");
    ok(&["inspect", MODEL, "--model-explorer", file.to_str().unwrap()]);
    let all: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let nodes = all["graphs"][0]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 10);
    assert!(nodes.iter().any(|n| n["label"] == "MatMul" && n["namespace"] == "layer0"), "{nodes:?}");
}
