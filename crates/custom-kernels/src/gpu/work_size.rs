//! Work sizes: expressions over B, F, Y, X of the first output, or of an input.

use crate::expression::{Expression, Number, shorten};
use crate::file::Mode;
use crate::node::NodeView;
use crate::xml::{Element, Location};
use carafe_graph::{Error, Result};

/// The `<WorkSizes>` of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkSizes {
    /// Input whose sizes the letters are; `None` for output 0.
    pub input: Option<usize>,
    /// Up to three sizes; none for one work item an element of output 0.
    pub global: Vec<Expression>,
    /// Up to as many; none lets the driver choose.
    pub local: Vec<Expression>,
    /// Where it stands.
    pub location: Location,
}

impl WorkSizes {
    pub(super) fn read(element: Element<'_>) -> Result<WorkSizes> {
        let input = match element.get("dim") {
            None | Some("output") => None,
            Some(text) => Some(read_input(element, text)?),
        };
        let (global, local) = (read_rules(element, "global")?, read_rules(element, "local")?);
        if local.len() > global.len().max(1) {
            let why =
                format!("expected at most as many sizes as in `global` ({}), found {}", global.len(), local.len());
            return Err(element.fail_at("local", &why));
        }
        Ok(WorkSizes { input, global, local, location: element.location() })
    }

    /// Global and local sizes for a node; an empty local one lets the driver choose.
    pub fn evaluate(&self, node: &NodeView) -> Result<(Vec<usize>, Vec<usize>)> {
        let at = |e: Error| e.at("<WorkSizes>").at(self.location.to_string());
        let letters = match self.input {
            None => from_output(node),
            Some(input) => from_input(node, input).map_err(at)?,
        };
        let sizes = |rules: &[Expression], which: &str| {
            let of = |rule: &Expression| size(rule, &letters, node, which);
            rules.iter().map(of).collect::<Result<Vec<usize>>>().map_err(at)
        };
        let global = if self.global.is_empty() { every_element(node)? } else { sizes(&self.global, "global")? };
        let mut local = sizes(&self.local, "local")?;
        if !local.is_empty() {
            local.resize(global.len(), 1);
            if let Some(i) = (0..global.len()).find(|&i| !global[i].is_multiple_of(local[i])) {
                return Err(at(Error::invalid(format!(
                    "global size {global:?} is not a multiple of local size {local:?}: {} % {} is {}",
                    global[i],
                    local[i],
                    global[i] % local[i]
                ))));
            }
        }
        Ok((global, local))
    }
}

/// One work item for each element of the first output.
pub(super) fn every_element(node: &NodeView) -> Result<Vec<usize>> {
    let shape = node.outputs.first().map(|o| o.shape.as_slice()).unwrap_or_default();
    let n = carafe_tensor::elements(shape).ok_or_else(|| Error::invalid("the output has too many elements"))?;
    Ok(vec![n])
}

fn read_input(element: Element<'_>, text: &str) -> Result<usize> {
    let invalid = || {
        let found = shorten(text);
        element
            .fail_at("dim", &format!("invalid WG dim source: expected `output`, `input` or `input,N`, found `{found}`"))
    };
    let rest = text.strip_prefix("input").ok_or_else(invalid)?;
    if rest.is_empty() {
        return Ok(0);
    }
    let number = match rest.strip_prefix(',') {
        Some(number) => number,
        // The documentation writes it so, the original does not take it.
        None => {
            let number = rest.strip_prefix(' ').ok_or_else(invalid)?;
            if element.cx.mode == Mode::Strict {
                return Err(invalid());
            }
            element.quirk(Some("dim"), "the index stands behind a comma, as in `input,1`")?;
            number
        }
    };
    let index: i32 = number.trim().parse().map_err(|_| invalid())?;
    usize::try_from(index).map_err(|_| element.fail_at("dim", &format!("invalid input index {index}")))
}

fn read_rules(element: Element<'_>, attribute: &str) -> Result<Vec<Expression>> {
    let text = element.get(attribute).unwrap_or_default();
    if text.is_empty() {
        return Ok(vec![]);
    }
    let parse = |rule: &str| {
        let parsed = Expression::of_letters(rule)?;
        // A rule that fails for ones fails for everything, such as a division by 0.
        parsed.value(|_| Some(Number::Int(1))).map(|_| parsed)
    };
    let rules = text.split(',').map(|rule| {
        let invalid = |e: Error| Error::invalid(format!("invalid WorkSize: `{}`: {e}", shorten(rule)));
        parse(rule).map_err(|e| element.wrap(attribute, invalid(e)))
    });
    let rules = rules.collect::<Result<Vec<_>>>()?;
    match rules.len() > 3 {
        true => Err(element.fail_at(attribute, &format!("expected at most 3 sizes, found {}", rules.len()))),
        false => Ok(rules),
    }
}

// B, F, Y, X from the first axis on; what is missing is 1.
fn from_output(node: &NodeView) -> [usize; 4] {
    let shape = node.outputs.first().map(|o| o.shape.as_slice()).unwrap_or_default();
    std::array::from_fn(|i| shape.get(i).copied().unwrap_or(1))
}

// From the last axis on. The rank of the output says which there are; one that is not there is 0.
fn from_input(node: &NodeView, input: usize) -> Result<[usize; 4]> {
    let shape = match node.inputs.get(input) {
        Some(port) => &port.shape,
        None => {
            return Err(Error::invalid(format!("`dim` is input {input}, the node has {} inputs", node.inputs.len())));
        }
    };
    let rank = node.outputs.first().map_or(0, |o| o.shape.len());
    Ok(std::array::from_fn(|i| {
        let from_end = 4 - i;
        let own = shape.len().checked_sub(from_end).map_or(1, |axis| shape[axis]);
        if from_end > 1 && from_end > rank { 0 } else { own }
    }))
}

fn size(rule: &Expression, letters: &[usize; 4], node: &NodeView, which: &str) -> Result<usize> {
    let lookup = |name: &str| {
        let axis = crate::declared::letter(name)?;
        i64::try_from(letters[axis]).ok().map(Number::Int)
    };
    let value = rule.value(lookup)?;
    usize::try_from(value).ok().filter(|n| *n > 0).ok_or_else(|| {
        let shape = node.outputs.first().map(|o| o.shape.clone()).unwrap_or_default();
        Error::invalid(format!(
            "{which} size `{}` is {value}, expected at least 1; B, F, Y, X are {letters:?}, the output is {shape:?}",
            rule.text()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::PortView;
    use carafe_tensor::ElementType;

    fn node(input: &[usize], output: &[usize]) -> NodeView {
        let port = |shape: &[usize]| PortView {
            name: String::new(),
            ty: ElementType::F32,
            shape: shape.to_vec(),
            is_constant: false,
        };
        NodeView { inputs: vec![port(input)], outputs: vec![port(output)], ..NodeView::default() }
    }
    fn work(input: Option<usize>, global: &[&str], local: &[&str]) -> WorkSizes {
        let rules = |list: &[&str]| list.iter().map(|t| Expression::of_letters(t).unwrap()).collect();
        let location = Location { file: "k.xml".into(), line: 3, column: 5 };
        WorkSizes { input, global: rules(global), local: rules(local), location }
    }

    #[test]
    fn letters_of_the_output_begin_with_its_first_axis() {
        let sizes = work(None, &["X", "Y", "B*F"], &[]).evaluate(&node(&[1], &[2, 3, 5, 7])).unwrap();
        assert_eq!(sizes, (vec![7, 5, 6], vec![]));
        assert_eq!(work(None, &["X", "Y", "B*F"], &[]).evaluate(&node(&[1], &[2, 3])).unwrap().0, [1, 1, 6]);
    }

    #[test]
    fn letters_of_an_input_end_with_its_last_axis() {
        let of_input = work(Some(0), &["X", "Y", "F"], &[]);
        assert_eq!(of_input.evaluate(&node(&[2, 3, 5, 7], &[1, 1, 1, 1])).unwrap().0, [7, 5, 3]);
        assert_eq!(of_input.evaluate(&node(&[3, 5, 7], &[1, 1, 1])).unwrap().0, [7, 5, 3]);
        let e = work(Some(0), &["X", "B"], &[]).evaluate(&node(&[3, 5, 7], &[1, 1, 1])).unwrap_err();
        assert_eq!(
            e.to_string(),
            "k.xml:3:5, <WorkSizes>: global size `B` is 0, expected at least 1; B, F, Y, X are [0, 3, 5, 7], the output is [1, 1, 1]"
        );
        assert_eq!(work(Some(0), &["B"], &[]).evaluate(&node(&[7], &[1, 1, 1, 1])).unwrap().0, [1]);
        assert!(
            work(Some(1), &["X"], &[])
                .evaluate(&node(&[7], &[1]))
                .unwrap_err()
                .to_string()
                .contains("the node has 1 inputs")
        );
    }

    #[test]
    fn without_rules_every_element_has_a_work_item() {
        assert_eq!(work(None, &[], &[]).evaluate(&node(&[1], &[2, 3, 5])).unwrap().0, [30]);
    }

    #[test]
    fn a_global_size_must_be_a_multiple_of_the_local_one() {
        let e = work(None, &["X", "Y"], &["4"]).evaluate(&node(&[1], &[1, 1, 4, 6])).unwrap_err();
        assert!(e.to_string().contains("global size [6, 4] is not a multiple of local size [4, 1]: 6 % 4 is 2"), "{e}");
        assert_eq!(work(None, &["X", "Y"], &["3"]).evaluate(&node(&[1], &[1, 1, 4, 6])).unwrap().1, [3, 1]);
    }

    #[test]
    fn an_empty_output_has_no_work() {
        assert_eq!(work(None, &[], &[]).evaluate(&node(&[1], &[0, 3])).unwrap().0, [0]);
    }
}
