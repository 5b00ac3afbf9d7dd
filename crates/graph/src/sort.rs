//! Sorting whose code is there once: the standard library's is compiled anew for each type and comparison, about 5 kB each
//! time. For lists of things, not for tensors.

use std::cmp::Ordering;

/// Sorts by a comparison; equal ones stay in their order.
pub fn sort_by<T>(list: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = order_of(list.len(), &mut |a, b| compare(&list[a], &list[b]));
    arrange(order, &mut |a, b| list.swap(a, b));
}

/// Sorts by a key; those with equal keys stay in their order.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(list, |a, b| key(a).cmp(&key(b)));
}

/// The places of elements in the order that they are sorted to.
fn order_of(n: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
    order
}

/// Brings the element at `order[i]` to `i`, for all of them.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for i in 0..order.len() {
        let mut at = i;
        // One cycle: each step puts one element where it belongs.
        while order[at] != i {
            let from = std::mem::replace(&mut order[at], at);
            swap(at, from);
            at = from;
        }
        order[at] = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ones_stay_in_their_order() {
        for n in [0, 1, 2, 7, 100] {
            let mut list: Vec<(usize, String)> = (0..n).map(|i| (i * 37 % 11, i.to_string())).collect();
            let mut expected = list.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut list, |(key, _)| *key);
            assert_eq!(list, expected);
        }
    }
}
