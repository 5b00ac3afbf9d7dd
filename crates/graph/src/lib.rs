//! Model graph, the `Op` trait, shape inference and reference evaluation. This crate knows no operation by name except
//! the three that make a graph (Parameter, Const, Result), no file format and no device.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// The derive writes paths that begin with `carafe_graph`.
extern crate self as carafe_graph;

mod attr;
mod body;
pub mod dump;
mod error;
mod eval;
mod fact;
mod framework_node;
mod infer;
mod item_type;
pub mod log;
mod model;
mod op;
mod panic;
mod pass;
mod printable;
mod registry;
mod reorder;
mod replacement;
mod rewrite;
mod rows;
mod rt_info;
mod sort;
mod string_list;
mod structural;
mod topo;
mod verify;
mod version;

pub use attr::{Attr, AttrInfo, AttrKind, AttrMap, AttrValue, TensorAttr, write_attr};
pub use body::{Body, BodyInput, BodyOutput, Slicing};
pub use carafe_derive::Op;
pub use carafe_tensor as tensor;
pub use error::{Error, ErrorKind, Result};
pub use eval::{EvalCx, EvalEnv, RunBody, eval_node, eval_op, run};
pub use fact::{Content, Fact};
pub use framework_node::{FrameworkNode, ShapeFn, ShapeRule};
pub use infer::{InferCx, infer_op, normalize_axis};
pub use item_type::ItemType;
pub use model::{Model, Node, NodeId, Output, Use, Value};
pub use op::{Elementwise, Op, OpDecl, OpInfo, OpNew, OpRef, PortInfo};
pub use panic::{caught, panic_text, panicked};
pub use pass::{Notes, Pass, PassChoice, Phase, PhasedPass, order_passes, run_passes};
pub use printable::{printable, short_number};
pub use registry::{NEWEST_OPSET, OpFactory, Registry, edit_distance};
pub use reorder::{OrderCx, Reordered};
pub use replacement::{Match, REPLACEMENT, Replacement};
pub use rewrite::{Outcome, Rewrite, in_bodies};
pub use rows::{RowKind, RowsCx};
pub use rt_info::{RtAttribute, RtInfo, RtTree};
pub use sort::{sort_by, sort_by_key};
pub use structural::{Constant, Parameter, ResultOp};
pub use verify::verify;
pub use version::{Version, VersionCx, VersionInput, newest, oldest, upgraded};
