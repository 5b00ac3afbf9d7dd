//! A program in the terms that both kinds of files share: blocks of operators over named variables, each operator with slots. A
//! variable may be written again and again; `graph.rs` tells its values apart.

use crate::attributes::attribute;
use crate::types::{self, LOD_TENSOR, LOD_TENSOR_ARRAY};
use crate::wire::{BlockDesc, LodTensorDesc, OpDesc, OpVar, ProgramDesc, VarDesc};
use carafe_frontend::Held;
use carafe_graph::{AttrMap, Error, ItemType, Result};
use std::collections::HashMap;

/// The version of a program that does not know its own: that of a development build.
const NEWEST: i64 = 3_000_000;
/// Programs before 2.0 have other operators under the same names.
const OLDEST: i64 = 1_000_000;

/// Blocks; the first is the main one.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) blocks: Vec<Block>,
    /// The version of Paddle that wrote it: 2006002 is 2.6.2.
    pub(crate) version: i64,
}

/// Operators in the order in which they run.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Variables that live in the block. What it writes besides them lives in a block around it.
    pub(crate) vars: HashMap<String, Variable>,
    pub(crate) ops: Vec<Operator>,
    /// Variables that the operator around it gives values to.
    pub(crate) args: Vec<String>,
    /// What the block gives back; only in files that say so.
    pub(crate) yields: Option<Vec<String>>,
}

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// The type of a tensor, or of the elements of an array.
    pub(crate) ty: Result<ItemType>,
    pub(crate) is_array: bool,
    /// Whether it is a stored parameter.
    pub(crate) is_parameter: bool,
}

/// An operator.
#[derive(Debug, Default)]
pub(crate) struct Operator {
    pub(crate) op_type: String,
    pub(crate) inputs: Vec<Slot>,
    pub(crate) outputs: Vec<Slot>,
    pub(crate) attrs: AttrMap,
    /// Attributes that cannot be read.
    pub(crate) broken: Vec<(String, Held)>,
    /// Attributes that are blocks.
    pub(crate) blocks: Vec<(String, usize)>,
}

/// A slot and its variables.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) vars: Vec<String>,
}

impl Operator {
    /// The variables of an input slot.
    pub(crate) fn input(&self, slot: &str) -> &[String] {
        self.inputs.iter().find(|s| s.name == slot).map_or(&[], |s| &s.vars)
    }
    /// The variables of an output slot.
    pub(crate) fn output(&self, slot: &str) -> &[String] {
        self.outputs.iter().find(|s| s.name == slot).map_or(&[], |s| &s.vars)
    }
    /// The block of an attribute.
    pub(crate) fn block(&self, attribute: &str) -> Option<usize> {
        self.blocks.iter().find(|(name, _)| name == attribute).map(|(_, block)| *block)
    }
}

impl Program {
    /// The program of a message.
    pub(crate) fn of(message: ProgramDesc) -> Result<Program> {
        let version = match message.version.map_or(0, |v| v.version) {
            0 => NEWEST,
            version if version >= OLDEST => version,
            version => return Err(Error::invalid(format!("version {version} of the program; 2000000 is Paddle 2.0"))),
        };
        let blocks = message.blocks.into_iter().map(block).collect();
        Ok(Program { blocks, version })
    }
    /// Names of stored parameters, of all blocks, sorted.
    pub(crate) fn parameters(&self) -> Vec<String> {
        let all = self.blocks.iter().flat_map(|b| &b.vars);
        let mut names: Vec<String> = all.filter(|(_, v)| v.is_parameter).map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn block(b: BlockDesc) -> Block {
    Block {
        vars: b.vars.into_iter().map(variable).collect(),
        ops: b.ops.into_iter().map(operator).collect(),
        args: vec![],
        yields: None,
    }
}

fn variable(v: VarDesc) -> (String, Variable) {
    let kind = v.r#type.as_ref().map_or(0, |t| t.r#type);
    let is_array = kind == LOD_TENSOR_ARRAY;
    let desc: Option<LodTensorDesc> = v.r#type.and_then(|t| if is_array { t.tensor_array } else { t.lod_tensor });
    let ty = match desc.and_then(|d| d.tensor) {
        Some(desc) => types::known(i64::from(desc.data_type)).map(|ty| types::tensor(ty, &desc.dims)),
        None => Err(Error::invalid(format!("variable `{}` is no tensor", v.name))),
    };
    let is_parameter = v.persistable && kind == LOD_TENSOR;
    (v.name, Variable { ty, is_array, is_parameter })
}

fn operator(op: OpDesc) -> Operator {
    let slots = |list: Vec<OpVar>| list.into_iter().map(|s| Slot { name: s.parameter, vars: s.arguments }).collect();
    let mut made =
        Operator { op_type: op.r#type, inputs: slots(op.inputs), outputs: slots(op.outputs), ..Operator::default() };
    op.attrs.into_iter().for_each(|a| attribute(a, &mut made));
    made
}
