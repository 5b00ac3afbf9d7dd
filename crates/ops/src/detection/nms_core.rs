//! Ranking by score and the two ways of suppressing: greedy, and with a queue of decaying scores. A NaN score ranks
//! last and never passes a threshold.

use super::boxes::Corners;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Greater scores first, NaN last; equal scores are `Equal`, so that a stable sort keeps their order.
pub(super) fn descending(a: f32, b: f32) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A score and an index as one number; the better score, and of equal ones the lower index, has the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    pub(super) fn new(score: f32, index: u32) -> Rank {
        // The bits of a float as a number that falls with it. Both zeros are one, and what is no number is last.
        let bits = (score + 0.0).to_bits();
        let rising = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        let falling = if score.is_nan() { u32::MAX } else { !rising };
        Rank(u64::from(falling) << 32 | u64::from(index))
    }
    pub(super) fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// Brings ranks into order, at most `top` of them: only those are sorted.
pub(super) fn best(ranks: &mut Vec<Rank>, top: Option<usize>) {
    if let Some(top) = top.filter(|&top| top < ranks.len()) {
        if top > 0 {
            ranks.select_nth_unstable(top - 1);
        }
        ranks.truncate(top);
    }
    ranks.sort_unstable();
}

/// Indices of the wanted scores, best first, ties in index order, at most `top` of them.
pub(super) fn ranked(scores: &[f32], wanted: impl Fn(f32) -> bool, top: Option<usize>) -> Vec<usize> {
    let all = scores.iter().zip(0u32..).filter(|(s, _)| wanted(**s));
    let mut ranks: Vec<Rank> = all.map(|(&s, i)| Rank::new(s, i)).collect();
    best(&mut ranks, top);
    ranks.into_iter().map(Rank::index).collect()
}

/// A limit where every negative number means "no limit".
pub(super) fn limit(n: i64) -> Option<usize> {
    usize::try_from(n).ok()
}

/// Boxes that were kept, each coordinate in a list of its own so that many are compared at once, and their areas.
#[derive(Debug, Default)]
pub(super) struct Kept {
    offset: f32,
    /// Boxes that do not touch have no overlap.
    touching: bool,
    sides: [Vec<f32>; 4],
    areas: Vec<f32>,
}

/// Boxes that are compared at once.
const AT_ONCE: usize = 16;

impl Kept {
    pub(super) fn new(offset: f32, touching: bool) -> Kept {
        Kept { offset, touching, ..Kept::default() }
    }
    pub(super) fn push(&mut self, b: Corners) {
        self.sides.iter_mut().zip(b.to_array()).for_each(|(list, v)| list.push(v));
        self.areas.push(b.width(self.offset) * b.height(self.offset));
    }
    pub(super) fn clear(&mut self) {
        self.sides.iter_mut().for_each(Vec::clear);
        self.areas.clear();
    }
    /// Whether `hit` holds for the overlap of the box with one that was kept.
    pub(super) fn any(&self, b: Corners, hit: impl Fn(f32) -> bool) -> bool {
        let area = b.width(self.offset) * b.height(self.offset);
        let mut found = false;
        let mut at = 0;
        while at < self.areas.len() && !found {
            let end = (at + AT_ONCE).min(self.areas.len());
            let [x1, y1, x2, y2] = self.sides.each_ref().map(|s| &s[at..end]);
            let mut shared = [0.0; AT_ONCE];
            let mut meet = hit(0.0);
            for (i, both) in shared[..end - at].iter_mut().enumerate() {
                let w = least(b.x2, x2[i]) - most(b.x1, x1[i]) + self.offset;
                let h = least(b.y2, y2[i]) - most(b.y1, y1[i]) + self.offset;
                *both = most(w, 0.0) * most(h, 0.0);
                meet |= *both > 0.0;
            }
            // Boxes apart from each other are the usual case, and need no division.
            for (i, &both) in shared[..end - at].iter().enumerate().filter(|_| meet) {
                let apart = !(b.x1 <= x2[i] && x1[i] <= b.x2 && b.y1 <= y2[i] && y1[i] <= b.y2);
                let none = both <= 0.0 || (self.touching && apart);
                found |= hit(if none { 0.0 } else { both / (area + self.areas[at + i] - both) });
            }
            at = end;
        }
        found
    }
}

// One instruction each, unlike those of the standard library, which look for what is no number; here it becomes 0 sooner or
// later, in either order.
fn least(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
fn most(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Walks the ranked boxes and keeps those whose overlap with no kept one is above `threshold`, until `most` are kept.
pub(super) fn greedy(
    order: &[usize],
    most: usize,
    corners: impl Fn(usize) -> Corners,
    kept: &mut Kept,
    threshold: f32,
) -> Vec<usize> {
    kept.clear();
    let mut indices: Vec<usize> = Vec::new();
    for &candidate in order {
        if indices.len() >= most {
            break;
        }
        let b = corners(candidate);
        if !kept.any(b, |overlap| overlap > threshold) {
            kept.push(b);
            indices.push(candidate);
        }
    }
    indices
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
    fn ranks_fall_with_scores_of_every_kind() {
        let scores = [f32::INFINITY, 1.0, 1e-40, 0.0, -0.0, -1e-40, -1.0, f32::NEG_INFINITY, f32::NAN, f32::NAN];
        assert_eq!(ranked(&scores, |_| true, None), (0..10).collect::<Vec<_>>());
        assert_eq!(ranked(&scores, |_| true, Some(0)), [0usize; 0]);
    }

    #[test]
    fn kept_boxes_overlap_as_corners_do() {
        let at = |i: usize| {
            let v = |k: usize| ((i * 7 + k * 13) % 11) as f32 * 0.5;
            Corners { x1: v(1), y1: v(2), x2: v(3), y2: v(4) }
        };
        for (offset, touching) in [(0.0, false), (1.0, false), (1.0, true)] {
            let mut kept = Kept::new(offset, touching);
            (0..40).for_each(|i| kept.push(at(i)));
            for i in 0..60 {
                let overlap = |k: usize| match touching {
                    true => at(i).iou_touching(at(k), offset),
                    false => at(i).iou(at(k), offset),
                };
                for threshold in [0.0, 0.3, 0.7] {
                    assert_eq!(kept.any(at(i), |o| o > threshold), (0..40).any(|k| overlap(k) > threshold));
                }
            }
        }
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
