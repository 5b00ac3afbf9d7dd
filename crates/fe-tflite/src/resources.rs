//! Variables and tables behind handles. Handles are followed while a graph is decoded: who reads a variable is given what was
//! assigned last or the variable of the state, and who looks into a table is given its keys and values.

use crate::options::Options;
use crate::wire::{Model, Operator, SubGraph};
use carafe_graph::AttrValue;
use std::collections::HashMap;

/// A tensor of the file: sub-graph and index.
pub(crate) type TensorRef = (usize, usize);

/// What the sub-graphs that run once leave behind.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    /// Initial values of variables by name.
    pub(crate) variables: HashMap<String, TensorRef>,
    /// Keys and values of tables.
    pub(crate) tables: HashMap<i64, (TensorRef, TensorRef)>,
}

impl Resources {
    /// Of all sub-graphs that some operator runs once.
    pub(crate) fn of(model: &Model) -> Resources {
        let mut all = Resources::default();
        let operators = model.subgraphs.iter().flat_map(|g| &g.operators);
        let once = operators.filter(|op| name(model, op) == "CALL_ONCE").filter_map(|op| op.options.as_ref().ok());
        let indexes = once.flat_map(|o| &o.graphs).filter_map(|(_, index)| usize::try_from(*index).ok());
        let mut indexes: Vec<usize> = indexes.collect();
        indexes.sort_unstable();
        indexes.dedup();
        for index in indexes {
            let Some(graph) = model.subgraphs.get(index) else { continue };
            for op in &graph.operators {
                let input = |i: usize| Some((index, usize::try_from(*op.inputs.get(i)?).ok()?));
                let handle = op.inputs.first().and_then(|t| handle(model, graph, *t));
                match (name(model, op), handle) {
                    ("ASSIGN_VARIABLE", Some(Handle::Variable(name))) => {
                        all.variables.extend(input(1).map(|value| (name, value)));
                    }
                    ("HASHTABLE_IMPORT", Some(Handle::Table(id))) => {
                        all.tables.extend(input(1).zip(input(2)).map(|both| (id, both)));
                    }
                    _ => {}
                }
            }
        }
        all
    }
}

/// What a handle stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Handle {
    Variable(String),
    Table(i64),
}

/// What the handle in a tensor stands for, where an operator of the same graph makes it.
pub(crate) fn handle(model: &Model, graph: &SubGraph, tensor: i32) -> Option<Handle> {
    let op = graph.operators.iter().find(|op| op.outputs.contains(&tensor))?;
    let options = op.options.as_ref().ok()?;
    match name(model, op) {
        "VAR_HANDLE" => {
            let (container, name) = (text(options, "container"), text(options, "shared_name"));
            Some(Handle::Variable(if container.is_empty() { name } else { format!("{container}/{name}") }))
        }
        "HASHTABLE" => match options.attrs.get("table_id") {
            Some(AttrValue::Int(id)) => Some(Handle::Table(*id)),
            _ => None,
        },
        _ => None,
    }
}

/// Type of an operator; empty for one whose code is not there.
pub(crate) fn name<'m>(model: &'m Model, op: &Operator) -> &'m str {
    model.codes.get(op.code).filter(|c| !c.is_custom).map_or("", |c| &c.name)
}

fn text(options: &Options, name: &str) -> String {
    match options.attrs.get(name) {
        Some(AttrValue::Str(s)) => s.clone(),
        _ => String::new(),
    }
}
