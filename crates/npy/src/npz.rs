//! Several named arrays in one archive: the .npz format, a zip of .npy files.

use crate::{NpyError, read_npy, write_npy, zip};
use carafe_tensor::Tensor;
use std::collections::HashSet;

const ENDING: &str = ".npy";

/// Room for the header of an array, which is a few hundred bytes at most.
const HEADER_BYTES: u64 = 1 << 16;

/// Reads every array of an archive, stored or deflated, in its order.
pub fn read_npz(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, NpyError> {
    read_npz_within(bytes, |_| None)
}

/// As [`read_npz`], but an array that is larger than `most` says for its name is an error before it is inflated. `None` bounds
/// it by memory alone.
pub fn read_npz_within(bytes: &[u8], most: impl Fn(&str) -> Option<u64>) -> Result<Vec<(String, Tensor)>, NpyError> {
    let mut arrays = Vec::new();
    for member in zip::members(bytes)? {
        let Some(name) = member.name.strip_suffix(ENDING) else {
            let what = format!("member `{}`", member.name);
            return Err(NpyError::Unsupported { what, expected: "arrays, whose names end with .npy" });
        };
        if let Some(limit) = most(name).filter(|limit| member.size > limit.saturating_add(HEADER_BYTES)) {
            let what = format!("array `{name}`");
            return Err(NpyError::TooLarge { what, bytes: u128::from(member.size), limit });
        }
        let tensor = member.contents(bytes).and_then(|c| read_npy(&c)).map_err(|e| e.of_member(name))?;
        arrays.push((name.to_string(), tensor));
    }
    Ok(arrays)
}

/// Writes an archive without compression; each name may occur once.
pub fn write_npz(arrays: &[(String, Tensor)]) -> Result<Vec<u8>, NpyError> {
    let mut names = HashSet::new();
    let mut members = Vec::with_capacity(arrays.len());
    for (name, tensor) in arrays {
        if !names.insert(name) {
            return Err(NpyError::Archive { reason: format!("the name `{name}` occurs twice") });
        }
        members.push((format!("{name}{ENDING}"), write_npy(tensor).map_err(|e| e.of_member(name))?));
    }
    zip::write(&members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_tensor::ElementType;

    fn arrays() -> Vec<(String, Tensor)> {
        vec![
            ("a".into(), Tensor::from_slice(&[2], &[1f32, -2.0]).unwrap()),
            ("dir/ž".into(), Tensor::from_strings(&[1], vec!["text".into()]).unwrap()),
            ("".into(), Tensor::scalar(7i64)),
        ]
    }

    fn same(a: &[(String, Tensor)], b: &[(String, Tensor)]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && x.1.content_eq(&y.1))
    }

    /// One deflated member `x.npy`; `size` is what the directory claims.
    fn deflated(contents: &[u8], size: u32) -> Vec<u8> {
        let packed = miniz_oxide::deflate::compress_to_vec(contents, 6);
        let mut file = zip::write(&[("x.npy".into(), packed)]).unwrap();
        let directory = file.len() - 22 - 46 - 5;
        let crc = crate::crc32::crc32(contents);
        file[directory + 10] = 8;
        file[directory + 16..directory + 20].copy_from_slice(&crc.to_le_bytes());
        file[directory + 24..directory + 28].copy_from_slice(&size.to_le_bytes());
        file
    }

    #[test]
    fn arrays_read_back_as_written() {
        assert!(same(&read_npz(&write_npz(&arrays()).unwrap()).unwrap(), &arrays()));
        assert!(read_npz(&write_npz(&[]).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn deflated_members_are_read() {
        let t = Tensor::zeros(ElementType::F32, &[1000]).unwrap();
        let npy = write_npy(&t).unwrap();
        let found = read_npz(&deflated(&npy, npy.len() as u32)).unwrap();
        assert!(same(&found, &[("x".into(), t)]));
    }

    #[test]
    fn an_array_larger_than_wanted_is_refused_before_it_is_inflated() {
        let npy = write_npy(&Tensor::zeros(ElementType::F32, &[100_000]).unwrap()).unwrap();
        let file = deflated(&npy, npy.len() as u32);
        let e = read_npz_within(&file, |name| (name == "x").then_some(1000)).unwrap_err();
        assert_eq!(e.to_string(), "array `x` is too large: 400128 bytes, at most 1000 are possible");
        assert!(read_npz_within(&file, |_| Some(400_000)).is_ok());
    }

    #[test]
    fn a_false_size_is_refused() {
        let npy = write_npy(&Tensor::zeros(ElementType::F32, &[1000]).unwrap()).unwrap();
        for size in [0, 100, npy.len() as u32 + 1, u32::MAX - 1] {
            assert!(read_npz(&deflated(&npy, size)).is_err(), "{size}");
        }
    }

    #[test]
    fn an_archive_cut_anywhere_is_an_error() {
        let whole = write_npz(&arrays()).unwrap();
        for n in 0..whole.len() {
            assert!(read_npz(&whole[..n]).is_err(), "{n}");
        }
    }

    #[test]
    fn any_changed_byte_is_an_error_or_another_archive_but_no_panic() {
        let whole = write_npz(&arrays()).unwrap();
        for i in 0..whole.len() {
            for change in [1, 0x80, 0xFF] {
                let mut file = whole.clone();
                file[i] ^= change;
                let _ = read_npz(&file);
            }
        }
    }

    #[test]
    fn damage_is_found_by_the_checksum_and_named() {
        let mut file = write_npz(&arrays()[..1]).unwrap();
        let at = 30 + 5 + 128 + 3;
        file[at] ^= 1;
        let e = read_npz(&file).unwrap_err().to_string();
        assert_eq!(e, "array `a`: the archive is not valid: the checksum of a member is wrong");
    }

    #[test]
    fn a_name_may_occur_once() {
        let twice = [arrays()[0].clone(), arrays()[0].clone()];
        assert!(write_npz(&twice).unwrap_err().to_string().contains("`a` occurs twice"));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(read_npz(b"\x93NUMPY"), Err(NpyError::Signature { .. })));
        let other = zip::write(&[("readme.txt".into(), vec![])]).unwrap();
        assert!(read_npz(&other).unwrap_err().to_string().contains("member `readme.txt` is not supported"));
    }

    #[test]
    fn members_that_share_bytes_are_refused() {
        let one = zip::write(&[("x.npy".into(), vec![0; 1000])]).unwrap();
        let (local, rest) = one.split_at(30 + 5 + 1000);
        let entry = &rest[..46 + 5];
        let mut end = rest[46 + 5..].to_vec();
        end[8..12].copy_from_slice(&[200, 0, 200, 0]);
        let file = [local, &entry.repeat(200), &end].concat();
        assert!(read_npz(&file).unwrap_err().to_string().contains("larger than the file"));
    }
}
