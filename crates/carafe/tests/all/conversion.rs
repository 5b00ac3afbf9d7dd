//! Conversion options on small models; numbers come from running the changed model on TEMPLATE.

use carafe::convert::{self, ConversionOptions};
use carafe::ops::activation::Relu;
use carafe::ops::arithmetic::{Add, Multiply};
use carafe::ops::control::TensorIterator;
use carafe::ops::indexing::Gather;
use carafe::ops::math::Negative;
use carafe::ops::movement::{Reshape, Split, Squeeze};
use carafe::ops::shape::ShapeOf;
use carafe::{Body, BodyInput, BodyOutput, ElementType, Model, PartialShape, Properties, Slicing, Tensor, Value};

fn shape(text: &str) -> PartialShape {
    text.parse().unwrap()
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

fn named(m: &mut Model, v: impl Into<Value>, name: &str) -> Value {
    let v = v.into();
    m.add_tensor_name(v, name);
    v
}

/// y = -(relu(a) + b): nodes `relu`, `sum`, `neg` give tensors `r`, `s`, `y`.
fn chain() -> Model {
    let mut m = Model::new("chain");
    let a = m.parameter("a", ElementType::F32, shape("?,2")).unwrap();
    let b = m.parameter("b", ElementType::F32, shape("?,2")).unwrap();
    let r = m.add("relu", Relu, &[a]).unwrap();
    let r = named(&mut m, r, "r");
    let s = m.add("sum", Add::default(), &[r, b]).unwrap();
    let s = named(&mut m, s, "s");
    let y = m.add("neg", Negative, &[s]).unwrap();
    let y = named(&mut m, y, "y");
    m.result("out", y).unwrap();
    m
}

/// y = x + 0, an image of this shape.
fn image(dims: &str) -> Model {
    let mut m = Model::new("image");
    let x = m.parameter("x", ElementType::F32, shape(dims)).unwrap();
    let zero = m.constant("zero", floats(&[], &[0.0])).unwrap();
    let y = m.add("same", Add::default(), &[x, zero]).unwrap();
    let y = named(&mut m, y, "y");
    m.result("out", y).unwrap();
    m
}

fn options(set: impl FnOnce(&mut ConversionOptions)) -> ConversionOptions {
    let mut options = ConversionOptions::default();
    set(&mut options);
    options
}

fn apply(mut m: Model, set: impl FnOnce(&mut ConversionOptions)) -> Model {
    convert::apply(&mut m, &options(set)).unwrap();
    carafe::verify(&m).unwrap();
    m
}

fn refused(mut m: Model, set: impl FnOnce(&mut ConversionOptions)) -> String {
    let nodes = m.len();
    let e = convert::apply(&mut m, &options(set)).unwrap_err().to_string();
    assert_eq!(m.len(), nodes, "a refused conversion leaves the model alone");
    e
}

fn text(value: &str) -> Option<String> {
    Some(value.to_string())
}

fn run(m: &Model, inputs: &[Tensor]) -> Vec<Tensor> {
    let r = carafe::core().compile_model(m, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
    for (i, t) in inputs.iter().enumerate() {
        r.set_input(i, t.clone()).unwrap();
    }
    r.infer(()).unwrap();
    (0..m.results().len()).map(|i| r.output(i).unwrap()).collect()
}

fn run_floats(m: &Model, inputs: &[Tensor]) -> Vec<f32> {
    run(m, inputs)[0].as_slice::<f32>().unwrap().to_vec()
}

fn inputs(m: &Model) -> Vec<String> {
    m.parameters().iter().map(|&p| format!("{}: {}", m.parameter_name(p), m.fact(p.into()))).collect()
}

fn outputs(m: &Model) -> Vec<String> {
    m.results().iter().map(|&r| m.result_name(r)).collect()
}

#[test]
fn input_sets_shapes_by_name() {
    let m = apply(chain(), |o| o.input = text("a[1,2],b[4 2]"));
    assert_eq!(inputs(&m), ["a: f32[1,2]", "b: f32[4,2]"]);
    assert_eq!(m.fact(m.result_value(m.results()[0])).shape, shape("4,2"));
}

#[test]
fn input_without_names_goes_by_position() {
    let m = apply(chain(), |o| o.input = text("[1,2],[1..3,2]"));
    assert_eq!(inputs(&m), ["a: f32[1,2]", "b: f32[1..3,2]"]);
}

#[test]
fn listing_inputs_does_not_change_their_order() {
    let m = apply(chain(), |o| o.input = text("b,a"));
    assert_eq!(inputs(&m), ["a: f32[?,2]", "b: f32[?,2]"]);
}

#[test]
fn input_cuts_at_a_tensor_inside() {
    let m = apply(chain(), |o| o.input = text("r[1,2],b"));
    assert_eq!(inputs(&m), ["b: f32[?,2]", "r: f32[1,2]"]);
    assert!(m.find_node("relu").is_none());
    assert_eq!(run_floats(&m, &[floats(&[1, 2], &[10.0, 10.0]), floats(&[1, 2], &[-1.0, 2.0])]), [-9.0, -12.0]);
}

#[test]
fn a_cut_without_a_shape_takes_the_inferred_one() {
    let m = apply(chain(), |o| o.input = text("s"));
    assert_eq!(inputs(&m), ["s: f32[?,2]"]);
}

#[test]
fn input_cuts_at_an_input_port() {
    let m = apply(chain(), |o| o.input = text("0:sum[1,2],b"));
    assert_eq!(inputs(&m)[1], "0:sum: f32[1,2]");
    assert_eq!(m.node(m.parameters()[1]).name(), "sum/placeholder_port_0");
    assert!(m.find_parameter("r").is_some(), "the name of the tensor that is gone still leads here");
    assert_eq!(run_floats(&m, &[floats(&[1, 2], &[1.0, 1.0]), floats(&[1, 2], &[-1.0, 2.0])]), [0.0, -3.0]);
}

#[test]
fn input_cuts_at_an_output_port() {
    let m = apply(chain(), |o| o.input = text("relu:0,b"));
    assert_eq!(inputs(&m)[1], "r: f32[?,2]");
}

#[test]
fn the_name_of_a_node_with_one_input_means_that_input() {
    let m = apply(chain(), |o| o.input = text("neg[1]"));
    assert_eq!(run_floats(&m, &[floats(&[1], &[3.0])]), [-3.0]);
}

#[test]
fn the_name_of_a_node_with_several_inputs_asks_which() {
    let e = refused(chain(), |o| o.input = text("sum[1,2]"));
    assert!(e.contains("has 2 inputs; say which: `0:sum`, `1:sum`, or `sum:0` for its output"), "{e}");
}

#[test]
fn a_value_freezes_an_input() {
    let m = apply(chain(), |o| o.input = text("a,b[1 2]->[5 6]"));
    assert_eq!(inputs(&m), ["a: f32[?,2]"]);
    assert_eq!(run_floats(&m, &[floats(&[1, 2], &[1.0, 1.0])]), [-6.0, -7.0]);
}

#[test]
fn a_frozen_value_finds_the_one_open_size() {
    let m = apply(chain(), |o| o.input = text("b->[1 2 3 4]"));
    assert_eq!(run_floats(&m, &[floats(&[2, 2], &[0.0; 4])]), [-1.0, -2.0, -3.0, -4.0]);
}

#[test]
fn a_value_freezes_a_tensor_inside_and_drops_what_made_it() {
    let m = apply(chain(), |o| o.input = text("r[1 2]->[1 2]"));
    assert_eq!(inputs(&m), ["b: f32[?,2]"]);
}

#[test]
fn a_value_of_the_wrong_count_says_both_counts() {
    let e = refused(chain(), |o| o.input = text("b[1 2]->[1 2 3]"));
    assert_eq!(e, "option `--input`, `b`: found 3 values for shape [1,2]; give as many values as it holds");
}

#[test]
fn a_value_that_is_no_number_of_the_type_is_refused() {
    let e = refused(chain(), |o| o.input = text("b[1]{i32}->1.5"));
    assert!(e.contains("value `1.5` is no i32; expected a whole number"), "{e}");
    let e = refused(chain(), |o| o.input = text("b[1]{u8}->300"));
    assert!(e.contains("expected a number within its range"), "{e}");
}

#[test]
fn another_type_is_converted_behind_the_input() {
    let m = apply(chain(), |o| o.input = text("a{i32},b"));
    assert_eq!(inputs(&m)[0], "a: i32[?,2]");
    let a = Tensor::from_slice(&[1, 2], &[-3i32, 3]).unwrap();
    assert_eq!(run_floats(&m, &[a, floats(&[1, 2], &[0.0, 0.0])]), [0.0, -3.0]);
}

#[test]
fn an_unknown_name_tells_near_names_and_all_inputs_and_outputs() {
    let e = refused(chain(), |o| o.input = text("rel[1]"));
    assert_eq!(
        e,
        "option `--input`: the model has no tensor or node `rel` (did you mean `relu`?); its inputs are: `a`, `b`; its \
         outputs are: `y`"
    );
}

#[test]
fn a_port_that_is_not_there_tells_which_are() {
    let e = refused(chain(), |o| o.input = text("7:sum"));
    assert!(e.contains("node `sum` (Add, opset1) has no input port 7; it has 0 to 1"), "{e}");
}

#[test]
fn one_place_under_two_names_is_refused() {
    let e = refused(chain(), |o| o.input = text("r,relu:0"));
    assert!(e.contains("`r` and `relu:0` name the same place"), "{e}");
}

#[test]
fn a_cut_behind_the_outputs_is_refused() {
    let e = refused(chain(), |o| {
        o.input = text("a,s");
        o.output = text("r");
    });
    assert!(e.contains("`s` does not lead to any output; the outputs are: `r`"), "{e}");
}

#[test]
fn input_shape_goes_with_the_inputs_in_order() {
    let m = apply(chain(), |o| o.input_shape = text("[1,2],(3,2)"));
    assert_eq!(inputs(&m), ["a: f32[1,2]", "b: f32[3,2]"]);
    let m = apply(chain(), |o| {
        o.input = text("b");
        o.input_shape = text("[3,2]");
    });
    assert_eq!(inputs(&m), ["a: f32[?,2]", "b: f32[3,2]"]);
}

#[test]
fn input_shape_of_another_count_names_the_inputs() {
    let e = refused(chain(), |o| o.input_shape = text("[1,2]"));
    assert!(e.contains("found 1 shapes for 2 inputs (`a`, `b`)"), "{e}");
}

#[test]
fn shapes_are_given_once() {
    let e = refused(chain(), |o| {
        o.input = text("a[1,2]");
        o.input_shape = text("[1,2]");
    });
    assert!(e.contains("both set shapes"), "{e}");
    let e = refused(chain(), |o| {
        o.batch = Some(1);
        o.input_shape = text("[1,2],[1,2]");
    });
    assert!(e.contains("--batch and --input_shape"), "{e}");
}

#[test]
fn a_shape_that_is_none_shows_what_one_looks_like() {
    let e = refused(chain(), |o| o.input = text("a[1,x]"));
    assert!(e.contains("`[1,x]` is no shape; expected sizes such as [1,3,?,10..20]"), "{e}");
}

#[test]
fn batch_sets_the_first_axis_of_every_input() {
    assert_eq!(inputs(&apply(chain(), |o| o.batch = Some(4))), ["a: f32[4,2]", "b: f32[4,2]"]);
}

#[test]
fn batch_sets_the_axis_called_n() {
    let m = apply(image("3,?"), |o| {
        o.batch = Some(4);
        o.layout = text("cn");
    });
    assert_eq!(inputs(&m), ["x: f32[3,4]"]);
}

#[test]
fn batch_refuses_an_axis_that_is_no_batch() {
    let e = refused(image("3,8,8"), |o| o.batch = Some(4));
    assert!(e.contains("input `x` has shape [3,8,8], whose first size 3 is no batch"), "{e}");
}

#[test]
fn output_cuts_and_drops_inputs_that_nothing_needs() {
    let m = apply(chain(), |o| o.output = text("r"));
    assert_eq!((inputs(&m), outputs(&m)), (vec!["a: f32[?,2]".to_string()], vec!["r".to_string()]));
    assert_eq!(run_floats(&m, &[floats(&[1, 2], &[-1.0, 2.0])]), [0.0, 2.0]);
}

#[test]
fn outputs_stand_in_the_order_they_are_listed() {
    assert_eq!(outputs(&apply(chain(), |o| o.output = text("s,y,relu"))), ["s", "y", "r"]);
}

#[test]
fn an_output_may_be_what_an_input_port_reads() {
    assert_eq!(outputs(&apply(chain(), |o| o.output = text("0:neg"))), ["s"]);
}

#[test]
fn one_port_of_a_node_with_several_can_be_the_output() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape("4")).unwrap();
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let parts = m.add("parts", Split { num_splits: 2 }, &[x, axis]).unwrap();
    m.result("first", parts.into()).unwrap();
    let m = apply(m, |o| o.output = text("parts:1"));
    assert_eq!(run_floats(&m, &[floats(&[4], &[1.0, 2.0, 3.0, 4.0])]), [3.0, 4.0]);
}

#[test]
fn an_unknown_output_is_refused() {
    let e = refused(chain(), |o| o.output = text("sums"));
    assert!(e.contains("option `--output`") && e.contains("did you mean `sum`"), "{e}");
}

#[test]
fn mean_and_scale_apply_along_the_channels_after_they_are_reversed() {
    let m = apply(image("1,3,1,2"), |o| {
        o.mean_values = text("(1,2,3)");
        o.scale_values = text("(2,4,8)");
        o.reverse_input_channels = true;
    });
    let x = floats(&[1, 3, 1, 2], &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    assert_eq!(run_floats(&m, &[x]), [24.5, 29.5, 7.0, 9.5, 0.875, 2.125]);
}

#[test]
fn values_with_a_name_reach_only_that_input() {
    let m = apply(chain(), |o| o.mean_values = text("b(1,2)"));
    let zeros = floats(&[1, 2], &[0.0, 0.0]);
    assert_eq!(run_floats(&m, &[zeros.clone(), zeros]), [1.0, 2.0]);
}

#[test]
fn values_follow_a_cut_input_by_the_name_in_input() {
    let m = apply(chain(), |o| {
        o.input = text("0:neg[1,2]");
        o.mean_values = text("0:neg(1,2)");
    });
    assert_eq!(run_floats(&m, &[floats(&[1, 2], &[0.0, 0.0])]), [1.0, 2.0]);
}

#[test]
fn one_scale_divides_every_float_input() {
    let m = apply(chain(), |o| o.scale = Some(2.0));
    assert_eq!(run_floats(&m, &[floats(&[1, 2], &[2.0, 4.0]), floats(&[1, 2], &[2.0, 2.0])]), [-2.0, -3.0]);
}

#[test]
fn channels_at_the_end_are_found_too() {
    let m = apply(image("1,1,2,3"), |o| o.mean_values = text("(1,2,3)"));
    assert_eq!(run_floats(&m, &[floats(&[1, 1, 2, 3], &[0.0; 6])]), [-1.0, -2.0, -3.0, -1.0, -2.0, -3.0]);
}

#[test]
fn channels_at_two_places_ask_for_a_layout() {
    let e = refused(image("1,3,5,3"), |o| o.mean_values = text("(1,2,3)"));
    assert!(e.contains("shape [1,3,5,3] has 3 channels at axis 1 or 3; name the axis of the channels C"), "{e}");
    apply(image("1,3,5,3"), |o| {
        o.mean_values = text("(1,2,3)");
        o.layout = text("nchw");
    });
}

#[test]
fn neutral_values_add_nothing() {
    let n = image("1,3,2,2").len();
    let m = apply(image("1,3,2,2"), |o| {
        o.mean_values = text("(0,0,0)");
        o.scale = Some(1.0);
    });
    assert_eq!(m.len(), n);
}

#[test]
fn values_for_integers_point_to_the_way_out() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::U8, shape("3")).unwrap();
    m.result("out", x).unwrap();
    let e = refused(m, |o| o.mean_values = text("(1)"));
    assert!(e.contains("mean and scale need a float input, this one is u8; give it a float type"), "{e}");
}

#[test]
fn bytes_as_input_are_converted_before_the_mean() {
    let m = apply(image("1,3"), |o| {
        o.input = text("x{u8}");
        o.mean_values = text("(1,2,3)");
    });
    assert_eq!(run_floats(&m, &[Tensor::from_slice(&[1, 3], &[0u8, 0, 0]).unwrap()]), [-1.0, -2.0, -3.0]);
}

#[test]
fn bad_values_are_refused() {
    for (bad, why) in [("(1,2", "never closed"), ("(1,b)", "no list of numbers"), ("7", "has no values")] {
        let e = refused(image("1,3,2,2"), |o| o.mean_values = text(bad));
        assert!(e.contains(why), "{bad}: {e}");
    }
    let e = refused(image("1,3,2,2"), |o| o.scale_values = text("(0)"));
    assert!(e.contains("none may be 0"), "{e}");
    let e = refused(chain(), |o| o.mean_values = text("(1,2)"));
    assert!(e.contains("found 1 lists of values for 2 inputs (`a`, `b`); name them, such as a(1,2,3)"), "{e}");
    let e = refused(chain(), |o| {
        o.scale = Some(2.0);
        o.scale_values = text("(1),(2)");
    });
    assert!(e.contains("give one of them"), "{e}");
}

#[test]
fn reversing_needs_an_input_of_three_channels() {
    let e = refused(chain(), |o| o.reverse_input_channels = true);
    assert!(e.contains("no input has 3 channels") && e.contains("a: [?,2]"), "{e}");
}

#[test]
fn a_layout_alone_is_noted_on_the_input() {
    let m = apply(image("1,3,2,2"), |o| o.layout = text("nchw"));
    let info = &m.node(m.parameters()[0]).outputs()[0].rt_info;
    assert_eq!(info.get("layout").unwrap().fields, [("layout".to_string(), "[N,C,H,W]".to_string())]);
}

#[test]
fn another_target_layout_transposes_an_input() {
    let m = apply(image("1,3,1,2"), |o| o.layout = text("x(nchw->nhwc)"));
    assert_eq!(inputs(&m), ["x: f32[1,1,2,3]"]);
    let x = floats(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(run_floats(&m, &[x]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn another_target_layout_transposes_an_output_and_keeps_its_name() {
    let m = apply(image("1,3,1,2"), |o| {
        o.source_layout = text("y(nchw)");
        o.target_layout = text("y(nhwc)");
    });
    assert_eq!(outputs(&m), ["y"]);
    let x = floats(&[1, 3, 1, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let out = &run(&m, &[x])[0];
    assert_eq!((out.shape(), out.as_slice::<f32>().unwrap()), (&[1, 1, 2, 3][..], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));
}

#[test]
fn layouts_may_leave_the_middle_open() {
    let m = apply(image("1,3,4,5"), |o| o.layout = text("nc...->n...c"));
    assert_eq!(inputs(&m), ["x: f32[1,4,5,3]"]);
}

#[test]
fn mean_values_speak_of_the_source_layout() {
    let m = apply(image("1,2,1,1"), |o| {
        o.layout = text("nchw->nhwc");
        o.mean_values = text("(1,2)");
    });
    assert_eq!(run_floats(&m, &[floats(&[1, 1, 1, 2], &[0.0, 0.0])]), [-1.0, -2.0]);
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let cases = [
        ("nchw->nhwd", "both must name the same axes"),
        ("nch", "layout [N,C,H] names 3 axes, the tensor has 4"),
        ("z(nchw)", "the model has no input or output `z`"),
        ("nchc", "`C` stands twice"),
        ("nchw,nchw", "found 2 layouts without a name for 1 inputs"),
    ];
    for (layout, why) in cases {
        let e = refused(image("1,3,4,4"), |o| o.layout = text(layout));
        assert!(e.contains(why), "{layout}: {e}");
    }
    let e = refused(image("1,3,4,4"), |o| o.target_layout = text("nhwc"));
    assert!(e.contains("give its source layout too"), "{e}");
}

/// Reshapes to [2 * rows], computed from the shape of the input.
fn flatten() -> Model {
    let mut m = Model::new("flatten");
    let x = m.parameter("x", ElementType::F32, shape("2,2")).unwrap();
    let s = m.add("shape", ShapeOf { output_type: ElementType::I64 }, &[x]).unwrap();
    let zero = m.constant("zero", Tensor::from_slice(&[1], &[0i64]).unwrap()).unwrap();
    let axis = m.constant("axis", Tensor::scalar(0i64)).unwrap();
    let n = m.add("rows", Gather { batch_dims: 0 }, &[s.into(), zero, axis]).unwrap();
    let two = m.constant("two", Tensor::from_slice(&[1], &[2i64]).unwrap()).unwrap();
    let n = m.add("all", Multiply::default(), &[n.into(), two]).unwrap();
    let y = m.add("y", Reshape { special_zero: false }, &[x, n.into()]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

#[test]
fn static_shape_folds_what_follows_from_shapes() {
    let m = apply(flatten(), |o| o.static_shape = true);
    assert!(m.nodes().all(|(_, n)| n.op().type_name() != "ShapeOf"));
    assert_eq!(run_floats(&m, &[floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn shape_paths_can_be_kept_from_folding() {
    let mut m = flatten();
    let kept = convert::keep_shape_paths(&mut m);
    carafe::passes::clean(&mut m, &mut carafe::Notes::default()).unwrap();
    convert::release_shape_paths(&mut m, &kept);
    assert!(m.nodes().any(|(_, n)| n.op().type_name() == "ShapeOf"));
    assert!(m.nodes().all(|(_, n)| n.rt_info.is_empty()));
}

#[test]
fn a_tidied_model_can_be_reshaped() {
    let mut m = flatten();
    let mut notes = carafe::Notes::enabled();
    convert::run_reshapable(&mut m, carafe::passes::TIDY, &mut notes).unwrap();
    assert!(m.nodes().all(|(_, n)| n.op().type_name() != "ShapeOf"), "{:?}", notes.lines);
    assert_eq!(m.fact(m.parameters()[0].into()).shape, shape("2,2"));
    m.reshape(&std::collections::HashMap::from([(0, shape("3,2"))])).unwrap();
    assert_eq!(run_floats(&m, &[floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn a_squeeze_that_needs_sizes_keeps_the_common_passes() {
    let mut m = Model::new("squeeze");
    let x = m.parameter("x", ElementType::F32, shape("2,1")).unwrap();
    let axes = m.constant("axes", Tensor::from_slice(&[2], &[0i64, 1]).unwrap()).unwrap();
    // Axis 0 stays because it is not 1, which is not known without its size.
    let y = m.add("y", Squeeze { allow_axis_skip: false }, &[x, axes]).unwrap();
    m.result("out", y.into()).unwrap();
    let mut notes = carafe::Notes::enabled();
    convert::run_reshapable(&mut m, carafe::passes::TIDY, &mut notes).unwrap();
    assert!(notes.lines.iter().any(|l| l.contains("only the common passes run")), "{:?}", notes.lines);
    assert_eq!(m.fact(m.result_value(m.results()[0])).shape, shape("2"));
}

#[test]
fn make_stateful_turns_a_pair_into_a_variable() {
    let m = apply(chain(), |o| {
        o.input = text("a[1,2],b[1,2]");
        o.output = text("y,s");
        o.transform = text("MakeStateful[param_res_names={'b':'s'}]");
    });
    assert_eq!((inputs(&m).len(), outputs(&m)), (1, vec!["y".to_string()]));
    let r = carafe::core().compile_model(&m, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
    assert_eq!(r.query_state().unwrap()[0].name(), "bs");
    for expected in [[-1.0, -2.0], [-2.0, -4.0]] {
        r.set_input(0, floats(&[1, 2], &[1.0, 2.0])).unwrap();
        r.infer(()).unwrap();
        assert_eq!(r.output(0).unwrap().as_slice::<f32>().unwrap(), expected);
    }
}

#[test]
fn make_stateful_names_what_it_does_not_find() {
    let e = refused(chain(), |o| o.transform = text("MakeStateful[param_res_names={'b':'s'}]"));
    assert!(e.contains("the model has no output `s`; it has: `y`"), "{e}");
    let e = refused(chain(), |o| o.transform = text("MakeStateful"));
    assert!(e.contains("needs the pairs of inputs and outputs"), "{e}");
}

/// A running sum over the rows of x; the last sum is the output.
fn running_sum(rows: usize) -> Model {
    let mut body = Model::new("body");
    let x = body.parameter("x", ElementType::F32, shape("1,2")).unwrap();
    let s = body.parameter("s", ElementType::F32, shape("1,2")).unwrap();
    let y = body.add("y", Add::default(), &[x, s]).unwrap();
    body.result("out", y.into()).unwrap();
    let mut body = Body::new(body);
    body.inputs = vec![
        BodyInput { outer: Some(0), parameter: 0, slicing: Some(Slicing::along(0)), back_edge: None },
        BodyInput { outer: Some(1), parameter: 1, slicing: None, back_edge: Some(0) },
    ];
    body.outputs = vec![BodyOutput { outer: 0, result: 0, slicing: Some(Slicing::along(0)) }];
    let mut m = Model::new("sum");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[rows, 2])).unwrap();
    let start = m.constant("start", floats(&[1, 2], &[100.0, 100.0])).unwrap();
    let y = m.add("loop", TensorIterator { body }, &[x, start]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

fn twice(m: &Model) -> Vec<Vec<f32>> {
    let r = carafe::core().compile_model(m, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
    (0..2)
        .map(|_| {
            r.set_input(0, floats(&[1, 2], &[1.0, 2.0])).unwrap();
            r.infer(()).unwrap();
            r.output(0).unwrap().as_slice::<f32>().unwrap().to_vec()
        })
        .collect()
}

#[test]
fn low_latency_keeps_the_carried_value_between_inferences() {
    let m = apply(running_sum(1), |o| o.transform = text("LowLatency2"));
    assert_eq!(twice(&m), [[1.0, 2.0], [2.0, 4.0]]);
}

#[test]
fn low_latency_starts_from_the_model_when_asked() {
    let m = apply(running_sum(1), |o| o.transform = text("LowLatency2[use_const_initializer=False]"));
    assert_eq!(twice(&m), [[101.0, 102.0], [102.0, 104.0]]);
}

#[test]
fn low_latency_needs_something_that_is_carried() {
    let e = refused(chain(), |o| o.transform = text("LowLatency2"));
    assert!(e.contains("the model has no TensorIterator, Loop or recurrent sequence"), "{e}");
}

#[test]
fn an_unknown_transformation_lists_the_known_ones() {
    let e = refused(chain(), |o| o.transform = text("LowLatency"));
    assert_eq!(
        e,
        "option `--transform`, `LowLatency`: unknown (did you mean `LowLatency2`?); known: LowLatency2, MakeStateful, Pruning"
    );
    let e = refused(chain(), |o| o.transform = text("Pruning[x=1]"));
    assert!(e.contains("takes no arguments, found `x`"), "{e}");
}
