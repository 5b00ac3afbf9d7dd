//! Products of two matrices of bytes against plain loops.

use crate::products::{ACTS, Random, ended, everywhere};
use carafe_kernels::{BytesMatMul, Epilogue, Operand};

const SCRATCH: usize = 1 << 20;

// Matrices one after another, with a gap, as they are or transposed.
fn operand(r: &mut Random, batch: usize, rows: usize, columns: usize) -> (Operand, usize) {
    let transposed = r.below(2) == 0;
    let (lines, width) = if transposed { (columns, rows) } else { (rows, columns) };
    let stride = width + r.below(5);
    let each = lines * stride + r.below(3);
    // One matrix for all, or each its own.
    let step = if r.below(4) == 0 { 0 } else { each };
    (Operand { offsets: (0..batch).map(|i| i * step).collect(), stride, transposed }, each * batch)
}

#[test]
fn products_of_bytes_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(17);
        for _ in 0..60 {
            let (batch, m) = (r.pick(&[1, 2, 5]), r.pick(&[1, 3, 6, 7, 25, 64]));
            let (n, k) = (r.pick(&[1, 9, 32, 33, 70]), r.pick(&[1, 3, 4, 17, 64, 130]));
            let ((a, la), (b, lb)) = (operand(&mut r, batch, m, k), operand(&mut r, batch, k, n));
            let c = Operand { offsets: (0..batch).map(|i| i * m * n).collect(), stride: n, transposed: false };
            let x: Vec<u8> = (0..la).map(|_| r.next() as u8).collect();
            let y: Vec<u8> = (0..lb).map(|_| r.next() as u8).collect();
            let zeros = [r.pick(&[0u8, 128, 77, 255]), r.pick(&[0u8, 128, 131])];
            let scale = 1.0 / (40_000.0 * k as f32);
            let (bias, add) = (r.floats(n), r.floats(batch * m * n));
            let epilogue = Epilogue {
                bias: (r.below(2) == 0).then_some(&bias[..]),
                add: (r.below(2) == 0).then_some((&add[..], n)),
                add_last: r.below(2) == 0,
                act: r.pick(&ACTS),
                finish: None,
                ..Epilogue::default()
            };
            let at = |o: &Operand, item: usize, i: usize, j: usize| {
                o.offsets[item] + if o.transposed { j * o.stride + i } else { i * o.stride + j }
            };
            let number = |x: u8, zero: u8| f64::from(x) - f64::from(zero);
            let product = BytesMatMul::new(exec.isa, [m, n, k], (a.clone(), b.clone(), c), scale, zeros);
            let mut found = vec![77.0; batch * m * n];
            product.run(exec, &x, &y, &mut found, &epilogue);
            for (at_c, found) in found.iter().enumerate() {
                let (item, i, j) = (at_c / (m * n), at_c / n % m, at_c % n);
                let terms =
                    (0..k).map(|e| number(x[at(&a, item, i, e)], zeros[0]) * number(y[at(&b, item, e, j)], zeros[1]));
                let wanted = ended(&epilogue, terms.sum::<f64>() * f64::from(scale), item * m + i, j);
                let near = (f64::from(*found) - wanted).abs() <= 2e-6;
                assert!(
                    near,
                    "{found} instead of {wanted}: {batch}x{m}x{n}x{k} at {item},{i},{j}, {:?} {zeros:?}",
                    exec.isa
                );
            }
        }
    });
}
