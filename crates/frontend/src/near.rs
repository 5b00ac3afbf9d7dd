//! Names that one may have meant.

/// Whether one name is the other with a slip or two; short names must be the same but for their case.
pub fn is_near(a: &str, b: &str) -> bool {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    distance(&a, &b) <= a.chars().count().min(b.chars().count()) / 4
}

// How many letters must be added, taken away or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let next = (diagonal + usize::from(ca != *cb)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_names_are_not_near() {
        for (a, b) in [("kernel_sise", "kernel_size"), ("strid", "stride"), ("relu", "ReLU"), ("Softmx", "SoftMax")] {
            assert!(is_near(a, b), "{a} {b}");
        }
        for (a, b) in [("Zork", "TopK"), ("Shift", "STFT"), ("Odd", "Add"), ("", "Add")] {
            assert!(!is_near(a, b), "{a} {b}");
        }
    }
}
