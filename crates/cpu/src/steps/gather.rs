//! Gathers and scatters: elements that are read or written at indices, which come while running.

use super::strided_views::size_of;
use super::types::{indices, is_index, is_number, with_type};
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use carafe_graph::{Error, Result, normalize_axis};
use carafe_kernels::movement::{self as kernels, BadIndex};
use carafe_ops::indexing::{
    Gather, GatherElements, GatherND, GatherNDV5, Reduction, ScatterElementsUpdate, ScatterNDUpdate, ScatterUpdate,
};
use carafe_plan::Layout;
use carafe_tensor::ElementType;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.len() < 2 || !is_index(site.inputs[1].ty) {
        return Ok(None);
    }
    let op = site.op;
    Ok(if let Some(op) = op.get::<Gather>() {
        gather(site, op.batch_dims)
    } else if let Some(op) = op.get::<GatherElements>() {
        gather_elements(site, op.axis)
    } else if let Some(op) = op.get::<GatherND>() {
        Some(gather_nd(site, op.batch_dims))
    } else if let Some(op) = op.get::<GatherNDV5>() {
        // It joins batch axes, which the current version does not.
        Some(gather_nd(site, op.batch_dims))
    } else if let Some(op) = op.get::<ScatterElementsUpdate>() {
        scatter_elements(site, op.reduction, op.use_init_val)
    } else if let Some(op) = op.get::<ScatterNDUpdate>() {
        scatter_nd(site, op.reduction)
    } else if op.is::<ScatterUpdate>() {
        scatter_update(site)
    } else {
        None
    })
}

fn refused(bad: BadIndex) -> Error {
    Error::invalid(bad.to_string())
}

fn axis_of(site: &Site<'_>, input: usize, rank: usize) -> Option<usize> {
    normalize_axis(*site.inputs[input].ints()?.first()?, rank).ok()
}

#[derive(Debug)]
struct Taken {
    kernel: Take,
    index: ElementType,
}

#[derive(Debug)]
enum Take {
    Slices(kernels::Gather),
    Elements(kernels::GatherElements),
    Tuples(kernels::GatherNd),
}

impl Step<Cpu> for Taken {
    fn kernel(&self) -> String {
        match self.kernel {
            Take::Slices(_) => "gather".into(),
            Take::Elements(_) => "gather_elements".into(),
            Take::Tuples(_) => "gather_nd".into(),
        }
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (data, list) = (io.inputs[0], indices(io, 1, self.index));
        let out = &mut *io.outputs[0];
        match &self.kernel {
            Take::Slices(k) => k.run(io.exec, data, list, out),
            Take::Elements(k) => k.run(io.exec, data, list, out).map_err(refused)?,
            Take::Tuples(k) => k.run(io.exec, data, list, out).map_err(refused)?,
        }
        Ok(())
    }
}

fn gather(site: &Site<'_>, batch_dims: i64) -> Option<Built> {
    let (data, list) = (&site.inputs[0], &site.inputs[1]);
    let axis = axis_of(site, 2, data.rank())?;
    let batch = if batch_dims < 0 { batch_dims + list.rank() as i64 } else { batch_dims };
    let batch = usize::try_from(batch).ok()?;
    // A list of indices keeps the number of axes, and with it the layout.
    let layout = if list.rank() == 1 && batch == 0 { data.layout } else { Layout::PLAIN };
    let dims = layout.dims(&data.shape);
    let kernel = kernels::Gather::new(&dims, &list.shape, layout.axis(axis, data.rank()), batch, size_of(data));
    let step = Taken { kernel: Take::Slices(kernel), index: list.ty };
    Some(Built::step(step, vec![(0, layout), (1, Layout::PLAIN)], layout))
}

fn gather_elements(site: &Site<'_>, axis: i64) -> Option<Built> {
    let (data, list) = (&site.inputs[0], &site.inputs[1]);
    let axis = normalize_axis(axis, data.rank()).ok()?;
    let layout = data.layout;
    let (dims, wanted) = (layout.dims(&data.shape), layout.dims(&list.shape));
    let kernel = kernels::GatherElements::new(&dims, &wanted, layout.axis(axis, data.rank()), size_of(data));
    let step = Taken { kernel: Take::Elements(kernel), index: list.ty };
    Some(Built::step(step, vec![(0, layout), (1, layout)], layout))
}

fn gather_nd(site: &Site<'_>, batch_dims: usize) -> Built {
    let (data, list) = (&site.inputs[0], &site.inputs[1]);
    let kernel = kernels::GatherNd::new(&data.shape, &list.shape, batch_dims, size_of(data));
    let step = Taken { kernel: Take::Tuples(kernel), index: list.ty };
    Built::step(step, vec![(0, Layout::PLAIN), (1, Layout::PLAIN)], Layout::PLAIN)
}

/// The data with updates at indices; joined with numbers of type `ty` where `how` says so.
#[derive(Debug)]
struct Put {
    kernel: PutKernel,
    index: ElementType,
    ty: ElementType,
    how: kernels::Reduction,
    keep_initial: bool,
}

#[derive(Debug)]
enum PutKernel {
    Slices(kernels::ScatterUpdate),
    Elements(kernels::ScatterElements),
    Tuples(kernels::ScatterNd),
}

impl Step<Cpu> for Put {
    fn kernel(&self) -> String {
        match self.kernel {
            PutKernel::Slices(_) => "scatter".into(),
            PutKernel::Elements(_) => "scatter_elements".into(),
            PutKernel::Tuples(_) => "scatter_nd".into(),
        }
    }
    fn scratch_bytes(&self) -> usize {
        floats(match &self.kernel {
            _ if self.how == kernels::Reduction::None => 0,
            PutKernel::Slices(_) | PutKernel::Tuples(_) => 0,
            PutKernel::Elements(k) => k.scratch_floats(),
        })
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let list = indices(io, 1, self.index);
        let (data, updates, exec) = (io.inputs[0], io.inputs[2], io.exec);
        if self.how == kernels::Reduction::None {
            let out = &mut *io.outputs[0];
            return match &self.kernel {
                PutKernel::Slices(k) => k.run(exec, data, list, updates, out),
                PutKernel::Elements(k) => k.run(exec, data, list, updates, out),
                PutKernel::Tuples(k) => k.run(exec, data, list, updates, out),
            }
            .map_err(refused);
        }
        with_type!(self.ty, T => {
            let (data, updates) = (io.input::<T>(0), io.input::<T>(2));
            let workspace = std::mem::take(&mut io.workspace);
            let out = io.output::<T>(0);
            match &self.kernel {
                PutKernel::Elements(k) => k.run_joined(exec, data, list, updates, self.how, self.keep_initial, out),
                PutKernel::Tuples(k) => {
                    // Nothing at all has no address to speak of.
                    let words = if workspace.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(workspace) };
                    k.run_joined(exec, data, list, updates, self.how, words, out)
                }
                PutKernel::Slices(_) => Ok(()),
            }
        })
        .map_err(refused)
    }
}

impl Put {
    fn new(site: &Site<'_>, kernel: PutKernel, how: Reduction, keep_initial: bool) -> Option<Put> {
        let ty = site.inputs[0].ty;
        (how == Reduction::None || is_number(ty)).then(|| {
            let how = reduction(how, ty == ElementType::Boolean);
            Put { kernel, index: site.inputs[1].ty, ty, how, keep_initial }
        })
    }
}

// Booleans are joined bit by bit.
fn reduction(how: Reduction, boolean: bool) -> kernels::Reduction {
    use kernels::Reduction as R;
    match how {
        Reduction::None => R::None,
        Reduction::Sum | Reduction::Max if boolean => R::Or,
        Reduction::Prod | Reduction::Min if boolean => R::And,
        Reduction::Sub if boolean => R::Xor,
        Reduction::Sum => R::Sum,
        Reduction::Sub => R::Sub,
        Reduction::Prod => R::Prod,
        Reduction::Min => R::Min,
        Reduction::Max => R::Max,
        Reduction::Mean => R::Mean,
    }
}

fn scatter_elements(site: &Site<'_>, how: Reduction, keep_initial: bool) -> Option<Built> {
    let (data, list) = (&site.inputs[0], &site.inputs[1]);
    let axis = axis_of(site, 3, data.rank())?;
    let beyond = |a: usize| a != axis && list.shape[a] > data.shape[a];
    if (0..data.rank()).any(beyond) || list.shape != site.inputs[2].shape {
        return None;
    }
    let layout = data.layout;
    let (dims, wanted) = (layout.dims(&data.shape), layout.dims(&list.shape));
    let kernel = kernels::ScatterElements::new(&dims, &wanted, layout.axis(axis, data.rank()), size_of(data));
    let step = Put::new(site, PutKernel::Elements(kernel), how, keep_initial)?;
    Some(Built::step(step, vec![(0, layout), (1, layout), (2, layout)], layout))
}

fn scatter_nd(site: &Site<'_>, how: Reduction) -> Option<Built> {
    let (data, list) = (&site.inputs[0], &site.inputs[1]);
    let kernel = kernels::ScatterNd::new(&data.shape, &list.shape, size_of(data));
    let words = if how == Reduction::None { 0 } else { kernel.workspace_words()? };
    let step = Put::new(site, PutKernel::Tuples(kernel), how, true)?;
    let built = Built::step(step, (0..3).map(|i| (i, Layout::PLAIN)), Layout::PLAIN);
    Some(built.with_workspace(words.checked_mul(4)?))
}

fn scatter_update(site: &Site<'_>) -> Option<Built> {
    let (data, list): (&Port, &Port) = (&site.inputs[0], &site.inputs[1]);
    let axis = axis_of(site, 3, data.rank())?;
    let layout = if list.rank() == 1 { data.layout } else { Layout::PLAIN };
    let dims = layout.dims(&data.shape);
    let kernel = kernels::ScatterUpdate::new(&dims, list.len(), layout.axis(axis, data.rank()), size_of(data));
    let step = Put::new(site, PutKernel::Slices(kernel), Reduction::None, true)?;
    Some(Built::step(step, vec![(0, layout), (1, Layout::PLAIN), (2, layout)], layout))
}
