//! What a user may ask of a conversion besides reading and writing: cutting, shapes, frozen inputs, layouts, preprocessing
//! and stateful rewrites. Options are kept as they are typed and read against the model, whatever format it came from;
//! shapes, mean and scale values speak of the model as it was before layouts are changed.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod config;
mod inputs;
mod layout;
mod literal;
mod mappings;
mod outputs;
mod pipeline;
mod places;
mod preprocess;
mod pruning;
mod shapes;
mod syntax;
mod transform;

pub use config::{ConfigPass, ReplacementFile, apply_config, update_config};
pub use mappings::{read_mapping, read_mappings};
pub use pipeline::{Conversion, Converted, emit, emit_up_to};
pub use shapes::{keep_shape_paths, release_shape_paths, run_reshapable};

use carafe_frontend::take_cut_off;
use carafe_graph::{Error, Model, NodeId, Result};
use std::path::PathBuf;

/// Options of a conversion; text fields have the grammar of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversionOptions {
    /// `name[shape]{type}->value, ...`; a name may be `port:node` or `node:port` and lie inside the graph.
    pub input: Option<String>,
    /// `name->value, ...`: inputs that become constants, as `input` can say of them too.
    pub freeze_placeholder_with_value: Option<String>,
    /// Names of the outputs to keep or make, in order.
    pub output: Option<String>,
    /// `[1,3,224,224],[1..8,?]`: shapes of `input`, or of the inputs of the model.
    pub input_shape: Option<String>,
    /// Size of the batch axis of every input.
    pub batch: Option<i64>,
    /// `nchw`, or `name(nhwc->nchw), ...` to have the converted model take or give another order of axes.
    pub layout: Option<String>,
    /// The left half of `layout`.
    pub source_layout: Option<String>,
    /// The right half of `layout`.
    pub target_layout: Option<String>,
    /// `(a,b,c)` or `name(a,b,c), ...`: subtracted from the channels of an input.
    pub mean_values: Option<String>,
    /// A mean image of Caffe (`.binaryproto`), subtracted from the only input.
    pub mean_file: Option<PathBuf>,
    /// `(x,y)`: where the input lies in the mean image; in its middle when left out.
    pub mean_file_offsets: Option<String>,
    /// Divided by, after `mean_values`; same form.
    pub scale_values: Option<String>,
    /// One divisor for every float input.
    pub scale: Option<f64>,
    /// Swap the first and the last of three channels, before `mean_values`.
    pub reverse_input_channels: bool,
    /// Fix shapes that are known now, so that the written model cannot be reshaped.
    pub static_shape: bool,
    /// `Name[key=value;key=value], ...`; names of extensions' rewrites are for [`Conversion`] alone.
    pub transform: Option<String>,
}

/// Does to the model what the options ask; on an error the model is unchanged.
pub fn apply(model: &mut Model, options: &ConversionOptions) -> Result<()> {
    if *options == ConversionOptions::default() {
        return Ok(());
    }
    exclude(options)?;
    let mut changed = model.clone();
    let inputs = cut(&mut changed, options)?;
    let layouts = layout::read(&changed, &inputs, options)?;
    if let Some(batch) = options.batch {
        inputs::set_batch(&mut changed, batch, &layouts).map_err(|e| e.at("option `--batch`"))?;
    }
    preprocess::apply(&mut changed, &inputs, &layouts, options)?;
    layout::apply(&mut changed, &layouts)?;
    if let Some(text) = &options.transform {
        transform::apply(&mut changed, text).map_err(|e| e.at("option `--transform`"))?;
    }
    changed.infer()?;
    if options.static_shape {
        shapes::fold_shape_paths(&mut changed)?;
    }
    *model = changed;
    Ok(())
}

/// An input of the model and what the user called it.
#[derive(Clone, Debug)]
pub(crate) struct NamedInput {
    /// As written in `--input`; empty when the user did not list inputs.
    name: String,
    parameter: NodeId,
    /// Whether it was put there by a cut inside the graph.
    cut: bool,
}

/// What a conversion keeps of a model, for the reader of the file; empty when that is everything. Mistakes are left to
/// `apply`, which knows the model.
fn wanted(options: &ConversionOptions) -> Vec<String> {
    let Some(Ok(outputs)) = options.output.as_deref().map(syntax::list) else { return vec![] };
    let inputs = [&options.input, &options.freeze_placeholder_with_value];
    let inputs = inputs.into_iter().flatten().flat_map(|text| inputs::names(text));
    outputs.into_iter().map(str::to_string).chain(inputs).collect()
}

// Cuts at outputs and inputs; gives the inputs that options without names mean, in their order.
fn cut(model: &mut Model, options: &ConversionOptions) -> Result<Vec<NamedInput>> {
    let items = inputs::read(model, options)?;
    let values = match &options.output {
        Some(text) => Some(outputs::read(model, text).map_err(|e| e.at("option `--output`"))?),
        None => None,
    };
    let mut needed = outputs::needed(model);
    needed.extend(take_cut_off(model));
    if let Some(values) = &values {
        outputs::keep_only(model, values)?;
    }
    let named = inputs::apply(model, &items).map_err(|e| e.at("option `--input`"))?;
    let listed: Vec<NodeId> = named.iter().map(|n| n.parameter).collect();
    if values.is_some() || inputs::cuts(&items) {
        outputs::drop_unneeded(model, &needed, &listed)?;
    }
    let idle = named.iter().find(|n| n.cut && model.users(n.parameter.into()).is_empty());
    if let Some(n) = idle {
        let outputs: Vec<String> = model.results().iter().map(|&r| model.result_name(r)).collect();
        let text = format!("`{}` does not lead to any output; the outputs are: {}", n.name, places::some_of(&outputs));
        return Err(Error::usage(text).at("option `--input`"));
    }
    model.infer()?;
    if named.is_empty() {
        let all = model.parameters().iter();
        return Ok(all.map(|&parameter| NamedInput { name: String::new(), parameter, cut: false }).collect());
    }
    Ok(named)
}

fn exclude(options: &ConversionOptions) -> Result<()> {
    let both = |a: bool, b: bool, text: &str| if a && b { Err(Error::usage(text)) } else { Ok(()) };
    both(
        options.batch.is_some(),
        options.input_shape.is_some(),
        "--batch and --input_shape both set shapes; write the batch into --input_shape",
    )?;
    both(
        options.mean_file.is_some(),
        options.mean_values.is_some(),
        "--mean_file and --mean_values both say the mean; give one of them",
    )
    .map_err(|e| e.with_code(17))?;
    both(
        options.mean_file.is_none(),
        options.mean_file_offsets.is_some(),
        "--mean_file_offsets says where to cut the image of --mean_file, which is not given",
    )?;
    both(
        options.scale.is_some(),
        options.scale_values.is_some(),
        "--scale and --scale_values both divide the inputs; give one of them",
    )
    .map_err(|e| e.with_code(17))?;
    both(
        options.layout.is_some(),
        options.source_layout.is_some() || options.target_layout.is_some(),
        "--layout already says what --source_layout and --target_layout say; give either --layout or the other two",
    )
}
