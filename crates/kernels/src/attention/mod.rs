//! Scaled dot product attention, `softmax(scale * Q K^T + mask) V`, without ever holding all scores: keys are taken in
//! blocks, and what was added up so far is scaled when a larger score comes along.
//!
//! Many queries at once run in [`wide`], transposed: queries lie across the lanes, so that keys and values are read where
//! they are and the softmax needs no sums across lanes. The few queries left over, and decoding with one, run in [`rows`].
//! Where there are tile registers, many queries of bf16 run in [`tiled`], a query a row.

mod rows;
mod tiled;
mod wide;

use crate::cast::Brain;
use crate::gemm::amx::PlainUnit;
use crate::simd::{Brains, Cell, Float, Native, Number, Shifted, Widened};
use crate::{Exec, Halves, Isa, Numbers, SharedMut};
use std::ops::Range;

/// Keys of one block.
const BLOCK: usize = 256;
/// Queries of one block, at every level at most.
const WIDTH: usize = 32;

/// Sizes and positions. Strides count numbers from batch to batch, head to head and position to position; the last dimension
/// lies without gaps. A stride of 0 repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionParams {
    pub batch: usize,
    pub heads: usize,
    /// Divides `heads`: as many queries in a row share a head of keys and values.
    pub kv_heads: usize,
    pub q_len: usize,
    pub kv_len: usize,
    pub head_size: usize,
    pub value_size: usize,
    pub scale: f32,
    /// Query `i` sees keys up to `i + offset`.
    pub causal: Option<isize>,
    pub q: [usize; 3],
    pub k: [usize; 3],
    pub v: [usize; 3],
    pub out: [usize; 3],
    /// Batch, head, query, key.
    pub mask: [usize; 4],
    /// Batch, head, query.
    pub sink: [usize; 3],
}

impl AttentionParams {
    /// Everything dense as `[batch, heads, length, size]`, scaled by `1 / sqrt(head_size)`, no mask.
    pub fn dense(
        batch: usize,
        heads: usize,
        q_len: usize,
        kv_len: usize,
        head_size: usize,
        value_size: usize,
    ) -> AttentionParams {
        let strides = |len: usize, size: usize| [heads * len * size, len * size, size];
        AttentionParams {
            batch,
            heads,
            kv_heads: heads,
            q_len,
            kv_len,
            head_size,
            value_size,
            scale: 1.0 / (head_size as f32).sqrt(),
            causal: None,
            q: strides(q_len, head_size),
            k: strides(kv_len, head_size),
            v: strides(kv_len, value_size),
            out: strides(q_len, value_size),
            mask: [0; 4],
            sink: [0; 3],
        }
    }
}

/// What is added to the scores.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a> {
    None,
    Add(&'a [f32]),
    /// Keys with 0 are hidden.
    Keep(&'a [u8]),
}

/// The data of one run, of floats or of the bits of numbers of 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInputs<'a, T = f32> {
    pub q: &'a [T],
    pub k: &'a [T],
    pub v: &'a [T],
    pub mask: Mask<'a>,
    /// A score that belongs to no key.
    pub sink: Option<&'a [f32]>,
}

impl<'a> AttentionInputs<'a, u16> {
    fn cast<T: bytemuck::Pod>(&self) -> AttentionInputs<'a, T> {
        let [q, k, v] = [self.q, self.k, self.v].map(bytemuck::cast_slice);
        AttentionInputs { q, k, v, mask: self.mask, sink: self.sink }
    }
}

/// Attention of one shape. Making one is cheap, so a length may change from run to run.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    p: AttentionParams,
}

impl Attention {
    /// Panics where sizes do not fit each other or outputs would overlap.
    pub fn new(p: AttentionParams) -> Attention {
        assert!(p.kv_heads > 0 && p.heads.is_multiple_of(p.kv_heads), "{} heads share {} of keys", p.heads, p.kv_heads);
        assert!(
            disjoint([p.batch, p.heads, p.q_len, p.value_size], p.out),
            "outputs of attention overlap: {:?}",
            p.out
        );
        Attention { p }
    }

    /// Floats that each thread needs of the scratch, enough for every level.
    pub fn scratch_floats(&self) -> usize {
        let p = &self.p;
        wide::scratch_floats(p).max(rows::scratch_floats(p)).max(tiled::scratch_floats(p))
    }

    /// A query that sees no key at all gives NaN, as does one with a NaN among its scores.
    pub fn run(&self, exec: &Exec, inputs: &AttentionInputs, out: &mut [f32]) {
        self.run_cells::<Float>(exec, inputs, out);
    }

    /// The same with operands and result in numbers of 16 bits. Scores, shares and sums are floats. Those of f16 are widened when
    /// they are read; products of bf16 are those of pairs, and shares are rounded before values are multiplied by them.
    pub fn run_halves(&self, exec: &Exec, halves: Halves, inputs: &AttentionInputs<'_, u16>, out: &mut [u16]) {
        let tiles = PlainUnit::of(exec.isa).filter(|_| self.p.q_len >= tiled::LEAST);
        match (halves, tiles) {
            (Halves::Bf16, Some(unit)) if Numbers::Bf16.is_native(exec.isa) => {
                self.run_tiled::<Native>(exec, unit, &inputs.cast(), bytemuck::cast_slice_mut(out));
            }
            #[cfg(any(test, debug_assertions))]
            (Halves::Bf16, Some(unit)) => {
                self.run_tiled::<Shifted>(exec, unit, &inputs.cast(), bytemuck::cast_slice_mut(out));
            }
            _ => self.run_vectors(exec, halves, inputs, out),
        }
    }

    fn run_vectors(&self, exec: &Exec, halves: Halves, inputs: &AttentionInputs<'_, u16>, out: &mut [u16]) {
        match halves {
            Halves::F16 => self.run_cells::<Widened>(exec, &inputs.cast(), bytemuck::cast_slice_mut(out)),
            Halves::Bf16 if Numbers::Bf16.is_native(exec.isa) => {
                self.run_cells::<Native>(exec, &inputs.cast(), bytemuck::cast_slice_mut(out));
            }
            Halves::Bf16 => self.run_cells::<Shifted>(exec, &inputs.cast(), bytemuck::cast_slice_mut(out)),
        }
    }

    fn run_cells<C: Cell>(&self, exec: &Exec, inputs: &AttentionInputs<'_, C::Number>, out: &mut [C::Number]) {
        let lanes = exec.isa.lanes();
        let left = self.p.q_len % lanes;
        let wide = if left <= lanes / 2 { self.p.q_len - left } else { self.p.q_len };
        let split = Split::new(&self.p, exec, wide, (2 * lanes, wide::GROUP));
        self.run_items(exec, split, inputs, out, |job, item, memory| job.item::<C>(item, memory));
    }

    fn run_tiled<B: Brains>(
        &self,
        exec: &Exec,
        unit: &PlainUnit,
        inputs: &AttentionInputs<'_, Brain>,
        out: &mut [Brain],
    ) {
        let split = Split::new(&self.p, exec, self.p.q_len, (tiled::WIDTH, tiled::GROUP));
        self.run_items(exec, split, inputs, out, |job, item, memory| {
            let (batch, head, queries) = job.wide_item(item);
            tiled::run::<B>(job, unit, batch, head, queries, memory);
        });
    }

    fn run_items<T: Number>(
        &self,
        exec: &Exec,
        split: Split,
        inputs: &AttentionInputs<'_, T>,
        out: &mut [T],
        run: impl Fn(&Job<'_, T>, usize, &mut [f32]) + Sync,
    ) {
        let p = &self.p;
        self.check(inputs, out.len());
        if p.batch * p.heads * p.q_len * p.value_size == 0 {
            return;
        }
        let job = Job { p, inputs, out: SharedMut::new(out), isa: exec.isa, split };
        let scratch = self.scratch_floats();
        let items = job.split.items();
        let whole = p.batch * p.heads * p.q_len * p.kv_len * (p.head_size + p.value_size) < 1 << 16;
        exec.each(if whole { 1 } else { items }, |chunk, thread| {
            let mut memory = exec.scratch.of(thread);
            let memory = &mut memory[..scratch];
            for item in if whole { 0..items } else { chunk..chunk + 1 } {
                run(&job, item, memory);
            }
        });
    }

    fn check<T>(&self, inputs: &AttentionInputs<'_, T>, out: usize) {
        let p = &self.p;
        let fits = |what: &str, len: usize, dims: &[usize], strides: &[usize], row: usize| {
            let wanted = span(dims, strides, row);
            assert!(wanted.is_some_and(|w| w <= len), "attention: {what} has {len} elements, needs {wanted:?}");
        };
        fits("query", inputs.q.len(), &[p.batch, p.heads, p.q_len], &p.q, p.head_size);
        fits("key", inputs.k.len(), &[p.batch, p.kv_heads, p.kv_len], &p.k, p.head_size);
        fits("value", inputs.v.len(), &[p.batch, p.kv_heads, p.kv_len], &p.v, p.value_size);
        fits("output", out, &[p.batch, p.heads, p.q_len], &p.out, p.value_size);
        let scores = [p.batch, p.heads, p.q_len, p.kv_len];
        match inputs.mask {
            Mask::None => {}
            Mask::Add(m) => fits("mask", m.len(), &scores, &p.mask, 1),
            Mask::Keep(m) => fits("mask", m.len(), &scores, &p.mask, 1),
        }
        if let Some(sink) = inputs.sink {
            fits("sink", sink.len(), &scores[..3], &p.sink, 1);
        }
    }
}

/// Elements from the first to the last one that is read; `None` where that is beyond all memory.
pub(crate) fn span(dims: &[usize], strides: &[usize], row: usize) -> Option<usize> {
    if row == 0 || dims.contains(&0) {
        return Some(0);
    }
    dims.iter().zip(strides).try_fold(row, |sum, (n, stride)| sum.checked_add((n - 1).checked_mul(*stride)?))
}

/// Whether no two rows share an element: sorted by stride, each dimension steps over all inside of it.
pub(crate) fn disjoint([a, b, c, row]: [usize; 4], [sa, sb, sc]: [usize; 3]) -> bool {
    let mut dims = [(sa, a), (sb, b), (sc, c)];
    dims.sort_unstable();
    let mut inside = row;
    for (stride, n) in dims.into_iter().filter(|(_, n)| *n > 1) {
        if stride < inside {
            return false;
        }
        inside += stride * (n - 1);
    }
    true
}

/// How queries are shared out. Heads with the same keys lie next to each other, so they tend to stay on one thread.
#[derive(Clone, Copy)]
struct Split {
    /// Queries of each head that run wide; those after it run as rows.
    wide: usize,
    /// Queries of a wide item.
    group: usize,
    /// Wide items of a head.
    groups: usize,
    /// Items of rows for each head of keys, over all the heads that share it.
    row_items: usize,
    /// Heads of queries that share a head of keys.
    shared: usize,
    /// Heads of keys, over the batch.
    kv_heads: usize,
}

impl Split {
    /// `wide` of the queries in blocks of `width`, of which an item has at most `most`.
    fn new(p: &AttentionParams, exec: &Exec, wide: usize, (width, most): (usize, usize)) -> Split {
        let blocks = wide.div_ceil(width);
        let heads = p.batch * p.heads;
        let mut group = most.min(blocks).max(1);
        while group > 1 && heads * blocks.div_ceil(group) < 3 * exec.threads() {
            group -= 1;
        }
        let shared = p.heads / p.kv_heads;
        Split {
            wide,
            group: group * width,
            groups: blocks.div_ceil(group),
            row_items: ((p.q_len - wide) * shared).div_ceil(rows::ROWS),
            shared,
            kv_heads: p.batch * p.kv_heads,
        }
    }
    fn items(&self) -> usize {
        self.kv_heads * (self.shared * self.groups + self.row_items)
    }
}

/// A run, as its items see it.
struct Job<'a, T> {
    p: &'a AttentionParams,
    inputs: &'a AttentionInputs<'a, T>,
    out: SharedMut<'a, T>,
    isa: Isa,
    split: Split,
}

impl<T: Number> Job<'_, T> {
    fn item<C: Cell<Number = T>>(&self, item: usize, scratch: &mut [f32]) {
        let (p, s) = (self.p, &self.split);
        let (kv_head, inner) = self.kv_head(item);
        if inner < s.shared * s.groups {
            let (batch, head, queries) = self.wide_item(item);
            wide::run::<C>(self, batch, head, queries, scratch);
        } else {
            let from = (inner - s.shared * s.groups) * rows::ROWS;
            let to = (from + rows::ROWS).min((p.q_len - s.wide) * s.shared);
            rows::run(self, kv_head / p.kv_heads, kv_head % p.kv_heads, from..to, scratch);
        }
    }
    /// The head of keys, over the batch, that an item reads, and its number among those that do.
    fn kv_head(&self, item: usize) -> (usize, usize) {
        let per_kv_head = self.split.shared * self.split.groups + self.split.row_items;
        (item / per_kv_head, item % per_kv_head)
    }
    /// Batch, head and queries of an item of many queries.
    fn wide_item(&self, item: usize) -> (usize, usize, Range<usize>) {
        let (p, s) = (self.p, &self.split);
        let (kv_head, item) = self.kv_head(item);
        let head = kv_head % p.kv_heads * s.shared + item / s.groups;
        let from = item % s.groups * s.group;
        (kv_head / p.kv_heads, head, from..(from + s.group).min(s.wide))
    }
    /// The keys that queries up to `last` can see at all.
    fn visible(&self, last: usize) -> usize {
        match self.p.causal {
            Some(offset) => (last as isize + 1).saturating_add(offset).clamp(0, self.p.kv_len as isize) as usize,
            None => self.p.kv_len,
        }
    }
    fn sink(&self, batch: usize, head: usize, query: usize) -> Option<f32> {
        let [sb, sh, sq] = self.p.sink;
        self.inputs.sink.map(|sink| sink[batch * sb + head * sh + query * sq])
    }
    /// What the mask adds to the score of a query and a key.
    fn mask(&self, batch: usize, head: usize, query: usize, key: usize) -> f32 {
        let [sb, sh, sq, sk] = self.p.mask;
        let at = batch * sb + head * sh + query * sq + key * sk;
        match self.inputs.mask {
            Mask::None => 0.0,
            Mask::Add(m) => m[at],
            Mask::Keep(m) => {
                if m[at] == 0 {
                    f32::NEG_INFINITY
                } else {
                    0.0
                }
            }
        }
    }
    /// Fills `to` with what the mask adds to the scores of a query and the keys from `key` on.
    fn mask_row(&self, batch: usize, head: usize, query: usize, key: usize, to: &mut [f32]) {
        let [sb, sh, sq, sk] = self.p.mask;
        let at = batch * sb + head * sh + query * sq + key * sk;
        match self.inputs.mask {
            Mask::None => to.fill(0.0),
            Mask::Add(m) if sk == 1 => to.copy_from_slice(&m[at..][..to.len()]),
            Mask::Keep(m) if sk == 1 => {
                for (y, x) in to.iter_mut().zip(&m[at..]) {
                    *y = if *x == 0 { f32::NEG_INFINITY } else { 0.0 };
                }
            }
            _ => to.iter_mut().enumerate().for_each(|(i, y)| *y = self.mask(batch, head, query, key + i)),
        }
    }
    /// Where rows of what is added lie, from a query and a key on, and how far apart, when they can be read as they are.
    fn mask_rows(&self, batch: usize, head: usize, query: usize, key: usize) -> Option<(*const f32, usize)> {
        let [sb, sh, sq, sk] = self.p.mask;
        match self.inputs.mask {
            Mask::Add(m) if sk == 1 => Some((m[batch * sb + head * sh + query * sq + key..].as_ptr(), sq)),
            _ => None,
        }
    }
    fn masked(&self) -> bool {
        !matches!(self.inputs.mask, Mask::None)
    }
    /// Where a head's data starts.
    fn starts(&self, batch: usize, head: usize) -> Starts<T> {
        let (p, kv_head) = (self.p, head / self.split.shared);
        let at = |strides: [usize; 3], head: usize| batch * strides[0] + head * strides[1];
        let (q, k, v, out) = (at(p.q, head), at(p.k, kv_head), at(p.v, kv_head), at(p.out, head));
        // Lengths of 0 may leave a position beyond the end, which is never read then.
        let of = |data: &[T], at: usize| data.as_ptr().wrapping_add(at);
        Starts {
            q: of(self.inputs.q, q),
            k: of(self.inputs.k, k),
            v: of(self.inputs.v, v),
            out: self.out.as_ptr().wrapping_add(out),
        }
    }
}

struct Starts<T> {
    q: *const T,
    k: *const T,
    v: *const T,
    out: *mut T,
}

/// Cuts pieces off a thread's scratch, each a whole number of cache lines.
struct Pieces<'a>(&'a mut [f32]);

impl<'a> Pieces<'a> {
    fn take(&mut self, floats: usize) -> &'a mut [f32] {
        let rest = std::mem::take(&mut self.0);
        let (piece, rest) = rest.split_at_mut(lines(floats));
        self.0 = rest;
        piece
    }
}

/// Floats rounded up to cache lines.
fn lines(floats: usize) -> usize {
    floats.next_multiple_of(16)
}

/// The largest score and the total before any key: a sink counts as one score.
fn start(sink: Option<f32>) -> (f32, f32) {
    match sink {
        Some(sink) if sink.is_nan() => (f32::NEG_INFINITY, f32::NAN),
        Some(sink) if sink > f32::NEG_INFINITY => (sink, if sink < f32::INFINITY { 1.0 } else { f32::NAN }),
        _ => (f32::NEG_INFINITY, 0.0),
    }
}
