//! Shapes of a Caffe net given by options do what the same shapes in its text do, and what is converted can be reshaped.

use carafe::convert::{Conversion, ConversionOptions};
use carafe::prelude::*;
use carafe::{Model, PartialShape, ReadRequest, Tensor};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn written(name: &str, shape: &[usize], layers: &str) -> PathBuf {
    let dims: String = shape.iter().map(|d| format!(" dim: {d}")).collect();
    let text = format!("layer {{ name: 'in' type: 'Input' top: 'x' input_param {{ shape {{{dims} }} }} }}\n{layers}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shapes-{name}.prototxt"));
    std::fs::write(&path, text).unwrap();
    path
}

fn converted(path: &Path, options: ConversionOptions) -> Result<Model> {
    let conversion = Conversion { options, ..Conversion::new(ReadRequest::new(path)) };
    Ok(conversion.run(&carafe::core())?.model)
}

fn input_shape(shape: &[usize]) -> ConversionOptions {
    ConversionOptions { input_shape: Some(format!("{shape:?}")), ..ConversionOptions::default() }
}

// Shapes and numbers of all outputs for some input.
fn outputs(model: &Model, shape: &[usize]) -> Vec<(Vec<usize>, Vec<f32>)> {
    let count: usize = shape.iter().product();
    let x: Vec<f32> = (0..count).map(|i| ((i * 7919 + 13) % 101) as f32 / 50.0).collect();
    let found = model.evaluate(&[Tensor::from_slice(shape, &x).unwrap()]).unwrap();
    found.iter().map(|t| (t.shape().to_vec(), t.as_slice::<f32>().unwrap().to_vec())).collect()
}

const SSD: &str = "
    layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'p' pooling_param { kernel_size: 4 stride: 4 } }
    layer { name: 'loc' type: 'Tile' bottom: 'p' top: 'loc' tile_param { tiles: 2 } }
    layer { name: 'locs' type: 'Flatten' bottom: 'loc' top: 'locs' }
    layer { name: 'scores' type: 'Flatten' bottom: 'p' top: 'scores' }
    layer { name: 'prior' type: 'PriorBox' bottom: 'p' bottom: 'x' top: 'prior' prior_box_param { min_size: 3 } }
    layer { name: 'y' type: 'DetectionOutput' bottom: 'locs' bottom: 'scores' bottom: 'prior' top: 'y'
            detection_output_param { num_classes: 2 keep_top_k: 5 code_type: CENTER_SIZE } }";

const UP: &str = "
    layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'p' top: 'm' pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: 'u' type: 'Upsample' bottom: 'p' bottom: 'm' top: 'u' upsample_param { scale: 2 } }
    layer { name: 'z' type: 'Interp' bottom: 'u' top: 'z' interp_param { zoom_factor: 2 } }
    layer { name: 'y' type: 'Resample' bottom: 'z' top: 'y' resample_param { factor: 0.5 } }
    layer { name: 's' type: 'SPP' bottom: 'p' top: 's' spp_param { pyramid_height: 2 } }";

// A window that is larger than the data.
const LAST: &str = "layer { name: 'y' type: 'Pooling' bottom: 'x' top: 'y'
                    pooling_param { pool: AVE kernel_size: 9 stride: 2 } }";

const SMALL: [usize; 4] = [1, 2, 8, 8];
const LARGE: [usize; 4] = [1, 2, 12, 10];

#[test]
fn a_given_shape_is_that_of_the_edited_net() {
    for (name, layers) in [("ssd", SSD), ("up", UP), ("last", LAST)] {
        for (i, (from, to)) in [(SMALL, LARGE), (LARGE, SMALL)].into_iter().enumerate() {
            let edited = converted(&written(&format!("{name}-{i}-edited"), &to, layers), Default::default()).unwrap();
            let wanted = outputs(&edited, &to);
            let path = written(&format!("{name}-{i}"), &from, layers);
            assert_eq!(outputs(&converted(&path, input_shape(&to)).unwrap(), &to), wanted, "{name}");
            for text in ["x", "in", "x:0", ""] {
                let input = Some(format!("{text}{to:?}"));
                let options = ConversionOptions { input, ..ConversionOptions::default() };
                assert_eq!(outputs(&converted(&path, options).unwrap(), &to), wanted, "{name} {text}");
            }
            let (input, input_shape) = (Some("x".to_string()), Some(format!("{to:?}")));
            let options = ConversionOptions { input, input_shape, ..ConversionOptions::default() };
            assert_eq!(outputs(&converted(&path, options).unwrap(), &to), wanted, "{name}");
        }
    }
}

#[test]
fn a_given_batch_is_that_of_the_edited_net() {
    let two = [2, 2, 8, 8];
    for (name, layers) in [("ssd", SSD), ("up", UP)] {
        let edited = converted(&written(&format!("{name}-batch-edited"), &two, layers), Default::default()).unwrap();
        let options = ConversionOptions { batch: Some(2), ..ConversionOptions::default() };
        let found = converted(&written(&format!("{name}-batch"), &SMALL, layers), options).unwrap();
        assert_eq!(outputs(&found, &two), outputs(&edited, &two), "{name}");
    }
}

#[test]
fn a_shape_of_its_own_that_does_not_fit_gives_way() {
    let layers = "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'p' pooling_param { kernel_size: 6 } }
                  layer { name: 'y' type: 'Pooling' bottom: 'p' top: 'y' pooling_param { kernel_size: 5 } }";
    let path = written("unfit", &SMALL, layers);
    converted(&path, ConversionOptions::default()).unwrap_err();
    let model = converted(&path, input_shape(&[1, 2, 12, 12])).unwrap();
    assert_eq!(outputs(&model, &[1, 2, 12, 12])[0].0, [1, 2, 3, 3]);
}

#[test]
fn a_converted_net_can_be_reshaped() {
    for (name, layers) in [("ssd", SSD), ("up", UP), ("last", LAST)] {
        let edited = converted(&written(&format!("{name}-target"), &LARGE, layers), Default::default()).unwrap();
        let mut model = converted(&written(&format!("{name}-open"), &SMALL, layers), Default::default()).unwrap();
        model.reshape(&HashMap::from([(0, PartialShape::of(&LARGE))])).unwrap();
        assert_eq!(outputs(&model, &LARGE), outputs(&edited, &LARGE), "{name}");
    }
}

#[test]
fn a_cut_inside_of_a_net_takes_another_size() {
    let model = |options| converted(&written("cut", &[1, 2, 9, 9], UP), options).unwrap();
    let options = ConversionOptions {
        input: Some("u[1,2,6,10]".to_string()),
        output: Some("y".to_string()),
        ..ConversionOptions::default()
    };
    assert_eq!(outputs(&model(options), &[1, 2, 6, 10])[0].0, [1, 2, 5, 9]);
}
