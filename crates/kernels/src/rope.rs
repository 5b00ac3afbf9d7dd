//! Rotary position embedding: pairs of numbers of each head are turned by an angle that depends on the position. Cosines
//! and sines come as tables.

use crate::attention::{disjoint, span};
use crate::simd::{Simd, dispatch};
use crate::{Exec, SharedMut, part_of};

/// Which numbers are pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeForm {
    /// Number `i` and the one half the rotated size later.
    Half,
    /// Each even number and the next one.
    Interleaved,
}

/// Sizes and positions; strides count floats from batch to batch, head to head and position to position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeParams {
    pub batch: usize,
    pub heads: usize,
    pub len: usize,
    pub head_size: usize,
    /// How many numbers at the start of a head are turned, an even number; the others are copied.
    pub rotated: usize,
    pub form: RopeForm,
    pub x: [usize; 3],
    pub out: [usize; 3],
    /// Strides of the tables: batch, position.
    pub table: [usize; 2],
    /// A row of a table has a number for each number of the head, else one for each pair.
    pub full_table: bool,
}

/// Rotary embedding of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Rope {
    p: RopeParams,
}

impl Rope {
    /// Panics where sizes do not fit each other or outputs would overlap.
    pub fn new(p: RopeParams) -> Rope {
        assert!(p.rotated <= p.head_size && p.rotated.is_multiple_of(2), "{} of {} turned", p.rotated, p.head_size);
        assert!(disjoint([p.batch, p.heads, p.len, p.head_size], p.out), "outputs overlap: {:?}", p.out);
        Rope { p }
    }

    pub fn run(&self, exec: &Exec, x: &[f32], cos: &[f32], sin: &[f32], out: &mut [f32]) {
        let p = &self.p;
        let wanted = span(&[p.batch, p.heads, p.len], &p.x, p.head_size);
        assert!(wanted.is_some_and(|w| w <= x.len()), "{} inputs, {wanted:?} are needed", x.len());
        self.turn(exec, Some(x), cos, sin, SharedMut::new(out));
    }

    /// The input is where the output goes.
    pub fn run_in_place(&self, exec: &Exec, cos: &[f32], sin: &[f32], data: &mut [f32]) {
        self.turn(exec, None, cos, sin, SharedMut::new(data));
    }

    fn turn(&self, exec: &Exec, x: Option<&[f32]>, cos: &[f32], sin: &[f32], out: SharedMut<f32>) {
        let p = &self.p;
        let (x, from) = x.map_or((out.as_ptr().cast_const(), p.out), |x| (x.as_ptr(), p.x));
        let wanted = span(&[p.batch, p.heads, p.len], &p.out, p.head_size);
        assert!(wanted.is_some_and(|w| w <= out.len()), "{} outputs, {wanted:?} are needed", out.len());
        let width = if p.full_table { p.rotated } else { p.rotated / 2 };
        let wanted = span(&[p.batch, p.len], &p.table, width);
        let table = cos.len().min(sin.len());
        assert!(wanted.is_some_and(|w| w <= table), "tables of {table} numbers, {wanted:?} are needed");
        let rows = p.batch * p.len * p.heads;
        if rows * p.head_size == 0 {
            return;
        }
        let job = Job { p, x, from, cos: cos.as_ptr(), sin: sin.as_ptr(), out };
        let chunks = if rows * p.head_size < 16 << 10 { 1 } else { (4 * exec.threads()).min(rows) };
        let isa = exec.isa;
        exec.each(chunks, |chunk, _| {
            let job = &job;
            for row in part_of(rows, chunks, chunk) {
                // SAFETY: all rows lie inside, as checked above, and each is written by one chunk.
                unsafe { dispatch!(isa, <'a, V>(job: &'a Job<'a>, row: usize) { turn_row::<V>(job, row) }) }
            }
        });
    }
}

struct Job<'a> {
    p: &'a RopeParams,
    x: *const f32,
    from: [usize; 3],
    cos: *const f32,
    sin: *const f32,
    out: SharedMut<'a, f32>,
}

// SAFETY: it stands for slices that are read by all, and an output of which each row is written by one.
unsafe impl Sync for Job<'_> {}

/// Rows count heads first, so that the tables stay at hand.
#[inline(always)]
unsafe fn turn_row<V: Simd>(job: &Job, row: usize) {
    let p = job.p;
    let (batch, position, head) = (row / p.heads / p.len, row / p.heads % p.len, row % p.heads);
    let at = |strides: [usize; 3]| batch * strides[0] + head * strides[1] + position * strides[2];
    let table = batch * p.table[0] + position * p.table[1];
    // SAFETY: the caller's promise; a number is read before its place is written, also when both are one.
    unsafe {
        let (x, out) = (job.x.add(at(job.from)), job.out.as_ptr().add(at(p.out)));
        let (cos, sin) = (job.cos.add(table), job.sin.add(table));
        match p.form {
            RopeForm::Half => half::<V>(p, x, cos, sin, out),
            RopeForm::Interleaved => interleaved::<V>(p, x, cos, sin, out),
        }
        if x != out.cast_const() {
            for i in p.rotated..p.head_size {
                *out.add(i) = *x.add(i);
            }
        }
    }
}

#[inline(always)]
unsafe fn half<V: Simd>(p: &RopeParams, x: *const f32, cos: *const f32, sin: *const f32, out: *mut f32) {
    let half = p.rotated / 2;
    let second = if p.full_table { half } else { 0 };
    let mut i = 0;
    // SAFETY: all of it lies in one row.
    unsafe {
        while i < half {
            let n = (half - i).min(V::N);
            macro_rules! load {
                ($from:expr) => {
                    if n == V::N { V::load($from) } else { V::load_partial($from, n) }
                };
            }
            let (a, b) = (load!(x.add(i)), load!(x.add(half + i)));
            let (c, s) = (load!(cos.add(i)), load!(sin.add(i)));
            let (c2, s2) = (load!(cos.add(second + i)), load!(sin.add(second + i)));
            let first = a.mul_add(c, V::splat(0.0) - b * s);
            first.store_partial(out.add(i), n);
            b.mul_add(c2, a * s2).store_partial(out.add(half + i), n);
            i += n;
        }
    }
}

#[inline(always)]
unsafe fn interleaved<V: Simd>(p: &RopeParams, x: *const f32, cos: *const f32, sin: *const f32, out: *mut f32) {
    let mut i = 0;
    // SAFETY: all of it lies in one row.
    unsafe {
        while i + V::N <= p.rotated {
            let (c, s) = match p.full_table {
                true => (V::load(cos.add(i)), V::load(sin.add(i))),
                false => (V::load_doubled(cos.add(i / 2)), V::load_doubled(sin.add(i / 2))),
            };
            let a = V::load(x.add(i));
            a.mul_add_alternate(c, a.swap_pairs() * s).store(out.add(i));
            i += V::N;
        }
        while i < p.rotated {
            let (even, odd) = if p.full_table { (i, i + 1) } else { (i / 2, i / 2) };
            let (a, b) = (*x.add(i), *x.add(i + 1));
            *out.add(i) = a * *cos.add(even) - b * *sin.add(even);
            *out.add(i + 1) = b * *cos.add(odd) + a * *sin.add(odd);
            i += 2;
        }
    }
}
