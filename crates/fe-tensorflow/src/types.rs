//! Element types and shapes. A type that the engine does not have stays in attributes as its name: `complex64`, `complex128`,
//! `resource`, `variant`. Quantized types are the integers that they are stored as.

use crate::wire::TensorShapeProto;
use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// No tensor has more along one axis, and sizes computed from a few of these do not overflow.
const MAX_DIM: i64 = 1 << 40;
/// No tensor has more axes.
const MAX_RANK: usize = 254;

/// `DT_RESOURCE`.
pub(crate) const RESOURCE: i32 = 20;

/// A number of TensorFlow's `DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataType {
    /// One that the engine has.
    Plain(ElementType),
    /// Pairs of these, in a last axis of size 2.
    Complex(ElementType),
    /// A handle, or a value that only some operations understand.
    Opaque(&'static str),
}

impl DataType {
    /// Of a number; a reference is the type that it refers to.
    pub(crate) fn of(number: i32) -> Result<DataType> {
        use ElementType as E;
        let number = if (101..200).contains(&number) { number - 100 } else { number };
        Ok(DataType::Plain(match number {
            1 => E::F32,
            2 => E::F64,
            3 | 13 => E::I32,
            4 | 12 => E::U8,
            5 | 15 => E::I16,
            6 | 11 => E::I8,
            7 => E::String,
            9 => E::I64,
            10 => E::Boolean,
            14 => E::Bf16,
            16 | 17 => E::U16,
            19 => E::F16,
            22 => E::U32,
            23 => E::U64,
            24 => E::F8E5M2,
            25 => E::F8E4M3,
            29 => E::I4,
            30 => E::U4,
            8 => return Ok(DataType::Complex(E::F32)),
            18 => return Ok(DataType::Complex(E::F64)),
            RESOURCE => return Ok(DataType::Opaque("resource")),
            21 => return Ok(DataType::Opaque("variant")),
            0 => return Ok(DataType::Opaque("invalid")),
            n => return Err(Error::unsupported(format!("{n} is no element type of TensorFlow that is known here"))),
        }))
    }
    /// The name of one that the engine does not have.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            DataType::Plain(_) => None,
            DataType::Complex(ElementType::F64) => Some("complex128"),
            DataType::Complex(_) => Some("complex64"),
            DataType::Opaque(name) => Some(name),
        }
    }
    /// The type of a tensor that carries it; of an opaque one nothing is known.
    pub(crate) fn element_type(self) -> ElementType {
        match self {
            DataType::Plain(ty) | DataType::Complex(ty) => ty,
            DataType::Opaque(_) => ElementType::Dynamic,
        }
    }
}

/// A shape as declared; what is not declared is not known.
pub(crate) fn shape(proto: &TensorShapeProto) -> Result<PartialShape> {
    if proto.unknown_rank {
        return Ok(PartialShape::dynamic());
    }
    if proto.dim.len() > MAX_RANK {
        return Err(Error::invalid(format!("a shape has {} dimensions, {MAX_RANK} are the most", proto.dim.len())));
    }
    let dim = |size: i64| match size {
        n if n > MAX_DIM => Err(Error::invalid(format!("dimension {n} is too large"))),
        n if n >= 0 => Ok(Dim::known(n)),
        _ => Ok(Dim::ANY),
    };
    Ok(PartialShape::new(proto.dim.iter().map(|d| dim(d.size)).collect::<Result<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_the_type_that_it_refers_to() {
        assert_eq!(DataType::of(101).unwrap(), DataType::Plain(ElementType::F32));
        assert_eq!(DataType::of(8).unwrap().name(), Some("complex64"));
        assert!(DataType::of(99).unwrap_err().to_string().contains("99"));
    }
}
