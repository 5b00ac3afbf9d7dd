//! What the processor puts in front of and behind a model, by running it.

use carafe_graph::{EvalEnv, Model, run};
use carafe_ops::math::Abs;
use carafe_preprocess::{ColorFormat, Layout, PaddingMode, PrePostProcessor, ResizeAlgorithm};
use carafe_tensor::{ElementType, PartialShape, Tensor};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// `y = abs(x)` over floats of this shape.
fn model(shape: &str) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape.parse().unwrap()).unwrap();
    let y = m.add("y", Abs, &[x]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

fn input(m: &Model) -> String {
    let fact = m.fact(m.parameters()[0].into());
    format!("{}[{}]", fact.ty, fact.shape)
}

fn infer(m: &Model, x: Tensor) -> Tensor {
    run(m, &[x], &mut EvalEnv::default()).unwrap().remove(0)
}

fn floats(t: &Tensor) -> Vec<f32> {
    t.to_vec::<f32>().unwrap().into_owned()
}

#[test]
fn bytes_of_another_layout_and_colour_become_what_the_model_takes() {
    let mut ppp = PrePostProcessor::new(model("1,3,1,2"));
    let input_info = ppp.input("x").unwrap();
    input_info.tensor().element_type(ElementType::U8).layout(layout("NHWC")).color_format(ColorFormat::Bgr);
    input_info.model().layout(layout("NCHW"));
    input_info
        .preprocess()
        .convert_element_type(ElementType::F32)
        .convert_color(ColorFormat::Rgb)
        .mean([1.0, 2.0, 3.0])
        .scale([2.0]);
    let m = ppp.build().unwrap();
    assert_eq!(input(&m), "u8[1,1,2,3]");
    let y = infer(&m, Tensor::from_slice(&[1, 1, 2, 3], &[10u8, 20, 30, 40, 50, 60]).unwrap());
    assert_eq!(y.shape(), [1, 3, 1, 2]);
    // R = 30, 60; G = 20, 50; B = 10, 40.
    assert_eq!(floats(&y), [14.5, 29.5, 9.0, 24.0, 3.5, 18.5]);
}

#[test]
fn a_resized_input_takes_pictures_of_any_size() {
    let mut ppp = PrePostProcessor::new(model("1,1,2,2"));
    let info = ppp.input(0).unwrap();
    info.model().layout(layout("NCHW"));
    info.preprocess().resize(ResizeAlgorithm::Linear);
    let m = ppp.build().unwrap();
    assert_eq!(input(&m), "f32[1,1,?,?]");
    let y = infer(&m, Tensor::from_slice(&[1, 1, 4, 4], &[2f32; 16]).unwrap());
    assert_eq!((y.shape(), floats(&y)), (&[1, 1, 2, 2][..], vec![2.0; 4]));
}

#[test]
fn a_static_size_of_the_tensor_is_kept() {
    let mut ppp = PrePostProcessor::new(model("1,1,2,2"));
    let info = ppp.input(0).unwrap();
    info.tensor().spatial_static_shape(4, 6);
    info.model().layout(layout("NCHW"));
    info.preprocess().resize(ResizeAlgorithm::Nearest);
    assert_eq!(input(&ppp.build().unwrap()), "f32[1,1,4,6]");
}

#[test]
fn brightness_of_a_colour_picture_feeds_a_grey_model() {
    let mut ppp = PrePostProcessor::new(model("1,1,1,1"));
    let info = ppp.input(0).unwrap();
    info.tensor().layout(layout("NHWC")).color_format(ColorFormat::Rgb);
    info.model().layout(layout("NCHW"));
    info.preprocess().convert_color(ColorFormat::Gray);
    let m = ppp.build().unwrap();
    assert_eq!(input(&m), "f32[1,1,1,3]");
    let y = infer(&m, Tensor::from_slice(&[1, 1, 1, 3], &[100f32, 100.0, 100.0]).unwrap());
    assert!((floats(&y)[0] - 100.0).abs() < 1e-4);
}

#[test]
fn planes_of_video_become_pixels() {
    let mut ppp = PrePostProcessor::new(model("1,2,2,3"));
    let info = ppp.input(0).unwrap();
    info.tensor().element_type(ElementType::U8).color_format(ColorFormat::Nv12SinglePlane);
    info.model().layout(layout("NHWC"));
    info.preprocess().convert_color(ColorFormat::Rgb);
    let m = ppp.build().unwrap();
    assert_eq!(input(&m), "u8[1,3,2,1]");
    let grey = infer(&m, Tensor::from_slice(&[1, 3, 2, 1], &[128u8; 6]).unwrap());
    let first = floats(&grey)[0];
    assert!(floats(&grey).iter().all(|v| (v - first).abs() <= 1.0), "{:?}", floats(&grey));
}

#[test]
fn crop_pad_clamp_and_nodes_of_ones_own_run_in_their_order() {
    let mut ppp = PrePostProcessor::new(model("4"));
    let info = ppp.input(0).unwrap();
    info.tensor().shape(PartialShape::of(&[5]));
    info.preprocess()
        .crop([1], [3])
        .pad([1], [1], 7.0, PaddingMode::Constant)
        .clamp(-2.0, 6.0)
        .custom(|model, v| Ok(model.add("own", Abs, &[v])?.into()));
    let m = ppp.build().unwrap();
    let y = infer(&m, Tensor::from_slice(&[5], &[0f32, -5.0, 1.0, 9.0, 9.0]).unwrap());
    assert_eq!(floats(&y), [6.0, 2.0, 1.0, 6.0]);
}

#[test]
fn an_output_changes_its_type_and_layout_and_keeps_its_name() {
    let mut ppp = PrePostProcessor::new(model("1,2,1,2"));
    let info = ppp.output("y").unwrap();
    info.model().layout(layout("NCHW"));
    info.tensor().layout(layout("NHWC")).element_type(ElementType::I32);
    let m = ppp.build().unwrap();
    assert_eq!(m.result_name(m.results()[0]), "y");
    let y = infer(&m, Tensor::from_slice(&[1, 2, 1, 2], &[1f32, -2.0, 3.0, -4.0]).unwrap());
    assert_eq!((y.element_type(), y.shape()), (ElementType::I32, &[1, 1, 2, 2][..]));
    assert_eq!(y.as_slice::<i32>().unwrap(), [1, 3, 2, 4]);
}

#[test]
fn mean_of_integers_and_unknown_channels_are_refused() {
    let fails = |set: &dyn Fn(&mut carafe_preprocess::InputInfo)| {
        let mut ppp = PrePostProcessor::new(model("1,3,2,2"));
        set(ppp.input(0).unwrap());
        ppp.build().unwrap_err().to_string()
    };
    let text = fails(&|i| {
        i.tensor().element_type(ElementType::U8);
        i.preprocess().mean([1.0]);
    });
    assert_eq!(text, "preprocessing of input `x`: the mean needs floats, found u8; convert the element type first");
    let text = fails(&|i| {
        i.preprocess().mean([1.0, 2.0, 3.0]);
    });
    assert_eq!(text, "preprocessing of input `x`: no axis is known to be C; set the layout of the tensor");
    let text = fails(&|i| {
        i.preprocess().scale([0.0]);
    });
    assert!(text.contains("no value may be 0"), "{text}");
    let mut ppp = PrePostProcessor::new(model("4"));
    assert_eq!(ppp.input("z").unwrap_err().to_string(), "the model has no input `z`; it has: x");
}

#[test]
fn channels_of_any_number_are_reversed() {
    for shape in ["1,2,1,1", "1,?,1,1"] {
        let mut ppp = PrePostProcessor::new(model(shape));
        let info = ppp.input(0).unwrap();
        info.tensor().layout(layout("NCHW"));
        info.preprocess().reverse_channels();
        let y = infer(&ppp.build().unwrap(), Tensor::from_slice(&[1, 2, 1, 1], &[1f32, 2.0]).unwrap());
        assert_eq!(floats(&y), [2.0, 1.0], "{shape}");
    }
}

#[test]
fn a_picture_in_colours_without_a_layout_is_channels_last() {
    let mut ppp = PrePostProcessor::new(model("1,2,2,1"));
    let info = ppp.input(0).unwrap();
    info.tensor().color_format(ColorFormat::Bgr);
    info.preprocess().convert_color(ColorFormat::Gray);
    assert_eq!(input(&ppp.build().unwrap()), "f32[1,2,2,3]");
}

#[test]
fn sizes_that_the_steps_change_are_an_error_unless_the_shape_is_set() {
    let mut ppp = PrePostProcessor::new(model("4"));
    ppp.input(0).unwrap().preprocess().pad([1], [1], 0.0, PaddingMode::Constant);
    assert!(ppp.build().unwrap_err().to_string().contains("the steps make [6], the model takes [4]"));
}

#[test]
fn a_processor_prints_every_step_with_what_goes_in_and_comes_out() {
    let mut ppp = PrePostProcessor::new(model("1,2,1,1"));
    let info = ppp.input(0).unwrap();
    info.tensor().element_type(ElementType::U8);
    info.preprocess().convert_to_target_type().scale([2.0]);
    ppp.output(0).unwrap().tensor().element_type(ElementType::F16);
    let text = ppp.to_string();
    assert!(
        text.contains("      scale (2): ([1,2,1,1], <no layout>, f32) -> ([1,2,1,1], <no layout>, f32)\n"),
        "{text}"
    );
    assert!(text.contains("Post-processing implicit steps (1):\n      convert type (f16): "), "{text}");
    assert_eq!(input(&ppp.build().unwrap()), "u8[1,2,1,1]");
}
