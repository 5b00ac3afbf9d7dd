//! Output shapes of a custom layer as an expression over the shapes of its inputs and its parameters, such as
//! `in0[0], num_output, ceil((in0[2] - kernel) / stride) + 1, in0[3]`. Shapes of several outputs stand behind each other,
//! separated by semicolons; `in0` alone is all dimensions of input 0, `in0[2:]` those from the third on.
//!
//! Numbers are real until the end, where a dimension must be whole: `/` divides, `//` divides and rounds down.

use carafe_graph::{AttrMap, AttrValue, Error, Result};
use carafe_tensor::{Dim, PartialShape};
use std::iter::Peekable;
use std::str::CharIndices;

/// Expressions inside of others deeper than this are refused.
const MAX_DEPTH: usize = 64;
const MAX_DIMS: usize = 32;
/// Letters of an expression that an error repeats.
const MOST_SHOWN: usize = 200;

/// The dimensions of every output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShapeExpression(Vec<Vec<Item>>);

#[derive(Clone, Debug, PartialEq)]
enum Item {
    One(Expr),
    /// Dimensions of an input from this one on.
    Rest(usize, i64),
}

#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Number(f64),
    Dim(usize, i64),
    /// A parameter; of a list its element.
    Parameter(String, Option<usize>),
    /// A first value and what is added, taken off or multiplied to it, from left to right. A list, because a sum may have
    /// any number of terms, and a tree as deep as that is more than the stack holds.
    Chain(Box<Expr>, Vec<(char, Expr)>),
    Call(Function, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    Min,
    Max,
    Ceil,
    Floor,
    Round,
}

const FUNCTIONS: &[(&str, Function)] = &[
    ("min", Function::Min),
    ("max", Function::Max),
    ("ceil", Function::Ceil),
    ("floor", Function::Floor),
    ("round", Function::Round),
];

impl ShapeExpression {
    pub(crate) fn parse(text: &str) -> Result<ShapeExpression> {
        let mut p = Parser { text, chars: text.char_indices().peekable(), depth: 0 };
        let mut outputs = vec![p.dims()?];
        while p.eat(';') {
            outputs.push(p.dims()?);
        }
        match p.peek() {
            None => Ok(ShapeExpression(outputs)),
            Some(c) => Err(p.wrong(&format!("`{c}` is not expected"))),
        }
    }

    /// How many outputs it speaks of.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The shapes, for inputs of these shapes.
    pub(crate) fn shapes(&self, inputs: &[PartialShape], parameters: &AttrMap) -> Result<Vec<PartialShape>> {
        let cx = Shapes { inputs, parameters };
        let shape = |items: &Vec<Item>| {
            let mut dims = vec![];
            for item in items {
                match item {
                    Item::One(e) => dims.push(cx.dim(e, dims.len())?),
                    Item::Rest(input, from) => match cx.shape(*input)?.dims() {
                        // How many there are nobody knows.
                        None => return Ok(PartialShape::dynamic()),
                        Some(all) => {
                            let from = if *from < 0 { all.len() as i64 + from } else { *from };
                            let from = usize::try_from(from).unwrap_or(0).min(all.len());
                            dims.extend(all[from..].iter().map(|d| Dim::range(d.min(), d.max())));
                        }
                    },
                }
            }
            match dims.len() > MAX_DIMS {
                true => {
                    Err(Error::invalid(format!("the shape has {} dimensions, {MAX_DIMS} are the most", dims.len())))
                }
                false => Ok(PartialShape::new(dims)),
            }
        };
        self.0.iter().map(shape).collect()
    }
}

struct Shapes<'a> {
    inputs: &'a [PartialShape],
    parameters: &'a AttrMap,
}

impl Shapes<'_> {
    fn shape(&self, input: usize) -> Result<&PartialShape> {
        let n = self.inputs.len();
        self.inputs.get(input).ok_or_else(|| Error::invalid(format!("`in{input}`: the layer has {n} inputs")))
    }

    fn dim(&self, e: &Expr, at: usize) -> Result<Dim> {
        let Some(x) = self.value(e)? else { return Ok(Dim::ANY) };
        if x.fract() != 0.0 {
            return Err(Error::invalid(format!("dimension {at} is {x}, no whole number; use floor() or ceil()")));
        }
        match (0.0..=i32::MAX as f64).contains(&x) {
            true => Ok(Dim::known(x as i64)),
            false => Err(Error::invalid(format!("dimension {at} is {x}; it must be from 0 to {}", i32::MAX))),
        }
    }

    // `None` when it depends on a dimension that is not known.
    fn value(&self, e: &Expr) -> Result<Option<f64>> {
        Ok(match e {
            Expr::Number(x) => Some(*x),
            Expr::Dim(input, axis) => {
                let Some(dims) = self.shape(*input)?.dims() else { return Ok(None) };
                let at = if *axis < 0 { dims.len() as i64 + axis } else { *axis };
                let dim = usize::try_from(at).ok().and_then(|at| dims.get(at)).ok_or_else(|| {
                    Error::invalid(format!("`in{input}[{axis}]`: input {input} has {} dimensions", dims.len()))
                })?;
                dim.get().map(|d| d as f64)
            }
            Expr::Parameter(name, at) => Some(self.parameter(name, *at)?),
            Expr::Chain(first, rest) => {
                let mut all = self.value(first)?;
                for (op, next) in rest {
                    let next = self.value(next)?;
                    if next == Some(0.0) && matches!(op, '/' | '\\' | '%') {
                        return Err(Error::invalid("division by zero"));
                    }
                    all = all.zip(next).map(|(a, b)| match op {
                        '+' => a + b,
                        '-' => a - b,
                        '*' => a * b,
                        '/' => a / b,
                        '\\' => (a / b).floor(),
                        _ => a.rem_euclid(b),
                    });
                }
                all
            }
            Expr::Call(f, args) => {
                let Some(args) = args.iter().map(|a| self.value(a)).collect::<Result<Option<Vec<f64>>>>()? else {
                    return Ok(None);
                };
                let fold = |pick: fn(f64, f64) -> f64| args.iter().copied().reduce(pick);
                match f {
                    Function::Min => fold(f64::min),
                    Function::Max => fold(f64::max),
                    Function::Ceil => args.first().map(|x| x.ceil()),
                    Function::Floor => args.first().map(|x| x.floor()),
                    Function::Round => args.first().map(|x| x.round()),
                }
            }
        })
    }

    fn parameter(&self, name: &str, at: Option<usize>) -> Result<f64> {
        let names = || self.parameters.iter().map(|(n, _)| n).collect::<Vec<_>>().join(", ");
        let value = self
            .parameters
            .get(name)
            .ok_or_else(|| Error::not_found(format!("the layer has no parameter `{name}`; it has: {}", names())))?;
        let list: Vec<f64> = match value {
            AttrValue::Int(n) => vec![*n as f64],
            AttrValue::Float(x) => vec![*x],
            AttrValue::Bool(b) => vec![f64::from(u8::from(*b))],
            AttrValue::Ints(all) => all.iter().map(|n| *n as f64).collect(),
            AttrValue::Floats(all) => all.clone(),
            other => {
                let text = other.to_text().unwrap_or_default();
                text.split(',')
                    .map(|t| t.trim().parse())
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|_| Error::invalid(format!("parameter `{name}` = {text} is no number")))?
            }
        };
        match (at, list.as_slice()) {
            (None, [one]) => Ok(*one),
            (None, many) => {
                Err(Error::invalid(format!("parameter `{name}` has {} values; say which: `{name}[0]`", many.len())))
            }
            (Some(at), many) => many
                .get(at)
                .copied()
                .ok_or_else(|| Error::invalid(format!("`{name}[{at}]`: the parameter has {} values", many.len()))),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
    depth: usize,
}

impl Parser<'_> {
    fn wrong(&mut self, what: &str) -> Error {
        let column =
            self.chars.peek().map_or(self.text.chars().count(), |(at, _)| self.text[..*at].chars().count()) + 1;
        let shown: String = self.text.chars().take(MOST_SHOWN).collect();
        let more = if shown.len() < self.text.len() { "..." } else { "" };
        Error::invalid(format!("shape expression `{shown}{more}`, column {column}: {what}"))
    }
    fn peek(&mut self) -> Option<char> {
        while self.chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        self.chars.peek().map(|(_, c)| *c)
    }
    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.chars.next();
        }
        found
    }
    fn need(&mut self, wanted: char) -> Result<()> {
        if self.eat(wanted) { Ok(()) } else { Err(self.wrong(&format!("`{wanted}` is expected"))) }
    }
    fn take(&mut self, fits: impl Fn(char) -> bool) -> String {
        self.peek();
        let mut taken = String::new();
        while let Some((_, c)) = self.chars.next_if(|(_, c)| fits(*c)) {
            taken.push(c);
        }
        taken
    }

    fn dims(&mut self) -> Result<Vec<Item>> {
        let mut items = vec![self.item()?];
        while self.eat(',') {
            items.push(self.item()?);
            if items.len() > MAX_DIMS {
                return Err(self.wrong(&format!("{MAX_DIMS} dimensions are the most")));
            }
        }
        Ok(items)
    }
    fn item(&mut self) -> Result<Item> {
        // Only a whole item can be several dimensions.
        let before = self.chars.clone();
        if let Some(rest) = self.rest()? {
            return Ok(rest);
        }
        self.chars = before;
        self.sum().map(Item::One)
    }
    fn rest(&mut self) -> Result<Option<Item>> {
        if !self.peek().is_some_and(|c| c.is_alphabetic()) {
            return Ok(None);
        }
        let Some(input) = input_of(&self.take(is_word)) else { return Ok(None) };
        let mut from = 0;
        if self.eat('[') {
            let negative = self.eat('-');
            let digits = self.take(|c| c.is_ascii_digit());
            let Ok(n) = digits.parse::<i64>() else { return Ok(None) };
            if !self.eat(':') {
                return Ok(None);
            }
            self.need(']')?;
            from = if negative { -n } else { n };
        }
        let ends = matches!(self.peek(), None | Some(',' | ';'));
        Ok(ends.then_some(Item::Rest(input, from)))
    }

    fn sum(&mut self) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong("too many brackets"));
        }
        let first = self.product()?;
        let mut rest = vec![];
        while let Some(op) = self.peek().filter(|c| matches!(c, '+' | '-')) {
            self.chars.next();
            rest.push((op, self.product()?));
        }
        self.depth -= 1;
        Ok(chain(first, rest))
    }
    fn product(&mut self) -> Result<Expr> {
        let first = self.factor()?;
        let mut rest = vec![];
        while let Some(op) = self.peek().filter(|c| matches!(c, '*' | '/' | '%')) {
            self.chars.next();
            let op = if op == '/' && self.chars.next_if(|(_, c)| *c == '/').is_some() { '\\' } else { op };
            rest.push((op, self.factor()?));
        }
        Ok(chain(first, rest))
    }
    fn factor(&mut self) -> Result<Expr> {
        if self.eat('(') {
            let inner = self.sum()?;
            self.need(')')?;
            return Ok(inner);
        }
        match self.peek() {
            Some('-') => {
                self.chars.next();
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.wrong("too many signs"));
                }
                let inner = self.factor()?;
                self.depth -= 1;
                Ok(chain(Expr::Number(0.0), vec![('-', inner)]))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let text = self.take(|c| c.is_ascii_digit() || c == '.');
                text.parse().map(Expr::Number).map_err(|_| self.wrong(&format!("`{text}` is no number")))
            }
            Some(c) if c.is_alphabetic() || c == '_' => self.word(),
            Some(c) => Err(self.wrong(&format!("`{c}` is not expected"))),
            None => Err(self.wrong("a number, `in0[0]`, a parameter or a function is expected")),
        }
    }
    fn word(&mut self) -> Result<Expr> {
        let word = self.take(is_word);
        if self.eat('(') {
            let Some((_, function)) = FUNCTIONS.iter().find(|(n, _)| *n == word) else {
                let known: Vec<&str> = FUNCTIONS.iter().map(|(n, _)| *n).collect();
                return Err(self.wrong(&format!("there is no function `{word}`; there are: {}", known.join(", "))));
            };
            let mut args = vec![self.sum()?];
            while self.eat(',') {
                args.push(self.sum()?);
            }
            self.need(')')?;
            let wanted = if matches!(function, Function::Min | Function::Max) { args.len().max(2) } else { 1 };
            if args.len() != wanted {
                return Err(self.wrong(&format!("`{word}` takes {wanted} arguments, found {}", args.len())));
            }
            return Ok(Expr::Call(*function, args));
        }
        let input = input_of(&word);
        if !self.eat('[') {
            return match input {
                Some(i) => Err(self.wrong(&format!("`in{i}` is a whole shape; say which dimension: `in{i}[0]`"))),
                None => Ok(Expr::Parameter(word, None)),
            };
        }
        let negative = self.eat('-');
        let digits = self.take(|c| c.is_ascii_digit());
        let n: i64 = digits.parse().map_err(|_| self.wrong("the number of a dimension is expected"))?;
        self.need(']')?;
        match (input, negative) {
            (Some(input), _) => Ok(Expr::Dim(input, if negative { -n } else { n })),
            (None, false) => Ok(Expr::Parameter(word, usize::try_from(n).ok())),
            (None, true) => Err(self.wrong("the values of a parameter are counted from 0")),
        }
    }
}

fn chain(first: Expr, rest: Vec<(char, Expr)>) -> Expr {
    if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

// `in` and `in0` are the first input.
fn input_of(word: &str) -> Option<usize> {
    match word.strip_prefix("in")? {
        "" => Some(0),
        digits if digits.chars().all(|c| c.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Result<String> {
        let inputs = [PartialShape::of(&[1, 3, 9, 8]), PartialShape::new([Dim::known(2), Dim::ANY])];
        let mut p = AttrMap::new();
        p.set("num_output", AttrValue::Int(7));
        p.set("kernel", AttrValue::Ints(vec![3, 5]));
        p.set("text", AttrValue::Text("2".into()));
        let all = ShapeExpression::parse(text)?.shapes(&inputs, &p)?;
        Ok(all.iter().map(|s| format!("[{s}]")).collect::<Vec<_>>().join(";"))
    }

    #[test]
    fn dimensions_parameters_and_functions_make_a_shape() {
        assert_eq!(shapes("in").unwrap(), "[1,3,9,8]");
        assert_eq!(
            shapes("in0[0], num_output, ceil((in0[2] - kernel[0]) / 4) + 1, in0[-1] // 3").unwrap(),
            "[1,7,3,2]"
        );
        assert_eq!(shapes("in0[0], in0[1]*text, in0[2:]").unwrap(), "[1,6,9,8]");
        assert_eq!(shapes("in0; in1[0], max(1, kernel[1], 2) % 3").unwrap(), "[1,3,9,8];[2,2]");
        assert_eq!(shapes("-(-2) + 1, floor(7/2), round(2.4)").unwrap(), "[3,3,2]");
    }

    #[test]
    fn a_sum_may_have_any_number_of_terms() {
        let on_a_small_stack = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
            let terms = 200_000;
            assert_eq!(shapes(&vec!["1"; terms].join("+")).unwrap(), "[200000]");
            assert_eq!(shapes(&vec!["1"; terms].join("*")).unwrap(), "[1]");
            assert_eq!(shapes(&format!("{}-{}", terms, vec!["1"; terms].join("-"))).unwrap(), "[0]");
            assert!(shapes(&format!("{}+", vec!["1"; terms].join("+"))).unwrap_err().to_string().len() < 500);
        });
        on_a_small_stack.unwrap().join().unwrap();
    }

    #[test]
    fn what_depends_on_an_unknown_dimension_is_unknown() {
        assert_eq!(shapes("in1[1] * 2, in1[0]").unwrap(), "[?,2]");
        assert_eq!(shapes("in1").unwrap(), "[2,?]");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let error = |text: &str| shapes(text).unwrap_err().to_string();
        assert!(error("in0[0], ").contains("column 9"), "{}", error("in0[0], "));
        assert!(error("in0[0] + in0").contains("is a whole shape"));
        assert!(error("in0[4]").contains("input 0 has 4 dimensions"));
        assert!(error("in2[0]").contains("the layer has 2 inputs"));
        assert!(error("size").contains("no parameter `size`; it has: num_output, kernel, text"), "{}", error("size"));
        assert!(error("kernel").contains("has 2 values"));
        assert!(error("7 / 2").contains("3.5, no whole number"));
        assert!(error("1 / (3 - 3)").contains("division by zero"));
        assert!(error("sqrt(4)").contains("no function `sqrt`; there are: min, max"));
        assert!(error("0 - 1").contains("must be from 0"));
        assert!(error(&"(".repeat(500)).contains("too many brackets"));
        assert!(error(&"-".repeat(500)).contains("too many signs"));
        assert!(error("1 2").contains("`2` is not expected"));
    }
}
