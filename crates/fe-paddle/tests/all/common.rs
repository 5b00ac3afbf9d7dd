//! Programs of a few lines, written by a small encoder of protobuf.

use carafe_fe_paddle::Paddle;
use carafe_frontend::{Content, ReadRequest};
use carafe_graph::Model;
use carafe_tensor::SharedBytes;

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn new() -> Message {
        Message::default()
    }
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    pub(crate) fn int(mut self, field: u64, value: i64) -> Message {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }
    pub(crate) fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
    pub(crate) fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }
    pub(crate) fn float(mut self, field: u64, value: f32) -> Message {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }
    pub(crate) fn message(self, field: u64, inner: &Message) -> Message {
        self.bytes(field, &inner.0)
    }
    pub(crate) fn messages(self, field: u64, all: &[Message]) -> Message {
        all.iter().fold(self, |m, inner| m.message(field, inner))
    }
}

fn desc(dims: &[i64]) -> Message {
    dims.iter().fold(Message::new().int(1, 5), |m, d| m.int(2, *d))
}

/// A float variable.
pub(crate) fn variable(name: &str, dims: &[i64], is_persistable: bool) -> Message {
    let ty = Message::new().int(1, 7).message(3, &Message::new().message(1, &desc(dims)));
    Message::new().text(1, name).message(2, &ty).int(3, i64::from(is_persistable))
}

/// An operator by its slots.
pub(crate) fn operator(kind: &str, inputs: &[(&str, &[&str])], outputs: &[(&str, &[&str])]) -> Message {
    let slot = |(name, vars): &(&str, &[&str])| vars.iter().fold(Message::new().text(1, name), |m, v| m.text(2, v));
    let inputs: Vec<Message> = inputs.iter().map(slot).collect();
    let outputs: Vec<Message> = outputs.iter().map(slot).collect();
    Message::new().messages(1, &inputs).messages(2, &outputs).text(3, kind)
}

/// An attribute that is a whole number.
pub(crate) fn int_attr(name: &str, value: i64) -> Message {
    Message::new().text(1, name).int(2, 0).int(3, value)
}

/// An attribute that is a number.
pub(crate) fn float_attr(name: &str, value: f32) -> Message {
    Message::new().text(1, name).int(2, 1).float(4, value)
}

/// An attribute that is a block.
pub(crate) fn block_attr(name: &str, block: i64) -> Message {
    Message::new().text(1, name).int(2, 8).int(12, block)
}

/// An operator with attributes.
pub(crate) fn with(op: Message, attrs: &[Message]) -> Message {
    op.messages(4, attrs)
}

pub(crate) fn feed(name: &str, col: i64) -> Message {
    with(operator("feed", &[("X", &["feed"])], &[("Out", &[name])]), &[int_attr("col", col)])
}

pub(crate) fn fetch(name: &str, col: i64) -> Message {
    with(operator("fetch", &[("X", &[name])], &[("Out", &["fetch"])]), &[int_attr("col", col)])
}

pub(crate) fn block(index: i64, parent: i64, vars: &[Message], ops: &[Message]) -> Message {
    Message::new().int(1, index).int(2, parent).messages(3, vars).messages(4, ops)
}

pub(crate) fn program(blocks: &[Message]) -> Message {
    Message::new().messages(1, blocks).message(4, &Message::new().int(1, 2_006_000))
}

/// A program from `x` to `y` over vectors of three.
pub(crate) fn single(vars: &[Message], ops: &[Message]) -> Message {
    let vars = [&[variable("x", &[3], false), variable("y", &[3], false)], vars].concat();
    let ops = [&[feed("x", 0)], ops, &[fetch("y", 0)]].concat();
    program(&[block(0, -1, &vars, &ops)])
}

/// The record of a parameter.
pub(crate) fn record(dims: &[i64], values: &[f32]) -> Vec<u8> {
    let desc = desc(dims).0;
    let mut out = vec![0; 16];
    out.extend((desc.len() as i32).to_le_bytes());
    out.extend(desc);
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    out
}

/// Reads a program, and looks whether what was read is sound.
pub(crate) fn read(model: &[u8], weights: Option<&[u8]>) -> Result<Model, String> {
    let bytes = SharedBytes::from_vec(model.to_vec());
    let weights = weights.map(|w| SharedBytes::from_vec(w.to_vec()));
    let mut request = ReadRequest::from_bytes(&bytes);
    request.weights = weights.as_ref().map(Content::Bytes);
    let model = carafe_frontend::read(&Paddle, &request);
    let mut model = model.map_err(|e| e.to_string())?;
    carafe_graph::verify(&model).unwrap_or_else(|e| panic!("not a sound model: {e}"));
    model.infer().unwrap_or_else(|e| panic!("inference fails again: {e}"));
    Ok(model)
}

#[track_caller]
pub(crate) fn check_error(program: &Message, weights: Option<&[u8]>, wanted: &str) {
    let found = read(&program.0, weights).expect_err("the program must be refused");
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}
