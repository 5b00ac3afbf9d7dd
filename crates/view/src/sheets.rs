//! What is seen at once. The first sheet is the whole model, node by node. Where names have scopes (`a/b/c`) there is one for each scope
//! too, with the scopes inside of it as single boxes; and one for each body.

use crate::graph::{Graph, Kind};
use crate::layout::{Layout, layout};
use std::collections::{BTreeMap, BTreeSet};

/// What a box of a sheet stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A node.
    Node(usize),
    /// A scope, by its sheet.
    Group(usize),
    /// A node outside that makes what is read here.
    From(usize),
    /// A node outside that reads what is made here.
    To(usize),
}

/// Boxes that are seen at once, with their places.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// What it is called: a scope, a body, or the model.
    pub title: String,
    /// The sheet around it.
    pub parent: Option<usize>,
    /// Nodes in it, those of inner scopes included.
    pub nodes: Vec<usize>,
    /// The boxes.
    pub items: Vec<Item>,
    /// Widths and heights of the boxes.
    pub sizes: Vec<(f64, f64)>,
    /// Edges between boxes.
    pub edges: Vec<(usize, usize)>,
    /// Where they lie.
    pub layout: Layout,
}

/// The sheets of a graph: that of each part first, in order, then the scopes of the model, if it has any.
pub fn sheets(graph: &Graph) -> Vec<Sheet> {
    let mut all: Vec<Sheet> = (0..graph.parts.len()).map(|part| whole(graph, part)).collect();
    // A body belongs to the sheet of its node.
    for made in &graph.boxes {
        for (_, part) in &made.bodies {
            all[*part].parent = Some(made.part);
        }
    }
    scopes(graph, &mut all);
    all
}

fn whole(graph: &Graph, part: usize) -> Sheet {
    let nodes: Vec<usize> = (0..graph.boxes.len()).filter(|i| graph.boxes[*i].part == part).collect();
    let items = nodes.iter().map(|i| Item::Node(*i)).collect();
    finished(graph, Sheet { title: graph.parts[part].clone(), nodes, items, ..Sheet::default() }, &[])
}

/// A scope: its own nodes, and those inside of it by name.
#[derive(Default)]
struct Scope {
    nodes: Vec<usize>,
    inner: BTreeMap<String, Scope>,
}

fn scopes(graph: &Graph, all: &mut Vec<Sheet>) {
    let mut root = Scope::default();
    for (i, made) in graph.boxes.iter().enumerate().filter(|(_, b)| b.part == 0) {
        let parts: Vec<&str> = made.name.split('/').filter(|p| !p.is_empty()).collect();
        let scope = match made.kind {
            Kind::Op | Kind::Unknown => &parts[..parts.len().saturating_sub(1)],
            _ => &[],
        };
        let mut at = &mut root;
        // Deeper ones than that help nobody.
        for part in scope.iter().take(12) {
            at = at.inner.entry(part.to_string()).or_default();
        }
        at.nodes.push(i);
    }
    let root = tidied(root);
    // Scopes that leave most boxes as they are help nobody.
    let (boxes, nodes) = (root.nodes.len() + root.inner.len(), all[0].nodes.len());
    if boxes * 10 > nodes * 7 || (root.inner.len() < 2 && root.inner.values().all(|s| s.inner.is_empty())) {
        return;
    }
    add(graph, &root, "scopes".into(), None, all);
}

// A scope of one or two nodes is no scope, and one that only holds another is part of its name.
fn tidied(scope: Scope) -> Scope {
    let mut out = Scope { nodes: scope.nodes, inner: BTreeMap::new() };
    for (name, inner) in scope.inner {
        let mut inner = tidied(inner);
        let mut name = name;
        while inner.nodes.is_empty() && inner.inner.len() == 1 {
            let Some((more, only)) = inner.inner.pop_first() else { break };
            name = format!("{name}/{more}");
            inner = only;
        }
        match inner.nodes.len() + inner.inner.len() {
            0 => {}
            1 | 2 if inner.inner.is_empty() => out.nodes.extend(inner.nodes),
            _ => {
                out.inner.insert(name, inner);
            }
        }
    }
    out
}

fn add(graph: &Graph, scope: &Scope, title: String, parent: Option<usize>, all: &mut Vec<Sheet>) -> usize {
    let index = all.len();
    all.push(Sheet { title: title.clone(), parent, ..Sheet::default() });
    // Each node of the sheet, and the box that shows it.
    let mut groups = vec![];
    for (name, inner) in &scope.inner {
        let inner_title = if parent.is_none() { name.clone() } else { format!("{title}/{name}") };
        groups.push(add(graph, inner, inner_title, Some(index), all));
    }
    let mut order: Vec<(usize, Item)> = scope.nodes.iter().map(|i| (*i, Item::Node(*i))).collect();
    order.extend(groups.iter().map(|g| (all[*g].nodes.first().copied().unwrap_or(0), Item::Group(*g))));
    order.sort_by_key(|(first, _)| *first);
    let mut nodes: Vec<usize> = scope.nodes.clone();
    groups.iter().for_each(|g| nodes.extend(&all[*g].nodes));
    nodes.sort_unstable();
    let items: Vec<Item> = order.into_iter().map(|(_, item)| item).collect();
    let shown: Vec<Vec<usize>> = items
        .iter()
        .map(|item| match item {
            Item::Group(g) => all[*g].nodes.clone(),
            Item::Node(i) | Item::From(i) | Item::To(i) => vec![*i],
        })
        .collect();
    let counts: Vec<(usize, usize)> = groups.iter().map(|g| (*g, all[*g].nodes.len())).collect();
    let titles: Vec<(usize, String, usize)> =
        counts.into_iter().map(|(g, count)| (g, all[g].title.clone(), count)).collect();
    let mut sheet = finished_scope(graph, Sheet { title, parent, nodes, items, ..Sheet::default() }, &shown, &titles);
    std::mem::swap(&mut all[index], &mut sheet);
    index
}

// Edges, sizes and places of a sheet of nodes.
fn finished(graph: &Graph, sheet: Sheet, titles: &[(usize, String, usize)]) -> Sheet {
    let shown: Vec<Vec<usize>> = sheet.nodes.iter().map(|i| vec![*i]).collect();
    finished_scope(graph, sheet, &shown, titles)
}

fn finished_scope(graph: &Graph, mut sheet: Sheet, shown: &[Vec<usize>], titles: &[(usize, String, usize)]) -> Sheet {
    let mut at: BTreeMap<usize, usize> = BTreeMap::new();
    for (item, nodes) in shown.iter().enumerate() {
        nodes.iter().for_each(|i| {
            at.insert(*i, item);
        });
    }
    let mut inner: BTreeSet<(usize, usize)> = BTreeSet::new();
    let (mut from, mut to): (BTreeMap<usize, BTreeSet<usize>>, BTreeMap<usize, BTreeSet<usize>>) = Default::default();
    for edge in &graph.edges {
        match (at.get(&edge.from), at.get(&edge.to)) {
            (Some(&a), Some(&b)) if a != b || matches!(sheet.items[a], Item::Node(_)) => {
                inner.insert((a, b));
            }
            (None, Some(&b)) => {
                from.entry(edge.from).or_default().insert(b);
            }
            (Some(&a), None) => {
                to.entry(edge.to).or_default().insert(a);
            }
            _ => {}
        }
    }
    // What comes from outside stands first, so that its edges go down.
    let shift = from.len();
    let mut items: Vec<Item> = from.keys().map(|i| Item::From(*i)).collect();
    items.append(&mut sheet.items);
    let mut edges: Vec<(usize, usize)> = inner.into_iter().map(|(a, b)| (a + shift, b + shift)).collect();
    for (i, readers) in from.values().enumerate() {
        edges.extend(readers.iter().map(|b| (i, b + shift)));
    }
    for (outer, makers) in &to {
        edges.extend(makers.iter().map(|a| (a + shift, items.len())));
        items.push(Item::To(*outer));
    }
    sheet.items = items;
    sheet.edges = edges;
    sheet.sizes = sheet.items.iter().map(|item| size(graph, *item, titles)).collect();
    sheet.layout = layout(&sheet.sizes, &sheet.edges);
    sheet
}

// Wide enough for two lines of text.
fn size(graph: &Graph, item: Item, titles: &[(usize, String, usize)]) -> (f64, f64) {
    let width = |large: usize, small: usize| (large as f64 * 7.4).max(small as f64 * 6.0).clamp(56.0, 230.0) + 22.0;
    match item {
        Item::Node(i) => {
            let made = &graph.boxes[i];
            let first = if made.kind == Kind::Op || made.kind == Kind::Unknown { &made.op } else { &made.name };
            let second = made.outputs.first().map_or(0, |s| s.chars().count());
            (width(first.chars().count(), second), if made.kind == Kind::Output { 28.0 } else { 42.0 })
        }
        Item::Group(g) => {
            let title = titles.iter().find(|t| t.0 == g).map_or("", |t| t.1.as_str());
            let last = title.rsplit('/').next().unwrap_or(title);
            (width(last.chars().count(), 12), 46.0)
        }
        Item::From(i) | Item::To(i) => (width(0, graph.boxes[i].name.chars().count().min(28)), 22.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::small;
    use crate::graph::{Edge, NodeBox};

    fn scoped(names: &[&str]) -> Graph {
        let boxes =
            names.iter().map(|n| NodeBox { name: n.to_string(), op: "T".into(), ..NodeBox::default() }).collect();
        let edges = (1..names.len()).map(|i| Edge { from: i - 1, from_port: 0, to: i, to_port: 0 }).collect();
        Graph { boxes, edges, parts: vec!["m".into()], ..Graph::default() }
    }

    #[test]
    fn the_first_sheet_has_every_node() {
        let all = sheets(&small());
        assert_eq!((all.len(), all[0].items.len(), all[0].edges.len()), (1, 4, 3));
    }

    #[test]
    fn scopes_have_sheets_of_their_own_with_what_lies_outside() {
        let all = sheets(&scoped(&["in", "/a/x/1", "/a/x/2", "/a/x/3", "/a/4", "/b/5", "/b/6", "/b/7", "/c/only"]));
        let titles: Vec<&str> = all.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["m", "scopes", "a", "a/x", "b"]);
        // The first and the last node stand alone: a scope of one node is none.
        assert_eq!(all[1].items, [Item::Node(0), Item::Group(2), Item::Group(4), Item::Node(8)]);
        assert_eq!(all[3].items, [Item::From(0), Item::Node(1), Item::Node(2), Item::Node(3), Item::To(4)]);
        assert_eq!((all[3].parent, all[2].parent, all[2].nodes.as_slice()), (Some(2), Some(1), &[1, 2, 3, 4][..]));
    }

    #[test]
    fn scopes_that_read_from_each_other_are_laid_out() {
        let all = sheets(&scoped(&["/a/1", "/b/2", "/a/3", "/b/4", "/a/5", "/b/6"]));
        let root = &all[1];
        assert_eq!(root.items.len(), 2);
        assert_eq!(root.edges, [(0, 1), (1, 0)]);
        assert_eq!(root.layout.routes.len(), 2);
    }
}
