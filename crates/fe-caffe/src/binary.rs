//! The bytes of a `.caffemodel` into the tree that its text would give, and the blobs apart from it. A number that the schema
//! does not have is skipped; a field whose bytes do not have the form its type asks for is skipped too, because forks reuse
//! numbers.

use crate::blob::Blob;
use crate::schema::{Coding, FieldKind, FieldType, Schema};
use crate::wire::{Content, Fields, packed_varints};
use carafe_graph::{Error, Result};
use carafe_tensor::SharedBytes;
use carafe_textproto::{Field, MAX_DEPTH, Message, Position, Value};

/// A net out of bytes: its tree, and the blobs of each of its layers in order (`layer` and `layers` apart).
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub tree: Message,
    pub layer_blobs: Vec<Vec<Blob>>,
    pub old_layer_blobs: Vec<Vec<Blob>>,
}

/// Numbers of `NetParameter`.
const LAYER: u32 = 100;
const OLD_LAYER: u32 = 2;

/// Decodes a `NetParameter`.
pub(crate) fn decode(store: &SharedBytes, schema: &Schema) -> Result<Decoded> {
    let mut net = Decoded::default();
    for field in Fields::new(store.as_slice(), 0) {
        let field = field?;
        match (field.number, field.content) {
            (LAYER, Content::Bytes(bytes, at)) => {
                let (tree, blobs) = layer(bytes, at, store, schema, false)?;
                push(&mut net.tree, "layer", Value::Message(tree));
                net.layer_blobs.push(blobs);
            }
            (OLD_LAYER, Content::Bytes(bytes, at)) => {
                let (tree, blobs) = layer(bytes, at, store, schema, true)?;
                push(&mut net.tree, "layers", Value::Message(tree));
                net.old_layer_blobs.push(blobs);
            }
            (number, content) => {
                if let Some(ty) = schema.message("NetParameter").and_then(|m| m.numbered(number)) {
                    put(&mut net.tree, ty, content, schema, 0)?;
                }
            }
        }
    }
    Ok(net)
}

fn layer(
    bytes: &[u8],
    base: usize,
    store: &SharedBytes,
    schema: &Schema,
    is_old: bool,
) -> Result<(Message, Vec<Blob>)> {
    let (blobs_number, message) = if is_old { (6, "V1LayerParameter") } else { (7, "LayerParameter") };
    let mut layer_type = "";
    if !is_old {
        for field in Fields::new(bytes, base) {
            if let (2, Content::Bytes(name, _)) = field.map(|f| (f.number, f.content))? {
                layer_type = std::str::from_utf8(name).unwrap_or("");
            }
        }
    }
    let mut tree = Message::default();
    let mut blobs = vec![];
    for field in Fields::new(bytes, base) {
        let field = field?;
        match (field.number, field.content) {
            (n, Content::Bytes(data, at)) if n == blobs_number => {
                let i = blobs.len();
                let name = || tree.get("name").and_then(Value::as_str).unwrap_or("").to_string();
                blobs.push(Blob::decode(data, at, store).map_err(|e| e.at(format!("layer `{}`, blob {i}", name())))?);
            }
            (number, content) => {
                let ty = match is_old {
                    true => schema.message(message).and_then(|m| m.numbered(number)),
                    false => schema.layer_field_numbered(number, layer_type),
                };
                if let Some(ty) = ty {
                    put(&mut tree, ty, content, schema, 0)?;
                }
            }
        }
    }
    Ok((tree, blobs))
}

fn message(bytes: &[u8], base: usize, name: &str, schema: &Schema, depth: usize) -> Result<Message> {
    if depth > MAX_DEPTH {
        return Err(Error::invalid(format!("messages are nested deeper than {MAX_DEPTH}")));
    }
    let mut tree = Message::default();
    let Some(ty) = schema.message(name) else { return Ok(tree) };
    for field in Fields::new(bytes, base) {
        let field = field?;
        if let Some(ty) = ty.numbered(field.number) {
            put(&mut tree, ty, field.content, schema, depth)?;
        }
    }
    Ok(tree)
}

fn push(tree: &mut Message, name: &str, value: Value) {
    tree.fields.push(Field { name: name.to_string(), at: Position::default(), value });
}

fn put(tree: &mut Message, ty: &FieldType, content: Content<'_>, schema: &Schema, depth: usize) -> Result<()> {
    let one = |content: Content<'_>| -> Result<Option<Value>> {
        Ok(match (&ty.kind, content) {
            (
                FieldKind::Int { signed, bits, coding: coding @ (Coding::Varint | Coding::ZigZag) },
                Content::Varint(n),
            ) => Some(whole(n, *signed, *bits, *coding == Coding::ZigZag)),
            (FieldKind::Int { signed, bits: 64, coding: Coding::Fixed }, Content::Fixed64(b)) => {
                Some(whole(u64::from_le_bytes(b), *signed, 64, false))
            }
            (FieldKind::Int { signed, bits: 32, coding: Coding::Fixed }, Content::Fixed32(b)) => {
                Some(whole(u64::from(u32::from_le_bytes(b)), *signed, 32, false))
            }
            (FieldKind::Bool, Content::Varint(n)) => Some(Value::Int(i128::from(n != 0))),
            (FieldKind::Enum(name), Content::Varint(n)) => Some(match schema.word(name, n as i64) {
                Some(word) => Value::Word(word.to_string()),
                None => Value::Int(i128::from(n as i64)),
            }),
            (FieldKind::Float, Content::Fixed32(b)) => Some(float(f32::from_le_bytes(b))),
            (FieldKind::Double, Content::Fixed64(b)) => Some(Value::Float(f64::from_le_bytes(b))),
            (FieldKind::Str, Content::Bytes(b, _)) => Some(Value::Str(b.to_vec())),
            (FieldKind::Message(name), Content::Bytes(b, at)) => {
                Some(Value::Message(message(b, at, name, schema, depth + 1)?))
            }
            _ => None,
        })
    };
    if let Some(value) = one(content)? {
        push(tree, &ty.name, value);
    } else if let (true, Content::Bytes(bytes, at)) = (ty.repeated, content) {
        let mut list = vec![];
        for content in packed(&ty.kind, bytes, at)? {
            list.extend(one(content)?.map(|v| (Position::default(), v)));
        }
        push(tree, &ty.name, Value::List(list));
    }
    Ok(())
}

fn packed<'b>(kind: &FieldKind, bytes: &'b [u8], at: usize) -> Result<Vec<Content<'b>>> {
    let four = |b: &[u8]| Content::Fixed32([b[0], b[1], b[2], b[3]]);
    let eight = |b: &[u8]| Content::Fixed64([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    Ok(match kind {
        FieldKind::Float | FieldKind::Int { bits: 32, coding: Coding::Fixed, .. } => {
            bytes.chunks_exact(4).map(four).collect()
        }
        FieldKind::Double | FieldKind::Int { coding: Coding::Fixed, .. } => bytes.chunks_exact(8).map(eight).collect(),
        FieldKind::Str | FieldKind::Message(_) => vec![],
        _ => packed_varints(bytes, at)?.into_iter().map(Content::Varint).collect(),
    })
}

fn whole(n: u64, signed: bool, bits: u32, zigzag: bool) -> Value {
    Value::Int(match (signed, bits) {
        _ if zigzag => i128::from((n >> 1) as i64 ^ -((n & 1) as i64)),
        (true, 32) => i128::from(n as i32),
        (true, _) => i128::from(n as i64),
        (false, 32) => i128::from(n as u32),
        (false, _) => i128::from(n),
    })
}

// By its shortest digits, so that 0.1 stays 0.1.
fn float(x: f32) -> Value {
    Value::Float(x.to_string().parse().unwrap_or(f64::from(x)))
}
