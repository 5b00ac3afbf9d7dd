//! Output buffers of evaluations. Sizes come from files, so an absurd one has to be an error, not an abort.

use carafe_graph::{Error, Result};
use carafe_tensor::elements;

/// As many copies of `value` as the shape has elements; an error when they cannot be had.
pub fn filled<T: Clone>(shape: &[usize], value: T) -> Result<Vec<T>> {
    let mut buffer = Vec::new();
    match elements(shape) {
        Some(n) if n.checked_mul(size_of::<T>()).is_some() && buffer.try_reserve_exact(n).is_ok() => {
            buffer.resize(n, value);
            Ok(buffer)
        }
        _ => Err(Error::invalid(format!("a tensor of shape {shape:?} does not fit into memory"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absurd_size_is_an_error() {
        assert!(filled(&[usize::MAX, 2], 0f32).is_err());
        assert!(filled(&[usize::MAX / 4], 0f64).is_err());
    }

    #[test]
    fn a_shape_with_a_zero_is_empty() {
        assert_eq!(filled(&[3, 0], 1u8).unwrap(), []);
    }
}
