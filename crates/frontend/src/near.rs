//! Names that one may have meant.

use carafe_graph::edit_distance;

/// Whether one name is the other with a few slips; short names must be the same but for their case.
pub fn is_near(a: &str, b: &str) -> bool {
    slips(a, b).is_some()
}

/// The name that is nearest, if any is near.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    names.filter_map(|name| slips(wanted, name).map(|n| (n, name))).min().map(|(_, name)| name)
}

fn slips(a: &str, b: &str) -> Option<usize> {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let most = match a.chars().count().min(b.chars().count()) {
        0..4 => 0,
        4..6 => 1,
        n => n * 3 / 8,
    };
    Some(edit_distance(&a, &b)).filter(|n| *n <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_names_are_not_near() {
        for (a, b) in [("kernel_sise", "kernel_size"), ("strid", "stride"), ("relu", "ReLU"), ("SoftSwish", "SoftSign")]
        {
            assert!(is_near(a, b), "{a} {b}");
        }
        assert_eq!(nearest("kernel_sise", ["kernel_h", "kernel_size"].into_iter()), Some("kernel_size"));
        for (a, b) in [("Zork", "TopK"), ("Shift", "STFT"), ("Odd", "Add"), ("", "Add")] {
            assert!(!is_near(a, b), "{a} {b}");
        }
    }
}
