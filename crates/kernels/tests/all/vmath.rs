//! Vector functions against f64, over sweeps of all of f32: denormal, huge, infinite, NaN.

use carafe_kernels::{Act, Isa, vmath};

/// Numbers of every size and both signs, dense between -100 and 100.
fn sweep() -> Vec<f32> {
    let all = (0..=u32::MAX).step_by(65_537).map(f32::from_bits);
    let near = (-200_000..=200_000).map(|i| i as f32 * 5.03e-4);
    let odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
    ];
    all.chain(near).chain(odd).collect()
}

/// The unit in the last position of `x` as an f32.
fn ulp(x: f64) -> f64 {
    let x = (x as f32).abs();
    if x >= f32::MAX { 2f64.powi(104) } else { f64::from(x.next_up()) - f64::from(x) }
}

fn check(name: &str, bound: f64, run: impl Fn(Isa, &mut [f32]), exact: impl Fn(f64) -> f64) {
    // A factor that is denormal has lost bits already, and the product shows it.
    check_scaled(name, &sweep(), run, &exact, |x, y| {
        bound * ulp(y) + if y.abs() < 1e-36 { 1e-45 * x.abs() } else { 0.0 }
    });
}

fn check_scaled(
    name: &str,
    x: &[f32],
    run: impl Fn(Isa, &mut [f32]),
    exact: impl Fn(f64) -> f64,
    bound: impl Fn(f64, f64) -> f64,
) {
    for isa in Isa::available() {
        let mut y = x.to_vec();
        run(isa, &mut y);
        let mut worst = (0.0, 0.0);
        for (&x, &y) in x.iter().zip(&y) {
            let want = exact(f64::from(x));
            let stored = want as f32;
            if stored.is_nan() || y.is_nan() {
                assert!(stored.is_nan() && y.is_nan(), "{name} {isa:?}: {x:e} gives {y:e}, not {want:e}");
            } else if stored.is_infinite() || y.is_infinite() {
                // The last finite numbers may round either way.
                assert!(
                    stored == y || want.abs() > 3.4028e38 && y.abs() > 3.4028e38,
                    "{name} {isa:?}: {x:e} gives {y:e}, not {want:e}"
                );
            } else {
                let miss = (f64::from(y) - want).abs() / bound(f64::from(x), want);
                if miss > worst.0 {
                    worst = (miss, f64::from(x));
                }
                assert!(miss <= 1.0, "{name} {isa:?}: {x:e} gives {y:e}, not {want:e}: {miss} of the bound");
            }
        }
        println!("{name} {isa:?}: {:.2} of the bound at {:e}", worst.0, worst.1);
    }
}

/// The error function to f64 accuracy: a series of positive terms, and 1 where it has converged.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() || a > 7.0 {
        return if a.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum, mut n) = (a, a, 1.0);
    while term > 1e-18 * sum {
        term *= 2.0 * a * a / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    (2.0 / std::f64::consts::PI.sqrt() * (-a * a).exp() * sum).copysign(x)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}

#[test]
fn exp_is_exact_to_the_last_bits() {
    check("exp", 1.5, vmath::exp, f64::exp);
}

#[test]
fn log_is_exact_to_the_last_bits() {
    check("log", 2.0, vmath::log, f64::ln);
}

#[test]
fn sigmoid_and_tanh_keep_their_small_values() {
    check("sigmoid", 2.5, vmath::sigmoid, sigmoid);
    check("tanh", 3.5, vmath::tanh, f64::tanh);
}

#[test]
fn erf_follows_the_series() {
    check("erf", 5.0, vmath::erf, erf);
}

#[test]
fn softplus_and_mish_are_exact_on_both_sides() {
    check("softplus", 4.0, vmath::softplus, softplus);
    check("mish", 6.0, vmath::mish, |x| x * softplus(x).tanh());
}

#[test]
fn gelu_is_exact_on_the_scale_of_its_argument() {
    let gelu = |x: f64| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2));
    check_scaled("gelu", &sweep(), vmath::gelu_erf, gelu, |x, y| (1.5e-7 * x.abs()).max(3.0 * ulp(y)));
    let tanh = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh());
    check_scaled("gelu tanh", &sweep(), vmath::gelu_tanh, tanh, |x, y| (1e-7 * x.abs()).min(1e-6).max(5.0 * ulp(y)));
}

#[test]
fn sine_and_cosine_are_exact_far_from_zero_too() {
    check("sin", 2.0, vmath::sin, f64::sin);
    check("cos", 2.0, vmath::cos, f64::cos);
    check("tan", 1.0, vmath::tan, f64::tan);
}

#[test]
fn roots_are_rounded_correctly() {
    check("sqrt", 0.51, vmath::sqrt, f64::sqrt);
    check("rsqrt", 1.5, vmath::rsqrt, |x| 1.0 / x.sqrt());
}

#[test]
fn rounding_is_that_of_the_library() {
    check("floor", 1e-9, vmath::floor, f64::floor);
    check("ceil", 1e-9, vmath::ceil, f64::ceil);
    check("round", 1e-9, vmath::round_even, f64::round_ties_even);
}

#[test]
fn powers_have_the_special_cases_of_the_library() {
    for exponent in [2.0, -1.0, 0.5, 3.0, 1.7, -2.3, 0.0, 40.0, f32::INFINITY, f32::NAN, 1e30] {
        check("pow", 3.0, |isa, x| vmath::pow(isa, x, exponent), |x| x.powf(f64::from(exponent)));
    }
}

#[test]
fn activations_follow_their_formulas() {
    let act = |act: Act, bound: f64, exact: &dyn Fn(f64) -> f64| {
        check(&format!("{act:?}"), bound, |isa, x| vmath::act_in_place(isa, act, x), exact);
    };
    let elu = |x: f64, a: f64| if x < 0.0 { a * x.exp_m1() } else { x };
    act(Act::None, 0.1, &|x| x);
    act(Act::Relu, 0.1, &|x| if x < 0.0 { 0.0 } else { x });
    act(Act::Clamp { min: -1.5, max: 6.0 }, 0.1, &|x| x.clamp(-1.5, 6.0));
    act(Act::LeakyRelu(0.125), 0.6, &|x| if x < 0.0 { 0.125 * x } else { x });
    act(Act::Elu(0.5), 2.0, &|x| elu(x, 0.5));
    act(Act::Selu { alpha: 1.5, scale: 1.25 }, 3.0, &|x| 1.25 * elu(x, 1.5));
    act(Act::Sigmoid, 2.5, &sigmoid);
    act(Act::Tanh, 3.5, &f64::tanh);
    act(Act::Swish(1.0), 4.0, &|x| x * sigmoid(x));
    act(Act::HSigmoid, 3.0, &|x| (x as f32 + 3.0).clamp(0.0, 6.0) as f64 / 6.0);
    act(Act::HSwish, 3.0, &|x| x * (x as f32 + 3.0).clamp(0.0, 6.0) as f64 / 6.0);
    act(Act::HardSigmoid { alpha: 0.25, beta: 0.5 }, 1.0, &|x| (0.25 * x + 0.5).clamp(0.0, 1.0));
    act(Act::Mish, 6.0, &|x| x * softplus(x).tanh());
    act(Act::SoftPlus, 4.0, &softplus);
    act(Act::SoftSign, 2.0, &|x| x / (1.0 + x.abs()));
}

#[test]
fn a_result_does_not_depend_on_the_place_in_the_slice() {
    for isa in Isa::available() {
        for len in 0..70 {
            let x: Vec<f32> = (0..len).map(|i| i as f32 * 0.37 - 9.0).collect();
            let mut y = vec![0.0; len];
            vmath::act_into(isa, Act::Swish(1.0), &x, &mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let mut one = [x];
                vmath::act_in_place(isa, Act::Swish(1.0), &mut one);
                assert_eq!(one[0].to_bits(), y.to_bits());
            }
        }
    }
}
