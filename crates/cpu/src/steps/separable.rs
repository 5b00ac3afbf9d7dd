//! A depthwise convolution with the pointwise ones before and behind it, or a pool behind it, as one step, see
//! `plan/src/lower/separable.rs`.

use super::conv::{attrs_of, shape_of};
use super::epilogue::StepEpilogue;
use super::{Built, Cpu, Io, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::Result;
use carafe_kernels::{Behind, Epilogue, Gemm, Machine, Separable, Stage};
use carafe_ops::convolution::GroupConvolution;
use carafe_ops::pooling::MaxPool;
use carafe_plan::{Before, Layout, Operand, RowStrides, Windows};
use carafe_tensor::Tensor;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct SeparableStep {
    kernel: Arc<Separable>,
    /// The pointwise convolution before, the depthwise one, the pointwise one behind.
    stages: [Option<Convolved>; 3],
    pooled: bool,
    /// Channels of the input and of the output, and floats from pixel to pixel.
    channels: [usize; 2],
    strides: [usize; 2],
}

/// A convolution of the step.
#[derive(Clone, Debug)]
struct Convolved {
    weights: Packed,
    channels: usize,
    epilogue: StepEpilogue,
}

impl SeparableStep {
    fn last(&self) -> &StepEpilogue {
        let [_, depthwise, behind] = &self.stages;
        let last = behind.as_ref().or(depthwise.as_ref());
        &last.unwrap_or_else(|| unreachable!("there is a depthwise convolution")).epilogue
    }
}

impl Step<Cpu> for SeparableStep {
    fn kernel(&self) -> String {
        let names = ["conv_gemm", "conv_depthwise", "conv_gemm"];
        let each = names
            .iter()
            .zip(&self.stages)
            .filter_map(|(name, s)| Some(format!("{name}{}", s.as_ref()?.epilogue.name())));
        each.chain(self.pooled.then(|| "pool_max".into())).collect::<Vec<_>>().join("+")
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(0) => row == self.channels[0],
            Operand::Read(i) => self.last().is_matrix(i) && row == self.channels[1],
            Operand::Write(_) => row == self.channels[1],
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let mut step = self.clone();
        step.strides = [strides.read(0, self.channels[0]), strides.write(0, self.channels[1])];
        for stage in step.stages.iter_mut().flatten() {
            stage.epilogue = stage.epilogue.with_strides(strides);
        }
        Some(Arc::new(step))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let [from, to] = self.strides;
        let none = StepEpilogue::default();
        let [before, depthwise, behind] = &self.stages;
        let [a, b, c] = self.stages.each_ref().map(|s| s.as_ref().map_or((&none, 0), |s| (&s.epilogue, s.channels)));
        a.0.with(&io, a.1, |first| {
            b.0.with(&io, b.1, |second| {
                c.0.with(&io, c.1, |third| {
                    let stages = [stage(before, first), stage(depthwise, second), stage(behind, third)];
                    self.kernel.run(io.exec, (io.input(0), from), stages, (out, to));
                });
            });
        });
        Ok(())
    }
}

fn stage<'a>(of: &'a Option<Convolved>, epilogue: &'a Epilogue<'a>) -> Option<Stage<'a>> {
    of.as_ref().map(|s| Stage { weights: s.weights.as_slice(), epilogue })
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(near) = site.before else { return Ok(None) };
    // Each as a site of its own, and where its inputs begin among those of the step.
    let inner = site_before(site, near);
    let innermost = near.before().map(|far| (site_before(&inner, far), near.first_input + far.first_input));
    let innermost = innermost.as_ref().map(|(far, at)| (far, *at));
    let pooled = site.op.is::<MaxPool>();
    let (before, depthwise, behind) = match (near.op().is::<GroupConvolution>(), innermost) {
        (true, before) => (before, (&inner, near.first_input), (!pooled).then_some((site, 0))),
        (false, None) => (Some((&inner, near.first_input)), (site, 0), None),
        (false, Some(_)) => return Ok(None),
    };
    let Some(op) = depthwise.0.op.get::<GroupConvolution>() else { return Ok(None) };
    let attrs = attrs_of(&op.strides, &op.dilations, &op.pads_begin, &op.pads_end, op.auto_pad);
    let ports = [&depthwise.0.inputs[0], &depthwise.0.inputs[1], &depthwise.0.outputs[0]];
    let Some(shape) = shape_of(ports, &attrs, true) else { return Ok(None) };
    if !Separable::fits(&shape) {
        return Ok(None);
    }
    let (data, from) = before.unwrap_or(depthwise);
    let ins = data.inputs[0].shape[1];
    let last = match (behind, pooled) {
        (Some(_), _) => Behind::Mixed(site.outputs[0].shape[1]),
        (None, true) => match window(site) {
            Some(window) => Behind::Pooled(window),
            None => return Ok(None),
        },
        (None, false) => Behind::Nothing,
    };
    let kernel = Separable::new(site.cx.isa, site.cx.threads, shape, before.map(|_| ins), last);
    // Each thread has some rows of an image, and what it keeps of them fits its cache.
    let near = floats(kernel.scratch_floats()) <= Machine::here().l2;
    if !near || shape.batch * site.outputs[0].shape[2] < site.cx.threads {
        return Ok(None);
    }
    let mut reads = vec![(from, Layout::CHANNELS_LAST)];
    let mut stages = [None, None, None];
    for (i, part) in [before, Some(depthwise), behind].into_iter().enumerate() {
        let Some((one, at)) = part else { continue };
        let Some(weights) = &one.inputs[1].constant else { return Ok(None) };
        if !one.inputs[0].is_f32() || one.inputs[1].rank() != one.inputs[0].rank() + usize::from(i == 1) {
            return Ok(None);
        }
        let read = reads.len();
        let Some(epilogue) = StepEpilogue::of(one, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
        reads[read..].iter_mut().for_each(|(i, _)| *i += at);
        if epilogue.light().is_none() && i < 2 {
            return Ok(None);
        }
        let pointwise = |gemm: &Gemm| {
            one.cx.packed("separable", &[weights], gemm.packed_floats(), |to| {
                packing(weights, |data| gemm.pack(one.cx.packers.exec().as_ref(), data, true, to))
            })
        };
        let weights = match (i, kernel.spread(), kernel.mixed()) {
            (0, Some(gemm), _) | (2, _, Some(gemm)) => pointwise(gemm)?,
            _ => {
                let (form, depthwise) = (format!("{:?}", shape.kernel), kernel.depthwise());
                one.cx.packed(
                    &format!("depthwise|{form}x{:?}", shape.groups),
                    &[weights],
                    depthwise.packed_floats(),
                    |to| packing(weights, |data| depthwise.pack(data, to)),
                )?
            }
        };
        stages[i] = Some(Convolved { weights, channels: one.outputs[0].shape[1], epilogue });
    }
    let channels = [ins, site.outputs[0].shape[1]];
    let step = SeparableStep { kernel: Arc::new(kernel), stages, pooled, channels, strides: channels };
    Ok(Some(Built::step(step, reads, Layout::CHANNELS_LAST)))
}

/// Height and width of the windows of a pool that gives the largest numbers alone, of windows that touch each other.
fn window(site: &Site<'_>) -> Option<[usize; 2]> {
    let (windows, _) = Windows::of_pool(site.op, &site.inputs[0].shape, &site.outputs[0].shape)?;
    let Windows { input, output, kernel, stride, dilation, padded, .. } = windows;
    let whole = (0..3).all(|i| output[i] == input[i] / kernel[i]);
    let alone = site.epilogue.is_empty() && site.wanted.iter().skip(1).all(|wanted| !wanted);
    (alone && whole && !padded && kernel == stride && dilation == [1; 3] && kernel[0] == 1)
        .then_some([kernel[1], kernel[2]])
}

/// The convolution before that of a site, as a site of its own.
fn site_before<'a>(site: &Site<'a>, before: &'a Before) -> Site<'a> {
    Site {
        op: before.op(),
        inputs: site.inputs[before.first_input..].to_vec(),
        own_inputs: before.own_inputs(),
        outputs: vec![site.inputs[0].clone()],
        wanted: vec![true],
        epilogue: before.epilogue(),
        orders: &[],
        out_order: None,
        group: false,
        before: None,
        precision: site.precision,
        cx: site.cx,
    }
}

fn packing(tensor: &Tensor, pack: impl FnOnce(&[f32])) -> Result<()> {
    pack(&floats_of(tensor)?);
    tensor.release();
    Ok(())
}
