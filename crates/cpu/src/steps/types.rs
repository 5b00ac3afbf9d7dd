//! From an element type to the Rust type a kernel computes in.

use super::Io;
use carafe_kernels::movement::Indices;
use carafe_tensor::ElementType;

/// Whether kernels compute with numbers of this type as they are stored.
pub(super) fn is_number(ty: ElementType) -> bool {
    use ElementType as E;
    matches!(ty, E::F32 | E::F64 | E::I8 | E::I16 | E::I32 | E::I64 | E::U8 | E::U16 | E::U32 | E::U64 | E::Boolean)
}

/// Runs the body with `$T` as the type of the elements, of which `is_number` must hold. A boolean is a byte.
macro_rules! with_type {
    ($ty:expr, $T:ident => $body:expr) => {{
        use carafe_tensor::ElementType as E;
        macro_rules! with {
            ($t:ty) => {{
                type $T = $t;
                $body
            }};
        }
        match $ty {
            E::F64 => with!(f64),
            E::I8 => with!(i8),
            E::I16 => with!(i16),
            E::I32 => with!(i32),
            E::I64 => with!(i64),
            E::U8 | E::Boolean => with!(u8),
            E::U16 => with!(u16),
            E::U32 => with!(u32),
            E::U64 => with!(u64),
            _ => with!(f32),
        }
    }};
}
pub(super) use with_type;

/// Whether values of this type can be read as indices.
pub(super) fn is_index(ty: ElementType) -> bool {
    matches!(ty, ElementType::I32 | ElementType::I64)
}

/// An input as indices.
pub(super) fn indices<'m>(io: &Io<'m>, input: usize, ty: ElementType) -> Indices<'m> {
    match ty {
        ElementType::I64 => io.input::<i64>(input).into(),
        _ => io.input::<i32>(input).into(),
    }
}
