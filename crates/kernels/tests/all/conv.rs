//! Convolutions against plain loops.

use crate::products::{ACTS, Random, check, ended, everywhere};
use carafe_kernels::{Conv, ConvPlanar, ConvShape, Epilogue, Exec};

const SCRATCH: usize = 1 << 21;

/// Plain loops over a channels-last image; returns sums by pixel and channel.
pub(crate) fn plain(s: &ConvShape, input: impl Fn(usize, [usize; 3], usize) -> f32, weights: &[f32]) -> Vec<f64> {
    let [od, oh, ow] = s.out_spatial();
    let (ci, co) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let mut out = vec![0.0; s.out_pixels() * s.out_channels];
    let mut taps = Vec::with_capacity(s.taps());
    for (pixel, sums) in out.chunks_exact_mut(s.out_channels).enumerate() {
        let at = [pixel / (ow * oh) % od, pixel / ow % oh, pixel % ow];
        let image = pixel / (ow * oh * od);
        // Those within the image, once for all channels.
        taps.clear();
        taps.extend((0..s.taps()).filter_map(|t| {
            let k = [t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]];
            let from: [usize; 3] =
                std::array::from_fn(|i| (at[i] * s.stride[i] + k[i] * s.dilation[i]).wrapping_sub(s.pad_begin[i]));
            (0..3).all(|i| from[i] < s.in_spatial[i]).then_some((t, from))
        }));
        for (o, sum) in sums.iter_mut().enumerate() {
            let g = o / co;
            for c in 0..ci {
                let filter = &weights[(o * ci + c) * s.taps()..][..s.taps()];
                for &(t, from) in &taps {
                    *sum += f64::from(input(image, from, g * ci + c)) * f64::from(filter[t]);
                }
            }
        }
    }
    out
}

struct Sizes {
    in_stride: usize,
    out_stride: usize,
    planar: bool,
}

fn run(exec: &Exec<'_>, s: &ConvShape, sizes: &Sizes, r: &mut Random) {
    let pixels = s.in_pixels();
    let input = r.floats(pixels * sizes.in_stride);
    let weights = r.floats(s.weights());
    let (bias, add) = (r.floats(s.out_channels), r.floats(s.out_pixels() * s.out_channels));
    let epilogue = Epilogue {
        bias: (r.below(2) == 0).then_some(&bias[..]),
        add: (r.below(2) == 0).then_some((&add[..], s.out_channels)),
        add_last: r.below(2) == 0,
        act: r.pick(&ACTS),
        finish: None,
        ..Epilogue::default()
    };
    let mut out = vec![77.0; s.out_pixels() * sizes.out_stride];
    let threads = exec.threads();
    if sizes.planar {
        let conv = ConvPlanar::new(exec.isa, threads, *s);
        assert!(conv.scratch_floats() <= SCRATCH);
        let mut packed = vec![f32::NAN; conv.packed_floats()];
        conv.pack(Some(exec), &weights, &mut packed);
        conv.run(exec, &input, &packed, &mut out, sizes.out_stride, &epilogue);
    } else {
        let conv = Conv::new(exec.isa, threads, *s).with_in_stride(sizes.in_stride);
        assert!(conv.scratch_floats() <= SCRATCH);
        let mut packed = vec![f32::NAN; conv.packed_floats()];
        conv.pack(None, &weights, &mut packed);
        // What is added may lie in the output.
        let own = Epilogue { add: None, add_own: true, ..epilogue };
        if epilogue.add.is_some() && conv.adds_over(&own) && r.below(2) == 0 {
            for (pixel, add) in out.chunks_mut(sizes.out_stride).zip(add.chunks(s.out_channels)) {
                pixel[..s.out_channels].copy_from_slice(add);
            }
            conv.run(exec, &input, &packed, &mut out, sizes.out_stride, &own);
        } else {
            conv.run(exec, &input, &packed, &mut out, sizes.out_stride, &epilogue);
        }
    }
    let [d, h, w] = s.in_spatial;
    let at = |image: usize, p: [usize; 3], c: usize| match sizes.planar {
        true => input[(((image * s.in_channels + c) * d + p[0]) * h + p[1]) * w + p[2]],
        false => input[(((image * d + p[0]) * h + p[1]) * w + p[2]) * sizes.in_stride + c],
    };
    let expected = plain(s, at, &weights);
    for (x, sum) in expected.iter().enumerate() {
        let (pixel, o) = (x / s.out_channels, x % s.out_channels);
        let k = s.in_channels / s.groups * s.taps();
        let what = || format!("{s:?} at {pixel},{o}, {:?}, {epilogue:?}", exec.isa);
        check(out[pixel * sizes.out_stride + o], ended(&epilogue, *sum, pixel, o), k, &what);
    }
    for pixel in out.chunks(sizes.out_stride) {
        assert!(pixel[s.out_channels..].iter().all(|x| *x == 77.0), "written beside the channels: {s:?}");
    }
}

fn random_shape(r: &mut Random, channels: &[usize]) -> ConvShape {
    let dims = r.between(1, 3);
    let mut axis = |of: &[usize], other: usize| std::array::from_fn(|i| if i + dims >= 3 { r.pick(of) } else { other });
    let kernel = axis(&[1, 2, 3, 5], 1);
    let (stride, dilation) = (axis(&[1, 1, 2, 3], 1), axis(&[1, 1, 2], 1));
    let (pad_begin, pad_end) = (axis(&[0, 1, 2], 0), axis(&[0, 1, 3], 0));
    let mut in_spatial: [usize; 3] = axis(&[4, 5, 7, 9, 14, 17], 1);
    if dims == 1 {
        in_spatial[2] = r.between(9, 70);
    }
    let groups = r.pick(&[1, 1, 1, 2, 3, 8]);
    let (ci, co) = (r.pick(channels), r.pick(&[1, 4, 8, 16, 20, 32, 40]));
    ConvShape {
        batch: r.between(1, 3),
        in_spatial,
        in_channels: ci * groups,
        out_channels: if groups > 2 { co.min(8) } else { co } * groups,
        kernel,
        stride,
        dilation,
        pad_begin,
        pad_end,
        groups,
    }
}

#[test]
fn random_convolutions_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(17);
        for _ in 0..120 {
            let s = random_shape(&mut r, &[1, 3, 4, 8, 16, 19]);
            let sizes = Sizes {
                in_stride: s.in_channels + r.pick(&[0, 0, 3]),
                out_stride: s.out_channels + r.pick(&[0, 0, 5]),
                planar: false,
            };
            run(exec, &s, &sizes, &mut r);
        }
    });
}

#[test]
fn convolutions_of_planes_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(23);
        for _ in 0..60 {
            let s = ConvShape { groups: 1, ..random_shape(&mut r, &[1, 2, 3, 4]) };
            let s = ConvShape { in_channels: s.in_channels.min(4), ..s };
            let sizes = Sizes { in_stride: s.in_channels, out_stride: s.out_channels + r.pick(&[0, 2]), planar: true };
            run(exec, &s, &sizes, &mut r);
        }
    });
}

#[test]
fn usual_layers_equal_plain_loops() {
    let square = |size: usize, ci: usize, co: usize, kernel: usize, stride: usize| ConvShape {
        batch: 1,
        in_spatial: [1, size, size],
        in_channels: ci,
        out_channels: co,
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        dilation: [1; 3],
        pad_begin: [0, kernel / 2, kernel / 2],
        pad_end: [0, kernel / 2, kernel / 2],
        groups: 1,
    };
    let shapes = [
        square(7, 512, 64, 3, 1),
        square(7, 1024, 40, 1, 1),
        square(14, 512, 33, 1, 2),
        square(28, 64, 64, 3, 2),
        square(6, 32, 64, 3, 1),
        square(3, 32, 64, 3, 1),
        square(1, 64, 10, 1, 1),
        ConvShape { dilation: [1, 6, 6], pad_begin: [0, 6, 6], pad_end: [0, 6, 6], ..square(9, 16, 16, 3, 1) },
        ConvShape { groups: 32, ..square(14, 128, 128, 3, 1) },
        ConvShape { kernel: [1, 1, 7], pad_begin: [0, 0, 3], pad_end: [0, 0, 3], ..square(12, 16, 24, 1, 1) },
        ConvShape { kernel: [1, 7, 1], pad_begin: [0, 3, 0], pad_end: [0, 3, 0], ..square(12, 16, 24, 1, 1) },
        ConvShape { pad_begin: [0, 5, 5], pad_end: [0, 4, 9], ..square(2, 4, 8, 3, 1) },
    ];
    everywhere(SCRATCH, |exec| {
        let mut r = Random(29);
        for s in &shapes {
            let sizes = Sizes { in_stride: s.in_channels, out_stride: s.out_channels, planar: false };
            run(exec, s, &sizes, &mut r);
        }
    });
}
