//! Graphs of a few lines, written by a small encoder, and how they are read and run.

#![allow(dead_code)]

use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::{Content, ReadRequest};
use carafe_graph::{Model, Result};
use carafe_tensor::{SharedBytes, Tensor};
use std::path::Path;

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Proto(pub(crate) Vec<u8>);

impl Proto {
    pub(crate) fn new() -> Proto {
        Proto::default()
    }
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }
    pub(crate) fn int(mut self, number: u32, value: i64) -> Proto {
        self.varint(u64::from(number) << 3);
        self.varint(value as u64);
        self
    }
    pub(crate) fn bytes(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Proto {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend(bytes.as_ref());
        self
    }
    pub(crate) fn message(self, number: u32, m: Proto) -> Proto {
        self.bytes(number, m.0)
    }
    pub(crate) fn floats(self, number: u32, values: &[f32]) -> Proto {
        self.bytes(number, values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
    }
}

/// A node with attributes.
pub(crate) fn node(name: &str, op: &str, inputs: &[&str], attrs: &[(&str, Proto)]) -> Proto {
    let node = Proto::new().bytes(1, name).bytes(2, op);
    let node = inputs.iter().fold(node, |n, i| n.bytes(3, i));
    attrs.iter().fold(node, |n, (key, value)| n.message(5, Proto::new().bytes(1, key).message(2, value.clone())))
}

/// An attribute that is an element type.
pub(crate) fn dtype(number: i64) -> Proto {
    Proto::new().int(6, number)
}

/// A shape.
pub(crate) fn shape(dims: &[i64]) -> Proto {
    dims.iter().fold(Proto::new(), |s, d| s.message(2, Proto::new().int(1, *d)))
}

/// An attribute that is a tensor of floats.
pub(crate) fn floats(dims: &[i64], values: &[f32]) -> Proto {
    Proto::new().message(8, Proto::new().int(1, 1).message(2, shape(dims)).floats(5, values))
}

/// A float constant.
pub(crate) fn constant(name: &str, dims: &[i64], values: &[f32]) -> Proto {
    node(name, "Const", &[], &[("dtype", dtype(1)), ("value", floats(dims, values))])
}

/// A float input.
pub(crate) fn placeholder(name: &str, dims: &[i64]) -> Proto {
    node(name, "Placeholder", &[], &[("dtype", dtype(1)), ("shape", Proto::new().message(7, shape(dims)))])
}

/// A graph of these nodes.
pub(crate) fn graph(nodes: &[Proto]) -> Proto {
    nodes.iter().fold(Proto::new(), |g, n| g.message(1, n.clone()))
}

/// Reads a model from bytes, as a request says.
pub(crate) fn read_as(bytes: impl AsRef<[u8]>, request: &ReadRequest<'_>) -> Result<Model> {
    let bytes = SharedBytes::from_vec(bytes.as_ref().to_vec());
    carafe_frontend::read(&TensorFlow, &ReadRequest { model: Content::Bytes(&bytes), ..*request })
}

/// Reads a model from bytes, and looks whether it is sound.
pub(crate) fn read(bytes: impl AsRef<[u8]>) -> std::result::Result<Model, String> {
    let mut model = read_as(bytes, &ReadRequest::new(Path::new(""))).map_err(|e| e.to_string())?;
    carafe_graph::verify(&model).map_err(|e| format!("not a sound model: {e}"))?;
    model.infer().map_err(|e| format!("inference fails again: {e}"))?;
    Ok(model)
}

/// The outputs of a model of floats.
#[track_caller]
pub(crate) fn evaluate(model: &Model, inputs: &[(&[usize], &[f32])]) -> Vec<(Vec<usize>, Vec<f32>)> {
    let inputs: Vec<Tensor> = inputs.iter().map(|(s, v)| Tensor::from_slice(s, v).expect("an input")).collect();
    let outputs = model.evaluate(&inputs).expect("the model runs");
    outputs.iter().map(|t| (t.shape().to_vec(), t.to_vec::<f32>().expect("floats").into_owned())).collect()
}

#[track_caller]
pub(crate) fn check_error(bytes: impl AsRef<[u8]>, wanted: &str) {
    let found = read(bytes).expect_err("the model must be refused");
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}

/// A function of floats; `returned` are names of its outputs and what they refer to.
pub(crate) fn function(name: &str, args: &[&str], returned: &[(&str, &str)], body: &[Proto]) -> Proto {
    let arg = |name: &str| Proto::new().bytes(1, name).int(3, 1);
    let signature = args.iter().fold(Proto::new().bytes(1, name), |s, a| s.message(2, arg(a)));
    let signature = returned.iter().fold(signature, |s, (out, _)| s.message(3, arg(out)));
    let function = body.iter().fold(Proto::new().message(1, signature), |f, n| f.message(3, n.clone()));
    returned.iter().fold(function, |f, (out, value)| f.message(4, Proto::new().bytes(1, out).bytes(2, value)))
}

/// A graph with a library of functions.
pub(crate) fn with_functions(nodes: &[Proto], functions: &[Proto]) -> Proto {
    graph(nodes).message(2, functions.iter().fold(Proto::new(), |l, f| l.message(1, f.clone())))
}

/// An attribute that is a function.
pub(crate) fn func(name: &str) -> Proto {
    Proto::new().message(10, Proto::new().bytes(1, name))
}

/// An attribute that is a list of element types.
pub(crate) fn types(numbers: &[u8]) -> Proto {
    Proto::new().message(1, Proto::new().bytes(6, numbers))
}
