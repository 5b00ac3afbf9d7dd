//! The element types of the IR, with both of their spellings and their packed sizes. Three come from ONNX alone and are
//! behind all others, so that the numbers of the rest stay: OpenVINO has no name for them ([`ElementType::is_in_openvino`]).
//! `bits` is not enough to find a byte count: u3 and u6 come in whole groups of three bytes (see [`ElementType::byte_len`]).

use std::fmt;
use std::str::FromStr;

use crate::TensorError;

/// The type of the elements of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ElementType {
    /// Not known yet.
    Dynamic,
    /// One byte, 0 or 1.
    Boolean,
    /// Brain float, 8 bits of exponent.
    Bf16,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Signed, 4 bits.
    I4,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 1 bit.
    U1,
    /// Unsigned, 2 bits.
    U2,
    /// Unsigned, 3 bits.
    U3,
    /// Unsigned, 4 bits.
    U4,
    /// Unsigned, 6 bits.
    U6,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// One of 16 levels of a normal distribution, 4 bits.
    Nf4,
    /// 8 bits: 4 of exponent, 3 of mantissa.
    F8E4M3,
    /// 8 bits: 5 of exponent, 2 of mantissa.
    F8E5M2,
    /// 8 bits: a power of two.
    F8E8M0,
    /// 4 bits: 2 of exponent, 1 of mantissa.
    F4E2M1,
    /// Text.
    String,
    /// 8 bits with 4 of exponent around 8, without infinities and negative zero; 0x80 is NaN.
    F8E4M3Fnuz,
    /// 8 bits with 5 of exponent around 16, without infinities and negative zero; 0x80 is NaN.
    F8E5M2Fnuz,
    /// 2 bits, -2 to 1.
    I2,
}

use ElementType::*;

/// Type, `element_type=` spelling, `precision=` spelling, bits.
const TABLE: [(ElementType, &str, &str, usize); 29] = [
    (Dynamic, "dynamic", "UNSPECIFIED", 0),
    (Boolean, "boolean", "BOOL", 8),
    (Bf16, "bf16", "BF16", 16),
    (F16, "f16", "FP16", 16),
    (F32, "f32", "FP32", 32),
    (F64, "f64", "FP64", 64),
    (I4, "i4", "I4", 4),
    (I8, "i8", "I8", 8),
    (I16, "i16", "I16", 16),
    (I32, "i32", "I32", 32),
    (I64, "i64", "I64", 64),
    (U1, "u1", "BIN", 1),
    (U2, "u2", "U2", 2),
    (U3, "u3", "U3", 3),
    (U4, "u4", "U4", 4),
    (U6, "u6", "U6", 6),
    (U8, "u8", "U8", 8),
    (U16, "u16", "U16", 16),
    (U32, "u32", "U32", 32),
    (U64, "u64", "U64", 64),
    (Nf4, "nf4", "NF4", 4),
    (F8E4M3, "f8e4m3", "F8E4M3", 8),
    (F8E5M2, "f8e5m2", "F8E5M2", 8),
    (F8E8M0, "f8e8m0", "F8E8M0", 8),
    (F4E2M1, "f4e2m1", "F4E2M1", 4),
    (String, "string", "STRING", 0),
    (F8E4M3Fnuz, "f8e4m3fnuz", "F8E4M3FNUZ", 8),
    (F8E5M2Fnuz, "f8e5m2fnuz", "F8E5M2FNUZ", 8),
    (I2, "i2", "I2", 2),
];

impl ElementType {
    /// Every type, in declaration order.
    pub const ALL: &[ElementType] = &{
        let mut all = [Dynamic; TABLE.len()];
        let mut i = 0;
        while i < TABLE.len() {
            assert!(TABLE[i].0 as usize == i, "TABLE follows the declaration order");
            all[i] = TABLE[i].0;
            i += 1;
        }
        all
    };

    /// Bits of one element; 0 for `Dynamic` and `String`, which have no fixed size.
    pub fn bits(self) -> usize {
        TABLE[self as usize].3
    }

    /// The spelling of `element_type=` attributes, such as `f32`.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The spelling of `precision=` on ports, such as `FP32`.
    pub fn precision(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// True for every float kind, f8, f4 and nf4 included.
    pub fn is_float(self) -> bool {
        matches!(self, Bf16 | F16 | F32 | F64 | Nf4 | F8E4M3 | F8E5M2 | F8E8M0 | F4E2M1 | F8E4M3Fnuz | F8E5M2Fnuz)
    }

    /// True for signed and unsigned integers; `Boolean` is not one.
    pub fn is_integer(self) -> bool {
        matches!(self, I2 | I4 | I8 | I16 | I32 | I64 | U1 | U2 | U3 | U4 | U6 | U8 | U16 | U32 | U64)
    }

    /// True when negative values can be held. f8e8m0 is a float without a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, I2 | I4 | I8 | I16 | I32 | I64) || (self.is_float() && self != F8E8M0)
    }

    /// Whether OpenVINO has the type. An IR with another one is read by this engine only.
    pub fn is_in_openvino(self) -> bool {
        !matches!(self, F8E4M3Fnuz | F8E5M2Fnuz | I2)
    }

    /// Whether several elements share a byte.
    pub fn is_sub_byte(self) -> bool {
        (1..8).contains(&self.bits())
    }

    /// Whether it is not known yet.
    pub fn is_dynamic(self) -> bool {
        self == Dynamic
    }

    /// Bytes that `elements` take in storage. u3 and u6 round up to whole groups of three bytes.
    /// `None` for `String`, and when the count overflows. `Dynamic` takes 0 bytes.
    pub fn byte_len(self, elements: usize) -> Option<usize> {
        match self {
            String => None,
            U3 => elements.div_ceil(8).checked_mul(3),
            U6 => elements.div_ceil(4).checked_mul(3),
            _ if self.is_sub_byte() => Some(elements.div_ceil(8 / self.bits())),
            _ => elements.checked_mul(self.bits() / 8),
        }
    }

    /// The fewest bytes a file may give for `elements`: `ceil(elements * bits / 8)`. It is below [`Self::byte_len`] only
    /// for a partial last group of u3 or u6.
    pub fn least_byte_len(self, elements: usize) -> Option<usize> {
        match self {
            U3 | U6 => Some((elements / 8).checked_mul(self.bits())? + (elements % 8 * self.bits()).div_ceil(8)),
            _ => self.byte_len(elements),
        }
    }

    /// The type both agree on: `Dynamic` yields to the other, different concrete types do not merge.
    pub fn merge(a: Self, b: Self) -> Option<Self> {
        match (a, b) {
            (Dynamic, other) | (other, Dynamic) => Some(other),
            _ => (a == b).then_some(a),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElementType {
    type Err = TensorError;

    /// Accepts the name and the precision spelling in any case, and the old `undefined`, `bin`.
    fn from_str(text: &str) -> Result<Self, TensorError> {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("undefined") {
            return Ok(Dynamic);
        }
        TABLE
            .iter()
            .find(|(_, name, precision, _)| {
                trimmed.eq_ignore_ascii_case(name) || trimmed.eq_ignore_ascii_case(precision)
            })
            .map(|entry| entry.0)
            .ok_or_else(|| TensorError::UnknownElementType { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_every_type_parse_in_any_case() {
        for &ty in ElementType::ALL {
            for text in [ty.name(), ty.precision()] {
                assert_eq!(text.parse(), Ok(ty));
                assert_eq!(text.to_ascii_uppercase().parse(), Ok(ty));
                assert_eq!(text.to_ascii_lowercase().parse(), Ok(ty));
            }
        }
    }

    #[test]
    fn old_spellings_parse() {
        assert_eq!("undefined".parse(), Ok(Dynamic));
        assert_eq!("bin".parse(), Ok(U1));
        assert_eq!("U1".parse(), Ok(U1));
    }

    #[test]
    fn an_unknown_spelling_is_an_error() {
        assert!(matches!("f33".parse::<ElementType>(), Err(TensorError::UnknownElementType { .. })));
        assert!("".parse::<ElementType>().is_err());
    }

    #[test]
    fn sub_byte_sizes_round_up() {
        assert_eq!(U4.byte_len(3), Some(2));
        assert_eq!(U2.byte_len(5), Some(2));
        assert_eq!(U1.byte_len(9), Some(2));
        assert_eq!(I64.byte_len(3), Some(24));
    }

    #[test]
    fn split_groups_take_three_bytes_in_storage() {
        assert_eq!(U3.byte_len(1), Some(3));
        assert_eq!(U3.byte_len(9), Some(6));
        assert_eq!(U6.byte_len(5), Some(6));
    }

    #[test]
    fn split_groups_may_be_cut_short_in_a_file() {
        assert_eq!(U3.least_byte_len(1), Some(1));
        assert_eq!(U3.least_byte_len(9), Some(4));
        assert_eq!(U6.least_byte_len(5), Some(4));
        assert_eq!(U6.least_byte_len(7), Some(6));
    }

    #[test]
    fn byte_len_reports_overflow() {
        assert_eq!(F64.byte_len(usize::MAX), None);
        assert_eq!(String.byte_len(1), None);
        assert!(U4.byte_len(usize::MAX).is_some());
    }

    #[test]
    fn merge_lets_dynamic_yield() {
        assert_eq!(ElementType::merge(Dynamic, F32), Some(F32));
        assert_eq!(ElementType::merge(F32, Dynamic), Some(F32));
        assert_eq!(ElementType::merge(F32, F32), Some(F32));
        assert_eq!(ElementType::merge(F32, F16), None);
    }

    #[test]
    fn boolean_is_neither_integer_nor_float() {
        assert!(!Boolean.is_integer() && !Boolean.is_float() && !Boolean.is_signed());
    }
}
