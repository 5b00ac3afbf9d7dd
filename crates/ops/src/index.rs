//! Walking over multi-dimensional indices: the loops every plain evaluation needs.

use carafe_tensor::strides;

/// Strides of `shape` seen as `out` (numpy alignment, right to left); 0 where an axis is repeated.
pub fn broadcast_strides(shape: &[usize], out: &[usize]) -> Vec<usize> {
    let own = strides(shape);
    let lead = out.len() - shape.len();
    (0..out.len()).map(|i| if i < lead || shape[i - lead] == 1 { 0 } else { own[i - lead] }).collect()
}

/// Offsets of all elements of `shape` in row-major order under the given strides.
pub fn offsets(shape: &[usize], strides: &[usize]) -> Offsets {
    Offsets {
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        index: vec![0; shape.len()],
        offset: 0,
        left: shape.iter().product(),
    }
}

/// Iterator of [`offsets`].
#[derive(Clone, Debug)]
pub struct Offsets {
    shape: Vec<usize>,
    strides: Vec<usize>,
    index: Vec<usize>,
    offset: usize,
    left: usize,
}

impl Iterator for Offsets {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let now = self.offset;
        for axis in (0..self.shape.len()).rev() {
            self.index[axis] += 1;
            self.offset += self.strides[axis];
            if self.index[axis] < self.shape[axis] {
                break;
            }
            self.offset -= self.strides[axis] * self.shape[axis];
            self.index[axis] = 0;
        }
        Some(now)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// All multi-indices of `shape` in row-major order; a scalar gives one empty index.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |i| unravel(i, &shape))
}

/// Multi-index of a flat position.
pub fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = flat % shape[axis];
        flat /= shape[axis];
    }
    index
}

/// Flat position of a multi-index.
pub fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |flat, (i, n)| flat * n + i)
}

/// A shape seen around an axis: product before, the axis, product after.
pub fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_axis_has_stride_zero() {
        assert_eq!(broadcast_strides(&[3, 1], &[2, 3, 4]), [0, 1, 0]);
        let o: Vec<_> = offsets(&[2, 2], &broadcast_strides(&[2], &[2, 2])).collect();
        assert_eq!(o, [0, 1, 0, 1]);
    }

    #[test]
    fn a_scalar_has_one_offset() {
        assert_eq!(offsets(&[], &[]).collect::<Vec<_>>(), [0]);
        assert_eq!(indices(&[]).count(), 1);
    }

    #[test]
    fn unravel_and_ravel_are_inverse() {
        for i in 0..24 {
            assert_eq!(ravel(&unravel(i, &[2, 3, 4]), &[2, 3, 4]), i);
        }
    }
}
