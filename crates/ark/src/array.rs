//! Vectors and matrices: floats and doubles as they are, the three compressed forms, and text. What is found is where the numbers
//! lie; they are read when a tensor is made.

use crate::error::{ArkError, Result};
use crate::scan::{Scanner, f32_at, f64_at, i32_at, parse_float};
use carafe_tensor::Tensor;

/// A vector or a matrix of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    rows: usize,
    cols: usize,
    is_vector: bool,
    form: Form,
    /// Where the numbers begin and end.
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Single,
    Double,
    Text,
    /// A byte an element, with four marks for each column.
    Columns,
    /// Two bytes an element between the smallest and the largest.
    Words,
    /// One byte an element between the smallest and the largest.
    Bytes,
}

/// Bytes of the smallest value, the range and both sizes.
const COMPRESSED_HEADER: usize = 16;

impl Array {
    /// The shape of its tensor: one size of a vector, two of a matrix.
    pub fn shape(&self) -> Vec<usize> {
        if self.is_vector { vec![self.cols] } else { vec![self.rows, self.cols] }
    }
    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }
    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether it is a vector.
    pub fn is_vector(&self) -> bool {
        self.is_vector
    }

    pub(crate) fn scan(s: &mut Scanner<'_>) -> Result<Array> {
        if !s.is_binary() {
            return text(s);
        }
        let (at, wrong) = (s.at(), s.expected("a vector or a matrix"));
        let kind = match s.peek() {
            Some(kind) if s.rest().starts_with(kind.as_bytes()) => s.token()?,
            _ => return Err(wrong),
        };
        let (form, is_vector) = match kind {
            "FM" => (Form::Single, false),
            "DM" => (Form::Double, false),
            "FV" => (Form::Single, true),
            "DV" => (Form::Double, true),
            "CM" => (Form::Columns, false),
            "CM2" => (Form::Words, false),
            "CM3" => (Form::Bytes, false),
            "SM" | "SV" => {
                return Err(ArkError::Unsupported("sparse matrices are not supported; copy it to a full one".into()));
            }
            _ => return Err(wrong),
        };
        let compressed = !matches!(form, Form::Single | Form::Double);
        let size = |s: &mut Scanner<'_>| match s.int()? {
            n @ 0..=0x7fff_ffff => Ok(n as usize),
            n => Err(ArkError::Expected { expected: "a size".into(), at: s.at(), found: n.to_string() }),
        };
        let start = s.at();
        let (rows, cols) = match (is_vector, compressed) {
            (true, _) => (1, size(s)?),
            (false, false) => (size(s)?, size(s)?),
            (false, true) => {
                let header = s.take(COMPRESSED_HEADER, "the header of a compressed matrix")?;
                let sizes = [i32_at(&header[8..]), i32_at(&header[12..])];
                match sizes.iter().all(|n| *n >= 0) {
                    true => (sizes[0] as usize, sizes[1] as usize),
                    false => return Err(wrong),
                }
            }
        };
        let (each, around) = match form {
            Form::Double => (8, 0),
            Form::Single => (4, 0),
            Form::Words => (2, 0),
            Form::Bytes => (1, 0),
            Form::Columns => (1, 8 * cols as u64),
            Form::Text => (0, 0),
        };
        let needed = rows as u64 * cols as u64 * each + around;
        let found = s.rest().len();
        if needed > found as u64 {
            return Err(ArkError::Truncated { what: "a vector or a matrix", at, needed, found });
        }
        let start = if compressed { start } else { s.at() };
        s.take(needed as usize, "a vector or a matrix")?;
        Ok(Array { rows, cols, is_vector, form, start, end: s.at() })
    }

    /// Its numbers as f32, out of the bytes that it was found in.
    pub fn tensor(&self, bytes: &[u8]) -> Result<Tensor> {
        let data = bytes.get(self.start..self.end).ok_or(ArkError::Truncated {
            what: "a vector or a matrix",
            at: self.start,
            needed: (self.end - self.start) as u64,
            found: bytes.len().saturating_sub(self.start),
        })?;
        let values: Vec<f32> = match self.form {
            Form::Single => data.chunks_exact(4).map(f32_at).collect(),
            Form::Double => data.chunks_exact(8).map(|b| f64_at(b) as f32).collect(),
            Form::Text => words(data).filter_map(|w| parse_float(w).map(|x| x as f32)).collect(),
            Form::Columns => self.columns(data),
            Form::Words => {
                let (min, range) = (f32_at(data), f32_at(&data[4..]));
                let one = |b: &[u8]| min + f32::from(u16::from_le_bytes([b[0], b[1]])) * (range / 65535.0);
                data[COMPRESSED_HEADER..].chunks_exact(2).map(one).collect()
            }
            Form::Bytes => {
                let (min, range) = (f32_at(data), f32_at(&data[4..]));
                data[COMPRESSED_HEADER..].iter().map(|b| min + f32::from(*b) * (range / 255.0)).collect()
            }
        };
        Ok(Tensor::from_vec(&self.shape(), values)?)
    }

    // Each column has its smallest, the two quartiles and its largest; a byte lies between two of them.
    fn columns(&self, data: &[u8]) -> Vec<f32> {
        let (min, range) = (f32_at(data), f32_at(&data[4..]));
        let marks = &data[COMPRESSED_HEADER..];
        let content = &marks[8 * self.cols..];
        let mut values = vec![0.0; self.rows * self.cols];
        for col in 0..self.cols {
            let mark = |i: usize| {
                let at = 8 * col + 2 * i;
                min + range * 1.525_902e-5 * f32::from(u16::from_le_bytes([marks[at], marks[at + 1]]))
            };
            let p = [mark(0), mark(1), mark(2), mark(3)];
            for row in 0..self.rows {
                let byte = content[col * self.rows + row];
                let x = f32::from(byte);
                values[row * self.cols + col] = match byte {
                    0..=64 => p[0] + (p[1] - p[0]) * x * (1.0 / 64.0),
                    65..=192 => p[1] + (p[2] - p[1]) * (x - 64.0) * (1.0 / 128.0),
                    _ => p[2] + (p[3] - p[2]) * (x - 192.0) * (1.0 / 63.0),
                };
            }
        }
        values
    }
}

fn words(data: &[u8]) -> impl Iterator<Item = &str> {
    data.split(|b| b.is_ascii_whitespace() || *b == b';')
        .filter_map(|w| std::str::from_utf8(w).ok())
        .filter(|w| !w.is_empty())
}

// `[ 1 2 ]` is a vector, `[` with a line end behind it a matrix of a row for each line.
fn text(s: &mut Scanner<'_>) -> Result<Array> {
    s.skip_space();
    let wrong = s.expected("a vector or a matrix");
    if s.rest().first() != Some(&b'[') {
        return Err(wrong);
    }
    s.take(1, "a vector or a matrix")?;
    let start = s.at();
    let n = s.rest().iter().position(|b| *b == b']').ok_or(wrong)?;
    let data = s.take(n, "a vector or a matrix")?;
    s.take(1, "a vector or a matrix")?;
    let mut rows = vec![];
    for row in data.split(|b| *b == b'\n' || *b == b';') {
        let mut cols = 0;
        for word in row.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()) {
            let text = std::str::from_utf8(word).unwrap_or("?");
            if parse_float(text).is_none() {
                return Err(ArkError::Expected { expected: "a number".into(), at: start, found: format!("`{text}`") });
            }
            cols += 1;
        }
        if cols > 0 {
            rows.push(cols);
        }
    }
    let cols = rows.first().copied().unwrap_or(0);
    if rows.iter().any(|n| *n != cols) {
        return Err(ArkError::Expected {
            expected: format!("rows of {cols} numbers"),
            at: start,
            found: format!("rows of {rows:?}"),
        });
    }
    let is_vector = !data.iter().take_while(|b| b.is_ascii_whitespace()).any(|b| *b == b'\n') && rows.len() <= 1;
    let rows = if is_vector { 1 } else { rows.len() };
    Ok(Array { rows, cols, is_vector, form: Form::Text, start, end: start + n })
}
