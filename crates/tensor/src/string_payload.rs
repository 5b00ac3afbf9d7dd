//! The bytes of a string constant: int32 count, count + 1 int32 ends (the first is 0), then all characters.
//! The ends count from the start of the character area, not of the payload.

use crate::TensorError;

/// Reads the payload of a string constant. Bytes behind the last character are ignored.
pub fn decode_strings(bytes: &[u8]) -> Result<Vec<String>, TensorError> {
    let bad = |reason: String| TensorError::BadStrings { reason };
    let word = |at: usize| -> Result<usize, TensorError> {
        let raw = bytes
            .get(at..at + 4)
            .ok_or_else(|| bad(format!("expected an int32 at byte {at}, found {} bytes", bytes.len())))?;
        let value = i32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        usize::try_from(value).map_err(|_| bad(format!("expected a count at byte {at}, found {value}")))
    };
    let count = word(0)?;
    let header = 4 * (count + 2);
    let characters = bytes
        .get(header..)
        .ok_or_else(|| bad(format!("{count} strings need a header of {header} bytes, found {} bytes", bytes.len())))?;
    let mut strings = Vec::with_capacity(count);
    for i in 0..count {
        let (start, end) = (word(4 + 4 * i)?, word(8 + 4 * i)?);
        let raw = characters.get(start..end).ok_or_else(|| {
            bad(format!("string {i} spans {start}..{end}, but there are {} characters", characters.len()))
        })?;
        let text = std::str::from_utf8(raw).map_err(|_| bad(format!("string {i} is not utf-8")))?;
        strings.push(text.to_owned());
    }
    Ok(strings)
}

/// Writes the payload of a string constant; an error when the int32 fields cannot hold the lengths.
pub fn encode_strings(strings: &[String]) -> Result<Vec<u8>, TensorError> {
    let word = |n: usize| {
        i32::try_from(n)
            .map(i32::to_le_bytes)
            .map_err(|_| TensorError::BadStrings { reason: format!("{n} does not fit in an int32") })
    };
    let mut bytes = Vec::with_capacity(encoded_len(strings));
    bytes.extend(word(strings.len())?);
    bytes.extend(word(0)?);
    let mut end = 0;
    for text in strings {
        end += text.len();
        bytes.extend(word(end)?);
    }
    strings.iter().for_each(|text| bytes.extend(text.as_bytes()));
    Ok(bytes)
}

pub(crate) fn encoded_len(strings: &[String]) -> usize {
    4 * (strings.len() + 2) + strings.iter().map(String::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let mut bytes: Vec<u8> = [3i32, 0, 2, 2, 5].iter().flat_map(|n| n.to_le_bytes()).collect();
        bytes.extend(b"abxyz");
        bytes
    }

    #[test]
    fn the_example_of_openvino_round_trips() {
        let strings = ["ab", "", "xyz"].map(String::from).to_vec();
        assert_eq!(encode_strings(&strings), Ok(example()));
        assert_eq!(example().len(), 25);
        assert_eq!(encoded_len(&strings), 25);
        assert_eq!(decode_strings(&example()), Ok(strings));
    }

    #[test]
    fn a_payload_cut_anywhere_is_an_error() {
        for len in 0..25 {
            assert!(decode_strings(&example()[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn ends_that_go_backwards_are_an_error() {
        let bytes: Vec<u8> = [1i32, 4, 2].iter().flat_map(|n| n.to_le_bytes()).chain(*b"abcd").collect();
        assert!(matches!(decode_strings(&bytes), Err(TensorError::BadStrings { .. })));
    }

    #[test]
    fn a_huge_count_is_an_error_and_allocates_nothing() {
        assert!(decode_strings(&i32::MAX.to_le_bytes()).is_err());
        assert!(decode_strings(&(-1i32).to_le_bytes()).is_err());
    }
}
