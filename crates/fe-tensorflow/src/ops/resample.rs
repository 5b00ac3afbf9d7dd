//! Resizing of images `[N, H, W, C]` whose pixels are weighted sums of others along each axis: two products with matrices of
//! weights. The weights are known when the sizes are; where they are not, the node is refused.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::Einsum;
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("ResizeArea", 0, |n| {
        let align: bool = n.attr("align_corners", false)?;
        resize(n, |from, to, _| area(from, to, step(from, to, align)))
    }),
    rule("ResizeBicubic", 0, |n| {
        let (align, half): (bool, bool) = (n.attr("align_corners", false)?, n.attr("half_pixel_centers", false)?);
        resize(n, |from, to, _| bicubic(from, to, step(from, to, align), half))
    }),
    rule("ScaleAndTranslate", 0, scale_and_translate),
];

/// Numbers of one axis beyond this are refused: the matrix of weights would be larger than any image.
const MOST_WEIGHTS: usize = 1 << 24;

fn resize(n: &mut NodeCx<'_>, weights: impl Fn(usize, usize, usize) -> Vec<f64>) -> Result<Outputs> {
    let (mut x, size) = (n.input(0)?, n.input(1)?);
    let size = n.ints(size).filter(|s| s.len() == 2).ok_or_else(|| n.unsupported("the size must be two constants"))?;
    x = n.convert(x, ElementType::F32)?;
    for (axis, equation) in ["oh,nhwc->nowc", "ow,nhwc->nhoc"].into_iter().enumerate() {
        let from = n.shape(x).dim(axis + 1).get().and_then(|d| usize::try_from(d).ok());
        let to = usize::try_from(size[axis]).ok().filter(|&to| to > 0);
        let (Some(from), Some(to)) = (from.filter(|&from| from > 0), to) else {
            return Err(n.unsupported("height and width of the image must be known, and the size above 0"));
        };
        if from.saturating_mul(to) > MOST_WEIGHTS {
            return Err(n.unsupported(format!("resizing an axis from {from} to {to} is not supported")));
        }
        let weights: Vec<f32> = weights(from, to, axis).into_iter().map(|w| w as f32).collect();
        let weights = n.constant(Tensor::from_slice(&[to, from], &weights)?)?;
        x = n.emit(Einsum { equation: equation.into() }, &[weights, x])?;
    }
    Ok(x.into())
}

// Pixels of the image for each pixel of the result.
fn step(from: usize, to: usize, align: bool) -> f64 {
    if align && to > 1 { (from - 1) as f64 / (to - 1) as f64 } else { from as f64 / to as f64 }
}

// The mean of what a pixel of the result covers.
fn area(from: usize, to: usize, step: f64) -> Vec<f64> {
    let mut all = vec![0.0; to * from];
    for o in 0..to {
        let (start, end) = (o as f64 * step, (o + 1) as f64 * step);
        for i in start.floor() as usize..end.ceil() as usize {
            let covered = end.min(i as f64 + 1.0) - start.max(i as f64);
            all[o * from + i.min(from - 1)] += covered / step;
        }
    }
    all
}

// A cubic through four pixels. With half pixels those outside have no weight, otherwise they are the nearest ones inside.
fn bicubic(from: usize, to: usize, step: f64, half: bool) -> Vec<f64> {
    let a = if half { -0.5 } else { -0.75 };
    let near = |x: f64| ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    let mut all = vec![0.0; to * from];
    for o in 0..to {
        let at = if half { (o as f64 + 0.5) * step - 0.5 } else { o as f64 * step };
        let first = at.floor();
        // TensorFlow has a table of 1024 places between two pixels.
        let x = ((at - first) * 1024.0).round_ties_even() / 1024.0;
        let weights = [far(x + 1.0), near(x), near(1.0 - x), far(2.0 - x)];
        let last = from as i64 - 1;
        let places = (0..4).map(|k| first as i64 - 1 + k);
        let within: Vec<(i64, f64)> = places.zip(weights).filter(|(i, _)| !half || (0..=last).contains(i)).collect();
        let sum: f64 = if half { within.iter().map(|(_, w)| w).sum() } else { 1.0 };
        for (i, w) in within {
            all[o * from + i.clamp(0, last) as usize] += w / sum;
        }
    }
    all
}

// Samples of the image under a kernel, which is widened where the image shrinks if `antialias` is set.
fn scale_and_translate(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let name: String = n.attr("kernel_type", "lanczos3".to_string())?;
    let antialias: bool = n.attr("antialias", true)?;
    let Some((radius, kernel)) = kernel(&name) else {
        return Err(n.unsupported(format!("attribute `kernel_type` is `{name}`, which is not known")));
    };
    let numbers = |n: &mut NodeCx<'_>, v: Value| {
        let found = n.tensor(v).and_then(|t| t.to_vec::<f64>().ok()).filter(|t| t.len() == 2);
        found.map(|t| t.into_owned()).ok_or_else(|| n.unsupported("scale and translation must be constants"))
    };
    let (scale, translation) = (n.input(2)?, n.input(3)?);
    let (scale, translation) = (numbers(n, scale)?, numbers(n, translation)?);
    if scale.iter().any(|s| s.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater)) {
        return Err(n.fail("scales must be above 0"));
    }
    resize(n, |from, to, axis| {
        let inverse = 1.0 / scale[axis];
        let wide = if antialias { inverse.max(1.0) } else { 1.0 };
        let mut all = vec![0.0; to * from];
        for o in 0..to {
            let at = (o as f64 + 0.5) * inverse - inverse * translation[axis];
            if !(0.0..=from as f64).contains(&at) {
                continue;
            }
            let first = (at - radius * wide - 0.5).ceil().max(0.0) as usize;
            let last = (at + radius * wide - 0.5).floor().min(from as f64 - 1.0).max(-1.0) as i64;
            let row = &mut all[o * from..(o + 1) * from];
            for (i, w) in row.iter_mut().enumerate().skip(first).take_while(|(i, _)| *i as i64 <= last) {
                *w = kernel((i as f64 + 0.5 - at).abs() / wide);
            }
            let sum: f64 = row.iter().sum();
            if sum.abs() > 1e-30 {
                row.iter_mut().for_each(|w| *w /= sum);
            }
        }
        all
    })
}

type Kernel = Box<dyn Fn(f64) -> f64>;

// How far a kernel reaches, and its value at a distance.
fn kernel(name: &str) -> Option<(f64, Kernel)> {
    let lanczos = |radius: f64| -> (f64, Kernel) {
        let sinc = move |x: f64| {
            let x = std::f64::consts::PI * x;
            if x <= 1e-3 { 1.0 } else { radius * x.sin() * (x / radius).sin() / (x * x) }
        };
        (radius, Box::new(move |x| if x > radius { 0.0 } else { sinc(x) }))
    };
    let cubic = |near: [f64; 3], far: [f64; 4]| -> (f64, Kernel) {
        let at = move |x: f64| match x {
            x if x >= 2.0 => 0.0,
            x if x >= 1.0 => ((far[0] * x + far[1]) * x + far[2]) * x + far[3],
            x => (near[0] * x + near[1]) * x * x + near[2],
        };
        (2.0, Box::new(at))
    };
    Some(match name {
        "lanczos1" => lanczos(1.0),
        "lanczos3" => lanczos(3.0),
        "lanczos5" => lanczos(5.0),
        "gaussian" => (1.5, Box::new(|x| if x >= 1.5 { 0.0 } else { (-x * x / 0.5).exp() })),
        "box" => (0.5, Box::new(|x| if x < 0.5 { 1.0 } else if x == 0.5 { 0.5 } else { 0.0 })),
        "triangle" => (1.0, Box::new(|x| (1.0 - x).max(0.0))),
        "keyscubic" => cubic([1.5, -2.5, 1.0], [-0.5, 2.5, -4.0, 2.0]),
        "mitchellcubic" => {
            cubic([7.0 / 6.0, -2.0, 8.0 / 9.0], [-7.0 / 18.0, 2.0, -10.0 / 3.0, 16.0 / 9.0])
        }
        _ => return None,
    })
}
