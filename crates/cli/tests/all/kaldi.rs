//! Kaldi models as users give them: every generation and form, mo's options, utterances out of archives.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

// Adds the frame before and the frame behind to each frame.
const NET: &str = "<Nnet3> 
input-node name=input dim=2
component-node name=a component=c input=Sum(Offset(input, -1), Sum(input, Offset(input, 1)))
output-node name=output input=a

<NumComponents> 1
<ComponentName> c <NoOpComponent> <Dim> 2 <BackpropScale> 1 </NoOpComponent>
</Nnet3> ";

// The sum of all frames so far.
const SUM: &str = "<Nnet3> 
input-node name=input dim=2
component-node name=a component=c input=Sum(input, IfDefined(Offset(a, -1)))
output-node name=output input=a
output-node name=twice input=Scale(2, a)

<NumComponents> 1
<ComponentName> c <NoOpComponent> <Dim> 2 <BackpropScale> 1 </NoOpComponent>
</Nnet3> ";

const FRAMES: &str = "one  [\n  1 10\n  2 20\n  4 40 ]\ntwo  [\n  100 0 ]\n";

fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn fails(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    String::from_utf8(done.stderr).unwrap()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kaldi").join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), content).unwrap();
        self.path(name)
    }
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
}

#[test]
fn utterances_run_frame_by_frame_with_the_context_that_the_model_says() {
    let f = Folder::new("context");
    let (net, frames) = (f.write("net.raw", NET), f.write("in.ark", FRAMES));
    // A name that ends with .txt is written as text.
    let out = ok(&["run", &net, "-i", &frames, "-o", &f.path("out.txt")]);
    assert!(out.contains("one: 3 frames, [3, 2]") && out.contains("two: 1 frames, [1, 2]"), "{out}");
    let wanted = "one  [\n  4 40 \n  7 70 \n  10 100 ]\ntwo  [\n  300 0 ]\n";
    assert_eq!(f.read("out.txt"), wanted);
    // The converted model says it too, and what it wrote can be read again.
    ok(&["convert", &net, "-o", &f.path("net.xml"), "--framework", "kaldi", "--compress_to_fp16=False"]);
    ok(&["run", &f.path("net.xml"), "-i", &frames, "-o", &f.path("out.ark")]);
    let same =
        f.write("same.raw", NET.replace("input=Sum(Offset(input, -1), Sum(input, Offset(input, 1)))", "input=input"));
    ok(&["run", &same, "-i", &f.path("out.ark"), "-o", &f.path("again.txt"), "-d", "TEMPLATE"]);
    assert_eq!(f.read("again.txt"), wanted);
    ok(&["run", &net, "-i", &frames, "-o", &f.path("none.txt"), "--cw_l", "0", "--context_window_right", "1"]);
    assert_eq!(f.read("none.txt"), "one  [\n  3 30 \n  7 70 \n  10 100 ]\ntwo  [\n  200 0 ]\n");
}

#[test]
fn the_state_is_reset_between_utterances_and_outputs_have_a_file_each() {
    let f = Folder::new("state");
    let (net, frames) = (f.write("net.raw", SUM), f.write("in.ark", FRAMES));
    let out = ok(&["run", &net, "-i", &format!("input={frames}"), "-o", &f.path("out.txt"), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["context"], serde_json::json!({"left": 0, "right": 0}));
    assert_eq!(
        json["utterances"][0],
        serde_json::json!({"key": "one", "frames": 3, "outputs": {"output": [3, 2], "twice": [3, 2]}})
    );
    assert_eq!(f.read("out.output.txt"), "one  [\n  1 10 \n  3 30 \n  7 70 ]\ntwo  [\n  100 0 ]\n");
    assert_eq!(f.read("out.twice.txt"), "one  [\n  2 20 \n  6 60 \n  14 140 ]\ntwo  [\n  200 0 ]\n");
}

#[test]
fn lists_and_vectors_for_whole_utterances_are_read() {
    let f = Folder::new("lists");
    let net = SUM.replace("component-node", "input-node name=ivector dim=1\ncomponent-node");
    let net = net
        .replace("<Dim> 2", "<Dim> 3")
        .replace("input=Sum(input, IfDefined(Offset(a, -1)))", "input=Append(input, ReplaceIndex(ivector, t, 0))");
    let (net, frames) = (f.write("net.raw", net), f.write("in.ark", FRAMES));
    let list = f.write("in.scp", format!("two {frames}:{}\n", FRAMES.find("two").unwrap() + 3));
    let vectors = f.write("iv.ark", "one  [ 7 ]\ntwo  [ 9 ]\n");
    let run = |input: &str| {
        ok(&["run", &net, "-i", &format!("input={input}"), "-i", &format!("ivector={vectors}"), "-o", &f.path("o.txt")])
    };
    run(&list);
    assert_eq!(f.read("o.output.txt"), "two  [\n  100 0 9 ]\n");
    run(&frames);
    assert_eq!(f.read("o.output.txt"), "one  [\n  1 10 7 \n  2 20 7 \n  4 40 7 ]\ntwo  [\n  100 0 9 ]\n");
}

#[test]
fn archives_that_do_not_fit_say_why() {
    let f = Folder::new("wrong");
    let (net, frames) = (f.write("net.raw", NET), f.write("in.ark", "one  [\n  1 2 3 ]\n"));
    assert!(
        fails(&["run", &net, "-i", &frames])
            .contains("utterance `one`: frames have 3 numbers, input `input` takes [1,2] at a time")
    );
    let broken = f.write("b.ark", "one \0BFM \x04");
    assert!(fails(&["run", &net, "-i", &broken]).contains("utterance `one`: the file ends early"));
    assert!(fails(&["run", &net, "-i", &f.path("missing.ark")]).contains("cannot read"));
    let list = f.write("l.scp", "one nowhere.ark:3\n");
    assert!(fails(&["run", &net, "-i", &list]).contains("line 1"));
}

#[test]
fn options_of_mo_are_taken() {
    let f = Folder::new("options");
    let net =
        f.write("net.nnet", "<Nnet> <AddShift> 2 2 [ 1 2 ] <!EndOfComponent> <Softmax> 2 2 <!EndOfComponent> </Nnet>");
    let counts = f.write("counts", "[ 1 3 ]");
    let frames = f.write("in.ark", "one  [\n  0 0 ]\n");
    ok(&[
        "convert",
        "--input_model",
        &net,
        "--framework",
        "kaldi",
        "--counts",
        &counts,
        "--remove_output_softmax",
        "--output_dir",
        &f.path("ir"),
        "--compress_to_fp16=False",
    ]);
    ok(&["run", &f.path("ir/net.xml"), "-i", &frames, "-o", &f.path("o.txt")]);
    let text = f.read("o.txt");
    let found: Vec<f32> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let wanted = [1.0 - 0.25f32.ln(), 2.0 - 0.75f32.ln()];
    assert!(found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-5), "{text}");
    let net = f.write("sum.raw", SUM);
    let inspected = ok(&["inspect", &net, "--remove_memory"]);
    assert!(inspected.contains("Parameter_1_for_a/memory") && inspected.contains("Result_for_a/memory"), "{inspected}");
    assert!(ok(&["inspect", &net]).contains("ReadValue"));
    assert!(fails(&["convert", &net, "-o", &f.path("x.xml"), "--framework", "onnx"]).contains("is Kaldi, not onnx"));
}
