//! Stored tensors. Their bytes stay where the file has them; strings and sparse tensors are made anew.

use crate::types::{STRING, element_type, is_complex};
use crate::wire::TensorInfo;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, PartialShape, SharedBytes, Tensor};
use std::cell::Cell;

/// Bytes that the tensors of a file may take which are made anew: many may share the few that the file has for them, and the first
/// values of variables are not in the file at all.
const MOST_MADE: usize = 1 << 30;

/// Counts the bytes of tensors that are made anew.
#[derive(Debug, Default)]
pub(crate) struct Made(Cell<usize>);

impl Made {
    /// Counts the zeros that a variable begins with.
    pub(crate) fn spend_zeros(&self, ty: ElementType, shape: &PartialShape) -> Result<()> {
        let count = shape.to_static().and_then(|s| carafe_tensor::elements(&s));
        // Without a shape it is refused by its rule.
        self.spend(shape.to_static().map_or(0, |_| count.and_then(|n| ty.least_byte_len(n)).unwrap_or(usize::MAX)))
    }
    fn spend(&self, bytes: usize) -> Result<()> {
        let all = self.0.get().saturating_add(bytes);
        self.0.set(all);
        match all <= MOST_MADE {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "sparse tensors, strings and variables of the file take {all} bytes, {MOST_MADE} are the most"
            ))),
        }
    }
}

/// The tensor of these bytes of the file, offset and length.
pub(crate) fn tensor(info: &TensorInfo, file: &SharedBytes, span: (usize, usize), made: &Made) -> Result<Tensor> {
    let name = if info.name.is_empty() { "?" } else { &info.name };
    read(info, file, span, made).map_err(|e| e.at(format!("tensor `{name}`")))
}

fn read(info: &TensorInfo, file: &SharedBytes, (offset, length): (usize, usize), made: &Made) -> Result<Tensor> {
    let shape = shape(info)?;
    if info.ty == STRING {
        let bytes = file.as_slice().get(offset..offset + length).unwrap_or_default();
        // A string takes some bytes beside its own, which has four in the file.
        made.spend(length.saturating_mul(8))?;
        return strings(bytes, &shape);
    }
    let ty = element_type(info.ty)?;
    if ty.is_dynamic() {
        return Err(Error::unsupported("a handle of a table, a variable or a list cannot be stored"));
    }
    if let Some(sparsity) = &info.sparsity {
        if ty.is_sub_byte() {
            return Err(Error::unsupported(format!("sparse tensors of {ty} are not supported")));
        }
        let count = length / (ty.bits() / 8);
        made.spend(carafe_tensor::elements(&shape).and_then(|n| ty.least_byte_len(n)).unwrap_or(usize::MAX))?;
        let values = Tensor::view(ty, &[count], file, offset, count * (ty.bits() / 8))?;
        return sparsity.dense(&values, &shape);
    }
    let needed = carafe_tensor::elements(&shape).and_then(|n| ty.least_byte_len(n));
    match needed {
        Some(n) if n == length => Ok(Tensor::view(ty, &shape, file, offset, length)?),
        Some(n) => Err(Error::invalid(format!("{ty}{shape:?} takes {n} bytes, found {length}"))),
        None => Err(Error::invalid(format!("{ty}{shape:?} is too large"))),
    }
}

/// The shape of a stored tensor; complex numbers have a last axis of two.
pub(crate) fn shape(info: &TensorInfo) -> Result<Vec<usize>> {
    let dim = |d: &i32| usize::try_from(*d).map_err(|_| Error::invalid(format!("dimension {d} is negative")));
    let mut shape = info.shape.iter().map(dim).collect::<Result<Vec<_>>>()?;
    if is_complex(info.ty) {
        shape.push(2);
    }
    Ok(shape)
}

// Count, where each begins and the last ends, then the texts.
fn strings(bytes: &[u8], shape: &[usize]) -> Result<Tensor> {
    let number = |i: usize| {
        let at = i.checked_mul(4)?;
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(i32::from_le_bytes(bytes)).ok()
    };
    let damaged = || Error::invalid("the strings of a tensor are damaged");
    let count = number(0).filter(|n| *n <= bytes.len() / 4).ok_or_else(damaged)?;
    if carafe_tensor::elements(shape) != Some(count) {
        return Err(Error::invalid(format!("string{shape:?} is stored with {count} strings")));
    }
    let text = |i: usize| {
        let found = bytes.get(number(i + 1)?..number(i + 2)?)?;
        Some(String::from_utf8_lossy(found).into_owned())
    };
    let all = (0..count).map(|i| text(i).ok_or_else(damaged)).collect::<Result<Vec<_>>>()?;
    Ok(Tensor::from_strings(shape, all)?)
}

/// A tensor without elements, which no file needs to store.
pub(crate) fn empty(info: &TensorInfo) -> Option<Tensor> {
    let shape = shape(info).ok().filter(|s| s.contains(&0))?;
    let ty = element_type(info.ty).ok().filter(|t| *t != ElementType::Dynamic)?;
    match ty {
        ElementType::String => Tensor::from_strings(&shape, vec![]).ok(),
        ty => Tensor::zeros(ty, &shape).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_by_their_offsets() {
        let mut bytes: Vec<u8> = [2i32, 16, 18, 21].iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend(b"abcde");
        assert_eq!(strings(&bytes, &[2]).unwrap().strings().unwrap(), ["ab", "cde"]);
        for cut in 0..bytes.len() {
            assert!(strings(&bytes[..cut], &[2]).is_err());
        }
        assert!(strings(&bytes, &[3]).unwrap_err().to_string().contains("stored with 2 strings"));
    }
}
