//! Flexbuffers: the options of custom operators. A map becomes attributes of the node: `a` for a value, `a.b` for a value of a
//! map inside, `a.0` for an element of a vector that is no plain list. Bytes that are no flexbuffer give nothing.

use carafe_graph::{AttrMap, AttrValue};

/// Maps and vectors inside of each other deeper than this are left out.
const MAX_DEPTH: usize = 16;
/// More values than this are no options of an operator.
const MAX_VALUES: usize = 4096;
/// A longer key is no name.
const MAX_KEY: usize = 256;
/// Values may share their bytes; this many are taken in all, beside those that the buffer has.
const MORE_BYTES: usize = 64 * 1024;

/// A value of a flexbuffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Flex {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Blob(Vec<u8>),
    Vector(Vec<Flex>),
    Map(Vec<(String, Flex)>),
}

/// The value of a whole buffer; `None` when it is no flexbuffer.
pub(crate) fn read(bytes: &[u8]) -> Option<Flex> {
    let (&width, rest) = bytes.split_last()?;
    let (&packed, rest) = rest.split_last()?;
    let width = usize::from(width);
    if !matches!(width, 1 | 2 | 4 | 8) {
        return None;
    }
    let mut reader = Reader { bytes: rest, left: MAX_VALUES, left_bytes: rest.len().saturating_add(MORE_BYTES) };
    let at = rest.len().checked_sub(width)?;
    reader.value(at, width, packed, 0)
}

/// The attributes that a value stands for: those of a map, else none.
pub(crate) fn attributes(value: &Flex, into: &mut AttrMap) {
    if let Flex::Map(entries) = value {
        entries.iter().for_each(|(key, value)| set(into, key, value));
    }
}

fn set(into: &mut AttrMap, name: &str, value: &Flex) {
    match value {
        Flex::Map(entries) => entries.iter().for_each(|(key, value)| set(into, &format!("{name}.{key}"), value)),
        Flex::Vector(items) => match list(items) {
            Some(list) => into.set(name, list),
            None => items.iter().enumerate().for_each(|(i, value)| set(into, &format!("{name}.{i}"), value)),
        },
        Flex::Null => {}
        Flex::Bool(b) => into.set(name, AttrValue::Bool(*b)),
        Flex::Int(i) => into.set(name, AttrValue::Int(*i)),
        Flex::Float(x) => into.set(name, AttrValue::Float(*x)),
        Flex::Str(s) => into.set(name, AttrValue::Str(s.clone())),
        Flex::Blob(bytes) => into.set(name, AttrValue::Ints(bytes.iter().map(|b| i64::from(*b)).collect())),
    }
}

// A vector whose elements are of one kind.
fn list(items: &[Flex]) -> Option<AttrValue> {
    let ints = || {
        items.iter().map(|i| match i {
            Flex::Int(i) => Some(*i),
            Flex::Bool(b) => Some(i64::from(*b)),
            _ => None,
        })
    };
    let floats = || {
        items.iter().map(|i| match i {
            Flex::Float(x) => Some(*x),
            Flex::Int(i) => Some(*i as f64),
            _ => None,
        })
    };
    let strings = || {
        items.iter().map(|i| match i {
            Flex::Str(s) => Some(s.clone()),
            _ => None,
        })
    };
    let ints = ints().collect::<Option<Vec<_>>>().map(AttrValue::Ints);
    let floats = || floats().collect::<Option<Vec<_>>>().map(AttrValue::Floats);
    ints.or_else(floats).or_else(|| strings().collect::<Option<Vec<_>>>().map(AttrValue::Strs))
}

struct Reader<'a> {
    bytes: &'a [u8],
    left: usize,
    left_bytes: usize,
}

impl Reader<'_> {
    // A number of `width` bytes, its sign not looked at.
    fn unsigned(&self, at: usize, width: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
    fn signed(&self, at: usize, width: usize) -> Option<i64> {
        let shift = 64 - 8 * width as u32;
        Some((self.unsigned(at, width)? << shift) as i64 >> shift)
    }
    fn float(&self, at: usize, width: usize) -> Option<f64> {
        let bits = self.unsigned(at, width)?;
        match width {
            4 => Some(f64::from(f32::from_bits(bits as u32))),
            8 => Some(f64::from_bits(bits)),
            2 => Some(carafe_tensor::f16::from_bits(bits as u16).to_f64()),
            _ => None,
        }
    }
    // Where the offset at `at` points: backwards.
    fn follow(&self, at: usize, width: usize) -> Option<usize> {
        at.checked_sub(usize::try_from(self.unsigned(at, width)?).ok()?)
    }
    fn count(&self, at: usize, width: usize) -> Option<usize> {
        usize::try_from(self.unsigned(at.checked_sub(width)?, width)?).ok().filter(|n| *n <= self.bytes.len())
    }
    fn key(&mut self, at: usize) -> Option<String> {
        let rest = self.bytes.get(at..)?;
        let end = rest.iter().take(MAX_KEY).position(|b| *b == 0)?;
        self.spend(end)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.left_bytes = self.left_bytes.checked_sub(bytes)?;
        Some(())
    }

    // The value whose slot of `width` bytes is at `at`; `packed` is its type and the width of what it points to.
    fn value(&mut self, at: usize, width: usize, packed: u8, depth: usize) -> Option<Flex> {
        self.left = self.left.checked_sub(1)?;
        let (kind, inner) = (packed >> 2, 1usize << (packed & 3));
        Some(match kind {
            0 => Flex::Null,
            1 => Flex::Int(self.signed(at, width)?),
            2 => Flex::Int(self.unsigned(at, width)? as i64),
            3 => Flex::Float(self.float(at, width)?),
            26 => Flex::Bool(self.unsigned(at, width)? != 0),
            _ => {
                let to = self.follow(at, width)?;
                match kind {
                    4 => Flex::Str(self.key(to)?),
                    5 | 25 => {
                        let bytes = self.bytes.get(to..to.checked_add(self.count(to, inner)?)?)?;
                        self.spend(bytes.len())?;
                        match kind {
                            // What is no text is bytes that a writer took for one.
                            5 => match std::str::from_utf8(bytes) {
                                Ok(text) => Flex::Str(text.to_string()),
                                Err(_) => Flex::Blob(bytes.to_vec()),
                            },
                            _ => Flex::Blob(bytes.to_vec()),
                        }
                    }
                    6 => Flex::Int(self.signed(to, inner)?),
                    7 => Flex::Int(self.unsigned(to, inner)? as i64),
                    8 => Flex::Float(self.float(to, inner)?),
                    9 => self.map(to, inner, depth + 1)?,
                    10 => Flex::Vector(self.vector(to, inner, depth + 1)?),
                    11..=15 | 36 => {
                        let element = if kind == 36 { 26 } else { kind - 10 };
                        let count = self.count(to, inner)?;
                        self.typed(to, inner, element, count, depth + 1)?
                    }
                    16..=24 => {
                        let (element, count) = ((kind - 16) % 3 + 1, usize::from((kind - 16) / 3 + 2));
                        self.typed(to, inner, element, count, depth + 1)?
                    }
                    _ => return None,
                }
            }
        })
    }

    fn typed(&mut self, at: usize, width: usize, kind: u8, count: usize, depth: usize) -> Option<Flex> {
        // Strings of a typed vector have no width of their own; they are short.
        let packed = kind << 2;
        let items = (0..count).map(|i| self.value(at + i * width, width, packed, depth));
        items.collect::<Option<Vec<_>>>().map(Flex::Vector)
    }

    fn vector(&mut self, at: usize, width: usize, depth: usize) -> Option<Vec<Flex>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let count = self.count(at, width)?;
        let types = at.checked_add(count.checked_mul(width)?)?;
        let mut items = vec![];
        for i in 0..count {
            let packed = *self.bytes.get(types + i)?;
            items.push(self.value(at + i * width, width, packed, depth)?);
        }
        Some(items)
    }

    fn map(&mut self, at: usize, width: usize, depth: usize) -> Option<Flex> {
        // In front of the count: where the keys are, and the width of their offsets.
        let keys = self.follow(at.checked_sub(3 * width)?, width)?;
        let key_width = usize::try_from(self.unsigned(at.checked_sub(2 * width)?, width)?).ok()?;
        let values = self.vector(at, width, depth)?;
        let mut entries = vec![];
        for (i, value) in values.into_iter().enumerate() {
            let slot = keys.checked_add(i.checked_mul(key_width)?)?;
            let key = self.follow(slot, key_width)?;
            entries.push((self.key(key)?, value));
        }
        Some(Flex::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // {"a": 1, "b": 2.5, "c": [1, 2, 3], "d": {"e": "text"}, "f": true}, written by the flatbuffers package of Python.
    const SAMPLE: &[u8] = include_bytes!("../tests/fixtures/options.flexbuffer");

    #[test]
    fn a_map_becomes_attributes() {
        let mut attrs = AttrMap::new();
        attributes(&read(SAMPLE).unwrap(), &mut attrs);
        let all: Vec<String> = attrs.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        assert_eq!(all.join("; "), "a = 1; b = 2.5; c = [1, 2, 3]; d.e = \"text\"; f = true");
    }

    #[test]
    fn damaged_bytes_give_a_value_or_nothing() {
        for cut in 0..SAMPLE.len() {
            read(&SAMPLE[..cut]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = SAMPLE.to_vec();
                bytes[cut] = value;
                read(&bytes);
            }
        }
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn values_that_share_their_bytes_are_limited() {
        // A vector of 200 strings, all of them the same 10,000 bytes.
        let (text, n) = (10_000u16, 200u16);
        let mut bytes = text.to_le_bytes().to_vec();
        bytes.resize(2 + usize::from(text), b'a');
        bytes.extend(n.to_le_bytes());
        let first = bytes.len() as u16;
        bytes.extend((0..n).flat_map(|i| (first + 2 * i - 2).to_le_bytes()));
        bytes.resize(bytes.len() + usize::from(n), 5 << 2 | 1);
        let back = bytes.len() as u16 - first;
        bytes.extend(back.to_le_bytes());
        bytes.extend([10 << 2 | 1, 2]);
        assert_eq!(read(&bytes), None);
    }
}
