//! The bytes of a `.caffemodel` into the tree that its text would give, and the blobs apart from it. A number that the schema
//! does not have is left out, and so is a field whose bytes do not have the form its type asks for, because forks reuse
//! numbers; what was left out is remembered with its layer (`undeclared.rs`).

use crate::blob::Blob;
use crate::schema::{Coding, FieldKind, FieldType, Schema};
use crate::undeclared::Undeclared;
use crate::wire::{Content, Fields, packed_varints};
use carafe_graph::{Error, Result};
use carafe_tensor::SharedBytes;
use carafe_textproto::{Field, MAX_DEPTH, Message, Position, Value};

/// A net out of bytes: its tree, and what each of its layers has beside it, in order (`layer` and `layers` apart).
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub tree: Message,
    pub layers: Vec<Beside>,
    pub old_layers: Vec<Beside>,
    /// What the net itself says that no schema has.
    pub undeclared: Undeclared,
}

/// What a layer has beside its tree.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub blobs: Vec<Blob>,
    pub undeclared: Undeclared,
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
                let (tree, beside) = layer(bytes, at, store, schema, false)?;
                push(&mut net.tree, "layer", Value::Message(tree));
                net.layers.push(beside);
            }
            (OLD_LAYER, Content::Bytes(bytes, at)) => {
                let (tree, beside) = layer(bytes, at, store, schema, true)?;
                push(&mut net.tree, "layers", Value::Message(tree));
                net.old_layers.push(beside);
            }
            (number, content) => {
                let ty = schema.message("NetParameter").and_then(|m| m.numbered(number));
                Reader { schema, undeclared: &mut net.undeclared }.field(&mut net.tree, ty, number, content, "", 0)?;
            }
        }
    }
    Ok(net)
}

fn layer(bytes: &[u8], base: usize, store: &SharedBytes, schema: &Schema, is_old: bool) -> Result<(Message, Beside)> {
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
    let Beside { mut blobs, mut undeclared } = Beside::default();
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
                Reader { schema, undeclared: &mut undeclared }.field(&mut tree, ty, number, content, "", 0)?;
            }
        }
    }
    for (i, blob) in blobs.iter().enumerate() {
        blob.undeclared.iter().for_each(|n| undeclared.number(&format!("blobs[{i}]"), *n));
    }
    Ok((tree, Beside { blobs, undeclared }))
}

fn push(tree: &mut Message, name: &str, value: Value) {
    tree.fields.push(Field { name: name.to_string(), at: Position::default(), value });
}

/// Reads fields by a schema.
struct Reader<'r> {
    schema: &'r Schema,
    undeclared: &'r mut Undeclared,
}

impl Reader<'_> {
    // `path` is the message that the field stands in, as seen from the layer.
    fn field(
        &mut self,
        tree: &mut Message,
        ty: Option<&FieldType>,
        number: u32,
        content: Content<'_>,
        path: &str,
        depth: usize,
    ) -> Result<()> {
        match ty {
            None => self.undeclared.number(path, number),
            Some(ty) => {
                if !self.put(tree, ty, content, path, depth)? {
                    self.undeclared.other_form(path, number, &ty.name);
                }
            }
        }
        Ok(())
    }

    fn message(&mut self, bytes: &[u8], base: usize, name: &str, path: &str, depth: usize) -> Result<Message> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("messages are nested deeper than {MAX_DEPTH}")));
        }
        let mut tree = Message::default();
        let schema = self.schema;
        let ty = schema.message(name);
        for field in Fields::new(bytes, base) {
            let field = field?;
            let known = ty.and_then(|ty| ty.numbered(field.number));
            self.field(&mut tree, known, field.number, field.content, path, depth)?;
        }
        Ok(tree)
    }

    // Whether the content has the form of the type.
    fn put(
        &mut self,
        tree: &mut Message,
        ty: &FieldType,
        content: Content<'_>,
        path: &str,
        depth: usize,
    ) -> Result<bool> {
        if let (FieldKind::Message(name), Content::Bytes(b, at)) = (&ty.kind, content) {
            let path = if path.is_empty() { ty.name.clone() } else { format!("{path}.{}", ty.name) };
            let inner = self.message(b, at, name, &path, depth + 1)?;
            push(tree, &ty.name, Value::Message(inner));
            return Ok(true);
        }
        if let Some(value) = single(&ty.kind, content, self.schema) {
            push(tree, &ty.name, value);
            return Ok(true);
        }
        let (true, Content::Bytes(bytes, at)) = (ty.repeated, content) else { return Ok(false) };
        let packed = packed(&ty.kind, bytes, at)?;
        let n = packed.len();
        let list: Vec<_> = packed.into_iter().filter_map(|c| single(&ty.kind, c, self.schema)).collect();
        let is_whole = list.len() == n && (n > 0 || bytes.is_empty());
        push(tree, &ty.name, Value::List(list.into_iter().map(|v| (Position::default(), v)).collect()));
        Ok(is_whole)
    }
}

fn single(kind: &FieldKind, content: Content<'_>, schema: &Schema) -> Option<Value> {
    Some(match (kind, content) {
        (FieldKind::Int { signed, bits, coding: coding @ (Coding::Varint | Coding::ZigZag) }, Content::Varint(n)) => {
            whole(n, *signed, *bits, *coding == Coding::ZigZag)
        }
        (FieldKind::Int { signed, bits: 64, coding: Coding::Fixed }, Content::Fixed64(b)) => {
            whole(u64::from_le_bytes(b), *signed, 64, false)
        }
        (FieldKind::Int { signed, bits: 32, coding: Coding::Fixed }, Content::Fixed32(b)) => {
            whole(u64::from(u32::from_le_bytes(b)), *signed, 32, false)
        }
        (FieldKind::Bool, Content::Varint(n)) => Value::Int(i128::from(n != 0)),
        (FieldKind::Enum(name), Content::Varint(n)) => match schema.word(name, n as i64) {
            Some(word) => Value::Word(word.to_string()),
            None => Value::Int(i128::from(n as i64)),
        },
        (FieldKind::Float, Content::Fixed32(b)) => float(f32::from_le_bytes(b)),
        (FieldKind::Double, Content::Fixed64(b)) => Value::Float(f64::from_le_bytes(b)),
        (FieldKind::Str, Content::Bytes(b, _)) => Value::Str(b.to_vec()),
        _ => return None,
    })
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
