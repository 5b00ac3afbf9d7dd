//! What is kept from step to step, in a graph: rows of earlier steps, which one node reads and another writes, and the number of the
//! step.

use crate::graph::{Builder, OUTPUT_PORT, helper, hidden};
use carafe_frontend::{SourceNode, SourceValue};
use carafe_graph::{AttrValue, Error, ItemType, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Numbers that a memory may hold.
const MAX_MEMORY: usize = 1 << 26;
/// Turns and multiples of frames come together again after at most so many steps.
const MAX_PERIOD: i64 = 1 << 20;

/// Who asks for the number of the step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    is_used: bool,
    /// The largest step that is told from the next.
    most: i64,
    period: i64,
}

// The value that rows of a memory are.
fn part_of(name: &str, (from, to): (i64, i64)) -> String {
    hidden(&format!("{name}-{from}-{to}"))
}

impl Builder<'_> {
    /// The rows that a node gave from so many to so many steps ago, side by side.
    pub(crate) fn back(&mut self, node: usize, from: i64, to: i64) -> String {
        self.memories.entry(node).or_default().insert((from, to));
        part_of(&self.timed.nodes[node].name, (from, to))
    }

    // What somebody wants of earlier steps: read at the beginning of a step and written at its end.
    pub(crate) fn write_memories(&mut self) -> Result<()> {
        for (node, steps) in std::mem::take(&mut self.memories) {
            let name = &self.timed.nodes[node].name;
            let frames = steps.iter().map(|(from, _)| *from).max().unwrap_or(0);
            let dim = self.timed.nodes[node].dim.ok_or_else(|| {
                Error::unsupported(format!(
                    "values of `{name}` are wanted later, and how many columns it has cannot be told from the file; \
                     a component with `<OutputDim>` or `<Dim>` says so"
                ))
            })?;
            let numbers = usize::try_from(frames).ok().and_then(|f| f.checked_mul(dim)).filter(|n| *n <= MAX_MEMORY);
            let numbers = numbers.ok_or_else(|| {
                Error::unsupported(format!(
                    "{frames} frames of {dim} columns of `{name}` are more than can be remembered"
                ))
            })?;
            let memory = hidden(&format!("{name}/memory"));
            let variable = format!("{name}/memory");
            let outputs = std::iter::once(memory.clone()).chain(steps.iter().map(|part| part_of(name, *part)));
            let mut recall = helper("Recall", &format!("{name}/recall"), vec![self.batch()?], outputs.collect());
            let shape = PartialShape::new([self.streams, Dim::known(numbers as i64)]);
            self.keep(&mut recall, &variable, ItemType::Tensor(ElementType::F32, shape));
            recall.attrs.set("dim", AttrValue::Int(dim as i64));
            recall.attrs.set("steps", AttrValue::Ints(steps.iter().flat_map(|(from, to)| [*from, *to]).collect()));
            self.graph.nodes.push(recall);
            let value = self.value(node);
            let mut remember = helper("Remember", &format!("{name}/remember"), vec![memory, value], vec![]);
            remember.attrs.set("dim", AttrValue::Int(dim as i64));
            self.assign(remember, &variable);
        }
        Ok(())
    }
    // A memory is a variable, or an input where there shall be none.
    fn keep(&mut self, recall: &mut SourceNode, variable: &str, ty: ItemType) {
        if !self.options.remove_memory {
            recall.attrs.set("variable_id", AttrValue::Str(variable.to_string()));
            return;
        }
        let name = format!("Parameter_{}_for_{variable}", self.graph.inputs.len());
        self.graph.inputs.push(SourceValue::new(&name, Ok(ty)));
        recall.inputs = vec![name];
    }
    fn assign(&mut self, mut remember: SourceNode, variable: &str) {
        if self.options.remove_memory {
            let name = format!("Result_for_{variable}");
            remember.outputs = vec![name.clone()];
            remember.output_ports = vec![OUTPUT_PORT.into()];
            if let Some(outputs) = &mut self.graph.outputs {
                outputs.push(SourceValue::unknown(name));
            }
        } else {
            remember.attrs.set("variable_id", AttrValue::Str(variable.to_string()));
        }
        self.graph.nodes.push(remember);
    }

    // The number of the step, exact up to `most` and then within `period`.
    pub(crate) fn step(&mut self, most: i64, period: i64) -> Result<String> {
        let gcd = |mut a: i64, mut b: i64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let before = self.step.period.max(1);
        let period = (before / gcd(before, period)).saturating_mul(period);
        if period > MAX_PERIOD {
            return Err(Error::unsupported(format!("turns that come together after {period} steps only")));
        }
        self.step = Step { is_used: true, most: self.step.most.max(most), period };
        Ok(hidden("step"))
    }
    pub(crate) fn counter(&mut self) -> Result<()> {
        if !self.step.is_used {
            return Ok(());
        }
        let (variable, step) = ("step", hidden("step"));
        let mut recall = helper("Step", "step/recall", vec![], vec![step.clone()]);
        self.keep(&mut recall, variable, ItemType::Tensor(ElementType::I32, PartialShape::new([Dim::known(1)])));
        self.graph.nodes.push(recall);
        let mut next = helper("NextStep", "step/remember", vec![step], vec![]);
        next.attrs.set("period", AttrValue::Int(self.step.period));
        next.attrs.set("limit", AttrValue::Int(self.step.most + self.step.period));
        self.assign(next, variable);
        Ok(())
    }
}
