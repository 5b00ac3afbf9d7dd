//! A TensorFlow Lite file with a custom operator: a flatbuffer, its options a flexbuffer, both written by hand.

use super::{Node, SHAPE};
use crate::answers::Literal;

/// A field of a table.
enum Field {
    /// The bytes of a number.
    Number(Vec<u8>),
    /// Elements, and the bytes of all of them.
    Vector(usize, Vec<u8>),
    Tables(Vec<Table>),
}

/// A table: fields by their numbers.
#[derive(Default)]
struct Table(Vec<(usize, Field)>);

impl Table {
    fn with(mut self, id: usize, field: Field) -> Table {
        self.0.push((id, field));
        self
    }
    fn byte(self, id: usize, value: u8) -> Table {
        self.with(id, Field::Number(vec![value]))
    }
    fn int(self, id: usize, value: i32) -> Table {
        self.with(id, Field::Number(value.to_le_bytes().to_vec()))
    }
    fn bytes(self, id: usize, bytes: &[u8]) -> Table {
        self.with(id, Field::Vector(bytes.len(), bytes.to_vec()))
    }
    fn text(self, id: usize, text: &str) -> Table {
        // Texts end with a zero byte that is not counted.
        self.with(id, Field::Vector(text.len(), [text.as_bytes(), &[0]].concat()))
    }
    fn ints(self, id: usize, values: impl IntoIterator<Item = usize>) -> Table {
        let bytes: Vec<u8> = values.into_iter().flat_map(|v| (v as i32).to_le_bytes()).collect();
        self.with(id, Field::Vector(bytes.len() / 4, bytes))
    }
    fn tables(self, id: usize, tables: Vec<Table>) -> Table {
        self.with(id, Field::Tables(tables))
    }

    // Its position: the vtable stands in front of it, what it points to behind it.
    fn write(&self, out: &mut Vec<u8>) -> usize {
        align(out, 2);
        let n = self.0.iter().map(|(id, _)| id + 1).max().unwrap_or(0);
        // The table behind the vtable begins at a multiple of 4, its slots of 8 bytes behind 4 more.
        while (out.len() + 4 + 2 * n) % 8 != 4 {
            out.push(0);
        }
        let vtable = out.len();
        let mut offsets = vec![0u16; n];
        for (slot, (id, _)) in self.0.iter().enumerate() {
            offsets[*id] = (4 + 8 * slot) as u16;
        }
        let head = [(4 + 2 * n) as u16, (4 + 8 * self.0.len()) as u16];
        out.extend(head.into_iter().chain(offsets).flat_map(u16::to_le_bytes));
        let at = out.len();
        out.extend(((at - vtable) as i32).to_le_bytes());
        let first = out.len();
        out.resize(first + 8 * self.0.len(), 0);
        for (i, (_, field)) in self.0.iter().enumerate() {
            let slot = first + 8 * i;
            let target = match field {
                Field::Number(bytes) => {
                    out[slot..slot + bytes.len()].copy_from_slice(bytes);
                    continue;
                }
                Field::Vector(n, bytes) => vector(*n, bytes, out),
                Field::Tables(tables) => {
                    let at = vector(tables.len(), &vec![0; 4 * tables.len()], out);
                    for (i, table) in tables.iter().enumerate() {
                        let target = table.write(out);
                        point(out, at + 4 + 4 * i, target);
                    }
                    at
                }
            };
            point(out, slot, target);
        }
        at
    }
}

fn align(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

fn vector(n: usize, bytes: &[u8], out: &mut Vec<u8>) -> usize {
    align(out, 4);
    let at = out.len();
    out.extend((n as u32).to_le_bytes());
    out.extend(bytes);
    at
}

fn point(out: &mut [u8], slot: usize, target: usize) {
    out[slot..slot + 4].copy_from_slice(&((target - slot) as u32).to_le_bytes());
}

/// BuiltinOperator.CUSTOM.
const CUSTOM: u8 = 32;

pub(super) fn model(node: &Node<'_>) -> Vec<u8> {
    let (n, m) = (node.answers.inputs.len(), node.answers.outputs.len());
    let names = (0..n).map(|i| format!("x{i}")).chain((0..m).map(|i| format!("y{i}")));
    let tensors = names.map(|name| Table::default().ints(0, SHAPE.iter().copied()).int(2, 0).text(3, &name)).collect();
    let op = Table::default().int(0, 0).ints(1, 0..n).ints(2, n..n + m).bytes(5, &options(&node.attrs)).byte(6, 0);
    let graph = Table::default().tables(0, tensors).ints(1, 0..n).ints(2, n..n + m).tables(3, vec![op]);
    let code = Table::default().byte(0, CUSTOM).text(1, node.op_type).int(2, 1).int(3, i32::from(CUSTOM));
    let root =
        Table::default().int(0, 3).tables(1, vec![code]).tables(2, vec![graph]).tables(4, vec![Table::default()]);
    let mut out = b"\0\0\0\0TFL3".to_vec();
    let at = root.write(&mut out);
    out[..4].copy_from_slice(&(at as u32).to_le_bytes());
    out
}

// Types of flexbuffers, each with 8 bytes a value.
const WIDE: u8 = 3;
const INT: u8 = 1 << 2 | WIDE;
const FLOAT: u8 = 3 << 2 | WIDE;
const STRING: u8 = 5 << 2 | WIDE;
const MAP: u8 = 9 << 2 | WIDE;
const VECTOR: u8 = 10 << 2 | WIDE;
const INTS: u8 = 11 << 2 | WIDE;
const FLOATS: u8 = 13 << 2 | WIDE;
const BOOL: u8 = 26 << 2 | WIDE;

/// Attributes as a map.
fn options(attrs: &[(String, Literal)]) -> Vec<u8> {
    let mut attrs: Vec<_> = attrs.iter().collect();
    carafe_graph::sort_by(&mut attrs, |a, b| a.0.cmp(&b.0));
    let mut out = vec![];
    let keys: Vec<usize> = attrs
        .iter()
        .map(|(name, _)| {
            let at = out.len();
            out.extend(name.as_bytes());
            out.push(0);
            at
        })
        .collect();
    let values: Vec<(u8, Flex)> = attrs.iter().map(|(_, value)| flex(value, &mut out)).collect();
    align(&mut out, 8);
    out.extend((keys.len() as u64).to_le_bytes());
    let keys_at = out.len();
    keys.iter().for_each(|key| offset(*key, &mut out));
    offset(keys_at, &mut out);
    out.extend(8u64.to_le_bytes());
    let map = untyped(&values, &mut out);
    align(&mut out, 8);
    offset(map, &mut out);
    out.extend([MAP, 8]);
    out
}

/// What stands in a slot.
enum Flex {
    Bits(u64),
    At(usize),
}

fn flex(value: &Literal, out: &mut Vec<u8>) -> (u8, Flex) {
    let mut list = |bits: Vec<u64>| {
        align(out, 8);
        out.extend((bits.len() as u64).to_le_bytes());
        let at = out.len();
        out.extend(bits.into_iter().flat_map(u64::to_le_bytes));
        Flex::At(at)
    };
    match value {
        Literal::Int(i) => (INT, Flex::Bits(*i as u64)),
        Literal::Float(x) => (FLOAT, Flex::Bits(x.to_bits())),
        Literal::Bool(b) => (BOOL, Flex::Bits(u64::from(*b))),
        Literal::Ints(v) => (INTS, list(v.iter().map(|i| *i as u64).collect())),
        Literal::Floats(v) => (FLOATS, list(v.iter().map(|x| x.to_bits()).collect())),
        Literal::Str(s) => (STRING, text(s, out)),
        Literal::Strs(v) => {
            let items: Vec<(u8, Flex)> = v.iter().map(|s| (STRING, text(s, out))).collect();
            align(out, 8);
            (VECTOR, Flex::At(untyped(&items, out)))
        }
    }
}

fn text(s: &str, out: &mut Vec<u8>) -> Flex {
    align(out, 8);
    out.extend((s.len() as u64).to_le_bytes());
    let at = out.len();
    out.extend(s.as_bytes());
    out.push(0);
    Flex::At(at)
}

// The size, the values, their types. Answers where the values begin.
fn untyped(items: &[(u8, Flex)], out: &mut Vec<u8>) -> usize {
    out.extend((items.len() as u64).to_le_bytes());
    let at = out.len();
    for (_, value) in items {
        match value {
            Flex::Bits(bits) => out.extend(bits.to_le_bytes()),
            Flex::At(target) => offset(*target, out),
        }
    }
    out.extend(items.iter().map(|(ty, _)| ty));
    at
}

// Offsets go back from where they stand.
fn offset(target: usize, out: &mut Vec<u8>) {
    out.extend(((out.len() - target) as u64).to_le_bytes());
}
