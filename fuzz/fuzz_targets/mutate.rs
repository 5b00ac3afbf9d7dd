//! Changes that keep the text well formed: plain byte changes rarely get past the XML parser. One attribute value becomes a
//! value that hurts, or that of another attribute, or one number more or less; or a constant's bytes change.

/// Values that have a meaning somewhere, or just outside of it.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "16",
    "64",
    "255",
    "-2",
    "-3",
    "1000000",
    "2147483647",
    "-2147483648",
    "4294967296",
    "1152921504606846976",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "0.5",
    "-0.0",
    "1e-30",
    "1e30",
    "inf",
    "-inf",
    "nan",
    "true",
    "false",
    "?",
    "...",
    "1..10",
    "..5",
    "3..",
    "?,?",
    "0,1",
    "1, 1",
    "2, 2, 2",
    "1,2,3,4",
    "0, 0, 0, 0",
    "-1, -1",
    "9223372036854775807, 9223372036854775807",
    "f32",
    "f16",
    "bf16",
    "f64",
    "i64",
    "i32",
    "i8",
    "i4",
    "u1",
    "u2",
    "u3",
    "u4",
    "u6",
    "u8",
    "u64",
    "nf4",
    "f8e4m3",
    "f8e8m0",
    "f4e2m1",
    "boolean",
    "string",
    "dynamic",
    "explicit",
    "same_upper",
    "same_lower",
    "valid",
    "floor",
    "ceil",
    "numpy",
    "pdpd",
    "none",
    "bidirectional",
    "forward",
    "reverse",
    "max",
    "min",
    "sum",
    "mean",
    "edge",
    "reflect",
    "symmetric",
    "constant",
    "linear",
    "cubic",
    "nearest",
    "opset1",
    "opset3",
    "opset6",
    "opset8",
    "opset11",
    "opset13",
    "opset15",
    "a",
    "abc,bcd->ad",
];

pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> Option<usize> {
    let mut random = Random(u64::from(seed) | 1);
    let text_end = data[..size].iter().position(|b| *b == 0).unwrap_or(size);
    let spans = attribute_values(&data[..text_end]);
    if spans.is_empty() {
        return None;
    }
    let mut new = data[..size].to_vec();
    for _ in 0..1 + random.below(3) {
        // Later spans first would keep offsets right; a stale span is simply skipped.
        let (start, end) = spans[random.below(spans.len())];
        if !(new.get(end) == Some(&b'"') && new.get(start.wrapping_sub(1)) == Some(&b'"')) {
            continue;
        }
        let old = String::from_utf8_lossy(&new[start..end]).into_owned();
        let value = match random.below(4) {
            0 | 1 => VALUES[random.below(VALUES.len())].to_string(),
            2 => {
                let (a, b) = spans[random.below(spans.len())];
                String::from_utf8_lossy(&data[a..b]).into_owned()
            }
            _ => match old.trim().parse::<i64>() {
                Ok(n) if random.below(2) == 0 => n.wrapping_add(1).to_string(),
                Ok(n) => n.wrapping_sub(1).to_string(),
                Err(_) => format!("{old},{old}"),
            },
        };
        new.splice(start..end, value.into_bytes());
    }
    if new.len() > max_size {
        return None;
    }
    data[..new.len()].copy_from_slice(&new);
    Some(new.len())
}

/// What stands between `="` and `"`.
fn attribute_values(text: &[u8]) -> Vec<(usize, usize)> {
    let mut spans = vec![];
    let mut at = 0;
    while let Some(start) = text[at..].windows(2).position(|w| w == b"=\"").map(|i| at + i + 2) {
        let Some(end) = text[start..].iter().position(|b| *b == b'"').map(|i| start + i) else { break };
        spans.push((start, end));
        at = end + 1;
    }
    spans
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}
