//! What the axes of a tensor mean, and how one order of them becomes another.

use carafe_graph::{Error, Model, Result, Value};
use std::fmt;
use std::str::FromStr;

/// Names of axes: `N`, `C`, ..., `?` for one without a name, `...` for any number of them. Read from `nchw`, `[n,c,h,w]`,
/// `n...c` or `nc??`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout(Vec<String>);

impl FromStr for Layout {
    type Err = Error;
    fn from_str(text: &str) -> Result<Layout> {
        let bad = |why: &str| {
            Error::usage(format!(
                "`{text}` is no layout: {why}; expected such as nchw, [n,c,h,w], n...c or nc??, where ? is an axis without \
                 a name and ... stands for any number of them"
            ))
        };
        let bracketed = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let mut axes = Vec::new();
        match bracketed {
            Some(inside) => {
                let words = inside.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty());
                axes.extend(words.map(str::to_ascii_uppercase));
            }
            None => {
                let mut rest = text.trim();
                while let Some(c) = rest.chars().next() {
                    let len = if rest.starts_with("...") { 3 } else { c.len_utf8() };
                    axes.push(rest[..len].to_ascii_uppercase());
                    rest = &rest[len..];
                }
            }
        }
        for (i, axis) in axes.iter().enumerate() {
            let named = axis.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !named && axis != "?" && axis != "..." {
                return Err(bad(&format!("`{axis}` is no axis")));
            }
            if axis != "?" && axes[..i].contains(axis) {
                return Err(bad(&format!("`{axis}` stands twice")));
            }
        }
        Ok(Layout(axes))
    }
}

impl Layout {
    /// The layout that is noted at a value of a model, if any.
    pub fn of(model: &Model, v: Value) -> Result<Option<Layout>> {
        let stored = model.output(v).rt_info.get("layout");
        let text = stored.and_then(|a| a.fields.iter().find(|(key, _)| key == "layout"));
        text.map(|(_, text)| text.parse()).transpose()
    }

    /// Notes the layout at a value of a model; files keep it.
    pub fn note(&self, model: &mut Model, v: Value) {
        let fields = vec![("layout".to_string(), self.to_string())];
        model.output_rt_info_mut(v).set("layout", "0", fields);
    }

    /// One name an axis; those that `...` stands for get names of their own. An error when the rank does not fit.
    pub fn axes(&self, rank: usize) -> Result<Vec<String>> {
        let named = self.0.iter().filter(|a| *a != "...").count();
        let open = self.0.len() > named;
        if named > rank || (named < rank && !open) {
            return Err(Error::usage(format!("layout {self} names {named} axes, the tensor has {rank}")));
        }
        let mut axes = Vec::new();
        for axis in &self.0 {
            if axis == "..." {
                axes.extend((0..rank - named).map(|i| format!("...{i}")));
            } else {
                axes.push(axis.clone());
            }
        }
        Ok(axes)
    }

    /// The axis of this name in a tensor of this rank.
    pub fn axis(&self, name: &str, rank: usize) -> Result<Option<usize>> {
        Ok(self.axes(rank)?.iter().position(|axis| axis == name))
    }

    /// For each axis of the target, the axis of this layout that holds it; `None` when the order stays. An error when the two
    /// do not name the same axes.
    pub fn order_to(&self, target: &Layout, rank: usize) -> Result<Option<Vec<usize>>> {
        let (from, to) = (self.axes(rank)?, target.axes(rank)?);
        let open: Vec<usize> = (0..rank).filter(|&i| from[i] == "?").collect();
        let find = |axis: &String| from.iter().position(|a| a == axis && a != "?");
        let found: Option<Vec<usize>> = to
            .iter()
            .map(|axis| match (axis.as_str(), open.as_slice()) {
                // A single axis without a name can only be the one without a name.
                ("?", [only]) if to.iter().filter(|a| *a == "?").count() == 1 => Some(*only),
                _ => find(axis),
            })
            .collect();
        let order = found.ok_or_else(|| {
            Error::usage(format!("{self} cannot become {target}: both must name the same axes, each once"))
        })?;
        Ok((!order.iter().copied().eq(0..rank)).then_some(order))
    }

    /// The layout after its axes were put into this order.
    pub fn ordered(&self, order: &[usize]) -> Result<Layout> {
        let axes = self.axes(order.len())?;
        Ok(Layout(order.iter().map(|&i| axes[i].clone()).collect()))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    #[test]
    fn short_and_bracketed_forms_are_the_same() {
        assert_eq!(layout("n?...c"), layout("[N, ?, ..., C]"));
        assert_eq!(layout("nchw").to_string(), "[N,C,H,W]");
    }

    #[test]
    fn an_axis_stands_once_and_has_letters() {
        assert!("nnc".parse::<Layout>().unwrap_err().to_string().contains("`N` stands twice"));
        assert!("n*".parse::<Layout>().unwrap_err().to_string().contains("`*` is no axis"));
    }

    #[test]
    fn an_order_is_found_and_done() {
        let order = layout("nchw").order_to(&layout("nhwc"), 4).unwrap().unwrap();
        assert_eq!(order, [0, 2, 3, 1]);
        assert_eq!(layout("nchw").ordered(&order).unwrap(), layout("nhwc"));
        assert_eq!(layout("n...c").order_to(&layout("n...c"), 5).unwrap(), None);
        assert!(layout("nchw").order_to(&layout("nhw?"), 4).is_err());
    }
}
