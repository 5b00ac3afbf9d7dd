//! One array: the .npy format. Text arrays are padded with zero characters in a file, so a string loses zero characters
//! at its end.

use crate::NpyError;
use crate::header::{self, Header, Kind};
use carafe_tensor::memory::ensure_memory;
use carafe_tensor::{ElementType, Tensor, elements};

/// A text array takes the width of its longest string for each one; past this size it is refused.
const MOST_TEXT_BYTES: u64 = 4 << 30;

/// Reads an .npy file of version 1, 2 or 3. Bytes after the array are ignored.
pub fn read_npy(bytes: &[u8]) -> Result<Tensor, NpyError> {
    let (header, data) = header::read(bytes)?;
    let Header { big_endian, kind, fortran_order, shape } = header;
    let too_large = || NpyError::Header { reason: format!("shape {shape:?} is too large to address") };
    let count = elements(&shape).ok_or_else(too_large)?;
    let size = kind.size().ok_or_else(too_large)?;
    let needed = count.checked_mul(size).ok_or_else(too_large)?;
    if size == 0 && count > bytes.len() {
        // Strings of no width take no bytes, so nothing else would bound their number.
        return Err(NpyError::Header { reason: format!("shape {shape:?} of elements without bytes") });
    }
    let (data, _) = header::take(data, needed, "the array")?;
    if matches!(kind, Kind::Unicode(_) | Kind::Bytes(_)) {
        ensure_memory(count.saturating_mul(size_of::<String>()).saturating_add(needed))?;
    }
    // Column-major data is row-major data of the mirrored shape.
    let stored: Vec<usize> = if fortran_order { shape.iter().rev().copied().collect() } else { shape.clone() };
    let tensor = match kind {
        Kind::Unicode(_) | Kind::Bytes(_) => {
            Tensor::from_strings(&stored, texts(kind, size, count, data, big_endian)?)?
        }
        Kind::Bool => {
            let bytes: Vec<u8> = data.iter().map(|&b| u8::from(b != 0)).collect();
            Tensor::from_bytes(ElementType::Boolean, &stored, &bytes)?
        }
        _ => numbers(element_type(kind), &stored, data, size, big_endian)?,
    };
    if fortran_order && shape.len() > 1 { Ok(mirror(&tensor, &shape)?) } else { Ok(tensor.reshaped(&shape)?) }
}

/// Writes an .npy file of version 1. Types that NumPy lacks are written as f32.
pub fn write_npy(tensor: &Tensor) -> Result<Vec<u8>, NpyError> {
    let NpyParts { header, data } = npy_parts(tensor)?;
    let data = data.bytes();
    ensure_memory(header.len().saturating_add(data.len()))?;
    Ok([&header, data].concat())
}

/// An .npy file in two parts, so that numbers go to a file from where they lie.
#[derive(Debug)]
pub struct NpyParts {
    pub header: Vec<u8>,
    /// What follows the header, whose bytes are those of the file.
    pub data: Tensor,
}

/// The parts of an .npy file of version 1, as [`write_npy`] joins them.
pub fn npy_parts(tensor: &Tensor) -> Result<NpyParts, NpyError> {
    let ty = tensor.element_type();
    if ty == ElementType::String {
        return text_parts(tensor);
    }
    let Some(descr) = descriptor(ty) else { return npy_parts(&tensor.cast(ElementType::F32)?) };
    Ok(NpyParts { header: header::write(descr, tensor.shape())?, data: tensor.clone() })
}

fn element_type(kind: Kind) -> ElementType {
    use ElementType::*;
    match kind {
        Kind::Int(1) => I8,
        Kind::Int(2) => I16,
        Kind::Int(4) => I32,
        Kind::Int(_) => I64,
        Kind::Uint(1) => U8,
        Kind::Uint(2) => U16,
        Kind::Uint(4) => U32,
        Kind::Uint(_) => U64,
        Kind::Float(2) => F16,
        Kind::Float(4) => F32,
        Kind::Float(_) => F64,
        Kind::Bool => Boolean,
        Kind::Unicode(_) | Kind::Bytes(_) => String,
    }
}

fn descriptor(ty: ElementType) -> Option<&'static str> {
    use ElementType::*;
    Some(match ty {
        Boolean => "|b1",
        I8 => "|i1",
        I16 => "<i2",
        I32 => "<i4",
        I64 => "<i8",
        U8 => "|u1",
        U16 => "<u2",
        U32 => "<u4",
        U64 => "<u8",
        F16 => "<f2",
        F32 => "<f4",
        F64 => "<f8",
        _ => return None,
    })
}

fn numbers(ty: ElementType, shape: &[usize], data: &[u8], size: usize, swap: bool) -> Result<Tensor, NpyError> {
    let mut tensor = Tensor::from_bytes(ty, shape, data)?;
    if swap && size > 1 {
        tensor.bytes_mut().chunks_exact_mut(size).for_each(|element| element.reverse());
    }
    Ok(tensor)
}

fn texts(kind: Kind, size: usize, count: usize, data: &[u8], big_endian: bool) -> Result<Vec<String>, NpyError> {
    let one = |index: usize| {
        let bytes = &data[index * size..(index + 1) * size];
        let text = match kind {
            Kind::Unicode(_) => utf32(bytes, big_endian),
            _ => std::str::from_utf8(bytes).map(str::to_string).map_err(|e| format!("not UTF-8: {e}")),
        };
        text.map(trimmed).map_err(|reason| NpyError::Text { index, reason })
    };
    (0..count).map(one).collect()
}

fn trimmed(mut text: String) -> String {
    text.truncate(text.trim_end_matches('\0').len());
    text.shrink_to_fit();
    text
}

fn utf32(bytes: &[u8], big_endian: bool) -> Result<String, String> {
    let code = |b: &[u8]| {
        let b = [b[0], b[1], b[2], b[3]];
        if big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
    };
    let chars = bytes.chunks_exact(4).map(code);
    chars.map(|c| char::from_u32(c).ok_or_else(|| format!("{c:#x} is not a character"))).collect()
}

fn text_parts(tensor: &Tensor) -> Result<NpyParts, NpyError> {
    let strings = tensor.strings()?;
    let width = strings.iter().map(|s| s.chars().count()).max().unwrap_or(0).max(1);
    let bytes = width as u128 * 4 * strings.len() as u128;
    if bytes > u128::from(MOST_TEXT_BYTES) {
        return Err(NpyError::TooLarge { what: "a text array".into(), bytes, limit: MOST_TEXT_BYTES });
    }
    let header = header::write(&format!("<U{width}"), tensor.shape())?;
    ensure_memory(bytes as usize)?;
    let mut out = Vec::with_capacity(bytes as usize);
    for s in strings {
        let end = out.len() + width * 4;
        out.extend(s.chars().flat_map(|c| u32::from(c).to_le_bytes()));
        out.resize(end, 0);
    }
    let shape = [out.len()];
    Ok(NpyParts { header, data: Tensor::from_vec(&shape, out)? })
}

/// Reorders a tensor stored under the mirrored shape so that it is row-major in `shape`.
fn mirror(stored: &Tensor, shape: &[usize]) -> Result<Tensor, NpyError> {
    let position = |mut flat: usize| {
        // The last axis of `shape` is the first of the stored one, so the farthest apart.
        let mut stride: usize = shape[..shape.len() - 1].iter().product();
        let mut at = 0;
        for axis in (0..shape.len()).rev() {
            at += flat % shape[axis] * stride;
            flat /= shape[axis];
            if axis > 0 {
                stride /= shape[axis - 1].max(1);
            }
        }
        Some(at)
    };
    Ok(stored.select(shape, position)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [header::MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn dict(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
    }

    #[track_caller]
    fn same(a: &Tensor, b: &Tensor) {
        assert!(a.content_eq(b), "{a:?} and {b:?}");
    }

    #[test]
    fn every_type_reads_back_as_written() {
        for &ty in ElementType::ALL.iter().filter(|t| !t.is_dynamic() && **t != ElementType::String) {
            let t = Tensor::from_i64(ty, &[2, 2], &[0, 1, 1, 0]).unwrap();
            let back = read_npy(&write_npy(&t).unwrap()).unwrap();
            let expected = if descriptor(ty).is_some() { t } else { t.cast(ElementType::F32).unwrap() };
            same(&back, &expected);
        }
    }

    #[test]
    fn scalars_and_empty_arrays_keep_their_shape() {
        for shape in [&[][..], &[0], &[3, 0, 2]] {
            let t = Tensor::zeros(ElementType::I16, shape).unwrap();
            same(&read_npy(&write_npy(&t).unwrap()).unwrap(), &t);
        }
    }

    #[test]
    fn column_major_data_is_reordered() {
        let data: Vec<u8> = [0, 3, 1, 4, 2, 5].to_vec();
        let t = read_npy(&file(&dict("|u1", "True", "(2, 3)"), &data)).unwrap();
        same(&t, &Tensor::from_slice(&[2, 3], &[0u8, 1, 2, 3, 4, 5]).unwrap());
        // f(i, j, k) = 100 i + 10 j + k over (2, 3, 4), stored with i fastest.
        let codes = |order: &dyn Fn(usize) -> (usize, usize, usize)| -> Vec<u8> {
            (0..24)
                .map(|n| {
                    let (i, j, k) = order(n);
                    (100 * i + 10 * j + k) as u8
                })
                .collect()
        };
        let stored = codes(&|n| (n % 2, n / 2 % 3, n / 6));
        let t = read_npy(&file(&dict("|u1", "True", "(2, 3, 4)"), &stored)).unwrap();
        assert_eq!(t.bytes(), codes(&|n| (n / 12, n / 4 % 3, n % 4)));
        assert!(read_npy(&file(&dict("|u1", "True", "(2, 0, 4)"), &[])).unwrap().is_empty());
    }

    #[test]
    fn big_endian_numbers_are_swapped() {
        let t = read_npy(&file(&dict(">i4", "False", "(2,)"), &[0, 0, 1, 2, 255, 255, 255, 254])).unwrap();
        same(&t, &Tensor::from_slice(&[2], &[258i32, -2]).unwrap());
    }

    #[test]
    fn booleans_are_zero_or_one() {
        let t = read_npy(&file(&dict("|b1", "False", "(3,)"), &[0, 1, 7])).unwrap();
        assert_eq!((t.element_type(), t.bytes()), (ElementType::Boolean, &[0u8, 1, 1][..]));
    }

    #[test]
    fn texts_of_both_kinds_and_orders_are_read() {
        let be: Vec<u8> = ['é', '\0', '字', 'b'].iter().flat_map(|c| u32::from(*c).to_be_bytes()).collect();
        let t = read_npy(&file(&dict(">U2", "False", "(2,)"), &be)).unwrap();
        assert_eq!(t.strings().unwrap(), ["é", "字b"]);
        let t = read_npy(&file(&dict("|S3", "False", "(2,)"), b"ab\0\0\0\0")).unwrap();
        assert_eq!(t.strings().unwrap(), ["ab", ""]);
    }

    #[test]
    fn texts_read_back_as_written() {
        let t = Tensor::from_strings(&[2, 2], ["", "a", "žluť", "🍷"].map(String::from).to_vec()).unwrap();
        same(&read_npy(&write_npy(&t).unwrap()).unwrap(), &t);
        let empty = Tensor::from_strings(&[0], vec![]).unwrap();
        same(&read_npy(&write_npy(&empty).unwrap()).unwrap(), &empty);
    }

    #[test]
    fn bad_text_is_refused() {
        let e = read_npy(&file(&dict("|S2", "False", "(2,)"), b"ab\xff\xfe")).unwrap_err();
        assert!(matches!(&e, NpyError::Text { index: 1, .. }), "{e}");
        let e = read_npy(&file(&dict("<U1", "False", "(1,)"), &0xD800u32.to_le_bytes())).unwrap_err();
        assert!(e.to_string().contains("0xd800 is not a character"), "{e}");
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error() {
        let whole = write_npy(&Tensor::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap()).unwrap();
        for n in 0..whole.len() {
            assert!(read_npy(&whole[..n]).is_err(), "{n}");
        }
        let e = read_npy(&whole[..whole.len() - 1]).unwrap_err();
        assert_eq!(e.to_string(), "the file ends early: the array needs 16 bytes, found 15");
    }

    #[test]
    fn hostile_sizes_are_errors_and_allocate_nothing() {
        for (descr, shape) in [
            ("<f8", "(1000000000000,)"),
            ("<f8", "(18446744073709551615,)"),
            ("<f8", "(4294967296, 4294967296)"),
            ("<U4611686018427387904", "(4,)"),
            ("<U18446744073709551615", "(1,)"),
            ("|S0", "(1000000000000,)"),
            ("|S9999999999999", "(9999999,)"),
        ] {
            assert!(read_npy(&file(&dict(descr, "False", shape), &[0; 8])).is_err(), "{descr} {shape}");
        }
        let long = [header::MAGIC, &[2, 0], &u32::MAX.to_le_bytes(), b"{}"].concat();
        assert!(matches!(read_npy(&long), Err(NpyError::Truncated { .. })));
    }

    #[test]
    fn versions_two_and_three_have_a_longer_header() {
        for major in [2, 3] {
            let text = dict("<i2", "False", "()");
            let bytes =
                [header::MAGIC, &[major, 0], &(text.len() as u32).to_le_bytes(), text.as_bytes(), &[5, 0]].concat();
            same(&read_npy(&bytes).unwrap(), &Tensor::scalar(5i16));
        }
        let e = read_npy(&[header::MAGIC, &[4, 0, 0, 0]].concat()).unwrap_err();
        assert_eq!((e.kind(), e.to_string().contains("version 4.0")), (ErrorKind::Unsupported, true));
        assert!(matches!(read_npy(b"PK\x03\x04"), Err(NpyError::Signature { .. })));
    }
}
