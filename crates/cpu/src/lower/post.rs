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

/// Posts behind the first `taken` as a group of their own: what they follow is now input `result`.
pub(crate) fn as_group(post: &[Post], taken: usize, result: usize) -> Vec<Post> {
    let source = |s: &Source| match *s {
        Source::Result(k) if k <= taken => Source::Input(result),
        Source::Result(k) => Source::Result(k - taken - 1),
        input => input,
    };
    post.iter().map(|p| Post { elt: p.elt, sources: p.sources.iter().map(source).collect() }).collect()
}
