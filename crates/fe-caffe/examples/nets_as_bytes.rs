//! Writes every `.prototxt` of a folder, with the blobs of the `.caffemodel` of its name if there is one, as one binary net:
//! `nets_as_bytes FROM TO`. These are the seeds of a fuzz target.

use carafe_fe_caffe::{FieldKind, Schema};
use carafe_textproto::{Message, Value, parse_text};
use std::collections::HashMap;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = &args[..] else { return Err("usage: nets_as_bytes FROM TO".into()) };
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "prototxt") {
            continue;
        }
        let net = parse_text(&std::fs::read_to_string(&path)?)?;
        let stored = std::fs::read(path.with_extension("caffemodel")).unwrap_or_default();
        let mut out = vec![];
        put(&net, "NetParameter", &blobs(&stored).unwrap_or_default(), &mut out);
        let name = path.file_stem().unwrap_or_default();
        std::fs::write(Path::new(to).join(name), out)?;
    }
    Ok(())
}

// Blobs of layers by their names.
fn blobs(model: &[u8]) -> Option<HashMap<String, Vec<Vec<u8>>>> {
    let mut all = HashMap::new();
    for (number, layer) in fields(model)? {
        let (name, blob) = match number {
            100 => (1, 7),
            2 => (4, 6),
            _ => continue,
        };
        let inner = fields(layer)?;
        let found = inner.iter().find(|(n, _)| *n == name)?.1;
        let blobs = inner.iter().filter(|(n, _)| *n == blob).map(|(_, b)| b.to_vec()).collect();
        all.entry(String::from_utf8_lossy(found).into_owned()).or_insert(blobs);
    }
    Some(all)
}

// The fields of a message that have a length.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut all = vec![];
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        match key & 7 {
            0 => drop(varint(&mut bytes)?),
            1 => drop(bytes.split_off(..8)?),
            5 => drop(bytes.split_off(..4)?),
            2 => {
                let n = usize::try_from(varint(&mut bytes)?).ok()?;
                all.push((key >> 3, bytes.split_off(..n)?));
            }
            _ => return None,
        }
    }
    Some(all)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for i in 0..10 {
        let b = *bytes.split_off_first()?;
        value |= u64::from(b & 0x7f) << (7 * i).min(63);
        if b & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend(bytes);
}

// What the schema does not know is left out.
fn put(message: &Message, ty: &str, blobs: &HashMap<String, Vec<Vec<u8>>>, out: &mut Vec<u8>) {
    let schema = Schema::built_in();
    let Some(known) = schema.message(ty) else { return };
    for field in &message.fields {
        let Some(f) = known.named(&field.name) else { continue };
        for (_, value) in message.all(&field.name).filter(|_| first(message, field)) {
            match (&f.kind, value) {
                (FieldKind::Int { .. } | FieldKind::Bool, v) => {
                    let n = v.as_i64().or(v.as_bool().map(i64::from)).unwrap_or(0);
                    put_varint(u64::from(f.number) << 3, out);
                    put_varint(n as u64, out);
                }
                (FieldKind::Enum(name), v) => {
                    let words = schema.enums.get(name).map(|e| &e.values[..]).unwrap_or(&[]);
                    let by_word = words.iter().find(|(w, _)| Some(w.as_str()) == v.as_word()).map(|(_, n)| *n);
                    put_varint(u64::from(f.number) << 3, out);
                    put_varint(by_word.or(v.as_i64()).unwrap_or(0) as u64, out);
                }
                (FieldKind::Float, v) => {
                    put_varint(u64::from(f.number) << 3 | 5, out);
                    out.extend((v.as_f64().unwrap_or(0.0) as f32).to_le_bytes());
                }
                (FieldKind::Double, v) => {
                    put_varint(u64::from(f.number) << 3 | 1, out);
                    out.extend(v.as_f64().unwrap_or(0.0).to_le_bytes());
                }
                (FieldKind::Str, Value::Str(text)) => put_bytes(f.number, text, out),
                (FieldKind::Message(inner), Value::Message(m)) => {
                    let mut bytes = vec![];
                    put(m, inner, blobs, &mut bytes);
                    put_bytes(f.number, &bytes, out);
                }
                _ => {}
            }
        }
    }
    let number = match ty {
        "LayerParameter" => 7,
        "V1LayerParameter" => 6,
        _ => return,
    };
    let name = message.get("name").and_then(Value::as_str).unwrap_or("");
    blobs.get(name).into_iter().flatten().for_each(|b| put_bytes(number, b, out));
}

// Repeated fields are written at the first of them.
fn first(message: &Message, field: &carafe_textproto::Field) -> bool {
    message.fields.iter().find(|f| f.name == field.name).is_some_and(|f| std::ptr::eq(f, field))
}
