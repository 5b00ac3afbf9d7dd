//! A program of PaddlePaddle (.pdmodel): protobuf, written by hand.

use super::{Node, SHAPE};
use crate::answers::Literal;

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    fn int(mut self, field: u64, value: i64) -> Message {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }
    fn float(mut self, field: u64, value: f64) -> Message {
        self.varint(field << 3 | 5);
        self.0.extend((value as f32).to_le_bytes());
        self
    }
    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
    fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }
    fn all(self, field: u64, messages: impl IntoIterator<Item = Message>) -> Message {
        messages.into_iter().fold(self, |m, inner| m.bytes(field, &inner.0))
    }
}

const VERSION: i64 = 2_006_000;

pub(super) fn model(node: &Node<'_>) -> Vec<u8> {
    let (n, m) = (node.answers.inputs.len(), node.answers.outputs.len());
    let names = |name: &str, n: usize| (0..n).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
    let (xs, ys) = (names("x", n), names("y", m));
    let col = |i: usize| Message::default().text(1, "col").int(2, 0).int(3, i as i64);
    let mut ops: Vec<Message> = xs
        .iter()
        .enumerate()
        .map(|(i, x)| operator("feed", vec![("X", "feed")], vec![("Out", x)]).all(4, [col(i)]))
        .collect();
    // X, X1, X2, ... and Out, Out1, ...
    let slots = |first: &str, names: &[String]| -> Vec<(String, String)> {
        let slot = |i: usize| if i == 0 { first.to_string() } else { format!("{first}{i}") };
        names.iter().enumerate().map(|(i, name)| (slot(i), name.clone())).collect()
    };
    let (ins, outs) = (slots("X", &xs), slots("Out", &ys));
    fn lent(list: &[(String, String)]) -> Vec<(&str, &str)> {
        list.iter().map(|(slot, name)| (slot.as_str(), name.as_str())).collect()
    }
    let op = operator(node.op_type, lent(&ins), lent(&outs));
    ops.push(op.all(4, node.attrs.iter().map(|(name, value)| attribute(name, value))));
    for (i, y) in ys.iter().enumerate() {
        ops.push(operator("fetch", vec![("X", y)], vec![("Out", "fetch")]).all(4, [col(i)]));
    }
    let vars = xs.iter().chain(&ys).map(|name| variable(name));
    let block = Message::default().int(1, 0).int(2, -1).all(3, vars).all(4, ops);
    Message::default().all(1, [block]).all(4, [Message::default().int(1, VERSION)]).0
}

fn operator(kind: &str, inputs: Vec<(&str, &str)>, outputs: Vec<(&str, &str)>) -> Message {
    let slot = |(slot, var): (&str, &str)| Message::default().text(1, slot).text(2, var);
    Message::default().all(1, inputs.into_iter().map(slot)).all(2, outputs.into_iter().map(slot)).text(3, kind)
}

// A float variable.
fn variable(name: &str) -> Message {
    let desc = SHAPE.iter().fold(Message::default().int(1, 5), |m, d| m.int(2, *d as i64));
    let ty = Message::default().int(1, 7).all(3, [Message::default().all(1, [desc])]);
    Message::default().text(1, name).all(2, [ty]).int(3, 0)
}

fn attribute(name: &str, value: &Literal) -> Message {
    let a = Message::default().text(1, name);
    match value {
        Literal::Int(i) => match i32::try_from(*i) {
            Ok(_) => a.int(2, 0).int(3, *i),
            Err(_) => a.int(2, 9).int(13, *i),
        },
        Literal::Float(x) => a.int(2, 1).float(4, *x),
        Literal::Str(s) => a.int(2, 2).text(5, s),
        Literal::Ints(v) => v.iter().fold(a.int(2, 11), |m, i| m.int(15, *i)),
        Literal::Floats(v) => v.iter().fold(a.int(2, 4), |m, x| m.float(7, *x)),
        Literal::Strs(v) => v.iter().fold(a.int(2, 5), |m, s| m.text(8, s)),
        Literal::Bool(b) => a.int(2, 6).int(10, i64::from(*b)),
    }
}
