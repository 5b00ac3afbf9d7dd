//! A list of tensors as the bytes of one: how sequences and optionals travel through models, whose values are all
//! tensors. An optional is a list of none or one; a list inside of a list is an element of type u8. An empty tensor is
//! an empty list.
//!
//! The bytes: `CRFSEQ01`, the count as u64, then for each element the length and the letters of its type's name, its rank
//! as u32, its dimensions as u64, the number of its bytes as u64, and these. Numbers are little-endian; nothing is aligned.

use crate::{ElementType, Tensor, TensorError, elements, encode_strings};
use std::ops::Range;

const SIGNATURE: &[u8; 8] = b"CRFSEQ01";
/// Signature and count.
const HEAD: usize = 16;
/// An element without type name, dimensions and content.
const SHORTEST_RECORD: usize = 1 + 4 + 8;

/// Packs tensors of any types and shapes into one of type u8 and rank 1.
pub fn pack_sequence(items: &[Tensor]) -> Result<Tensor, TensorError> {
    let mut bytes = head(items.len());
    for item in items {
        write_record(&mut bytes, item)?;
    }
    finish(bytes)
}

/// The tensors that [`pack_sequence`] packed. Bytes that are anything else are an error.
pub fn unpack_sequence(packed: &Tensor) -> Result<Vec<Tensor>, TensorError> {
    let sequence = PackedSequence::open(packed)?;
    (0..sequence.len()).map(|i| sequence.get(i)).collect()
}

/// A packed list whose elements are found but not yet copied out.
#[derive(Clone, Debug)]
pub struct PackedSequence<'a> {
    bytes: &'a [u8],
    records: Vec<Record>,
}

#[derive(Clone, Debug)]
struct Record {
    ty: ElementType,
    shape: Vec<usize>,
    whole: Range<usize>,
    content: Range<usize>,
}

impl<'a> PackedSequence<'a> {
    /// Finds the elements; all bytes must belong to them.
    pub fn open(packed: &'a Tensor) -> Result<PackedSequence<'a>, TensorError> {
        if packed.element_type() != ElementType::U8 {
            return Err(TensorError::TypeMismatch { expected: ElementType::U8, found: packed.element_type() });
        }
        let bytes = packed.bytes();
        if bytes.is_empty() {
            return Ok(PackedSequence { bytes, records: vec![] });
        }
        let mut reader = Reader { bytes, at: 0 };
        let signature = reader.take(SIGNATURE.len())?;
        if bytes[signature] != *SIGNATURE {
            return Err(bad("it does not begin with the signature of a packed sequence"));
        }
        let count = reader.u64()?;
        if count > bytes.len() / SHORTEST_RECORD {
            return Err(bad(format!("{count} elements do not fit in {} bytes", bytes.len())));
        }
        let records = (0..count).map(|_| reader.record()).collect::<Result<Vec<_>, _>>()?;
        if reader.at != bytes.len() {
            return Err(bad(format!("{} bytes follow the last element", bytes.len() - reader.at)));
        }
        Ok(PackedSequence { bytes, records })
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Type and shape of each element.
    pub fn types(&self) -> impl Iterator<Item = (ElementType, &[usize])> {
        self.records.iter().map(|r| (r.ty, r.shape.as_slice()))
    }

    /// A copy of one element.
    pub fn get(&self, index: usize) -> Result<Tensor, TensorError> {
        let r = self.record(index, self.len())?;
        Tensor::from_bytes(r.ty, &r.shape, &self.bytes[r.content.clone()])
    }

    /// The packed list with a further element in front of element `index`; behind the last when that is the length.
    pub fn insert(&self, index: usize, item: &Tensor) -> Result<Tensor, TensorError> {
        let position = match index == self.len() {
            true => self.bytes.len().max(HEAD),
            false => self.record(index, self.len() + 1)?.whole.start,
        };
        let mut bytes = head(self.len() + 1);
        bytes.extend_from_slice(self.bytes.get(HEAD..position).unwrap_or_default());
        write_record(&mut bytes, item)?;
        bytes.extend_from_slice(self.bytes.get(position..).unwrap_or_default());
        finish(bytes)
    }

    /// The packed list without one element.
    pub fn erase(&self, index: usize) -> Result<Tensor, TensorError> {
        let gone = self.record(index, self.len())?.whole.clone();
        let mut bytes = head(self.len() - 1);
        bytes.extend_from_slice(&self.bytes[HEAD..gone.start]);
        bytes.extend_from_slice(&self.bytes[gone.end..]);
        finish(bytes)
    }

    fn record(&self, index: usize, available: usize) -> Result<&Record, TensorError> {
        let outside = TensorError::OutsideTensor { start: index, count: 1, available };
        self.records.get(index).ok_or(outside)
    }
}

fn head(count: usize) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend((count as u64).to_le_bytes());
    bytes
}

fn write_record(bytes: &mut Vec<u8>, item: &Tensor) -> Result<(), TensorError> {
    let strings;
    let content = match item.element_type() {
        ElementType::String => {
            strings = encode_strings(item.strings()?)?;
            &strings
        }
        _ => item.bytes(),
    };
    let name = item.element_type().name();
    let size = content.len() + name.len() + SHORTEST_RECORD + 8 * item.rank();
    bytes.try_reserve(size).map_err(|_| TensorError::OutOfMemory { bytes: size })?;
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend((item.rank() as u32).to_le_bytes());
    item.shape().iter().for_each(|&d| bytes.extend((d as u64).to_le_bytes()));
    bytes.extend((content.len() as u64).to_le_bytes());
    bytes.extend_from_slice(content);
    Ok(())
}

fn finish(bytes: Vec<u8>) -> Result<Tensor, TensorError> {
    Tensor::from_vec(&[bytes.len()], bytes)
}

fn bad(reason: impl Into<String>) -> TensorError {
    TensorError::BadSequence { reason: reason.into() }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, n: usize) -> Result<Range<usize>, TensorError> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| {
            bad(format!("{n} bytes are expected at byte {}, it ends at {}", self.at, self.bytes.len()))
        })?;
        Ok(std::mem::replace(&mut self.at, end)..end)
    }

    fn number(&mut self, n: usize) -> Result<usize, TensorError> {
        let range = self.take(n)?;
        let value = self.bytes[range].iter().rev().fold(0u64, |value, &b| value << 8 | u64::from(b));
        usize::try_from(value).map_err(|_| bad(format!("{value} is too large to address")))
    }

    fn u64(&mut self) -> Result<usize, TensorError> {
        self.number(8)
    }

    fn record(&mut self) -> Result<Record, TensorError> {
        let start = self.at;
        let letters = self.number(1)?;
        let name = self.take(letters)?;
        let name = std::str::from_utf8(&self.bytes[name]).map_err(|_| bad("the name of a type is not text"))?;
        let ty: ElementType = name.parse()?;
        if ty.is_dynamic() {
            return Err(TensorError::NoStorage { ty });
        }
        let rank = self.number(4)?;
        if rank > (self.bytes.len() - self.at) / 8 {
            return Err(bad(format!("rank {rank} does not fit in what is left")));
        }
        let shape = (0..rank).map(|_| self.u64()).collect::<Result<Vec<_>, _>>()?;
        let length = self.u64()?;
        let content = self.take(length)?;
        let expected = elements(&shape).and_then(|n| ty.byte_len(n));
        match expected {
            Some(n) if n != length => Err(TensorError::ByteCount { ty, shape, expected: n, found: length }),
            None if ty != ElementType::String => Err(TensorError::TooLarge { ty, shape }),
            _ => Ok(Record { ty, shape, whole: start..self.at, content }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Tensor> {
        vec![
            Tensor::from_slice(&[2], &[1f32, -2.0]).unwrap(),
            Tensor::from_strings(&[1, 2], vec!["ž".into(), String::new()]).unwrap(),
            Tensor::scalar(7i64),
            Tensor::from_i64(ElementType::U4, &[3], &[1, 2, 3]).unwrap(),
            Tensor::zeros(ElementType::F16, &[0, 4]).unwrap(),
        ]
    }

    fn same(a: &[Tensor], b: &[Tensor]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.content_eq(b))
    }

    #[test]
    fn tensors_unpack_as_packed() {
        assert!(same(&unpack_sequence(&pack_sequence(&items()).unwrap()).unwrap(), &items()));
        assert!(unpack_sequence(&pack_sequence(&[]).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn lists_nest() {
        let inner = pack_sequence(&items()).unwrap();
        let outer = pack_sequence(std::slice::from_ref(&inner)).unwrap();
        assert!(unpack_sequence(&outer).unwrap()[0].content_eq(&inner));
    }

    #[test]
    fn an_empty_tensor_is_an_empty_list() {
        let none = Tensor::zeros(ElementType::U8, &[0]).unwrap();
        let sequence = PackedSequence::open(&none).unwrap();
        assert!(sequence.is_empty());
        let one = sequence.insert(0, &Tensor::scalar(1u8)).unwrap();
        assert_eq!(unpack_sequence(&one).unwrap().len(), 1);
    }

    #[test]
    fn insert_and_erase_undo_each_other_at_every_place() {
        let all = items();
        for i in 0..all.len() {
            let mut less = all.clone();
            let item = less.remove(i);
            let (all, less) = (pack_sequence(&all).unwrap(), pack_sequence(&less).unwrap());
            assert!(PackedSequence::open(&all).unwrap().erase(i).unwrap().content_eq(&less));
            assert!(PackedSequence::open(&less).unwrap().insert(i, &item).unwrap().content_eq(&all));
        }
    }

    #[test]
    fn places_outside_are_refused() {
        let packed = pack_sequence(&items()).unwrap();
        let sequence = PackedSequence::open(&packed).unwrap();
        assert!(sequence.get(5).is_err() && sequence.erase(5).is_err());
        assert!(sequence.insert(6, &Tensor::scalar(0u8)).is_err());
    }

    #[test]
    fn a_list_cut_anywhere_is_an_error() {
        let whole = pack_sequence(&items()).unwrap();
        for n in 1..whole.len() {
            let cut = Tensor::from_slice(&[n], &whole.bytes()[..n]).unwrap();
            assert!(unpack_sequence(&cut).is_err(), "{n}");
        }
    }

    #[test]
    fn any_changed_byte_is_an_error_or_another_list_but_no_panic() {
        let whole = pack_sequence(&items()).unwrap();
        for i in 0..whole.len() {
            for change in [1, 0x80, 0xFF] {
                let mut bytes = whole.bytes().to_vec();
                bytes[i] ^= change;
                let _ = unpack_sequence(&Tensor::from_vec(&[bytes.len()], bytes).unwrap());
            }
        }
    }

    #[test]
    fn huge_numbers_allocate_nothing() {
        let mut bytes = head(usize::MAX);
        assert!(unpack_sequence(&finish(bytes.clone()).unwrap()).is_err());
        bytes = head(1);
        bytes.extend(b"\x03f32\x01\x00\x00\x00");
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(unpack_sequence(&finish(bytes).unwrap()).is_err());
    }

    #[test]
    fn other_bytes_and_types_are_refused() {
        let text = unpack_sequence(&Tensor::zeros(ElementType::U8, &[20]).unwrap()).unwrap_err().to_string();
        assert!(text.contains("signature"), "{text}");
        assert!(unpack_sequence(&Tensor::scalar(1f32)).is_err());
    }
}
