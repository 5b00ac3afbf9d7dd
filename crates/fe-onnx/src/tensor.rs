//! Stored tensors: raw bytes and external files stay mapped; typed fields are converted. Every size is checked against the
//! bytes that are there.

use crate::file::Files;
use crate::wire::{SparseTensorProto, TensorProto};
use bytes::Bytes;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, Tensor};

/// The element type for a number of ONNX's `DataType`.
pub(crate) fn element_type(number: i32) -> Result<ElementType> {
    use ElementType as E;
    Ok(match number {
        0 => E::Dynamic,
        1 => E::F32,
        2 => E::U8,
        3 => E::I8,
        4 => E::U16,
        5 => E::I16,
        6 => E::I32,
        7 => E::I64,
        8 => E::String,
        9 => E::Boolean,
        10 => E::F16,
        11 => E::F64,
        12 => E::U32,
        13 => E::U64,
        16 => E::Bf16,
        17 => E::F8E4M3,
        18 => E::F8E4M3Fnuz,
        19 => E::F8E5M2,
        20 => E::F8E5M2Fnuz,
        21 => E::U4,
        22 => E::I4,
        23 => E::F4E2M1,
        24 => E::F8E8M0,
        25 => E::U2,
        26 => E::I2,
        14 | 15 => return Err(Error::unsupported("complex element types are not supported")),
        n => return Err(Error::invalid(format!("{n} is not an element type of ONNX"))),
    })
}

/// The tensor of a message.
pub(crate) fn tensor(proto: &TensorProto, files: &Files) -> Result<Tensor> {
    let name = proto.name.as_deref().unwrap_or("");
    read(proto, files).map_err(|e| if name.is_empty() { e } else { e.at(format!("tensor `{name}`")) })
}

fn read(proto: &TensorProto, files: &Files) -> Result<Tensor> {
    let ty = element_type(proto.data_type.unwrap_or(0))?;
    if ty.is_dynamic() {
        return Err(Error::invalid("the tensor has no element type"));
    }
    let mut shape = shape(&proto.dims)?;
    if proto.data_location == Some(1) {
        let needed = carafe_tensor::elements(&shape).and_then(|n| ty.least_byte_len(n));
        let (bytes, offset, length) = files.external(&proto.external_data, needed)?;
        return sized(ty, &shape, length).and_then(|()| Ok(Tensor::view(ty, &shape, &bytes, offset, length)?));
    }
    if let Some(raw) = proto.raw_data.as_ref().filter(|_| ty != ElementType::String) {
        sized(ty, &shape, raw.len())?;
        let (store, start) = files.store_of(raw);
        return Ok(Tensor::view(ty, &shape, &store, start, raw.len())?);
    }
    if shape == [0] && single_value(proto) {
        files.note(format!("tensor `{}` has no elements and one value; it is taken as a scalar", proto.name()));
        shape.clear();
    }
    typed(proto, ty, &shape)
}

fn single_value(proto: &TensorProto) -> bool {
    let counts = [proto.float_data.len(), proto.int32_data.len(), proto.int64_data.len(), proto.double_data.len()];
    counts.iter().sum::<usize>() == 1
}

fn shape(dims: &[i64]) -> Result<Vec<usize>> {
    let dim = |d: &i64| usize::try_from(*d).map_err(|_| Error::invalid(format!("dimension {d} is negative")));
    dims.iter().map(dim).collect()
}

fn sized(ty: ElementType, shape: &[usize], found: usize) -> Result<()> {
    let wanted = carafe_tensor::elements(shape).and_then(|n| ty.least_byte_len(n));
    match wanted {
        Some(n) if n == found => Ok(()),
        Some(n) => Err(Error::invalid(format!("{ty}{shape:?} takes {n} bytes, found {found}"))),
        None => Err(Error::invalid(format!("{ty}{shape:?} is too large"))),
    }
}

fn typed(proto: &TensorProto, ty: ElementType, shape: &[usize]) -> Result<Tensor> {
    use ElementType as E;
    let count = carafe_tensor::elements(shape).ok_or_else(|| Error::invalid(format!("{ty}{shape:?} is too large")))?;
    let check = |found: usize| match found == count {
        true => Ok(()),
        false => Err(Error::invalid(format!("{ty}{shape:?} takes {count} values, found {found}"))),
    };
    Ok(match ty {
        E::F32 => {
            check(proto.float_data.len())?;
            Tensor::from_slice(shape, &proto.float_data)?
        }
        E::F64 => {
            check(proto.double_data.len())?;
            Tensor::from_slice(shape, &proto.double_data)?
        }
        E::I64 => {
            check(proto.int64_data.len())?;
            Tensor::from_slice(shape, &proto.int64_data)?
        }
        E::U32 | E::U64 => {
            check(proto.uint64_data.len())?;
            Tensor::from_numbers(ty, shape, proto.uint64_data.clone())?
        }
        E::String => {
            check(proto.string_data.len())?;
            let text = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
            Tensor::from_strings(shape, proto.string_data.iter().map(text).collect())?
        }
        E::I32 | E::I16 | E::I8 | E::U16 | E::U8 | E::Boolean => {
            check(proto.int32_data.len())?;
            Tensor::from_numbers(ty, shape, proto.int32_data.clone())?
        }
        // Bit patterns, one to an entry.
        E::F16 | E::Bf16 => {
            check(proto.int32_data.len())?;
            let bytes: Vec<u8> = proto.int32_data.iter().flat_map(|&n| (n as u16).to_le_bytes()).collect();
            Tensor::from_bytes(ty, shape, &bytes)?
        }
        E::F8E4M3 | E::F8E5M2 | E::F8E8M0 | E::F8E4M3Fnuz | E::F8E5M2Fnuz => {
            check(proto.int32_data.len())?;
            let bytes: Vec<u8> = proto.int32_data.iter().map(|&n| n as u8).collect();
            Tensor::from_bytes(ty, shape, &bytes)?
        }
        // Packed bytes, one to an entry.
        E::U4 | E::I4 | E::F4E2M1 | E::U2 | E::I2 => {
            let bytes: Vec<u8> = proto.int32_data.iter().map(|&n| n as u8).collect();
            sized(ty, shape, bytes.len())?;
            Tensor::from_bytes(ty, shape, &bytes)?
        }
        _ => return Err(Error::invalid("the tensor has no element type")),
    })
}

/// Elements that a sparse tensor may have in its dense form: a few bytes can declare any size.
const MAX_DENSE: usize = 1 << 28;

/// The dense form of a sparse tensor.
pub(crate) fn dense(proto: &SparseTensorProto, files: &Files) -> Result<Tensor> {
    let missing = || Error::invalid("a sparse tensor needs values and indices");
    let values = tensor(proto.values.as_ref().ok_or_else(missing)?, files)?;
    let indices = tensor(proto.indices.as_ref().ok_or_else(missing)?, files)?;
    let shape = shape(&proto.dims)?;
    let count = carafe_tensor::elements(&shape).filter(|n| *n <= MAX_DENSE);
    if values.element_type() == ElementType::String || count.is_none() {
        return Err(Error::unsupported(format!("a sparse tensor {}{shape:?} is not supported", values.element_type())));
    }
    let mut out = Tensor::zeros(values.element_type(), &shape)?;
    let at = indices.to_vec::<i64>()?;
    let strides = carafe_tensor::strides(&shape);
    for i in 0..values.len() {
        let flat = match indices.rank() {
            1 => at.get(i).copied(),
            _ => {
                let row = at.get(i * shape.len()..(i + 1) * shape.len()).unwrap_or(&[]);
                let inside =
                    row.len() == shape.len() && row.iter().zip(&shape).all(|(i, d)| (0..*d as i64).contains(i));
                inside.then(|| row.iter().zip(&strides).map(|(i, s)| i * *s as i64).sum())
            }
        };
        let flat = flat.and_then(|f| usize::try_from(f).ok()).filter(|f| *f < out.len());
        let flat =
            flat.ok_or_else(|| Error::invalid(format!("index {i} of a sparse tensor is outside of {shape:?}")))?;
        out.copy_elements(flat, &values, i, 1)?;
    }
    Ok(out)
}
