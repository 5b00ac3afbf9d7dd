//! Arithmetic of kernel files: work sizes, sizes of buffers, shapes of outputs. An expression is put into postfix order once and
//! evaluated for many shapes; neither recurses, so nesting may be as deep as the text is long. Overflow and division by zero are
//! errors, never wrong numbers.

use carafe_graph::{Error, Result};

/// A number of an expression. Two whole numbers give a whole one, everything else a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other.
    Float(f64),
}

/// What an expression may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grammar {
    /// Whole numbers of 32 bits and the letters B, F, Y, X in both cases: the work sizes of the GPU.
    Letters,
    /// Whole numbers of 32 bits, names and `NAME[0]`: sizes and shapes from dimensions and attributes.
    Names,
    /// Names, floats and functions: the work sizes of the VPU.
    Functions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Floor,
    Ceil,
    Round,
    Abs,
    Sqrt,
}

const FUNCTIONS: [(&str, Function); 5] = [
    ("floor", Function::Floor),
    ("ceil", Function::Ceil),
    ("round", Function::Round),
    ("abs", Function::Abs),
    ("sqrt", Function::Sqrt),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Number(Number),
    /// Number of a name.
    Name(usize),
    Operator(char),
    Call(Function),
}

#[derive(Clone, Copy, Debug)]
enum Waiting {
    Operator(char),
    Call(Function),
    Parenthesis,
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    items: Vec<Item>,
    names: Vec<String>,
}

impl Expression {
    /// Of a GPU work size: the variables are single letters.
    pub fn of_letters(text: &str) -> Result<Expression> {
        Parser::parse(text, Grammar::Letters)
    }
    /// Of a size or a shape: the variables are letters, attributes and `INPUT0_DIMS[1]`.
    pub fn of_names(text: &str) -> Result<Expression> {
        Parser::parse(text, Grammar::Names)
    }
    /// Of a VPU work size: the variables are letters and parameters; there are floats and functions.
    pub fn of_functions(text: &str) -> Result<Expression> {
        Parser::parse(text, Grammar::Functions)
    }
    /// As it stands in the file.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// Every variable once, in the order in which they occur.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// The variable, when the expression is nothing else.
    pub fn as_name(&self) -> Option<&str> {
        matches!(self.items[..], [Item::Name(_)]).then(|| self.names[0].as_str())
    }

    /// The value, given those of the variables. A float is cut to a whole number.
    pub fn value(&self, lookup: impl Fn(&str) -> Option<Number>) -> Result<i64> {
        let whole = match self.evaluate(&lookup).map_err(|e| self.failed(&e))? {
            Number::Int(n) => n,
            Number::Float(x) => whole(x).map_err(|e| self.failed(&e))?,
        };
        Ok(whole)
    }

    fn failed(&self, why: &str) -> Error {
        Error::invalid(format!("expression `{}`: {why}", shorten(&self.text)))
    }

    fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<Number>) -> Result<Number, String> {
        const BROKEN: &str = "an operand is missing";
        let mut stack: Vec<Number> = Vec::new();
        for item in &self.items {
            let value = match *item {
                Item::Number(n) => n,
                Item::Name(i) => {
                    let name = &self.names[i];
                    fit(lookup(name).ok_or_else(|| format!("nothing is known of `{}`", shorten(name)))?)?
                }
                Item::Call(f) => call(f, stack.pop().ok_or(BROKEN)?)?,
                Item::Operator(op) => {
                    let (b, a) = (stack.pop().ok_or(BROKEN)?, stack.pop().ok_or(BROKEN)?);
                    apply(op, a, b)?
                }
            };
            stack.push(value);
        }
        stack.pop().ok_or_else(|| BROKEN.to_string())
    }
}

// Whole numbers are those of 32 bits, as in the kernels that the sizes are for.
fn fit(n: Number) -> Result<Number, String> {
    match n {
        Number::Int(i) if i32::try_from(i).is_err() => Err(format!("{i} does not fit into 32 bits")),
        n => Ok(n),
    }
}

fn whole(x: f64) -> Result<i64, String> {
    let cut = x.trunc();
    match cut >= f64::from(i32::MIN) && cut <= f64::from(i32::MAX) {
        true => Ok(cut as i64),
        false => Err(format!("{x} does not fit into 32 bits")),
    }
}

fn apply(op: char, a: Number, b: Number) -> Result<Number, String> {
    use Number::{Float, Int};
    let zero = match op {
        '/' => "a division by zero",
        _ => "a remainder of a division by zero",
    };
    match (a, b) {
        (Int(a), Int(b)) => {
            let value = match op {
                '+' => a.checked_add(b),
                '-' => a.checked_sub(b),
                '*' => a.checked_mul(b),
                _ if b == 0 => return Err(zero.to_string()),
                '/' => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            let value = value.filter(|v| i32::try_from(*v).is_ok());
            value.map(Int).ok_or_else(|| format!("{a} {op} {b} does not fit into 32 bits"))
        }
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            Ok(Float(match op {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                '/' if b == 0.0 => return Err(zero.to_string()),
                '/' => a / b,
                _ => return Err(format!("`%` takes whole numbers, found {a} and {b}")),
            }))
        }
    }
}

fn call(f: Function, n: Number) -> Result<Number, String> {
    let x = n.to_f64();
    Ok(match (f, n) {
        (Function::Abs, Number::Int(i)) => fit(Number::Int(i.abs()))?,
        (Function::Abs, _) => Number::Float(x.abs()),
        (Function::Floor, _) => Number::Float(x.floor()),
        (Function::Ceil, _) => Number::Float(x.ceil()),
        (Function::Round, _) => Number::Float(x.round()),
        (Function::Sqrt, _) if x < 0.0 => return Err(format!("the square root of {x}")),
        (Function::Sqrt, _) => Number::Float(x.sqrt()),
    })
}

impl Number {
    fn to_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(x) => x,
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    grammar: Grammar,
    at: usize,
    items: Vec<Item>,
    waiting: Vec<Waiting>,
    names: Vec<String>,
}

impl<'t> Parser<'t> {
    fn parse(text: &'t str, grammar: Grammar) -> Result<Expression> {
        let mut parser = Parser { text, grammar, at: 0, items: vec![], waiting: vec![], names: vec![] };
        match parser.run() {
            Ok(()) => Ok(Expression { text: text.trim().to_string(), items: parser.items, names: parser.names }),
            Err(why) => {
                let column = text[..parser.at].chars().count() + 1;
                Err(Error::invalid(format!("expression `{}`, character {column}: {why}", shorten(text))))
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn run(&mut self) -> Result<(), String> {
        loop {
            self.operand()?;
            loop {
                self.skip_blanks();
                match self.rest().chars().next() {
                    None => return self.finish(),
                    Some(')') => self.close()?,
                    Some(op @ ('+' | '-' | '*' | '/' | '%')) => {
                        self.operator(op);
                        break;
                    }
                    Some(other) => {
                        return Err(format!("expected an operator (+ - * / %) or the end, found `{other}`"));
                    }
                }
            }
        }
    }

    // Up to and with the next number or variable, with parentheses and functions before it.
    fn operand(&mut self) -> Result<(), String> {
        loop {
            self.skip_blanks();
            match self.rest().chars().next() {
                Some('(') => {
                    self.at += 1;
                    self.waiting.push(Waiting::Parenthesis);
                }
                Some(c) if c.is_ascii_digit() => return self.number(),
                Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                    if self.name()? {
                        return Ok(());
                    }
                }
                Some(sign @ ('+' | '-')) => {
                    return Err(format!("expected a number or a variable, found the sign `{sign}`"));
                }
                Some(other) => return Err(format!("expected a number, a variable or `(`, found `{other}`")),
                None => return Err("expected a number, a variable or `(`, found the end".to_string()),
            }
        }
    }

    fn number(&mut self) -> Result<(), String> {
        let digits = |s: &str| s.len() - s.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = self.rest();
        let mut end = digits(rest);
        let mut is_float = false;
        if self.grammar == Grammar::Functions {
            if rest[end..].starts_with('.') {
                is_float = true;
                end += 1 + digits(&rest[end + 1..]);
            }
            if rest[end..].starts_with(['e', 'E']) {
                let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
                let exponent = digits(&rest[end + 1 + sign..]);
                if exponent > 0 {
                    is_float = true;
                    end += 1 + sign + exponent;
                }
            }
        }
        let text = &rest[..end];
        let value = match is_float {
            true => text.parse().ok().filter(|x: &f64| x.is_finite()).map(Number::Float),
            false => text.parse::<i32>().ok().map(|n| Number::Int(n.into())),
        };
        self.items.push(Item::Number(value.ok_or_else(|| format!("`{}` is too large", shorten(text)))?));
        self.at += end;
        Ok(())
    }

    // Whether it was a variable, and not a function.
    fn name(&mut self) -> Result<bool, String> {
        let rest = self.rest();
        let mut end = match self.grammar {
            Grammar::Letters => 1,
            _ => rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()),
        };
        let word = &rest[..end];
        if self.grammar == Grammar::Letters && !matches!(word, "b" | "B" | "f" | "F" | "y" | "Y" | "x" | "X") {
            return Err(format!("expected B, F, Y or X, found `{word}`"));
        }
        if self.grammar == Grammar::Functions && rest[end..].trim_start().starts_with('(') {
            let known = FUNCTIONS.iter().find(|(name, _)| *name == word);
            let names = || FUNCTIONS.map(|(name, _)| name).join(", ");
            let (_, f) =
                known.ok_or_else(|| format!("there is no function `{}`; known: {}", shorten(word), names()))?;
            self.waiting.push(Waiting::Call(*f));
            self.at += end;
            return Ok(false);
        }
        if self.grammar == Grammar::Names && rest[end..].starts_with('[') {
            let index = rest[end + 1..].find(']').map(|n| &rest[end + 1..end + 1 + n]);
            let index = index.filter(|i| !i.is_empty() && i.bytes().all(|b| b.is_ascii_digit()));
            end += 2 + index.ok_or_else(|| format!("expected a number in brackets behind `{}`", shorten(word)))?.len();
        }
        let word = &rest[..end];
        let known = self.names.iter().position(|n| n == word);
        if known.is_none() && self.names.len() >= MOST_NAMES {
            return Err(format!("it has more than {MOST_NAMES} different variables"));
        }
        let index = known.unwrap_or_else(|| {
            self.names.push(word.to_string());
            self.names.len() - 1
        });
        self.items.push(Item::Name(index));
        self.at += end;
        Ok(true)
    }

    fn operator(&mut self, op: char) {
        while let Some(&top) = self.waiting.last() {
            match top {
                Waiting::Operator(before) if precedence(before) >= precedence(op) => {
                    self.items.push(Item::Operator(before));
                    self.waiting.pop();
                }
                _ => break,
            }
        }
        self.waiting.push(Waiting::Operator(op));
        self.at += 1;
    }

    fn close(&mut self) -> Result<(), String> {
        loop {
            match self.waiting.pop() {
                Some(Waiting::Operator(op)) => self.items.push(Item::Operator(op)),
                // A function has a parenthesis above it until that is closed.
                Some(Waiting::Call(f)) => self.items.push(Item::Call(f)),
                Some(Waiting::Parenthesis) => break,
                None => return Err("`)` without `(`".to_string()),
            }
        }
        if let Some(&Waiting::Call(f)) = self.waiting.last() {
            self.waiting.pop();
            self.items.push(Item::Call(f));
        }
        self.at += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        while let Some(top) = self.waiting.pop() {
            match top {
                Waiting::Operator(op) => self.items.push(Item::Operator(op)),
                Waiting::Call(_) | Waiting::Parenthesis => return Err("`(` without `)`".to_string()),
            }
        }
        Ok(())
    }
}

/// More variables than any expression has; a name is looked up in a list.
const MOST_NAMES: usize = 256;

fn precedence(op: char) -> u8 {
    match op {
        '+' | '-' => 1,
        _ => 2,
    }
}

/// At most 60 characters of a text out of a file, for messages.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(name: &str) -> Option<Number> {
        let n = match name.to_ascii_uppercase().as_str() {
            "B" => 2,
            "F" => 3,
            "Y" => 5,
            "X" => 7,
            _ => return None,
        };
        Some(Number::Int(n))
    }
    fn gpu(text: &str) -> i64 {
        Expression::of_letters(text).unwrap().value(letters).unwrap()
    }
    fn vpu(text: &str) -> i64 {
        let scale = |n: &str| if n == "scale" { Some(Number::Float(1.5)) } else { letters(n) };
        Expression::of_functions(text).unwrap().value(scale).unwrap()
    }
    fn gpu_error(text: &str) -> String {
        Expression::of_letters(text).and_then(|e| e.value(letters)).unwrap_err().to_string()
    }
    fn vpu_error(text: &str) -> String {
        Expression::of_functions(text).and_then(|e| e.value(letters)).unwrap_err().to_string()
    }

    #[test]
    fn products_bind_closer_than_sums_and_both_go_from_left_to_right() {
        assert_eq!([gpu("1+2*3"), gpu("(1+2)*3"), gpu("20-5-3"), gpu("100/7*7"), gpu("17%5*2")], [7, 9, 12, 98, 4]);
    }

    #[test]
    fn letters_are_taken_in_both_cases_with_blanks_around() {
        assert_eq!([gpu("X"), gpu("b*f"), gpu(" ((X + 15)\t/16)*16 ")], [7, 6, 16]);
    }

    #[test]
    fn division_cuts_towards_zero() {
        assert_eq!([gpu("(B-X)/2"), gpu("(B-X)%3")], [-2, -2]);
    }

    #[test]
    fn an_error_says_where_in_the_expression() {
        assert_eq!(gpu_error("X*Z"), "expression `X*Z`, character 3: expected B, F, Y or X, found `Z`");
        assert_eq!(
            gpu_error("XY"),
            "expression `XY`, character 2: expected an operator (+ - * / %) or the end, found `Y`"
        );
        assert_eq!(
            gpu_error("1 2"),
            "expression `1 2`, character 3: expected an operator (+ - * / %) or the end, found `2`"
        );
        assert_eq!(
            gpu_error("X*"),
            "expression `X*`, character 3: expected a number, a variable or `(`, found the end"
        );
        assert_eq!(gpu_error("(X"), "expression `(X`, character 3: `(` without `)`");
        assert_eq!(gpu_error("X)"), "expression `X)`, character 2: `)` without `(`");
        assert_eq!(gpu_error("()"), "expression `()`, character 2: expected a number, a variable or `(`, found `)`");
        assert_eq!(gpu_error(""), "expression ``, character 1: expected a number, a variable or `(`, found the end");
        assert_eq!(
            gpu_error("-X"),
            "expression `-X`, character 1: expected a number or a variable, found the sign `-`"
        );
        assert_eq!(
            gpu_error("X.5"),
            "expression `X.5`, character 2: expected an operator (+ - * / %) or the end, found `.`"
        );
    }

    #[test]
    fn division_by_zero_and_overflow_are_errors() {
        assert_eq!(gpu_error("X/(Y-5)"), "expression `X/(Y-5)`: a division by zero");
        assert_eq!(gpu_error("X%0"), "expression `X%0`: a remainder of a division by zero");
        assert_eq!(gpu_error("2147483647+1"), "expression `2147483647+1`: 2147483647 + 1 does not fit into 32 bits");
        assert!(gpu_error("99999999999").contains("`99999999999` is too large"));
        assert!(gpu_error("(0-2147483647-1)/(0-1)").contains("does not fit into 32 bits"));
        assert!(vpu_error("1/0.0").contains("a division by zero"));
        assert!(vpu_error("1e300").contains("does not fit into 32 bits"));
        assert!(vpu_error(&format!("1{}", "0".repeat(400))).contains("too large"));
    }

    #[test]
    fn functions_take_floats_and_the_result_is_cut() {
        assert_eq!([vpu("round(X*scale)"), vpu("floor(X/2.0)"), vpu("ceil(X/2.0)"), vpu("X/2*scale")], [11, 3, 4, 4]);
        assert_eq!(
            [vpu("sqrt(16)"), vpu("abs(B-X)"), vpu("7/2"), vpu("1.9"), vpu("floor((X+1)/(2.0))*2")],
            [4, 5, 3, 1, 8]
        );
    }

    #[test]
    fn a_remainder_of_floats_is_an_error() {
        assert!(vpu_error("1.5%2").contains("`%` takes whole numbers"));
    }

    #[test]
    fn an_unknown_function_or_variable_is_named() {
        assert!(vpu_error("log(X)").contains("there is no function `log`; known: floor, ceil, round, abs, sqrt"));
        assert_eq!(vpu_error("stride*X"), "expression `stride*X`: nothing is known of `stride`");
        assert!(gpu_error("floor(X)").contains("expected an operator (+ - * / %) or the end, found `l`"));
    }

    #[test]
    fn a_function_may_be_the_name_of_a_parameter() {
        let value = Expression::of_functions("floor+1").unwrap().value(|_| Some(Number::Int(4)));
        assert_eq!(value.unwrap(), 5);
    }

    #[test]
    fn names_may_have_an_index() {
        let e = Expression::of_names("INPUT0_DIMS[2]*stride/2").unwrap();
        assert_eq!(e.names(), ["INPUT0_DIMS[2]", "stride"]);
        let bad = Expression::of_names("INPUT0_DIMS[x]").unwrap_err().to_string();
        assert!(bad.contains("expected a number in brackets behind `INPUT0_DIMS`"), "{bad}");
    }

    #[test]
    fn nesting_is_as_deep_as_the_text_is_long() {
        let n = 200_000;
        assert_eq!(gpu(&format!("{}X{}", "(".repeat(n), ")".repeat(n))), 7);
        assert_eq!(vpu(&format!("{}X{}", "abs(".repeat(n), ")".repeat(n))), 7);
        assert_eq!(gpu(&format!("0{}", "+1".repeat(n))), 200_000);
    }

    #[test]
    fn text_beyond_ascii_is_an_error_and_no_panic() {
        assert_eq!(gpu_error("X*é"), "expression `X*é`, character 3: expected a number, a variable or `(`, found `é`");
        assert!(Expression::of_names("größe").is_err());
    }
}
