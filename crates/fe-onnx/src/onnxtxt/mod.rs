//! ONNX's own text language, as `onnx.printer` writes it: a header in angle brackets, a graph, and functions. Attributes
//! of a node stand in front of its inputs or behind them.

mod attributes;
mod parser;
mod types;

use crate::wire::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto};
use carafe_textproto::{Cursor, TextError};
use parser::Parser;

type Result<T> = std::result::Result<T, TextError>;

const KEYWORDS: &[&str] = &[
    "ir_version",
    "opset_import",
    "producer_name",
    "producer_version",
    "domain",
    "model_version",
    "doc_string",
    "metadata_props",
    "overload",
];

/// Whether the word may stand in the header of a model.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Passes by a name in quotes; `None` when it does not end.
pub(crate) fn skip_name<'t>(c: &mut Cursor<'t>) -> Option<&'t str> {
    c.bump();
    loop {
        c.take_while(|c| c != '"' && c != '\\');
        match c.bump()? {
            '\\' => drop(c.bump()?),
            _ => return Some(""),
        }
    }
}

/// Reads a model.
pub(crate) fn parse(text: &str) -> Result<ModelProto> {
    let mut p = Parser::new(text);
    let mut model = ModelProto::default();
    p.header(|p, key| {
        match key {
            "ir_version" => model.ir_version = Some(p.int()?),
            "opset_import" => model.opset_import = opsets(p)?,
            "producer_name" => model.producer_name = Some(p.string()?),
            "producer_version" => model.producer_version = Some(p.string()?),
            "domain" | "doc_string" => drop(p.string()?),
            "model_version" => drop(p.int()?),
            "metadata_props" => model.metadata_props = p.brackets(entry)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let name = p.name()?;
    model.graph = Some(graph(&mut p, name)?);
    while !p.at_end() {
        model.functions.push(function(&mut p)?);
    }
    Ok(model)
}

fn opsets(p: &mut Parser<'_>) -> Result<Vec<OperatorSetIdProto>> {
    p.brackets(|p| {
        let domain = Some(p.string()?);
        p.expect(":")?;
        Ok(OperatorSetIdProto { domain, version: Some(p.int()?) })
    })
}

fn entry(p: &mut Parser<'_>) -> Result<StringStringEntryProto> {
    let key = Some(p.string()?);
    p.expect(":")?;
    Ok(StringStringEntryProto { key, value: Some(p.string()?) })
}

/// A graph from its inputs on.
fn graph(p: &mut Parser<'_>, name: String) -> Result<GraphProto> {
    p.deeper(|p| {
        let mut graph = GraphProto { name: Some(name), ..GraphProto::default() };
        if p.eat("(") {
            p.list(")", |p| {
                let info = p.value_info()?;
                if p.eat("=") {
                    graph.initializer.push(p.tensor_of(&info)?);
                }
                graph.input.push(info);
                Ok(())
            })?;
        }
        p.expect("=>")?;
        p.expect("(")?;
        p.list(")", |p| p.value_info().map(|info| graph.output.push(info)))?;
        if p.eat("<") {
            p.list(">", |p| {
                let info = p.value_info()?;
                if p.eat("=") {
                    graph.initializer.push(p.tensor_of(&info)?);
                } else {
                    graph.value_info.push(info);
                }
                Ok(())
            })?;
        }
        graph.node = nodes(p)?;
        Ok(graph)
    })
}

fn nodes(p: &mut Parser<'_>) -> Result<Vec<NodeProto>> {
    p.expect("{")?;
    let mut nodes = vec![];
    while !p.eat("}") {
        nodes.push(node(p)?);
    }
    Ok(nodes)
}

fn node(p: &mut Parser<'_>) -> Result<NodeProto> {
    let mut node = NodeProto::default();
    if p.eat("[") {
        node.name = Some(p.name()?);
        p.expect("]")?;
    }
    node.output = p.names()?;
    p.expect("=")?;
    let mut path = vec![p.word()?];
    while p.eat(".") {
        path.push(p.word()?);
    }
    node.op_type = path.pop();
    node.domain = Some(path.join("."));
    if p.eat(":") {
        node.overload = Some(p.word()?);
    }
    node.attribute = p.attributes()?;
    p.expect("(")?;
    node.input = p.names()?;
    p.expect(")")?;
    if node.attribute.is_empty() {
        node.attribute = p.attributes()?;
    }
    Ok(node)
}

fn function(p: &mut Parser<'_>) -> Result<FunctionProto> {
    let mut function = FunctionProto::default();
    p.header(|p, key| {
        match key {
            "opset_import" => function.opset_import = opsets(p)?,
            "domain" => function.domain = Some(p.string()?),
            "overload" => function.overload = Some(p.string()?),
            "doc_string" => drop(p.string()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    function.name = Some(p.name()?);
    if p.eat("<") {
        p.list(">", |p| {
            let name = p.name()?;
            match p.peek() {
                Some(':' | '=') => function.attribute_proto.push(p.attribute(name)?),
                _ => function.attribute.push(name),
            }
            Ok(())
        })?;
    }
    // Types of a function's values are allowed, and say nothing that its calls do not.
    let formal = |p: &mut Parser<'_>| p.value_info().map(|info| info.name.unwrap_or_default());
    p.expect("(")?;
    p.list(")", |p| formal(p).map(|name| function.input.push(name)))?;
    p.expect("=>")?;
    p.expect("(")?;
    p.list(")", |p| formal(p).map(|name| function.output.push(name)))?;
    if p.eat("<") {
        p.list(">", |p| p.value_info().map(drop))?;
    }
    function.node = nodes(p)?;
    Ok(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> ModelProto {
        parse(text).unwrap_or_else(|e| panic!("{e}"))
    }
    fn node_of(text: &str) -> NodeProto {
        model(&format!("g (float x) => (float y) {{ {text} }}")).graph.unwrap().node.remove(0)
    }
    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_header_tells_versions() {
        let m = model(
            "< ir_version: 8, opset_import: [\"\" : 17, \"a.b\" : 1] >\n\"a graph\" (float[N,2] x) => (float[] y) {}",
        );
        assert_eq!(m.ir_version, Some(8));
        assert_eq!(m.opset_import[1].domain.as_deref(), Some("a.b"));
        assert_eq!(m.graph.unwrap().name.as_deref(), Some("a graph"));
    }

    #[test]
    fn a_bare_type_is_a_scalar_and_empty_brackets_are_any_rank() {
        let g = model("g (float a, float[] b, float[?, N, 3] c) => () {}").graph.unwrap();
        let shape = |i: usize| g.input[i].r#type.as_ref().unwrap().tensor_type.as_ref().unwrap().shape.clone();
        assert_eq!(shape(0).unwrap().dim.len(), 0);
        assert_eq!(shape(1), None);
        assert_eq!(shape(2).unwrap().dim.iter().map(|d| d.dim_value).collect::<Vec<_>>(), [None, None, Some(3)]);
    }

    #[test]
    fn attributes_stand_before_or_behind_the_inputs() {
        for text in ["y = A <a = 1> (x)", "y = A (x) <a = 1>"] {
            assert_eq!(node_of(text).attribute[0].i, Some(1), "{text}");
        }
    }

    #[test]
    fn a_node_may_have_label_domain_and_overload() {
        let n = node_of("[\"the node\"] y, z = ai.onnx.ml.Op:fast (x, \"\", x)");
        assert_eq!(n.name.as_deref(), Some("the node"));
        assert_eq!((n.domain.as_deref(), n.op_type.as_deref()), (Some("ai.onnx.ml"), Some("Op")));
        assert_eq!(n.overload.as_deref(), Some("fast"));
        assert_eq!((n.output.len(), n.input[1].as_str()), (2, ""));
    }

    #[test]
    fn a_whole_number_stands_for_a_float_where_one_is_declared() {
        let n = node_of("y = A <a: float = 2, b: floats = [1, -inf], c: ints = [], d = -7> (x)");
        assert_eq!(n.attribute[0].f, Some(2.0));
        assert_eq!(n.attribute[1].floats, [1.0, f32::NEG_INFINITY]);
        assert_eq!(n.attribute[2].r#type, Some(7));
        assert_eq!(n.attribute[3].i, Some(-7));
    }

    #[test]
    fn tensors_and_graphs_are_values() {
        let n = node_of("y = A <t = int64[2] {1, 2}, g = b () => (float z) { z = B () }> (x)");
        assert_eq!(n.attribute[0].t.as_ref().unwrap().int64_data, [1, 2]);
        assert_eq!(n.attribute[1].g.as_ref().unwrap().node.len(), 1);
    }

    #[test]
    fn initializers_may_lie_in_a_file() {
        let g = model("g () => (float[2] w) < float[2] w = [\"location\": \"w.bin\", \"offset\": \"8\"] > {}")
            .graph
            .unwrap();
        assert_eq!(g.initializer[0].data_location, Some(1));
        assert_eq!(g.initializer[0].external_data[1].value.as_deref(), Some("8"));
    }

    #[test]
    fn functions_follow_the_graph() {
        let m = model(
            "g () => () {} < domain: \"d\", opset_import: [\"\" : 17] > f <a, b: float = 1.5> (x) => (y) { y = A <c: float = @a> (x) }",
        );
        assert_eq!(m.functions[0].attribute, ["a"]);
        assert_eq!(m.functions[0].attribute_proto[0].f, Some(1.5));
        assert_eq!(m.functions[0].node[0].attribute[0].ref_attr_name.as_deref(), Some("a"));
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(error("g (float x) => (float y) {\n  y = A (x\n}"), "line 3, column 1: expected `)`, found `}`");
        assert_eq!(error("< color: 3 > g () => () {}"), "line 1, column 3: `color` is no entry of a header here");
        assert_eq!(
            error("g () => () { y = A <a: colour = 1> () }"),
            "line 1, column 24: `colour` is no kind of attribute"
        );
        assert!(error("g () => () { y = A <a: ints = [1.5]> () }").contains("`a` is declared as ints, found a float"));
        assert!(error("g () => (float[2] w) < float[2] w = ... > {}").contains("left out its data"));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = "g () => () { y = A <a = ".repeat(10_000);
        assert!(error(&text).contains("nested deeper than"));
        assert!(error(&format!("g ({} x) => () {{}}", "seq(".repeat(10_000))).contains("nested deeper than"));
    }
}
