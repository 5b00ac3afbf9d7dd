//! Decodes arbitrary bytes as a picture of any known format. What is accepted has as many pixels as it says.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(picture) = carafe_image::decode(data) else { return };
    let pixels = picture.width * picture.height;
    assert_eq!(picture.rgb().len(), pixels * 3);
    assert_eq!(picture.bgr().len(), pixels * 3);
    assert_eq!(picture.grey().len(), pixels);
});
