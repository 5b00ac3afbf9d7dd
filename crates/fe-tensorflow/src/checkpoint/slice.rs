//! Parts of tensors: how a checkpoint names the parts of a variable that was stored in several, and how they become one.

use super::wire::TensorSliceProto;
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;

/// A part of a tensor: start and length along each axis; `None` for all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice(pub(crate) Vec<Option<(usize, usize)>>);

impl Slice {
    /// Of a message.
    pub(super) fn of(proto: &TensorSliceProto) -> Result<Slice> {
        let size = |n: i64| usize::try_from(n).map_err(|_| Error::invalid(format!("a slice has the size {n}")));
        let extent = proto.extent.iter().map(|e| match e.length {
            None | Some(-1) => Ok(None),
            Some(length) => Ok(Some((size(e.start)?, size(length)?))),
        });
        Ok(Slice(extent.collect::<Result<_>>()?))
    }
    /// Of a text such as `10 4 0,5:-`: the whole shape, then the part; `None` for an empty text, which means all.
    pub(crate) fn parse(text: &str) -> Result<Option<Slice>> {
        let bad = || Error::invalid(format!("`{text}` is no part of a tensor"));
        let Some(part) = text.split_whitespace().last() else { return Ok(None) };
        let axis = |axis: &str| match axis.split_once(',') {
            None if axis == "-" => Ok(None),
            Some((start, length)) => Ok(Some((start.parse().map_err(|_| bad())?, length.parse().map_err(|_| bad())?))),
            None => Err(bad()),
        };
        Ok(Some(Slice(part.split(':').map(axis).collect::<Result<_>>()?)))
    }
    /// Start and length along each axis of a tensor of this shape.
    fn within(&self, shape: &[usize]) -> Result<Vec<(usize, usize)>> {
        let fits =
            |((start, length), size): (&(usize, usize), &usize)| start.checked_add(*length).is_some_and(|e| e <= *size);
        let all: Vec<(usize, usize)> =
            self.0.iter().zip(shape).map(|(part, size)| part.unwrap_or((0, *size))).collect();
        match self.0.len() == shape.len() && all.iter().zip(shape).all(fits) {
            true => Ok(all),
            false => Err(Error::invalid(format!("the part {:?} does not lie in {shape:?}", self.0))),
        }
    }
    /// The shape of this part of a tensor of a shape.
    pub(super) fn shape(&self, whole: &[usize]) -> Result<Vec<usize>> {
        Ok(self.within(whole)?.into_iter().map(|(_, length)| length).collect())
    }
    /// The key of this part of the tensor `name`.
    pub(super) fn key(&self, name: &str) -> Vec<u8> {
        let mut key = vec![0];
        for b in name.bytes() {
            match b {
                0 => key.extend([0, 0xff]),
                0xff => key.extend([0xff, 0]),
                b => key.push(b),
            }
        }
        key.extend([0, 1]);
        put_number(self.0.len() as u64, &mut key);
        for part in &self.0 {
            let (start, length) = part.map_or((0, -1), |(start, length)| (start as i64, length as i64));
            put_signed(start, &mut key);
            put_signed(length, &mut key);
        }
        key
    }
    /// Copies between a tensor and the part of it that has a tensor of its own: into the whole, or out of it.
    pub(super) fn copy(&self, whole: &mut Tensor, part: &mut Tensor, into_whole: bool) -> Result<()> {
        let shape = whole.shape().to_vec();
        let parts = self.within(&shape)?;
        let lengths: Vec<usize> = parts.iter().map(|(_, length)| *length).collect();
        if part.shape() != lengths {
            return Err(Error::invalid(format!("a part has the shape {:?}, expected {lengths:?}", part.shape())));
        }
        let strides = carafe_tensor::strides(&shape);
        // Rows along the last axis are contiguous in both.
        let row = lengths.last().copied().unwrap_or(1);
        let rows = part.len().checked_div(row).unwrap_or(0);
        for r in 0..rows {
            let (mut rest, mut at) = (r, parts.last().map_or(0, |(start, _)| *start));
            for axis in (0..parts.len().saturating_sub(1)).rev() {
                let (start, length) = parts[axis];
                at += (start + rest % length) * strides[axis];
                rest /= length;
            }
            match into_whole {
                true => whole.copy_elements(at, part, r * row, row)?,
                false => part.copy_elements(r * row, whole, at, row)?,
            }
        }
        Ok(())
    }
}

// Length, then the bytes from the highest on.
fn put_number(n: u64, key: &mut Vec<u8>) {
    let bytes = n.to_be_bytes();
    let used = &bytes[n.leading_zeros() as usize / 8..];
    key.push(used.len() as u8);
    key.extend_from_slice(used);
}

// As many leading ones as the code has bytes, upside down for negative numbers, so that codes sort like numbers.
fn put_signed(n: i64, key: &mut Vec<u8>) {
    let size = if n < 0 { !n } else { n } as u64;
    let bits = 64 - size.leading_zeros() as usize;
    let length = bits / 7 + 1;
    let mut buffer = [if n < 0 { 0xff } else { 0 }; 10];
    buffer[2..].copy_from_slice(&n.to_be_bytes());
    let code = &mut buffer[10 - length..];
    let header: [u8; 2] = match length {
        9 => [0xff, 0x80],
        10 => [0xff, 0xc0],
        n => [!(0xffu16 >> n) as u8, 0],
    };
    code[0] ^= header[0];
    if let Some(second) = code.get_mut(1) {
        *second ^= header[1];
    }
    key.extend_from_slice(code);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(n: i64) -> Vec<u8> {
        let mut key = vec![];
        put_signed(n, &mut key);
        key
    }

    #[test]
    fn numbers_sort_like_their_codes() {
        assert_eq!(signed(0), [0x80]);
        assert_eq!(signed(-1), [0x7f]);
        assert_eq!(signed(63), [0xbf]);
        assert_eq!(signed(64), [0xc0, 0x40]);
        assert_eq!(signed(-65), [0x3f, 0xbf]);
        let all: Vec<Vec<u8>> = [i64::MIN, -100_000, -64, 0, 5, 8191, 8192, 1 << 40, i64::MAX].map(signed).into();
        assert!(all.is_sorted(), "{all:?}");
    }

    #[test]
    fn a_part_has_a_key() {
        let part = Slice(vec![None, Some((0, 5))]);
        assert_eq!(part.key("w"), [0, b'w', 0, 1, 1, 2, 0x80, 0x7f, 0x80, 0x85]);
        assert_eq!(Slice::parse("10 5 -:0,5").unwrap(), Some(part));
        assert_eq!(Slice::parse("").unwrap(), None);
        assert!(Slice::parse("10 x").is_err());
    }

    #[test]
    fn parts_are_copied_row_by_row() {
        let mut whole = Tensor::zeros(carafe_tensor::ElementType::F32, &[2, 3]).unwrap();
        let mut part = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let slice = Slice(vec![None, Some((1, 2))]);
        slice.copy(&mut whole, &mut part, true).unwrap();
        assert_eq!(whole.as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 0.0, 3.0, 4.0]);
        assert!(Slice(vec![None, Some((2, 2))]).copy(&mut whole, &mut part, true).is_err());
    }
}
