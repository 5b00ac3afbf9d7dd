//! Images sampled between their pixels, at points that are data: GridSample and DeformableConvolution.

use super::conv::{attrs_of, shape_of};
use super::epilogue::StepEpilogue;
use super::{Built, Cpu, Io, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::Result;
use carafe_kernels::{Deformable, DeformableShape, Moves, SampleMode, SamplePadding};
use carafe_ops::convolution::DeformableConvolution;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode as Mode};
use carafe_plan::{Layout, Operand, RowStrides};
use std::sync::Arc;

const LAST: Layout = Layout::CHANNELS_LAST;

/// Planes of at most so many channels are sampled where they lie; more are brought side by side first.
const FEW: usize = 16;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group {
        return Ok(None);
    }
    if let Some(op) = site.op.get::<GridSample>() {
        return Ok(grid(site, op));
    }
    deformable(site)
}

#[derive(Debug)]
struct GridStep {
    kernel: carafe_kernels::GridSample,
    planes: bool,
}

impl Step<Cpu> for GridStep {
    fn kernel(&self) -> String {
        let form = if self.planes { "planes" } else { "pixels" };
        format!("grid_sample_{form}")
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let (data, grid) = (io.input(0), io.input(1));
        match self.planes {
            true => self.kernel.run_planes(io.exec, data, grid, out),
            false => self.kernel.run_pixels(io.exec, data, grid, out),
        }
        Ok(())
    }
}

fn grid(site: &Site<'_>, op: &GridSample) -> Option<Built> {
    let (&[batch, channels, height, width], &[_, _, rows, columns]) =
        (&site.inputs[0].shape[..], &site.outputs[0].shape[..])
    else {
        return None;
    };
    let float = site.inputs[..2].iter().all(|p| p.is_f32());
    if !float || !site.epilogue.is_empty() || !carafe_kernels::GridSample::fits(height, width) {
        return None;
    }
    let kernel = carafe_kernels::GridSample {
        batch,
        channels,
        height,
        width,
        points: rows * columns,
        mode: match op.mode {
            Mode::Nearest => SampleMode::Nearest,
            Mode::Bilinear => SampleMode::Bilinear,
            Mode::Bicubic => SampleMode::Bicubic,
        },
        padding: match op.padding_mode {
            PaddingMode::Zeros => SamplePadding::Zeros,
            PaddingMode::Border => SamplePadding::Border,
            PaddingMode::Reflection => SamplePadding::Reflection,
        },
        align_corners: op.align_corners,
    };
    let planes = site.layout(0) == Layout::PLAIN && channels <= FEW;
    let layout = if planes { Layout::PLAIN } else { LAST };
    Some(Built::step(GridStep { kernel, planes }, vec![(0, layout), (1, Layout::PLAIN)], layout))
}

#[derive(Clone, Debug)]
struct DeformableStep {
    kernel: Deformable,
    weights: Packed,
    masked: bool,
    /// Which of offsets and mask lie channels last.
    last: [bool; 2],
    /// Floats from pixel to pixel of the input and of the output.
    strides: [usize; 2],
    epilogue: StepEpilogue,
}

impl DeformableStep {
    fn channels(&self) -> [usize; 2] {
        let conv = &self.kernel.shape().conv;
        [conv.in_channels, conv.out_channels]
    }
}

impl Step<Cpu> for DeformableStep {
    fn kernel(&self) -> String {
        format!("conv_deformable{}", self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        let [ins, outs] = self.channels();
        match operand {
            Operand::Read(0) => row == ins,
            Operand::Read(i) => self.epilogue.is_matrix(i) && row == outs,
            Operand::Write(_) => row == outs,
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let [ins, outs] = self.channels();
        let epilogue = self.epilogue.with_strides(strides);
        let strides = [strides.read(0, ins), strides.write(0, outs)];
        Some(Arc::new(DeformableStep { strides, epilogue, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        let (out, io) = io.take_output(0);
        let moves = Moves {
            offsets: io.input(1),
            offsets_last: self.last[0],
            mask: self.masked.then(|| io.input(2)),
            mask_last: self.last[1],
        };
        self.epilogue.with(&io, self.channels()[1], |epilogue| {
            self.kernel.run(io.exec, io.input(0), from, moves, self.weights.as_slice(), out, to, epilogue);
        });
        Ok(())
    }
}

fn deformable(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(shape) = deformable_shape(site) else { return Ok(None) };
    let Some(tensor) = &site.inputs[2].constant else { return Ok(None) };
    let masked = site.own_inputs == 4;
    let mut reads = vec![(0, LAST), (1, site.layout(1))];
    if masked {
        reads.push((3, site.layout(3)));
    }
    let Some(epilogue) = StepEpilogue::of(site, 1, LAST, &mut reads) else { return Ok(None) };
    let kernel = Deformable::new(site.cx.isa, site.cx.threads, shape);
    let form = format!("deformable|{:?}|{}", shape.conv.kernel, shape.conv.groups);
    let weights = site.cx.packed(&form, &[tensor], kernel.packed_floats(), |to| {
        kernel.pack(site.cx.packers.exec().as_ref(), &floats_of(tensor)?, to);
        tensor.release();
        Ok(())
    })?;
    let last = [site.layout(1) == LAST, masked && site.layout(3) == LAST];
    let strides = [shape.conv.in_channels, shape.conv.out_channels];
    Ok(Some(Built::step(DeformableStep { kernel, weights, masked, last, strides, epilogue }, reads, LAST)))
}

fn deformable_shape(site: &Site<'_>) -> Option<DeformableShape> {
    let op = site.op.get::<DeformableConvolution>()?;
    let attrs = attrs_of(&op.strides, &op.dilations, &op.pads_begin, &op.pads_end, op.auto_pad);
    let (groups, moves, fades) = (op.group, op.deformable_group, op.bilinear_interpolation_pad);
    let own = &site.inputs[..site.own_inputs];
    if own.iter().any(|p| !p.is_f32() || p.rank() != 4 || p.len() == 0) {
        return None;
    }
    let mut conv = shape_of([&own[0], &own[2], &site.outputs[0]], &attrs, false)?;
    conv.groups = usize::try_from(groups).ok()?;
    Some(DeformableShape { conv, moves: usize::try_from(moves).ok()?, fades })
}
