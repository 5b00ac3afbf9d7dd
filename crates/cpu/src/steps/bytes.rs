//! Elementwise work, means and products of numbers that are stored as bytes: floats while they are near, bytes in memory. A function of one
//! number on a grid is a table of 256 bytes.

use super::elements::{common_layout, fits_channels_last, program};
use super::epilogue::StepEpilogue;
use super::matmul::{Places, end_of_two, places};
use super::quantized::quantizer_of;
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use carafe_graph::{Result, normalize_axis};
use carafe_kernels::eltwise::{BytesElements, BytesInput, BytesOutput};
use carafe_kernels::reduce::{MOST_PIXELS, mean_bytes};
use carafe_kernels::{BytesMatMul, LONGEST_INTEGER_SUM, Numbers, Quantizer, map_bytes, map_bytes_in_place};
use carafe_ops::linear::MatMul;
use carafe_ops::reduce::ReduceMean;
use carafe_plan::elementwise::{aligned, names};
use carafe_plan::{Form, Grid, Layout};
use carafe_tensor::ElementType;

/// Inputs that a step takes.
const MOST: usize = 30;

/// Whether a value is floats to the model and bytes in memory.
pub(super) fn is_bytes(port: &Port) -> bool {
    port.stored == ElementType::U8 && port.is_f32() && port.grid.is_some()
}

/// A group of elementwise operations that reads bytes, or whose result lies on a grid.
pub(super) fn group(site: &Site<'_>) -> Result<Option<Built>> {
    let out = &site.outputs[0];
    let f32s = out.is_f32() && site.inputs.iter().all(|p| p.is_f32());
    if !f32s || site.inputs.len() >= MOST || !Numbers::U8I8.is_fast(site.cx.isa) {
        return Ok(None);
    }
    // Numbers are rounded as the operations say, and are steps then.
    let to = out.grid.filter(|_| out.wants_bytes).map(quantizer_of);
    if !site.inputs.iter().any(is_bytes) && to.is_none() {
        return Ok(None);
    }
    let (program, reads) = program(site.epilogue, None, &site.inputs);
    let layout = match reads.iter().all(|&i| fits_channels_last(&site.inputs[i], out)) {
        true => common_layout(site, &reads),
        false => Layout::PLAIN,
    };
    let form = |i: usize| {
        let port = &site.inputs[i];
        let own = if port.rank() == out.rank() { layout } else { Layout::PLAIN };
        Form { layout: own, ty: is_bytes(port).then_some(ElementType::U8) }
    };
    let forms: Vec<(usize, Form)> = reads.iter().map(|&i| (i, form(i))).collect();
    let name = format!("elementwise[{}]", names(site.epilogue));
    let output = Form { layout, ty: to.map(|_| ElementType::U8) };
    let first = &site.inputs[reads[0]];
    if let (Some(to), [_], true, true) = (to, &reads[..], is_bytes(first), first.shape == out.shape) {
        let Some(Grid { scale, zero }) = first.grid else { return Ok(None) };
        let table = program.table(site.cx.isa, scale, zero, &to);
        let built = Built::step(ByteTable { table: Box::new(table), name }, forms, output);
        return Ok(Some(built.with_precision(ElementType::U8)));
    }
    let dims: Vec<Vec<usize>> = reads.iter().map(|&i| layout.dims(&aligned(&site.inputs[i], out.rank()))).collect();
    let dims: Vec<&[usize]> = dims.iter().map(Vec::as_slice).collect();
    let Some(elements) = BytesElements::new(program, &layout.dims(&out.shape), &dims) else { return Ok(None) };
    let grids = reads.iter().map(|&i| site.inputs[i].grid.filter(|_| is_bytes(&site.inputs[i]))).collect();
    let built = Built::step(ByteGroup { elements, grids, to, name }, forms, output);
    Ok(Some(if to.is_some() { built.with_precision(ElementType::U8) } else { built }))
}

/// Each byte through a table.
#[derive(Debug)]
struct ByteTable {
    table: Box<[u8; 256]>,
    name: String,
}

impl Step<Cpu> for ByteTable {
    fn kernel(&self) -> String {
        self.name.replacen("elementwise", "table", 1)
    }
    fn runs_in_place(&self, read: usize) -> bool {
        read == 0
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (exec, in_place, from) = (io.exec, io.in_place, io.inputs[0]);
        let out: &mut [u8] = io.output(0);
        match in_place {
            Some(_) => map_bytes_in_place(exec, &self.table, out),
            None => map_bytes(exec, &self.table, from, out),
        }
        Ok(())
    }
}

/// Floats block by block.
#[derive(Debug)]
struct ByteGroup {
    elements: BytesElements,
    /// Of each input that is bytes.
    grids: Vec<Option<Grid>>,
    to: Option<Quantizer>,
    name: String,
}

impl Step<Cpu> for ByteGroup {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let mut inputs = [BytesInput::F32(&[]); MOST];
        for (i, (slot, grid)) in inputs.iter_mut().zip(&self.grids).enumerate() {
            *slot = match *grid {
                Some(Grid { scale, zero }) => BytesInput::U8 { data: io.inputs[i], scale, zero },
                None => BytesInput::F32(io.input(i)),
            };
        }
        let (bytes, io) = io.take_output::<u8>(0);
        let out = match self.to {
            Some(quantizer) => BytesOutput::U8(bytes, quantizer),
            None => BytesOutput::F32(bytemuck::cast_slice_mut(bytes)),
        };
        self.elements.run(io.exec, &inputs[..self.grids.len()], out);
        Ok(())
    }
}

/// The mean of each channel of an image of bytes.
#[derive(Debug)]
struct ByteMean {
    grid: Grid,
    /// Images, pixels, channels.
    size: [usize; 3],
}

/// A mean over all pixels.
pub(super) fn mean(site: &Site<'_>) -> Option<Built> {
    site.op.get::<ReduceMean>()?;
    let data = site.inputs.first().filter(|p| is_bytes(p) && p.rank() > 2)?;
    let rank = data.rank();
    let given = site.inputs.get(1)?.ints()?;
    let mut axes = given.iter().map(|a| normalize_axis(*a, rank).ok()).collect::<Option<Vec<_>>>()?;
    axes.sort_unstable();
    let pixels: usize = data.shape[2..].iter().product();
    if !axes.iter().copied().eq(2..rank) || pixels > MOST_PIXELS || !site.epilogue.is_empty() {
        return None;
    }
    let step = ByteMean { grid: data.grid?, size: [data.shape[0], pixels, data.shape[1]] };
    let reads = vec![(0, Form::typed(Layout::CHANNELS_LAST, ElementType::U8))];
    Some(Built::step(step, reads, Layout::PLAIN).with_precision(ElementType::U8))
}

impl Step<Cpu> for ByteMean {
    fn kernel(&self) -> String {
        "mean".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        mean_bytes(io.exec, self.size, io.inputs[0], (self.grid.scale, self.grid.zero), out);
        Ok(())
    }
}

/// A product of two computed matrices.
#[derive(Debug)]
struct ByteProduct {
    product: BytesMatMul,
    columns: usize,
    epilogue: StepEpilogue,
}

/// A product of two computed matrices on grids.
pub(super) fn product(site: &Site<'_>) -> Option<Built> {
    let op = site.op.get::<MatMul>().filter(|_| !site.group)?;
    let [a, b] = site.inputs.get(..2)? else { return None };
    let computed = |p: &Port| p.is_f32() && p.constant.is_none() && p.integers.is_none();
    if !(computed(a) && computed(b) && site.outputs[0].is_f32() && Numbers::U8I8.is_fast(site.cx.isa)) {
        return None;
    }
    let (of_a, of_b) = (a.grid?, b.grid?);
    let Places { size, operands } = places(site, op, a, b)?;
    if size[2] > LONGEST_INTEGER_SUM {
        return None;
    }
    let mut reads = vec![(0, Layout::PLAIN), (1, Layout::PLAIN)];
    let epilogue = end_of_two(site, &mut reads)?;
    let typed = |(at, (i, layout)): (usize, (usize, Layout))| {
        (i, if at < 2 { Form::typed(layout, ElementType::U8) } else { layout.into() })
    };
    let reads: Vec<(usize, Form)> = reads.into_iter().enumerate().map(typed).collect();
    let product = BytesMatMul::new(site.cx.isa, size, operands, of_a.scale * of_b.scale, [of_a.zero, of_b.zero]);
    let step = ByteProduct { product, columns: size[1], epilogue };
    Some(Built::step(step, reads, Layout::PLAIN).with_precision(ElementType::I8))
}

impl Step<Cpu> for ByteProduct {
    fn kernel(&self) -> String {
        format!("batch_gemm{}", self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.product.scratch_floats())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        self.epilogue.with(&io, self.columns, |epilogue| {
            self.product.run(io.exec, io.inputs[0], io.inputs[1], out, epilogue);
        });
        Ok(())
    }
}
