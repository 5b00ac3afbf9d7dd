//! Operations of one number that no group of floats takes: on integers and booleans, and questions about floats.

use super::types::is_number;
use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::{Op, Result};
use carafe_ops::{logic, math};
use carafe_tensor::ElementType;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Not,
    Abs,
    Negative,
    Sign,
    IsNan,
    IsFinite,
    IsInf { negative: bool, positive: bool },
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let Some(port) = site.inputs.first() else { return Ok(None) };
    let (op, ty, layout) = (site.op, port.ty, port.layout);
    let integer = ty.is_integer() && is_number(ty);
    if ty.is_integer() && (op.is::<math::Floor>() || op.is::<math::Ceiling>() || op.is::<math::Round>()) {
        return Ok(Some(Built::view(0, layout, layout)));
    }
    let float = matches!(ty, ElementType::F32 | ElementType::F64);
    let Some(kind) = kind(op) else { return Ok(None) };
    let known = match kind {
        Kind::Not => ty == ElementType::Boolean,
        Kind::Abs | Kind::Negative | Kind::Sign => integer,
        Kind::IsNan | Kind::IsFinite | Kind::IsInf { .. } => float,
    };
    Ok(known.then(|| Built::step(One { kind, ty }, vec![(0, layout)], layout)))
}

fn kind(op: &dyn Op) -> Option<Kind> {
    if let Some(op) = op.get::<math::IsInf>() {
        return Some(Kind::IsInf { negative: op.detect_negative, positive: op.detect_positive });
    }
    macro_rules! table {
        ($($class:ty => $kind:ident),* $(,)?) => {
            $(if op.is::<$class>() { return Some(Kind::$kind); })*
        };
    }
    table! {
        logic::LogicalNot => Not, logic::BitwiseNot => Not, math::Abs => Abs, math::Negative => Negative,
        math::Sign => Sign, math::IsNaN => IsNan, math::IsFinite => IsFinite,
    }
    None
}

#[derive(Debug)]
struct One {
    kind: Kind,
    ty: ElementType,
}

impl Step<Cpu> for One {
    fn kernel(&self) -> String {
        let name = format!("{:?}", self.kind);
        let name = name.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        format!("elementwise_{}[{name}]", self.ty)
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        match self.kind {
            Kind::Not => each(io, |x: u8| u8::from(x == 0)),
            Kind::Abs | Kind::Negative | Kind::Sign => self.integers(io),
            _ if self.ty == ElementType::F32 => {
                let kind = self.kind;
                each(io, move |x: f32| answer(kind, f64::from(x)));
            }
            kind => each(io, move |x: f64| answer(kind, x)),
        }
        Ok(())
    }
}

impl One {
    fn integers(&self, io: &mut Io<'_>) {
        macro_rules! signed {
            ($t:ty) => {
                match self.kind {
                    Kind::Abs => each(io, <$t>::wrapping_abs),
                    Kind::Negative => each(io, <$t>::wrapping_neg),
                    _ => each(io, <$t>::signum),
                }
            };
        }
        macro_rules! unsigned {
            ($t:ty) => {
                match self.kind {
                    Kind::Abs => each(io, |x: $t| x),
                    Kind::Negative => each(io, <$t>::wrapping_neg),
                    _ => each(io, |x: $t| <$t>::from(x > 0)),
                }
            };
        }
        match self.ty {
            ElementType::I8 => signed!(i8),
            ElementType::I16 => signed!(i16),
            ElementType::I32 => signed!(i32),
            ElementType::I64 => signed!(i64),
            ElementType::U8 => unsigned!(u8),
            ElementType::U16 => unsigned!(u16),
            ElementType::U32 => unsigned!(u32),
            _ => unsigned!(u64),
        }
    }
}

fn answer(kind: Kind, x: f64) -> u8 {
    u8::from(match kind {
        Kind::IsNan => x.is_nan(),
        Kind::IsFinite => x.is_finite(),
        Kind::IsInf { negative, positive } => x.is_infinite() && if x < 0.0 { negative } else { positive },
        _ => false,
    })
}

fn each<T: bytemuck::Pod, U: bytemuck::Pod>(io: &mut Io<'_>, f: impl Fn(T) -> U) {
    let from = io.input::<T>(0);
    io.output::<U>(0).iter_mut().zip(from).for_each(|(y, &x)| *y = f(x));
}
