//! Values that are part of another one lie inside of it: what a concatenation joins is written where it ends up, and what a
//! split or slice cuts out is read where it lies. Along the outermost axis a part is a range of bytes; along the last one
//! its rows lie apart, and every step that touches it must know how (`steps/apart.rs`). What does not know keeps a copy.
//!
//! No step may read and write inside of one whole: memory is handed to it as slices, and those would overlap.

use super::select::{Chosen, ChosenStep, Origin, Selection};
use crate::plan::Action;
use crate::steps::Step;
use crate::steps::apart::{Apart, Operand, Pieces, Rows, pieces_step};
use carafe_graph::{Error, Result};
use std::sync::Arc;

/// Moves values into those they are part of.
pub(super) fn place(chosen: &mut Selection) -> Result<()> {
    let mut joins: Vec<Option<Pieces>> = chosen.steps.iter().map(pieces_of).collect();
    if joins.iter().all(Option::is_none) {
        return Ok(());
    }
    share(chosen, &mut joins);
    let mut inside = Inside::of(chosen, joins);
    // The last first: what a concatenation joins that is joined again lies inside of the last one.
    for s in (0..inside.chosen.steps.len()).rev() {
        if inside.is(s, true) {
            inside.join(s);
        }
    }
    for s in 0..inside.chosen.steps.len() {
        if inside.is(s, false) {
            inside.cut(s);
        }
    }
    inside.finish()
}

fn fast(step: &ChosenStep) -> Option<&Arc<dyn Step>> {
    match &step.action {
        Action::Fast(kernel) => Some(kernel),
        Action::Make(_) | Action::Eval(_) => None,
    }
}

fn pieces_of(step: &ChosenStep) -> Option<Pieces> {
    fast(step)?.pieces()
}

impl Chosen {
    /// Elements of the last axis as it lies.
    pub(super) fn row(&self) -> usize {
        self.shape.as_ref().and_then(|s| self.layout.dims(s).last().copied()).unwrap_or(1)
    }
    pub(super) fn elements(&self) -> usize {
        self.shape.as_ref().map_or(0, |s| s.iter().product())
    }
}

/// Where a value lies: in which one that is part of no other, from which element on, and how far its rows lie apart there
/// (0 when they lie together).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) root: usize,
    pub(super) start: usize,
    pub(super) pitch: usize,
}

pub(super) fn locate(values: &[Chosen], mut v: usize) -> Location {
    let (mut start, mut pitch) = (0, 0);
    loop {
        match values[v].source {
            Origin::View(of) => v = of,
            Origin::Inside { of, start: at, pitch: own } => {
                start += at;
                pitch = if own > 0 { own } else { pitch };
                v = of;
            }
            _ => return Location { root: v, start, pitch },
        }
    }
}

/// A concatenation of what another one or a split has whole reads that instead.
fn share(chosen: &mut Selection, pieces: &mut [Option<Pieces>]) {
    for s in 0..chosen.steps.len() {
        // A concatenation that was found can be part of a longer one.
        while let Some((at, parts, whole, len)) = known(chosen, pieces, s) {
            chosen.steps[s].reads.splice(at..at + parts, [whole]);
            if let Some(own) = &mut pieces[s] {
                let start = own.ranges[at].0;
                own.ranges.splice(at..at + parts, [(start, len)]);
            }
        }
    }
}

// Reads of a concatenation that lie together in another value: from which on, how many, the value and its length.
fn known(chosen: &Selection, pieces: &[Option<Pieces>], s: usize) -> Option<(usize, usize, usize, usize)> {
    let own = pieces[s].as_ref().filter(|p| p.joins)?;
    let large = &chosen.steps[s];
    let layout = |v: usize| chosen.values[v].layout;
    (0..s).rev().find_map(|t| {
        let (small, other) = (&chosen.steps[t], pieces[t].as_ref()?);
        let (parts, whole) = match other.joins {
            true => (&small.reads, small.writes[0]),
            false => (&small.writes, small.reads[0]),
        };
        let covered: usize = other.ranges.iter().map(|r| r.1).sum();
        let alike = own.outer == other.outer && own.of_rows == other.of_rows && covered == other.whole;
        if !alike || parts.len() < 2 || layout(whole) != layout(large.writes[0]) {
            return None;
        }
        let at = large.reads.windows(parts.len()).position(|w| w == parts.as_slice())?;
        Some((at, parts.len(), whole, covered))
    })
}

struct Inside<'a> {
    chosen: &'a mut Selection,
    /// What is left to copy of steps that move pieces.
    pieces: Vec<Option<Pieces>>,
    /// Steps that read each value, with the place among their reads.
    readers: Vec<Vec<(usize, usize)>>,
    /// The step that makes each value.
    maker: Vec<Option<usize>>,
    /// Views of each value.
    views: Vec<Vec<usize>>,
    handed: Vec<bool>,
}

impl<'a> Inside<'a> {
    fn of(chosen: &'a mut Selection, pieces: Vec<Option<Pieces>>) -> Inside<'a> {
        let n = chosen.values.len();
        let (mut readers, mut maker, mut views) = (vec![vec![]; n], vec![None; n], vec![vec![]; n]);
        for (s, step) in chosen.steps.iter().enumerate() {
            step.reads.iter().enumerate().for_each(|(i, &v)| readers[v].push((s, i)));
            step.writes.iter().for_each(|&v| maker[v] = Some(s));
        }
        for (v, value) in chosen.values.iter().enumerate() {
            if let Origin::View(of) = value.source {
                views[of].push(v);
            }
        }
        let mut handed = vec![false; n];
        chosen.outputs.iter().for_each(|&v| handed[v] = true);
        Inside { chosen, pieces, readers, maker, views, handed }
    }

    fn is(&self, s: usize, joins: bool) -> bool {
        self.pieces[s].as_ref().is_some_and(|p| p.joins == joins)
    }

    /// The value and all that look at its bytes.
    fn alike(&self, v: usize) -> Vec<usize> {
        let mut all = vec![v];
        let mut next = 0;
        while next < all.len() {
            all.extend(&self.views[all[next]]);
            next += 1;
        }
        all
    }

    /// The value whose bytes these are.
    fn viewed(&self, mut v: usize) -> usize {
        while let Origin::View(of) = self.chosen.values[v].source {
            v = of;
        }
        v
    }

    fn root(&self, v: usize) -> usize {
        locate(&self.chosen.values, v).root
    }

    fn writes_into(&self, s: usize, root: usize) -> bool {
        self.chosen.steps[s].writes.iter().any(|&v| self.root(v) == root)
    }

    /// Whether all that read a value, besides the read `but`, can do so inside of `root`, with their rows apart or not.
    fn readable(&self, all: &[usize], root: usize, row: Option<usize>, but: Option<(usize, usize)>) -> bool {
        all.iter().all(|&v| {
            let fits = row.is_none_or(|row| self.chosen.values[v].row() == row);
            fits && self.readers[v].iter().filter(|r| Some(**r) != but).all(|&(s, i)| {
                let can =
                    |row: usize| fast(&self.chosen.steps[s]).is_some_and(|k| k.may_lie_apart(Operand::Read(i), row));
                row.is_none_or(can) && !self.writes_into(s, root)
            })
        })
    }

    /// Puts what a concatenation joins into its result.
    fn join(&mut self, s: usize) {
        let (Some(pieces), &[whole]) = (self.pieces[s].clone(), &self.chosen.steps[s].writes[..]) else { return };
        let mut left = vec![];
        let reads = self.chosen.steps[s].reads.clone();
        for (i, (&v, &(start, len))) in reads.iter().zip(&pieces.ranges).enumerate() {
            if !self.put(s, i, v, whole, start, len, &pieces) {
                left.push(i);
            }
        }
        // Reports tell who does what is left of it: nothing but the place of the last piece.
        let maker = reads.last().and_then(|&v| self.maker[self.viewed(v)]);
        if let (true, Some(maker)) = (left.is_empty(), maker) {
            let name = self.chosen.steps[s].name.clone();
            self.chosen.steps[maker].fused.push(name);
        }
        self.keep(s, pieces, &left, reads);
    }

    // Leaves a step only some of its pieces.
    fn keep(&mut self, s: usize, mut pieces: Pieces, left: &[usize], values: Vec<usize>) {
        pieces.ranges = left.iter().map(|&i| pieces.ranges[i]).collect();
        let kept: Vec<usize> = left.iter().map(|&i| values[i]).collect();
        if pieces.joins {
            for (v, old) in values.iter().enumerate().map(|(i, &v)| (v, i)) {
                self.readers[v].retain(|&(t, i)| t != s || i != old);
            }
            kept.iter().enumerate().for_each(|(i, &v)| self.readers[v].push((s, i)));
            self.chosen.steps[s].reads = kept;
        } else {
            if kept.is_empty() {
                let from = self.chosen.steps[s].reads[0];
                self.readers[from].retain(|r| r.0 != s);
                self.chosen.steps[s].reads.clear();
            }
            self.chosen.steps[s].writes = kept;
        }
        self.pieces[s] = Some(pieces);
    }

    #[allow(clippy::too_many_arguments)]
    fn put(&mut self, s: usize, i: usize, v: usize, whole: usize, start: usize, len: usize, pieces: &Pieces) -> bool {
        let (values, own) = (&self.chosen.values, self.viewed(v));
        let (Origin::Step, Some(maker)) = (&values[own].source, self.maker[own]) else { return false };
        let all = self.alike(own);
        if all.iter().any(|&v| self.handed[v]) || len == 0 {
            return false;
        }
        let into = locate(values, whole);
        let apart = pieces.outer > 1 || into.pitch > 0;
        if apart && !pieces.of_rows {
            return false;
        }
        let row = apart.then_some(len);
        let step = &self.chosen.steps[maker];
        let place = step.writes.iter().position(|&w| w == own).unwrap_or(0);
        let writable = fast(step).is_some_and(|k| row.is_none_or(|row| k.may_lie_apart(Operand::Write(place), row)));
        let meets = step.reads.iter().chain(&step.writes).any(|&v| self.root(v) == into.root);
        if !writable || meets || !self.readable(&all, into.root, row, Some((s, i))) {
            return false;
        }
        let pitch = if apart { pieces.whole } else { 0 };
        self.chosen.values[own].source = Origin::Inside { of: whole, start, pitch };
        true
    }

    /// Reads what is cut out of a value where it lies.
    fn cut(&mut self, s: usize) {
        let Some(pieces) = self.pieces[s].clone() else { return };
        let from = self.chosen.steps[s].reads[0];
        let writes = self.chosen.steps[s].writes.clone();
        let mut left = vec![];
        for (i, (&v, &(start, len))) in writes.iter().zip(&pieces.ranges).enumerate() {
            if !self.see(v, from, start, len, &pieces) {
                left.push(i);
            }
        }
        self.keep(s, pieces, &left, writes);
    }

    fn see(&mut self, v: usize, from: usize, start: usize, len: usize, pieces: &Pieces) -> bool {
        let values = &self.chosen.values;
        let all = self.alike(v);
        if !matches!(values[v].source, Origin::Step) || all.iter().any(|&v| self.handed[v]) || len == 0 {
            return false;
        }
        let at = locate(values, from);
        let apart = pieces.outer > 1 || at.pitch > 0;
        if apart && !(pieces.of_rows && pieces.whole == values[from].row()) {
            return false;
        }
        if !self.readable(&all, at.root, apart.then_some(len), None) {
            return false;
        }
        let pitch = if apart { pieces.whole } else { 0 };
        self.chosen.values[v].source = Origin::Inside { of: from, start, pitch };
        true
    }

    /// Steps with the operands they now have, without those that have nothing left to do.
    fn finish(self) -> Result<()> {
        let Selection { values, steps, .. } = self.chosen;
        for (step, pieces) in steps.iter_mut().zip(&self.pieces) {
            let rows = |v: &usize| {
                let pitch = locate(values, *v).pitch;
                (pitch > 0).then(|| Rows { len: values[*v].row(), pitch })
            };
            let reads: Vec<_> = step.reads.iter().map(rows).collect();
            let apart = Apart { reads, writes: step.writes.iter().map(rows).collect() };
            let Action::Fast(kernel) = &step.action else { continue };
            let made = match pieces {
                Some(pieces) if pieces.ranges.is_empty() => continue,
                Some(pieces) if kernel.pieces().as_ref() != Some(pieces) => Some(pieces_step(pieces.clone(), &apart)),
                _ if apart.is_needed() => kernel.apart(&apart),
                _ => continue,
            };
            let unable = || Error::invalid(format!("{} cannot read or write rows that lie apart", step.place));
            step.action = Action::Fast(made.ok_or_else(unable)?);
        }
        let mut pieces = self.pieces.into_iter();
        steps.retain(|_| pieces.next().flatten().is_none_or(|p| !p.ranges.is_empty()));
        Ok(())
    }
}
