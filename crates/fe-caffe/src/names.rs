//! Names of layer types. They are compared without case and underscores where nothing matches exactly: `INNER_PRODUCT` of the
//! old format is `InnerProduct`, and forks spell as they like.

/// Whether two names differ only in case and underscores.
pub(crate) fn same(a: &str, b: &str) -> bool {
    letters(a).eq(letters(b))
}

/// The name without what does not count.
pub(crate) fn plain(name: &str) -> String {
    letters(name).collect()
}

fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_underscores_do_not_count() {
        assert!(same("INNER_PRODUCT", "InnerProduct") && same("absval", "AbsVal") && !same("Conv", "Convolution"));
        assert_eq!(plain("Region_YOLO"), "regionyolo");
    }
}
