//! Work along rows: softmax, reductions, normalisations. Axes are looked for where they lie, so either layout will do as
//! long as the rows come out whole.

use super::{Built, Cpu, Io, Port, Site, Step, floats, half};
use carafe_graph::{Error, Op, Result, normalize_axis};
use carafe_kernels::Halves;
use carafe_kernels::norm::{GroupNorm, Lrn, NormKind, PartedNorm, RowNorm, RowsIn, RowsOut};
use carafe_kernels::reduce::{Reduce, Reduction};
use carafe_kernels::softmax::Softmax;
use carafe_ops::activation as act;
use carafe_ops::carafe::RmsNorm;
use carafe_ops::normalization as norm;
use carafe_ops::reduce as red;
use carafe_plan::elementwise::{Binary, Elt};
use carafe_plan::{ElementwiseOp, Form, Layout, Source};

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.inputs.first().is_some_and(Port::is_f32) || !site.outputs[0].is_f32() {
        return Ok(None);
    }
    Ok(softmax(site).or_else(|| reduce(site)).or_else(|| normalize(site)))
}

/// What a step of this file does.
#[derive(Debug)]
enum Rows {
    Softmax(Softmax, &'static str),
    Reduce(Reduce),
    /// The same of numbers of 16 bits.
    HalfReduce(Reduce, Halves),
    /// With the positions of a factor and a term among the reads.
    Norm(RowNorm, Option<usize>, Option<usize>),
    /// The same where rows are read or written as numbers of 16 bits.
    HalfNorm(RowNorm, [Option<usize>; 2], Narrow),
    Groups(GroupNorm, usize, Option<usize>, Option<usize>),
    Parted(PartedNorm),
    Lrn(Lrn),
}

/// The types of 16 bits that rows are read and written in, where they are.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    from: Option<Halves>,
    to: Option<Halves>,
}

impl Step<Cpu> for Rows {
    fn kernel(&self) -> String {
        match self {
            Rows::Softmax(_, name) => (*name).into(),
            Rows::Reduce(_) | Rows::HalfReduce(..) => "reduce".into(),
            Rows::Norm(..) | Rows::HalfNorm(..) => "row_norm".into(),
            Rows::Groups(..) => "group_norm".into(),
            Rows::Parted(_) => "parted_norm".into(),
            Rows::Lrn(_) => "lrn".into(),
        }
    }
    fn scratch_bytes(&self) -> usize {
        floats(match self {
            Rows::Groups(kernel, threads, ..) => kernel.scratch_floats(*threads),
            _ => 0,
        })
    }
    fn runs_in_place(&self, read: usize) -> bool {
        read == 0 && matches!(self, Rows::Softmax(..) | Rows::Norm(..))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        if let Rows::HalfNorm(kernel, [gamma, beta], narrow) = self {
            let (out, io) = io.take_output::<u8>(0);
            let x = match narrow.from {
                Some(halves) => RowsIn::Half(halves, io.input(0)),
                None => RowsIn::F32(io.input(0)),
            };
            let out = match narrow.to {
                Some(halves) => RowsOut::Half(halves, bytemuck::cast_slice_mut(out)),
                None => RowsOut::F32(bytemuck::cast_slice_mut(out)),
            };
            kernel.run_halves(io.exec, x, gamma.map(|i| io.input(i)), beta.map(|i| io.input(i)), out);
            return Ok(());
        }
        if let Rows::HalfReduce(kernel, halves) = self {
            let (out, io) = io.take_output(0);
            kernel.run_halves(io.exec, *halves, io.input(0), out);
            return Ok(());
        }
        let (out, io) = io.take_output(0);
        let (exec, x) = (io.exec, io.input(0));
        let vector = |position: &Option<usize>| position.map(|i| io.input(i));
        if io.in_place.is_some() {
            match self {
                Rows::Softmax(kernel, _) => kernel.run_in_place(exec, out, None),
                Rows::Norm(kernel, gamma, beta) => kernel.run_in_place(exec, out, vector(gamma), vector(beta)),
                _ => return Err(Error::invalid("this step cannot work in place")),
            }
            return Ok(());
        }
        match self {
            Rows::Softmax(kernel, _) => kernel.run(exec, x, out),
            Rows::Reduce(kernel) => kernel.run(exec, x, out),
            Rows::Norm(kernel, gamma, beta) => kernel.run(exec, x, vector(gamma), vector(beta), out),
            Rows::HalfNorm(..) | Rows::HalfReduce(..) => {}
            Rows::Groups(kernel, _, gamma, beta) => kernel.run(exec, x, vector(gamma), vector(beta), out),
            Rows::Parted(kernel) => kernel.run(exec, x, out),
            Rows::Lrn(kernel) => kernel.run(exec, x, out),
        }
        Ok(())
    }
}

// Sizes before, on and behind a run of axes.
fn around(dims: &[usize], first: usize, last: usize) -> [usize; 3] {
    [dims[..first].iter().product(), dims[first..=last].iter().product(), dims[last + 1..].iter().product()]
}

fn softmax(site: &Site<'_>) -> Option<Built> {
    let (axis, log) = if let Some(s) = site.op.get::<act::Softmax>() {
        (s.axis, false)
    } else {
        (site.op.get::<act::LogSoftmax>()?.axis, true)
    };
    let x = &site.inputs[0];
    let axis = normalize_axis(axis, x.rank()).ok()?;
    let position = x.layout.axis(axis, x.rank());
    let [outer, len, inner] = around(&x.layout.dims(&x.shape), position, position);
    let kernel = Softmax::new(outer, len, inner).log(log);
    let name = if log { "log_softmax" } else { "softmax" };
    Some(Built::step(Rows::Softmax(kernel, name), vec![(0, x.layout)], x.layout))
}

fn reduction_of(op: &dyn Op) -> Option<(Reduction, bool)> {
    macro_rules! table {
        ($($class:ident => $kind:ident),* $(,)?) => {
            $(if let Some(r) = op.get::<red::$class>() { return Some((Reduction::$kind, r.keep_dims)); })*
        };
    }
    table! {
        ReduceSum => Sum, ReduceMean => Mean, ReduceProd => Prod, ReduceMax => Max, ReduceMin => Min, ReduceL1 => L1,
        ReduceL2 => L2,
    }
    None
}

fn axes_of(port: &Port, rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = port.ints()?.into_iter().map(|a| normalize_axis(a, rank).ok()).collect::<Option<_>>()?;
    axes.sort_unstable();
    axes.dedup();
    Some(axes)
}

fn reduce(site: &Site<'_>) -> Option<Built> {
    let (kind, keep) = reduction_of(site.op)?;
    let x = &site.inputs[0];
    let rank = x.rank();
    let axes = axes_of(site.inputs.get(1)?, rank)?;
    if axes.is_empty() {
        return None;
    }
    // Without the folded axes what is left must lie in the order of the model.
    let kept: Vec<usize> = x.layout.order(rank).into_iter().filter(|a| !axes.contains(a)).collect();
    let layout = if keep || kept.is_sorted() { x.layout } else { Layout::PLAIN };
    let positions: Vec<usize> = axes.iter().map(|&a| layout.axis(a, rank)).collect();
    let kernel = Reduce::new(kind, &layout.dims(&x.shape), &positions);
    let out = if keep { layout } else { Layout::PLAIN };
    if let Some(halves) = half::of(x.stored) {
        let reads = vec![(0, Form::typed(layout, x.stored))];
        return Some(Built::step(Rows::HalfReduce(kernel, halves), reads, out));
    }
    Some(Built::step(Rows::Reduce(kernel), vec![(0, layout)], out))
}

fn normalize(site: &Site<'_>) -> Option<Built> {
    let (op, x) = (site.op, &site.inputs[0]);
    let rank = x.rank();
    let axes = || axes_of(site.inputs.get(1)?, rank);
    if let Some(n) = op.get::<norm::Mvn>() {
        let kind = match (n.normalize_variance, n.eps_mode) {
            (false, _) => NormKind::MeanOnly,
            (true, norm::mvn::EpsMode::InsideSqrt) => NormKind::Variance { eps: n.eps },
            (true, norm::mvn::EpsMode::OutsideSqrt) => NormKind::Deviation { eps: n.eps },
        };
        return over(site, kind, &axes()?, None);
    }
    if let Some(n) = op.get::<norm::NormalizeL2>() {
        let kind = match n.eps_mode {
            norm::normalize_l2::EpsMode::Add => NormKind::L2Add { eps: n.eps },
            norm::normalize_l2::EpsMode::Max => NormKind::L2Max { eps: n.eps },
        };
        return over(site, kind, &axes()?, None);
    }
    if let Some(n) = op.get::<RmsNorm>() {
        let gamma = (site.own_inputs > 2).then_some(2);
        return over(site, NormKind::Rms { eps: n.eps }, &axes()?, gamma);
    }
    if let Some(n) = op.get::<norm::GroupNormalization>() {
        if rank < 3 || !site.inputs[1].is_f32() || !site.inputs[2].is_f32() {
            return None;
        }
        let (batch, channels) = (x.shape[0], x.shape[1]);
        let pixels = x.shape[2..].iter().product();
        let groups = usize::try_from(n.num_groups).ok().filter(|g| *g > 0 && channels % g == 0)?;
        let kernel = GroupNorm::new(NormKind::Variance { eps: n.epsilon }, batch, pixels, channels, groups);
        let reads = vec![(0, Layout::CHANNELS_LAST), (1, Layout::PLAIN), (2, Layout::PLAIN)];
        let step = Rows::Groups(kernel, site.cx.threads, Some(1), Some(2));
        return Some(Built::step(step, reads, Layout::CHANNELS_LAST).taking(0));
    }
    if let Some(n) = op.get::<norm::Lrn>() {
        let size = usize::try_from(n.size).ok().filter(|s| (1..=513).contains(s))?;
        let ([1], true) = (&axes()?[..], rank > 2) else { return None };
        let channels = x.shape[1];
        let kernel = Lrn::new(x.len() / channels, channels, size, n.alpha, n.beta, n.bias);
        return Some(Built::step(Rows::Lrn(kernel), vec![(0, Layout::CHANNELS_LAST)], Layout::CHANNELS_LAST).taking(0));
    }
    None
}

// A normalisation over axes: rows when they lie last, groups of channels when all pixels are among them.
fn over(site: &Site<'_>, kind: NormKind, axes: &[usize], gamma: Option<usize>) -> Option<Built> {
    let x = &site.inputs[0];
    let rank = x.rank();
    let first = *axes.first()?;
    let whole = axes.iter().copied().eq(first..rank);
    let spatial = rank > 2 && whole && (first == 2 || first == 1);
    let by_groups = spatial && x.layout == Layout::CHANNELS_LAST && gamma.is_none();
    if by_groups && has_mean(kind) {
        let pixels = x.shape[2..].iter().product();
        let groups = if first == 2 { x.shape[1] } else { 1 };
        let kernel = GroupNorm::new(kind, x.shape[0], pixels, x.shape[1], groups);
        let step = Rows::Groups(kernel, site.cx.threads, None, None);
        return Some(Built::step(step, vec![(0, x.layout)], x.layout).taking(0));
    }
    let layout = match axes {
        [1] if rank > 2 && x.layout == Layout::CHANNELS_LAST => Layout::CHANNELS_LAST,
        _ if whole => Layout::PLAIN,
        [1] if rank > 2 => Layout::CHANNELS_LAST,
        _ if gamma.is_some() => return None,
        _ => return [x.layout, Layout::PLAIN].into_iter().find_map(|layout| anywhere(site, kind, axes, layout)),
    };
    let len: usize = axes.iter().map(|&a| x.shape[a]).product();
    let mut reads = vec![(0, layout)];
    let (mut factor, mut term, mut taken) = (None, None, 0);
    if let Some(i) = gamma {
        // One number a column, or the factor waits for its turn.
        let port = &site.inputs[i];
        if port.len() != len || layout != Layout::PLAIN || !port.shape.iter().product::<usize>().eq(&len) {
            return None;
        }
        reads.push((i, Layout::PLAIN));
        factor = Some(reads.len() - 1);
    }
    // A factor and a term behind it that are one number a column too.
    let columns = |post: &ElementwiseOp, k: usize, wanted: Binary| {
        let (Elt::Binary(b), [a, b2]) = (post.elt, &post.sources[..]) else { return None };
        let other = match (a, b2) {
            (Source::Result(r), Source::Input(i)) | (Source::Input(i), Source::Result(r)) if *r == k => *i,
            _ => return None,
        };
        let port = &site.inputs[other];
        let vector = port.len() == len && len == x.shape[rank - 1] && layout == Layout::PLAIN && axes.len() == 1;
        (b == wanted && vector && port.shape.last() == Some(&len)).then_some(other)
    };
    if let (None, Some(i)) = (factor, site.epilogue.first().and_then(|p| columns(p, 0, Binary::Multiply))) {
        reads.push((i, Layout::PLAIN));
        factor = Some(reads.len() - 1);
        taken = 1;
    }
    if let Some(i) = site.epilogue.get(taken).and_then(|p| columns(p, taken, Binary::Add)) {
        reads.push((i, Layout::PLAIN));
        term = Some(reads.len() - 1);
        taken += 1;
    }
    let kernel = RowNorm::new(kind, x.len() / len, len);
    let whole = taken == site.epilogue.len();
    let narrow = Narrow { from: half::of(x.stored), to: half::preferred(site).filter(|_| whole) };
    if narrow.from.is_none() && narrow.to.is_none() {
        return Some(Built::step(Rows::Norm(kernel, factor, term), reads, layout).taking(taken));
    }
    let form = |halves: Option<Halves>| Form { layout, ty: halves.map(half::type_of) };
    let mut reads: Vec<(usize, Form)> = reads.into_iter().map(|(i, layout)| (i, layout.into())).collect();
    reads[0].1 = form(narrow.from);
    let step = Rows::HalfNorm(kernel, [factor, term], narrow);
    Some(Built::step(step, reads, form(narrow.to)).taking(taken))
}

// A normalisation over any axes, as they lie: those next to each other that are kept, or not, count as one.
fn anywhere(site: &Site<'_>, kind: NormKind, axes: &[usize], layout: Layout) -> Option<Built> {
    let x = &site.inputs[0];
    let rank = x.rank();
    if x.len() == 0 {
        return None;
    }
    let positions: Vec<usize> = axes.iter().map(|&a| layout.axis(a, rank)).collect();
    // Sizes that are kept and folded by turns, kept ones first.
    let mut sizes = vec![1];
    for (position, &n) in layout.dims(&x.shape).iter().enumerate().filter(|(_, n)| **n != 1) {
        if positions.contains(&position) == sizes.len().is_multiple_of(2) {
            *sizes.last_mut()? *= n;
        } else {
            sizes.push(n);
        }
    }
    let groups = |batch: usize, folded: usize, kept: usize| {
        Rows::Groups(GroupNorm::new(kind, batch, folded, kept, kept), site.cx.threads, None, None)
    };
    let step = match sizes[..] {
        [rows] => Rows::Norm(RowNorm::new(kind, rows, 1), None, None),
        [rows, len] => Rows::Norm(RowNorm::new(kind, rows, len), None, None),
        [batch, folded, kept] if has_mean(kind) => groups(batch, folded, kept),
        [outer, parts, rows] => Rows::Parted(PartedNorm::new(kind, outer, parts, rows, 1)),
        [outer, parts, rows, len] => Rows::Parted(PartedNorm::new(kind, outer, parts, rows, len)),
        _ => return None,
    };
    Some(Built::step(step, vec![(0, layout)], layout).taking(0))
}

fn has_mean(kind: NormKind) -> bool {
    !matches!(kind, NormKind::Rms { .. } | NormKind::L2Add { .. } | NormKind::L2Max { .. })
}
