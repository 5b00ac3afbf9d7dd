//! A network with time taken apart: nodes that read other nodes a number of frames away. Descriptors are brought into one form,
//! where offsets stand at the nodes and whatever needs to remember has a node of its own.

use crate::descriptor::Descriptor;
use crate::dims::output_dim;
use crate::net::{Body, Net};
use carafe_graph::{Error, Result};
use std::collections::HashMap;

/// All nodes: inputs first, then those of the network, those made here, and outputs last.
#[derive(Debug)]
pub(crate) struct Timed<'n> {
    pub(crate) net: &'n Net,
    pub(crate) nodes: Vec<TimedNode>,
    by_name: HashMap<String, usize>,
    made: HashMap<String, usize>,
}

#[derive(Debug)]
pub(crate) struct TimedNode {
    pub(crate) name: String,
    pub(crate) work: Work,
    /// One, but for a Switch.
    pub(crate) reads: Vec<Expr>,
    /// How many columns it gives.
    pub(crate) dim: Option<usize>,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    Input,
    Output,
    Component(usize),
    Range {
        offset: i64,
        dim: i64,
    },
    Same,
    /// Its value counts as the same at all times.
    Timeless,
    /// Holds what it reads at multiples of a number of frames.
    Round(i64),
    /// Takes turns.
    Switch,
}

/// What is read at a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Read(Read),
    Append(Vec<Expr>),
    Sum(Vec<Expr>),
    Scale(f64, Box<Expr>),
    Const(f64, usize),
    Failover(Box<Expr>, Box<Expr>),
}

/// A node at another time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) node: usize,
    pub(crate) offset: i64,
    /// Zeros where the node is not defined.
    pub(crate) optional: bool,
}

impl Expr {
    /// Everything that it reads.
    pub(crate) fn all_reads(&self, each: &mut dyn FnMut(&Read)) {
        match self {
            Expr::Read(read) => each(read),
            Expr::Append(list) | Expr::Sum(list) => list.iter().for_each(|e| e.all_reads(each)),
            Expr::Scale(_, inner) => inner.all_reads(each),
            Expr::Const(..) => {}
            Expr::Failover(a, b) => {
                a.all_reads(each);
                b.all_reads(each);
            }
        }
    }
}

impl<'n> Timed<'n> {
    pub(crate) fn new(net: &'n Net) -> Result<Timed<'n>> {
        let mut timed = Timed { net, nodes: vec![], by_name: HashMap::new(), made: HashMap::new() };
        for (name, dim) in &net.inputs {
            timed.declare(name, Work::Input, Some(*dim))?;
        }
        for node in &net.nodes {
            let work = match node.body {
                Body::Component(i) => Work::Component(i),
                Body::Range { offset, dim } => Work::Range { offset, dim },
                Body::Same => Work::Same,
                Body::Latest => Work::Timeless,
            };
            timed.declare(&node.name, work, None)?;
        }
        for (i, node) in net.nodes.iter().enumerate() {
            let reads = timed.lower(&node.input, 0, &node.name).map_err(|e| e.at(format!("node `{}`", node.name)))?;
            timed.nodes[net.inputs.len() + i].reads = vec![reads];
        }
        for (name, descriptor) in &net.outputs {
            let reads = timed.lower(descriptor, 0, name).map_err(|e| e.at(format!("output-node `{name}`")))?;
            timed.nodes.push(TimedNode { name: name.clone(), work: Work::Output, reads: vec![reads], dim: None });
        }
        timed.sizes();
        Ok(timed)
    }

    fn declare(&mut self, name: &str, work: Work, dim: Option<usize>) -> Result<()> {
        if self.by_name.insert(name.to_string(), self.nodes.len()).is_some() {
            return Err(Error::invalid(format!("two nodes are named `{name}`")));
        }
        self.nodes.push(TimedNode { name: name.to_string(), work, reads: vec![], dim });
        Ok(())
    }

    // What a descriptor reads, `by` frames later.
    fn lower(&mut self, d: &Descriptor, by: i64, reader: &str) -> Result<Expr> {
        let more = |a: i64, b: i64| a.checked_add(b).ok_or_else(|| Error::invalid("an offset is out of range"));
        Ok(match d {
            Descriptor::Node(name) => {
                let node = self.by_name.get(name).copied();
                let node = node.ok_or_else(|| Error::not_found(format!("it reads `{name}`, which is no node")))?;
                Expr::Read(Read { node, offset: by, optional: false })
            }
            Descriptor::Offset(inner, offset) => self.lower(inner, more(by, *offset)?, reader)?,
            Descriptor::Append(list) => Expr::Append(self.lower_all(list, by, reader)?),
            Descriptor::Sum(list) => Expr::Sum(self.lower_all(list, by, reader)?),
            Descriptor::Scale(factor, inner) => Expr::Scale(*factor, Box::new(self.lower(inner, by, reader)?)),
            Descriptor::Const(value, dim) => Expr::Const(*value, *dim),
            Descriptor::Failover(a, b) => {
                Expr::Failover(Box::new(self.lower(a, by, reader)?), Box::new(self.lower(b, by, reader)?))
            }
            Descriptor::IfDefined(inner) => {
                let (mut inner, mut by) = (&**inner, by);
                while let Descriptor::Offset(of, offset) = inner {
                    (inner, by) = (&**of, more(by, *offset)?);
                }
                match inner {
                    Descriptor::IfDefined(_) => self.lower(inner, by, reader)?,
                    Descriptor::Scale(factor, of) => {
                        let of = Descriptor::IfDefined(of.clone());
                        Expr::Scale(*factor, Box::new(self.lower(&of, by, reader)?))
                    }
                    Descriptor::Node(_) => match self.lower(inner, by, reader)? {
                        Expr::Read(read) => Expr::Read(Read { optional: true, ..read }),
                        other => other,
                    },
                    _ => {
                        let node = self.make(inner, Work::Same, &[inner], reader)?;
                        Expr::Read(Read { node, offset: by, optional: true })
                    }
                }
            }
            Descriptor::Round(inner, frames) => {
                let node = self.make(d, Work::Round(*frames), &[inner], reader)?;
                Expr::Read(Read { node, offset: by, optional: false })
            }
            Descriptor::Switch(list) => {
                let list: Vec<&Descriptor> = list.iter().collect();
                let node = self.make(d, Work::Switch, &list, reader)?;
                Expr::Read(Read { node, offset: by, optional: false })
            }
            Descriptor::Replace(inner) => {
                let node = self.make(d, Work::Timeless, &[inner], reader)?;
                Expr::Read(Read { node, offset: 0, optional: false })
            }
        })
    }
    fn lower_all(&mut self, list: &[Descriptor], by: i64, reader: &str) -> Result<Vec<Expr>> {
        list.iter().map(|d| self.lower(d, by, reader)).collect()
    }

    // A node for a part of a descriptor; the same part is made once.
    fn make(&mut self, key: &Descriptor, work: Work, of: &[&Descriptor], reader: &str) -> Result<usize> {
        let key = format!("{work:?}{key:?}");
        if let Some(node) = self.made.get(&key) {
            return Ok(*node);
        }
        let reads = of.iter().map(|d| self.lower(d, 0, reader)).collect::<Result<Vec<_>>>()?;
        let name = format!("{reader}/part{}", self.made.len());
        self.nodes.push(TimedNode { name, work, reads, dim: None });
        self.made.insert(key, self.nodes.len() - 1);
        Ok(self.nodes.len() - 1)
    }

    // Sizes go from inputs on; what is in a cycle has one as soon as it can tell without the cycle.
    fn sizes(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..self.nodes.len() {
                if self.nodes[i].dim.is_some() {
                    continue;
                }
                let read = self.nodes[i].reads.iter().find_map(|e| self.dim(e));
                let dim = match self.nodes[i].work {
                    Work::Component(c) => output_dim(&self.net.components[c], read),
                    Work::Range { dim, .. } => usize::try_from(dim).ok(),
                    _ => read,
                };
                changed |= dim.is_some();
                self.nodes[i].dim = dim;
            }
        }
    }
    fn dim(&self, e: &Expr) -> Option<usize> {
        match e {
            Expr::Read(read) => self.nodes[read.node].dim,
            Expr::Append(list) => list.iter().map(|e| self.dim(e)).try_fold(0usize, |a, b| a.checked_add(b?)),
            Expr::Sum(list) => list.iter().find_map(|e| self.dim(e)),
            Expr::Scale(_, inner) => self.dim(inner),
            Expr::Const(_, dim) => Some(*dim),
            Expr::Failover(a, b) => self.dim(a).or_else(|| self.dim(b)),
        }
    }
}
