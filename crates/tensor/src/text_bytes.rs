//! Byte strings as texts. Some formats have strings of any bytes, and operations that cut them between the bytes of one
//! letter; ours are UTF-8. A byte that is no part of a letter is kept as one letter of a range that nobody uses, U+10FF80 for
//! byte 128 up to U+10FFFF for byte 255, and becomes that byte again.

const FIRST: u32 = 0x10_FF80;

/// The text that stands for these bytes; UTF-8 is itself.
pub fn text_of_bytes(bytes: &[u8]) -> String {
    // Letters of the range begin with this byte.
    if !bytes.contains(&0xF4)
        && let Ok(text) = str::from_utf8(bytes)
    {
        return text.to_string();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match u32::from(letter) >= FIRST {
                // Letters of the range itself are kept as their bytes.
                true => letter.encode_utf8(&mut [0; 4]).bytes().for_each(|b| text.push(letter_of(b))),
                false => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|b| text.push(letter_of(*b)));
    }
    text
}

/// The bytes that a text stands for.
pub fn bytes_of_text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match u32::from(letter).checked_sub(FIRST) {
            Some(above) => bytes.push(0x80 + above as u8),
            None => bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

fn letter_of(byte: u8) -> char {
    char::from_u32(FIRST - 0x80 + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        let all: Vec<u8> = (0..=255).rev().collect();
        for bytes in [&all[..], "für 語".as_bytes(), "\u{10FFFE}".as_bytes(), &[0xC3], b""] {
            assert_eq!(bytes_of_text(&text_of_bytes(bytes)), bytes);
        }
        assert_eq!(text_of_bytes("für".as_bytes()), "für");
    }

    #[test]
    fn bytes_of_a_letter_that_meet_again_are_the_letter() {
        let halves = [text_of_bytes(&[0xC3]), text_of_bytes(&[0xBC])];
        assert_eq!(text_of_bytes(&bytes_of_text(&halves.concat())), "ü");
    }
}
