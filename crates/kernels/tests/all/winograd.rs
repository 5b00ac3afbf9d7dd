//! Winograd convolution against plain loops in f64.

use crate::spatial_common::{Random, act, close, direct};
use carafe_kernels::{
    Act, Addend, ConvShape, Epilogue, Exec, Halves, Isa, Machine, Pool, PoolOptions, Scratch, TypedEpilogue, TypedOut,
    Winograd, WinogradPairs, winograd,
};

fn shape(batch: usize, [h, w]: [usize; 2], ins: usize, outs: usize, [before, after]: [usize; 2]) -> ConvShape {
    ConvShape {
        batch,
        in_spatial: [1, h, w],
        in_channels: ins,
        out_channels: outs,
        kernel: [1, 3, 3],
        stride: [1; 3],
        dilation: [1; 3],
        pad_begin: [0, before, before],
        pad_end: [0, after, after],
        groups: 1,
    }
}

/// Runs at every level with one and three threads, with gaps between pixels, and compares.
fn check(s: ConvShape, function: Act, add_last: Option<bool>) {
    let mut random = Random::new(s.in_channels + s.in_spatial[2]);
    let (ins, outs, gap) = (s.in_channels, s.out_channels, 2);
    let input = random.floats(s.batch * s.in_spatial.iter().product::<usize>() * (ins + gap));
    let weights = random.floats(outs * ins * 9);
    let bias = random.floats(outs);
    let pixels = s.batch * s.out_spatial().iter().product::<usize>();
    let add = random.floats(pixels * outs);
    let mut wanted = direct(&s, &input, ins + gap, &weights);
    for (i, y) in wanted.iter_mut().enumerate() {
        *y += bias[i % outs] as f64;
        *y += if add_last == Some(false) { add[i] as f64 } else { 0.0 };
        *y = act(function, *y);
        *y += if add_last == Some(true) { add[i] as f64 } else { 0.0 };
    }
    for isa in Isa::available() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let kernel = Winograd::new(isa, threads, s);
            let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
            let mut packed = vec![0.0; kernel.packed_floats()];
            kernel.pack(None, &weights, &mut packed);
            let mut out = vec![f32::NAN; pixels * (outs + gap)];
            let epilogue = Epilogue {
                bias: Some(&bias),
                add: add_last.map(|_| (&add[..], outs)),
                add_last: add_last.unwrap_or(false),
                act: function,
                finish: None,
                ..Epilogue::default()
            };
            let exec = Exec::new(&pool, isa, &scratch);
            kernel.run(&exec, &input, ins + gap, &packed, &mut out, outs + gap, &epilogue);
            let found: Vec<f32> = out.chunks_exact(outs + gap).flat_map(|p| p[..outs].to_vec()).collect();
            assert!(out.chunks_exact(outs + gap).all(|p| p[outs..].iter().all(|x| x.is_nan())), "a gap was written to");
            close(&found, &wanted, 2e-5, &format!("{isa:?} {threads} {s:?}"));
        }
    }
}

#[test]
fn all_sizes_agree_with_plain_loops() {
    for size in [[1, 1], [4, 4], [7, 7], [5, 14], [13, 9], [16, 33], [2, 3]] {
        for (ins, outs) in [(16, 32), (3, 5), (17, 49), (40, 16), (1, 1)] {
            check(shape(1, size, ins, outs, [1, 1]), Act::Relu, None);
        }
    }
}

#[test]
fn pads_may_differ_and_be_wide() {
    for pads in [[0, 0], [0, 1], [2, 0], [3, 2]] {
        check(shape(2, [6, 7], 8, 20, pads), Act::None, None);
    }
}

#[test]
fn many_tiles_are_done_in_blocks() {
    check(shape(2, [40, 41], 64, 33, [1, 1]), Act::None, None);
}

#[test]
fn functions_and_sums_come_in_their_order() {
    for function in [Act::Relu, Act::HSwish, Act::Swish(1.0), Act::Sigmoid] {
        for add_last in [None, Some(false), Some(true)] {
            check(shape(1, [9, 10], 12, 70, [1, 1]), function, add_last);
        }
    }
}

#[test]
fn many_channels_stay_exact() {
    check(shape(1, [8, 8], 512, 64, [1, 1]), Act::None, None);
}

#[test]
fn threads_pack_the_same_weights() {
    let s = shape(1, [6, 6], 9, 77, [1, 1]);
    let weights = Random::new(3).floats(77 * 9 * 9);
    let kernel = Winograd::new(Isa::best(), 3, s);
    let (pool, scratch) = (Pool::new(PoolOptions::threads(3)), Scratch::new(3, 0).unwrap());
    let (mut one, mut three) = (vec![0.0; kernel.packed_floats()], vec![1.0; kernel.packed_floats()]);
    kernel.pack(None, &weights, &mut one);
    kernel.pack(Some(&Exec::new(&pool, Isa::best(), &scratch)), &weights, &mut three);
    assert_eq!(one, three);
}

/// A core of an Intel server, and one of AMD's before Zen 5.
const INTEL: Machine = Machine { l2: 2 << 20, l3: 105 << 20, sharing: 56, fma_per_cycle: 2 };
const AMD: Machine = Machine { l2: 1 << 20, l3: 32 << 20, sharing: 8, fma_per_cycle: 1 };

fn chosen(machine: &Machine, size: usize, channels: usize) -> bool {
    winograd::worthwhile(&shape(1, [size, size], channels, channels, [1, 1]), 2, machine)
}

#[test]
fn it_is_chosen_where_it_saves_multiplications() {
    for machine in [INTEL, AMD] {
        assert!(!winograd::worthwhile(&shape(1, [112, 112], 3, 32, [1, 1]), 2, &machine));
        assert!(!chosen(&machine, 2, 512));
        for (size, channels) in [(56, 64), (28, 128), (14, 256), (80, 64), (40, 128)] {
            assert!(chosen(&machine, size, channels), "{size} {channels} {machine:?}");
        }
    }
}

#[test]
fn it_is_not_chosen_where_its_weights_arrive_slower_than_the_processor_multiplies() {
    assert!(!chosen(&INTEL, 7, 512));
    assert!(chosen(&AMD, 7, 512));
    // With more pixels the same weights pay again.
    assert!(chosen(&INTEL, 28, 512));
    // A cache that holds all of them, or twice the time for the multiplications.
    assert!(chosen(&Machine { l2: 64 << 20, ..INTEL }, 7, 512));
    assert!(chosen(&Machine { fma_per_cycle: 1, ..INTEL }, 7, 512));
}

/// In bf16, at every level with one and three threads. Small whole numbers stay exact through all transforms.
fn check_pairs(s: ConvShape, function: Act, add_last: Option<bool>, to_bf16: bool) {
    let mut random = Random::new(s.in_channels + s.in_spatial[2]);
    let (ins, outs, gap) = (s.in_channels, s.out_channels, 2);
    let mut whole =
        |n: usize, unit: f32| -> Vec<f32> { random.floats(n).iter().map(|x| (x * 2.0).round() * unit).collect() };
    let input = whole(s.batch * s.in_spatial.iter().product::<usize>() * (ins + gap), 1.0);
    let weights = whole(outs * ins * 9, 4.0);
    let bias = whole(outs, 16.0);
    let pixels = s.batch * s.out_spatial().iter().product::<usize>();
    let add = whole(pixels * outs, 16.0);
    let mut wanted = direct(&s, &input, ins + gap, &weights);
    for (i, y) in wanted.iter_mut().enumerate() {
        *y += bias[i % outs] as f64;
        *y += if add_last == Some(false) { add[i] as f64 } else { 0.0 };
        *y = act(function, *y);
        *y += if add_last == Some(true) { add[i] as f64 } else { 0.0 };
    }
    let bits = |x: &[f32]| x.iter().map(|x| (x.to_bits() >> 16) as u16).collect::<Vec<_>>();
    let (input, add) = (bits(&input), bits(&add));
    let epilogue = TypedEpilogue {
        bias: Some(&bias),
        add: add_last.map(|_| Addend::Half(Halves::Bf16, &add, outs)),
        add_last: add_last.unwrap_or(false),
        act: function,
        ..TypedEpilogue::default()
    };
    for isa in Isa::tested() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let kernel = WinogradPairs::new(isa, threads, s);
            let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
            let mut packed = vec![0.0; kernel.packed_floats()];
            kernel.pack(None, &weights, &mut packed);
            let exec = Exec::new(&pool, isa, &scratch);
            let what = format!("{isa:?} {threads} {s:?}");
            let kept = |out: &[f32]| -> Vec<f32> {
                assert!(
                    out.chunks_exact(outs + gap).all(|p| p[outs..].iter().all(|x| x.is_nan())),
                    "a gap was written to"
                );
                out.chunks_exact(outs + gap).flat_map(|p| p[..outs].to_vec()).collect()
            };
            if to_bf16 {
                let mut out = vec![u16::MAX; pixels * (outs + gap)];
                let to = TypedOut::Half(Halves::Bf16, &mut out);
                kernel.run(&exec, &input, ins + gap, &packed, to, outs + gap, &epilogue);
                let wide = |out: &[u16]| out.iter().map(|b| f32::from_bits(u32::from(*b) << 16)).collect::<Vec<f32>>();
                close(&kept(&wide(&out)), &wanted, 4e-3, &what);
                if add_last.is_some() {
                    // What is added lies in the output.
                    for (pixel, add) in out.chunks_exact_mut(outs + gap).zip(add.chunks(outs)) {
                        pixel[..outs].copy_from_slice(add);
                    }
                    let own = TypedEpilogue { add: Some(Addend::Own { scale: 1.0, zero: 0 }), ..epilogue };
                    let to = TypedOut::Half(Halves::Bf16, &mut out);
                    kernel.run(&exec, &input, ins + gap, &packed, to, outs + gap, &own);
                    close(&kept(&wide(&out)), &wanted, 4e-3, &format!("over its own, {what}"));
                }
            } else {
                let mut out = vec![f32::NAN; pixels * (outs + gap)];
                kernel.run(&exec, &input, ins + gap, &packed, TypedOut::F32(&mut out), outs + gap, &epilogue);
                close(&kept(&out), &wanted, 1e-5, &what);
            }
        }
    }
}

#[test]
fn pairs_of_all_sizes_agree_with_plain_loops() {
    for size in [[1, 1], [2, 2], [7, 7], [5, 14], [13, 9], [16, 33], [2, 3]] {
        for (ins, outs) in [(16, 32), (2, 5), (18, 49), (40, 16), (6, 1)] {
            check_pairs(shape(1, size, ins, outs, [1, 1]), Act::Relu, None, false);
        }
    }
}

#[test]
fn pads_of_pairs_may_differ_and_be_wide() {
    for pads in [[0, 0], [0, 1], [2, 0], [3, 2]] {
        check_pairs(shape(2, [6, 7], 8, 20, pads), Act::None, None, true);
    }
}

#[test]
fn many_tiles_of_pairs_are_done_in_blocks() {
    check_pairs(shape(2, [40, 41], 64, 33, [1, 1]), Act::None, None, true);
    check_pairs(shape(1, [8, 8], 512, 64, [1, 1]), Act::None, None, false);
}

#[test]
fn functions_and_sums_of_pairs_come_in_their_order() {
    for function in [Act::Relu, Act::HSwish, Act::Sigmoid] {
        for add_last in [None, Some(false), Some(true)] {
            check_pairs(shape(1, [9, 10], 12, 70, [1, 1]), function, add_last, false);
            check_pairs(shape(1, [9, 10], 12, 70, [1, 1]), function, add_last, true);
        }
    }
}

#[test]
fn tiles_of_pairs_lose_little() {
    let s = shape(1, [16, 16], 64, 32, [1, 1]);
    let mut random = Random::new(5);
    let input: Vec<f32> = random.floats(256 * 64).iter().map(|x| f32::from_bits(x.to_bits() & 0xffff_0000)).collect();
    let weights = random.floats(32 * 64 * 9);
    let wanted = direct(&s, &input, 64, &weights);
    let kernel = WinogradPairs::new(Isa::best(), 1, s);
    let (pool, scratch) = (Pool::new(PoolOptions::threads(1)), Scratch::new(1, kernel.scratch_floats()).unwrap());
    let (mut packed, mut out) = (vec![0.0; kernel.packed_floats()], vec![0.0; 256 * 32]);
    kernel.pack(None, &weights, &mut packed);
    let bits: Vec<u16> = input.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
    let exec = Exec::new(&pool, Isa::best(), &scratch);
    kernel.run(&exec, &bits, 64, &packed, TypedOut::F32(&mut out), 32, &TypedEpilogue::default());
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    let error = norm(&mut out.iter().zip(&wanted).map(|(x, y)| f64::from(*x) - y)) / norm(&mut wanted.iter().copied());
    assert!(error < 5e-3, "{error}");
}

#[test]
fn pairs_are_chosen_where_they_save_multiplications() {
    let chosen = |size: usize, ins: usize, outs: usize| {
        winograd::worthwhile_in_pairs(Isa::Scalar, &shape(1, [size, size], ins, outs, [1, 1]), 2, &AMD)
    };
    assert!(chosen(56, 64, 64) && chosen(28, 128, 128) && chosen(14, 256, 256) && chosen(27, 32, 128));
    assert!(!chosen(160, 16, 16) && !chosen(112, 2, 32) && !chosen(3, 512, 512));
    let shape = shape(1, [56, 56], 64, 64, [1, 1]);
    assert!(!winograd::worthwhile_in_pairs(Isa::TileTwin, &shape, 2, &AMD), "tile registers are faster than that");
}
