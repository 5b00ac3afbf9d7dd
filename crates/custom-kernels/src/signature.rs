//! Finds a kernel in OpenCL C and reads its parameters: VPU files bind arguments by name, and only the source says their order. The
//! text is not preprocessed, so a signature that macros make up is not understood and reported.

use carafe_graph::{Error, Result};

/// Where a parameter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Memory of the device.
    Global,
    /// Memory of a work group.
    Local,
    /// A value.
    Private,
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub space: Space,
    /// Its type, without qualifiers, with `*` for a pointer.
    pub ty: String,
    /// As it stands in the source.
    text: String,
}

impl Parameter {
    /// As it stands in the source.
    pub fn declaration(&self) -> &str {
        &self.text
    }
}

const QUALIFIERS: [&str; 11] = [
    "const",
    "restrict",
    "__restrict",
    "__restrict__",
    "volatile",
    "__private",
    "private",
    "__read_only",
    "__write_only",
    "read_only",
    "write_only",
];

/// The parameters of the kernel `entry`, in order; `None` when the source has no such kernel.
pub fn parameters(source: &str, entry: &str) -> Result<Option<Vec<Parameter>>> {
    let source = without_comments(source);
    let mut at = 0;
    while let Some(start) = source[at..].find(entry).map(|i| at + i) {
        at = start + entry.len().max(1);
        let before = source[..start].chars().next_back();
        let after = source[at..].trim_start();
        if before.is_some_and(is_word) || !after.starts_with('(') || !is_kernel(&source[..start]) {
            continue;
        }
        let list = between_parentheses(after)
            .ok_or_else(|| Error::invalid(format!("kernel `{entry}`: the list of its parameters has no end")))?;
        let list = list.trim();
        if list.is_empty() || list == "void" {
            return Ok(Some(vec![]));
        }
        let parameters = split_commas(list).into_iter().map(parameter).collect::<Option<Vec<_>>>();
        let unclear = || {
            let shown = crate::expression::shorten(list);
            Error::unsupported(format!(
                "kernel `{entry}`: the parameters `{shown}` are not understood; write them without macros"
            ))
        };
        return parameters.map(Some).ok_or_else(unclear);
    }
    Ok(None)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

// Whether the text before a name ends with the head of a kernel's definition.
fn is_kernel(before: &str) -> bool {
    let head = before.rsplit([';', '}', '{']).next().unwrap_or_default();
    // Directives stand on lines of their own.
    let words = head.lines().filter(|l| !l.trim_start().starts_with('#'));
    words.flat_map(|l| l.split(|c: char| !is_word(c))).any(|w| w == "__kernel" || w == "kernel")
}

fn without_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find(['/', '"', '\'']) {
        let tail = &rest[start..];
        out.push_str(&rest[..start]);
        let end = if tail.starts_with("//") {
            tail.find('\n').unwrap_or(tail.len())
        } else if tail.starts_with("/*") {
            out.push(' ');
            tail.find("*/").map_or(tail.len(), |i| i + 2)
        } else if tail.starts_with('/') {
            out.push('/');
            1
        } else {
            text_end(tail)
        };
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

// Behind a text in quotes; one that does not end on its line is none.
fn text_end(tail: &str) -> usize {
    let quote = tail.as_bytes()[0];
    let mut escaped = false;
    for (i, b) in tail.bytes().enumerate().skip(1) {
        match b {
            b'\n' => break,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b if b == quote => return i + 1,
            _ => {}
        }
    }
    1
}

fn between_parentheses(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[1..i]);
                }
            }
            _ => {}
        }
    }
    None
}

fn split_commas(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (vec![], 0, 0usize);
    for (i, b) in list.bytes().enumerate() {
        match b {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

fn parameter(declaration: &str) -> Option<Parameter> {
    let text = declaration;
    if text.contains('#') || text.contains('(') {
        return None;
    }
    let is_array = text.contains('[');
    let text = text.split('[').next()?;
    let spread = text.replace('*', " * ");
    let words: Vec<&str> = spread.split_whitespace().collect();
    let (name, types) = words.split_last()?;
    if types.is_empty() || !name.chars().all(is_word) {
        return None;
    }
    let has = |names: &[&str]| types.iter().any(|w| names.contains(w));
    let is_pointer = is_array || types.contains(&"*");
    let space = if has(&["__local", "local"]) {
        Space::Local
    } else if is_pointer || has(&["__global", "global", "__constant", "constant"]) {
        Space::Global
    } else {
        Space::Private
    };
    let spaces = ["__global", "global", "__local", "local", "__constant", "constant", "*"];
    let ty: Vec<&str> = types.iter().copied().filter(|w| !QUALIFIERS.contains(w) && !spaces.contains(w)).collect();
    let ty = format!("{}{}", ty.join(" "), if is_pointer { "*" } else { "" });
    let text = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Parameter { name: name.to_string(), space, ty, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(String, Space, String)> {
        let list = parameters(source, "k").unwrap().unwrap();
        list.into_iter().map(|p| (p.name, p.space, p.ty)).collect()
    }

    #[test]
    fn parameters_have_names_spaces_and_types() {
        let source = "
            // __kernel void k(int wrong)
            #define half2 float2
            __attribute__((noinline)) __kernel void k(
                __global const half* restrict src, /* in, out */ __global half *dst,
                __local float *tmp, __constant int table[4], unsigned int n, float alpha)
            { if (n) { } }";
        let expected = [
            ("src", Space::Global, "half*"),
            ("dst", Space::Global, "half*"),
            ("tmp", Space::Local, "float*"),
            ("table", Space::Global, "int*"),
            ("n", Space::Private, "unsigned int"),
            ("alpha", Space::Private, "float"),
        ];
        assert_eq!(found(source), expected.map(|(n, s, t)| (n.to_string(), s, t.to_string())));
    }

    #[test]
    fn functions_and_longer_names_are_no_kernels() {
        let source =
            "void k(int a) {} kernel void kk(int b) {} kernel void call(int c) { k(c); } kernel void k(int d) {}";
        assert_eq!(found(source)[0].0, "d");
        assert_eq!(parameters("void k(int a) {}", "k").unwrap(), None);
        assert_eq!(parameters("", "k").unwrap(), None);
    }

    #[test]
    fn no_parameters_are_an_empty_list() {
        assert!(found("kernel void k() {}").is_empty());
        assert!(found("kernel void k(void) {}").is_empty());
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(parameters("kernel void k(ARGS) {}", "k").is_err());
        assert!(parameters("kernel void k(int a\n#ifdef B\n, int b\n#endif\n) {}", "k").is_err());
        assert!(parameters("kernel void k(int a", "k").unwrap_err().to_string().contains("has no end"));
    }

    #[test]
    fn texts_and_open_comments_do_not_confuse_it() {
        assert_eq!(found("constant char *s = \"kernel void k(int x)\"; kernel void k(int y) {}")[0].0, "y");
        assert_eq!(parameters("/* kernel void k(int y)", "k").unwrap(), None);
        assert_eq!(found("kernel void k(int y) { int c = '\"'; }")[0].0, "y");
    }
}
