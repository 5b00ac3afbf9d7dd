//! A detector in the style of TensorFlow's Object Detection API (`scripts/fixtures/tf_detection.py`): as it is, and with its pre-
//! and postprocessor replaced as a file of the kind of `ssd_v2_support.json` says.

use carafe::convert::Conversion;
use carafe::{ElementType, Model, ReadRequest, Tensor};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tf_detection").join(name)
}

fn array(name: &str) -> Tensor {
    let all = carafe_npy::read_npz(&std::fs::read(data("ssd.npz")).unwrap()).unwrap();
    all.into_iter().find(|(n, _)| n == name).unwrap().1
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_vec::<f64>().unwrap().into_owned()
}

fn converted(config: Option<&str>) -> Model {
    let file = config.map(|text| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ssd_support.json");
        std::fs::write(&file, text).unwrap();
        file
    });
    let path = data("ssd.pb");
    let conversion = Conversion { transformations_config: file.as_deref(), ..Conversion::new(ReadRequest::new(&path)) };
    conversion.run(&carafe::core()).unwrap().model
}

#[test]
fn a_detector_with_loops_gives_what_tensorflow_gives() {
    let model = converted(None);
    for prefix in ["", "small."] {
        let found = model.evaluate(&[array(&format!("i.{prefix}image_tensor"))]).unwrap();
        for (i, &r) in model.results().iter().enumerate() {
            let wanted = numbers(&array(&format!("o.{prefix}{}", model.result_name(r))));
            let found = numbers(&found[i]);
            assert_eq!(found.len(), wanted.len());
            assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}, wanted {wanted:?}");
        }
    }
}

#[test]
fn a_detector_with_loops_gives_the_same_on_gpu() {
    let (model, core) = (converted(None), carafe::core());
    let exact = carafe::Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
    for device in ["GPU", "HETERO:GPU,CPU"] {
        let request = core.compile_model(&model, device, &exact).unwrap().create_infer_request();
        for prefix in ["", "small."] {
            request.set_input(0, array(&format!("i.{prefix}image_tensor"))).unwrap();
            request.infer(()).unwrap();
            for (i, &r) in model.results().iter().enumerate() {
                let wanted = numbers(&array(&format!("o.{prefix}{}", model.result_name(r))));
                let found = numbers(&request.output(i).unwrap());
                assert_eq!(found.len(), wanted.len());
                assert!(
                    found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-4),
                    "{device}: {found:?}, wanted {wanted:?}"
                );
            }
        }
    }
}

const CONFIG: &str = r#"[
    {
        "custom_attributes": {
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
            "confidence_threshold": 0.4,
            "keep_top_k": 6,
            "nms_threshold": 0.5,
            "clip_before_nms": true,
            "clip_after_nms": true,
            "pad_mode": "caffe.ResizeParameter.CONSTANT",
            "resize_mode": "caffe.ResizeParameter.WARP"
        },
        "id": "ObjectDetectionAPISSDPostprocessorReplacement",
        "include_inputs_to_sub_graph": true,
        "include_outputs_to_sub_graph": true,
        "instances": {
            "end_points": ["detection_boxes", "detection_scores", "detection_classes", "num_detections"],
            "start_points": [
                "Postprocessor/Shape", "Postprocessor/scale_logits", "Postprocessor/ExpandDims", "Postprocessor/Reshape_1"
            ]
        },
        "match_kind": "points"
    },
    {
        "custom_attributes": {},
        "id": "ObjectDetectionAPIPreprocessorReplacement",
        "inputs": [[
            {"node": "map/Shape$", "port": 0},
            {"node": "map/TensorArrayUnstack/Shape$", "port": 0},
            {"node": "map/TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3$", "port": 2}
        ]],
        "instances": [".*Preprocessor/"],
        "match_kind": "scope",
        "outputs": [{"node": "sub$", "port": 0}]
    }
]"#;

#[test]
fn a_replacement_file_turns_it_into_detection_output() {
    let model = converted(Some(CONFIG));
    let types: Vec<&str> = model.nodes().map(|(_, n)| n.op().info().name).collect();
    assert!(types.contains(&"DetectionOutput") && !types.contains(&"Loop") && !types.contains(&"NonMaxSuppression"));
    assert_eq!(model.results().len(), 1);
    let image = array("i.small.image_tensor");
    assert_eq!(image.element_type(), ElementType::U8);
    let rows = numbers(&model.evaluate(&[image]).unwrap()[0]);
    let [boxes, scores, classes] =
        ["boxes", "scores", "classes"].map(|n| numbers(&array(&format!("o.small.detection_{n}"))));
    for image in 0..2 {
        let mut found: Vec<&[f64]> = rows.chunks(7).filter(|r| r[0] == image as f64).collect();
        found.sort_by(|a, b| b[2].total_cmp(&a[2]));
        assert_eq!(found.len(), 6);
        for (i, row) in found.iter().enumerate() {
            let k = image * 6 + i;
            let [ymin, xmin, ymax, xmax] = boxes[4 * k..4 * k + 4] else { unreachable!() };
            let wanted = [classes[k], scores[k], xmin, ymin, xmax, ymax];
            assert!(row[1..].iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-4), "{row:?}, wanted {wanted:?}");
        }
    }
}
