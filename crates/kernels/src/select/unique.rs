//! The different elements of an array, or its different slices along an axis: where each first occurs, which of them every
//! slice equals, and how often each occurs. All NaN count as equal, behind every number; -0 equals 0.

use super::Number;
use crate::movement::product;
use std::cmp::Ordering;

/// What was found; the lists keep their memory from run to run.
#[derive(Clone, Debug, Default)]
pub struct Unique {
    /// Place of the first of each different slice.
    pub first: Vec<usize>,
    /// For each slice, the number of the different one it equals.
    pub inverse: Vec<usize>,
    pub counts: Vec<usize>,
    order: Vec<u32>,
    groups: Vec<(u32, u32)>,
}

impl Unique {
    /// Searches the slices of `data`, seen as `[outer, n, inner]`, along the middle axis; `sorted` numbers them by value,
    /// slices compared element by element, and otherwise by first occurrence.
    pub fn find<T: Number>(&mut self, data: &[T], dims: [usize; 3], sorted: bool) {
        (T::compiled().unique)(self, data, dims, sorted);
    }

    pub(super) fn find_any<T: Number>(&mut self, data: &[T], [outer, n, inner]: [usize; 3], sorted: bool) {
        assert_eq!(data.len(), product(&[outer, n, inner]), "elements of the data");
        assert!(u32::try_from(n).is_ok(), "an axis of {n} is too long");
        let compare = |&a: &u32, &b: &u32| {
            for o in 0..outer {
                let slice = |k: u32| &data[(o * n + k as usize) * inner..][..inner];
                for (&x, &y) in slice(a).iter().zip(slice(b)) {
                    let order = x.partial_cmp(&y).unwrap_or_else(|| is_nan(x).cmp(&is_nan(y)));
                    if order != Ordering::Equal {
                        return order;
                    }
                }
            }
            Ordering::Equal
        };
        self.order.clear();
        self.order.extend(0..n as u32);
        // Equal slices stay in the order of their positions, so each group begins with its first.
        self.order.sort_unstable_by(|a, b| compare(a, b).then(a.cmp(b)));
        // Groups of equal slices: first position, and where the group begins in the order.
        self.groups.clear();
        for (at, slice) in self.order.iter().enumerate() {
            let same = self.groups.last().is_some_and(|(first, _)| compare(first, slice) == Ordering::Equal);
            if !same {
                self.groups.push((*slice, at as u32));
            }
        }
        self.inverse.clear();
        self.inverse.resize(n, 0);
        let ends = self.groups.iter().skip(1).map(|g| g.1 as usize).chain([n]);
        for ((first, begin), end) in self.groups.iter().zip(ends) {
            self.order[*begin as usize..end].iter().for_each(|&slice| self.inverse[slice as usize] = *first as usize);
        }
        if !sorted {
            self.groups.sort_unstable();
        }
        // `inverse` holds first positions; they become numbers through `first`, in the order wanted.
        self.first.clear();
        self.first.extend(self.groups.iter().map(|g| g.0 as usize));
        self.counts.clear();
        self.counts.resize(self.first.len(), 0);
        self.order.clear();
        self.order.resize(n, 0);
        self.first.iter().enumerate().for_each(|(number, &position)| self.order[position] = number as u32);
        for position in &mut self.inverse {
            *position = self.order[*position] as usize;
            self.counts[*position] += 1;
        }
    }
}

#[allow(clippy::eq_op)]
fn is_nan<T: Number>(x: T) -> bool {
    x != x
}
