//! Runs the steps of a layer. Two directions run on two threads at once, each in its own cache; one direction with large
//! weights is split over threads unit by unit, with a meeting after each step.

use super::gates::{self, Row, Settings, Stage, Tile};
use super::team::Team;
use super::weights::{Product, Weights};
use super::{CellKind, Direction, RecurrentInputs, RecurrentOutputs, RecurrentParams};
use crate::cast::{Brain, f32_to_brain};
use crate::{Exec, Isa, SharedMut, part_of};

/// Weights of a step, in floats, from which on a thread of its own pays.
const SPLIT: usize = 24 << 10;

/// Floats that one direction remembers: the state before and after a step, the cell state, and what a GRU keeps between its
/// two products; in bf16 also what products are multiplied with, of the states before and after a step and of the reset one.
pub(super) fn state_floats(p: &RecurrentParams, per_cell: usize) -> usize {
    let cells = if per_cell == 1 { 0 } else { 3 * p.batch * p.hidden.div_ceil(per_cell) };
    (5 * p.batch * p.hidden + cells).next_multiple_of(16)
}

pub(super) fn run(
    exec: &Exec,
    isa: Isa,
    p: &RecurrentParams,
    weights: Weights,
    inputs: &RecurrentInputs,
    mut outputs: RecurrentOutputs,
    (x, x_rows): (&[f32], [usize; 2]),
    states: &mut [f32],
) {
    let usual = p.clip == 0.0
        && p.acts == p.kind.usual_acts()
        && p.kind != (CellKind::Lstm { input_forget: true })
        && weights.peepholes(0).is_none();
    let settings = Settings { isa, kind: p.kind, acts: p.acts, clip: p.clip, usual };
    let time = (0..p.batch).map(|row| inputs.lengths.of(row, p.time)).max().unwrap_or(0);
    let job = Job {
        p,
        weights,
        inputs,
        settings: &settings,
        x,
        x_rows,
        y: outputs.y.as_deref_mut().map(SharedMut::new),
        states: SharedMut::new(states),
    };
    let directions = p.directions();
    let size: usize = weights.layout.products.iter().flatten().map(|w| w.panels * w.floats).sum();
    let work = size * p.batch.min(16);
    let panels = weights.layout.products.iter().flatten().map(|w| w.panels).min().unwrap_or(1);
    let parts = (exec.threads() / directions).min(work / SPLIT).clamp(1, panels.clamp(1, Team::MOST));
    let alone = time * size * directions * p.batch < 1 << 16;
    let begin = |d: usize, _: usize| job.begin(d);
    if parts == 1 {
        let whole = |d: usize| {
            begin(d, 0);
            for step in 0..time {
                exec.stop.check();
                for (which, product) in weights.layout.products.iter().flatten().enumerate() {
                    job.part(d, step, which, product, 0..product.panels);
                }
            }
            job.end(d);
        };
        if alone {
            (0..directions).for_each(whole);
        } else {
            exec.each(directions, |d, _| whole(d));
        }
    } else {
        exec.each(directions, begin);
        let teams = [Team::new(), Team::new()];
        let products = weights.layout.products.iter().flatten().count();
        exec.each(directions * parts, |chunk, _| {
            let d = chunk / parts;
            teams[d].join(time * products, parts, chunk % parts, |round, part| {
                exec.stop.check();
                let which = round % products;
                if let Some(product) = &weights.layout.products[which] {
                    job.part(d, round / products, which, product, part_of(product.panels, parts, part));
                }
            });
        });
        exec.each(directions, |d, _| job.end(d));
    }
    let last = time % 2;
    for d in 0..directions {
        for row in 0..p.batch {
            let at = (row * directions + d) * p.hidden;
            if let Some(h) = outputs.h.as_deref_mut() {
                h[at..at + p.hidden].copy_from_slice(job.state(d, last, row));
            }
            if let Some(c) = outputs.c.as_deref_mut() {
                c[at..at + p.hidden].copy_from_slice(job.state(d, CELL, row));
            }
        }
    }
}

/// Places among the five blocks of a direction's memory.
const CELL: usize = 2;
const UPDATE: usize = 3;
const RESET: usize = 4;

struct Job<'a> {
    p: &'a RecurrentParams,
    weights: Weights<'a>,
    inputs: &'a RecurrentInputs<'a>,
    settings: &'a Settings,
    x: &'a [f32],
    /// Rows of `x` from batch to batch and from step to step.
    x_rows: [usize; 2],
    y: Option<SharedMut<'a, f32>>,
    states: SharedMut<'a, f32>,
}

impl Job<'_> {
    fn at(&self, direction: usize, block: usize, row: usize) -> usize {
        direction * state_floats(self.p, self.weights.layout.per_cell) + (block * self.p.batch + row) * self.p.hidden
    }
    fn position(&self, direction: usize, block: usize, row: usize) -> *mut f32 {
        self.states.as_ptr().wrapping_add(self.at(direction, block, row))
    }
    fn cells(&self) -> usize {
        self.p.hidden.div_ceil(self.weights.layout.per_cell)
    }
    /// Pairs of a state: 0 and 1 in turns, 2 after the reset.
    fn pairs(&self, direction: usize, block: usize, row: usize) -> *mut f32 {
        let at = self.at(direction, 5, 0) + (block * self.p.batch + row) * self.cells();
        self.states.as_ptr().wrapping_add(at)
    }
    fn has_pairs(&self) -> bool {
        self.weights.layout.per_cell > 1
    }
    #[allow(clippy::mut_from_ref)]
    fn state(&self, direction: usize, block: usize, row: usize) -> &mut [f32] {
        let at = self.at(direction, block, row);
        // SAFETY: called before the first and after the last step, by one thread for each direction.
        unsafe { self.states.part(at..at + self.p.hidden) }
    }
    fn length(&self, row: usize) -> usize {
        self.inputs.lengths.of(row, self.p.time)
    }

    fn begin(&self, d: usize) {
        let n = self.p.hidden;
        for row in 0..self.p.batch {
            let at = (row * self.p.directions() + d) * n;
            for (block, from) in [(0, self.inputs.h), (CELL, self.inputs.c)] {
                let to = self.state(d, block, row);
                match from {
                    Some(from) if self.length(row) > 0 => to.copy_from_slice(&from[at..at + n]),
                    _ => to.fill(0.0),
                }
            }
            let blocks = if self.has_pairs() { 3 } else { 0 };
            for block in 0..blocks {
                let (h, at) = (self.state(d, 0, row), self.at(d, 5, 0) + (block * self.p.batch + row) * self.cells());
                // SAFETY: before the first step, by the one thread of this direction.
                let cells = unsafe { self.states.part(at..at + self.cells()) };
                cells.fill(0.0);
                let pairs: &mut [Brain] = bytemuck::cast_slice_mut(cells);
                pairs.iter_mut().zip(h.iter()).filter(|_| block == 0).for_each(|(to, x)| *to = f32_to_brain(*x));
            }
        }
    }

    /// Outputs after the end of each row are 0.
    fn end(&self, d: usize) {
        let p = self.p;
        let Some(y) = self.y else { return };
        for row in 0..p.batch {
            for t in self.length(row)..p.time {
                let at = row * p.y[0] + d * p.y[1] + t * p.y[2];
                // SAFETY: rows of the output do not overlap, and nobody else writes those of this direction.
                unsafe { y.part(at..at + p.hidden) }.fill(0.0);
            }
        }
    }

    /// Some panels of one product of a step.
    fn part(&self, d: usize, step: usize, which: usize, product: &Product, panels: std::ops::Range<usize>) {
        let p = self.p;
        let stage = match (p.kind, which) {
            (CellKind::Rnn, _) => Stage::Rnn,
            (CellKind::Lstm { .. }, _) => Stage::Lstm,
            (CellKind::Gru { linear_before_reset: true }, _) => Stage::Gru,
            (_, 0) => Stage::GruGates,
            _ => Stage::GruNew,
        };
        let functions = gates::functions(self.settings.isa, stage);
        // Forth and back, so that what was used last is still in the cache.
        let back = !step.is_multiple_of(2);
        let groups = p.batch.div_ceil(functions.tiles.len());
        let count = panels.len();
        let mut tile = Tile {
            rows: &[],
            panels: self.weights.panels(d, product).as_ptr(),
            floats: product.floats,
            units: product.units,
            hidden: p.hidden,
            new_bias: self.weights.new_bias(d).as_ptr(),
            peepholes: self.weights.peepholes(d).map_or(std::ptr::null(), <[f32]>::as_ptr),
            settings: self.settings,
        };
        if self.has_pairs() {
            let products = gates::pair_products(self.settings.isa, functions.vectors);
            let mut sums = [0f32; gates::ROWS * 4 * 16];
            let groups = p.batch.div_ceil(gates::ROWS);
            for i in 0..count {
                let panel = if back { panels.end - 1 - i } else { panels.start + i };
                for group in 0..groups {
                    let group = part_of(p.batch, groups, group);
                    let mut rows = [NO_ROW; gates::ROWS];
                    for (row, i) in rows.iter_mut().zip(group.clone()) {
                        *row = self.row(d, step, i, stage);
                    }
                    let tile = Tile { rows: &rows[..group.len()], ..tile };
                    let job = gates::Pairs {
                        factors: rows.map(|row| row.factor),
                        panel: tile.panels.wrapping_add(panel * tile.floats),
                        cells: self.cells(),
                        products: sums.as_mut_ptr(),
                    };
                    // SAFETY: as below; the sums have room for all vectors of all rows.
                    unsafe {
                        products[group.len() - 1](&job);
                        (functions.end)((&tile, panel, group.len(), sums.as_ptr()));
                    }
                }
            }
            return;
        }
        if p.batch == 1 {
            let rows = [self.row(d, step, 0, stage)];
            tile.rows = &rows;
            // SAFETY: the level is one of this machine; all positions were checked by `Recurrent::run`, and units of a panel
            // are written by its own part alone.
            unsafe { (functions.strip)((&tile, panels, back)) };
            return;
        }
        for i in 0..count {
            let panel = if back { panels.end - 1 - i } else { panels.start + i };
            for group in 0..groups {
                let group = part_of(p.batch, groups, group);
                let mut rows = [NO_ROW; gates::ROWS];
                for (row, i) in rows.iter_mut().zip(group.clone()) {
                    *row = self.row(d, step, i, stage);
                }
                let tile = Tile { rows: &rows[..group.len()], ..tile };
                // SAFETY: as above.
                unsafe { functions.tiles[group.len() - 1]((&tile, panel)) };
            }
        }
    }

    fn row(&self, d: usize, step: usize, row: usize, stage: Stage) -> Row {
        let p = self.p;
        let length = self.length(row);
        let ended = step >= length;
        let backwards = p.direction == Direction::Reverse || d == 1;
        let t = match (ended, backwards) {
            (true, _) => 0,
            (_, true) => length - 1 - step,
            _ => step,
        };
        let width = p.directions() * p.kind.gates() * p.hidden;
        let x = (row * self.x_rows[0] + t * self.x_rows[1]) * width + d * p.kind.gates() * p.hidden;
        let h = self.position(d, step % 2, row);
        let reset = self.position(d, RESET, row);
        let [factor, next_pairs, reset_pairs] = match (self.has_pairs(), stage == Stage::GruNew) {
            (false, new) => [if new { reset } else { h }, std::ptr::null_mut(), std::ptr::null_mut()],
            (true, new) => {
                let [now, next, after] = [step % 2, 1 - step % 2, 2].map(|block| self.pairs(d, block, row));
                [if new { after } else { now }, next, after]
            }
        };
        let y = row * p.y[0] + d * p.y[1] + t * p.y[2];
        Row {
            x: self.x[x..].as_ptr(),
            factor,
            h,
            c: self.position(d, CELL, row),
            next: self.position(d, 1 - step % 2, row),
            y: self.y.map_or(std::ptr::null_mut(), |all| all.as_ptr().wrapping_add(y)),
            ended,
            update: self.inputs.attention.map_or(1.0, |a| 1.0 - a[row * p.time + t]),
            z: self.position(d, UPDATE, row),
            reset,
            next_pairs: next_pairs.cast(),
            reset_pairs: reset_pairs.cast(),
        }
    }
}

const NO_ROW: Row = Row {
    x: std::ptr::null(),
    factor: std::ptr::null(),
    h: std::ptr::null(),
    c: std::ptr::null_mut(),
    next: std::ptr::null_mut(),
    y: std::ptr::null_mut(),
    ended: true,
    update: 0.0,
    z: std::ptr::null_mut(),
    reset: std::ptr::null_mut(),
    next_pairs: std::ptr::null_mut(),
    reset_pairs: std::ptr::null_mut(),
};
