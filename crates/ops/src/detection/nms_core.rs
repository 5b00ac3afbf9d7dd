//! Ranking by score and the two ways of suppressing: greedy, and with a queue of decaying scores. A NaN score ranks
//! last and never passes a threshold.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Greater scores first, NaN last; equal scores are `Equal`, so that a stable sort keeps their order.
pub(super) fn descending(a: f32, b: f32) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Indices of the wanted scores, best first, ties in index order, at most `top` of them.
pub(super) fn ranked(scores: &[f32], wanted: impl Fn(f32) -> bool, top: Option<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|&i| wanted(scores[i])).collect();
    order.sort_by(|&a, &b| descending(scores[a], scores[b]));
    if let Some(n) = top {
        order.truncate(n);
    }
    order
}

/// A limit where every negative number means "no limit".
pub(super) fn limit(n: i64) -> Option<usize> {
    usize::try_from(n).ok()
}

/// Walks the ranked boxes and keeps those that no kept one suppresses, until `most` are kept.
pub(super) fn greedy(order: &[usize], most: usize, suppressed: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for &candidate in order {
        if kept.len() >= most {
            break;
        }
        if !kept.iter().any(|&k| suppressed(candidate, k)) {
            kept.push(candidate);
        }
    }
    kept
}

/// Selects up to `most` boxes by decaying scores. `decay` maps an overlap to the factor for the lower score, or `None`
/// to drop that box for good. A box whose score fell goes back into the queue and later meets only the boxes selected
/// in between.
pub(super) fn select_decaying(
    scores: &[f32],
    score_threshold: f32,
    most: usize,
    overlap: impl Fn(usize, usize) -> f32,
    decay: impl Fn(f32) -> Option<f32>,
) -> Vec<(usize, f32)> {
    let mut queue: BinaryHeap<Queued> = (0..scores.len())
        .filter(|&i| scores[i] > score_threshold)
        .map(|index| Queued { score: scores[index], index, met: 0 })
        .collect();
    let mut selected: Vec<(usize, f32)> = Vec::new();
    while selected.len() < most {
        let Some(mut next) = queue.pop() else { break };
        let before = next.score;
        let mut dropped = false;
        for &(index, _) in selected[next.met..].iter().rev() {
            match decay(overlap(next.index, index)) {
                Some(factor) => next.score *= factor,
                None => dropped = true,
            }
            if dropped || next.score <= score_threshold {
                break;
            }
        }
        next.met = selected.len();
        if dropped {
            continue;
        }
        if next.score == before {
            selected.push((next.index, next.score));
        } else if next.score > score_threshold {
            queue.push(next);
        }
    }
    selected
}

#[derive(Debug)]
struct Queued {
    score: f32,
    index: usize,
    /// How many of the selected boxes it was already compared with.
    met: usize,
}

impl Ord for Queued {
    fn cmp(&self, other: &Queued) -> Ordering {
        descending(other.score, self.score).then(other.index.cmp(&self.index))
    }
}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Queued) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Queued {
    fn eq(&self, other: &Queued) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Queued {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_index_order_and_nan_is_last() {
        assert_eq!(ranked(&[1.0, f32::NAN, 2.0, 1.0], |_| true, None), [2, 0, 3, 1]);
        assert_eq!(ranked(&[1.0, f32::NAN, 2.0, 1.0], |s| s > 0.0, Some(2)), [2, 0]);
    }

    #[test]
    fn a_decayed_box_is_overtaken() {
        // Box 1 falls to 0.4 under box 0 and comes out after box 2.
        let overlap = |a: usize, b: usize| if a + b == 1 { 1.0 } else { 0.0 };
        let out = select_decaying(&[0.9, 0.8, 0.5], 0.0, 3, overlap, |o| Some(1.0 - 0.5 * o));
        assert_eq!(out, [(0, 0.9), (2, 0.5), (1, 0.4)]);
    }

    #[test]
    fn a_factor_that_is_no_number_drops_the_box() {
        assert_eq!(select_decaying(&[0.9, 0.8], 0.0, 2, |_, _| 0.0, |_| Some(f32::NAN)), [(0, 0.9)]);
    }
}
