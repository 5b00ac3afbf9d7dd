//! Blobs whose numbers are raw bytes with a type beside them.

use crate::common::{Proto, evaluate, layer, net, read_with, weights};

fn read_scaled(ty: i64, bytes: &[u8]) -> Result<Vec<f32>, String> {
    let blob = Proto::new().message(7, Proto::new().packed_ints(1, &[2])).int(10, ty).bytes(12, bytes);
    let text = net(&[1, 2], "layer { name: 's' type: 'Scale' bottom: 'x' top: 'y' }");
    let model = read_with(text, Some(weights(&[layer("s", "Scale", &[blob])])))?;
    Ok(evaluate(&model, &[(&[1, 2], &[1.0, 10.0])])[0].1.clone())
}

#[test]
fn floats_of_every_size_are_read() {
    let doubles: Vec<u8> = [0.5f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let floats: Vec<u8> = [0.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    // 0.5 and -2 as half floats.
    let halves = [0x00, 0x38, 0x00, 0xc0];
    for (ty, bytes) in [(0, &doubles[..]), (1, &floats), (2, &halves)] {
        assert_eq!(read_scaled(ty, bytes).unwrap(), [0.5, -20.0], "type {ty}");
    }
}

#[test]
fn other_types_and_odd_lengths_are_refused() {
    let error = read_scaled(3, &[0; 8]).unwrap_err();
    assert!(error.contains("raw data of type 3"), "{error}");
    let error = read_scaled(2, &[0; 3]).unwrap_err();
    assert!(error.contains("not whole numbers"), "{error}");
}
