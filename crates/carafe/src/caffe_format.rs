//! Caffe as a format of `Core`.

use carafe_fe_caffe::{CaffeOptions, CustomLayers};
use carafe_frontend::{ReadOptions, RuleSet};
use carafe_graph::{Model, Result};
use carafe_runtime::{ReadContext, ReadRequest, Reader};
use std::path::{Path, PathBuf};

/// The reader, with its rules; a user's rules stand in front of the built-in ones.
#[derive(Debug)]
pub(crate) struct CaffeFormat {
    rules: RuleSet,
}

impl CaffeFormat {
    pub(crate) fn new() -> CaffeFormat {
        CaffeFormat { rules: carafe_fe_caffe::rules() }
    }
}

fn options(request: &ReadRequest<'_>) -> Result<CaffeOptions> {
    let get = |name: &str| request.options.and_then(|o| o.get(name));
    let flag = |name: &str| request.options.map_or(Ok(false), |o| o.flag(name));
    let path = |name: &str| get(name).map(PathBuf::from);
    let mut custom = match get("custom_layers") {
        Some(file) => Some(CustomLayers::read_file(Path::new(file), &request.log)?),
        None => None,
    };
    if custom.is_none() && get("layer_shapes").is_some() {
        // Without entries nobody asks for shapes, which is told.
        custom = Some(CustomLayers::default());
    }
    if let Some(custom) = &mut custom {
        custom.keep_optional = flag("disable_omitting_optional")?;
        custom.flatten = flag("enable_flattening_nested_params")?;
        if let Some(text) = get("layer_shapes") {
            custom.add_shapes(text).map_err(|e| e.at("option `--layer_shapes`"))?;
        }
    }
    Ok(CaffeOptions {
        weights: request.weights.map(Path::to_path_buf),
        topology: path("input_proto"),
        proto: path("caffe_parser_path"),
        custom,
        input_shapes: request.input_shapes.iter().map(|s| (s.name.clone(), s.shape.clone())).collect(),
    })
}

impl Reader for CaffeFormat {
    fn format(&self) -> &'static str {
        "Caffe"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        carafe_fe_caffe::is_caffe(head)
    }
    fn read(&self, request: &ReadRequest<'_>, cx: &ReadContext<'_>) -> Result<Model> {
        let caffe = options(request)?;
        let options = ReadOptions {
            keep_unknown: request.keep_unknown,
            explain: request.explain,
            progress: request.progress,
            registry: Some(cx.registry),
            decoded: cx.decoded,
            telemetry: Some(cx.telemetry),
            log: request.log,
            wanted: request.wanted,
        };
        let rules = self.rules.with_user("caffe", cx.rules, cx.fallback);
        carafe_fe_caffe::read_file_with(request.path, &rules, &options, &caffe)
    }
    fn options(&self) -> &'static [&'static str] {
        &[
            "input_proto",
            "custom_layers",
            "layer_shapes",
            "caffe_parser_path",
            "disable_omitting_optional",
            "enable_flattening_nested_params",
        ]
    }
    fn endings(&self) -> &'static [&'static str] {
        &["prototxt", "caffemodel"]
    }
    fn has_decoded_form(&self) -> bool {
        true
    }
    fn decoded(&self, request: &ReadRequest<'_>) -> Result<Option<Model>> {
        carafe_fe_caffe::read_decoded(request.path, &options(request)?).map(Some)
    }
}
