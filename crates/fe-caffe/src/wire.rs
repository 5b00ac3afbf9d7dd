//! The protobuf wire format, field by field and without copies. Nothing here knows what a field means; groups, which Caffe
//! never had, are stepped over.

use carafe_graph::{Error, Result};

/// One field as it lies in the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Field<'b> {
    pub number: u32,
    pub content: Content<'b>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Content<'b> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    /// A string, a message, or packed numbers; with its offset from the start of the whole file.
    Bytes(&'b [u8], usize),
    /// A group, which was stepped over.
    Group,
}

/// Walks over the fields of a message.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Offset of `bytes` in the file.
    base: usize,
}

/// Groups inside of groups deeper than this are refused.
const MAX_GROUPS: usize = 100;

impl<'b> Fields<'b> {
    /// The fields of a message that begins at this offset of the file.
    pub(crate) fn new(bytes: &'b [u8], base: usize) -> Fields<'b> {
        Fields { bytes, at: 0, base }
    }

    fn error(&self, what: &str) -> Error {
        Error::invalid(format!("byte {}: {what}", self.base + self.at))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(&b) = self.bytes.get(self.at) else { return Err(self.error("the file ends inside of a number")) };
            self.at += 1;
            value |= u64::from(b & 0x7f).checked_shl(shift).unwrap_or(0);
            if b & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error("a number is longer than 10 bytes"))
    }

    fn take(&mut self, n: usize) -> Result<&'b [u8]> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            let left = self.bytes.len() - self.at;
            return Err(self.error(&format!("a field of {n} bytes is cut off after {left}")));
        };
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    // Number and wire type.
    fn key(&mut self) -> Result<(u32, u64)> {
        let key = self.varint()?;
        match u32::try_from(key >> 3) {
            Ok(number) if number > 0 => Ok((number, key & 7)),
            _ => Err(self.error("no field has this number")),
        }
    }

    fn content(&mut self, wire_type: u64) -> Result<Content<'b>> {
        Ok(match wire_type {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(self.array()?),
            2 => {
                let n = self.varint()?;
                let n = usize::try_from(n).map_err(|_| self.error("a field is larger than memory"))?;
                let start = self.at;
                Content::Bytes(self.take(n)?, self.base + start)
            }
            5 => Content::Fixed32(self.array()?),
            3 => {
                self.skip_group()?;
                Content::Group
            }
            n => return Err(self.error(&format!("wire type {n} does not exist or stands alone"))),
        })
    }

    fn skip_group(&mut self) -> Result<()> {
        let mut open = 1;
        while open > 0 {
            match self.key()?.1 {
                3 if open == MAX_GROUPS => return Err(self.error("groups are nested too deep")),
                3 => open += 1,
                4 => open -= 1,
                kind => drop(self.content(kind)?),
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Field<'b>>> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let (number, kind) = self.key()?;
        Ok(Some(Field { number, content: self.content(kind)? }))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<Field<'b>>;
    fn next(&mut self) -> Option<Result<Field<'b>>> {
        let found = self.step().transpose();
        if matches!(found, Some(Err(_))) {
            self.at = self.bytes.len();
        }
        found
    }
}

/// The numbers of a packed field of varints.
pub(crate) fn packed_varints(bytes: &[u8], base: usize) -> Result<Vec<u64>> {
    let mut fields = Fields::new(bytes, base);
    let mut all = vec![];
    while fields.at < fields.bytes.len() {
        all.push(fields.varint()?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind_are_found() {
        let bytes = [8, 150, 1, 18, 2, b'h', b'i', 29, 0, 0, 128, 63, 33, 0, 0, 0, 0, 0, 0, 240, 63];
        let found: Vec<_> = Fields::new(&bytes, 100).collect::<Result<_>>().unwrap();
        assert_eq!(found[0], Field { number: 1, content: Content::Varint(150) });
        assert_eq!(found[1], Field { number: 2, content: Content::Bytes(b"hi", 105) });
        assert_eq!(found[2], Field { number: 3, content: Content::Fixed32(1f32.to_le_bytes()) });
        assert_eq!(found[3], Field { number: 4, content: Content::Fixed64(1f64.to_le_bytes()) });
    }

    #[test]
    fn a_group_is_stepped_over() {
        let bytes = [11, 8, 1, 19, 20, 12, 16, 7];
        let found: Vec<_> = Fields::new(&bytes, 0).collect::<Result<_>>().unwrap();
        let group = Field { number: 1, content: Content::Group };
        assert_eq!(found, [group, Field { number: 2, content: Content::Varint(7) }]);
    }

    #[test]
    fn cut_bytes_are_told_with_their_place() {
        let text = |bytes: &[u8]| Fields::new(bytes, 0).find_map(|f| f.err()).unwrap().to_string();
        assert!(text(&[18, 9, 1]).contains("byte 2: a field of 9 bytes is cut off after 1"), "{}", text(&[18, 9, 1]));
        assert!(text(&[8, 255]).contains("ends inside of a number"));
        assert!(text(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).contains("longer than 10 bytes"));
        assert!(text(&[0, 1]).contains("no field has this number"));
        assert!(text(&[14]).contains("wire type 6"));
        assert!(text(&[11, 11]).contains("ends inside of a number"));
        assert!(text(&[11; 300]).contains("too deep"));
    }
}
