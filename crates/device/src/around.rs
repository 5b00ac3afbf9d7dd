//! An operation around another one, which a device runs in a way of its own: it infers as what it was and tells the same of itself. The
//! kernel was chosen for inputs as they are, so nobody changes their order any more.

use carafe_graph::{EvalCx, OpRef, Result};

/// What the operation is around, and what it does otherwise.
pub trait Around: Sized {
    /// The operation that it was.
    fn inner(&self) -> &OpRef;
    /// Its evaluation.
    fn evaluate(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.inner().eval(cx)
    }
    /// Whether it has one.
    fn evaluates(&self) -> bool {
        self.inner().has_eval()
    }
    /// Whether another one around an equal operation is the same.
    fn is_same(&self, other: &Self) -> bool;
}

/// Makes an operation of a type that says by [`Around`] what it is around.
#[macro_export]
macro_rules! op_around {
    ($name:ident) => {
        impl $crate::graph::Op for $name {
            fn infer(&self, cx: &mut $crate::graph::InferCx<'_>) -> $crate::graph::Result<()> {
                $crate::Around::inner(self).infer(cx)
            }
            fn eval(&self, cx: &mut $crate::graph::EvalCx<'_>) -> $crate::graph::Result<()> {
                $crate::Around::evaluate(self, cx)
            }
            fn has_eval(&self) -> bool {
                $crate::Around::evaluates(self)
            }
            fn keeps_zero(&self) -> bool {
                $crate::Around::inner(self).keeps_zero()
            }
            fn needs_own_type(&self) -> bool {
                $crate::Around::inner(self).needs_own_type()
            }
            fn keeps_rows(&self, cx: &$crate::graph::RowsCx<'_>) -> ::std::result::Result<(), String> {
                $crate::Around::inner(self).keeps_rows(cx)
            }
            fn reorder(&self, _: &$crate::graph::OrderCx<'_>) -> Option<$crate::graph::Reordered> {
                None
            }
            fn macs(&self, inputs: &[&$crate::graph::Fact], outputs: &[&$crate::graph::Fact]) -> Option<u64> {
                $crate::Around::inner(self).macs(inputs, outputs)
            }
        }

        impl $crate::graph::OpDecl for $name {
            fn info(&self) -> &'static $crate::graph::OpInfo {
                $crate::Around::inner(self).info()
            }
            fn attrs(&self) -> Vec<(::std::borrow::Cow<'static, str>, $crate::graph::AttrValue)> {
                $crate::Around::inner(self).attrs()
            }
            fn type_name(&self) -> &str {
                $crate::Around::inner(self).type_name()
            }
            fn opset(&self) -> &str {
                $crate::Around::inner(self).opset()
            }
            fn as_any(&self) -> &dyn ::std::any::Any {
                self
            }
            fn eq_op(&self, other: &dyn $crate::graph::Op) -> bool {
                let same = |o: &$name| {
                    let (own, others) = ($crate::Around::inner(self), $crate::Around::inner(o));
                    $crate::Around::is_same(self, o) && own.eq_op(&**others)
                };
                other.get::<$name>().is_some_and(same)
            }
            fn bodies(&self) -> Vec<(&'static str, &$crate::graph::Body)> {
                $crate::Around::inner(self).bodies()
            }
            fn clone_op(&self) -> Box<dyn $crate::graph::Op> {
                Box::new(self.clone())
            }
        }
    };
}
