//! Values that are part of another one are aliases of it: what a concatenation joins is written where it ends up, and what a
//! split or slice cuts out is read where it lies. Along the outermost axis a part is a range of bytes; along the last one
//! its rows have a stride, and every step that touches it must accept that (`strided.rs`). What does not keeps a copy.
//!
//! No step may read and write inside of one whole: memory is handed to it as slices, and those would overlap.

use super::select::{Chosen, ChosenStep, Origin, Selection};
use crate::backend::{Backend, Step};
use crate::plan::Action;
use crate::strided::{Operand, Parts, RowStrides, Rows};
use carafe_graph::{Error, Result};
use std::sync::Arc;

/// Makes values that are part of others aliases of them.
pub(super) fn alias<B: Backend>(chosen: &mut Selection<B>, backend: &B) -> Result<()> {
    let mut parts: Vec<Option<Parts>> = chosen.steps.iter().map(parts_of).collect();
    if parts.iter().all(Option::is_none) {
        return Ok(());
    }
    share(chosen, &mut parts);
    let mut aliasing = Aliasing::of(chosen, parts);
    // The last first: what a concatenation joins that is joined again is an alias of the last one.
    for s in (0..aliasing.chosen.steps.len()).rev() {
        if aliasing.is(s, true) {
            aliasing.join(s);
        }
    }
    for s in 0..aliasing.chosen.steps.len() {
        if aliasing.is(s, false) {
            aliasing.cut(s);
        }
    }
    aliasing.finish(backend)
}

fn kernel<B: Backend>(step: &ChosenStep<B>) -> Option<&Arc<dyn Step<B>>> {
    match &step.action {
        Action::Kernel(kernel) => Some(kernel),
        Action::Dynamic(_) | Action::Eval(_) => None,
    }
}

fn parts_of<B: Backend>(step: &ChosenStep<B>) -> Option<Parts> {
    kernel(step)?.parts()
}

/// Where a value lies: in which one that is part of no other, from which element on, and elements from row to row there
/// (0 when it is dense).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aliased {
    pub(super) root: usize,
    pub(super) start: usize,
    pub(super) row_stride: usize,
}

pub(super) fn locate(values: &[Chosen], mut v: usize) -> Aliased {
    let (mut start, mut row_stride) = (0, 0);
    loop {
        match values[v].source {
            Origin::View(of) => v = of,
            Origin::Alias { of, start: at, row_stride: own } => {
                start += at;
                row_stride = if own > 0 { own } else { row_stride };
                v = of;
            }
            _ => return Aliased { root: v, start, row_stride },
        }
    }
}

/// A concatenation of what another one or a split has whole reads that instead.
fn share<B: Backend>(chosen: &mut Selection<B>, parts: &mut [Option<Parts>]) {
    for s in 0..chosen.steps.len() {
        // A concatenation that was found can be part of a longer one.
        while let Some((at, count, whole, len)) = known(chosen, parts, s) {
            chosen.steps[s].reads.splice(at..at + count, [whole]);
            if let Some(own) = &mut parts[s] {
                let start = own.ranges[at].0;
                own.ranges.splice(at..at + count, [(start, len)]);
            }
        }
    }
}

// Reads of a concatenation that lie together in another value: from which on, how many, the value and its length.
fn known<B: Backend>(chosen: &Selection<B>, parts: &[Option<Parts>], s: usize) -> Option<(usize, usize, usize, usize)> {
    let own = parts[s].as_ref().filter(|p| p.joins)?;
    let large = &chosen.steps[s];
    let layout = |v: usize| chosen.values[v].layout;
    (0..s).rev().find_map(|t| {
        let (small, other) = (&chosen.steps[t], parts[t].as_ref()?);
        let (members, whole) = match other.joins {
            true => (&small.reads, small.writes[0]),
            false => (&small.writes, small.reads[0]),
        };
        let covered: usize = other.ranges.iter().map(|r| r.1).sum();
        let alike = own.outer == other.outer && own.of_rows == other.of_rows && covered == other.whole;
        if !alike || members.len() < 2 || layout(whole) != layout(large.writes[0]) {
            return None;
        }
        let at = large.reads.windows(members.len()).position(|w| w == members.as_slice())?;
        Some((at, members.len(), whole, covered))
    })
}

struct Aliasing<'a, B: Backend> {
    chosen: &'a mut Selection<B>,
    /// What is left to copy of steps that move parts.
    parts: Vec<Option<Parts>>,
    /// Steps that read each value, with the index among their reads.
    readers: Vec<Vec<(usize, usize)>>,
    /// The step that makes each value.
    producer: Vec<Option<usize>>,
    /// Views of each value.
    views: Vec<Vec<usize>>,
    handed: Vec<bool>,
}

impl<'a, B: Backend> Aliasing<'a, B> {
    fn of(chosen: &'a mut Selection<B>, parts: Vec<Option<Parts>>) -> Aliasing<'a, B> {
        let n = chosen.values.len();
        let (mut readers, mut producer, mut views) = (vec![vec![]; n], vec![None; n], vec![vec![]; n]);
        for (s, step) in chosen.steps.iter().enumerate() {
            step.reads.iter().enumerate().for_each(|(i, &v)| readers[v].push((s, i)));
            step.writes.iter().for_each(|&v| producer[v] = Some(s));
        }
        for (v, value) in chosen.values.iter().enumerate() {
            if let Origin::View(of) = value.source {
                views[of].push(v);
            }
        }
        let mut handed = vec![false; n];
        chosen.outputs.iter().for_each(|&v| handed[v] = true);
        Aliasing { chosen, parts, readers, producer, views, handed }
    }

    fn is(&self, s: usize, joins: bool) -> bool {
        self.parts[s].as_ref().is_some_and(|p| p.joins == joins)
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

    /// Whether all that read a value, besides the read `but`, can do so inside of `root`, with a row stride or not.
    fn readable(&self, all: &[usize], root: usize, row: Option<usize>, but: Option<(usize, usize)>) -> bool {
        all.iter().all(|&v| {
            let fits = row.is_none_or(|row| self.chosen.values[v].row() == row);
            fits && self.readers[v].iter().filter(|r| Some(**r) != but).all(|&(s, i)| {
                let can = |row: usize| {
                    kernel(&self.chosen.steps[s]).is_some_and(|k| k.accepts_row_stride(Operand::Read(i), row))
                };
                row.is_none_or(can) && !self.writes_into(s, root)
            })
        })
    }

    /// Puts what a concatenation joins into its result.
    fn join(&mut self, s: usize) {
        let (Some(parts), &[whole]) = (self.parts[s].clone(), &self.chosen.steps[s].writes[..]) else { return };
        let mut left = vec![];
        let reads = self.chosen.steps[s].reads.clone();
        for (i, (&v, &(start, len))) in reads.iter().zip(&parts.ranges).enumerate() {
            if !self.put(s, i, v, whole, start, len, &parts) {
                left.push(i);
            }
        }
        // Reports show who does what is left of it, which is nothing but where its last part is written.
        let producer = reads.last().and_then(|&v| self.producer[self.viewed(v)]);
        if let (true, Some(producer)) = (left.is_empty(), producer) {
            let name = self.chosen.steps[s].name.clone();
            self.chosen.steps[producer].fused.push(name);
        }
        self.keep(s, parts, &left, reads);
    }

    // Leaves a step only some of its parts.
    fn keep(&mut self, s: usize, mut parts: Parts, left: &[usize], values: Vec<usize>) {
        parts.ranges = left.iter().map(|&i| parts.ranges[i]).collect();
        let kept: Vec<usize> = left.iter().map(|&i| values[i]).collect();
        if parts.joins {
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
        self.parts[s] = Some(parts);
    }

    #[allow(clippy::too_many_arguments)]
    fn put(&mut self, s: usize, i: usize, v: usize, whole: usize, start: usize, len: usize, parts: &Parts) -> bool {
        let (values, own) = (&self.chosen.values, self.viewed(v));
        let (Origin::Step, Some(producer)) = (&values[own].source, self.producer[own]) else { return false };
        let all = self.alike(own);
        if all.iter().any(|&v| self.handed[v]) || len == 0 {
            return false;
        }
        let into = locate(values, whole);
        let strided = parts.outer > 1 || into.row_stride > 0;
        if strided && !parts.of_rows {
            return false;
        }
        let row = strided.then_some(len);
        let step = &self.chosen.steps[producer];
        let output = step.writes.iter().position(|&w| w == own).unwrap_or(0);
        let writable =
            kernel(step).is_some_and(|k| row.is_none_or(|row| k.accepts_row_stride(Operand::Write(output), row)));
        let meets = step.reads.iter().chain(&step.writes).any(|&v| self.root(v) == into.root);
        if !writable || meets || !self.readable(&all, into.root, row, Some((s, i))) {
            return false;
        }
        let row_stride = if strided { parts.whole } else { 0 };
        self.chosen.values[own].source = Origin::Alias { of: whole, start, row_stride };
        true
    }

    /// Reads what is cut out of a value where it lies.
    fn cut(&mut self, s: usize) {
        let Some(parts) = self.parts[s].clone() else { return };
        let from = self.chosen.steps[s].reads[0];
        let writes = self.chosen.steps[s].writes.clone();
        let mut left = vec![];
        for (i, (&v, &(start, len))) in writes.iter().zip(&parts.ranges).enumerate() {
            if !self.see(v, from, start, len, &parts) {
                left.push(i);
            }
        }
        self.keep(s, parts, &left, writes);
    }

    fn see(&mut self, v: usize, from: usize, start: usize, len: usize, parts: &Parts) -> bool {
        let values = &self.chosen.values;
        let all = self.alike(v);
        if !matches!(values[v].source, Origin::Step) || all.iter().any(|&v| self.handed[v]) || len == 0 {
            return false;
        }
        let at = locate(values, from);
        let strided = parts.outer > 1 || at.row_stride > 0;
        if strided && !(parts.of_rows && parts.whole == values[from].row()) {
            return false;
        }
        if !self.readable(&all, at.root, strided.then_some(len), None) {
            return false;
        }
        let row_stride = if strided { parts.whole } else { 0 };
        self.chosen.values[v].source = Origin::Alias { of: from, start, row_stride };
        true
    }

    /// Steps with the operands they now have, without those that have nothing left to do.
    fn finish(self, backend: &B) -> Result<()> {
        let Selection { values, steps, .. } = self.chosen;
        for (step, parts) in steps.iter_mut().zip(&self.parts) {
            let rows = |v: &usize| {
                let stride = locate(values, *v).row_stride;
                (stride > 0).then(|| Rows { len: values[*v].row(), stride })
            };
            let reads: Vec<_> = step.reads.iter().map(rows).collect();
            let strides = RowStrides { reads, writes: step.writes.iter().map(rows).collect() };
            let Action::Kernel(kernel) = &step.action else { continue };
            let made = match parts {
                Some(parts) if parts.ranges.is_empty() => continue,
                Some(parts) if kernel.parts().as_ref() != Some(parts) => {
                    Some(backend.move_parts(parts.clone(), &strides))
                }
                _ if strides.any() => kernel.strided(&strides),
                _ => continue,
            };
            let unable = || Error::invalid(format!("{} cannot read or write rows with a stride", step.location));
            step.action = Action::Kernel(made.ok_or_else(unable)?);
        }
        let mut parts = self.parts.into_iter();
        steps.retain(|_| parts.next().flatten().is_none_or(|p| !p.ranges.is_empty()));
        Ok(())
    }
}
