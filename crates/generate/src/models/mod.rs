//! Tiny models with the operation in them, one for each format, for the tests of a project. All have inputs of one shape, and every
//! output is input 0: what the operation gives until it is edited.

mod paddle;
mod text;
mod tflite;

use crate::answers::{Answers, Attribute, Framework, Literal};
use crate::language::readable;
use serde_json::{Value, json};

/// A model file.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Shape of its inputs.
    shape: &'static [usize],
    /// How many inputs it takes when it runs.
    inputs: usize,
}

/// The shape of inputs: batch, channels, rows, columns.
const SHAPE: &[usize] = &[1, 2, 2, 3];
/// A frame of Kaldi.
const FRAME: &[usize] = &[1, 3];

/// An IR, and a model of each format that is asked for.
pub(crate) fn all(answers: &Answers) -> Vec<Model> {
    let mut out = vec![model(answers, "xml", text::ir(answers).into_bytes())];
    for source in &answers.sources {
        let attrs = attributes(answers, source.framework);
        let node = Node { answers, op_type: &source.op_type, domain: source.domain.as_deref(), attrs };
        out.push(match source.framework {
            Framework::Onnx => model(answers, "onnxtxt", text::onnx(&node).into_bytes()),
            Framework::TensorFlow => model(answers, "pbtxt", text::tensorflow(&node).into_bytes()),
            Framework::TfLite => model(answers, "tflite", tflite::model(&node)),
            Framework::Caffe => model(answers, "prototxt", text::caffe(&node).into_bytes()),
            Framework::Mxnet => {
                let name = format!("{}-symbol.json", answers.file_name());
                Model { name, ..model(answers, "json", text::mxnet(&node).into_bytes()) }
            }
            Framework::Kaldi => {
                Model { shape: FRAME, inputs: 1, ..model(answers, "nnet", text::kaldi(&node).into_bytes()) }
            }
            Framework::Paddle => model(answers, "pdmodel", paddle::model(&node)),
        });
    }
    out
}

fn model(answers: &Answers, ending: &str, bytes: Vec<u8>) -> Model {
    Model { name: format!("{}.{ending}", answers.file_name()), bytes, shape: SHAPE, inputs: answers.inputs.len() }
}

/// The case of a model: what goes in and what must come out.
pub(crate) fn case(answers: &Answers, model: &Model, path: &str) -> Value {
    let tensor = |i: usize| {
        let n: usize = model.shape.iter().product();
        let data: Vec<f64> = (0..n).map(|k| (k as f64 - 2.0) * 0.5 + i as f64).collect();
        json!({"shape": model.shape, "data": data})
    };
    json!({
        "model": path,
        "inputs": (0..model.inputs).map(tensor).collect::<Vec<_>>(),
        "outputs": answers.outputs.iter().map(|_| tensor(0)).collect::<Vec<_>>(),
        "tolerance": 1e-5,
    })
}

/// The node of the operation in a format.
struct Node<'a> {
    answers: &'a Answers,
    op_type: &'a str,
    domain: Option<&'a str>,
    /// Attributes under the names of the format.
    attrs: Vec<(String, Literal)>,
}

// Empty lists have no form in most formats: the node leaves them out.
fn attributes(answers: &Answers, framework: Framework) -> Vec<(String, Literal)> {
    let is_empty = |a: &&Attribute| match a.sample() {
        Literal::Ints(v) => v.is_empty(),
        Literal::Floats(v) => v.is_empty(),
        Literal::Strs(v) => v.is_empty(),
        _ => false,
    };
    let all = answers.attributes.iter().filter(|a| readable(a, framework) && !is_empty(a));
    all.map(|a| (a.name_in(framework), a.sample())).collect()
}

fn dims(by: &str) -> String {
    SHAPE.iter().map(usize::to_string).collect::<Vec<_>>().join(by)
}
