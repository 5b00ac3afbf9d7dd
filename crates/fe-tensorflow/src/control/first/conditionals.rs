//! Conditionals: a Merge of two values, of which one is alive where a predicate holds and the other where it does not, becomes
//! an If; one of several values, each alive for one value of an index, becomes a Case. Each value knows the predicates that it
//! depends on; what a branch computes is what depends on its side of the predicate. Merges of one predicate that do not depend
//! on each other share an operation.

use super::graph::{Part, Producers, drop_taken, leave_outputs, order, tensor};
use carafe_frontend::{Held, MARK, SourceGraph, SourceNode};
use carafe_graph::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Predicates that one value may depend on.
const MAX_DEPTH: usize = 64;

/// Predicates by number, and the side on which a value is alive: the port of the Switch that it comes from.
type Sides = Rc<BTreeSet<(usize, usize)>>;

/// What a Switch looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Predicate {
    value: String,
    /// It is an index of one of many branches, not a truth.
    is_index: bool,
}

/// A Merge that was understood.
struct Joined {
    node: usize,
    predicate: usize,
    /// Its input for each side of the predicate.
    values: Vec<usize>,
    rest: Sides,
    level: usize,
}

/// Replaces the Merges of a graph without loops by Ifs.
pub(super) fn structure(graph: &mut SourceGraph) -> Result<()> {
    if !graph.nodes.iter().any(|n| n.op_type == "Merge") {
        return Ok(());
    }
    let producers = Producers::of(&graph.nodes);
    let list = order(&graph.nodes, &producers, |_, _| false)?;
    let mut scan = Scan::new(&graph.nodes, &producers);
    list.iter().for_each(|i| scan.node(*i));
    let Scan { sides, predicates, joined, faults, whole, .. } = scan;
    for (i, fault) in faults {
        graph.nodes[i].fault = Some(fault);
    }
    for (i, input) in whole {
        let node = &mut graph.nodes[i];
        node.op_type = "Identity".into();
        node.inputs = vec![input];
        node.outputs.truncate(1);
    }
    let mut groups: BTreeMap<(usize, usize, usize, Sides), Vec<Joined>> = BTreeMap::new();
    for j in joined {
        groups.entry((j.level, j.predicate, j.values.len(), j.rest.clone())).or_default().push(j);
    }
    let mut sides = sides;
    let mut taken = HashSet::new();
    let read: HashSet<String> = graph.nodes.iter().flat_map(|n| n.inputs.iter().cloned()).collect();
    for ((_, predicate, _, rest), group) in groups {
        let producers = Producers::of(&graph.nodes);
        let branches =
            Branches { nodes: &graph.nodes, producers: &producers, sides: &sides, predicate, predicates: &predicates };
        let node = branches.node(&group, &read, &mut taken);
        for j in &group {
            graph.nodes[j.node].outputs.clear();
            graph.nodes[j.node].inputs.clear();
            taken.insert(j.node);
        }
        graph.nodes.push(node);
        sides.push(rest);
    }
    leave_outputs(graph, |i| !sides[i].is_empty());
    // What stands in a branch of another conditional went with it.
    drop_taken(graph, &taken);
    Ok(())
}

/// Goes over the nodes in order and finds out on what each depends.
struct Scan<'a> {
    nodes: &'a [SourceNode],
    producers: &'a Producers,
    sides: Vec<Sides>,
    levels: Vec<usize>,
    predicates: Vec<Predicate>,
    numbers: HashMap<Predicate, usize>,
    joined: Vec<Joined>,
    faults: Vec<(usize, Error)>,
    /// Merges of one value.
    whole: Vec<(usize, String)>,
    none: Sides,
}

impl<'a> Scan<'a> {
    fn new(nodes: &'a [SourceNode], producers: &'a Producers) -> Scan<'a> {
        let none = Sides::default();
        Scan {
            nodes,
            producers,
            sides: vec![none.clone(); nodes.len()],
            levels: vec![0; nodes.len()],
            predicates: vec![],
            numbers: HashMap::new(),
            joined: vec![],
            faults: vec![],
            whole: vec![],
            none,
        }
    }

    fn number(&mut self, predicate: Predicate) -> usize {
        let next = self.predicates.len();
        *self.numbers.entry(predicate).or_insert_with_key(|predicate| {
            self.predicates.push(predicate.clone());
            next
        })
    }

    // The sides of one value of a node: an output of a Switch is alive on its own side only.
    fn value(&mut self, node: usize, port: usize) -> Sides {
        let sides = self.sides[node].clone();
        match tested(self.nodes, self.producers, &self.nodes[node]) {
            Some(predicate) => {
                let number = self.number(predicate);
                let mut sides = (*sides).clone();
                sides.insert((number, port));
                Rc::new(sides)
            }
            None => sides,
        }
    }

    fn union(&self, a: Sides, b: &Sides) -> Sides {
        match (a.is_empty(), b.is_empty()) {
            (_, true) => a,
            (true, _) => b.clone(),
            _ if Rc::ptr_eq(&a, b) || a.is_superset(b) => a,
            _ => Rc::new(a.union(b).copied().collect()),
        }
    }

    fn node(&mut self, i: usize) {
        let node = &self.nodes[i];
        self.levels[i] = self.producers.before(node).map(|from| self.levels[from]).max().unwrap_or(0);
        if node.op_type == "Merge" {
            return self.merge(i);
        }
        let values: Vec<(usize, usize)> = node.inputs.iter().filter_map(|n| self.producers.value(n)).collect();
        let mut sides = self.none.clone();
        for (from, port) in values {
            let of = self.value(from, port);
            sides = self.union(sides, &of);
        }
        let others: Vec<usize> = self.producers.before(node).collect();
        for from in others {
            let of = self.sides[from].clone();
            sides = self.union(sides, &of);
        }
        if sides.len() > MAX_DEPTH {
            self.faults.push((i, Error::invalid(format!("depends on more than {MAX_DEPTH} predicates"))));
            sides = self.none.clone();
        }
        self.sides[i] = sides;
    }

    fn merge(&mut self, i: usize) {
        let node = &self.nodes[i];
        let mut values = vec![];
        for name in &node.inputs {
            let of = match self.producers.value(name) {
                Some((from, port)) => self.value(from, port),
                None => self.none.clone(),
            };
            values.push(of);
        }
        match values.as_slice() {
            [] => self.faults.push((i, Error::invalid("merges nothing"))),
            [one] => {
                self.sides[i] = one.clone();
                self.whole.push((i, node.inputs[0].clone()));
            }
            values => match predicate(values) {
                Some((predicate, order)) => {
                    let drop = |s: &Sides| s.iter().copied().filter(|(p, _)| *p != predicate).collect::<BTreeSet<_>>();
                    let rest: Sides = Rc::new(values.iter().flat_map(drop).collect());
                    self.levels[i] += 1;
                    self.sides[i] = rest.clone();
                    self.joined.push(Joined { node: i, predicate, values: order, rest, level: self.levels[i] });
                }
                None => {
                    let text = format!("merges {} values that are not the sides of one predicate", values.len());
                    self.faults.push((i, Error::invalid(text)));
                }
            },
        }
    }
}

// What a Switch looks at.
fn tested(nodes: &[SourceNode], producers: &Producers, node: &SourceNode) -> Option<Predicate> {
    let is_index = match node.op_type.as_str() {
        "Switch" => false,
        "_SwitchN" => true,
        _ => return None,
    };
    Some(Predicate { value: producers.root(nodes, node.inputs.get(1)?).to_string(), is_index })
}

// The predicate that tells values apart, and which of them belongs to each of its sides. Of a value that depends on nothing
// else it is taken that it belongs to the other side.
fn predicate(values: &[Sides]) -> Option<(usize, Vec<usize>)> {
    let side = |s: &Sides, p: usize| s.iter().find(|(q, _)| *q == p).map(|(_, side)| *side);
    let order = |p: usize| {
        let mut order = vec![None; values.len()];
        for (i, s) in values.iter().enumerate() {
            let at = order.get_mut(side(s, p)?)?;
            if at.replace(i).is_some() {
                return None;
            }
        }
        order.into_iter().collect::<Option<Vec<usize>>>()
    };
    let without = |s: &Sides, p: usize| s.iter().copied().filter(|(q, _)| *q != p).collect::<BTreeSet<_>>();
    let apart: Vec<(usize, Vec<usize>)> = values[0].iter().filter_map(|(p, _)| Some((*p, order(*p)?))).collect();
    let exact = apart.iter().find(|(p, _)| values.windows(2).all(|w| without(&w[0], *p) == without(&w[1], *p)));
    if let Some(found) = exact.or(apart.last()) {
        return Some(found.clone());
    }
    let [a, b] = values else { return None };
    let only = |x: &Sides, y: &Sides| {
        let mut own = x.iter().copied().filter(|side| !y.contains(side));
        own.next().filter(|_| own.next().is_none())
    };
    match (only(a, b), only(b, a)) {
        (Some((p, side)), None) if side < 2 => Some((p, if side == 0 { vec![0, 1] } else { vec![1, 0] })),
        (None, Some((p, side))) if side < 2 => Some((p, if side == 0 { vec![1, 0] } else { vec![0, 1] })),
        _ => None,
    }
}

/// The branches of some Merges of one predicate.
struct Branches<'a> {
    nodes: &'a [SourceNode],
    producers: &'a Producers,
    sides: &'a [Sides],
    predicate: usize,
    predicates: &'a [Predicate],
}

impl Branches<'_> {
    fn node(&self, group: &[Joined], read: &HashSet<String>, taken: &mut HashSet<usize>) -> SourceNode {
        let first = &self.nodes[group[0].node];
        let Predicate { value, is_index } = &self.predicates[self.predicate];
        let attribute = |side: usize| match (is_index, side) {
            (true, _) => format!("branches/{side}"),
            (false, 0) => "else_branch".to_string(),
            (false, _) => "then_branch".to_string(),
        };
        let sides = 0..group[0].values.len();
        let held = sides.map(|side| (attribute(side), Held::Graph(Rc::new(self.branch(group, read, side, taken)))));
        let held = held.collect();
        let mut outputs = vec![];
        for j in group {
            outputs.push(self.nodes[j.node].outputs.first().cloned().unwrap_or_default());
        }
        outputs.extend(self.indices(group, read).map(|(_, name)| name.clone()));
        SourceNode {
            name: first.name.clone(),
            op_type: if *is_index { "Case" } else { "If" }.into(),
            version: first.version,
            inputs: vec![value.clone()],
            outputs,
            held,
            ..SourceNode::default()
        }
    }

    // Merges whose second output, the number of the input that was alive, somebody reads.
    fn indices<'g>(
        &'g self,
        group: &'g [Joined],
        read: &'g HashSet<String>,
    ) -> impl Iterator<Item = (&'g Joined, &'g String)> {
        group
            .iter()
            .filter_map(|j| Some((j, self.nodes[j.node].outputs.get(1)?)))
            .filter(|(_, name)| read.contains(*name))
    }

    fn branch(&self, group: &[Joined], read: &HashSet<String>, side: usize, taken: &mut HashSet<usize>) -> SourceGraph {
        let mut part = Part::default();
        for switch in self.nodes {
            let Some(predicate) = tested(self.nodes, self.producers, switch) else { continue };
            if let Some(data) = switch.inputs.first().filter(|_| predicate == self.predicates[self.predicate]) {
                for output in &switch.outputs {
                    part.renamed.insert(output.clone(), data.clone());
                }
            }
        }
        let port = |j: &Joined| j.values[side];
        let outputs: Vec<String> = group.iter().map(|j| self.nodes[j.node].inputs[port(j)].clone()).collect();
        let is_member = |i: usize| self.sides[i].contains(&(self.predicate, side));
        let mut graph = part.graph(self.nodes, self.producers, &outputs, is_member, taken);
        for (at, (j, _)) in self.indices(group, read).enumerate() {
            let name = format!("{MARK}alive/{at}");
            tensor(&mut graph, name.clone(), port(j) as i32);
            graph.outputs.iter_mut().for_each(|list| list.push(carafe_frontend::SourceValue::unknown(&name)));
        }
        graph
    }
}
