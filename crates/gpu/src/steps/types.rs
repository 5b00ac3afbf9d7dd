//! Element types in OpenCL C: how they lie, what they are computed as, and how one becomes the other.

use carafe_tensor::ElementType;

/// The type of elements in memory; `None` for what kernels do not know.
pub(crate) fn stored(ty: ElementType) -> Option<&'static str> {
    use ElementType as E;
    Some(match ty {
        E::F16 => "half",
        E::Bf16 => "ushort",
        ty => computed(ty)?,
    })
}

/// The type that elements are computed with. A boolean is a byte, 0 or 1.
pub(crate) fn computed(ty: ElementType) -> Option<&'static str> {
    use ElementType as E;
    Some(match ty {
        E::F16 | E::Bf16 | E::F32 => "float",
        E::F64 => "double",
        E::I8 => "char",
        E::I16 => "short",
        E::I32 => "int",
        E::I64 => "long",
        E::U8 | E::Boolean => "uchar",
        E::U16 => "ushort",
        E::U32 => "uint",
        E::U64 => "ulong",
        _ => return None,
    })
}

/// The unsigned type in which integers of a type wrap.
pub(crate) fn wrapping(ty: ElementType) -> &'static str {
    if ty.bits() == 64 { "ulong" } else { "uint" }
}

/// An element of an array.
pub(crate) fn load(ty: ElementType, array: &str, index: &str) -> String {
    match ty {
        ElementType::F16 => format!("vload_half({index}, {array})"),
        ElementType::Bf16 => format!("load_bf16({array}, {index})"),
        _ => format!("{array}[{index}]"),
    }
}

/// Puts an element into an array.
pub(crate) fn store(ty: ElementType, array: &str, index: &str, value: &str) -> String {
    match ty {
        ElementType::F16 => format!("vstore_half_rte({value}, {index}, {array});"),
        ElementType::Bf16 => format!("store_bf16({value}, {index}, {array});"),
        _ => format!("{array}[{index}] = {value};"),
    }
}

/// Bytes of an element, when kernels can move it.
pub(crate) fn movable(ty: ElementType) -> Option<usize> {
    let known = !ty.is_dynamic() && ty != ElementType::String && !ty.is_sub_byte();
    Some(ty.bits() / 8).filter(|n| known && matches!(n, 1 | 2 | 4 | 8))
}

/// An unsigned type of so many bytes.
pub(crate) fn of_size(bytes: usize) -> &'static str {
    match bytes {
        1 => "uchar",
        2 => "ushort",
        4 => "uint",
        _ => "ulong",
    }
}
