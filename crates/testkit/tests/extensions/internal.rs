//! Attributes that are marked internal: used while converting and running, never written to the files of an IR.

use crate::support::*;
use carafe::{Core, Model, Properties, SharedBytes, Tensor};
use carafe_testkit::libraries::Workshop;

const X: [f32; 2] = [1.0, 2.0];

fn model(core: &Core, attrs: &str) -> Model {
    onnx(core, &format!("g (float[2] x) => (float[2] y) {{ y = kinds.Hinted{attrs}(x) }}")).unwrap()
}

/// The text of the model as a file, and the model that is read from it.
fn through_file(core: &Core, model: &Model) -> (String, Model) {
    let shop = Workshop::new();
    let path = shop.path("written.xml");
    carafe::convert::emit(model, &path, &carafe::Log::default()).unwrap();
    (std::fs::read_to_string(&path).unwrap(), core.read_model(&path).unwrap())
}

#[test]
fn an_internal_attribute_is_read_from_a_source_format_and_used_in_the_run() {
    in_each_language(|core| {
        assert_eq!(floats(&run(core, &model(core, "<factor = 3.0, hint = 0.5>"), &X).unwrap()), [3.5, 6.5]);
        assert_eq!(floats(&run(core, &model(core, ""), &X).unwrap()), [11.0, 12.0]);
    });
}

#[test]
fn an_internal_attribute_is_not_written_and_has_its_default_after_reading() {
    in_each_language(|core| {
        let (text, again) = through_file(core, &model(core, "<factor = 3.0, hint = 0.5>"));
        assert!(text.contains("factor=\"3\"") && !text.contains("hint"), "{text}");
        assert_eq!(floats(&run(core, &again, &X).unwrap()), [13.0, 16.0]);
    });
}

#[test]
fn an_internal_attribute_survives_cloning_and_shows_in_the_dump() {
    in_each_language(|core| {
        let copy = model(core, "<hint = 0.5>").clone();
        assert!(carafe_graph::dump::text(&copy).contains("hint=0.5"), "{}", carafe_graph::dump::text(&copy));
        assert_eq!(floats(&run(core, &copy, &X).unwrap()), [1.5, 2.5]);
    });
}

#[test]
fn an_exported_model_keeps_its_internal_attributes() {
    in_each_language(|core| {
        for device in ["TEMPLATE", "CPU", "HETERO:TEMPLATE,CPU"] {
            let compiled = core.compile_model(&model(core, "<hint = 0.5>"), device, &Properties::new()).unwrap();
            let mut blob = vec![];
            compiled.export(&mut blob).unwrap();
            let again = core.import_model(SharedBytes::from_vec(blob), device, &Properties::new()).unwrap();
            let request = again.create_infer_request();
            request.set_input(0, Tensor::from_slice(&[2], &X).unwrap()).unwrap();
            request.infer(()).unwrap();
            assert_eq!(floats(&request.output(0).unwrap()), [1.5, 2.5], "{device}");
        }
    });
}

#[test]
fn the_cache_tells_models_apart_by_their_internal_attributes() {
    in_each_language(|core| {
        let shop = Workshop::new();
        let properties = Properties::new().with("CACHE_DIR", shop.path("cache").display());
        for (attrs, y, hit) in
            [("<hint = 0.5>", 1.5, "false"), ("<hint = 1.5>", 2.5, "false"), ("<hint = 0.5>", 1.5, "true")]
        {
            let compiled = core.compile_model(&model(core, attrs), "CPU", &properties).unwrap();
            assert_eq!(compiled.property("LOADED_FROM_CACHE").unwrap(), hit);
            let request = compiled.create_infer_request();
            request.set_input(0, Tensor::from_slice(&[2], &X).unwrap()).unwrap();
            request.infer(()).unwrap();
            assert_eq!(floats(&request.output(0).unwrap())[0], y);
        }
    });
}
