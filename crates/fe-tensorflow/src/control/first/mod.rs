//! Control flow of the first generation, in which values are dead or alive, turned into If and While over sub-graphs. Loops come
//! first (`frames.rs`), from the innermost out; each is then a node like any other, and what is left of Switch and Merge are
//! conditionals (`conditionals.rs`). What cannot be understood stays in the graph as a node with a fault, so that it is
//! reported with its name, and only where it is needed.

mod conditionals;
mod frames;
mod graph;
mod leftovers;

pub(super) use leftovers::RULES;

use carafe_frontend::{Held, SourceGraph, SourceNode};
use carafe_graph::{AttrValue, Result};
use std::collections::HashMap;
use std::rc::Rc;

/// Sub-graphs are looked into as deep as they are translated.
const MAX_DEPTH: usize = 64;

/// Turns all loops and conditionals of the first generation into those of the second, in functions and sub-graphs too.
pub(crate) fn prepare(graph: &mut SourceGraph) -> Result<()> {
    let mut done = Done::default();
    done.nodes(&mut graph.nodes, 0)?;
    structure_one(graph)?;
    for function in &mut graph.functions {
        done.nodes(&mut function.graph.nodes, 0)?;
        structure_one(&mut function.graph)?;
    }
    Ok(())
}

fn structure_one(graph: &mut SourceGraph) -> Result<()> {
    if graph.nodes.iter().any(is_first_generation) {
        graph.nodes.iter_mut().for_each(normalize);
        frames::structure(graph)?;
        conditionals::structure(graph)?;
    }
    Ok(())
}

fn is_first_generation(node: &SourceNode) -> bool {
    matches!(
        node.op_type.as_str(),
        "Enter"
            | "Exit"
            | "LoopCond"
            | "Merge"
            | "NextIteration"
            | "RefEnter"
            | "RefExit"
            | "RefMerge"
            | "RefNextIteration"
            | "RefSwitch"
            | "Switch"
            | "_SwitchN"
    )
}

/// A Case with more branches is left as it is, to be refused.
const MOST_BRANCHES: i64 = 1 << 12;

// References to variables are values here. No list of operations has `_SwitchN`, so what it gives is known here alone.
fn normalize(node: &mut SourceNode) {
    if is_first_generation(node)
        && let Some(plain) = node.op_type.strip_prefix("Ref")
    {
        node.op_type = plain.to_string();
    }
    if node.op_type == "_SwitchN"
        && let Some(AttrValue::Int(n @ 1..=MOST_BRANCHES)) = node.attrs.get("num_outs")
    {
        node.outputs = (0..*n as usize).map(|port| crate::expand::value_name(&node.name, port)).collect();
    }
}

/// Sub-graphs that were looked at, with what became of them; graphs that several nodes share stay shared.
#[derive(Default)]
struct Done(HashMap<*const SourceGraph, (Rc<SourceGraph>, Rc<SourceGraph>)>);

impl Done {
    fn nodes(&mut self, nodes: &mut [SourceNode], depth: usize) -> Result<()> {
        for (_, held) in nodes.iter_mut().flat_map(|n| n.held.iter_mut()) {
            let Held::Graph(graph) = held else { continue };
            if depth < MAX_DEPTH {
                *graph = self.graph(graph, depth)?;
            }
        }
        Ok(())
    }
    fn graph(&mut self, graph: &Rc<SourceGraph>, depth: usize) -> Result<Rc<SourceGraph>> {
        if let Some((_, new)) = self.0.get(&Rc::as_ptr(graph)) {
            return Ok(new.clone());
        }
        let has_work = graph.nodes.iter().any(|n| is_first_generation(n) || n.graphs().next().is_some());
        let new = match has_work {
            false => graph.clone(),
            true => {
                let mut new = (**graph).clone();
                self.nodes(&mut new.nodes, depth + 1)?;
                structure_one(&mut new)?;
                Rc::new(new)
            }
        };
        self.0.insert(Rc::as_ptr(graph), (graph.clone(), new.clone()));
        Ok(new)
    }
}
