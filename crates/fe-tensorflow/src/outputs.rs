//! Outputs of operations by name. Inside of a function `split:output:1` is the second tensor of the output `output`; which
//! number that is among all outputs of the node, only the declaration of the operation says.

use crate::wire::{ArgDef, AttrEntry, entry};
use std::collections::HashMap;
use std::sync::LazyLock;

/// More outputs than this nobody has.
const MOST_OUTPUTS: usize = 1 << 16;

/// An output of a declaration, which may be several tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputArg<'t> {
    name: &'t str,
    count: Count<'t>,
}

#[derive(Clone, Copy, Debug)]
enum Count<'t> {
    One,
    /// As many as an attribute says.
    Number(&'t str),
    /// One for each type of a list.
    Types(&'t str),
}

/// Operations with other than one output, written by `scripts/fixtures/tf_output_args.py`.
static TABLE: LazyLock<HashMap<&'static str, Vec<OutputArg<'static>>>> = LazyLock::new(|| {
    let lines = include_str!("output_args.txt").lines();
    lines
        .filter_map(|line| line.split(' ').next().map(|op| (op, line.split(' ').skip(1).map(parse).collect())))
        .collect()
});

fn parse(text: &'static str) -> OutputArg<'static> {
    match (text.split_once('*'), text.split_once('@')) {
        (Some((name, attr)), _) => OutputArg { name, count: Count::Number(attr) },
        (None, Some((name, attr))) => OutputArg { name, count: Count::Types(attr) },
        (None, None) => OutputArg { name: text, count: Count::One },
    }
}

/// What an operation of TensorFlow declares; `None` for a single output.
pub(crate) fn of_type(op: &str) -> Option<Vec<OutputArg<'static>>> {
    TABLE.get(op).cloned()
}

/// What a function declares.
pub(crate) fn of_signature(args: &[ArgDef]) -> Vec<OutputArg<'_>> {
    let count = |a: &'_ ArgDef| !a.number_attr.is_empty() || !a.type_list_attr.is_empty();
    args.iter()
        .map(|a| OutputArg {
            name: &a.name,
            count: match (count(a), a.number_attr.is_empty()) {
                (false, _) => Count::One,
                (true, false) => Count::Number(&a.number_attr),
                (true, true) => Count::Types(&a.type_list_attr),
            },
        })
        .collect()
}

/// How many tensors an argument is.
pub(crate) fn arg_count(arg: &ArgDef, attrs: &[AttrEntry]) -> Option<usize> {
    of_signature(std::slice::from_ref(arg)).first().and_then(|a| a.count(attrs))
}

impl OutputArg<'_> {
    fn count(&self, attrs: &[AttrEntry]) -> Option<usize> {
        let count = match self.count {
            Count::One => 1,
            Count::Number(attr) => usize::try_from(entry(attrs, attr)?.i?).ok()?,
            Count::Types(attr) => entry(attrs, attr)?.list.as_ref().map_or(0, |l| l.r#type.len()),
        };
        (count <= MOST_OUTPUTS).then_some(count)
    }
}

/// How many tensors a node with these outputs and attributes gives; `None` when the attributes do not say.
pub(crate) fn n_outputs(args: Option<&[OutputArg<'_>]>, attrs: &[AttrEntry]) -> Option<usize> {
    let Some(args) = args else { return Some(1) };
    args.iter().try_fold(0, |n: usize, a| n.checked_add(a.count(attrs)?)).filter(|n| *n <= MOST_OUTPUTS)
}

/// The number of `name:index`. An operation with a single output may call it anything.
pub(crate) fn port(args: Option<&[OutputArg<'_>]>, attrs: &[AttrEntry], name: &str, index: usize) -> Option<usize> {
    let Some(args) = args else { return Some(index) };
    let mut first = 0usize;
    for arg in args {
        if arg.name == name {
            return first.checked_add(index);
        }
        first = first.checked_add(arg.count(attrs)?)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::AttrValue;

    #[test]
    fn named_outputs_have_numbers() {
        let args = of_type("TopKV2").unwrap();
        assert_eq!(port(Some(&args), &[], "indices", 0), Some(1));
        assert_eq!(n_outputs(Some(&args), &[]), Some(2));
        let three =
            AttrEntry { key: "num_split".into(), value: Some(AttrValue { i: Some(3), ..AttrValue::default() }) };
        let split = of_type("Split").unwrap();
        assert_eq!(n_outputs(Some(&split), &[three]), Some(3));
        assert_eq!((of_type("Relu").is_none(), n_outputs(None, &[])), (true, Some(1)));
        assert_eq!(n_outputs(of_type("NoOp").as_deref(), &[]), Some(0));
    }
}
