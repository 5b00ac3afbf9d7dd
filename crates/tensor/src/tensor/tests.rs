//! Tests of the tensor. The byte examples were written by OpenVINO 2026.4.1.

use super::*;
use half::{bf16, f16};
use std::fs::File;
use std::io::Write;

use ElementType::*;

fn check_packed(ty: ElementType, values: &[f64], bytes: &[u8]) {
    let tensor = Tensor::from_f64(ty, &[values.len()], values).unwrap();
    assert_eq!(tensor.bytes(), bytes);
    let read = Tensor::from_bytes(ty, &[values.len()], bytes).unwrap();
    assert_eq!(&*read.to_vec::<f64>().unwrap(), values);
}

/// A mapped file with these bytes; the file itself is gone from its folder at once.
fn mapped(bytes: &[u8]) -> SharedBytes {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("carafe-tensor-{}-{}.bin", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    File::create(&path).unwrap().write_all(bytes).unwrap();
    let store = SharedBytes::map_file(&File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    store
}

#[test]
fn u4_packs_as_in_the_ir() {
    check_packed(U4, &[1., 2., 3.], &[0x21, 0x03]);
}

#[test]
fn i4_packs_as_in_the_ir() {
    check_packed(I4, &[-1., 2., -8.], &[0x2f, 0x08]);
}

#[test]
fn u2_packs_as_in_the_ir() {
    check_packed(U2, &[1., 2., 3., 0., 1.], &[0x39, 0x01]);
}

#[test]
fn u1_packs_as_in_the_ir() {
    check_packed(U1, &[1., 0., 0., 0., 0., 0., 1., 1., 1.], &[0x83, 0x80]);
}

#[test]
fn nf4_packs_as_in_the_ir() {
    check_packed(Nf4, &[0., 1., -1.], &[0xf7, 0x00]);
}

#[test]
fn f4e2m1_packs_as_in_the_ir() {
    check_packed(F4E2M1, &[0.5, 6., -1.], &[0x71, 0x0a]);
}

#[test]
fn f8e4m3_packs_as_in_the_ir() {
    check_packed(F8E4M3, &[1., 448.], &[0x38, 0x7e]);
}

#[test]
fn f8e5m2_packs_as_in_the_ir() {
    check_packed(F8E5M2, &[1., 2.], &[0x3c, 0x40]);
}

#[test]
fn f8e8m0_packs_as_in_the_ir() {
    check_packed(F8E8M0, &[1., 4.], &[0x7f, 0x81]);
}

#[test]
fn bf16_packs_as_in_the_ir() {
    check_packed(Bf16, &[1.], &[0x80, 0x3f]);
}

#[test]
fn u3_packs_as_in_the_ir() {
    check_packed(U3, &[1., 2., 3., 4., 5., 6., 7., 0.], &[0x6c, 0x6c, 0x1e]);
}

#[test]
fn u6_packs_as_in_the_ir() {
    check_packed(U6, &[1., 2., 33., 63.], &[0x12, 0x1f, 0x0b]);
}

#[test]
fn string_payload_reads_as_in_the_ir() {
    let mut bytes: Vec<u8> = [3i32, 0, 2, 2, 5].iter().flat_map(|n| n.to_le_bytes()).collect();
    bytes.extend(b"abxyz");
    let tensor = Tensor::from_bytes(String, &[3], &bytes).unwrap();
    assert_eq!(tensor.strings().unwrap(), ["ab", "", "xyz"]);
    assert_eq!(tensor.byte_len(), 25);
}

#[test]
fn zeros_exist_for_every_type_but_dynamic() {
    for &ty in ElementType::ALL {
        let made = Tensor::zeros(ty, &[3, 3]);
        assert_eq!(made.is_ok(), ty != Dynamic, "{ty}");
    }
}

#[test]
fn zeros_of_nf4_are_the_level_zero() {
    let tensor = Tensor::zeros(Nf4, &[3]).unwrap();
    assert_eq!(tensor.bytes(), [0x77, 0x07]);
    assert_eq!(&*tensor.to_vec::<f32>().unwrap(), [0.0; 3]);
}

#[test]
fn zeros_are_aligned_to_64_bytes() {
    assert_eq!(Tensor::zeros(F32, &[3]).unwrap().storage_ptr() % 64, 0);
}

#[test]
fn a_tensor_of_2_to_the_60_elements_is_an_error() {
    for ty in [U1, U8, F32, F64, String] {
        assert!(Tensor::zeros(ty, &[1 << 30, 1 << 30]).is_err(), "{ty}");
    }
    assert!(matches!(Tensor::zeros(U8, &[1 << 40, 1 << 40]), Err(TensorError::TooLarge { .. })));
}

#[test]
fn an_empty_tensor_has_a_slice() {
    let tensor = Tensor::zeros(F64, &[2, 0]).unwrap();
    assert!(tensor.is_empty());
    assert_eq!(tensor.as_slice::<f64>().unwrap(), [0f64; 0]);
}

#[test]
fn a_scalar_has_rank_zero() {
    let tensor = Tensor::scalar(2.5f32);
    assert_eq!((tensor.rank(), tensor.len()), (0, 1));
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [2.5]);
}

#[test]
fn a_count_that_differs_from_the_shape_is_an_error() {
    let error = Tensor::from_slice(&[2], &[1f32, 2., 3.]).unwrap_err();
    assert_eq!(error, TensorError::ElementCount { shape: vec![2], expected: 2, found: 3 });
    assert!(Tensor::from_vec(&[2], vec![1u8]).is_err());
    assert!(Tensor::from_strings(&[2], vec![]).is_err());
}

#[test]
fn too_few_bytes_are_an_error_and_more_are_ignored() {
    assert!(matches!(Tensor::from_bytes(F32, &[2], &[0; 7]), Err(TensorError::ByteCount { expected: 8, .. })));
    assert_eq!(Tensor::from_bytes(F32, &[2], &[0; 9]).unwrap().byte_len(), 8);
}

#[test]
fn a_split_group_cut_short_is_filled_up() {
    let tensor = Tensor::from_bytes(U3, &[2], &[0x6c]).unwrap();
    assert_eq!(tensor.byte_len(), 3);
    assert_eq!(&*tensor.to_vec::<i32>().unwrap(), [1, 2]);
}

#[test]
fn a_slice_of_another_type_is_an_error() {
    let tensor = Tensor::scalar(1f32);
    assert_eq!(tensor.as_slice::<i32>().unwrap_err(), TensorError::TypeMismatch { expected: I32, found: F32 });
    assert!(tensor.strings().is_err());
}

#[test]
fn booleans_read_as_u8() {
    let mut tensor = Tensor::from_bytes(Boolean, &[2], &[0, 1]).unwrap();
    assert_eq!(tensor.as_slice::<u8>().unwrap(), [0, 1]);
    tensor.as_slice_mut::<u8>().unwrap()[0] = 1;
    assert_eq!(&*tensor.to_vec::<f32>().unwrap(), [1., 1.]);
}

#[test]
fn a_view_of_a_mapped_file_is_not_copied() {
    let mut bytes = vec![0u8; 64];
    bytes.extend(1.5f32.to_le_bytes());
    let store = mapped(&bytes);
    let tensor = Tensor::view(F32, &[1], &store, 64, 4).unwrap();
    assert!(tensor.is_mapped());
    assert_eq!(tensor.storage_ptr(), store.as_slice().as_ptr() as usize + 64);
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [1.5]);
}

#[test]
fn a_misaligned_view_copies_when_elements_are_asked_for() {
    let mut bytes = vec![0u8];
    bytes.extend(1.5f32.to_le_bytes());
    let store = mapped(&bytes);
    let mut tensor = Tensor::view(F32, &[1], &store, 1, 4).unwrap();
    assert!(tensor.is_mapped());
    assert_eq!(tensor.bytes(), 1.5f32.to_le_bytes());
    let same = tensor.clone();
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [1.5]);
    assert_eq!(*tensor.to_vec::<f32>().unwrap(), [1.5]);
    assert_eq!(*tensor.to_vec::<i64>().unwrap(), [1]);
    assert_eq!(tensor.as_slice::<f32>().unwrap().as_ptr(), same.as_slice::<f32>().unwrap().as_ptr());
    tensor.release();
    assert_eq!(tensor.bytes(), 1.5f32.to_le_bytes());
    tensor.as_slice_mut::<f32>().unwrap()[0] = 2.5;
    assert_eq!((tensor.as_slice::<f32>().unwrap(), same.as_slice::<f32>().unwrap()), (&[2.5][..], &[1.5][..]));
}

#[test]
fn a_misaligned_view_of_an_owned_store_can_be_written() {
    let mut tensor = Tensor::view(F32, &[1], &SharedBytes::from_vec(vec![0; 9]), 1, 4).unwrap();
    tensor.as_slice_mut::<f32>().unwrap()[0] = 2.5;
    assert_eq!(tensor.as_slice::<f32>().unwrap(), [2.5]);
}

#[test]
fn a_view_past_the_store_is_an_error() {
    let store = SharedBytes::from_vec(vec![0; 8]);
    assert!(matches!(Tensor::view(U8, &[4], &store, 6, 4), Err(TensorError::OutsideStore { .. })));
    assert!(Tensor::view(U8, &[4], &store, usize::MAX, 4).is_err());
}

#[test]
fn writing_to_a_mapped_tensor_copies_it() {
    let store = mapped(&[1, 2, 3, 4]);
    let mut tensor = Tensor::view(U8, &[4], &store, 0, 4).unwrap();
    tensor.bytes_mut()[0] = 9;
    assert!(!tensor.is_mapped());
    assert_eq!((tensor.bytes(), store.as_slice()), (&[9, 2, 3, 4][..], &[1, 2, 3, 4][..]));
}

#[test]
fn writing_to_a_shared_tensor_copies_it() {
    let first = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
    let mut second = first.clone();
    assert_eq!(first.storage_ptr(), second.storage_ptr());
    second.as_slice_mut::<i32>().unwrap()[0] = 7;
    assert_eq!(first.as_slice::<i32>().unwrap(), [1, 2]);
    assert_eq!(second.as_slice::<i32>().unwrap(), [7, 2]);
}

#[test]
fn writing_to_an_unshared_tensor_does_not_copy() {
    for mut tensor in [Tensor::zeros(F32, &[2]).unwrap(), Tensor::from_vec(&[2], vec![0f32; 2]).unwrap()] {
        let address = tensor.storage_ptr();
        tensor.as_slice_mut::<f32>().unwrap()[1] = 1.0;
        assert_eq!(tensor.storage_ptr(), address);
    }
}

#[test]
fn writing_to_shared_strings_copies_them() {
    let first = Tensor::from_strings(&[1], vec!["a".into()]).unwrap();
    let mut second = first.clone();
    second.strings_mut().unwrap()[0].push('b');
    assert_eq!(first.strings().unwrap(), ["a"]);
    assert_eq!(second.strings().unwrap(), ["ab"]);
}

#[test]
fn to_vec_borrows_the_exact_type() {
    let tensor = Tensor::from_slice(&[2], &[1f32, 2.]).unwrap();
    assert!(matches!(tensor.to_vec::<f32>().unwrap(), Cow::Borrowed(_)));
    assert!(matches!(tensor.to_vec::<i64>().unwrap(), Cow::Owned(_)));
}

#[test]
fn to_vec_of_strings_is_an_error() {
    assert!(matches!(Tensor::zeros(String, &[1]).unwrap().to_vec::<f32>(), Err(TensorError::NoCast { .. })));
}

#[test]
fn from_numbers_keeps_a_vector_of_the_same_type() {
    let data = vec![1f32, 2.];
    let address = data.as_ptr() as usize;
    assert_eq!(Tensor::from_numbers(F32, &[2], data).unwrap().storage_ptr(), address);
}

#[test]
fn cast_goes_between_any_two_numeric_types() {
    for &from in ElementType::ALL {
        for &to in ElementType::ALL {
            if [from, to].iter().all(|ty| !matches!(ty, Dynamic | String)) {
                let tensor = Tensor::from_i64(from, &[3], &[1, 1, 1]).unwrap().cast(to).unwrap();
                assert_eq!(tensor.element_type(), to);
                assert_eq!(&*tensor.to_vec::<i64>().unwrap(), [1, 1, 1], "{from} to {to}");
            }
        }
    }
}

#[test]
fn cast_keeps_large_integers_exact() {
    let big = [i64::MAX - 1, -2];
    let tensor = Tensor::from_i64(I64, &[2], &big).unwrap().cast(U64).unwrap();
    assert_eq!(tensor.as_slice::<u64>().unwrap(), [i64::MAX as u64 - 1, u64::MAX - 1]);
    assert_eq!(tensor.cast(I64).unwrap().as_slice::<i64>().unwrap(), big);
}

#[test]
fn cast_wraps_floats_into_u8() {
    let tensor = Tensor::from_slice(&[2], &[300f32, -1.9]).unwrap().cast(U8).unwrap();
    assert_eq!(tensor.as_slice::<u8>().unwrap(), [44, 255]);
}

#[test]
fn cast_to_boolean_gives_zero_or_one() {
    let tensor = Tensor::from_slice(&[3], &[0f32, 0.5, -7.]).unwrap().cast(Boolean).unwrap();
    assert_eq!(tensor.bytes(), [0, 1, 1]);
}

#[test]
fn cast_to_the_same_type_shares_the_bytes() {
    let tensor = Tensor::scalar(1f32);
    assert_eq!(tensor.cast(F32).unwrap().storage_ptr(), tensor.storage_ptr());
}

#[test]
fn cast_between_halves_rounds() {
    let tensor = Tensor::from_slice(&[1], &[bf16::from_f32(3.0)]).unwrap().cast(F16).unwrap();
    assert_eq!(tensor.as_slice::<f16>().unwrap(), [f16::from_f32(3.0)]);
}

#[test]
fn cast_of_strings_is_an_error() {
    assert!(Tensor::zeros(String, &[1]).unwrap().cast(F32).is_err());
    assert!(Tensor::scalar(1f32).cast(String).is_err());
    assert!(Tensor::scalar(1f32).cast(Dynamic).is_err());
}

#[test]
fn reshaped_shares_the_bytes() {
    let tensor = Tensor::from_slice(&[4], &[1u8, 2, 3, 4]).unwrap();
    let square = tensor.reshaped(&[2, 2]).unwrap();
    assert_eq!(square.shape(), [2, 2]);
    assert_eq!(square.storage_ptr(), tensor.storage_ptr());
    assert!(tensor.reshaped(&[3]).is_err());
}

#[test]
fn select_reverses_every_type() {
    for &ty in ElementType::ALL {
        if !matches!(ty, Dynamic | String) {
            let tensor = Tensor::from_i64(ty, &[9], &[1, 0, 1, 1, 0, 0, 0, 0, 1]).unwrap();
            let out = tensor.select(&[10], |i| 8usize.checked_sub(i)).unwrap();
            let expected = Tensor::from_i64(ty, &[10], &[1, 0, 0, 0, 0, 1, 1, 0, 1, 0]).unwrap();
            // f8e8m0 has no zero: what `from_i64` makes of 0 is code 0 as well.
            assert!(out.content_eq(&expected), "{ty}");
        }
    }
}

#[test]
fn select_moves_strings() {
    let tensor = Tensor::from_strings(&[2], vec!["a".into(), "b".into()]).unwrap();
    let out = tensor.select(&[3], |i| [Some(1), None, Some(0)][i]).unwrap();
    assert_eq!(out.strings().unwrap(), ["b", "", "a"]);
}

#[test]
fn select_outside_of_the_tensor_is_an_error() {
    for ty in [U4, U8, F64, String] {
        let error = Tensor::zeros(ty, &[3]).unwrap().select(&[1], |_| Some(3)).unwrap_err();
        assert_eq!(error, TensorError::OutsideTensor { start: 3, count: 1, available: 3 }, "{ty}");
    }
}

#[test]
fn copy_elements_overwrites_a_range() {
    for ty in [U1, U3, I4, U8, F16, I64] {
        let mut to = Tensor::zeros(ty, &[5]).unwrap();
        let from = Tensor::from_i64(ty, &[3], &[0, 1, 1]).unwrap();
        to.copy_elements(2, &from, 1, 2).unwrap();
        assert_eq!(&*to.to_vec::<i64>().unwrap(), [0, 0, 1, 1, 0], "{ty}");
    }
}

#[test]
fn copy_elements_checks_type_and_ranges() {
    let mut to = Tensor::zeros(U8, &[2]).unwrap();
    assert!(to.copy_elements(0, &Tensor::zeros(I8, &[2]).unwrap(), 0, 1).is_err());
    let from = Tensor::zeros(U8, &[2]).unwrap();
    assert!(to.copy_elements(1, &from, 0, 2).is_err());
    assert!(to.copy_elements(0, &from, 1, 2).is_err());
    assert!(to.copy_elements(usize::MAX, &from, 0, 2).is_err());
}

#[test]
fn content_eq_ignores_the_unused_bits() {
    let a = Tensor::from_bytes(U4, &[3], &[0x21, 0x03]).unwrap();
    let b = Tensor::from_bytes(U4, &[3], &[0x21, 0xf3]).unwrap();
    assert!(a.content_eq(&b));
    assert!(!a.content_eq(&a.reshaped(&[3, 1]).unwrap()));
}

#[test]
fn debug_text_is_short() {
    assert_eq!(format!("{:?}", Tensor::zeros(F32, &[2, 3]).unwrap()), "Tensor(f32[2, 3])");
}
