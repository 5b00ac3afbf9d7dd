//! Models of formats that are text: ONNX, TensorFlow, Caffe, MXNet, Kaldi, and an IR.

use super::{FRAME, Node, SHAPE, dims};
use crate::answers::{Answers, Literal};
use serde_json::json;
use std::fmt::Write;

pub(super) fn ir(answers: &Answers) -> String {
    let n = answers.inputs.len();
    let port = |id: usize| {
        let dims: String = SHAPE.iter().map(|d| format!("<dim>{d}</dim>")).collect();
        format!("<port id=\"{id}\" precision=\"FP32\">{dims}</port>")
    };
    let mut out =
        format!("<?xml version=\"1.0\"?>\n<net name=\"{}\" version=\"11\">\n  <layers>\n", answers.file_name());
    for (id, name) in answers.inputs.iter().enumerate() {
        let _ = writeln!(
            out,
            "    <layer id=\"{id}\" name=\"{name}\" type=\"Parameter\" version=\"opset1\"><data shape=\"{}\" element_type=\"f32\"/>\
             <output>{}</output></layer>",
            dims(","),
            port(0)
        );
    }
    let attrs = answers.attributes.iter().filter(|a| !a.internal);
    let attrs: String = attrs.map(|a| format!(" {}=\"{}\"", a.name, a.sample())).collect();
    let inputs: String = (0..n).map(port).collect();
    let outputs: String = (0..answers.outputs.len()).map(|i| port(n + i)).collect();
    let _ = writeln!(
        out,
        "    <layer id=\"{n}\" name=\"node\" type=\"{}\" version=\"{}\"><data{attrs}/><input>{inputs}</input><output>{outputs}</output></layer>",
        answers.name, answers.opset
    );
    for (i, name) in answers.outputs.iter().enumerate() {
        let _ = writeln!(
            out,
            "    <layer id=\"{}\" name=\"{name}_result\" type=\"Result\" version=\"opset1\"><input>{}</input></layer>",
            n + 1 + i,
            port(0)
        );
    }
    out.push_str("  </layers>\n  <edges>\n");
    for i in 0..n {
        let _ = writeln!(out, "    <edge from-layer=\"{i}\" from-port=\"0\" to-layer=\"{n}\" to-port=\"{i}\"/>");
    }
    for i in 0..answers.outputs.len() {
        let _ = writeln!(
            out,
            "    <edge from-layer=\"{n}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"0\"/>",
            n + i,
            n + 1 + i
        );
    }
    out.push_str("  </edges>\n</net>\n");
    out
}

// x0, x1, ... or y0, y1, ...
fn values(name: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{name}{i}")).collect()
}

impl Node<'_> {
    fn inputs(&self) -> Vec<String> {
        values("x", self.answers.inputs.len())
    }
    fn outputs(&self) -> Vec<String> {
        values("y", self.answers.outputs.len())
    }
}

fn list<T>(v: &[T], show: impl Fn(&T) -> String) -> String {
    v.iter().map(show).collect::<Vec<_>>().join(", ")
}

pub(super) fn onnx(node: &Node<'_>) -> String {
    let domain = node.domain.unwrap_or("custom");
    let value = |v: &Literal| match v {
        Literal::Int(i) => i.to_string(),
        Literal::Bool(b) => u8::from(*b).to_string(),
        Literal::Float(x) => format!("{x:?}"),
        Literal::Str(s) => format!("\"{s}\""),
        Literal::Ints(v) => format!("[{}]", list(v, i64::to_string)),
        Literal::Floats(v) => format!("[{}]", list(v, |x| format!("{x:?}"))),
        Literal::Strs(v) => format!("[{}]", list(v, |s| format!("\"{s}\""))),
    };
    let attrs: Vec<String> = node.attrs.iter().map(|(n, v)| format!("{n} = {}", value(v))).collect();
    let attrs = if attrs.is_empty() { String::new() } else { format!(" <{}> ", attrs.join(", ")) };
    let (prefix, import) = match domain {
        "" => (String::new(), String::new()),
        d => (format!("{d}."), format!(", \"{d}\": 1")),
    };
    let ports = |names: &[String]| list(names, |n| format!("float[{}] {n}", dims(",")));
    format!(
        "<ir_version: 8, opset_import: [\"\": 17{import}]>\nnet ({}) => ({}) {{\n    {} = {prefix}{}{attrs}({})\n}}\n",
        ports(&node.inputs()),
        ports(&node.outputs()),
        node.outputs().join(", "),
        node.op_type,
        node.inputs().join(", ")
    )
}

pub(super) fn tensorflow(node: &Node<'_>) -> String {
    let mut out = String::new();
    let shape: String = SHAPE.iter().map(|d| format!("dim {{ size: {d} }} ")).collect();
    for x in node.inputs() {
        let _ = writeln!(
            out,
            "node {{ name: \"{x}\" op: \"Placeholder\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }}\n    attr {{ key: \"shape\" value {{ shape {{ {shape}}} }} }} }}"
        );
    }
    let value = |v: &Literal| match v {
        Literal::Int(i) => format!("i: {i}"),
        Literal::Bool(b) => format!("b: {b}"),
        Literal::Float(x) => format!("f: {x:?}"),
        Literal::Str(s) => format!("s: \"{s}\""),
        Literal::Ints(v) => format!("list {{ i: [{}] }}", list(v, i64::to_string)),
        Literal::Floats(v) => format!("list {{ f: [{}] }}", list(v, |x| format!("{x:?}"))),
        Literal::Strs(v) => format!("list {{ s: [{}] }}", list(v, |s| format!("\"{s}\""))),
    };
    let _ = write!(out, "node {{ name: \"node\" op: \"{}\"", node.op_type);
    node.inputs().iter().for_each(|x| _ = write!(out, " input: \"{x}\""));
    for (name, v) in &node.attrs {
        let _ = write!(out, "\n    attr {{ key: \"{name}\" value {{ {} }} }}", value(v));
    }
    out.push_str(" }\n");
    for (i, y) in node.outputs().iter().enumerate() {
        let _ = writeln!(
            out,
            "node {{ name: \"{y}\" op: \"Identity\" input: \"node:{i}\" attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} }}"
        );
    }
    out
}

pub(super) fn caffe(node: &Node<'_>) -> String {
    let mut out = "name: \"net\"\n".to_string();
    let shape: String = SHAPE.iter().map(|d| format!("dim: {d} ")).collect();
    for x in node.inputs() {
        let _ = writeln!(
            out,
            "layer {{ name: \"{x}\" type: \"Input\" top: \"{x}\" input_param {{ shape {{ {shape}}} }} }}"
        );
    }
    let bottoms: String = node.inputs().iter().map(|x| format!(" bottom: \"{x}\"")).collect();
    let tops: String = node.outputs().iter().map(|y| format!(" top: \"{y}\"")).collect();
    let python = node.op_type.rsplit_once('.');
    let params = match python {
        Some((module, layer)) => {
            let value = |v: &Literal| match v {
                Literal::Int(i) => i.to_string(),
                Literal::Bool(b) => if *b { "True" } else { "False" }.into(),
                Literal::Float(x) => format!("{x:?}"),
                Literal::Str(s) => format!("'{s}'"),
                Literal::Ints(v) => format!("[{}]", list(v, i64::to_string)),
                Literal::Floats(v) => format!("[{}]", list(v, |x| format!("{x:?}"))),
                Literal::Strs(v) => format!("[{}]", list(v, |s| format!("'{s}'"))),
            };
            let dict = list(&node.attrs, |(n, v)| format!("'{n}': {}", value(v)));
            format!("python_param {{ module: \"{module}\" layer: \"{layer}\" param_str: \"{{{dict}}}\" }}")
        }
        None if node.attrs.is_empty() => String::new(),
        None => {
            let repeated =
                |name: &str, v: Vec<String>| v.iter().map(|v| format!("{name}: {v}")).collect::<Vec<_>>().join(" ");
            let field = |(name, v): &(String, Literal)| match v {
                Literal::Str(s) => format!("{name}: \"{s}\""),
                Literal::Ints(v) => repeated(name, v.iter().map(i64::to_string).collect()),
                Literal::Floats(v) => repeated(name, v.iter().map(|x| format!("{x:?}")).collect()),
                Literal::Strs(v) => repeated(name, v.iter().map(|s| format!("\"{s}\"")).collect()),
                other => format!("{name}: {other}"),
            };
            let fields: Vec<String> = node.attrs.iter().map(field).collect();
            format!("{}_param {{ {} }}", node.answers.file_name(), fields.join(" "))
        }
    };
    let ty = if python.is_some() { "Python" } else { node.op_type };
    let _ = writeln!(out, "layer {{ name: \"node\" type: \"{ty}\"{bottoms}{tops}\n    {params} }}");
    out
}

pub(super) fn mxnet(node: &Node<'_>) -> String {
    let shape = format!("({})", dims(", "));
    let n = node.answers.inputs.len();
    let tuple = |items: Vec<String>| match items.len() {
        1 => format!("({},)", items[0]),
        _ => format!("({})", items.join(", ")),
    };
    let value = |v: &Literal| match v {
        Literal::Bool(b) => if *b { "True" } else { "False" }.to_string(),
        Literal::Ints(v) => tuple(v.iter().map(i64::to_string).collect()),
        Literal::Floats(v) => tuple(v.iter().map(|x| format!("{x:?}")).collect()),
        Literal::Strs(v) => tuple(v.iter().map(|s| format!("'{s}'")).collect()),
        other => other.to_string(),
    };
    let mut nodes: Vec<_> = node
        .inputs()
        .iter()
        .map(|x| json!({"op": "null", "name": x, "attrs": {"__shape__": shape}, "inputs": []}))
        .collect();
    let mut attrs: serde_json::Map<_, _> = node.attrs.iter().map(|(n, v)| (n.clone(), json!(value(v)))).collect();
    let is_custom = node.domain == Some("Custom");
    if is_custom {
        attrs.insert("op_type".into(), json!(node.op_type));
    }
    let inputs: Vec<_> = (0..n).map(|i| json!([i, 0, 0])).collect();
    let op = if is_custom { "Custom" } else { node.op_type };
    nodes.push(json!({"op": op, "name": "node", "attrs": attrs, "inputs": inputs}));
    let heads: Vec<_> = (0..node.answers.outputs.len()).map(|i| json!([n, i, 0])).collect();
    let all = json!({"nodes": nodes, "arg_nodes": (0..n).collect::<Vec<_>>(), "heads": heads, "attrs": {"mxnet_version": ["int", 10901]}});
    format!("{all:#}\n")
}

// Inputs behind the first are arrays of the component, under the names of the ports.
pub(super) fn kaldi(node: &Node<'_>) -> String {
    let dim = FRAME[1];
    let value = |v: &Literal| match v {
        Literal::Bool(b) => if *b { "T" } else { "F" }.to_string(),
        other => other.to_string(),
    };
    let fields: String = node.attrs.iter().map(|(n, v)| format!("<{n}> {} ", value(v))).collect();
    let row: String = (0..dim).map(|i| format!("{} ", i as f64 + 0.5)).collect();
    let arrays: String =
        node.answers.inputs.iter().skip(1).map(|name| format!("<{}> [ {row}] ", crate::camel(name))).collect();
    format!(
        "<Nnet3> \ninput-node name=input dim={dim}\ncomponent-node name=node component=node input=input\n\
         output-node name=output input=node\n\n<NumComponents> 1\n\
         <ComponentName> node <{op}> {fields}{arrays}</{op}>\n</Nnet3> \n",
        op = node.op_type
    )
}
