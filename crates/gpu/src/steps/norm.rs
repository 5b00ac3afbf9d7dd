//! Softmax and normalizations: rows of elements over any axes, as they lie.

use super::ending::{Ending, bytes_of};
use super::{Built, Port, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::{Result, normalize_axis};
use carafe_opencl::DeviceKind;
use carafe_ops::activation as act;
use carafe_ops::carafe::RmsNorm;
use carafe_ops::normalization as norm;
use carafe_plan::{Form, Layout};

/// What is done with a row, by the number that `kernels/fold.cl` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Softmax = 0,
    LogSoftmax = 1,
    MeanOnly = 2,
    Variance = 3,
    Deviation = 4,
    Rms = 5,
    L2Add = 6,
    L2Max = 7,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::Softmax => "softmax",
            Function::LogSoftmax => "log_softmax",
            Function::MeanOnly | Function::Variance | Function::Deviation => "mvn",
            Function::Rms => "rms_norm",
            Function::L2Add | Function::L2Max => "normalize_l2",
        }
    }
}

/// Elements of a row that an item takes at least.
const EACH: usize = 4;
/// With so many rows beside each other every row may be the work of one item.
const MANY_ROWS: usize = 4096;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.inputs.first().is_some_and(Port::is_f32) || !site.outputs[0].is_f32() {
        return Ok(None);
    }
    let (op, x) = (site.op, &site.inputs[0]);
    let rank = x.rank();
    let listed = || axes_of(site.inputs.get(1)?, rank);
    let one = |axis: i64| normalize_axis(axis, rank).ok().map(|a| vec![a]);
    let (function, eps, axes) = if let Some(s) = op.get::<act::Softmax>() {
        (Function::Softmax, 0.0, one(s.axis))
    } else if let Some(s) = op.get::<act::LogSoftmax>() {
        (Function::LogSoftmax, 0.0, one(s.axis))
    } else if let Some(n) = op.get::<norm::Mvn>() {
        let function = match (n.normalize_variance, n.eps_mode) {
            (false, _) => Function::MeanOnly,
            (true, norm::mvn::EpsMode::InsideSqrt) => Function::Variance,
            (true, norm::mvn::EpsMode::OutsideSqrt) => Function::Deviation,
        };
        (function, n.eps, listed())
    } else if let Some(n) = op.get::<norm::NormalizeL2>() {
        let function = match n.eps_mode {
            norm::normalize_l2::EpsMode::Add => Function::L2Add,
            norm::normalize_l2::EpsMode::Max => Function::L2Max,
        };
        (function, n.eps, listed())
    } else if let Some(n) = op.get::<norm::Grn>() {
        (Function::L2Add, n.bias, (rank > 1).then(|| vec![1]))
    } else if let Some(n) = op.get::<RmsNorm>() {
        (Function::Rms, n.eps, listed())
    } else if let Some(n) = op.get::<norm::GroupNormalization>() {
        return groups(site, n);
    } else if let Some(n) = op.get::<norm::Lrn>() {
        return Ok(match listed().as_deref() {
            Some([1]) if rank > 1 && site.epilogue.is_empty() => Some(lrn(site, n)?),
            _ => None,
        });
    } else {
        return Ok(None);
    };
    let Some(axes) = axes else { return Ok(None) };
    for layout in [x.layout, Layout::PLAIN] {
        let positions: Vec<usize> = axes.iter().map(|&a| layout.axis(a, rank)).collect();
        let Some(rows) = Rows::of(&layout.dims(&x.shape), &positions) else { continue };
        if let Some(built) = fold(site, function, eps, layout, rows)? {
            return Ok(Some(built));
        }
    }
    Ok(None)
}

fn axes_of(port: &Port, rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = port.ints()?.into_iter().map(|a| normalize_axis(a, rank).ok()).collect::<Option<_>>()?;
    axes.sort_unstable();
    axes.dedup();
    Some(axes)
}

/// Rows of elements in memory: runs of sizes that are kept and folded by turns, `[kept, folded, kept, folded]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows([usize; 4]);

impl Rows {
    // `None` when there are more runs, or nothing to do.
    fn of(dims: &[usize], folded: &[usize]) -> Option<Rows> {
        let mut sizes = vec![1];
        for (position, &n) in dims.iter().enumerate().filter(|(_, n)| **n != 1) {
            if folded.contains(&position) == sizes.len().is_multiple_of(2) {
                *sizes.last_mut()? *= n;
            } else {
                sizes.push(n);
            }
        }
        sizes.resize(sizes.len().max(4), 1);
        let sizes: [usize; 4] = sizes.try_into().ok()?;
        (!sizes.contains(&0)).then_some(Rows(sizes))
    }
    fn count(&self) -> usize {
        self.0[0] * self.0[2]
    }
    fn length(&self) -> usize {
        self.0[1] * self.0[3]
    }
    // Rows of the inner run, strides of the two runs of rows; the same of elements.
    fn numbers(&self) -> [usize; 6] {
        let [_, folded, kept, inner] = self.0;
        let near = if self.is_steady() { self.step() } else { 1 };
        [kept, folded * kept * inner, inner, inner, kept * inner, near]
    }
    // Whether elements of a row are all as far apart.
    fn is_steady(&self) -> bool {
        self.0[1] == 1 || self.0[3] == 1
    }
    // Elements next to each other in a row are so far apart in memory.
    fn step(&self) -> usize {
        let [_, _, kept, inner] = self.0;
        if inner > 1 { 1 } else { kept }
    }
}

// An input with one number for each of so many, as elements of the device.
fn vector(site: &Site<'_>, i: usize, reads: &mut Vec<(usize, Form)>) -> Result<Arg> {
    let (port, cx) = (&site.inputs[i], site.cx);
    if let Some(tensor) = &port.constant {
        let make = || Ok(bytes_of(cx, &tensor.to_vec::<f32>()?));
        return Ok(cx.packed(&format!("vector {}", cx.half), &[tensor], make)?.into());
    }
    reads.push((i, cx.form(port, Layout::PLAIN)));
    Ok(Arg::Read(reads.len() - 1))
}

fn fold(site: &Site<'_>, function: Function, eps: f32, layout: Layout, rows: Rows) -> Result<Option<Built>> {
    let (cx, x) = (site.cx, &site.inputs[0]);
    let mut reads = vec![(0, cx.form(x, layout))];
    let (mut factor, mut vectors) = (0, vec![]);
    if function == Function::Rms && site.own_inputs > 2 {
        // One number for each element of a row, which lies at the end of the data.
        let gamma = &site.inputs[2];
        let at_the_end = layout == Layout::PLAIN && rows.0[2] * rows.0[3] == 1 || rows.0[1] * rows.0[2] == 1;
        if !gamma.is_f32() || gamma.len() != rows.length() || !at_the_end {
            return Ok(None);
        }
        factor = 2;
        vectors.push(vector(site, 2, &mut reads)?);
    }
    let axis = x.rank().saturating_sub(1);
    let Some(ending) = Ending::of(site, axis, layout, &mut reads)? else { return Ok(None) };
    let columns = (column_step(x, layout, axis), x.shape.get(axis).copied().unwrap_or(1));
    let launch = launch(site, function, eps, rows, [factor, 0], vectors, columns, &ending)?;
    let name = format!("{}{}", function.name(), ending.name);
    Ok(Some(Launches::new(name, vec![launch]).built(reads, [cx.form(&site.outputs[0], layout)])))
}

// Elements from one to the next along an axis.
fn column_step(x: &Port, layout: Layout, axis: usize) -> usize {
    let dims = layout.dims(&x.shape);
    dims.iter().skip(layout.axis(axis, x.rank()) + 1).product()
}

#[allow(clippy::too_many_arguments)]
fn launch(
    site: &Site<'_>,
    function: Function,
    eps: f32,
    rows: Rows,
    [factor, term]: [usize; 2],
    vectors: Vec<Arg>,
    (column_step, columns): (usize, usize),
    ending: &Ending,
) -> Result<Launch> {
    let cx = site.cx;
    let beside = rows.step() > 1 && rows.count() >= MANY_ROWS;
    let host = cx.machine.info().kind == DeviceKind::Cpu;
    let group = match host || beside {
        true => 1,
        false => (rows.length() / EACH).next_power_of_two().clamp(1, cx.group().next_power_of_two().min(256)),
    };
    let group = if group > cx.group() { group / 2 } else { group };
    let inside = rows.is_steady() && rows.step() == 1 && column_step == 1 && columns == rows.length();
    let numbers = [
        ("FUNCTION", function as usize),
        ("GROUP", group),
        ("FACTOR", factor),
        ("TERM", term),
        ("STEADY", usize::from(rows.is_steady())),
        ("COLUMNS_INSIDE", usize::from(inside)),
    ];
    let macros = numbers.map(|(name, value)| (name, value.to_string()));
    let file = Source("fold.cl");
    let kernel = cx.generated(file.0, &format!("{}{}", ending.source, file.text()), "fold", &macros)?;
    let mut args = vec![Arg::Read(0), Arg::Write(0), rows.count().into(), rows.length().into()];
    args.extend(rows.numbers().map(Arg::from));
    args.extend([Arg::Float(eps), column_step.into(), columns.max(1).into()]);
    args.extend(vectors);
    args.extend(ending.args.iter().cloned());
    Ok(match group {
        1 => Launch::flat(&kernel, args, rows.count(), cx.group()),
        _ => Launch { kernel, args, global: [rows.count() * group, 1, 1], local: Some([group, 1, 1]) },
    })
}

fn groups(site: &Site<'_>, op: &norm::GroupNormalization) -> Result<Option<Built>> {
    let (x, cx) = (&site.inputs[0], site.cx);
    let count = usize::try_from(op.num_groups).ok().filter(|g| *g > 0);
    let floats = site.inputs[1..3].iter().all(Port::is_f32);
    let Some(count) = count.filter(|_| floats && x.rank() >= 2 && site.epilogue.is_empty() && x.len() > 0) else {
        return Ok(None);
    };
    let (batch, channels) = (x.shape[0], x.shape[1]);
    if !channels.is_multiple_of(count) {
        return Ok(None);
    }
    let (inner, pixels) = (channels / count, x.len() / (batch * channels));
    let last = x.layout == Layout::CHANNELS_LAST && x.rank() > 2;
    let rows = Rows(if last { [batch, pixels, count, inner] } else { [batch * count, inner * pixels, 1, 1] });
    let layout = if last { Layout::CHANNELS_LAST } else { Layout::PLAIN };
    let mut reads = vec![(0, cx.form(x, layout))];
    let vectors = vec![vector(site, 1, &mut reads)?, vector(site, 2, &mut reads)?];
    let columns = (if last { 1 } else { pixels }, channels);
    let launch = launch(site, Function::Variance, op.epsilon, rows, [1, 1], vectors, columns, &Ending::none())?;
    let output = cx.form(&site.outputs[0], layout);
    Ok(Some(Launches::new("group_norm", vec![launch]).built(reads, [output])))
}

fn lrn(site: &Site<'_>, op: &norm::Lrn) -> Result<Built> {
    let (x, cx) = (&site.inputs[0], site.cx);
    let reach = usize::try_from((op.size - 1) / 2).unwrap_or(0).min(x.shape[1]);
    let kernel = cx.kernel(&Source("lrn.cl"), "lrn", &[])?;
    let mut args = vec![Arg::Read(0), Arg::Write(0), x.len().into(), column_step(x, x.layout, 1).into()];
    args.extend([x.shape[1].into(), reach.into(), Arg::Float(op.alpha / op.size as f32)]);
    args.extend([op.beta, op.bias].map(Arg::Float));
    let launch = Launch::flat(&kernel, args, x.len(), cx.group());
    let form = |p: &Port| cx.form(p, x.layout);
    Ok(Launches::new("lrn", vec![launch]).built([(0, form(x))], [form(&site.outputs[0])]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_beside_each_other_are_one_run() {
        assert_eq!(Rows::of(&[2, 3, 4, 5], &[2, 3]), Some(Rows([6, 20, 1, 1])));
        assert_eq!(Rows::of(&[2, 3, 4, 5], &[1]), Some(Rows([2, 3, 20, 1])));
        assert_eq!(Rows::of(&[2, 3, 4, 5], &[0, 2]), None);
        assert_eq!(Rows::of(&[1, 3, 4, 5], &[1, 3]), Some(Rows([1, 3, 4, 5])));
    }
}
