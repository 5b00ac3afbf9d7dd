//! Products whose results tell what tile registers did, and what happens between tiles.

use super::twin::Twin;
use crate::{Act, Addend, Conv, ConvShape, Exec, Finish, Gemm, Halves, Isa, Numbers, Pool, PoolOptions, Scratch, Tile};
use crate::{TypedEpilogue, TypedOut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of any kind, and numbers of 16 bits whose sums are exact in every order: eighths below one.
pub(super) struct Random(u32);

impl Random {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 24) as u8
    }
    fn half(&mut self, halves: Halves) -> u16 {
        halves.bits((f32::from(self.byte() % 15) - 7.0) / 8.0)
    }
    fn bytes(&mut self, count: usize) -> Vec<i8> {
        (0..count).map(|_| self.byte() as i8).collect()
    }
    fn halves(&mut self, halves: Halves, count: usize) -> Vec<u16> {
        (0..count).map(|_| self.half(halves)).collect()
    }
    fn cells(&mut self, numbers: Numbers, count: usize) -> Vec<f32> {
        let mut cell = || match numbers {
            Numbers::U8I8 => u32::from_le_bytes(std::array::from_fn(|_| self.byte())),
            _ => u32::from(self.half(of(numbers))) << 16 | u32::from(self.half(of(numbers))),
        };
        (0..count).map(|_| f32::from_bits(cell())).collect()
    }
}

pub(super) const KINDS: [Numbers; 3] = [Numbers::Bf16, Numbers::F16, Numbers::U8I8];

fn of(numbers: Numbers) -> Halves {
    if numbers == Numbers::F16 { Halves::F16 } else { Halves::Bf16 }
}

/// Runs `work` on one thread with memory for copies.
fn alone(isa: Isa, work: impl FnOnce(&Exec<'_>)) {
    let (pool, scratch) = (Pool::new(PoolOptions::threads(1)), Scratch::new(1, 1 << 18).unwrap());
    work(&Exec::new(&pool, isa, &scratch));
}

pub(super) fn product(isa: Isa, numbers: Numbers, size: [usize; 3]) -> Vec<f32> {
    ended(isa, numbers, size, None)
}

fn ended(isa: Isa, numbers: Numbers, [m, n, cells]: [usize; 3], finish: Option<&dyn Finish>) -> Vec<f32> {
    let (mut r, k) = (Random(7), cells * numbers.per_cell());
    let gemm = Gemm::of_cells(isa, numbers, n, k).unwrap();
    let mut packed = vec![f32::NAN; gemm.packed_floats()];
    match numbers {
        Numbers::U8I8 => gemm.pack_i8(&r.bytes(k * n), false, &mut packed),
        _ => gemm.pack_halves(&r.halves(of(numbers), k * n), false, &mut packed),
    }
    let (a, mut out) = (r.cells(numbers, m * (cells + 1)), vec![77.0; m * n]);
    // Sums of every tile meet numbers of their own row and column.
    let numbers_of = |count: usize, unit: f32| (0..count).map(|i| (i % 29) as f32 * unit).collect::<Vec<f32>>();
    let (scale, bias, add) = (numbers_of(n, 0.25), numbers_of(n, 3.0), numbers_of(m * n, -7.0));
    let epilogue = TypedEpilogue {
        scale: Some(&scale),
        bias: Some(&bias),
        add: Some(Addend::F32(&add, n)),
        act: Act::Relu,
        finish,
        ..TypedEpilogue::default()
    };
    let to = TypedOut::F32(&mut out);
    alone(isa, |exec| {
        gemm.run_typed(exec, numbers, (m, &a, cells + 1), &packed, to, n, &epilogue);
    });
    out
}

pub(super) fn convolution(isa: Isa, numbers: Numbers, shape: ConvShape) -> Vec<f32> {
    let mut r = Random(9);
    let conv = Conv::of_cells(isa, 1, shape, numbers, 0).unwrap();
    let mut packed = vec![f32::NAN; conv.packed_floats()];
    match numbers {
        Numbers::U8I8 => conv.pack_i8(&r.bytes(shape.weights()), &mut packed),
        _ => conv.pack_halves(&r.halves(of(numbers), shape.weights()), &mut packed),
    }
    let input = r.cells(numbers, shape.in_pixels() * shape.in_channels / numbers.per_cell());
    let mut out = vec![77.0; shape.out_pixels() * shape.out_channels];
    let to = TypedOut::F32(&mut out);
    alone(isa, |exec| {
        conv.run_typed(exec, &input, &packed, to, shape.out_channels, &TypedEpilogue::default());
    });
    out
}

/// Looks at the registers of the twin when a tile has been computed.
struct Look(AtomicUsize);

impl Finish for Look {
    fn finish(&self, _tile: Tile<'_>, _thread: usize) {
        self.0.fetch_add(usize::from(Twin::with(|r| r.is_configured())), Ordering::Relaxed);
    }
}

#[test]
fn tiles_stay_configured_through_a_chunk_and_are_released_behind_it() {
    let look = Look(AtomicUsize::new(0));
    ended(Isa::TileTwin, Numbers::U8I8, [40, 64, 16], Some(&look));
    assert_eq!(look.0.into_inner(), 4, "tiles of 20 rows and 32 columns");
    assert!(!Twin::with(|r| r.is_configured()));
}

/// Computes a product of another size, and leaves what it was given.
struct Within;

impl Finish for Within {
    fn finish(&self, _tile: Tile<'_>, _thread: usize) {
        product(Isa::TileTwin, Numbers::Bf16, [9, 16, 5]);
    }
}

#[test]
fn a_product_inside_of_an_epilogue_disturbs_no_tile() {
    let (numbers, size) = (Numbers::U8I8, [70, 40, 33]);
    assert_eq!(ended(Isa::TileTwin, numbers, size, Some(&Within)), product(Isa::Scalar, numbers, size));
    assert!(!Twin::with(|r| r.is_configured()));
}

struct Fail;

impl Finish for Fail {
    fn finish(&self, _tile: Tile<'_>, _thread: usize) {
        panic!("as asked");
    }
}

#[test]
fn tiles_are_released_when_a_chunk_unwinds() {
    let run = || ended(Isa::TileTwin, Numbers::U8I8, [40, 64, 16], Some(&Fail));
    assert!(std::panic::catch_unwind(run).is_err());
    assert!(!Twin::with(|r| r.is_configured()));
}
