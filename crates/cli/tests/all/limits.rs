//! What happens when memory, disk or patience would run out: an error with exit code 1, never the end of the process.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// The command after a line of shell that sets limits.
fn carafe_within(limits: &str, dir: &Path, args: &[&str]) -> Output {
    let line = format!("{limits}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_carafe")]).args(args).current_dir(dir).output().unwrap()
}

/// That a command ended by itself with code 1; its message.
#[track_caller]
fn refused(done: &Output) -> String {
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{:?}: {text}", done.status);
    text
}

/// A model that makes a row of as many ones as its input says, and does something to it.
fn model(dir: &Path, body: &str, output: &str) -> PathBuf {
    let text = format!(
        "<ir_version: 10, opset_import: [\"\": 20]>\nnet (int64[1] n) => ({output} y) {{\n \
         x = ConstantOfShape <value = float[1] {{1.0}}> (n)\n {body}\n}}"
    );
    let path = dir.join("model.onnxtxt");
    std::fs::write(&path, text).unwrap();
    path
}

#[track_caller]
fn check_short_of_memory(name: &str, body: &str, output: &str, elements: i64) {
    let dir = folder(name);
    model(&dir, body, output);
    std::fs::write(dir.join("n.raw"), elements.to_le_bytes()).unwrap();
    for device in ["CPU", "TEMPLATE"] {
        let limit = "ulimit -v 300000; ulimit -c 0";
        let done = carafe_within(limit, &dir, &["run", "model.onnxtxt", "-i", "n.raw", "-d", device]);
        // Whether it fits depends on the device; that the process ends by itself does not.
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{device}: {:?}: {text}", done.status);
        let told = text.contains("bytes") || text.contains("memory");
        assert!(done.status.success() || told, "{device}: {text}");
    }
}

#[test]
fn different_elements_of_more_than_fits_are_an_error() {
    check_short_of_memory("memory_unique", "y = Unique (x)", "float[?]", 20_000_000);
}

#[test]
fn numbers_as_more_text_than_fits_are_an_error() {
    check_short_of_memory("memory_text", "y = Cast <to = 8> (x)", "string[?]", 3_000_000);
}

#[test]
fn places_of_more_than_fits_are_an_error() {
    check_short_of_memory("memory_places", "y = NonZero (x)", "int64[1, ?]", 10_000_000);
}

#[test]
fn a_spectrum_of_more_than_fits_is_an_error() {
    let body = "s = Constant <value_ints = [1, -1, 1]> ()\n r = Reshape (x, s)\n a = Constant <value_int = 1> ()\n \
                y = DFT (r, , a)";
    check_short_of_memory("memory_spectrum", body, "float[1, ?, 2]", 1 << 21);
}

#[test]
fn a_row_longer_than_any_memory_is_an_error() {
    check_short_of_memory("memory_row", "y = Unique (x)", "float[?]", 1 << 40);
}

#[test]
fn an_archive_that_grows_beyond_its_input_is_refused_before_it_is_inflated() {
    let dir = folder("bomb");
    std::fs::write(
        dir.join("model.onnxtxt"),
        "<ir_version: 8, opset_import: [\"\": 17]>\nnet (float[3] x) => (float[3] y) { y = Relu (x) }",
    )
    .unwrap();
    let big = carafe_npy::write_npy(&carafe_tensor(50_000_000)).unwrap();
    std::fs::write(dir.join("x.npz"), deflated(&big)).unwrap();
    let text = refused(&carafe_within("ulimit -v 400000", &dir, &["run", "model.onnxtxt", "-i", "x.npz"]));
    assert!(text.contains("array `x` is too large: 50000128 bytes, at most 24 are possible"), "{text}");
}

fn carafe_tensor(bytes: usize) -> carafe::Tensor {
    carafe::Tensor::zeros(carafe::ElementType::U8, &[bytes]).unwrap()
}

/// An archive with one deflated member, `x.npy`, made of a stored one.
fn deflated(contents: &[u8]) -> Vec<u8> {
    let python = "import sys, zipfile, io\n\
                  out = io.BytesIO()\n\
                  with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('x.npy', sys.stdin.buffer.read())\n\
                  sys.stdout.buffer.write(out.getvalue())";
    let mut child = Command::new("python3")
        .args(["-c", python])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), contents).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn a_pipe_as_input_is_refused_instead_of_waited_for() {
    let dir = folder("pipe");
    model(&dir, "y = Relu (x)", "float[?]");
    assert!(Command::new("mkfifo").arg(dir.join("n.raw")).status().unwrap().success());
    let text = refused(&carafe_within("true", &dir, &["run", "model.onnxtxt", "-i", "n.raw"]));
    assert!(text.contains("not a regular file"), "{text}");
    let text = refused(&carafe_within("true", &dir, &["run", "n.raw"]));
    assert!(text.contains("not a regular file"), "{text}");
}

#[test]
fn a_device_as_input_is_refused_instead_of_read_for_ever() {
    let dir = folder("device");
    model(&dir, "y = Relu (x)", "float[?]");
    let text = refused(&carafe_within("true", &dir, &["run", "model.onnxtxt", "-i", "/dev/zero"]));
    assert!(text.contains("not a regular file"), "{text}");
}

#[test]
fn a_disk_that_is_full_leaves_no_half_file() {
    let dir = folder("full");
    model(&dir, "y = Relu (x)", "float[?]");
    std::fs::write(dir.join("n.raw"), 100_000i64.to_le_bytes()).unwrap();
    let limits = "trap '' XFSZ; ulimit -f 8";
    let text = refused(&carafe_within(limits, &dir, &["run", "model.onnxtxt", "-i", "n.raw", "-o", "out"]));
    assert!(text.contains("cannot write `out/y.npy`"), "{text}");
    assert_eq!(std::fs::read_dir(dir.join("out")).unwrap().count(), 0);
}
