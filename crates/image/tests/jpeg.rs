//! JPEG files of every kind have the pixels of libjpeg; the files and their pixels are made by `scripts/fixtures/jpeg-pictures`.

use carafe_image::{ImageError, decode};
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "jpg")).collect();
    assert!(files.len() >= 20, "the fixtures are there");
    files
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

#[test]
fn pixels_are_those_of_libjpeg() {
    for file in fixtures() {
        let found = decode(&std::fs::read(&file).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let expected = decode(&std::fs::read(file.with_extension("ppm")).unwrap()).unwrap();
        assert!(found == expected, "{}", file.display());
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_picture_of_its_size() {
    for name in ["rgb_420.jpg", "progressive_420.jpg", "restarts.jpg"] {
        let bytes = fixture(name);
        let whole = decode(&bytes).unwrap();
        for end in (0..bytes.len() - 2).step_by(3) {
            if let Ok(part) = decode(&bytes[..end]) {
                assert_eq!((part.width, part.height), (whole.width, whole.height), "{name} cut at {end}");
                assert!(end + 8 > bytes.len() || name.starts_with("progressive"), "{name} cut at {end} was taken");
            }
        }
    }
}

#[test]
fn changed_bytes_never_end_the_program() {
    let mut state = 1u64;
    for name in ["rgb_422.jpg", "progressive_444.jpg", "cmyk.jpg", "restarts.jpg"] {
        let bytes = fixture(name);
        for _ in 0..400 {
            let mut changed = bytes.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (state >> 33) as usize % changed.len();
                changed[at] = (state >> 20) as u8;
            }
            // The panic of a decoder is turned into this text.
            if let Err(ImageError::Broken(why)) = decode(&changed) {
                assert!(!why.contains("gave up"), "{name}: {why}");
            }
        }
    }
}

#[test]
fn a_size_without_data_is_refused_before_memory_is_taken() {
    let mut bytes = fixture("rgb_444.jpg");
    let frame = bytes.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x1f, 0xff, 0x1f, 0xff]);
    assert_eq!(decode(&bytes), Err(ImageError::Broken("the data is cut short".into())));
    bytes[frame + 5..frame + 9].fill(0xff);
    assert!(matches!(decode(&bytes), Err(ImageError::Size { .. })));
}

#[test]
fn arithmetic_coding_is_refused_by_name() {
    let mut bytes = fixture("rgb_444.jpg");
    let frame = bytes.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    bytes[frame + 1] = 0xc9;
    assert!(decode(&bytes).unwrap_err().to_string().contains("arithmetic"));
}
