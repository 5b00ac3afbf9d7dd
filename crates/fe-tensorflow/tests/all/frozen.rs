//! Graphs in binary form: names, ports, functions, and what is left out.

use crate::common::{Proto, check_error, constant, dtype, evaluate, graph, node, placeholder, read, shape};
use carafe_graph::Model;

fn names(model: &Model) -> Vec<Vec<String>> {
    let of = |id| model.output(model.result_value(id)).names.iter().cloned().collect();
    model.results().iter().map(|&r| of(r)).collect()
}

#[test]
fn nodes_that_nobody_reads_are_the_outputs() {
    let g = graph(&[
        node("y", "Identity", &["x:0", "^init"], &[("T", dtype(1))]),
        node("init", "NoOp", &[], &[]),
        placeholder("x", &[2]),
        constant("unused", &[], &[1.0]),
    ]);
    let model = read(&g.0).unwrap();
    assert_eq!(evaluate(&model, &[(&[2], &[1.0, 2.0])]), [(vec![2], vec![1.0, 2.0])]);
    assert_eq!(names(&model)[0], ["x", "x:0", "y", "y:0"]);
}

#[test]
fn ports_have_numbers() {
    let g = graph(&[
        placeholder("a", &[1]),
        placeholder("b", &[2]),
        node("both", "IdentityN", &["a", "b"], &[("T", Proto::new().message(1, Proto::new().bytes(6, [1, 1])))]),
        node("y", "Identity", &["both:1"], &[]),
    ]);
    let model = read(&g.0).unwrap();
    assert_eq!(evaluate(&model, &[(&[1], &[7.0]), (&[2], &[1.0, 2.0])]), [(vec![2], vec![1.0, 2.0])]);
}

// `f(p) = identity(p)`, once by its name and once by `PartitionedCall`.
fn with_function(body: &[Proto], returned: &str) -> Proto {
    let arg = |name: &str| Proto::new().bytes(1, name).int(3, 1);
    let signature = Proto::new().bytes(1, "f").message(2, arg("p")).message(3, arg("r"));
    let function = body.iter().fold(Proto::new().message(1, signature), |f, n| f.message(3, n.clone()));
    let function = function.message(4, Proto::new().bytes(1, "r").bytes(2, returned));
    let f = Proto::new().message(10, Proto::new().bytes(1, "f"));
    graph(&[
        placeholder("x", &[2]),
        node("direct", "f", &["x"], &[]),
        node("call", "PartitionedCall", &["direct"], &[("f", f)]),
        node("y", "Identity", &["call"], &[]),
    ])
    .message(2, Proto::new().message(1, function))
}

#[test]
fn functions_are_put_in_place_of_their_calls() {
    let g = with_function(&[node("inner", "Identity", &["p"], &[])], "inner:output:0");
    let model = read(&g.0).unwrap();
    assert_eq!(evaluate(&model, &[(&[2], &[1.0, 2.0])]), [(vec![2], vec![1.0, 2.0])]);
    assert!(names(&model)[0].contains(&"call/inner".to_string()), "{:?}", names(&model));
    assert!(names(&model)[0].contains(&"direct:0".to_string()), "{:?}", names(&model));
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let g = with_function(&[node("again", "f", &["p"], &[])], "again:r:0");
    check_error(&g.0, "function `f` calls itself");
}

#[test]
fn unknown_operations_are_listed() {
    let g = graph(&[placeholder("x", &[2]), node("y", "Nonesuch", &["x"], &[])]);
    check_error(&g.0, "1 x `Nonesuch`");
}

#[test]
fn two_nodes_of_one_name_are_refused() {
    check_error(&graph(&[constant("a", &[], &[1.0]), constant("a", &[], &[1.0])]).0, "two nodes are named `a`");
}

#[test]
fn a_variable_without_a_value_says_what_to_do() {
    let g = graph(&[
        node("v", "VarHandleOp", &[], &[("dtype", dtype(1))]),
        node("y", "ReadVariableOp", &["v"], &[("dtype", dtype(1))]),
    ]);
    check_error(&g.0, "--input_checkpoint");
}

#[test]
fn what_feeds_an_iterator_is_no_output() {
    let shapes = Proto::new().message(1, Proto::new().message(7, shape(&[2])));
    let types = Proto::new().message(1, Proto::new().int(6, 1));
    let model = graph(&[
        constant("c", &[2], &[1.0, 2.0]),
        node("data", "TensorDataset", &["c"], &[]),
        node("iterator", "OneShotIterator", &[], &[]),
        node("handle", "IteratorToStringHandle", &["iterator"], &[]),
        node("x", "IteratorGetNext", &["iterator"], &[("output_types", types), ("output_shapes", shapes)]),
        node("y", "Relu", &["x"], &[("T", dtype(1))]),
    ]);
    let model = read(model.0).unwrap();
    assert_eq!(evaluate(&model, &[(&[2], &[-1.0, 3.0])]), [(vec![2], vec![0.0, 3.0])]);
}
