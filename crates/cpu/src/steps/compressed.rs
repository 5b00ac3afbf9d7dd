//! Products with weights that stay compressed, and rows of compressed tables: integers of 8 or 4 bits, or codes of 4 bits, with
//! scales and zero points of groups. What has another form comes back as floats.

use super::epilogue::StepEpilogue;
use super::types::{indices, is_index};
use super::{Built, Cpu, Io, Site, Step, floats};
use crate::weights::Packed;
use carafe_graph::Result;
use carafe_kernels::{
    Codes, CompressedGemm, CompressedMatrix, CompressedRows, Compression, Numbers, RoundedGemm, Stored,
};
use carafe_ops::indexing::Gather;
use carafe_ops::linear::MatMul;
use carafe_plan::{Compressed, Layout};
use carafe_tensor::{ElementType, Tensor, pack, strides};
use std::borrow::Cow;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || site.before.is_some() || site.reordered() {
        return Ok(None);
    }
    match (site.op.get::<MatMul>(), site.op.get::<Gather>()) {
        (Some(op), _) => product(site, op),
        (_, Some(op)) => rows(site, op),
        _ => Ok(None),
    }
}

/// Groups of fewer numbers are not worth a scale in registers.
const LEAST_GROUP: usize = 8;

/// A matrix of lines, each cut into groups.
struct Lines<'a> {
    compression: Compression,
    bytes: Cow<'a, [u8]>,
    flip: u8,
    scale: Grouped<'a>,
    zero: Option<Grouped<'a>>,
    /// Taken away from stored integers to have a sign.
    center: f32,
}

impl<'a> Lines<'a> {
    /// Lines of the last axis of a `rows x columns` matrix, or of the first one.
    fn of(compressed: &'a Compressed, rows: usize, last: bool) -> Option<Lines<'a>> {
        let (codes, center, flip) = form(compressed.data.element_type())?;
        let dims = compressed.data.shape();
        let split = (0..=dims.len()).find(|&i| dims[..i].iter().product::<usize>() == rows)?;
        let (along, across) = if last { (split..dims.len(), 0..split) } else { (0..split, split..dims.len()) };
        let smalls: Vec<Vec<usize>> = compressed.tensors()[1..].iter().map(|t| full(t, dims.len())).collect();
        // The axes at the end of a line in which nothing changes are a group.
        let constant = |axis: usize| smalls.iter().all(|s| s[axis] == 1);
        let inner = along.clone().rev().take_while(|&axis| constant(axis)).last().unwrap_or(along.end);
        let group: usize = dims[inner..along.end].iter().product();
        let k: usize = dims[along.clone()].iter().product();
        if group < LEAST_GROUP && group != k {
            return None;
        }
        let axes = (across, along.start..inner);
        let scale = Grouped::of(&compressed.scale, dims, &axes)?;
        let zero = match &compressed.zero {
            Some(zero) => Some(Grouped::of(zero, dims, &axes)?),
            None => None,
        };
        let exact = |z: &f32| (z - center).fract() == 0.0 && (-128.0..=127.0).contains(&(z - center));
        let zeros = zero.as_ref().map_or(&[0.0][..], |z| &z.values);
        if !zeros.iter().all(exact) {
            return None;
        }
        let zeros = zeros.iter().any(|z| *z != center);
        let compression = Compression { codes, group, zeros };
        Some(Lines { compression, bytes: codes_of(&compressed.data), flip, scale, zero, center })
    }
    fn scale(&self, line: usize, group: usize) -> f32 {
        self.scale.at(line, group)
    }
    fn zero(&self, line: usize, group: usize) -> i8 {
        (self.zero.as_ref().map_or(0.0, |z| z.at(line, group)) - self.center) as i8
    }
}

/// Numbers that groups have: one for each, or shared along axes.
struct Grouped<'a> {
    values: Cow<'a, [f32]>,
    /// Dimensions and steps of the axes of lines, and of those of groups.
    lines: Vec<(usize, usize)>,
    groups: Vec<(usize, usize)>,
}

impl<'a> Grouped<'a> {
    fn of(
        tensor: &'a Tensor,
        dims: &[usize],
        (lines, groups): &(std::ops::Range<usize>, std::ops::Range<usize>),
    ) -> Option<Grouped<'a>> {
        let own = full(tensor, dims.len());
        let steps = strides(&own);
        let axis = |i: usize| (dims[i], if own[i] == 1 { 0 } else { steps[i] });
        let values = tensor.to_vec::<f32>().ok()?;
        Some(Grouped { values, lines: lines.clone().map(axis).collect(), groups: groups.clone().map(axis).collect() })
    }
    fn at(&self, line: usize, group: usize) -> f32 {
        let offset = |mut flat: usize, axes: &[(usize, usize)]| {
            let mut at = 0;
            for &(n, step) in axes.iter().rev() {
                at += flat % n * step;
                flat /= n;
            }
            at
        };
        self.values[offset(line, &self.lines) + offset(group, &self.groups)]
    }
}

// The shape with ones in front of it.
fn full(tensor: &Tensor, rank: usize) -> Vec<usize> {
    let lead = rank.saturating_sub(tensor.rank());
    std::iter::repeat_n(1, lead).chain(tensor.shape().iter().copied()).collect()
}

// How numbers of a type are packed: as what, how much is taken away to have a sign, and by which bits that is done.
fn form(ty: ElementType) -> Option<(Codes, f32, u8)> {
    Some(match ty {
        ElementType::I8 => (Codes::I8, 0.0, 0),
        ElementType::U8 => (Codes::I8, 128.0, 0x80),
        ElementType::U4 => (Codes::I4, 8.0, 8),
        ElementType::I4 | ElementType::U3 | ElementType::U2 | ElementType::I2 => (Codes::I4, 0.0, 0),
        ElementType::Nf4 | ElementType::F4E2M1 => {
            let codes: Vec<u8> = (0..16).collect();
            let all = Tensor::from_bytes(ty, &[16], &pack::pack(ty, &codes)).ok()?;
            (Codes::Table(all.to_vec::<f32>().ok()?.as_ref().try_into().ok()?), 0.0, 0)
        }
        _ => return None,
    })
}

// Codes of 8 or 4 bits; smaller integers are put into 4.
fn codes_of(data: &Tensor) -> Cow<'_, [u8]> {
    let ty = data.element_type();
    let sign = match ty {
        ElementType::I2 => 2,
        ElementType::U2 | ElementType::U3 => 0,
        _ => return Cow::Borrowed(data.bytes()),
    };
    let mut codes = pack::unpack(ty, data.bytes(), data.len());
    codes.iter_mut().filter(|c| **c & sign != 0).for_each(|c| *c |= 0b1100);
    Cow::Owned(pack::pack(ElementType::U4, &codes))
}

/// The type and the group, as kernels are called.
fn name_of(ty: ElementType, group: usize, k: usize) -> String {
    if group == k { ty.to_string() } else { format!("{ty}_g{group}") }
}

/// How data meets the codes.
#[derive(Debug)]
enum Gemm {
    /// Codes become floats.
    Floats(CompressedGemm),
    /// Data is rounded in groups, and integers are multiplied.
    Rounded(RoundedGemm),
}

impl Gemm {
    fn of(site: &Site<'_>, n: usize, k: usize, compression: Compression) -> Option<Gemm> {
        let each = site.cx.rounded_group.min(compression.group);
        let rounded = RoundedGemm::new(site.cx.isa, n, k, compression, each);
        match rounded.filter(|_| Numbers::U8I8.is_fast(site.cx.isa)) {
            Some(gemm) => Some(Gemm::Rounded(gemm)),
            None => CompressedGemm::new(site.cx.isa, n, k, compression).map(Gemm::Floats),
        }
    }
    fn matrix(&self) -> &CompressedMatrix {
        match self {
            Gemm::Floats(g) => g.matrix(),
            Gemm::Rounded(g) => g.matrix(),
        }
    }
    fn sizes(&self) -> [usize; 2] {
        [self.matrix().k(), self.matrix().n()]
    }
}

#[derive(Debug)]
struct Product {
    gemm: Gemm,
    weights: Packed,
    rows: usize,
    ty: ElementType,
    epilogue: StepEpilogue,
}

impl Step<Cpu> for Product {
    fn kernel(&self) -> String {
        let name = name_of(self.ty, self.gemm.matrix().compression().group, self.gemm.sizes()[0]);
        format!("gemm_{name}{}", self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(match &self.gemm {
            Gemm::Floats(g) => g.scratch_floats(self.rows),
            Gemm::Rounded(g) => g.scratch_floats(self.rows),
        })
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [k, n] = self.gemm.sizes();
        let (out, mut io) = io.take_output(0);
        let rounded = std::mem::take(&mut io.workspace);
        let (rows, weights) = ((self.rows, io.input(0), k), self.weights.bytes());
        self.epilogue.with(&io, n, |epilogue| match &self.gemm {
            Gemm::Floats(g) => g.run(io.exec, rows, weights, out, n, epilogue),
            Gemm::Rounded(g) => g.run(io.exec, rows, weights, rounded, out, n, epilogue),
        });
        Ok(())
    }
}

fn product(site: &Site<'_>, op: &MatMul) -> Result<Option<Built>> {
    let [a, b] = &site.inputs[..2] else { return Ok(None) };
    let (Some(compressed), true) = (&b.compressed, a.is_f32() && a.rank() > 0) else { return Ok(None) };
    let &[rows, columns] = &b.shape[..] else { return Ok(None) };
    let (k, n) = if op.transpose_b { (columns, rows) } else { (rows, columns) };
    // The other way round a row lies as a column does.
    let vectors =
        a.rank() < 2 || a.shape[a.rank() - 2..].contains(&1) && a.shape[..a.rank() - 2].iter().all(|&n| n == 1);
    if k == 0 || (op.transpose_a && !vectors) {
        return Ok(None);
    }
    let Some(lines) = Lines::of(compressed, rows, op.transpose_b) else { return Ok(None) };
    let Some(gemm) = Gemm::of(site, n, k, lines.compression) else { return Ok(None) };
    let rounded = match &gemm {
        Gemm::Floats(_) => None,
        Gemm::Rounded(g) => Some(g.rounded_bytes(a.len() / k)),
    };
    let order = if rounded.is_some() { "cells" } else { "rows" };
    let form = format!("gemm_{}|{k}x{n}|{}|{order}", lines.compression.group, op.transpose_b);
    let weights = site.cx.packed(&form, &compressed.tensors(), gemm.matrix().packed_bytes(), |to: &mut [u8]| {
        let stored = Stored {
            bytes: &lines.bytes,
            flip: lines.flip,
            transposed: op.transpose_b,
            scale: &|line, group| lines.scale(line, group),
            zero: &|line, group| lines.zero(line, group),
        };
        gemm.matrix().pack(site.cx.packers.exec().as_ref(), &stored, to);
        compressed.data.release();
        Ok(())
    })?;
    let mut reads = vec![(0, Layout::PLAIN)];
    let epilogue = StepEpilogue::of(site, site.outputs[0].rank().saturating_sub(1), Layout::PLAIN, &mut reads);
    // Without the epilogue where it cannot be done, rather than with floats.
    let left = epilogue.is_none().then_some(0);
    if left.is_some() {
        reads.truncate(1);
    }
    let ty = compressed.data.element_type();
    let step = Product { gemm, weights, rows: a.len() / k, ty, epilogue: epilogue.unwrap_or_default() };
    let mut built = Built::step(step, reads, Layout::PLAIN);
    if let Some(bytes) = rounded {
        built = built.with_precision(ElementType::I8).with_workspace(bytes);
    }
    built.taken = left;
    Ok(Some(built))
}

#[derive(Debug)]
struct Rows {
    kernel: CompressedRows,
    table: Tensor,
    scales: Packed,
    zeros: Option<Packed>,
    index: ElementType,
    name: String,
}

impl Step<Cpu> for Rows {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let zeros = self.zeros.as_ref().map_or(&[][..], |z| z.as_slice());
        let list = indices(&io, 0, self.index);
        self.kernel.run(io.exec, self.table.bytes(), self.scales.as_slice(), zeros, list, out);
        Ok(())
    }
}

fn rows(site: &Site<'_>, op: &Gather) -> Result<Option<Built>> {
    let (table, list) = (&site.inputs[0], &site.inputs[1]);
    let axis = site.inputs[2].ints().and_then(|a| a.first().copied());
    let plain = op.batch_dims == 0 && matches!(axis, Some(0 | -2)) && is_index(list.ty) && site.epilogue.is_empty();
    let (Some(compressed), &[count, width], true) = (&table.compressed, &table.shape[..], plain) else {
        return Ok(None);
    };
    let Some(lines) = Lines::of(compressed, count, true) else { return Ok(None) };
    // Rows are read where the model has them.
    let Cow::Borrowed(_) = lines.bytes else { return Ok(None) };
    let Some(kernel) = CompressedRows::new(count, width, lines.compression, lines.flip) else { return Ok(None) };
    let groups = kernel.groups();
    let form = format!("rows_{}|{count}x{width}", lines.compression.group);
    let scales = site.cx.packed(&form, &[&compressed.scale], count * groups, |to: &mut [f32]| {
        to.iter_mut().enumerate().for_each(|(i, to)| *to = lines.scale(i / groups, i % groups));
        Ok(())
    })?;
    let mut zeros = None;
    if lines.compression.zeros {
        let ty = compressed.data.element_type();
        let source: Vec<&Tensor> = compressed.zero.iter().collect();
        zeros = Some(site.cx.packed(&format!("{form}|{ty}"), &source, count * groups, |to: &mut [i8]| {
            to.iter_mut().enumerate().for_each(|(i, to)| *to = lines.zero(i / groups, i % groups));
            Ok(())
        })?);
    }
    let ty = compressed.data.element_type();
    let name = format!("gather_{}", name_of(ty, lines.compression.group, width));
    let step = Rows { kernel, table: compressed.data.clone(), scales, zeros, index: list.ty, name };
    Ok(Some(Built::step(step, vec![(1, Layout::PLAIN)], Layout::PLAIN)))
}
