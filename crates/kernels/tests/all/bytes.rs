//! Programs over bytes, tables and planes of bytes against plain loops.

use crate::products::{Random, everywhere};
use carafe_kernels::eltwise::{BytesElements, BytesInput, BytesOutput, EltOp, Instr, Program};
use carafe_kernels::reduce::mean_bytes;
use carafe_kernels::{Act, Quantizer, map_bytes, map_bytes_in_place, weave_planes};

const STEPS: Quantizer = Quantizer { inverse: 40.0, shift: 0.0, low: -60.0, high: 195.0, zero: 60 };

fn random(r: &mut Random, n: usize) -> Vec<u8> {
    (0..n).map(|_| r.below(256) as u8).collect()
}

#[test]
fn programs_read_and_write_bytes_in_one_walk() {
    everywhere(0, |exec| {
        let mut r = Random(51);
        // (a + b) * c + d, where c repeats.
        let instrs = vec![
            Instr::binary(EltOp::Add, 4, 0, 1),
            Instr::binary(EltOp::Mul, 5, 4, 2),
            Instr::binary(EltOp::Add, 6, 5, 3),
        ];
        let program = Program::new(4, instrs, vec![6]);
        for [rows, columns] in [[1, 7], [3, 24], [50, 64], [2, 3000]] {
            for repeated in [[1, columns], [rows, 1], [1, 1]] {
                let n = rows * columns;
                let (a, c) = (random(&mut r, n), random(&mut r, repeated[0] * repeated[1]));
                let (b, d) = (r.floats(n), r.floats(columns));
                let shapes: [&[usize]; 4] = [&[rows, columns], &[rows, columns], &repeated, &[columns]];
                let elements = BytesElements::new(program.clone(), &[rows, columns], &shapes).unwrap();
                let inputs = [
                    BytesInput::U8 { data: &a, scale: 0.02, zero: 100 },
                    BytesInput::F32(&b),
                    BytesInput::U8 { data: &c, scale: 0.01, zero: 3 },
                    BytesInput::F32(&d),
                ];
                let number = |x: u8, scale: f32, zero: i32| (i32::from(x) - zero) as f32 * scale;
                let wanted = |i: usize| {
                    let (row, column) = (i / columns, i % columns);
                    let at = (row % repeated[0]) * repeated[1] + column % repeated[1];
                    (number(a[i], 0.02, 100) + b[i]) * number(c[at], 0.01, 3) + d[column]
                };
                let mut floats = vec![f32::NAN; n];
                elements.run(exec, &inputs, BytesOutput::F32(&mut floats));
                assert!((0..n).all(|i| (floats[i] - wanted(i)).abs() < 1e-5), "{rows}x{columns} {repeated:?}");
                let mut bytes = vec![0u8; n];
                elements.run(exec, &inputs, BytesOutput::U8(&mut bytes, STEPS));
                assert!((0..n).all(|i| i32::from(bytes[i]) == STEPS.step(floats[i])), "{rows}x{columns} {repeated:?}");
            }
        }
    });
}

#[test]
fn a_program_of_one_number_is_a_table() {
    everywhere(0, |exec| {
        let program = Program::single(EltOp::Act(Act::Swish(1.0)));
        let table = program.table(exec.isa, 0.05, 77, &STEPS);
        for (x, y) in table.iter().enumerate() {
            let x = (x as f32 - 77.0) * 0.05;
            let near = [-1e-3, 1e-3].map(|off| STEPS.step(x / (1.0 + (-x).exp()) + off));
            assert!((near[0]..=near[1]).contains(&i32::from(*y)), "{x} became {y}, not {near:?}");
        }
        let same = Program::single(EltOp::Act(Act::None)).table(exec.isa, 1.0 / 40.0, 60, &STEPS);
        assert!(same.iter().enumerate().all(|(i, x)| usize::from(*x) == i));
    });
}

#[test]
fn every_byte_goes_through_the_table() {
    everywhere(0, |exec| {
        let mut r = Random(53);
        let table: [u8; 256] = std::array::from_fn(|_| r.below(256) as u8);
        for n in [0, 1, 63, 64, 65, 1000, 40_000] {
            let from = random(&mut r, n);
            let wanted: Vec<u8> = from.iter().map(|x| table[usize::from(*x)]).collect();
            let (mut to, mut over) = (vec![0; n], from.clone());
            map_bytes(exec, &table, &from, &mut to);
            map_bytes_in_place(exec, &table, &mut over);
            assert_eq!((&to, &over), (&wanted, &wanted));
        }
    });
}

#[test]
fn planes_of_bytes_become_pixels() {
    everywhere(0, |exec| {
        let mut r = Random(55);
        for [images, channels, pixels] in [[1, 3, 5], [2, 1, 9], [1, 4, 100], [2, 2, 33], [1, 3, 40_000]] {
            let from = random(&mut r, images * channels * pixels);
            let mut to = vec![9u8; images * pixels * 4];
            weave_planes(exec, &from, [images, channels, pixels], &mut to);
            for (i, byte) in to.iter().enumerate() {
                let (c, pixel, image) = (i % 4, i / 4 % pixels, i / 4 / pixels);
                let wanted = if c < channels { from[(image * channels + c) * pixels + pixel] } else { 0 };
                assert_eq!(*byte, wanted, "{channels} channels at {i}");
            }
        }
    });
}

#[test]
fn means_of_bytes_over_pixels() {
    everywhere(0, |exec| {
        let mut r = Random(57);
        for [images, pixels, channels] in [[1, 1, 3], [2, 49, 300], [1, 1000, 16]] {
            let from = random(&mut r, images * pixels * channels);
            let mut out = vec![0f32; images * channels];
            mean_bytes(exec, [images, pixels, channels], &from, (0.1, 20), &mut out);
            for (i, found) in out.iter().enumerate() {
                let (image, c) = (i / channels, i % channels);
                let at = |p: usize| (f64::from(from[(image * pixels + p) * channels + c]) - 20.0) * 0.1;
                let wanted = (0..pixels).map(at).sum::<f64>() / pixels as f64;
                assert!((f64::from(*found) - wanted).abs() < 1e-4, "{found} instead of {wanted}");
            }
        }
    });
}
