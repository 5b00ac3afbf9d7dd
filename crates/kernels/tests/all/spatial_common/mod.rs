//! What tests of spatial kernels share: numbers, a plain convolution in f64, comparison.
#![allow(dead_code)]

use carafe_kernels::{Act, ConvShape};

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: usize) -> Random {
        Random(seed as u64 * 2654435761 + 88172645463325252)
    }
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// From -1 to 1.
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }
}

/// A convolution by its definition: weights `[out, in / groups, kernel..]`, pixels of the input `in_stride` apart.
pub(crate) fn direct(s: &ConvShape, input: &[f32], in_stride: usize, weights: &[f32]) -> Vec<f64> {
    let out = s.out_spatial();
    let (ins, outs) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let taps: usize = s.kernel.iter().product();
    let mut result = vec![0.0; s.batch * out.iter().product::<usize>() * s.out_channels];
    for (pixel, result) in result.chunks_exact_mut(s.out_channels.max(1)).enumerate() {
        let at = [pixel / out[2] / out[1] % out[0], pixel / out[2] % out[1], pixel % out[2]];
        let batch = pixel / out[2] / out[1] / out[0];
        for tap in 0..taps {
            let k = [tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]];
            let from = [0, 1, 2].map(|i| (at[i] * s.stride[i] + k[i] * s.dilation[i]).wrapping_sub(s.pad_begin[i]));
            if (0..3).any(|i| from[i] >= s.in_spatial[i]) {
                continue;
            }
            let [d, h, w] = s.in_spatial;
            let from = &input[(((batch * d + from[0]) * h + from[1]) * w + from[2]) * in_stride..];
            for (o, y) in result.iter_mut().enumerate() {
                for i in 0..ins {
                    *y += from[o / outs * ins + i] as f64 * weights[(o * ins + i) * taps + tap] as f64;
                }
            }
        }
    }
    result
}

pub(crate) fn act(act: Act, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match act {
        Act::None => x,
        Act::Relu => x.max(0.0),
        Act::Clamp { min, max } => x.clamp(min as f64, max as f64),
        Act::LeakyRelu(a) => {
            if x < 0.0 {
                x * a as f64
            } else {
                x
            }
        }
        Act::HSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Act::HSigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Act::HardSigmoid { alpha, beta } => (alpha as f64 * x + beta as f64).clamp(0.0, 1.0),
        Act::Sigmoid => sigmoid(x),
        Act::Swish(beta) => x * sigmoid(beta as f64 * x),
        _ => unimplemented!("{act:?}"),
    }
}

/// Equal but for `tolerance` of the largest number.
pub(crate) fn close(found: &[f32], wanted: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(1.0f64, |a, x| a.max(x.abs()));
    for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
        assert!((*f as f64 - w).abs() <= tolerance * largest, "{what}: element {i}: found {f}, wanted {w}");
    }
}
