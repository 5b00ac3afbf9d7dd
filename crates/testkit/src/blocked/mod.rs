//! A second backend of plans, for tests: channels in blocks of four, a buffer for each value, outputs that are downloaded at
//! the end, matrix products in another precision than the model's, and a handful of builders. All else is evaluated.

mod memory;
mod steps;

use carafe_graph::{EvalEnv, Model, Notes, Op, Result, run_passes};
use carafe_ops::convolution::Convolution;
use carafe_ops::indexing::NonZero;
use carafe_ops::linear::MatMul;
use carafe_plan::elementwise::{Act, Binary, Elt, Unary};
use carafe_plan::{
    Backend, Bodies, Built, DynamicOutput, Fusing, Grid, Known, Layout, MemoryKind, Parts, Plan, Planner, RowStrides,
    RunCx, RunMemory, SHAPED, Site, Step, run,
};
use carafe_tensor::{ElementType, Tensor};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use memory::{BlockedMemory, Io};

/// Where images lie: `nChw4c`.
pub(crate) const LAYOUT: Layout = Layout::channel_blocks(4);

/// The backend.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// Element type in which matrix products are computed.
    pub(crate) products: ElementType,
}

impl Fusing for Blocked {
    fn epilogue_axis(&self, op: &dyn Op, _rank: usize) -> Option<usize> {
        op.is::<Convolution>().then_some(1)
    }
    fn fuses(&self, function: &Elt, ty: ElementType) -> bool {
        let known = match function {
            Elt::Act(act) => matches!(act, Act::Relu | Act::LeakyRelu(_)),
            Elt::Unary(f) => matches!(f, Unary::Abs | Unary::Negative | Unary::Sqrt | Unary::Floor | Unary::Ceiling),
            Elt::Binary(f) => matches!(f, Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide),
            Elt::Quantize(_) | Elt::RoundTrip(_) => false,
        };
        known && ty == ElementType::F32
    }
    fn precision(&self, op: &dyn Op, inputs: &[Known<'_>], _outputs: &[Known<'_>]) -> ElementType {
        match inputs.first().map(|v| v.ty) {
            Some(ElementType::F32) if op.is::<MatMul>() => self.products,
            ty => ty.unwrap_or(ElementType::F32),
        }
    }
}

impl Backend for Blocked {
    const MAX_OPERANDS: usize = 16;
    const MEMORY: MemoryKind = MemoryKind::Buffers;

    type BuildCx = ();
    type Memory = BlockedMemory;
    type Stream = ();
    type Exec = ();
    type Io<'a> = Io;

    fn build_cx(&self) {}
    fn build(&self, site: &Site<'_, Blocked>) -> Result<Option<Built<Blocked>>> {
        Ok(steps::build(site))
    }
    fn dynamic_output(&self, op: &dyn Op, types: &[ElementType]) -> Option<Arc<dyn DynamicOutput<Blocked>>> {
        let index = op.get::<NonZero>().filter(|_| types[0] == ElementType::F32)?.output_type;
        Some(Arc::new(steps::Found { index }))
    }
    fn reorder(&self, shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Blocked>> {
        Arc::new(steps::Reorder { shape: shape.to_vec(), ty, from, to })
    }
    fn convert(
        &self,
        _len: usize,
        from: ElementType,
        to: ElementType,
        _grid: Option<Grid>,
    ) -> Result<Arc<dyn Step<Blocked>>> {
        Ok(Arc::new(steps::Cast { from, to }))
    }
    fn move_parts(&self, parts: Parts, strides: &RowStrides) -> Arc<dyn Step<Blocked>> {
        Arc::new(steps::Move { parts, strides: strides.clone() })
    }
    fn enter(&self, _: &(), _scratch: usize, _cancel: Option<Arc<AtomicBool>>) -> Result<()> {
        Ok(())
    }
    fn on_host<R>(&self, _: &(), work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// Plans a model and runs it twice over the same memory; the plan and the outputs.
pub(crate) fn run_model(
    model: &Model,
    inputs: &[Tensor],
    products: ElementType,
) -> Result<(Arc<Plan<Blocked>>, Vec<Tensor>)> {
    let mut model = model.clone();
    run_passes(&mut model, SHAPED, &mut Notes::default())?;
    model.infer()?;
    let planner = Arc::new(Planner::new(model, Blocked { products }));
    let bodies = Arc::new(Bodies::new(planner.clone()));
    bodies.use_stream(&());
    let mut memory = RunMemory::default();
    let plan = planner.plan(inputs)?;
    for _ in 0..2 {
        let mut env = EvalEnv::default();
        env.bodies = Some(bodies.clone());
        let (memory, env) = (&mut memory, &mut env);
        run(&plan, &mut RunCx { planner: &planner, stream: &(), inputs, memory, env, profiled: false, leaves: false })?;
    }
    // Behind those of the model stand the values that a segment hands to the next.
    Ok((plan, memory.outputs[..planner.model.results().len()].to_vec()))
}

#[cfg(test)]
mod tests;
