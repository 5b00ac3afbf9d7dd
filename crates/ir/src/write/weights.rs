//! Lays out constant payloads one after another, each distinct one once. A payload starts at a multiple of its element
//! size, so that a reader can use the mapped bytes without a copy.

use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, Tensor, encode_strings};
use std::collections::HashMap;
use std::fmt;
use std::io::Write;

/// Span of a payload in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

pub(crate) struct Weights<'w> {
    out: &'w mut dyn Write,
    end: u64,
    /// Written payloads by the hash of a sample.
    written: HashMap<u64, Vec<(u64, Payload)>>,
}

enum Payload {
    Tensor(Tensor),
    Strings(Vec<u8>),
}

impl Payload {
    fn bytes(&self) -> &[u8] {
        match self {
            Payload::Tensor(t) => t.bytes(),
            Payload::Strings(bytes) => bytes,
        }
    }
    fn alignment(&self) -> u64 {
        match self {
            Payload::Tensor(t) => (t.element_type().bits() as u64 / 8).max(1),
            Payload::Strings(_) => 1,
        }
    }
}

/// A payload and its place in the weights.
pub struct WeightPart {
    /// Where it lies in the file of weights.
    pub offset: u64,
    payload: Payload,
}

impl WeightPart {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.payload.bytes()
    }
}

impl fmt::Debug for WeightPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeightPart({} + {})", self.offset, self.bytes().len())
    }
}

impl fmt::Debug for Weights<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weights").field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'w> Weights<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Weights<'w> {
        Weights { out, end: 0, written: HashMap::new() }
    }

    /// What was written, by place.
    pub(crate) fn into_parts(self) -> Vec<WeightPart> {
        let all = self.written.into_values().flatten();
        let mut parts: Vec<WeightPart> = all.map(|(offset, payload)| WeightPart { offset, payload }).collect();
        carafe_graph::sort_by_key(&mut parts, |p| p.offset);
        parts
    }

    /// Writes the payload, or finds the same bytes among those already written.
    pub(crate) fn put(&mut self, tensor: &Tensor) -> Result<Span> {
        let payload = match tensor.element_type() {
            ElementType::String => Payload::Strings(encode_strings(tensor.strings()?)?),
            _ => Payload::Tensor(tensor.clone()),
        };
        let failed = |e: std::io::Error| Error::io("cannot write weights", &e);
        let bytes = payload.bytes();
        let (size, alignment) = (bytes.len() as u64, payload.alignment());
        if bytes.is_empty() {
            // OpenVINO refuses a constant, even one without elements, whose file is empty.
            if self.end == 0 {
                self.out.write_all(&[0]).map_err(failed)?;
                self.end = 1;
            }
            return Ok(Span { offset: 0, size: 0 });
        }
        let same = self.written.entry(sample(bytes)).or_default();
        let fits = |(offset, other): &&(u64, Payload)| offset % alignment == 0 && is_same(bytes, other.bytes());
        if let Some((offset, _)) = same.iter().find(fits) {
            return Ok(Span { offset: *offset, size });
        }
        let offset = self.end.next_multiple_of(alignment);
        let gap = (offset - self.end) as usize;
        self.out.write_all(&[0; 8][..gap]).and_then(|()| self.out.write_all(bytes)).map_err(failed)?;
        self.end = offset + size;
        // Large models would otherwise stay in memory as a whole.
        if let Payload::Tensor(t) = &payload {
            t.release();
        }
        same.push((offset, payload));
        Ok(Span { offset, size })
    }
}

fn is_same(a: &[u8], b: &[u8]) -> bool {
    (a.as_ptr() == b.as_ptr() && a.len() == b.len()) || a == b
}

/// A payload larger than three of these is hashed by its beginning, middle and end.
const SAMPLE: usize = 1 << 10;

// A hash of the length and of some bytes: weights have gigabytes, and equal hashes are compared byte by byte anyway.
fn sample(bytes: &[u8]) -> u64 {
    let middle = (bytes.len() / 2) & !7;
    let parts = match bytes.len() {
        n if n <= 3 * SAMPLE => [bytes, &[], &[]],
        n => [&bytes[..SAMPLE], &bytes[middle..middle + SAMPLE], &bytes[n - SAMPLE..]],
    };
    parts.iter().fold(bytes.len() as u64, |h, part| hash(h, part))
}

fn hash(start: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let step = |h: u64, word: u64| (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let h = words.iter().fold(start, |h, word| step(h, u64::from_le_bytes(*word)));
    rest.iter().fold(h, |h, byte| step(h, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(tensors: &[Tensor]) -> (Vec<(u64, u64)>, Vec<u8>) {
        let mut bytes = vec![];
        let mut weights = Weights::new(&mut bytes);
        let positions = tensors.iter().map(|t| weights.put(t).unwrap()).map(|p| (p.offset, p.size)).collect();
        (positions, bytes)
    }

    #[test]
    fn equal_bytes_are_written_once() {
        let a = Tensor::from_slice(&[2], &[1f32, 2.]).unwrap();
        let b = Tensor::from_slice(&[1, 2], &[1f32, 2.]).unwrap();
        assert_eq!(positions(&[a, b]).0, [(0, 8), (0, 8)]);
    }

    #[test]
    fn large_payloads_that_differ_between_the_samples_are_both_written() {
        let zeros = vec![0u8; 8 * SAMPLE];
        let mut other = zeros.clone();
        other[2 * SAMPLE] = 1;
        let tensors = [zeros.clone(), other, zeros].map(|v| Tensor::from_vec(&[8 * SAMPLE], v).unwrap());
        let size = 8 * SAMPLE as u64;
        assert_eq!(positions(&tensors).0, [(0, size), (size, size), (0, size)]);
    }

    #[test]
    fn payloads_start_at_a_multiple_of_their_element_size() {
        let byte = Tensor::scalar(7u8);
        let (positions, bytes) = positions(&[byte, Tensor::scalar(1i64)]);
        assert_eq!(positions, [(0, 1), (8, 8)]);
        assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn equal_bytes_at_an_odd_place_are_written_again() {
        let bytes = Tensor::from_slice(&[4], &[1u8, 0, 0, 0]).unwrap();
        let tensors = [Tensor::scalar(9u8), bytes, Tensor::scalar(1i32)];
        assert_eq!(positions(&tensors).0, [(0, 1), (1, 4), (8, 4)]);
    }

    #[test]
    fn an_empty_tensor_takes_no_place_but_the_file_is_not_empty() {
        let empty = Tensor::zeros(ElementType::F32, &[0]).unwrap();
        let (positions, bytes) = positions(&[empty.clone(), Tensor::scalar(7u8), empty]);
        assert_eq!((positions, bytes), (vec![(0, 0), (1, 1), (0, 0)], vec![0, 7]));
    }

    #[test]
    fn strings_are_written_as_their_payload() {
        let strings = Tensor::from_strings(&[3], ["ab", "", "xyz"].map(String::from).to_vec()).unwrap();
        let (positions, bytes) = positions(&[strings]);
        assert_eq!(positions, [(0, 25)]);
        assert!(bytes.ends_with(b"abxyz"));
    }
}
