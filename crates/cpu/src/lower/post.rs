//! Elementwise work inside another step: what follows a convolution or a matrix product, or a whole group of elementwise
//! nodes.

use crate::lower::elements::Elt;

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An input of the step.
    Input(usize),
    /// An earlier result: of the main operation (0), or of the `k`-th elementwise one. In a group without a main operation
    /// results count from 0.
    Result(usize),
}

/// One elementwise operation.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) elt: Elt,
    pub(crate) sources: Vec<Source>,
}

/// Posts behind the first `taken` as a group of their own, and the inputs it has: what they follow is input `result`.
pub(crate) fn as_group(post: &[Post], taken: usize, result: usize) -> (Vec<Post>, Vec<usize>) {
    let mut used: Vec<usize> = vec![];
    let mut input = |i: usize| match used.iter().position(|&u| u == i) {
        Some(at) => Source::Input(at),
        None => {
            used.push(i);
            Source::Input(used.len() - 1)
        }
    };
    let mut source = |s: &Source| match *s {
        Source::Result(k) if k <= taken => input(result),
        Source::Result(k) => Source::Result(k - taken - 1),
        Source::Input(i) => input(i),
    };
    let post = post.iter().map(|p| Post { elt: p.elt, sources: p.sources.iter().map(&mut source).collect() }).collect();
    (post, used)
}
