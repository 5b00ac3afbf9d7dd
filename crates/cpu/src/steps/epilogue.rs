//! The epilogue of a matrix product or convolution inside its step, sorted into what the kernels do in registers (a bias, one
//! sum, one function) and a program for the rest.

use super::elements::act_of;
use super::tile_program::{Rest, name_of};
use super::{Io, Site};
use carafe_kernels::{Act, Epilogue};
use carafe_plan::elementwise::{Binary, Elt, is_column_vector, is_scalar};
use carafe_plan::{ElementwiseOp, Layout, RowStrides, Source};

/// An operand with one number a column.
#[derive(Clone, Debug)]
enum Columns {
    Constant(Vec<f32>),
    /// An input of the step, by its place among the reads.
    Read(usize),
}

/// The epilogue of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct StepEpilogue {
    bias: Option<Columns>,
    add: Option<usize>,
    add_last: bool,
    act: Act,
    rest: Option<Rest>,
    /// Row strides of operands, where they are not what the result's is.
    strides: RowStrides,
}

impl StepEpilogue {
    /// The end for the posts of a site whose output keeps `columns` of them on `axis`. Operands are read behind the inputs in
    /// `reads`, and are added there in the layout of the output. `None` when not all can be done.
    pub(super) fn of(
        site: &Site<'_>,
        axis: usize,
        layout: Layout,
        reads: &mut Vec<(usize, Layout)>,
    ) -> Option<StepEpilogue> {
        let shape = &site.outputs[0].shape;
        let columns = shape[axis];
        let mut epilogue = StepEpilogue::default();
        let mut done = 0;
        while done < site.epilogue.len() && epilogue.take(site, done, axis, layout, columns, reads) {
            done += 1;
        }
        if done < site.epilogue.len() {
            epilogue.rest = Some(Rest::of(site, done..site.epilogue.len(), axis, layout, reads)?);
        }
        Some(epilogue)
    }

    // One post into registers, if it comes at the right time.
    fn take(
        &mut self,
        site: &Site<'_>,
        k: usize,
        axis: usize,
        layout: Layout,
        columns: usize,
        reads: &mut Vec<(usize, Layout)>,
    ) -> bool {
        let (post, shape) = (&site.epilogue[k], &site.outputs[0].shape);
        let before_act = self.act == Act::None;
        let Some((i, negative)) = operand(post, k) else {
            let (Elt::Act(act), true) = (post.elt, before_act) else { return false };
            self.act = act_of(act);
            // A sum that came before the function stays before it.
            return !self.add_last;
        };
        let port = &site.inputs[i];
        let vector = is_scalar(&port.shape) || is_column_vector(&port.shape, shape, axis);
        if vector && before_act && self.add.is_none() && self.bias.is_none() {
            self.bias = match port.floats() {
                Some(v) if v.len() == columns => Some(Columns::Constant(signed(v, negative))),
                Some(v) if v.len() == 1 => Some(Columns::Constant(signed(vec![v[0]; columns], negative))),
                None if !negative && port.len() == columns => {
                    reads.push((i, Layout::PLAIN));
                    Some(Columns::Read(reads.len() - 1))
                }
                _ => None,
            };
            return self.bias.is_some();
        }
        if port.shape == *shape && self.add.is_none() && !negative && !vector {
            reads.push((i, layout));
            self.add = Some(reads.len() - 1);
            self.add_last = !before_act;
            return true;
        }
        false
    }

    /// Whether a read is an operand like the result, whose rows may have a stride.
    pub(super) fn is_matrix(&self, read: usize) -> bool {
        self.add == Some(read) || self.rest.as_ref().is_some_and(|rest| rest.is_matrix(read))
    }

    /// The same for operands with row strides.
    pub(super) fn with_strides(&self, strides: &RowStrides) -> StepEpilogue {
        StepEpilogue { strides: RowStrides { reads: strides.reads.clone(), writes: vec![] }, ..self.clone() }
    }

    /// Whether the result may be written over a read: over what is added to it, where the kernel can.
    pub(super) fn runs_in_place(&self, read: usize, adds_over: impl FnOnce(&Epilogue<'_>) -> bool) -> bool {
        let (add_last, act) = (self.add_last, self.act);
        self.rest.is_none() && self.add == Some(read) && adds_over(&Epilogue { add_last, act, ..Epilogue::default() })
    }

    // Without the rest. `stride` is that of the summed operand's rows, `in_place` the read that lies in the output.
    fn epilogue<'e>(&'e self, inputs: &[&'e [u8]], in_place: Option<usize>, stride: usize) -> Epilogue<'e> {
        let bias = self.bias.as_ref().map(|b| match b {
            Columns::Constant(v) => v.as_slice(),
            Columns::Read(i) => bytemuck::cast_slice(inputs[*i]),
        });
        let add = self.add.filter(|_| self.add != in_place);
        Epilogue {
            bias,
            add: add.map(|i| (bytemuck::cast_slice(inputs[i]), self.strides.read(i, stride))),
            add_own: add != self.add,
            add_last: self.add_last,
            act: self.act,
            finish: None,
        }
    }

    /// Calls the kernel with the epilogue over the memory of a run.
    pub(super) fn with<R>(&self, io: &Io<'_>, stride: usize, kernel: impl FnOnce(&Epilogue<'_>) -> R) -> R {
        let epilogue = self.epilogue(io.inputs, io.in_place, stride);
        let Some(rest) = &self.rest else { return kernel(&epilogue) };
        rest.with(io, &self.strides, stride, |tiles| {
            let epilogue = Epilogue { finish: Some(tiles), ..epilogue };
            kernel(&epilogue)
        })
    }

    /// The function, if there is no more than that and a bias.
    pub(super) fn light(&self) -> Option<Act> {
        (self.add.is_none() && self.rest.is_none()).then_some(self.act)
    }

    /// The numbers that are added to columns, over the memory of a run.
    pub(super) fn bias<'a>(&'a self, io: &'a Io<'_>) -> Option<&'a [f32]> {
        self.epilogue(io.inputs, io.in_place, 0).bias
    }

    /// For reports.
    pub(super) fn name(&self) -> String {
        let mut name = String::new();
        if self.bias.is_some() {
            name += "+bias";
        }
        if self.add.is_some() {
            name += "+add";
        }
        name + &name_of(self.act, self.rest.as_ref())
    }
}

// The other operand of a sum with the result so far, and whether it is taken away.
fn operand(post: &ElementwiseOp, k: usize) -> Option<(usize, bool)> {
    match (post.elt, &post.sources[..]) {
        (Elt::Binary(Binary::Add), [Source::Result(r), Source::Input(i)] | [Source::Input(i), Source::Result(r)])
            if *r == k =>
        {
            Some((*i, false))
        }
        (Elt::Binary(Binary::Subtract), [Source::Result(r), Source::Input(i)]) if *r == k => Some((*i, true)),
        _ => None,
    }
}

fn signed(values: Vec<f32>, negative: bool) -> Vec<f32> {
    if negative { values.into_iter().map(|v| -v).collect() } else { values }
}
