//! Stored tensors: raw bytes stay mapped, typed fields are converted. Fewer values than elements mean that the last one
//! repeats, none at all mean zeros. A complex tensor has its parts in a last axis of size 2.

use crate::store::Store;
use crate::types::DataType;
use crate::wire::TensorProto;
use bytes::Bytes;
use carafe_graph::{Error, Result};
use carafe_tensor::{Element, ElementType, Number, Tensor};

/// The tensor of a message.
pub(crate) fn tensor(proto: &TensorProto, store: &Store) -> Result<Tensor> {
    let (ty, complex) = match DataType::of(proto.dtype)? {
        DataType::Plain(ty) => (ty, false),
        DataType::Complex(ty) => (ty, true),
        DataType::Opaque(name) => return Err(Error::unsupported(format!("a tensor of type {name} has no content"))),
    };
    let mut shape = static_shape(proto)?;
    if complex {
        shape.push(2);
    }
    let too_large = || Error::invalid(format!("{ty}{shape:?} is too large"));
    let count = carafe_tensor::elements(&shape).ok_or_else(too_large)?;
    if !proto.tensor_content.is_empty() && ty != ElementType::String {
        let raw = &proto.tensor_content;
        let wanted = ty.least_byte_len(count).ok_or_else(too_large)?;
        if wanted != raw.len() {
            return Err(Error::invalid(format!("{ty}{shape:?} takes {wanted} bytes, found {}", raw.len())));
        }
        let (whole, start) = store.of(raw);
        return Ok(Tensor::view(ty, &shape, &whole, start, raw.len())?);
    }
    let values = Values { shape: &shape, count, store, ty };
    typed(proto, &values, complex)
}

fn static_shape(proto: &TensorProto) -> Result<Vec<usize>> {
    let Some(shape) = &proto.tensor_shape else { return Ok(vec![]) };
    let shape = crate::types::shape(shape)?;
    shape.to_static().ok_or_else(|| Error::invalid(format!("the shape [{shape}] of a constant is not fixed")))
}

struct Values<'a> {
    shape: &'a [usize],
    count: usize,
    store: &'a Store,
    ty: ElementType,
}

impl Values<'_> {
    // As many values as elements; groups of `unit` values repeat, each of which takes some bytes beside itself.
    fn filled<T: Clone>(&self, given: &[T], zero: T, unit: usize, beside: usize) -> Result<Vec<T>> {
        let (ty, shape, count) = (self.ty, self.shape, self.count);
        if given.len() > count || !given.len().is_multiple_of(unit) {
            return Err(Error::invalid(format!("{ty}{shape:?} takes {count} values, found {}", given.len())));
        }
        if given.len() < count {
            self.store.fill(count.saturating_mul(size_of::<T>().saturating_add(beside)))?;
        }
        let mut all = Vec::new();
        all.try_reserve_exact(count).map_err(|_| Error::invalid(format!("{ty}{shape:?} is too large")))?;
        all.extend_from_slice(given);
        let last: Vec<T> = given.rchunks(unit).next().map_or(vec![zero; unit], <[T]>::to_vec);
        let start = all.len();
        if start < count {
            all.extend_from_slice(&last);
        }
        while all.len() < count {
            // All that repeats already, as often as it takes.
            let some = (count - all.len()).min(all.len() - start);
            all.extend_from_within(start..start + some);
        }
        Ok(all)
    }
    fn same<T: Element + Clone + Default>(&self, given: &[T], unit: usize) -> Result<Tensor> {
        Ok(Tensor::from_vec(self.shape, self.filled(given, T::default(), unit, 0)?)?)
    }
    fn numbers<T: Number + Clone + Default>(&self, given: &[T]) -> Result<Tensor> {
        Ok(Tensor::from_numbers(self.ty, self.shape, self.filled(given, T::default(), 1, 0)?)?)
    }
}

fn typed(proto: &TensorProto, values: &Values<'_>, complex: bool) -> Result<Tensor> {
    use ElementType as E;
    Ok(match values.ty {
        E::F32 if complex => values.same(&proto.scomplex_val, 2)?,
        E::F64 if complex => values.same(&proto.dcomplex_val, 2)?,
        E::F32 => values.same(&proto.float_val, 1)?,
        E::F64 => values.same(&proto.double_val, 1)?,
        E::I64 => values.same(&proto.int64_val, 1)?,
        E::U32 => values.numbers(&proto.uint32_val)?,
        E::U64 => values.numbers(&proto.uint64_val)?,
        E::Boolean => {
            let bits: Vec<i32> = proto.bool_val.iter().map(|b| i32::from(*b)).collect();
            values.numbers(&bits)?
        }
        E::String => {
            let text = |b: &Bytes| carafe_tensor::text_of_bytes(b);
            let given: Vec<String> = proto.string_val.iter().map(text).collect();
            let last = given.last().map_or(0, String::len);
            Tensor::from_strings(values.shape, values.filled(&given, String::new(), 1, last)?)?
        }
        // Bit patterns, one to an entry.
        E::F16 | E::Bf16 => {
            let bytes: Vec<u8> =
                values.filled(&proto.half_val, 0, 1, 0)?.into_iter().flat_map(|n| (n as u16).to_le_bytes()).collect();
            Tensor::from_bytes(values.ty, values.shape, &bytes)?
        }
        E::I32 | E::I16 | E::I8 | E::U16 | E::U8 => values.numbers(&proto.int_val)?,
        ty => return Err(Error::unsupported(format!("a constant of type {ty} must be raw bytes"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{DimProto, TensorShapeProto};
    use carafe_tensor::SharedBytes;

    fn store() -> Store {
        Store::new(SharedBytes::from_vec(vec![]))
    }
    fn dims(sizes: &[i64]) -> Option<TensorShapeProto> {
        let dim = sizes.iter().map(|&size| DimProto { size }).collect();
        Some(TensorShapeProto { dim, unknown_rank: false })
    }

    #[test]
    fn the_last_value_repeats() {
        let proto =
            TensorProto { dtype: 1, tensor_shape: dims(&[2, 2]), float_val: vec![1.0, 2.0], ..TensorProto::default() };
        assert_eq!(tensor(&proto, &store()).unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0, 2.0, 2.0]);
    }

    #[test]
    fn no_value_at_all_is_zeros() {
        let proto = TensorProto { dtype: 3, tensor_shape: dims(&[3]), ..TensorProto::default() };
        assert_eq!(tensor(&proto, &store()).unwrap().as_slice::<i32>().unwrap(), [0, 0, 0]);
    }

    #[test]
    fn half_values_are_bit_patterns() {
        let proto =
            TensorProto { dtype: 19, tensor_shape: dims(&[]), half_val: vec![0x3c00], ..TensorProto::default() };
        assert_eq!(tensor(&proto, &store()).unwrap().to_vec::<f32>().unwrap()[..], [1.0]);
    }

    #[test]
    fn complex_values_are_pairs() {
        let proto =
            TensorProto { dtype: 8, tensor_shape: dims(&[2]), scomplex_val: vec![1.0, -1.0], ..TensorProto::default() };
        let t = tensor(&proto, &store()).unwrap();
        assert_eq!((t.shape(), t.as_slice::<f32>().unwrap()), (&[2, 2][..], &[1.0, -1.0, 1.0, -1.0][..]));
    }

    #[test]
    fn a_constant_of_one_value_has_a_limit() {
        let proto = TensorProto { dtype: 1, tensor_shape: dims(&[1 << 36]), ..TensorProto::default() };
        assert!(tensor(&proto, &store()).unwrap_err().to_string().contains("repeated value"));
    }

    #[test]
    fn more_values_than_elements_are_refused() {
        let proto =
            TensorProto { dtype: 1, tensor_shape: dims(&[1]), float_val: vec![1.0; 2], ..TensorProto::default() };
        assert!(tensor(&proto, &store()).unwrap_err().to_string().contains("takes 1 values, found 2"));
    }
}
