//! The largest numbers of windows and where they stand, against a plain loop.

use crate::spatial_common::Random;
use carafe_kernels::{Exec, Isa, MaxPositions, Places, Pool, PoolOptions, PoolShape, Scratch};

#[test]
fn the_first_of_the_largest_numbers_is_told() {
    for (in_spatial, kernel, stride, dilation, pad_begin, out_spatial) in [
        ([1, 12, 150], [1, 2, 2], [1, 2, 2], [1, 1, 1], [0, 0, 0], [1, 6, 75]),
        ([1, 9, 71], [1, 3, 3], [1, 1, 1], [1, 2, 2], [0, 1, 2], [1, 7, 70]),
        ([3, 7, 10], [2, 3, 3], [1, 3, 4], [1, 1, 1], [1, 2, 1], [4, 4, 4]),
        // Windows that meet no pixel.
        ([1, 4, 5], [1, 2, 3], [1, 2, 2], [1, 1, 1], [0, 4, 7], [1, 6, 8]),
    ] {
        let s = PoolShape { batch: 2, channels: 5, in_spatial, out_spatial, kernel, stride, dilation, pad_begin };
        let plane: usize = in_spatial.iter().product();
        let mut data = Random::new(plane).floats(10 * plane);
        // Few different numbers, so that some are equal.
        data.iter_mut().for_each(|x| *x = (*x * 3.0).round());
        (data[3], data[plane + 1], data[5]) = (f32::NAN, f32::NEG_INFINITY, f32::INFINITY);
        for counted in [10 * plane, plane, in_spatial[2]] {
            let (mut wanted, mut wanted_places) = (vec![], vec![]);
            for image in 0..10 {
                for window in 0..out_spatial.iter().product::<usize>() {
                    let [_, h, w] = out_spatial;
                    let o = [window / (h * w), window / w % h, window % w];
                    let (mut best, mut position) = (f32::MIN, 0);
                    for tap in 0..kernel.iter().product::<usize>() {
                        let k = [tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1], tap % kernel[2]];
                        let at: [usize; 3] =
                            std::array::from_fn(|i| (o[i] * stride[i] + k[i] * dilation[i]).wrapping_sub(pad_begin[i]));
                        if (0..3).all(|i| at[i] < in_spatial[i]) {
                            let p = (at[0] * in_spatial[1] + at[1]) * in_spatial[2] + at[2];
                            if data[image * plane + p] > best {
                                (best, position) = (data[image * plane + p], p);
                            }
                        }
                    }
                    wanted.push(best);
                    wanted_places.push(((image * plane + position) % counted) as i64);
                }
            }
            for isa in Isa::available() {
                for threads in [1, 3] {
                    let pool = Pool::new(PoolOptions::threads(threads));
                    let scratch = Scratch::new(threads, 0).unwrap();
                    let exec = Exec::new(&pool, isa, &scratch);
                    let kernel = MaxPositions::new(s, counted);
                    let (mut out, mut positions) = (vec![f32::NAN; wanted.len()], vec![-1i64; wanted.len()]);
                    kernel.run(&exec, &data, &mut out, Places::I64(&mut positions));
                    assert_eq!((&out, &positions), (&wanted, &wanted_places), "{isa:?} {s:?}");
                    let mut narrow = vec![-1i32; wanted.len()];
                    kernel.run(&exec, &data, &mut out, Places::I32(&mut narrow));
                    assert!(narrow.iter().zip(&wanted_places).all(|(a, b)| i64::from(*a) == *b), "{isa:?} {s:?}");
                }
            }
        }
    }
}
