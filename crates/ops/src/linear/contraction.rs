//! Tensors whose axes have labels, multiplied two at a time. Axes of size 1 carry no label here: they neither change a
//! product nor a sum, and so broadcasting needs no code of its own.

use super::product::{Factor, Rows, add_product, zeros};
use crate::index::offsets;
use carafe_graph::Result;
use carafe_tensor::{Number, strides};

/// A tensor with a different label on each axis.
#[derive(Clone, Debug)]
pub(super) struct Labelled<S> {
    pub labels: Vec<u32>,
    shape: Vec<usize>,
    data: Vec<S>,
}

impl<S: Number> Labelled<S> {
    /// A tensor whose labels may repeat, which takes the diagonal. Equal labels have equal sizes.
    pub(super) fn new(data: &[S], shape: &[usize], labels: &[u32]) -> Labelled<S> {
        let (mut own, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for ((&label, &n), stride) in labels.iter().zip(shape).zip(strides(shape)) {
            if n == 1 {
                continue;
            }
            match own.iter().position(|&l| l == label) {
                Some(i) => steps[i] += stride,
                None => {
                    own.push(label);
                    sizes.push(n);
                    steps.push(stride);
                }
            }
        }
        let data = offsets(&sizes, &steps).map(|i| data[i]).collect();
        Labelled { labels: own, shape: sizes, data }
    }

    fn size(&self, label: u32) -> usize {
        self.labels.iter().position(|&l| l == label).map_or(1, |i| self.shape[i])
    }

    fn sizes(&self, labels: &[u32]) -> Vec<usize> {
        labels.iter().map(|&l| self.size(l)).collect()
    }

    /// The elements with the axes in this order; labels it does not have are of size 1.
    pub(super) fn arranged(&self, labels: &[u32]) -> Vec<S> {
        let own = strides(&self.shape);
        let step = |l: &u32| self.labels.iter().position(|o| o == l).map_or(0, |i| own[i]);
        let steps: Vec<usize> = labels.iter().map(step).collect();
        offsets(&self.sizes(labels), &steps).map(|i| self.data[i]).collect()
    }

    fn has(&self, label: &u32) -> bool {
        self.labels.contains(label)
    }
}

/// Sums over the labels that are not needed.
pub(super) fn sum_out<S: Number>(t: Labelled<S>, needed: impl Fn(&u32) -> bool) -> Result<Labelled<S>> {
    let (kept, gone): (Vec<u32>, Vec<u32>) = t.labels.iter().partition(|l| needed(l));
    if gone.is_empty() {
        return Ok(t);
    }
    let shape = t.sizes(&kept);
    let summed: usize = t.sizes(&gone).iter().product();
    let ordered = t.arranged(&[kept.as_slice(), &gone].concat());
    let mut data: Vec<S> = zeros(&shape)?;
    if summed > 0 {
        for (sum, row) in data.iter_mut().zip(ordered.chunks_exact(summed)) {
            *sum = row.iter().fold(S::default(), |s, &x| s.wrapping_add(x));
        }
    }
    Ok(Labelled { labels: kept, shape, data })
}

/// The product of two tensors, summed over the labels that are not needed.
pub(super) fn contract<S: Factor<Sum = S>>(
    a: Labelled<S>,
    b: Labelled<S>,
    needed: impl Fn(&u32) -> bool,
) -> Result<Labelled<S>> {
    let a = sum_out(a, |l| needed(l) || b.has(l))?;
    let b = sum_out(b, |l| needed(l) || a.has(l))?;
    let (shared, rows): (Vec<u32>, Vec<u32>) = a.labels.iter().partition(|l| b.has(l));
    let (batch, summed): (Vec<u32>, Vec<u32>) = shared.iter().partition(|l| needed(l));
    let columns: Vec<u32> = b.labels.iter().copied().filter(|l| !a.has(l)).collect();

    let left = a.arranged(&[batch.as_slice(), &rows, &summed].concat());
    let right = b.arranged(&[batch.as_slice(), &summed, &columns].concat());
    let [m, k] = [&rows, &summed].map(|l| a.sizes(l).iter().product::<usize>());
    let n: usize = b.sizes(&columns).iter().product();

    let labels = [batch.as_slice(), &rows, &columns].concat();
    let shape = [a.sizes(&batch), a.sizes(&rows), b.sizes(&columns)].concat();
    let mut data: Vec<S> = zeros(&shape)?;
    if !data.is_empty() && k > 0 {
        for (i, out) in data.chunks_exact_mut(m * n).enumerate() {
            let (a, b) = (Rows::new(&left[i * m * k..], k), Rows::new(&right[i * k * n..], n));
            add_product(out, a, b, m, k, n);
        }
    }
    Ok(Labelled { labels, shape, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_label_takes_the_diagonal() {
        let t = Labelled::new(&[1, 2, 3, 4], &[2, 2], &[0, 0]);
        assert_eq!((t.labels.as_slice(), t.data.as_slice()), (&[0][..], &[1, 4][..]));
    }

    #[test]
    fn unneeded_labels_are_summed() {
        let a = Labelled::new(&[1i64, 2, 3, 4, 5, 6], &[2, 3], &[0, 1]);
        let b = Labelled::new(&[1i64, 10, 100], &[3, 1], &[1, 2]);
        let c = contract(a, b, |l| *l == 0).unwrap();
        assert_eq!(c.arranged(&[0]), [321, 654]);
    }
}
