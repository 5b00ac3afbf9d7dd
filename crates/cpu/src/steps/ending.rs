//! What follows a matrix product or convolution inside its step: the posts of a unit, sorted into what the kernels do in
//! registers (a bias, one sum, one function) and a program for the rest.

use super::Site;
use crate::lower::elements::{Binary, Elt, is_column_vector, is_scalar};
use crate::lower::post::{Post, Source};
use crate::plan::Layout;
use carafe_kernels::{Act, Epilogue};

/// An operand with one number a column.
#[derive(Clone, Debug)]
enum Columns {
    Constant(Vec<f32>),
    /// An input of the step, by its place among the reads.
    Read(usize),
}

/// The end of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    bias: Option<Columns>,
    add: Option<usize>,
    add_last: bool,
    act: Act,
    columns: usize,
}

impl Ending {
    /// The end for the posts of a site whose output keeps `columns` of them on `axis`. Operands are read behind the inputs in
    /// `reads`, and are added there in the layout of the output. `None` when not all can be done.
    pub(super) fn of(site: &Site<'_>, axis: usize, layout: Layout, reads: &mut Vec<(usize, Layout)>) -> Option<Ending> {
        let shape = &site.outputs[0].shape;
        let columns = shape[axis];
        let mut end = Ending { columns, ..Ending::default() };
        let mut stage = 0;
        for (k, post) in site.post.iter().enumerate() {
            match operand(post, k) {
                None => {
                    let Elt::Act(act) = post.elt else { return None };
                    if stage > 1 {
                        return None;
                    }
                    end.act = act;
                    stage = 2;
                }
                Some((i, negative)) => {
                    let port = &site.inputs[i];
                    let vector = is_scalar(&port.shape) || is_column_vector(&port.shape, shape, axis);
                    if vector && stage == 0 && end.bias.is_none() {
                        end.bias = Some(match port.floats() {
                            Some(v) if v.len() == columns => Columns::Constant(signed(v, negative)),
                            Some(v) if v.len() == 1 => Columns::Constant(signed(vec![v[0]; columns], negative)),
                            None if !negative && port.len() == columns => {
                                reads.push((i, Layout::Plain));
                                Columns::Read(reads.len() - 1)
                            }
                            _ => return None,
                        });
                    } else if port.shape == *shape && end.add.is_none() && !negative && !vector {
                        reads.push((i, layout));
                        end.add = Some(reads.len() - 1);
                        end.add_last = stage == 2;
                        stage = stage.max(1);
                        if end.add_last {
                            stage = 3;
                        }
                    } else {
                        return None;
                    }
                }
            }
        }
        Some(end)
    }

    /// The end over the memory of a run. Rows of the summed operand are `stride` apart.
    pub(super) fn epilogue<'e>(&'e self, inputs: &[&'e [u8]], stride: usize) -> Epilogue<'e> {
        let bias = self.bias.as_ref().map(|b| match b {
            Columns::Constant(v) => v.as_slice(),
            Columns::Read(i) => bytemuck::cast_slice(inputs[*i]),
        });
        Epilogue {
            bias,
            add: self.add.map(|i| (bytemuck::cast_slice(inputs[i]), stride)),
            add_last: self.add_last,
            act: self.act,
            finish: None,
        }
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
        if self.act != Act::None {
            let act = format!("{:?}", self.act);
            name += "+";
            name += act.split([' ', '(']).next().unwrap_or_default().to_ascii_lowercase().as_str();
        }
        name
    }

    /// One number a column, if there are any.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }
}

// The other operand of a sum with the result so far, and whether it is taken away.
fn operand(post: &Post, k: usize) -> Option<(usize, bool)> {
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
