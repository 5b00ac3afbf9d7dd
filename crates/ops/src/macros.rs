//! Lists of operations, and the choice of the Rust type an evaluation computes in.

/// Declares the families of the library and joins their lists.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(pub mod $family;)*
        fn family_factories() -> Vec<OpFactory> {
            let mut all = Vec::new();
            $(all.extend($family::factories());)*
            all
        }
    };
}

/// Declares the files of a family and the operations in each: `opset! { clamp::{Clamp}, gelu::{Gelu, GeluV2} }`.
macro_rules! opset {
    ($($file:ident :: { $($op:ident),* $(,)? }),* $(,)?) => {
        $(pub mod $file; pub use $file::{$($op),*};)*
        /// The operations of this family.
        pub fn factories() -> Vec<::carafe_graph::OpFactory> {
            vec![$($(::carafe_graph::OpFactory::of::<$op>(),)*)*]
        }
    };
}

/// Runs the body with `T` as the type to compute in: integers as they are (sub-byte ones as i8 or u8, boolean as u8), f64
/// as itself, every other float as f32. Inputs are read with `cx.get::<T>` and written with `cx.put::<T>`, which
/// convert where the stored type differs.
macro_rules! with_number {
    ($ty:expr, $T:ident => $body:expr) => {{
        use ::carafe_tensor::ElementType as E;
        match $ty {
            E::F64 => {
                type $T = f64;
                $body
            }
            E::I2 | E::I4 | E::I8 => {
                type $T = i8;
                $body
            }
            E::I16 => {
                type $T = i16;
                $body
            }
            E::I32 => {
                type $T = i32;
                $body
            }
            E::I64 => {
                type $T = i64;
                $body
            }
            E::U1 | E::U2 | E::U3 | E::U4 | E::U6 | E::U8 | E::Boolean => {
                type $T = u8;
                $body
            }
            E::U16 => {
                type $T = u16;
                $body
            }
            E::U32 => {
                type $T = u32;
                $body
            }
            E::U64 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    }};
}

/// As `with_number` for operations that only exist on floats: f64 for f64, f32 for the rest.
macro_rules! with_float {
    ($ty:expr, $T:ident => $body:expr) => {{
        match $ty {
            ::carafe_tensor::ElementType::F64 => {
                type $T = f64;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    }};
}
