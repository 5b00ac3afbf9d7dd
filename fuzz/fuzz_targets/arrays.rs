//! Reads arbitrary bytes as an .npy and as an .npz. What is accepted comes back the same when it is written and read again.
#![no_main]

use carafe_npy::{read_npy, read_npz_within, write_npy, write_npz};
use libfuzzer_sys::fuzz_target;

/// A deflated array may be a thousand times its file.
const MOST: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    if let Ok(tensor) = read_npy(data) {
        // Text of another width or encoding, and values of no other type, are written as they were read.
        let again = read_npy(&write_npy(&tensor).expect("an array that was read can be written"));
        assert!(again.expect("what was written can be read").content_eq(&tensor));
    }
    let Ok(arrays) = read_npz_within(data, |_| Some(MOST)) else { return };
    // Two members of one name can be read, but not written.
    let Ok(written) = write_npz(&arrays) else { return };
    let again = read_npz_within(&written, |_| None).expect("what was written can be read");
    assert!(arrays.iter().zip(&again).all(|(a, b)| a.0 == b.0 && a.1.content_eq(&b.1)));
});
