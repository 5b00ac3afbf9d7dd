//! Changes that keep a protobuf message well formed: plain byte changes nearly always break a length. One field becomes a
//! value that hurts, that of another field, goes away or comes twice.

/// Numbers that have a meaning somewhere, or just outside of it.
const NUMBERS: &[i64] = &[
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    11,
    13,
    16,
    17,
    21,
    26,
    64,
    255,
    1000,
    65536,
    1_000_000,
    -1,
    -2,
    -3,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    1 << 40,
    i64::MAX,
    i64::MIN,
];

/// Larger field numbers speak against a message. Layers of Caffe have parameters up to 224.
const LARGEST_FIELD: u64 = 255;

/// One field: its key as found, and its content.
#[derive(Clone)]
struct Field {
    key: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Varint(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// The changed message; `None` when the bytes are none.
pub fn mutate(data: &[u8], words: &[&str], seed: u32) -> Option<Vec<u8>> {
    let mut random = Random(u64::from(seed) | 1);
    let mut fields = parse(data, 0)?;
    for _ in 0..1 + random.below(3) {
        let total = count(&fields);
        if total == 0 {
            return None;
        }
        let donor = nth(&fields, &mut random.below(total)).cloned();
        let target = random.below(total);
        change(&mut fields, &mut { target }, donor, words, &mut random);
    }
    let mut out = vec![];
    write(&fields, &mut out);
    Some(out)
}

fn change(
    fields: &mut Vec<Field>,
    target: &mut usize,
    donor: Option<Field>,
    words: &[&str],
    random: &mut Random,
) -> bool {
    for i in 0..fields.len() {
        if *target == 0 {
            match random.below(10) {
                0 => drop(fields.remove(i)),
                1 => fields.insert(i, fields[i].clone()),
                2 => fields.insert(i, donor.unwrap_or_else(|| fields[i].clone())),
                3 => {
                    let other = random.below(fields.len());
                    fields.swap(i, other);
                }
                4 | 5 => fields[i].content = donor.map_or(Content::Varint(0), |d| d.content),
                _ => replace(&mut fields[i].content, words, random),
            }
            fields.iter_mut().skip(i).take(1).for_each(retype);
            return true;
        }
        *target -= 1;
        if let Content::Message(inner) = &mut fields[i].content
            && change(inner, target, donor.clone(), words, random)
        {
            return true;
        }
    }
    false
}

fn replace(content: &mut Content, words: &[&str], random: &mut Random) {
    match content {
        Content::Varint(n) => {
            *n = match random.below(4) {
                0 => n.wrapping_add(1),
                1 => n.wrapping_sub(1),
                _ => NUMBERS[random.below(NUMBERS.len())] as u64,
            }
        }
        Content::Fixed(bytes) => bytes.iter_mut().for_each(|b| *b = random.below(256) as u8),
        Content::Bytes(bytes) => match random.below(5) {
            0 => bytes.truncate(bytes.len() / 2),
            1 => bytes.extend_from_within(..),
            2 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)];
            }
            _ if !words.is_empty() => *bytes = words[random.below(words.len())].into(),
            _ => bytes.clear(),
        },
        Content::Message(fields) => {
            let half = fields.len() / 2;
            match random.below(2) {
                0 => fields.truncate(half),
                _ => fields.extend_from_within(..half.min(8)),
            }
        }
    }
}

// The wire type follows the content.
fn retype(field: &mut Field) {
    let kind = match &field.content {
        Content::Varint(_) => 0,
        Content::Fixed(bytes) if bytes.len() == 8 => 1,
        Content::Fixed(_) => 5,
        Content::Bytes(_) | Content::Message(_) => 2,
    };
    field.key = field.key >> 3 << 3 | kind;
}

fn parse(mut data: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = vec![];
    while !data.is_empty() {
        let key = varint(&mut data)?;
        if key >> 3 == 0 || key >> 3 > LARGEST_FIELD {
            return None;
        }
        let content = match key & 7 {
            0 => Content::Varint(varint(&mut data)?),
            1 => Content::Fixed(data.split_off(..8)?.to_vec()),
            5 => Content::Fixed(data.split_off(..4)?.to_vec()),
            2 => {
                let n = usize::try_from(varint(&mut data)?).ok()?;
                let bytes = data.split_off(..n)?;
                match parse(bytes, depth + 1).filter(|f| depth < 40 && !f.is_empty()) {
                    Some(inner) => Content::Message(inner),
                    None => Content::Bytes(bytes.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push(Field { key, content });
    }
    Some(fields)
}

fn write(fields: &[Field], out: &mut Vec<u8>) {
    for f in fields {
        put_varint(f.key, out);
        match &f.content {
            Content::Varint(n) => put_varint(*n, out),
            Content::Fixed(bytes) => out.extend(bytes),
            Content::Bytes(bytes) => {
                put_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
            Content::Message(inner) => {
                let mut bytes = vec![];
                write(inner, &mut bytes);
                put_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
        }
    }
}

fn count(fields: &[Field]) -> usize {
    let inner = |f: &Field| if let Content::Message(inner) = &f.content { count(inner) } else { 0 };
    fields.iter().map(|f| 1 + inner(f)).sum()
}

fn nth<'f>(fields: &'f [Field], n: &mut usize) -> Option<&'f Field> {
    for f in fields {
        if *n == 0 {
            return Some(f);
        }
        *n -= 1;
        if let Content::Message(inner) = &f.content
            && let Some(found) = nth(inner, n)
        {
            return Some(found);
        }
    }
    None
}

fn varint(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for i in 0..10 {
        let b = *data.split_off_first()?;
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

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}
