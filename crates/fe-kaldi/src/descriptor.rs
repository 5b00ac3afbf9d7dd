//! Descriptors: what a node of nnet3 reads, as an expression over nodes and time, such as `Append(Offset(a, -1), a)`.

use carafe_graph::{Error, Result};

/// Descriptors inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 64;

/// What a node reads at a time `t`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Descriptor {
    /// A node at `t`.
    Node(String),
    /// Another at `t` and more.
    Offset(Box<Descriptor>, i64),
    /// All, side by side.
    Append(Vec<Descriptor>),
    /// The sum of all.
    Sum(Vec<Descriptor>),
    /// Times a number.
    Scale(f64, Box<Descriptor>),
    /// A number in every column.
    Const(f64, usize),
    /// Zeros where it is not defined.
    IfDefined(Box<Descriptor>),
    /// The second where the first is not defined.
    Failover(Box<Descriptor>, Box<Descriptor>),
    /// One after the other in turns.
    Switch(Vec<Descriptor>),
    /// At the last multiple of a number of frames.
    Round(Box<Descriptor>, i64),
    /// The same at all times.
    Replace(Box<Descriptor>),
}

impl Descriptor {
    pub(crate) fn node(name: impl Into<String>) -> Descriptor {
        Descriptor::Node(name.into())
    }
    /// At a later time; an earlier one where `by` is negative.
    pub(crate) fn later(self, by: i64) -> Descriptor {
        if by == 0 { self } else { Descriptor::Offset(Box::new(self), by) }
    }
    /// The names of all nodes that it reads.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Descriptor::Node(name) => vec![name],
            Descriptor::Const(..) => vec![],
            Descriptor::Offset(d, _) | Descriptor::Scale(_, d) | Descriptor::Round(d, _) => d.names(),
            Descriptor::IfDefined(d) | Descriptor::Replace(d) => d.names(),
            Descriptor::Append(list) | Descriptor::Sum(list) | Descriptor::Switch(list) => {
                list.iter().flat_map(Descriptor::names).collect()
            }
            Descriptor::Failover(a, b) => a.names().into_iter().chain(b.names()).collect(),
        }
    }
    pub(crate) fn if_defined(self) -> Descriptor {
        Descriptor::IfDefined(Box::new(self))
    }
    /// Several times of one, side by side; those that are not `required` are zeros where they are not defined.
    pub(crate) fn window(self, offsets: &[i64], required: impl Fn(i64) -> bool) -> Descriptor {
        let at = |by: i64| {
            let one = self.clone().later(by);
            if required(by) { one } else { one.if_defined() }
        };
        Descriptor::Append(offsets.iter().map(|by| at(*by)).collect())
    }
}

impl std::str::FromStr for Descriptor {
    type Err = Error;
    fn from_str(text: &str) -> Result<Descriptor> {
        let mut parser = Parser { text, at: 0 };
        let found = parser.descriptor(0)?;
        match parser.next() {
            None => Ok(found),
            Some(word) => Err(parser.wrong(&format!("the end, found `{word}`"))),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn wrong(&self, expected: &str) -> Error {
        Error::invalid(format!("descriptor `{}` is not valid: expected {expected}", self.text))
    }
    // A word, or one of `(`, `)` and `,`.
    fn next(&mut self) -> Option<&'t str> {
        let rest = &self.text[self.at..];
        let start = rest.find(|c: char| !c.is_whitespace())?;
        let rest = &rest[start..];
        let end = match rest.find(|c: char| "(),".contains(c) || c.is_whitespace()) {
            Some(0) => 1,
            Some(end) => end,
            None => rest.len(),
        };
        self.at += start + end;
        Some(&rest[..end])
    }
    fn peek(&mut self) -> Option<&'t str> {
        let at = self.at;
        let found = self.next();
        self.at = at;
        found
    }
    fn expect(&mut self, word: &str) -> Result<()> {
        match self.next() {
            Some(found) if found == word => Ok(()),
            Some(found) => Err(self.wrong(&format!("`{word}`, found `{found}`"))),
            None => Err(self.wrong(&format!("`{word}`, found the end"))),
        }
    }
    fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let word = self.next().unwrap_or("the end");
        word.parse().map_err(|_| self.wrong(&format!("a number, found `{word}`")))
    }
    fn descriptor(&mut self, depth: usize) -> Result<Descriptor> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("descriptors are nested deeper than {MAX_DEPTH}")));
        }
        let word = self.next().filter(|w| !matches!(*w, "(" | ")" | ","));
        let word = word.ok_or_else(|| self.wrong("the name of a node or a function"))?;
        if self.peek() != Some("(") {
            return Ok(Descriptor::node(word));
        }
        self.expect("(")?;
        let inner = depth + 1;
        let made = match word {
            "Append" => Descriptor::Append(self.list(inner)?),
            "Sum" => Descriptor::Sum(self.list(inner)?),
            "Switch" => Descriptor::Switch(self.list(inner)?),
            "IfDefined" => self.descriptor(inner)?.if_defined(),
            "Failover" => {
                let first = self.descriptor(inner)?;
                self.expect(",")?;
                Descriptor::Failover(Box::new(first), Box::new(self.descriptor(inner)?))
            }
            "Offset" => {
                let of = Box::new(self.descriptor(inner)?);
                self.expect(",")?;
                let by = self.number()?;
                if self.peek() == Some(",") {
                    self.expect(",")?;
                    if self.number::<i64>()? != 0 {
                        return Err(Error::unsupported(format!(
                            "descriptor `{}`: offsets of x are not supported",
                            self.text
                        )));
                    }
                }
                Descriptor::Offset(of, by)
            }
            "Round" => {
                let of = Box::new(self.descriptor(inner)?);
                self.expect(",")?;
                let by: i64 = self.number()?;
                match by > 0 {
                    true => Descriptor::Round(of, by),
                    false => return Err(self.wrong("a number of frames above 0")),
                }
            }
            "ReplaceIndex" => {
                let of = self.descriptor(inner)?;
                self.expect(",")?;
                let index = self.next();
                self.expect(",")?;
                self.number::<i64>()?;
                match index {
                    Some("t") => Descriptor::Replace(Box::new(of)),
                    // Models use one value of x.
                    Some("x") => of,
                    _ => return Err(self.wrong("`t` or `x`")),
                }
            }
            "Scale" => {
                let by = self.number()?;
                self.expect(",")?;
                Descriptor::Scale(by, Box::new(self.descriptor(inner)?))
            }
            "Const" => {
                let value = self.number()?;
                self.expect(",")?;
                Descriptor::Const(value, self.number()?)
            }
            _ => return Err(self.wrong(&format!("a function of descriptors, found `{word}`"))),
        };
        self.expect(")")?;
        Ok(made)
    }
    fn list(&mut self, depth: usize) -> Result<Vec<Descriptor>> {
        let mut all = vec![self.descriptor(depth)?];
        while self.peek() == Some(",") {
            self.expect(",")?;
            all.push(self.descriptor(depth)?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> String {
        text.parse::<Descriptor>().map_or_else(|e| e.to_string(), |d| format!("{d:?}"))
    }

    #[test]
    fn functions_nest_with_and_without_spaces() {
        let a = || Descriptor::node("a");
        let wanted = Descriptor::Append(vec![a().later(-1), Descriptor::Sum(vec![a(), a().later(3).if_defined()])]);
        assert_eq!("Append(Offset(a, -1),Sum( a , IfDefined(Offset(a,3)) ))".parse(), Ok(wanted));
        assert_eq!(
            "ReplaceIndex(ivector, t, 0)".parse(),
            Ok(Descriptor::Replace(Box::new(Descriptor::node("ivector"))))
        );
        assert_eq!(
            "Scale(-1.5, Const(2, 3))".parse(),
            Ok(Descriptor::Scale(-1.5, Box::new(Descriptor::Const(2.0, 3))))
        );
        assert_eq!("Offset(a, 2, 0)".parse(), Ok(a().later(2)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(parse("Append(a").contains("expected `)`, found the end"), "{}", parse("Append(a"));
        assert!(parse("Append(a))").contains("expected the end, found `)`"));
        assert!(parse("Frobnicate(a)").contains("a function of descriptors, found `Frobnicate`"));
        assert!(parse("Round(a, 0)").contains("above 0"));
        assert!(parse("Offset(a, b)").contains("a number, found `b`"));
        assert!(parse("Offset(a, 1, 2)").contains("offsets of x"));
        assert!(parse("").contains("the name of a node"));
        assert!(parse(&"Sum(".repeat(100_000)).contains("nested deeper"));
    }
}
