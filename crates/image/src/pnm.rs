//! Portable anymaps P1 to P6: bits, greys and colours as text or bytes. In bitmaps 1 is black.

use crate::{Picture, Result, area, broken};

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    // Blanks, and comments up to the end of their line.
    fn skip_blanks(&mut self) {
        while let Some(b) = self.peek() {
            match b {
                b'#' => {
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.at += 1;
                    }
                }
                b if b.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    fn number(&mut self) -> Result<usize> {
        self.skip_blanks();
        let start = self.at;
        let mut value = 0_usize;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start { Err(broken("a number is missing")) } else { Ok(value) }
    }

    // Digits of text bitmaps may stand without blanks between them.
    fn bit(&mut self) -> Result<u8> {
        self.skip_blanks();
        let bit = self.peek().filter(|b| matches!(b, b'0' | b'1')).ok_or_else(|| broken("a bit is missing"))?;
        self.at += 1;
        Ok(bit - b'0')
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.peek().ok_or_else(|| broken("the file ends too early"))?;
        self.at += 1;
        Ok(byte)
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Picture> {
    let kind = bytes.get(1).copied().unwrap_or(0);
    let mut r = Reader { bytes, at: 2 };
    let (width, height) = (r.number()?, r.number()?);
    let area = area(width, height)?;
    let bitmap = matches!(kind, b'1' | b'4');
    let top = if bitmap { 1 } else { r.number()? };
    if !(1..=65535).contains(&top) {
        return Err(broken(format!("the largest value must be 1 to 65535, found {top}")));
    }
    let raw = matches!(kind, b'4'..=b'6');
    if raw {
        // Exactly one blank stands before the data.
        r.at += 1;
    }
    let count = area * if matches!(kind, b'3' | b'6') { 3 } else { 1 };
    // Text has at least a byte for each value.
    let least = match (raw, bitmap) {
        (true, true) => width.div_ceil(8) * height,
        (true, false) if top > 255 => 2 * count,
        _ => count,
    };
    if bytes.len().saturating_sub(r.at) < least {
        return Err(broken("the file ends too early"));
    }
    let mut data = Vec::with_capacity(count);
    if kind == b'4' {
        for _ in 0..height {
            let row = &bytes[r.at..r.at + width.div_ceil(8)];
            data.extend((0..width).map(|x| if row[x / 8] >> (7 - x % 8) & 1 == 1 { 0 } else { 255 }));
            r.at += row.len();
        }
        return Picture::new(width, height, data);
    }
    for _ in 0..count {
        let value = match (kind, top) {
            (b'1', _) => usize::from(1 - r.bit()?),
            (b'2' | b'3', _) => r.number()?,
            (_, 0..=255) => usize::from(r.byte()?),
            _ => usize::from(u16::from_be_bytes([r.byte()?, r.byte()?])),
        };
        data.push(((value.min(top) * 255 + top / 2) / top) as u8);
    }
    Picture::new(width, height, data)
}
