//! Elementwise operations that no group of floats takes: on integers, booleans and doubles, comparisons, choices, and shapes
//! that meet in another way than numpy's. One operation a step.

use super::strided_views::size_of;
use super::types::{is_number, with_type};
use super::{Built, Cpu, Io, Port, Site, Step};
use carafe_graph::{Error, Op, Result};
use carafe_kernels::eltwise::Broadcast;
use carafe_kernels::eltwise::typed::{self as kernels, Arithmetic, Comparison, Logic};
use carafe_ops::arithmetic::{self as arith, Meeting};
use carafe_ops::indexing::Select;
use carafe_ops::{compare, logic};
use carafe_plan::{Layout, common_layout};
use carafe_tensor::{ElementType, strides};

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    if let Some(op) = site.op.get::<Select>() {
        return Ok(choice(site, Meeting::new(op.auto_broadcast, op.auto_broadcast_axis)));
    }
    let Some((kind, meeting)) = pair(site.op) else { return Ok(None) };
    let ty = site.inputs[0].ty;
    let known = match kind {
        Kind::Arithmetic(_) => is_number(ty) && ty != ElementType::Boolean,
        Kind::Comparison(_) => is_number(ty),
        Kind::Logic(_) => ty == ElementType::Boolean,
    };
    if !known || site.inputs[1].ty != ty {
        return Ok(None);
    }
    let Some((shapes, reads, layout)) = meet(site, meeting, 0) else { return Ok(None) };
    Ok(Some(Built::step(Pairs { kind, shapes, ty }, reads, layout)))
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Arithmetic(Arithmetic),
    Comparison(Comparison),
    Logic(Logic),
}

// What an operation of two inputs is, and how its shapes meet.
fn pair(op: &dyn Op) -> Option<(Kind, Meeting)> {
    macro_rules! table {
        ($($class:ty => $kind:expr),* $(,)?) => {
            $(if let Some(op) = op.get::<$class>() {
                return Some(($kind, Meeting::new(op.auto_broadcast, op.auto_broadcast_axis)));
            })*
        };
    }
    if let Some(op) = op.get::<arith::Divide>() {
        let how = if op.m_pythondiv { Arithmetic::DivFloor } else { Arithmetic::Div };
        return Some((Kind::Arithmetic(how), Meeting::new(op.auto_broadcast, op.auto_broadcast_axis)));
    }
    table! {
        arith::Add => Kind::Arithmetic(Arithmetic::Add),
        arith::Subtract => Kind::Arithmetic(Arithmetic::Sub),
        arith::Multiply => Kind::Arithmetic(Arithmetic::Mul),
        arith::Maximum => Kind::Arithmetic(Arithmetic::Max),
        arith::Minimum => Kind::Arithmetic(Arithmetic::Min),
        arith::Mod => Kind::Arithmetic(Arithmetic::Mod),
        arith::FloorMod => Kind::Arithmetic(Arithmetic::FloorMod),
        arith::SquaredDifference => Kind::Arithmetic(Arithmetic::SquaredDifference),
        compare::Equal => Kind::Comparison(Comparison::Equal),
        compare::NotEqual => Kind::Comparison(Comparison::NotEqual),
        compare::Less => Kind::Comparison(Comparison::Less),
        compare::LessEqual => Kind::Comparison(Comparison::LessEqual),
        compare::Greater => Kind::Comparison(Comparison::Greater),
        compare::GreaterEqual => Kind::Comparison(Comparison::GreaterEqual),
        logic::LogicalAnd => Kind::Logic(Logic::And),
        logic::LogicalOr => Kind::Logic(Logic::Or),
        logic::LogicalXor => Kind::Logic(Logic::Xor),
        logic::Xor => Kind::Logic(Logic::Xor),
        // On booleans, which are 0 and 1, the bits are all there is.
        logic::BitwiseAnd => Kind::Logic(Logic::And),
        logic::BitwiseOr => Kind::Logic(Logic::Or),
        logic::BitwiseXor => Kind::Logic(Logic::Xor),
    }
    None
}

/// How the inputs meet in the output, how each is read, and the layout of the output. `into` is the input that the others
/// are laid into where they do not meet as equals.
fn meet(site: &Site<'_>, meeting: Meeting, into: usize) -> Option<(Broadcast, Vec<(usize, Layout)>, Layout)> {
    let out = &site.outputs[0];
    let layout = common_layout(site.inputs.iter().filter(|p| p.rank() == out.rank()));
    let order = layout.order(out.rank());
    let (mut steps, mut reads) = (vec![], vec![]);
    for (i, port) in site.inputs.iter().enumerate() {
        let own = steps_of(port, out, meeting, i == into, layout)?;
        steps.push(order.iter().map(|&a| own[a]).collect());
        reads.push((i, if port.rank() == out.rank() { layout } else { Layout::PLAIN }));
    }
    Some((Broadcast::with_steps(&layout.dims(&out.shape), steps), reads, layout))
}

// Steps of an input along every axis of the output, as the model counts them.
fn steps_of(port: &Port, out: &Port, meeting: Meeting, into: bool, layout: Layout) -> Option<Vec<usize>> {
    let plain = meeting.strides(&port.shape, &out.shape, into)?;
    let rank = out.rank();
    if port.rank() != rank {
        return Some(plain);
    }
    let own = strides(&layout.dims(&port.shape));
    Some((0..rank).map(|a| if port.shape[a] == 1 { 0 } else { own[layout.axis(a, rank)] }).collect())
}

#[derive(Debug)]
struct Pairs {
    kind: Kind,
    shapes: Broadcast,
    ty: ElementType,
}

impl Step<Cpu> for Pairs {
    fn kernel(&self) -> String {
        let name = match self.kind {
            Kind::Arithmetic(how) => format!("{how:?}"),
            Kind::Comparison(how) => format!("{how:?}"),
            Kind::Logic(how) => format!("{how:?}"),
        };
        format!("elementwise_{}[{}]", self.ty, name.to_ascii_lowercase())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (exec, shapes) = (io.exec, &self.shapes);
        with_type!(self.ty, T => {
            let (a, b) = (io.input::<T>(0), io.input::<T>(1));
            match self.kind {
                Kind::Arithmetic(how) => kernels::arithmetic(exec, how, shapes, a, b, io.output::<T>(0))
                    .map_err(|_| Error::invalid(format!("division of {} by zero", self.ty)))?,
                Kind::Comparison(how) => kernels::compare(exec, how, shapes, a, b, io.output(0)),
                Kind::Logic(how) => kernels::logical(exec, how, shapes, a, b, io.output(0)),
            }
        });
        Ok(())
    }
}

#[derive(Debug)]
struct Choice {
    shapes: Broadcast,
    size: usize,
}

impl Step<Cpu> for Choice {
    fn kernel(&self) -> String {
        "select".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (exec, shapes, condition) = (io.exec, &self.shapes, io.inputs[0]);
        macro_rules! run {
            ($t:ty) => {
                kernels::select::<$t>(exec, shapes, condition, io.input(1), io.input(2), io.output(0))
            };
        }
        match self.size {
            1 => run!(u8),
            2 => run!(u16),
            4 => run!(u32),
            _ => run!(u64),
        }
        Ok(())
    }
}

fn choice(site: &Site<'_>, meeting: Meeting) -> Option<Built> {
    let size = size_of(&site.outputs[0]);
    if !matches!(size, 1 | 2 | 4 | 8) || site.inputs[0].ty != ElementType::Boolean {
        return None;
    }
    let (shapes, reads, layout) = meet(site, meeting, 1)?;
    Some(Built::step(Choice { shapes, size }, reads, layout))
}
