use super::*;

#[test]
fn text_and_bytes_of_anymaps_agree() {
    let text = decode(b"P3 # two pixels\n2 1\n255\n1 2 3  4 5 6\n").unwrap();
    let raw = decode(b"P6\n2 1\n255\n\x01\x02\x03\x04\x05\x06").unwrap();
    assert_eq!(text, raw);
    assert_eq!(raw, Picture { width: 2, height: 1, channels: 3, data: vec![1, 2, 3, 4, 5, 6] });
    assert_eq!(raw.bgr(), [3, 2, 1, 6, 5, 4]);
    assert_eq!(raw.grey(), [2, 5]);
}

#[test]
fn one_is_black_in_bitmaps() {
    assert_eq!(decode(b"P1 3 1 101").unwrap().data, [0, 255, 0]);
    assert_eq!(decode(b"P4 3 1 \xa0").unwrap().data, [0, 255, 0]);
}

#[test]
fn greys_are_scaled_to_a_byte() {
    assert_eq!(decode(b"P2 3 1 10 0 5 10").unwrap().data, [0, 128, 255]);
    assert_eq!(decode(b"P5 1 1 65535 \x80\x00").unwrap().data, [128]);
}

#[test]
fn sizes_are_refused_before_memory_is_taken() {
    let huge = decode(b"P6 99999999 99999999 255 ").unwrap_err();
    assert_eq!(huge, ImageError::Size { width: 99_999_999, height: 99_999_999 });
    assert!(matches!(decode(b"P5 0 4 255 "), Err(ImageError::Size { .. })));
    assert!(matches!(decode(b"P5 8000 8000 255 "), Err(ImageError::Broken(_))));
}

#[test]
fn bytes_cut_anywhere_give_an_error() {
    let starts: [&[u8]; 7] = [
        b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0",
        b"\xff\xd8\xff\xe0\0\x10JFIF\0",
        b"\0\0\0\x0cjP  \r\n\x87\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0",
        b"P6 1 1 255 ",
        b"II*\0\x08\0\0\0\0\0",
        b"RIFF\x10\0\0\0WEBPVP8 ",
    ];
    for bytes in starts {
        for end in 0..=bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{:?}", &bytes[..end]);
        }
    }
    assert_eq!(decode(b"hello"), Err(ImageError::UnknownFormat));
}
