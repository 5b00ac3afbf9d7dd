//! Walks through decision trees.

use super::{Built, Cpu, Io, Site, Step};
use carafe_graph::{Error, Result};
use carafe_kernels::{TreeNodes, TreeTest, TreeWalk as Kernel};
use carafe_ops::carafe::TreeWalk;
use carafe_ops::carafe::tree_walk::Test;
use carafe_plan::Layout;
use carafe_tensor::ElementType;

#[derive(Debug)]
struct Walk(Kernel);

impl Step<Cpu> for Walk {
    fn kernel(&self) -> String {
        "tree_walk".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output::<i64>(0);
        let walked = self.0.run(io.exec, io.input(0), io.input(1), out);
        walked.map_err(|node| Error::invalid(format!("a walk starts at node {node}, which no tree has")))
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<TreeWalk>().filter(|_| !site.group && site.epilogue.is_empty()) else {
        return Ok(None);
    };
    Ok(walk(site, op))
}

fn walk(site: &Site<'_>, op: &TreeWalk) -> Option<Built> {
    let (x, at) = (&site.inputs[0], &site.inputs[1]);
    let (&[rows, width], &[walks, trees]) = (&x.shape[..], &at.shape[..]) else { return None };
    if !x.is_f32() || at.ty != ElementType::I64 || rows != walks {
        return None;
    }
    let ints = |i: usize| site.inputs[i].ints();
    let (features, yes, no) = (ints(2)?, ints(4)?, ints(5)?);
    let missing = if site.own_inputs > 6 { ints(6)?.iter().map(|&m| u8::from(m != 0)).collect() } else { vec![] };
    let values = site.inputs[3].constant.as_ref()?.to_vec::<f32>().ok()?;
    let test = match op.test {
        Test::LessEqual => TreeTest::LessEqual,
        Test::Less => TreeTest::Less,
        Test::GreaterEqual => TreeTest::GreaterEqual,
        Test::Greater => TreeTest::Greater,
        Test::Equal => TreeTest::Equal,
        Test::NotEqual => TreeTest::NotEqual,
    };
    let tables = TreeNodes { features: &features, values: &values, yes: &yes, no: &no, missing: &missing };
    let kernel = Kernel::new(test, tables, op.levels, width, trees)?;
    Some(Built::step(Walk(kernel), vec![(0, Layout::PLAIN), (1, Layout::PLAIN)], Layout::PLAIN))
}
