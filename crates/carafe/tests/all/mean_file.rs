//! A mean image of Caffe is subtracted from the input.

use carafe::convert::{self, ConversionOptions};
use carafe::prelude::*;
use carafe::{Model, PartialShape, Tensor};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

// A BlobProto of one channel, 3 x 4, with the values 0 to 11: num, channels, height, width, packed data.
fn mean() -> PathBuf {
    // Tests run side by side, so the file is written once.
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(written).clone()
}

fn written() -> PathBuf {
    let mut bytes = vec![0x08, 1, 0x10, 1, 0x18, 3, 0x20, 4, 0x2a, 48];
    (0..12u8).for_each(|i| bytes.extend(f32::from(i).to_le_bytes()));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mean.binaryproto");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn subtracted(shape: &[usize], offsets: Option<&str>) -> Result<Vec<f32>> {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(shape))?;
    m.result("y", x)?;
    let options = ConversionOptions {
        mean_file: Some(mean()),
        mean_file_offsets: offsets.map(str::to_string),
        ..ConversionOptions::default()
    };
    convert::apply(&mut m, &options)?;
    let out = m.evaluate(&[Tensor::zeros(ElementType::F32, shape)?])?;
    Ok(out[0].as_slice::<f32>()?.to_vec())
}

#[test]
fn the_middle_of_the_image_is_taken() {
    assert_eq!(subtracted(&[1, 1, 1, 2], None).unwrap(), [-5.0, -6.0]);
}

#[test]
fn offsets_say_which_part() {
    assert_eq!(subtracted(&[2, 1, 2, 1], Some("(3, 1)")).unwrap(), [-7.0, -11.0, -7.0, -11.0]);
}

#[test]
fn what_does_not_fit_is_told() {
    let error = |shape: &[usize], offsets| subtracted(shape, offsets).unwrap_err().to_string();
    assert!(error(&[1, 3, 1, 1], None).contains("the mean image is [1,3,4], the input [3,1,1]"));
    assert!(error(&[1, 1, 5, 1], None).contains("be no smaller"));
    assert!(error(&[1, 1, 2, 2], Some("(3,0)")).contains("leave no 2 x 2 of an image 4 x 3"));
    assert!(error(&[1, 1, 2, 2], Some("3,0")).contains("must have the form (x,y)"));
    assert!(error(&[4], None).contains("must be an image of known size"));
}
