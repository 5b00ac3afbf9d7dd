//! Non-maximum suppression: per image and class, the best boxes that do not overlap a better one. Candidates are ranked in
//! portions, as many as the selection still asks for, and each meets only boxes that were selected.

use super::Number;
use super::best::{best_ranks, for_levels, room_for};
use super::nms_boxes::{BoxEncoding, Corners, Kept};
use crate::movement::product;
use crate::{Exec, Isa, part_of};
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Mutex;

/// The shapes and rules of a suppression.
#[derive(Clone, Debug)]
pub struct Nms {
    pub images: usize,
    pub classes: usize,
    /// Boxes of an image.
    pub boxes: usize,
    pub encoding: BoxEncoding,
    /// Whether a box goes that overlaps exactly as much as the threshold says, and also goes when scores decay. The rule
    /// of the older versions; the newest suppresses above the threshold, and with a sigma only lowers scores.
    pub from_threshold: bool,
    /// Order the result by score over all images and classes.
    pub by_score: bool,
}

/// The numbers that steer a run.
#[derive(Clone, Copy, Debug)]
pub struct NmsLimits {
    /// Boxes of each class.
    pub most: usize,
    /// Best boxes of each class that take part, where scores do not decay.
    pub candidates: usize,
    pub iou: f32,
    /// Scores must lie above it.
    pub score: f32,
    /// Scores decay with the overlap when it is above 0.
    pub sigma: f32,
}

/// A selected box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selected {
    pub image: u32,
    pub class: u32,
    pub index: u32,
    pub score: f32,
}

/// Memory of the threads, kept between runs.
#[derive(Debug)]
pub struct NmsWork {
    threads: Vec<Mutex<Own>>,
    /// Where the boxes of each chunk lie: thread and range.
    pieces: Vec<(usize, Range<usize>)>,
    /// Scores with their positions, to be sorted.
    order: Vec<u64>,
    all: Vec<Selected>,
}

#[derive(Debug, Default)]
struct Own {
    ranks: Vec<u64>,
    queue: Vec<Queued>,
    kept: Kept,
    rows: Vec<(u32, f32)>,
    found: Vec<Selected>,
    /// What each chunk added to `found`.
    pieces: Vec<(usize, Range<usize>)>,
}

impl NmsWork {
    pub fn new(threads: usize) -> NmsWork {
        let threads = (0..threads.max(1)).map(|_| Mutex::default()).collect();
        NmsWork { threads, pieces: vec![], order: vec![], all: vec![] }
    }
    /// How many threads it is for.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }
}

impl NmsWork {
    // Brings what the threads found into the order of images and classes, or of scores.
    fn collect(&mut self, chunks: usize, by_score: bool, selected: &mut Vec<Selected>) {
        self.pieces.clear();
        self.pieces.resize(chunks, (0, 0..0));
        for (thread, own) in self.threads.iter_mut().enumerate() {
            let own = own.get_mut().unwrap_or_else(|e| e.into_inner());
            own.pieces.iter().for_each(|(c, range)| self.pieces[*c] = (thread, range.clone()));
        }
        let into = if by_score { &mut self.all } else { &mut *selected };
        into.clear();
        for (thread, range) in &self.pieces {
            let own = self.threads[*thread].get_mut().unwrap_or_else(|e| e.into_inner());
            into.extend_from_slice(&own.found[range.clone()]);
        }
        if by_score {
            // Within a class equal scores stand by index already, so positions decide between equal scores.
            self.order.clear();
            self.order.extend(self.all.iter().zip(0..).map(|(s, position)| s.score.rank(true, position)));
            self.order.sort_unstable_by(|a, b| b.cmp(a));
            selected.extend(self.order.iter().map(|&rank| self.all[f32::rank_position(rank) as usize]));
        }
    }
}

impl Nms {
    /// `boxes` is `[images, boxes, 4]`, `scores` is `[images, classes, boxes]`; `selected` gets what is selected.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        boxes: &[f32],
        scores: &[f32],
        limits: NmsLimits,
        work: &mut NmsWork,
        selected: &mut Vec<Selected>,
    ) {
        let n = self.boxes;
        assert_eq!(boxes.len(), product(&[self.images, n, 4]), "numbers of boxes");
        assert_eq!(scores.len(), product(&[self.images, self.classes, n]), "scores");
        assert!(work.threads.len() >= exec.threads(), "memory for every thread");
        assert!(u32::try_from(n).is_ok(), "{n} boxes are too many");
        selected.clear();
        let own = |thread: usize| work.threads[thread].lock().unwrap_or_else(|e| e.into_inner());
        for t in 0..work.threads.len() {
            let mut own = own(t);
            own.found.clear();
            own.pieces.clear();
        }
        let tasks = if n == 0 { 0 } else { self.images * self.classes };
        let chunks = if scores.len() < 1 << 14 { tasks.min(1) } else { tasks.min(exec.threads() * 16) };
        let isa = exec.isa;
        exec.each(chunks, |c, thread| {
            let own = &mut *own(thread);
            let begin = own.found.len();
            for task in part_of(tasks, chunks, c) {
                let (image, class) = (task / self.classes, task % self.classes);
                let boxes = &boxes[image * n * 4..(image + 1) * n * 4];
                let scores = &scores[task * n..(task + 1) * n];
                own.rows.clear();
                if limits.sigma > 0.0 {
                    self.decaying(boxes, scores, limits, own);
                } else {
                    hard(isa, boxes, scores, limits, (self.encoding, self.from_threshold), own);
                }
                let row =
                    |&(index, score): &(u32, f32)| Selected { image: image as u32, class: class as u32, index, score };
                own.found.extend(own.rows.iter().map(row));
            }
            own.pieces.push((c, begin..own.found.len()));
        });
        work.collect(chunks, self.by_score, selected);
    }

    // The queue of the reference: a box whose score fell goes back into it, and later meets only what was selected in
    // between.
    fn decaying(&self, boxes: &[f32], scores: &[f32], limits: NmsLimits, own: &mut Own) {
        let scale = -0.5 / limits.sigma;
        let decay = |iou: f32| match self.from_threshold && iou >= limits.iou {
            true => None,
            false => Some((scale * iou * iou).exp()),
        };
        let mut list = std::mem::take(&mut own.queue);
        list.clear();
        let wanted = scores.iter().enumerate().filter(|(_, s)| **s > limits.score);
        list.extend(wanted.map(|(i, &score)| Queued { score, index: i as u32, met: 0 }));
        let mut queue = BinaryHeap::from(list);
        own.kept.clear();
        while own.rows.len() < limits.most {
            let Some(mut next) = queue.pop() else { break };
            let b = Corners::at(boxes, next.index as usize, self.encoding);
            let (before, area) = (next.score, b.area());
            let mut dropped = false;
            for k in (next.met as usize..own.rows.len()).rev() {
                let (other, other_area) = own.kept.at(k);
                match decay(b.iou(area, other, other_area)) {
                    Some(factor) => next.score *= factor,
                    None => dropped = true,
                }
                if dropped || next.score <= limits.score {
                    break;
                }
            }
            next.met = own.rows.len() as u32;
            if dropped {
                continue;
            }
            if next.score == before {
                own.rows.push((next.index, next.score));
                own.kept.push(b);
            } else if next.score > limits.score {
                queue.push(next);
            }
        }
        own.queue = queue.into_vec();
    }
}

// Selection where scores stay as they are.
fn hard(isa: Isa, boxes: &[f32], scores: &[f32], limits: NmsLimits, rule: (BoxEncoding, bool), own: &mut Own) {
    own.kept.clear();
    if limits.most == 0 || limits.score.is_nan() {
        return;
    }
    // As many as may well be enough, without a look at the order of the others.
    let wanted = (2 * limits.most.min(scores.len())).max(64);
    let portion = wanted.min(scores.len()).min(limits.candidates);
    if portion == 0 {
        return;
    }
    let mut ranks = std::mem::take(&mut own.ranks);
    ranks.resize(room_for(scores.len(), portion).max(ranks.len()), 0);
    let room = room_for(scores.len(), portion);
    let found = best_ranks(isa, (scores, 1, scores.len()), portion, true, Some(limits.score), &mut ranks[..room]);
    let first = &mut ranks[..found];
    first.sort_unstable_by(|a, b| b.cmp(a));
    keep(isa, boxes, scores, limits, rule, first, own);
    let more = found == portion && portion < limits.candidates && own.rows.len() < limits.most;
    if let (true, Some(&last)) = (more, first.last()) {
        ranks.clear();
        let rank = |(&s, i): (&f32, u32)| (s > limits.score).then(|| s.rank(true, i)).filter(|&r| r < last);
        ranks.extend(scores.iter().zip(0..).filter_map(rank));
        // The rest comes into order in portions that grow.
        let (mut left, mut portion) = (&mut ranks[..], portion);
        let others = limits.candidates - portion;
        if others < left.len() {
            left.select_nth_unstable_by(others, |a, b| b.cmp(a));
            left = &mut left[..others];
        }
        while own.rows.len() < limits.most && !left.is_empty() {
            portion = left.len().min(2 * portion);
            if portion < left.len() {
                left.select_nth_unstable_by(portion - 1, |a, b| b.cmp(a));
            }
            let (now, later) = left.split_at_mut(portion);
            now.sort_unstable_by(|a, b| b.cmp(a));
            keep(isa, boxes, scores, limits, rule, now, own);
            left = later;
        }
    }
    own.ranks = ranks;
}

for_levels! {
    /// Selects among ranked candidates those that overlap none that is selected.
    fn keep<'a>(
        boxes: &'a [f32],
        scores: &'a [f32],
        limits: NmsLimits,
        rule: (BoxEncoding, bool),
        ranks: &'a [u64],
        own: &'a mut Own,
    ) { keep_any }
}

#[inline(always)]
fn keep_any(
    boxes: &[f32],
    scores: &[f32],
    limits: NmsLimits,
    (encoding, from_threshold): (BoxEncoding, bool),
    ranks: &[u64],
    own: &mut Own,
) {
    // An overlap that is no number turns the score into none, which drops the box as well.
    let undefined = encoding != BoxEncoding::Sides;
    let hit =
        |iou: f32| (if from_threshold { iou >= limits.iou } else { iou > limits.iou }) | (undefined & !iou.is_finite());
    for &rank in ranks {
        if own.rows.len() >= limits.most {
            break;
        }
        let index = f32::rank_position(rank);
        let b = Corners::at(boxes, index as usize, encoding);
        if !own.kept.any(b, hit) {
            own.kept.push(b);
            own.rows.push((index, scores[index as usize]));
        }
    }
}

// Greater scores first.
fn descending(a: f32, b: f32) -> std::cmp::Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    score: f32,
    index: u32,
    /// How many of the selected boxes it was already compared with.
    met: u32,
}

impl Ord for Queued {
    fn cmp(&self, other: &Queued) -> std::cmp::Ordering {
        descending(other.score, self.score).then(other.index.cmp(&self.index))
    }
}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Queued) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Queued {
    fn eq(&self, other: &Queued) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Queued {}
