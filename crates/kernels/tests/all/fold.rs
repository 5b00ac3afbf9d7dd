//! Columns added back into an image, against a plain loop.

use crate::spatial_common::{Random, close};
use carafe_kernels::{Exec, Fold, Isa, Pool, PoolOptions, Scratch};

#[test]
fn columns_are_added_where_they_came_from() {
    for (size, kernel, stride, dilation, pad_begin, pad_end) in [
        ([9, 37], [3, 3], [1, 1], [1, 1], [1, 1], [1, 1]),
        ([8, 21], [2, 4], [2, 3], [3, 2], [0, 2], [1, 5]),
        ([5, 5], [1, 1], [2, 2], [1, 1], [0, 0], [0, 0]),
        ([2, 3], [4, 5], [1, 1], [1, 1], [6, 7], [3, 9]),
    ] {
        let positions: [usize; 2] = std::array::from_fn(|i| {
            (size[i] + pad_begin[i] + pad_end[i] - (kernel[i] - 1) * dilation[i] - 1) / stride[i] + 1
        });
        let fold = Fold { planes: 13, size, kernel, positions, stride, dilation, pad_begin };
        let count = 13 * kernel[0] * kernel[1] * positions[0] * positions[1];
        let columns = Random::new(count).floats(count);
        let mut wanted = vec![0.0; 13 * size[0] * size[1]];
        for (i, v) in columns.iter().enumerate() {
            let (px, i) = (i % positions[1], i / positions[1]);
            let (py, i) = (i % positions[0], i / positions[0]);
            let (kx, ky, plane) = (i % kernel[1], i / kernel[1] % kernel[0], i / kernel[1] / kernel[0]);
            let y = (py * stride[0] + ky * dilation[0]).wrapping_sub(pad_begin[0]);
            let x = (px * stride[1] + kx * dilation[1]).wrapping_sub(pad_begin[1]);
            if y < size[0] && x < size[1] {
                wanted[(plane * size[0] + y) * size[1] + x] += f64::from(*v);
            }
        }
        for isa in Isa::available() {
            for threads in [1, 3] {
                let pool = Pool::new(PoolOptions::threads(threads));
                let scratch = Scratch::new(threads, 0).unwrap();
                let mut image = vec![f32::NAN; wanted.len()];
                fold.run(&Exec::new(&pool, isa, &scratch), &columns, &mut image);
                close(&image, &wanted, 1e-5, &format!("{isa:?} {fold:?}"));
            }
        }
    }
}
