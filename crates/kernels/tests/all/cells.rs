//! Products and convolutions of small numbers, with outputs of every type, against plain loops.

use crate::conv::plain;
use crate::products::{ACTS, Random, act, everywhere};
use carafe_kernels::{
    Act, Addend, BytesEpilogue, Conv, ConvShape, DepthwiseBytes, Exec, Finish, Gemm, Halves, Numbers, PoolShape,
    Quantizer, RoundTrip, Tile, TypedEpilogue, TypedOut, dequantize, max_pool_bytes, quantize, quantize_planes,
};

const SCRATCH: usize = 1 << 21;
const ALL: [Numbers; 4] = [Numbers::F32, Numbers::Bf16, Numbers::F16, Numbers::U8I8];

/// The type of cells of two.
fn halves_of(numbers: Numbers) -> Halves {
    if numbers == Numbers::F16 { Halves::F16 } else { Halves::Bf16 }
}

/// Numbers in cells, and what they stand for.
struct Data {
    cells: Vec<f32>,
    real: Vec<f64>,
}

/// Activations: bytes stand for themselves less `zero`.
fn activations(r: &mut Random, numbers: Numbers, n: usize, zero: u8) -> Data {
    match numbers {
        Numbers::F32 => {
            let cells = r.floats(n);
            Data { real: cells.iter().map(|x| f64::from(*x)).collect(), cells }
        }
        Numbers::Bf16 | Numbers::F16 => {
            let halves = halves_of(numbers);
            let bits = halves.all_bits(&r.floats(n));
            let real = bits.iter().map(|b| f64::from(halves.wide(*b))).collect();
            Data { cells: cells(&bits.iter().flat_map(|b| b.to_le_bytes()).collect::<Vec<_>>()), real }
        }
        Numbers::U8I8 => {
            let bytes: Vec<u8> = (0..n).map(|_| r.below(256) as u8).collect();
            Data { cells: cells(&bytes), real: bytes.iter().map(|b| f64::from(*b) - f64::from(zero)).collect() }
        }
    }
}

fn cells(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

/// Weights in the type that is packed, as real numbers.
fn weights(r: &mut Random, numbers: Numbers, n: usize) -> Vec<f32> {
    let floats = r.floats(n);
    match numbers {
        Numbers::F32 => floats,
        Numbers::Bf16 | Numbers::F16 => {
            let halves = halves_of(numbers);
            floats.iter().map(|x| halves.wide(halves.bits(*x))).collect()
        }
        Numbers::U8I8 => floats.iter().map(|x| (x * 127.0).round()).collect(),
    }
}

fn bytes(w: &[f32]) -> Vec<i8> {
    w.iter().map(|x| *x as i8).collect()
}

/// An epilogue with memory of its own.
struct End {
    scale: Vec<f32>,
    bias: Vec<f32>,
    trip: Option<RoundTrip>,
    add: Vec<f32>,
    add_kind: usize,
    add_bits: Vec<u16>,
    add_bytes: Vec<u8>,
    add_last: bool,
    act: Act,
    after: Option<[f32; 2]>,
    finish: bool,
    columns: usize,
}

struct Halve;
impl Finish for Halve {
    fn finish(&self, tile: Tile<'_>, _thread: usize) {
        for line in tile.data.chunks_mut(tile.stride) {
            line[..tile.columns].iter_mut().for_each(|x| *x *= 0.5);
        }
    }
}

const STEPS: Quantizer = Quantizer { inverse: 60.0, shift: 0.0, low: -128.0, high: 127.0, zero: 128 };

impl End {
    /// `unit` brings sums to about one.
    fn new(r: &mut Random, rows: usize, columns: usize, unit: f32, taken: &[f64]) -> End {
        let add_bytes: Vec<u8> = (0..rows * columns).map(|_| r.below(256) as u8).collect();
        let add_kind = r.below(5);
        let add_halves = if add_kind == 4 { Halves::F16 } else { Halves::Bf16 };
        let add_bits = add_halves.all_bits(&r.floats(rows * columns));
        let add = match add_kind {
            1 => r.floats(rows * columns),
            2 | 4 => add_bits.iter().map(|b| add_halves.wide(*b)).collect(),
            3 => add_bytes.iter().map(|b| (f32::from(*b) - 100.0) * 0.01).collect(),
            _ => vec![0.0; rows * columns],
        };
        let scale: Vec<f32> = (0..columns).map(|_| unit * (1.0 + r.float() / 2.0)).collect();
        // What a zero point takes away is part of the bias.
        let bias = (0..columns).map(|j| r.float() - scale[j] * taken[j] as f32).collect();
        let trip = RoundTrip { quantizer: STEPS, scale: 1.0 / 60.0, offset: 0.0 };
        End {
            scale,
            bias,
            trip: (r.below(2) == 0).then_some(trip),
            add,
            add_kind,
            add_bits,
            add_bytes,
            add_last: r.below(2) == 0,
            act: r.pick(&ACTS),
            after: (r.below(3) == 0).then_some([0.75, -0.125]),
            finish: r.below(3) == 0,
            columns,
        }
    }
    fn typed(&self) -> TypedEpilogue<'_> {
        let stride = self.columns;
        let add = match self.add_kind {
            1 => Some(Addend::F32(&self.add, stride)),
            2 => Some(Addend::Half(Halves::Bf16, &self.add_bits, stride)),
            4 => Some(Addend::Half(Halves::F16, &self.add_bits, stride)),
            3 => Some(Addend::U8 { data: &self.add_bytes, stride, scale: 0.01, zero: 100 }),
            _ => None,
        };
        TypedEpilogue {
            scale: Some(&self.scale),
            bias: Some(&self.bias),
            round_trip: self.trip,
            offset: None,
            most: None,
            add,
            add_last: self.add_last,
            act: self.act,
            after: self.after,
            finish: if self.finish { Some(&Halve) } else { None },
        }
    }
    /// The results that are right for a sum: two where it lies between two steps.
    fn expected(&self, sum: f64, taken: f64, row: usize, column: usize) -> Vec<f64> {
        let scaled = (sum + taken) * f64::from(self.scale[column]) + f64::from(self.bias[column]);
        let starts = match self.trip {
            None => vec![scaled],
            Some(_) => {
                [-1e-3, 1e-3].map(|off| (scaled * 60.0 + off).clamp(-128.0, 127.0).round_ties_even() / 60.0).to_vec()
            }
        };
        let add = f64::from(self.add[row * self.columns + column]);
        let rest = |x: f64| {
            let x = if self.add_last { act(self.act, x) + add } else { act(self.act, x + add) };
            let x = self.after.map_or(x, |[factor, term]| x * f64::from(factor) + f64::from(term));
            if self.finish { x * 0.5 } else { x }
        };
        starts.into_iter().map(rest).collect()
    }
}

/// Puts rows into others that are `stride` apart.
fn fill<T: Copy>(to: &mut [T], stride: usize, rows: &[T], columns: usize) {
    for (line, row) in to.chunks_mut(stride).zip(rows.chunks(columns)) {
        line[..columns].copy_from_slice(row);
    }
}

/// Runs with an output of each type and compares. What is added may lie in an output of its type before.
fn compare(
    end: &End,
    sums: &[f64],
    taken: &[f64],
    run: impl Fn(TypedOut<'_>, usize, &TypedEpilogue<'_>),
    what: &dyn Fn() -> String,
) {
    let (columns, rows) = (end.columns, sums.len() / end.columns);
    let stride = columns + 3;
    let each = |found: &dyn Fn(usize) -> f64, bound: &dyn Fn(f64) -> f64| {
        for (x, sum) in sums.iter().enumerate() {
            let (i, j) = (x / columns, x % columns);
            let right = end.expected(*sum, taken[j], i, j);
            let found = found(i * stride + j);
            let near = right.iter().any(|y| (found - y).abs() <= bound(*y));
            assert!(near, "{found} instead of {right:?} at {i},{j}: {}", what());
        }
    };
    let apart = end.typed();
    let own = TypedEpilogue { add: Some(Addend::Own { scale: 0.01, zero: 100 }), ..end.typed() };
    let own_of =
        |kind: usize| [(&apart, false), (&own, true)].into_iter().filter(move |(_, own)| !own || end.add_kind == kind);
    for (epilogue, own) in own_of(1) {
        let mut out = vec![77f32; rows * stride];
        if own {
            fill(&mut out, stride, &end.add, columns);
        }
        run(TypedOut::F32(&mut out), stride, epilogue);
        each(&|at| f64::from(out[at]), &|_| 3e-4);
        assert!(out.chunks(stride).all(|line| line[columns..].iter().all(|x| *x == 77.0)), "beside: {}", what());
    }
    for (halves, rounding, kind) in [(Halves::Bf16, 1.0 / 256.0, 2), (Halves::F16, 1.0 / 2048.0, 4)] {
        for (epilogue, own) in own_of(kind) {
            let mut half = vec![77u16; rows * stride];
            if own {
                fill(&mut half, stride, &end.add_bits, columns);
            }
            run(TypedOut::Half(halves, &mut half), stride, epilogue);
            each(&|at| f64::from(halves.wide(half[at])), &|y| 3e-4 + y.abs() * rounding);
            assert!(half.chunks(stride).all(|line| line[columns..].iter().all(|x| *x == 77)), "beside: {}", what());
        }
    }
    for (epilogue, own) in own_of(3) {
        let mut steps = vec![77u8; rows * stride];
        if own {
            fill(&mut steps, stride, &end.add_bytes, columns);
        }
        run(TypedOut::U8(&mut steps, STEPS), stride, epilogue);
        each(&|at| (f64::from(steps[at]) - 128.0) / 60.0, &|y| {
            let beyond = (y.abs() - 127.0 / 60.0).max(0.0);
            0.51 / 60.0 + 3e-4 + beyond
        });
        assert!(steps.chunks(stride).all(|line| line[columns..].iter().all(|x| *x == 77)), "beside: {}", what());
    }
}

#[test]
fn products_of_small_numbers_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(11);
        for case in 0..72 {
            let numbers = ALL[case % 4];
            let each = numbers.per_cell();
            let m = r.pick(&[1, 2, 4, 5, 7, 8, 13, 14, 15, 16, 17, 29, 32, 33, 75]);
            let n = r.pick(&[1, 5, 15, 16, 17, 31, 32, 33, 70]);
            let cells = r.pick(&[1, 2, 3, 4, 7, 16, 19, 32, 40, 72, 130]);
            let (k, lda) = (cells * each, cells + r.below(3));
            let zero = r.pick(&[0u8, 3, 128]);
            let data = activations(&mut r, numbers, m * lda * each, zero);
            let w = weights(&mut r, numbers, k * n);
            let transposed = r.below(2) == 0;
            let at = |x: usize, j: usize| f64::from(if transposed { w[j * k + x] } else { w[x * n + j] });
            let sums: Vec<f64> =
                (0..m * n).map(|x| (0..k).map(|i| data.real[x / n * lda * each + i] * at(i, x % n)).sum()).collect();
            let lift = if numbers == Numbers::U8I8 { f64::from(zero) } else { 0.0 };
            let taken: Vec<f64> = (0..n).map(|j| lift * (0..k).map(|i| at(i, j)).sum::<f64>()).collect();
            let unit = if numbers == Numbers::U8I8 { 1.0 / (255.0 * 127.0) } else { 1.0 } / (cells as f32).sqrt();
            let end = End::new(&mut r, m, n, unit, &taken);
            let gemm = Gemm::of_cells(exec.isa, numbers, n, k).unwrap();
            let mut packed = vec![f32::NAN; gemm.packed_floats()];
            match numbers {
                Numbers::F32 => gemm.pack_f32(&w, transposed, &mut packed),
                Numbers::Bf16 | Numbers::F16 => {
                    gemm.pack_halves(&halves_of(numbers).all_bits(&w), transposed, &mut packed);
                }
                Numbers::U8I8 => gemm.pack_i8(&bytes(&w), transposed, &mut packed),
            }
            let run = |out: TypedOut<'_>, stride: usize, end: &TypedEpilogue<'_>| {
                gemm.run_typed(exec, numbers, (m, &data.cells, lda), &packed, out, stride, end);
            };
            let what = || format!("{m}x{n}x{k} of {numbers:?}, {:?}, {:?}", exec.isa, end.typed());
            compare(&end, &sums, &taken, run, &what);
        }
    });
}

fn convolve(exec: &Exec<'_>, s: &ConvShape, numbers: Numbers, zero: u8, r: &mut Random) {
    let Some(conv) = Conv::of_cells(exec.isa, exec.threads(), *s, numbers, zero) else { panic!("{s:?}") };
    assert!(conv.scratch_floats() <= SCRATCH);
    let data = activations(r, numbers, s.in_pixels() * s.in_channels, zero);
    let w = weights(r, numbers, s.weights());
    let mut packed = vec![f32::NAN; conv.packed_floats()];
    match numbers {
        Numbers::F32 => conv.pack_f32(&w, &mut packed),
        Numbers::Bf16 | Numbers::F16 => conv.pack_halves(&halves_of(numbers).all_bits(&w), &mut packed),
        Numbers::U8I8 => conv.pack_i8(&bytes(&w), &mut packed),
    }
    let [d, h, width] = s.in_spatial;
    let at = |image: usize, p: [usize; 3], c: usize| {
        data.real[(((image * d + p[0]) * h + p[1]) * width + p[2]) * s.in_channels + c] as f32
    };
    let sums = plain(s, at, &w);
    let each = s.in_channels / s.groups * s.taps();
    let lift = if numbers == Numbers::U8I8 { f64::from(zero) } else { 0.0 };
    let taken: Vec<f64> =
        w.chunks(each).map(|filter| lift * filter.iter().map(|x| f64::from(*x)).sum::<f64>()).collect();
    let unit = if numbers == Numbers::U8I8 { 1.0 / (255.0 * 127.0) } else { 1.0 } / (each as f32).sqrt();
    let end = End::new(r, s.out_pixels(), s.out_channels, unit, &taken);
    let run = |out: TypedOut<'_>, stride: usize, end: &TypedEpilogue<'_>| {
        conv.run_typed(exec, &data.cells, &packed, out, stride, end);
    };
    compare(&end, &sums, &taken, run, &|| format!("{s:?} of {numbers:?}, {:?}, {:?}", exec.isa, end.typed()));
}

#[test]
fn convolutions_of_small_numbers_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(23);
        for case in 0..80 {
            let numbers = ALL[case % 4];
            let groups = r.pick(&[1, 1, 1, 2]);
            let kernel = r.pick(&[[1, 1, 1], [1, 3, 3], [1, 1, 5], [1, 7, 1], [2, 2, 3]]);
            let dilation = [1, r.pick(&[1, 1, 2]), r.pick(&[1, 1, 3])];
            let extent = |axis: usize| (kernel[axis] - 1) * dilation[axis] + 1;
            let wider = r.pick(&[20, 20, 50]);
            let size = [extent(0) + r.below(2), extent(1) + r.below(9), extent(2) + r.below(wider)];
            let pad = kernel.map(|k| r.below(k));
            let s = ConvShape {
                batch: r.pick(&[1, 2]),
                in_spatial: size,
                in_channels: 4 * groups * r.pick(&[1, 2, 5, 17]),
                out_channels: groups * r.pick(&[9, 16, 20, 40]),
                kernel,
                stride: [1, r.pick(&[1, 2]), r.pick(&[1, 2])],
                dilation,
                pad_begin: pad,
                pad_end: pad,
                groups,
            };
            let zero = r.pick(&[0u8, 0, 7, 128]);
            convolve(exec, &s, numbers, zero, &mut r);
        }
    });
}

#[test]
fn sums_that_count_steps_leave_as_bytes_on_every_level() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(41);
        for case in 0..32 {
            let (m, n, k) = (r.pick(&[1, 4, 7, 14, 15, 61]), r.pick(&[5, 16, 31, 32, 33, 64]), 4 * r.pick(&[1, 3, 16]));
            let data: Vec<u8> = (0..m * k).map(|_| r.below(256) as u8).collect();
            let w = weights(&mut r, Numbers::U8I8, k * n);
            let (scale, bias) = (r.floats(n).iter().map(|x| x / 900.0).collect::<Vec<_>>(), r.floats(n));
            let unit = |low: f32, high: f32, zero: i32| Quantizer { inverse: 1.0, shift: 0.0, low, high, zero };
            let between = RoundTrip { quantizer: unit(-50.5, 60.0, 0), scale: 0.75, offset: 0.25 };
            let round_trip = (case % 2 == 1).then_some(between);
            let added: Vec<u8> = (0..m * n).map(|_| r.below(256) as u8).collect();
            let add = (case % 4 > 1).then_some(Addend::U8 { data: &added, stride: n, scale: 0.5, zero: 100 });
            let inverse = if add.is_some() { 0.7 } else { 1.0 };
            let to = Quantizer { inverse, ..unit(-20.0, 200.0, 30) };
            let gemm = Gemm::of_cells(exec.isa, Numbers::U8I8, n, k).unwrap();
            let mut packed = vec![0f32; gemm.packed_floats()];
            gemm.pack_i8(&bytes(&w), false, &mut packed);
            let more = r.floats(n);
            let offset = (case % 8 > 3 && round_trip.is_some()).then_some(&more[..]);
            let limits: Vec<f32> = r.floats(n).iter().map(|x| 50.0 + 20.0 * x).collect();
            let most = (case % 3 == 0 && add.is_none()).then_some(&limits[..]);
            let columns = TypedEpilogue { scale: Some(&scale), bias: Some(&bias), offset, most, ..Default::default() };
            let end = TypedEpilogue { round_trip, add, ..columns };
            let (mut out, stride) = (vec![9u8; m * (n + 2)], n + 2);
            let cells: Vec<f32> =
                data.chunks(4).map(|c| f32::from_bits(u32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect();
            let rows = (m, &cells[..], k / 4);
            gemm.run_typed(exec, Numbers::U8I8, rows, &packed, TypedOut::U8(&mut out, to), stride, &end);
            for (at, byte) in out.iter().enumerate() {
                let (i, j) = (at / stride, at % stride);
                if j >= n {
                    assert_eq!(*byte, 9, "beside");
                    continue;
                }
                let sum: f32 = (0..k).map(|x| f32::from(data[i * k + x]) * w[x * n + j]).sum();
                let mut x = sum.mul_add(scale[j], bias[j]);
                x = round_trip.map_or(x, |trip| trip.apply(x)) + offset.map_or(0.0, |o| o[j]);
                if add.is_some() {
                    x += f32::from(added[i * n + j]).mul_add(0.5, -50.0);
                }
                x = x.min(most.map_or(f32::INFINITY, |most| most[j]));
                assert_eq!(i32::from(*byte), to.step(x), "{m}x{n}x{k} case {case} at {i},{j}: {:?}", exec.isa);
            }
        }
    });
}

#[test]
fn channels_that_do_not_fill_a_cell_are_declined() {
    everywhere(0, |exec| {
        assert!(Gemm::of_cells(exec.isa, Numbers::U8I8, 8, 6).is_none());
        for numbers in [Numbers::Bf16, Numbers::F16] {
            assert!(Gemm::of_cells(exec.isa, numbers, 8, 7).is_none());
            assert!(Gemm::of_cells(exec.isa, numbers, 8, 6).is_some());
        }
    });
}

#[test]
fn a_number_that_is_none_becomes_the_least_step() {
    assert_eq!(STEPS.step(f32::NAN), 0);
    assert_eq!((STEPS.step(1e30), STEPS.step(-1e30), STEPS.step(0.0)), (255, 0, 128));
}

#[test]
fn depthwise_convolutions_of_bytes_equal_plain_loops() {
    everywhere(0, |exec| {
        let mut r = Random(31);
        for _ in 0..40 {
            let channels = r.pick(&[1, 3, 16, 24, 64, 70, 130]);
            let [height, width] = r.pick(&[[3, 3], [5, 5], [1, 7], [7, 1], [2, 4], [3, 5]]);
            let stride = r.pick(&[1, 1, 2]);
            let s = ConvShape {
                batch: r.pick(&[1, 2]),
                in_spatial: [1, height + r.below(6), width + r.below(12)],
                in_channels: channels,
                out_channels: channels,
                kernel: [1, height, width],
                stride: [1, stride, r.pick(&[stride, 1])],
                dilation: [1, 1, 1],
                pad_begin: [0, r.below(height), r.below(width)],
                pad_end: [0, r.below(height), r.below(width)],
                groups: channels,
            };
            let zero = r.pick(&[0u8, 9, 128]);
            let conv = DepthwiseBytes::new(exec.isa, s, zero).unwrap();
            let (in_stride, out_stride) = (channels + r.below(3), channels + r.below(3));
            let input: Vec<u8> = (0..s.in_pixels() * in_stride).map(|_| r.below(256) as u8).collect();
            let w = weights(&mut r, Numbers::U8I8, s.weights());
            let mut packed = vec![1i8; conv.packed_bytes()];
            conv.pack(&bytes(&w), &mut packed);
            let at = |image: usize, p: [usize; 3], c: usize| {
                let pixel = (image * s.in_spatial[1] + p[1]) * s.in_spatial[2] + p[2];
                f32::from(input[pixel * in_stride + c]) - f32::from(zero)
            };
            let sums = plain(&s, at, &w);
            let scale: Vec<f32> = (0..channels).map(|_| (1.0 + r.float() / 2.0) / (255.0 * 127.0)).collect();
            let shift = r.floats(channels);
            let taps = height * width;
            let taken = |c: usize| f32::from(zero) * w[c * taps..(c + 1) * taps].iter().sum::<f32>();
            let bias: Vec<f32> = (0..channels).map(|c| shift[c] - scale[c] * taken(c)).collect();
            let (low, high) = r.pick(&[(f32::NEG_INFINITY, f32::INFINITY), (0.0, 1.5)]);
            let in_steps = |list: &[f32]| list.iter().map(|x| x * STEPS.inverse).collect::<Vec<_>>();
            let limits = [low, high].map(|x: f32| (x * STEPS.inverse).clamp(STEPS.low, STEPS.high));
            let epilogue = BytesEpilogue::new(in_steps(&scale), in_steps(&bias), limits, STEPS.zero);
            let mut out = vec![77u8; s.out_pixels() * out_stride];
            conv.run(exec, (&input, in_stride), &packed, (&mut out, out_stride), &epilogue);
            for (x, sum) in sums.iter().enumerate() {
                let (pixel, c) = (x / channels, x % channels);
                let real = (sum * f64::from(scale[c]) + f64::from(shift[c])).clamp(low.into(), high.into());
                let step = (real * 60.0).clamp(-128.0, 127.0) + 128.0;
                let found = f64::from(out[pixel * out_stride + c]);
                assert!((found - step).abs() <= 0.51, "{found} instead of {step}: {s:?}, {:?}", exec.isa);
            }
            assert!(out.chunks(out_stride).all(|p| p[channels..].iter().all(|x| *x == 77)), "beside: {s:?}");
        }
    });
}

#[test]
fn numbers_become_steps_and_come_back() {
    everywhere(0, |exec| {
        let mut r = Random(5);
        for n in [1, 15, 16, 33, 40_000] {
            let x: Vec<f32> = r.floats(n).iter().map(|x| x * 3.0).collect();
            let (mut steps, mut back) = (vec![0u8; n], vec![0f32; n]);
            quantize(exec, &STEPS, &x, &mut steps);
            dequantize(exec, 1.0 / 60.0, 128, &steps, &mut back);
            for i in 0..n {
                assert_eq!(i32::from(steps[i]), STEPS.step(x[i]));
                assert_eq!(back[i], (f32::from(steps[i]) - 128.0) * (1.0 / 60.0));
            }
        }
    });
}

#[test]
fn planes_become_pixels_of_four_bytes() {
    everywhere(0, |exec| {
        let mut r = Random(6);
        for [images, channels, pixels] in [[1, 3, 17], [2, 1, 5], [2, 4, 20_000]] {
            let x = r.floats(images * channels * pixels);
            let mut cells = vec![9u8; images * pixels * 4];
            quantize_planes(exec, &STEPS, &x, [images, channels, pixels], &mut cells);
            for (i, byte) in cells.iter().enumerate() {
                let (c, pixel, image) = (i % 4, i / 4 % pixels, i / 4 / pixels);
                let right = if c < channels { STEPS.step(x[(image * channels + c) * pixels + pixel]) } else { 0 };
                assert_eq!(i32::from(*byte), right);
            }
        }
    });
}

#[test]
fn the_largest_bytes_of_windows() {
    everywhere(0, |exec| {
        let mut r = Random(8);
        for _ in 0..20 {
            let (channels, stride) = (r.pick(&[1, 5, 64, 70]), r.pick(&[1, 2]));
            let (h, w) = (3 + r.below(5), 3 + r.below(6));
            let pad = r.below(2);
            let out = |n: usize| (n + 2 * pad - 3) / stride + 1;
            let s = PoolShape {
                batch: 2,
                channels,
                in_spatial: [1, h, w],
                out_spatial: [1, out(h), out(w)],
                kernel: [1, 3, 3],
                stride: [1, stride, stride],
                dilation: [1; 3],
                pad_begin: [0, pad, pad],
            };
            let (from, to) = (channels + 1, channels + 2);
            let input: Vec<u8> = (0..2 * h * w * from).map(|_| r.below(256) as u8).collect();
            let mut found = vec![7u8; 2 * out(h) * out(w) * to];
            max_pool_bytes(exec, &s, (&input, from), (&mut found, to));
            for (i, pixel) in found.chunks(to).enumerate() {
                let (x, y, image) = (i % out(w), i / out(w) % out(h), i / out(w) / out(h));
                for (c, byte) in pixel[..channels].iter().enumerate() {
                    let taps = (0..9).map(|t| (y * stride + t / 3, x * stride + t % 3));
                    let inside = taps.filter(|(a, b)| (pad..h + pad).contains(a) && (pad..w + pad).contains(b));
                    let at = |(a, b): (usize, usize)| input[((image * h + a - pad) * w + b - pad) * from + c];
                    assert_eq!(Some(*byte), inside.map(at).max());
                }
                assert!(pixel[channels..].iter().all(|b| *b == 7), "written beside");
            }
        }
    });
}

/// The error function by its series.
fn erf(x: f64) -> f64 {
    let (mut sum, mut term) = (x, x);
    for n in 1..80 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn functions_of_sums_that_leave_as_bf16_are_right_to_its_last_digit() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let functions: [(Act, &dyn Fn(f64) -> f64); 6] = [
        (Act::None, &|x| x),
        (Act::Relu, &|x| x.max(0.0)),
        (Act::HSwish, &|x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        (Act::Swish(1.5), &|x| x * sigmoid(1.5 * x)),
        (Act::GeluErf, &|x| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))),
        (Act::GeluTanh, &|x| x * sigmoid(1.595_769_121_605_730_7 * (x + 0.044_715 * x * x * x))),
    ];
    let (rows, n, k) = (61, 40, 2);
    // One product of each sum is not zero, and that is by one.
    let numbers: Vec<f32> = (0..rows).map(|i| (i as f32 - 30.0) * 0.125).collect();
    let a: Vec<u16> = numbers.iter().flat_map(|x| [(x.to_bits() >> 16) as u16, 0]).collect();
    let bias: Vec<f32> = (0..n).map(|j| j as f32 * 0.0117 - 0.2).collect();
    let add: Vec<u16> = (0..rows * n).map(|i| (((i % 7) as f32 - 3.0).to_bits() >> 16) as u16).collect();
    everywhere(SCRATCH, |exec| {
        let gemm = Gemm::of_cells(exec.isa, Numbers::Bf16, n, k).unwrap();
        let mut packed = vec![0.0; gemm.packed_floats()];
        gemm.pack_halves(&[0x3f80; 80], false, &mut packed);
        for (case, (act, function)) in functions.iter().flat_map(|f| [f; 4]).enumerate() {
            let (add_last, after) = (case % 2 == 0, (case % 4 > 1).then_some([-2.0, 0.5]));
            let with_add = case % 3 > 0;
            let epilogue = TypedEpilogue {
                bias: Some(&bias),
                add: with_add.then_some(Addend::Half(Halves::Bf16, &add, n)),
                add_last,
                act: *act,
                after,
                ..TypedEpilogue::default()
            };
            let mut out = vec![0u16; rows * n];
            let cells: Vec<f32> = cells(&a.iter().flat_map(|b| b.to_le_bytes()).collect::<Vec<_>>());
            let to = TypedOut::Half(Halves::Bf16, &mut out);
            gemm.run_typed(exec, Numbers::Bf16, (rows, &cells, gemm.k()), &packed, to, n, &epilogue);
            for (i, found) in out.iter().enumerate() {
                let x = f64::from(numbers[i / n]) + f64::from(bias[i % n]);
                let more = if with_add { f64::from((i % 7) as u8) - 3.0 } else { 0.0 };
                let y = if add_last { function(x) + more } else { function(x + more) };
                let y = after.map_or(y, |[factor, term]| y * f64::from(factor) + f64::from(term));
                let found = f64::from(f32::from_bits(u32::from(*found) << 16));
                assert!((found - y).abs() <= 2e-4 + y.abs() / 256.0, "{act:?} {:?}: {found} is not {y}", exec.isa);
            }
        }
    });
}
