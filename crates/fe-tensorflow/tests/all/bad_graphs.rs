//! Graphs that are wrong or meant to hurt: each ends soon, with an error that says what is wrong.

use crate::common::{
    Proto, check_error, constant, dtype, floats, func, function, graph, node, placeholder, read, shape, types,
    with_functions,
};

// A constant of any type and shape, its values as they are written.
fn tensor(ty: i64, dims: &[i64], values: impl Fn(Proto) -> Proto) -> Proto {
    Proto::new().message(8, values(Proto::new().int(1, ty).message(2, shape(dims))))
}

fn of_constant(ty: i64, value: Proto) -> Proto {
    graph(&[
        node("c", "Const", &[], &[("dtype", dtype(ty)), ("value", value)]),
        node("y", "Identity", &["c"], &[("T", dtype(ty))]),
    ])
}

#[test]
fn a_constant_that_its_shape_does_not_fit_is_refused() {
    let raw = |bytes: usize| move |t: Proto| t.bytes(4, vec![0; bytes]);
    check_error(of_constant(1, tensor(1, &[3], raw(8))).0, "f32[3] takes 12 bytes, found 8");
    check_error(of_constant(1, tensor(1, &[1], raw(8))).0, "f32[1] takes 4 bytes, found 8");
    check_error(of_constant(1, tensor(1, &[-5], raw(8))).0, "not fixed");
    check_error(of_constant(1, tensor(1, &[-1], raw(8))).0, "not fixed");
    check_error(of_constant(1, floats(&[1], &[1.0, 2.0])).0, "takes 1 values, found 2");
    check_error(of_constant(99, tensor(99, &[1], raw(4))).0, "99");
    check_error(of_constant(20, tensor(20, &[], |t| t)).0, "resource");
}

#[test]
fn a_constant_of_one_value_and_a_huge_shape_is_refused() {
    check_error(of_constant(1, floats(&[1 << 60], &[1.0])).0, "dimension 1152921504606846976 is too large");
    check_error(of_constant(1, floats(&[1 << 40], &[1.0])).0, "repeated value");
    check_error(of_constant(1, floats(&[1 << 40, 1 << 40], &[1.0])).0, "too large");
    check_error(of_constant(1, floats(&[1 << 40, 1 << 20, 1 << 20], &[1.0])).0, "too large");
    check_error(of_constant(10, tensor(10, &[1 << 40], |t| t.int(11, 1))).0, "repeated value");
    // Many constants share one limit.
    let one = floats(&[1 << 26], &[1.0]);
    let many: Vec<Proto> = (0..8)
        .flat_map(|i| {
            let name = format!("c{i}");
            let value = node(&name, "Const", &[], &[("dtype", dtype(1)), ("value", one.clone())]);
            [value, node(&format!("y{i}"), "Identity", &[&name], &[("T", dtype(1))])]
        })
        .collect();
    check_error(graph(&many).0, "repeated value");
}

#[test]
fn a_text_that_stands_for_many_elements_is_limited() {
    let text = |n: usize| move |t: Proto| t.bytes(8, vec![b'x'; n]);
    check_error(of_constant(7, tensor(7, &[1 << 20], text(1 << 14))).0, "repeated value");
    check_error(of_constant(7, tensor(7, &[1 << 40], text(1))).0, "repeated value");
    assert!(read(of_constant(7, tensor(7, &[3], text(2))).0).is_ok());
}

#[test]
fn a_constant_in_a_function_that_is_called_often_is_limited() {
    let value = floats(&[1 << 18], &vec![1.0; 1 << 18]);
    let body = [node("c", "Const", &[], &[("dtype", dtype(1)), ("value", value)])];
    let calls: Vec<Proto> = (0..3000).map(|i| node(&format!("y{i}"), "f", &[], &[])).collect();
    let g = with_functions(&calls, &[function("f", &[], &[("r", "c:output:0")], &body)]);
    check_error(g.0, "times its size");
}

#[test]
fn functions_that_double_at_each_level_are_refused() {
    let two = |i: usize| {
        let (inner, name) = (format!("f{}", i - 1), format!("f{i}"));
        let body = [node("a", &inner, &["p"], &[]), node("b", &inner, &["a:r:0"], &[])];
        function(&name, &["p"], &[("r", "b:r:0")], &body)
    };
    let first = function("f0", &["p"], &[("r", "n:y:0")], &[node("n", "Neg", &["p"], &[("T", dtype(1))])]);
    let with = |levels: usize| {
        let library: Vec<Proto> = [first.clone()].into_iter().chain((1..=levels).map(two)).collect();
        with_functions(&[placeholder("x", &[1]), node("y", &format!("f{levels}"), &["x"], &[])], &library)
    };
    assert_eq!(read(with(4).0).unwrap().nodes().filter(|(_, n)| n.op().type_name() == "Negative").count(), 16);
    check_error(with(60).0, "functions unfold the model to more than 1000 times its size");
}

#[test]
fn functions_that_call_each_other_in_a_circle_are_refused() {
    let call = |name: &str, other: &str| {
        function(name, &["p"], &[("r", "n:r:0")], &[node("n", other, &["p"], &[("T", dtype(1))])])
    };
    let nodes = [placeholder("x", &[1]), node("y", "f", &["x"], &[])];
    check_error(with_functions(&nodes, &[call("f", "g"), call("g", "f")]).0, "function `f` calls itself");
    let itself = function("f", &["p"], &[("r", "n:output:0")], &[while_node("n", "p", "f", "f")]);
    check_error(with_functions(&nodes, &[itself]).0, "function `f` calls itself");
}

fn while_node(name: &str, input: &str, cond: &str, body: &str) -> Proto {
    node(name, "While", &[input], &[("T", types(&[1])), ("cond", func(cond)), ("body", func(body))])
}

#[test]
fn a_loop_whose_condition_is_its_body_is_refused() {
    let same = function("f", &["p"], &[("r", "n:y:0")], &[node("n", "Neg", &["p"], &[("T", dtype(1))])]);
    let nodes = [placeholder("x", &[1]), while_node("y", "x", "f", "f")];
    let found = read(with_functions(&nodes, &[same]).0).expect_err("a number is no condition");
    assert!(found.contains("y"), "{found}");
    check_error(with_functions(&nodes, &[]).0, "the model has no function `f`");
}

#[test]
fn a_loop_that_returns_another_number_of_values_is_refused() {
    let cond = function(
        "c",
        &["p"],
        &[("r", "n:z:0")],
        &[constant("zero", &[], &[0.0]), node("n", "Less", &["p", "zero:output:0"], &[("T", dtype(1))])],
    );
    let nothing = function("b", &["p"], &[], &[]);
    let nodes = [placeholder("x", &[]), while_node("y", "x", "c", "b")];
    let found = read(with_functions(&nodes, &[cond.clone(), nothing]).0).expect_err("the body gives nothing");
    assert!(found.contains("y"), "{found}");
    let two = function("b", &["p", "q"], &[("r", "p"), ("s", "q")], &[]);
    let found = read(with_functions(&nodes, &[cond, two]).0).expect_err("the body takes two");
    assert!(found.contains("y"), "{found}");
}

#[test]
fn a_circle_without_a_loop_is_refused() {
    let g = graph(&[
        placeholder("x", &[1]),
        node("a", "Add", &["x", "b"], &[("T", dtype(1))]),
        node("b", "Neg", &["a"], &[("T", dtype(1))]),
        node("y", "Identity", &["b"], &[("T", dtype(1))]),
    ]);
    check_error(g.0, "cycle");
    check_error(graph(&[node("a", "Neg", &["a"], &[]), node("y", "Neg", &["a"], &[])]).0, "cycle");
    let f = function(
        "f",
        &["p"],
        &[("r", "a:y:0")],
        &[node("a", "Neg", &["b:y:0"], &[("T", dtype(1))]), node("b", "Neg", &["a:y:0"], &[("T", dtype(1))])],
    );
    check_error(with_functions(&[placeholder("x", &[1]), node("y", "f", &["x"], &[])], &[f]).0, "cycle");
}

#[test]
fn loops_of_the_first_generation_that_are_torn_are_refused() {
    let merge = |inputs: &[&str]| node("m", "Merge", inputs, &[("T", dtype(1)), ("N", Proto::new().int(3, 2))]);
    let frame = ("frame_name", Proto::new().bytes(2, "f"));
    let enter = || node("e", "Enter", &["x"], &[("T", dtype(1)), frame.clone()]);
    let cases: [&[Proto]; 5] = [
        &[placeholder("x", &[1]), enter(), merge(&["e", "m"]), node("y", "Identity", &["m"], &[])],
        &[placeholder("x", &[1]), node("y", "NextIteration", &["x"], &[("T", dtype(1))])],
        &[placeholder("x", &[1]), node("y", "Exit", &["x"], &[("T", dtype(1))])],
        &[placeholder("x", &[1]), node("y", "LoopCond", &["x"], &[])],
        &[
            placeholder("x", &[1]),
            enter(),
            merge(&["e", "n"]),
            node("n", "NextIteration", &["m"], &[("T", dtype(1))]),
            node("y", "Exit", &["m"], &[("T", dtype(1))]),
        ],
    ];
    for nodes in cases {
        assert!(read(graph(nodes).0).is_err());
    }
}

#[test]
fn references_to_nothing_are_refused() {
    let x = placeholder("x", &[1]);
    let with = |input: &str| graph(&[x.clone(), node("y", "Neg", &[input], &[("T", dtype(1))])]).0;
    check_error(with("nobody"), "nobody");
    check_error(with("x:7"), "x:7");
    check_error(with("x:-1"), "reads `x:-1`, which nothing produces");
    check_error(with("x:99999999999999999999"), "which nothing produces");
    check_error(with(""), "y");
    check_error(graph(&[]).0, "no nodes");
    let call = |returned: &str| {
        let f = function("f", &["p"], &[("r", returned)], &[node("n", "Neg", &["p"], &[("T", dtype(1))])]);
        with_functions(&[x.clone(), node("y", "f", &["x"], &[])], &[f]).0
    };
    check_error(call("gone:y:0"), "gone");
    check_error(call(""), "which nothing produces");
    check_error(call("n:y:7"), "gives 1 outputs, the model reads 8");
}

#[test]
fn a_call_with_too_few_values_is_refused() {
    let f = function("f", &["p", "q"], &[("r", "n:z:0")], &[node("n", "Add", &["p", "q"], &[("T", dtype(1))])]);
    let g = with_functions(&[placeholder("x", &[1]), node("y", "f", &["x"], &[])], &[f]);
    check_error(g.0, "reads `q`, which nothing produces");
}

#[test]
fn more_outputs_than_anything_has_are_refused() {
    let n = |n: i64| Proto::new().int(3, n);
    for count in [-1, 1 << 20, i64::MAX] {
        let split = node("s", "Split", &["axis", "x"], &[("num_split", n(count)), ("T", dtype(1))]);
        let axis = node("axis", "Const", &[], &[("dtype", dtype(3)), ("value", tensor(3, &[], |t| t.int(7, 0)))]);
        let g = graph(&[placeholder("x", &[8]), axis, split, node("y", "Neg", &["s:1"], &[("T", dtype(1))])]);
        let found = read(g.0).expect_err("no node has so many outputs");
        assert!(found.contains("`s`"), "{found}");
    }
}

#[test]
fn unknown_operations_are_one_list_with_counts() {
    let g = graph(&[
        placeholder("x", &[2]),
        node("a", "Nonesuch", &["x"], &[]),
        node("b", "Nonesuch", &["a"], &[]),
        node("y", "Reluu", &["b"], &[]),
    ]);
    let found = read(g.0).expect_err("two types are unknown");
    for wanted in
        ["3 nodes of 2 operations cannot be translated", "2 x `Nonesuch`", "1 x `Reluu`", "did you mean Relu?"]
    {
        assert!(found.contains(wanted), "wanted `{wanted}` in `{found}`");
    }
}
