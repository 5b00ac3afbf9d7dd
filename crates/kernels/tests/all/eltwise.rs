//! Elementwise programs against plain loops: every operation, every way shapes meet, whole arrays and rectangles.

use carafe_kernels::eltwise::typed::{self, Arithmetic, Comparison, Logic, ZeroDivisor};
use carafe_kernels::eltwise::{Arg, Broadcast, Elements, EltOp, Instr, Program, TileInput, TileProgram};
use carafe_kernels::{Act, Exec, Finish, Isa, Pool, PoolOptions, Scratch, Tile};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / 2f32.powi(22) - 2.0).collect()
    }
}

/// Calls `f` for every level and for 1 and 3 threads.
fn each_exec(f: impl Fn(&Exec<'_>)) {
    for isa in Isa::available() {
        for threads in [1, 3] {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 0).unwrap());
            f(&Exec::new(&pool, isa, &scratch));
        }
    }
}

fn close(found: f32, want: f32) -> bool {
    (found.is_nan() && want.is_nan()) || found == want || (found - want).abs() <= 1e-6 * want.abs().max(1e-3)
}

/// The position in `dims` that meets `index` of the output.
fn meets(index: &[usize], dims: &[usize]) -> usize {
    let own = &index[index.len() - dims.len()..];
    own.iter().zip(dims).fold(0, |at, (&i, &n)| at * n + if n == 1 { 0 } else { i })
}

fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in dims {
        all = all.into_iter().flat_map(|i| (0..n).map(move |k| [i.clone(), vec![k]].concat())).collect();
    }
    all
}

#[test]
fn shapes_meet_as_in_numpy() {
    let mut random = Random(7);
    let program = Program::new(
        3,
        vec![
            Instr::binary(EltOp::Mul, 3, 0u8, 1u8),
            Instr::binary(EltOp::Add, 3, 3u8, 2u8),
            Instr::binary(EltOp::Max, 4, 3u8, 0.25),
        ],
        vec![4, 3],
    );
    let sizes = [1, 2, 3, 5, 7, 16, 33, 64, 100];
    let mut cases: Vec<(Vec<usize>, Vec<Vec<usize>>)> = vec![];
    for _ in 0..60 {
        let rank = random.below(5);
        let out: Vec<usize> = (0..rank).map(|_| sizes[random.below(if rank > 3 { 5 } else { 8 })]).collect();
        let inputs = (0..3)
            .map(|_| {
                let from = random.below(rank + 1) * random.below(2);
                out[from..].iter().map(|&n| if random.below(3) == 0 { 1 } else { n }).collect()
            })
            .collect();
        cases.push((out, inputs));
    }
    let fixed: [(&[usize], [&[usize]; 3]); 6] = [
        (&[50, 2000], [&[50, 2000], &[2000], &[50, 1]]),
        (&[0, 3], [&[0, 3], &[3], &[1]]),
        (&[20000], [&[20000], &[1], &[20000]]),
        (&[4000, 3], [&[4000, 3], &[3], &[4000, 1]]),
        (&[300, 5, 4], [&[300, 5, 4], &[5, 1], &[300, 1, 1]]),
        (&[9, 33, 70], [&[9, 33, 70], &[33, 1], &[9, 1, 70]]),
    ];
    cases.extend(fixed.map(|(out, inputs)| (out.to_vec(), inputs.map(|i| i.to_vec()).to_vec())));
    for (out, shapes) in cases {
        let shapes: Vec<&[usize]> = shapes.iter().map(|s| &s[..]).collect();
        let data: Vec<Vec<f32>> = shapes.iter().map(|s| random.floats(s.iter().product())).collect();
        let inputs: Vec<&[f32]> = data.iter().map(|d| &d[..]).collect();
        let elements = Elements::new(program.clone(), &out, &shapes);
        let want: Vec<f32> = indices(&out)
            .iter()
            .map(|i| data[0][meets(i, shapes[0])] * data[1][meets(i, shapes[1])] + data[2][meets(i, shapes[2])])
            .collect();
        each_exec(|exec| {
            let (mut max, mut sum) = (vec![f32::NAN; want.len()], vec![f32::NAN; want.len()]);
            elements.run(exec, &inputs, &mut [&mut max, &mut sum]);
            for i in 0..want.len() {
                assert!(close(sum[i], want[i]), "{out:?} {shapes:?} at {i}: {} not {}", sum[i], want[i]);
                assert!(close(max[i], want[i].max(0.25)), "{out:?} {shapes:?} at {i}");
            }
        });
    }
}

#[test]
fn steps_of_any_size_are_followed() {
    let mut random = Random(3);
    for (rows, columns) in [(5, 7), (70, 130), (300, 3), (1, 1)] {
        let (a, b) = (random.floats(rows * columns), random.floats(rows * columns));
        let broadcast = Broadcast::with_steps(&[rows, columns], vec![vec![1, rows], vec![columns, 1]]);
        let elements = Elements::with_broadcast(Program::single(EltOp::Sub), broadcast);
        each_exec(|exec| {
            let mut out = vec![0.0; rows * columns];
            elements.run(exec, &[&a, &b], &mut [&mut out]);
            for (i, y) in out.iter().enumerate() {
                assert_eq!(*y, a[i % columns * rows + i / columns] - b[i]);
            }
        });
    }
}

const ODD: [f32; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    -2.5,
    3.0,
    -3.0,
    0.3,
    -0.7,
    1e-40,
    -1e-40,
    1e30,
    -1e30,
    8_388_609.0,
    7.25,
    -7.25,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

#[test]
fn operations_of_one_number_are_those_of_the_graph() {
    let f = |f: fn(f64) -> f64| move |x: f32| f(f64::from(x)) as f32;
    let truth = |b: bool| f32::from(u8::from(b));
    let cases: Vec<(EltOp, Box<dyn Fn(f32) -> f32>)> = vec![
        (EltOp::Act(Act::None), Box::new(|x| x)),
        (EltOp::Act(Act::Relu), Box::new(|x| if x < 0.0 { 0.0 } else { x })),
        (EltOp::Abs, Box::new(f32::abs)),
        (EltOp::Neg, Box::new(|x| -x)),
        (EltOp::Exp, Box::new(f(f64::exp))),
        (EltOp::Log, Box::new(f(f64::ln))),
        (EltOp::Sqrt, Box::new(f(f64::sqrt))),
        (EltOp::PowHalf, Box::new(f(|x| x.powf(0.5)))),
        (EltOp::Rsqrt, Box::new(|x| 1.0 / x.sqrt())),
        (EltOp::Reciprocal, Box::new(|x| 1.0 / x)),
        (EltOp::Square, Box::new(|x| x * x)),
        (EltOp::Floor, Box::new(f(f64::floor))),
        (EltOp::Ceil, Box::new(f(f64::ceil))),
        (EltOp::Trunc, Box::new(f(f64::trunc))),
        (EltOp::RoundEven, Box::new(f(f64::round_ties_even))),
        (EltOp::RoundAway, Box::new(f(f64::round))),
        (
            EltOp::Sign,
            Box::new(|x| {
                if x > 0.0 {
                    1.0
                } else if x < 0.0 {
                    -1.0
                } else {
                    x + 0.0
                }
            }),
        ),
        (EltOp::Sin, Box::new(f(f64::sin))),
        (EltOp::Cos, Box::new(f(f64::cos))),
        (EltOp::Tan, Box::new(f(f64::tan))),
        (EltOp::Asin, Box::new(f(f64::asin))),
        (EltOp::Acos, Box::new(f(f64::acos))),
        (EltOp::Atan, Box::new(f(f64::atan))),
        (EltOp::Sinh, Box::new(f(f64::sinh))),
        (EltOp::Cosh, Box::new(f(f64::cosh))),
        (EltOp::Asinh, Box::new(f(f64::asinh))),
        (EltOp::Acosh, Box::new(f(f64::acosh))),
        (EltOp::Atanh, Box::new(f(f64::atanh))),
        (EltOp::Not, Box::new(move |x| truth(x == 0.0))),
        (EltOp::IsNan, Box::new(move |x| truth(x.is_nan()))),
        (EltOp::IsInf { negative: true, positive: true }, Box::new(move |x| truth(x.is_infinite()))),
        (EltOp::IsInf { negative: false, positive: true }, Box::new(move |x| truth(x == f32::INFINITY))),
        (EltOp::IsInf { negative: true, positive: false }, Box::new(move |x| truth(x == f32::NEG_INFINITY))),
        (EltOp::IsInf { negative: false, positive: false }, Box::new(|_| 0.0)),
        (EltOp::IsFinite, Box::new(move |x| truth(x.is_finite()))),
    ];
    for (op, want) in cases {
        let elements = Elements::new(Program::single(op), &[ODD.len()], &[&[ODD.len()]]);
        each_exec(|exec| {
            let mut out = [0.0; ODD.len()];
            elements.run(exec, &[&ODD], &mut [&mut out]);
            for (&x, &y) in ODD.iter().zip(&out) {
                let want = want(x);
                assert!(
                    close(y, want) && (y != 0.0 || y.is_sign_negative() == want.is_sign_negative()),
                    "{op:?} of {x}: {y} not {want}"
                );
            }
        });
    }
}

#[test]
fn operations_of_two_numbers_are_those_of_the_graph() {
    fn truth(b: bool) -> f32 {
        f32::from(u8::from(b))
    }
    fn wide(a: f32, b: f32, f: fn(f64, f64) -> f64) -> f32 {
        f(f64::from(a), f64::from(b)) as f32
    }
    let cases: Vec<(EltOp, fn(f32, f32) -> f32)> = vec![
        (EltOp::Add, |a, b| a + b),
        (EltOp::Sub, |a, b| a - b),
        (EltOp::Mul, |a, b| a * b),
        (EltOp::Div, |a, b| a / b),
        (EltOp::Max, |a, b| if a < b { b } else { a }),
        (EltOp::Min, |a, b| if b < a { b } else { a }),
        (EltOp::Pow, |a, b| wide(a, b, f64::powf)),
        (EltOp::SquaredDifference, |a, b| (a - b) * (a - b)),
        (EltOp::Mod, |a, b| wide(a, b, |a, b| a - b * (a / b).trunc())),
        (EltOp::FloorMod, |a, b| wide(a, b, |a, b| a - b * (a / b).floor())),
        (EltOp::PRelu, |a, b| if a < 0.0 { a * b } else { a }),
        (EltOp::Equal, |a, b| truth(a == b)),
        (EltOp::NotEqual, |a, b| truth(a != b)),
        (EltOp::Less, |a, b| truth(a < b)),
        (EltOp::LessEqual, |a, b| truth(a <= b)),
        (EltOp::Greater, |a, b| truth(a > b)),
        (EltOp::GreaterEqual, |a, b| truth(a >= b)),
        (EltOp::And, |a, b| truth(a != 0.0 && b != 0.0)),
        (EltOp::Or, |a, b| truth(a != 0.0 || b != 0.0)),
        (EltOp::Xor, |a, b| truth((a != 0.0) != (b != 0.0))),
    ];
    let n = ODD.len();
    for (op, want) in cases {
        // Every number meets every other, in all four forms of the two arguments.
        let forms: [(&[usize], [&[usize]; 2]); 2] = [(&[n, n], [&[n, 1], &[1, n]]), (&[n, n], [&[1, n], &[n, 1]])];
        for (out, shapes) in forms {
            let elements = Elements::new(Program::single(op), out, &shapes);
            each_exec(|exec| {
                let mut y = vec![0.0; n * n];
                elements.run(exec, &[&ODD, &ODD], &mut [&mut y]);
                for (i, &y) in y.iter().enumerate() {
                    let index = [i / n, i % n];
                    let (a, b) = (ODD[meets(&index, shapes[0])], ODD[meets(&index, shapes[1])]);
                    assert!(close(y, want(a, b)), "{op:?} of {a}, {b}: {y} not {}", want(a, b));
                }
            });
        }
    }
}

#[test]
fn constants_meet_powers_and_quotients() {
    for exponent in [2.0f32, 0.5, 1.0, -1.0, 3.0, 1.3] {
        let program = Program::new(1, vec![Instr::binary(EltOp::Pow, 1, 0u8, exponent)], vec![1]);
        let elements = Elements::new(program, &[ODD.len()], &[&[ODD.len()]]);
        each_exec(|exec| {
            let mut out = [0.0; ODD.len()];
            elements.run(exec, &[&ODD], &mut [&mut out]);
            for (&x, &y) in ODD.iter().zip(&out) {
                assert!(close(y, f64::from(x).powf(f64::from(exponent)) as f32), "{x} ^ {exponent} = {y}");
            }
        });
    }
    let program =
        Program::new(1, vec![Instr::binary(EltOp::Div, 1, 0u8, 4.0), Instr::binary(EltOp::Div, 1, 1u8, 3.0)], vec![1]);
    let elements = Elements::new(program, &[2], &[&[2]]);
    each_exec(|exec| {
        let mut out = [0.0; 2];
        elements.run(exec, &[&[6.0, 1.0]], &mut [&mut out]);
        assert_eq!(out, [0.5, 0.25 / 3.0]);
    });
}

#[test]
fn a_register_may_be_written_again_and_an_input_be_an_output() {
    let program = Program::new(
        2,
        vec![
            Instr::ternary(EltOp::MulAdd, 2, 0u8, 1u8, 1.0),
            Instr::binary(EltOp::Less, 3, 2u8, 0u8),
            Instr::unary(EltOp::Neg, 2, 2u8),
            Instr::ternary(EltOp::Select, 4, 3u8, 2u8, 0u8),
        ],
        vec![4, 2, 2, 0],
    );
    assert_eq!((program.inputs(), program.outputs()), (2, 4));
    let mut random = Random(5);
    let n = 3000;
    let (a, b) = (random.floats(n), random.floats(n));
    let elements = Elements::new(program, &[n], &[&[n], &[n]]);
    each_exec(|exec| {
        let mut out = vec![vec![0.0; n]; 4];
        let mut slices: Vec<&mut [f32]> = out.iter_mut().map(|o| &mut o[..]).collect();
        elements.run(exec, &[&a, &b], &mut slices);
        for i in 0..n {
            let sum = a[i].mul_add(b[i], 1.0);
            assert!(close(out[1][i], -sum) && close(out[2][i], -sum) && out[3][i] == a[i]);
            assert!(close(out[0][i], if sum < a[i] { -sum } else { a[i] }));
        }
    });
}

#[test]
fn an_input_may_be_replaced_by_the_output() {
    let program =
        Program::new(2, vec![Instr::binary(EltOp::Mul, 2, 0u8, 1u8), Instr::binary(EltOp::Add, 2, 2u8, 0u8)], vec![2]);
    let mut random = Random(6);
    for (rows, columns) in [(3, 5), (40, 1000)] {
        let (a, b) = (random.floats(rows * columns), random.floats(columns));
        let elements = Elements::new(program.clone(), &[rows, columns], &[&[rows, columns], &[columns]]);
        each_exec(|exec| {
            let mut data = a.clone();
            elements.run_in_place(exec, &mut data, &[&b]);
            for i in 0..data.len() {
                assert!(close(data[i], a[i] * b[i % columns] + a[i]));
            }
        });
    }
}

#[test]
#[should_panic(expected = "read before it is written")]
fn a_register_read_too_early_is_refused() {
    Program::new(1, vec![Instr::binary(EltOp::Add, 1, 0u8, 2u8)], vec![1]);
}

#[test]
fn a_program_finishes_rectangles() {
    let program = Program::new(
        5,
        vec![
            Instr::ternary(EltOp::MulAdd, 5, 0u8, 1u8, 2u8),
            Instr::unary(EltOp::Act(Act::Swish(1.0)), 5, 5u8),
            Instr::binary(EltOp::Mul, 5, 5u8, 3u8),
            Instr::binary(EltOp::Add, 5, 5u8, Arg::Reg(4)),
        ],
        vec![5],
    );
    let mut random = Random(8);
    let (rows, columns, stride) = (37, 90, 97);
    let matrix = random.floats(rows * stride);
    let (per_column, per_row, data) = (random.floats(columns), random.floats(rows), random.floats(rows * columns));
    let inputs = [
        TileInput::Row(&per_column),
        TileInput::Matrix { data: &matrix, stride },
        TileInput::Column(&per_row),
        TileInput::Scalar(0.5),
    ];
    for isa in Isa::available() {
        let finish = TileProgram::new(isa, &program, &inputs);
        let mut out = data.clone();
        for (row, n_rows) in [(0, 20), (20, 17)] {
            for (column, n_columns) in [(0, 64), (64, 26)] {
                let start = row * columns + column;
                let data = &mut out[start..start + (n_rows - 1) * columns + n_columns];
                finish.finish(Tile { data, stride: columns, row, column, rows: n_rows, columns: n_columns }, 0);
            }
        }
        for (i, &y) in out.iter().enumerate() {
            let (r, c) = (i / columns, i % columns);
            let x = data[i].mul_add(per_column[c], matrix[r * stride + c]);
            let want = x / (1.0 + (-x).exp()) * per_row[r] + 0.5;
            assert!((y - want).abs() < 1e-5, "{y} not {want}");
        }
    }
}

#[test]
fn integers_wrap_and_round_as_told() {
    let shapes = Broadcast::new(&[3, 4], &[&[3, 4], &[4]]);
    let a = [-7i32, 7, -7, i32::MIN, 5, -5, 9, i32::MAX, 0, 1, -1, 8];
    let b = [2, -2, -2, -1];
    let cases: [(Arithmetic, fn(i32, i32) -> i32); 9] = [
        (Arithmetic::Add, i32::wrapping_add),
        (Arithmetic::Sub, i32::wrapping_sub),
        (Arithmetic::Mul, i32::wrapping_mul),
        (Arithmetic::Div, i32::wrapping_div),
        (Arithmetic::DivFloor, |a, b| (i64::from(a) as f64 / f64::from(b)).floor() as i64 as i32),
        (Arithmetic::Max, i32::max),
        (Arithmetic::Min, i32::min),
        (Arithmetic::Mod, i32::wrapping_rem),
        (Arithmetic::FloorMod, |a, b| {
            a.wrapping_sub(b.wrapping_mul((f64::from(a) / f64::from(b)).floor() as i64 as i32))
        }),
    ];
    each_exec(|exec| {
        for (op, want) in cases {
            let mut out = [0; 12];
            typed::arithmetic(exec, op, &shapes, &a, &b, &mut out).unwrap();
            let want: Vec<i32> = a.iter().enumerate().map(|(i, &x)| want(x, b[i % 4])).collect();
            assert_eq!(out[..], want[..], "{op:?}");
        }
    });
}

#[test]
fn integers_are_not_divided_by_zero() {
    let shapes = Broadcast::new(&[2], &[&[2], &[2]]);
    each_exec(|exec| {
        let divide = |b: [i64; 2]| typed::arithmetic(exec, Arithmetic::DivFloor, &shapes, &[4, 5], &b, &mut [0; 2]);
        assert_eq!((divide([1, 0]), divide([1, 2])), (Err(ZeroDivisor), Ok(())));
    });
}

#[test]
fn comparisons_logic_and_choice_work_on_any_type() {
    let mut random = Random(9);
    let (rows, columns) = (50, 700);
    let a: Vec<i64> = (0..rows * columns).map(|_| random.below(4) as i64).collect();
    let b: Vec<i64> = (0..rows).map(|_| random.below(4) as i64).collect();
    let shapes = Broadcast::new(&[rows, columns], &[&[rows, columns], &[rows, 1]]);
    let cases: [(Comparison, fn(&i64, &i64) -> bool); 6] = [
        (Comparison::Equal, |a, b| a == b),
        (Comparison::NotEqual, |a, b| a != b),
        (Comparison::Less, |a, b| a < b),
        (Comparison::LessEqual, |a, b| a <= b),
        (Comparison::Greater, |a, b| a > b),
        (Comparison::GreaterEqual, |a, b| a >= b),
    ];
    let three = Broadcast::new(&[rows, columns], &[&[rows, columns], &[rows, columns], &[1]]);
    each_exec(|exec| {
        let mut out = vec![9; a.len()];
        for (op, want) in cases {
            typed::compare(exec, op, &shapes, &a, &b, &mut out);
            assert!(out.iter().enumerate().all(|(i, &y)| y == u8::from(want(&a[i], &b[i / columns]))), "{op:?}");
        }
        let mut chosen = vec![0.0f64; a.len()];
        let halves: Vec<f64> = a.iter().map(|&x| x as f64 / 2.0).collect();
        typed::select(exec, &three, &out, &halves, &[-1.0], &mut chosen);
        assert!((0..a.len()).all(|i| chosen[i] == if out[i] != 0 { halves[i] } else { -1.0 }));
        typed::logical(exec, Logic::Xor, &shapes, &a, &b, &mut out);
        assert!((0..a.len()).all(|i| out[i] == u8::from((a[i] != 0) != (b[i / columns] != 0))));
    });
}
