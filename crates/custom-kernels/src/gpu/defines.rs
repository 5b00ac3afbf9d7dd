//! The text in front of a user's source: definitions that describe the tensors of the node, then those of the user.

use super::{ArrayType, Define, GpuLayer};
use crate::attributes::define_text;
use crate::file::SourceText;
use crate::layout::TensorLayout;
use carafe_graph::{AttrMap, Error, Result};
use std::fmt::{Display, Write};

/// Definitions that every kernel has.
pub(super) fn built_in(
    inputs: &[TensorLayout],
    outputs: &[TensorLayout],
    global: &[usize],
    local: &[usize],
) -> Result<String> {
    let mut text = String::from("// Custom Layer Built-ins\n");
    scalar(&mut text, "NUM_INPUTS", inputs.len());
    array(&mut text, "GLOBAL_WORKSIZE", "ulong", global);
    array(&mut text, "LOCAL_WORKSIZE", "ulong", local);
    for (word, tensors) in [("INPUT", inputs), ("OUTPUT", outputs)] {
        for (i, tensor) in tensors.iter().enumerate() {
            let name = format!("{word}{i}");
            describe(&mut text, &name, tensor).map_err(|e| e.at(format!("{} {i}", word.to_ascii_lowercase())))?;
        }
    }
    Ok(text)
}

fn describe(text: &mut String, name: &str, tensor: &TensorLayout) -> Result<()> {
    let pitches = tensor.pitches();
    scalar(text, &format!("{name}_TYPE"), tensor.c_type()?);
    scalar(text, &format!("{name}_FORMAT_{}", tensor.format.name()), "");
    let lists = [
        ("DIMS", &tensor.dims),
        ("LOWER_PADDING", &tensor.lower),
        ("UPPER_PADDING", &tensor.upper),
        ("PITCHES", &pitches),
    ];
    for (what, values) in lists {
        // Numbers beyond 32 bits need the wider type; kernels expect the narrow one.
        let ty = if values.iter().all(|v| i32::try_from(*v).is_ok()) { "int" } else { "long" };
        array(text, &format!("{name}_{what}"), ty, values);
    }
    scalar(text, &format!("{name}_OFFSET"), tensor.offset());
    Ok(())
}

fn scalar(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "#define {name} {value}");
}

fn array(text: &mut String, name: &str, ty: &str, values: &[usize]) {
    let list: String = values.iter().map(|v| format!("{v},")).collect();
    let _ = writeln!(text, "#define {name}_SIZE {}", values.len());
    let _ = writeln!(text, "#define {name}_INIT {{ {list} }}");
    let _ = writeln!(text, "#define {name} ({ty} []){{ {list} }} ");
}

/// Definitions of the user, and the sources. Each source begins with its own first line, so that the log of a build has the lines
/// of the user's files.
pub(super) fn user(layer: &GpuLayer, attrs: &AttrMap) -> Result<String> {
    let mut text = format!("// Layer {} using Custom Layer {}\n", one_line(&layer.name), one_line(&layer.name));
    text.push_str("// Custom Layer User Defines\n");
    for define in &layer.defines {
        text.push_str(&define_line(define, attrs)?);
    }
    layer.sources.iter().for_each(|source| add_source(&mut text, source));
    Ok(text)
}

/// A source with its name and its own line numbers.
pub(crate) fn add_source(text: &mut String, source: &SourceText) {
    let name = one_line(&source.name);
    let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = write!(text, "// Custom Layer Kernel {name}\n#line 1 \"{quoted}\"\n{}\n", source.text);
}

fn define_line(define: &Define, attrs: &AttrMap) -> Result<String> {
    let found = if define.param.is_empty() { None } else { attrs.get(&define.param) };
    let value = match found {
        Some(value) => define_text(&define.param, value)?,
        None => define.default.clone(),
    };
    if value.contains(['\n', '\r', '\0']) {
        return Err(Error::unsupported(format!(
            "attribute `{}` has several lines, so it cannot be a definition",
            define.param
        )));
    }
    let (before, behind) = match define.array {
        Some(ArrayType::Int) => ("(int[]) {", "}"),
        Some(ArrayType::Float) => ("(float[]) {", "}"),
        None => ("", ""),
    };
    Ok(format!("#define {} {before}{value}{behind}\n", define.name))
}

// A name in a comment; it may hold anything that a file name may. A backslash at the end would take the next line with it.
fn one_line(name: &str) -> String {
    let text: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.ends_with('\\') { format!("{text}.") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Format;
    use carafe_graph::AttrValue;
    use carafe_tensor::ElementType;

    fn tensor(shape: &[usize], format: Format) -> TensorLayout {
        TensorLayout::new(shape, format, ElementType::F32).unwrap()
    }

    #[test]
    fn every_tensor_is_described() {
        let text = built_in(&[tensor(&[1, 96, 55, 55], Format::Bfyx)], &[tensor(&[4, 6], Format::Byxf)], &[6, 4], &[]);
        let expected = "// Custom Layer Built-ins
#define NUM_INPUTS 1
#define GLOBAL_WORKSIZE_SIZE 2
#define GLOBAL_WORKSIZE_INIT { 6,4, }
#define GLOBAL_WORKSIZE (ulong []){ 6,4, } 
#define LOCAL_WORKSIZE_SIZE 0
#define LOCAL_WORKSIZE_INIT {  }
#define LOCAL_WORKSIZE (ulong []){  } 
#define INPUT0_TYPE float
#define INPUT0_FORMAT_BFYX 
#define INPUT0_DIMS_SIZE 4
#define INPUT0_DIMS_INIT { 1,96,55,55, }
#define INPUT0_DIMS (int []){ 1,96,55,55, } 
#define INPUT0_LOWER_PADDING_SIZE 4
#define INPUT0_LOWER_PADDING_INIT { 0,0,0,0, }
#define INPUT0_LOWER_PADDING (int []){ 0,0,0,0, } 
#define INPUT0_UPPER_PADDING_SIZE 4
#define INPUT0_UPPER_PADDING_INIT { 0,0,0,0, }
#define INPUT0_UPPER_PADDING (int []){ 0,0,0,0, } 
#define INPUT0_PITCHES_SIZE 4
#define INPUT0_PITCHES_INIT { 290400,3025,55,1, }
#define INPUT0_PITCHES (int []){ 290400,3025,55,1, } 
#define INPUT0_OFFSET 0
#define OUTPUT0_TYPE float
#define OUTPUT0_FORMAT_BYXF 
#define OUTPUT0_DIMS_SIZE 4
#define OUTPUT0_DIMS_INIT { 4,6,1,1, }
#define OUTPUT0_DIMS (int []){ 4,6,1,1, } 
#define OUTPUT0_LOWER_PADDING_SIZE 4
#define OUTPUT0_LOWER_PADDING_INIT { 0,0,0,0, }
#define OUTPUT0_LOWER_PADDING (int []){ 0,0,0,0, } 
#define OUTPUT0_UPPER_PADDING_SIZE 4
#define OUTPUT0_UPPER_PADDING_INIT { 0,0,0,0, }
#define OUTPUT0_UPPER_PADDING (int []){ 0,0,0,0, } 
#define OUTPUT0_PITCHES_SIZE 4
#define OUTPUT0_PITCHES_INIT { 6,1,6,6, }
#define OUTPUT0_PITCHES (int []){ 6,1,6,6, } 
#define OUTPUT0_OFFSET 0
";
        assert_eq!(text.unwrap(), expected);
    }

    #[test]
    fn numbers_beyond_32_bits_have_the_wider_type() {
        let text = built_in(&[], &[tensor(&[3, 1 << 31, 1, 1], Format::Bfyx)], &[1], &[]).unwrap();
        assert!(text.contains("#define OUTPUT0_DIMS (long []){ 3,2147483648,1,1, } "));
        assert!(text.contains("#define OUTPUT0_LOWER_PADDING (int []){ 0,0,0,0, } "));
    }

    fn define(name: &str, param: &str, array: Option<ArrayType>, default: &str) -> String {
        let define = Define { name: name.into(), param: param.into(), array, default: default.into() };
        let attrs: AttrMap = [
            ("slope".to_string(), AttrValue::Float(0.1)),
            ("mask".to_string(), AttrValue::Ints(vec![0, 1, 2])),
            ("lines".to_string(), AttrValue::Text("1\n#error".into())),
        ]
        .into_iter()
        .collect();
        define_line(&define, &attrs).unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn a_define_has_the_value_of_its_attribute_or_its_default() {
        assert_eq!(define("neg_slope", "slope", None, "0.0"), "#define neg_slope 0.100000\n");
        assert_eq!(define("neg_slope", "other", None, "0.0"), "#define neg_slope 0.0\n");
        assert_eq!(define("N 5", "", None, ""), "#define N 5 \n");
        assert_eq!(define("M", "mask", Some(ArrayType::Int), ""), "#define M (int[]) {0,1,2}\n");
        assert_eq!(define("W", "none", Some(ArrayType::Float), "1.0, 2.0"), "#define W (float[]) {1.0, 2.0}\n");
        assert!(define("L", "lines", None, "").contains("several lines"));
    }

    #[test]
    fn sources_keep_their_lines_whatever_they_are_called() {
        let mut text = String::new();
        add_source(&mut text, &SourceText { name: "a \"b\"\n.cl\\".into(), text: "x".into() });
        assert_eq!(text, "// Custom Layer Kernel a \"b\" .cl\\.\n#line 1 \"a \\\"b\\\" .cl\\\\.\"\nx\n");
    }
}
