//! Reads `.case` files: one case is an operation with inputs and attributes, and what comes out.
//!
//! ```text
//! # scales only the negatives
//! leaky_relu@opset1(x: f32[4] = [-2, -0.5, 0, 3], alpha=0.5) -> f32[4] = [-1, -0.25, 0, 3]  tol=0
//! ```
//! - Inputs are `label: type[shape] = value`, in the order of the operation; attributes are `name=value` as IR spells them.
//! - A value is a literal, a list (nesting is flattened), or `iota`, `fill(v)`, `seq(start, step)`, `wave(seed)`.
//! - An input without `=` has no value; then the case is about inference alone, its other inputs count as constants, and
//!   outputs are compared as text: `f32[?,1..10]`, `f32[...]`.
//! - `-> error "text"` expects a failure that says so. `model("file.xml", ...)` runs a file of the folder `models`.
//! - Behind the outputs, on their line: `tol=`, `rtol=`, `atol=`, `static_only`.

use crate::compare::Tolerance;
use crate::scan::Scan;
use crate::values;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::fmt;
use std::path::{Path, PathBuf};

/// The cases of one file.
#[derive(Clone, Debug)]
pub struct CaseFile {
    pub path: PathBuf,
    /// File name without its ending.
    pub name: String,
    pub cases: Vec<Case>,
}

#[derive(Clone, Debug)]
pub struct Case {
    /// Where the case begins, for messages.
    pub file: PathBuf,
    pub line: usize,
    pub subject: Subject,
    pub inputs: Vec<Input>,
    /// Attributes in the spelling of the IR: a list `[1, 2]` is the text `1,2`.
    pub attrs: Vec<(String, String)>,
    pub expect: Expect,
    pub options: Options,
}

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// One operation, the newest of its name where `opset` is absent.
    Op { name: String, opset: Option<String> },
    /// A model file in the folder `models` beside the case file; inputs are found by label.
    Model { file: PathBuf },
}

#[derive(Clone, Debug)]
pub struct Input {
    pub label: String,
    pub ty: ElementType,
    pub shape: PartialShape,
    pub value: Option<Tensor>,
}

#[derive(Clone, Debug)]
pub struct Expected {
    pub ty: ElementType,
    pub shape: PartialShape,
    /// Absent when only type and shape are compared.
    pub value: Option<Tensor>,
}

#[derive(Clone, Debug)]
pub enum Expect {
    Outputs(Vec<Expected>),
    /// The case fails with a message that contains this.
    Error(String),
}

/// The words after the outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub rtol: Option<f64>,
    pub atol: Option<f64>,
    /// Not inferred again with dynamic shapes.
    pub static_only: bool,
}

impl Case {
    /// Whether nothing is evaluated, because an input has no value.
    pub fn is_inference(&self) -> bool {
        self.inputs.iter().any(|i| i.value.is_none())
    }
    pub fn location(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
    /// The tolerance for an output of this type.
    pub fn tolerance(&self, ty: ElementType) -> Tolerance {
        let default = Tolerance::of_type(ty);
        Tolerance { rtol: self.options.rtol.unwrap_or(default.rtol), atol: self.options.atol.unwrap_or(default.atol) }
    }
}

/// What is wrong with a case file, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseError {
    pub file: PathBuf,
    pub line: usize,
    pub message: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

impl std::error::Error for CaseError {}

impl CaseFile {
    pub fn read(path: &Path) -> Result<CaseFile, CaseError> {
        let text = std::fs::read_to_string(path).map_err(|e| CaseError {
            file: path.to_path_buf(),
            line: 1,
            message: format!("could not read: {e}"),
        })?;
        CaseFile::parse(path, &text)
    }

    /// Reads cases from text; `path` is for messages and for finding model files.
    pub fn parse(path: &Path, text: &str) -> Result<CaseFile, CaseError> {
        let mut scan = Scan::new(path, text);
        let mut cases = Vec::new();
        while !scan.at_end() {
            cases.push(case(path, &mut scan)?);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(CaseFile { path: path.to_path_buf(), name, cases })
    }
}

fn case(path: &Path, scan: &mut Scan<'_>) -> Result<Case, CaseError> {
    let line = scan.line();
    let name = scan.name("the name of an operation")?.to_string();
    let opset = if scan.take("@") { Some(scan.name("an opset")?.to_string()) } else { None };
    scan.expect("(")?;
    let mut subject = Subject::Op { name, opset };
    if matches!(&subject, Subject::Op { name, .. } if name == "model") && scan.sees("\"") {
        let file = path.parent().unwrap_or(Path::new("")).join("models").join(scan.quoted()?);
        subject = Subject::Model { file };
        if !scan.take(",") && !scan.sees(")") {
            return scan.fail_expecting("`,` or `)`");
        }
    }
    let (mut inputs, mut attrs) = (Vec::new(), Vec::new());
    while !scan.take(")") {
        let label = scan.name("an input `name: type[shape]`, an attribute `name=value`, or `)`")?.to_string();
        if scan.take(":") {
            if inputs.iter().any(|i: &Input| i.label == label) {
                return Err(scan.fail(format!("input `{label}` is given twice")));
            }
            inputs.push(input(label, scan)?);
        } else if scan.take("=") {
            if attrs.iter().any(|(n, _)| *n == label) {
                return Err(scan.fail(format!("attribute `{label}` is given twice")));
            }
            attrs.push((label, attribute(scan)?));
        } else {
            return scan.fail_expecting("`:` or `=`");
        }
        if !scan.take(",") && !scan.sees(")") {
            return scan.fail_expecting("`,` or `)`");
        }
    }
    scan.expect("->")?;
    let expect = expectation(scan)?;
    let options = options(scan)?;
    Ok(Case { file: path.to_path_buf(), line, subject, inputs, attrs, expect, options })
}

fn input(label: String, scan: &mut Scan<'_>) -> Result<Input, CaseError> {
    let Expected { ty, shape, value } = typed(scan)?;
    Ok(Input { label, ty, shape, value })
}

/// `f32[2,?]`, then maybe `= value`.
fn typed(scan: &mut Scan<'_>) -> Result<Expected, CaseError> {
    let name = scan.name("an element type")?;
    let ty: ElementType = name.parse().map_err(|e| scan.fail(format!("{e}")))?;
    if !scan.sees("[") {
        return scan.fail_expecting("a shape such as `[2,?]`");
    }
    let text = scan.between("[", ']')?;
    let shape: PartialShape = text.parse().map_err(|e| scan.fail(format!("{e}")))?;
    let value = if scan.take("=") { Some(values::tensor(scan, ty, &shape)?) } else { None };
    Ok(Expected { ty, shape, value })
}

fn attribute(scan: &mut Scan<'_>) -> Result<String, CaseError> {
    if scan.sees("\"") {
        return scan.quoted();
    }
    if scan.take("[") {
        let mut items = Vec::new();
        let mut depth = 1;
        while depth > 0 {
            if scan.take("[") {
                depth += 1;
            } else if scan.take("]") {
                depth -= 1;
            } else if !scan.take(",") {
                items.push(if scan.sees("\"") { scan.quoted()? } else { word(scan)? });
            }
        }
        return Ok(items.join(","));
    }
    word(scan)
}

fn word(scan: &mut Scan<'_>) -> Result<String, CaseError> {
    scan.skip();
    let word = scan.run(|c| !c.is_whitespace() && !",()[]\"#".contains(c));
    if word.is_empty() { scan.fail_expecting("a value") } else { Ok(word.to_string()) }
}

fn expectation(scan: &mut Scan<'_>) -> Result<Expect, CaseError> {
    if scan.take("error") {
        return Ok(Expect::Error(scan.quoted()?));
    }
    let mut outputs = Vec::new();
    loop {
        outputs.push(typed(scan)?);
        if !scan.take(",") {
            return Ok(Expect::Outputs(outputs));
        }
    }
}

fn options(scan: &mut Scan<'_>) -> Result<Options, CaseError> {
    let mut options = Options::default();
    loop {
        scan.spaces();
        if scan.rest().is_empty() || scan.rest().starts_with(['\n', '#']) {
            return Ok(options);
        }
        match scan.run(|c| c.is_alphanumeric() || c == '_') {
            "static_only" => options.static_only = true,
            "tol" => {
                let tol = number(scan)?;
                (options.rtol, options.atol) = (Some(tol), Some(tol));
            }
            "rtol" => options.rtol = Some(number(scan)?),
            "atol" => options.atol = Some(number(scan)?),
            other => {
                return Err(
                    scan.fail(format!("expected tol=, rtol=, atol=, static_only or a new line, found `{other}`"))
                );
            }
        }
    }
}

fn number(scan: &mut Scan<'_>) -> Result<f64, CaseError> {
    scan.expect("=")?;
    let text = word(scan)?;
    text.parse().map_err(|_| scan.fail(format!("expected a number, found `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Case>, CaseError> {
        CaseFile::parse(Path::new("cases/t.case"), text).map(|f| f.cases)
    }

    fn parse_one(text: &str) -> Case {
        parse(text).unwrap().remove(0)
    }

    fn fails(text: &str, message: &str) {
        let found = parse(text).unwrap_err().to_string();
        assert!(found.contains(message), "expected `{message}`, found `{found}`");
    }

    #[test]
    fn a_case_has_inputs_attributes_outputs_and_a_tolerance() {
        let c = parse_one(
            "top_k@opset11(x: f32[2,2] = [[1, 2], [3, inf]], k: i64[] = 1, axis=-1, mode=max, s=\"a b\", l=[1, 2]) \
             -> f32[2,1] = [2, inf], i64[2,1] = [1, 1]  tol=1e-3",
        );
        assert_eq!(c.subject, Subject::Op { name: "top_k".into(), opset: Some("opset11".into()) });
        assert_eq!(c.inputs[0].value.as_ref().unwrap().to_vec::<f32>().unwrap()[..], [1.0, 2.0, 3.0, f32::INFINITY]);
        assert_eq!(c.inputs[1].shape, PartialShape::scalar());
        let attrs: Vec<_> = c.attrs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(attrs, [("axis", "-1"), ("mode", "max"), ("s", "a b"), ("l", "1,2")]);
        let Expect::Outputs(o) = &c.expect else { panic!("outputs") };
        assert_eq!((o.len(), o[1].ty), (2, ElementType::I64));
        assert_eq!(c.tolerance(ElementType::I64), Tolerance { rtol: 1e-3, atol: 1e-3 });
    }

    #[test]
    fn lists_and_outputs_continue_on_further_lines() {
        let cases = parse(
            "# first\nabs(x: f32[3] = [1,\n  2, # two\n  3])\n  -> f32[3] = [1, 2, 3],\n  f32[1]\n# second\nabs(x: f32[?]) -> f32[?] static_only\n",
        )
        .unwrap();
        assert_eq!(cases.iter().map(|c| c.line).collect::<Vec<_>>(), [2, 8]);
        assert!(cases[1].is_inference() && cases[1].options.static_only);
    }

    #[test]
    fn an_error_case_names_a_part_of_the_message() {
        let c = parse_one("abs(x: string[1] = [\"a\\\"b\"]) -> error \"must be numeric\"");
        assert!(matches!(&c.expect, Expect::Error(m) if m == "must be numeric"));
        assert_eq!(c.inputs[0].value.as_ref().unwrap().strings().unwrap(), ["a\"b"]);
    }

    #[test]
    fn a_model_case_names_a_file_beside_it() {
        let c = parse_one("model(\"loop.xml\", x: f32[1] = [1]) -> f32[1] = [1]");
        assert_eq!(c.subject, Subject::Model { file: "cases/models/loop.xml".into() });
    }

    #[test]
    fn partial_shapes_have_intervals_and_unknown_rank() {
        let c = parse_one("abs(x: f32[?,1..10]) -> f32[...]");
        assert_eq!(c.inputs[0].shape.to_string(), "?,1..10");
        let Expect::Outputs(o) = &c.expect else { panic!("outputs") };
        assert_eq!(o[0].shape, PartialShape::dynamic());
    }

    #[test]
    fn mistakes_name_file_and_line() {
        fails("\nabs(x: f32[2] = [1]) -> f32[2] = [1, 2]", "cases/t.case:2: shape [2] needs 2 values, found 1");
        fails("abs(x: f33[2]) -> f32[2]", "element type `f33` is unknown");
        fails("abs(x: f32[2]) -> f32[2] tolerance=1", "found `tolerance`");
        fails("abs(x: f32[2], a=1, a=2) -> f32[2]", "attribute `a` is given twice");
        fails("add(x: f32[2], x: f32[2]) -> f32[2]", "input `x` is given twice");
        fails("abs(x: f32[2]", "expected `,` or `)`, found the end of the line");
        fails("abs(x: f32[2 -> f32", "expected a closing `]`");
        fails("abs(x: string[1] = [\"a]) -> f32[2]", "expected a closing `\"`");
        fails("abs(x: f32[?] = [1]) -> f32[2]", "a value needs a static shape");
        fails("abs(a=[1,", "expected a value");
    }
}
