//! The part of an epilogue that kernels do not do in registers: a program that runs over finished rectangles of the result.

use super::elements::program;
use super::{Io, Site};
use carafe_kernels::Act;
use carafe_kernels::eltwise::{Program, TileInput, TileProgram};
use carafe_plan::elementwise::{is_column_vector, names};
use carafe_plan::{ElementwiseOp, Layout, RowStrides, Source};
use std::ops::Range;

/// Operands of a program at most.
const MOST: usize = 8;

/// Operations of an epilogue as a program, with what it reads besides the result.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    program: Program,
    name: String,
    /// How an operand meets the result, and its position among the reads of the step.
    inputs: Vec<(Meets, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meets {
    Matrix,
    Columns,
    Number,
}

impl Rest {
    /// The operations of `range`, the last ones that run. Operands are read behind those in `reads`, in the layout of the result
    /// where they have its shape. `None` when not all can be done.
    pub(super) fn of<F: From<Layout>>(
        site: &Site<'_>,
        range: Range<usize>,
        axis: usize,
        layout: Layout,
        reads: &mut Vec<(usize, F)>,
    ) -> Option<Rest> {
        let shape = &site.outputs[0].shape;
        let source = |s: &Source| match *s {
            Source::Result(k) => k.checked_sub(range.start).map(Source::Result),
            input => Some(input),
        };
        let moved = |p: &ElementwiseOp| {
            let sources = p.sources.iter().map(source).collect::<Option<Vec<_>>>()?;
            Some(ElementwiseOp { elt: p.elt, ty: p.ty, sources })
        };
        let ops: Vec<ElementwiseOp> = site.epilogue[range.clone()].iter().map(moved).collect::<Option<_>>()?;
        let (program, used) = program(&ops, Some(()), &site.inputs);
        if used.len() > MOST {
            return None;
        }
        let mut inputs = vec![];
        for i in used {
            let port = &site.inputs[i];
            let (meets, wanted) = if port.shape == *shape && port.len() > 1 {
                (Meets::Matrix, layout)
            } else if port.len() == 1 {
                (Meets::Number, Layout::PLAIN)
            } else if is_column_vector(&port.shape, shape, axis) {
                (Meets::Columns, Layout::PLAIN)
            } else {
                return None;
            };
            reads.push((i, wanted.into()));
            inputs.push((meets, reads.len() - 1));
        }
        Some(Rest { program, name: names(&ops), inputs })
    }

    /// Whether a read is an operand like the result, whose rows may have a stride.
    pub(super) fn is_matrix(&self, read: usize) -> bool {
        self.inputs.contains(&(Meets::Matrix, read))
    }

    /// Calls `run` with the program over the memory of a run. `stride` is that of the result's rows.
    pub(super) fn with<R>(
        &self,
        io: &Io<'_>,
        strides: &RowStrides,
        stride: usize,
        run: impl FnOnce(&TileProgram<'_>) -> R,
    ) -> R {
        let mut inputs: [TileInput<'_>; MOST] = [TileInput::Scalar(0.0); MOST];
        for (slot, (meets, read)) in inputs.iter_mut().zip(&self.inputs) {
            let data: &[f32] = bytemuck::cast_slice(io.inputs[*read]);
            *slot = match meets {
                Meets::Matrix => TileInput::Matrix { data, stride: strides.read(*read, stride) },
                Meets::Columns => TileInput::Row(data),
                Meets::Number => TileInput::Scalar(data[0]),
            };
        }
        run(&TileProgram::new(io.exec.isa, &self.program, &inputs[..self.inputs.len()]))
    }
}

/// The end of a kernel's name: the function, then the rest.
pub(super) fn name_of(act: Act, rest: Option<&Rest>) -> String {
    let mut name = String::new();
    if act != Act::None {
        let act = format!("{act:?}");
        name += "+";
        name += act.split([' ', '(']).next().unwrap_or_default().to_ascii_lowercase().as_str();
    }
    if let Some(rest) = rest {
        name += "+";
        name += &rest.name.replace(' ', "+");
    }
    name
}
