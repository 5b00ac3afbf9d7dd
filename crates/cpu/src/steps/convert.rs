//! Changes of the element type.

use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::Result;
use carafe_kernels::cast::{Kind, convert_bytes};
use carafe_ops::convert::{Convert, ConvertLike};
use carafe_tensor::ElementType;
use std::sync::Arc;

#[derive(Debug)]
struct Cast {
    from: Kind,
    to: Kind,
}

impl Step<Cpu> for Cast {
    fn kernel(&self) -> String {
        format!("convert[{:?} {:?}]", self.from, self.to).to_ascii_lowercase()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        convert_bytes(io.exec, self.from, io.inputs[0], self.to, io.outputs[0]);
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || !(site.op.is::<Convert>() || site.op.is::<ConvertLike>()) {
        return Ok(None);
    }
    let (from, to, layout) = (site.inputs[0].ty, site.outputs[0].ty, site.layout(0));
    if from == to {
        return Ok(Some(Built::view(0, layout, layout)));
    }
    let (Some(from), Some(to)) = (kind(from), kind(to)) else { return Ok(None) };
    Ok(Some(Built::step(Cast { from, to }, vec![(0, layout)], layout)))
}

/// A step that converts elements, whatever their layout.
pub(crate) fn step(from: ElementType, to: ElementType) -> Option<Arc<dyn Step<Cpu>>> {
    Some(Arc::new(Cast { from: kind(from)?, to: kind(to)? }))
}

fn kind(ty: ElementType) -> Option<Kind> {
    use ElementType as E;
    Some(match ty {
        E::F32 => Kind::F32,
        E::F64 => Kind::F64,
        E::F16 => Kind::F16,
        E::Bf16 => Kind::Bf16,
        E::I8 => Kind::I8,
        E::I16 => Kind::I16,
        E::I32 => Kind::I32,
        E::I64 => Kind::I64,
        E::U8 => Kind::U8,
        E::U16 => Kind::U16,
        E::U32 => Kind::U32,
        E::U64 => Kind::U64,
        E::Boolean => Kind::Bool,
        _ => return None,
    })
}
