//! `carafe extension new` and the old spelling, `carafe extgen`: answers from questions, JSON, flags and models, and the project
//! that follows from them.

use super::build;
use super::print;
use crate::extension_args::{ExtensionNewArgs, ExtgenArgs, Parts, PluginAction, SdkArgs};
use carafe::{AttrValue, Core, Error, FrameworkNode, Model, ReadRequest, Result};
use carafe_generate::{
    Answers, Attribute, Conversation, Framework, Kind, Layout, Literal, PluginAnswers, PluginLanguage, Project,
    ShapeRule, Source,
};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// `carafe extension new`.
pub(crate) fn new(core: &Core, args: &ExtensionNewArgs) -> Result<()> {
    let mut answers = Answers::new("");
    if let Some(model) = &args.from_model {
        from_model(core, model, args.op.as_deref(), &mut answers)?;
    }
    if let Some(path) = &args.config {
        read_config(path, &mut answers)?;
    }
    fill(args, &mut answers)?;
    if args.interactive || answers.name.is_empty() {
        if !args.interactive && !std::io::stdin().is_terminal() {
            return Err(Error::usage(
                "the operation needs a name: `carafe extension new NAME`, --config FILE.json or --from-model MODEL; questions \
                 are asked on a terminal, or with --interactive",
            ));
        }
        let chosen = any(&args.parts);
        ask(&mut answers, chosen)?;
    }
    let dir = args.output_dir.clone().unwrap_or_else(|| PathBuf::from(answers.file_name()));
    finish(&answers, &args.sdk, &dir, args.force)
}

/// `carafe extgen`.
pub(crate) fn extgen(args: &ExtgenArgs) -> Result<()> {
    let mut answers = Answers { layout: Layout::Extgen, ..Answers::new("") };
    if let Some(language) = &args.language {
        answers.language = language.parse()?;
    }
    if args.what == "new" {
        if !any(&args.parts) {
            return Err(Error::usage(
                "nothing to generate: give at least one of --mo-caffe-ext, --mo-mxnet-ext, --mo-tf-ext, --mo-op, --ie-cpu-ext, --ie-gpu-ext",
            ));
        }
        parts(&args.parts, &mut answers, None, None);
        print(&format!("Generating:\n{}\n", listed(&answers)))?;
        ask(&mut answers, true)?;
    } else {
        read_config(Path::new(&args.what), &mut answers)?;
        parts(&args.parts, &mut answers, None, None);
    }
    finish(&answers, &args.sdk, &args.output_dir, args.force)
}

/// `carafe plugin new`.
pub(crate) fn plugin(action: &PluginAction) -> Result<()> {
    let PluginAction::New { name, language, output_dir, force, sdk } = action;
    let language = match language.to_ascii_lowercase().as_str() {
        "rust" | "rs" => PluginLanguage::Rust,
        "c" => PluginLanguage::C,
        other => return Err(Error::usage(format!("`{other}` is no language of plugins; there are rust and c"))),
    };
    let answers = PluginAnswers { name: name.clone(), language };
    let sdk = build::sdk(sdk).ok();
    let project = carafe_generate::plugin(&answers, sdk.as_deref())?;
    let dir = output_dir.clone().unwrap_or_else(|| PathBuf::from(carafe_generate::snake(name)));
    put(&project, &dir, *force)
}

fn ask(answers: &mut Answers, chosen: bool) -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    carafe_generate::ask(&mut Conversation { input: &mut input, output: &mut output }, answers, chosen)
}

fn finish(answers: &Answers, sdk: &SdkArgs, dir: &Path, force: bool) -> Result<()> {
    answers.check()?;
    // The project can be written without an SDK, and built where there is one.
    let sdk = build::sdk(sdk).ok();
    put(&carafe_generate::extension(answers, sdk.as_deref())?, dir, force)
}

fn put(project: &Project, dir: &Path, force: bool) -> Result<()> {
    let done = carafe_generate::write(project, dir, force)?;
    let mut out = format!("{}: {} files written", dir.display(), done.written.len());
    if !done.same.is_empty() {
        out.push_str(&format!(", {} are as they should be", done.same.len()));
    }
    out.push('\n');
    let dir = dir.display().to_string();
    for note in &project.notes {
        out.push_str(&note.replace("{dir}", &dir));
        out.push('\n');
    }
    print(&out)
}

fn read_config(path: &Path, answers: &mut Answers) -> Result<()> {
    let text =
        carafe::files::read_text(path).map_err(|e| Error::io(format!("cannot read `{}`", path.display()), &e))?;
    carafe_generate::from_json(&text, answers).map_err(|e| e.at(format!("configuration `{}`", path.display())))
}

fn any(p: &Parts) -> bool {
    !wanted(p).is_empty() || p.op_ext || p.cpu_ext || p.gpu_ext || p.vpu_ext
}

fn wanted(p: &Parts) -> Vec<Framework> {
    let all = [
        (p.onnx_ext, Framework::Onnx),
        (p.tf_ext, Framework::TensorFlow),
        (p.tflite_ext, Framework::TfLite),
        (p.caffe_ext, Framework::Caffe),
        (p.mxnet_ext, Framework::Mxnet),
        (p.kaldi_ext, Framework::Kaldi),
        (p.paddle_ext, Framework::Paddle),
    ];
    all.into_iter().filter(|f| f.0).map(|f| f.1).collect()
}

fn parts(p: &Parts, answers: &mut Answers, op_type: Option<&str>, domain: Option<&str>) {
    for framework in wanted(p) {
        let before = answers.source(framework).cloned();
        let mut source = before.unwrap_or_else(|| Source::new(framework, answers.name.clone()));
        if let Some(ty) = op_type {
            source.op_type = ty.to_string();
        }
        if let (Some(domain), Framework::Onnx | Framework::Mxnet) = (domain, framework) {
            source.domain = Some(domain.to_string());
        }
        answers.read_from(source);
    }
    answers.cpu |= p.cpu_ext;
    answers.gpu |= p.gpu_ext;
    answers.vpu |= p.vpu_ext;
}

fn listed(answers: &Answers) -> String {
    let mut out: Vec<String> = answers.sources.iter().map(|s| format!("  {} extractor", s.framework.title())).collect();
    out.push("  operation".into());
    for (name, wanted) in [("CPU", answers.cpu), ("GPU", answers.gpu), ("VPU", answers.vpu)] {
        out.extend(wanted.then(|| format!("  {name} extension")));
    }
    out.join("\n")
}

// Flags stand over everything else.
fn fill(args: &ExtensionNewArgs, answers: &mut Answers) -> Result<()> {
    if let Some(name) = &args.name {
        answers.name = name.clone();
    }
    if let Some(doc) = &args.doc {
        answers.doc = doc.clone();
    }
    if let Some(opset) = &args.opset {
        answers.opset = opset.clone();
    }
    if let Some(language) = &args.language {
        answers.language = language.parse()?;
    }
    if let Some(layout) = &args.layout {
        answers.layout = layout.parse()?;
    }
    for text in &args.attributes {
        let new = Attribute::parse(text)?;
        answers.attributes.retain(|a| a.name != new.name);
        answers.attributes.push(new);
    }
    if !args.inputs.is_empty() {
        answers.inputs = args.inputs.clone();
    }
    if !args.outputs.is_empty() {
        answers.outputs = args.outputs.clone();
    }
    if args.changes_shape {
        answers.shape = ShapeRule::Custom;
    }
    if args.whole || args.changes_shape || (answers.inputs.len(), answers.outputs.len()) != (1, 1) {
        answers.elementwise = false;
    }
    parts(&args.parts, answers, args.op_type.as_deref(), args.domain.as_deref());
    Ok(())
}

// Names, attributes and ports of a node that nobody knows.
fn from_model(core: &Core, path: &Path, wanted: Option<&str>, answers: &mut Answers) -> Result<()> {
    let request = ReadRequest { keep_unknown: true, ..ReadRequest::new(path) };
    let model = core.read(&request)?;
    let format = core.format_of(path)?;
    let unknown = unknown_nodes(&model);
    let mut types: Vec<&str> = unknown.iter().map(|(_, n, _)| n.type_name.as_str()).collect();
    types.sort_unstable();
    types.dedup();
    let found = unknown.iter().find(|(_, n, _)| wanted.is_none_or(|w| w == n.type_name));
    let Some((_, node, n_inputs)) = found else {
        let what = match (wanted, types.is_empty()) {
            (_, true) => {
                "every operation of it is known; `carafe extension new NAME` writes one without a model".to_string()
            }
            (Some(w), false) => format!("no node of type `{w}` is unknown; unknown are {}", types.join(", ")),
            (None, false) => "no node is unknown".to_string(),
        };
        return Err(Error::usage(what).at(format!("model `{}`", path.display())));
    };
    answers.name = node.type_name.clone();
    let framework = framework_of(format);
    let own = matches!(
        node.opset.as_str(),
        "" | "caffe" | "tensorflow" | "mxnet" | "kaldi" | "paddle" | "CUSTOM" | "ai.onnx" | "onnx"
    );
    if let Some(f) = framework {
        let domain = (!own).then(|| node.opset.clone());
        answers.read_from(Source { framework: f, op_type: node.type_name.clone(), domain });
    } else {
        // An IR: the opset is that of the layer.
        answers.opset = node.opset.clone();
    }
    for (name, value) in node.attrs.iter() {
        let is_data = matches!(value, AttrValue::Str(s) | AttrValue::Text(s) if s.starts_with('<'));
        if let (Some(default), false) = (literal(value), is_data) {
            answers
                .attributes
                .push(Attribute { default: Some(default.clone()), ..Attribute::new(name, default.kind()) });
        }
    }
    answers.inputs = ports("input", "data", (*n_inputs).max(1));
    answers.outputs = ports("output", "output", node.outputs.len().max(1));
    answers.elementwise = (answers.inputs.len(), answers.outputs.len()) == (1, 1);
    // Nodes of other types stay unknown: say so.
    let others: Vec<&str> = types.into_iter().filter(|t| *t != node.type_name).collect();
    if !others.is_empty() {
        eprintln!(
            "carafe: `{}` of {} unknown operations; --op chooses another: {}",
            node.type_name,
            others.len() + 1,
            others.join(", ")
        );
    }
    Ok(())
}

fn unknown_nodes(model: &Model) -> Vec<(String, FrameworkNode, usize)> {
    let one = |n: &carafe::Node| Some((n.name().to_string(), n.op().get::<FrameworkNode>()?.clone(), n.inputs().len()));
    model.nodes().filter_map(|(_, n)| one(n)).collect()
}

fn framework_of(format: &str) -> Option<Framework> {
    let word: String = format.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    match word.as_str() {
        "tensorflowlite" => Some(Framework::TfLite),
        other => other.parse().ok(),
    }
}

fn ports(many: &str, one: &str, n: usize) -> Vec<String> {
    if n == 1 { vec![one.to_string()] } else { (0..n).map(|i| format!("{many}{i}")).collect() }
}

// What has no such form (tensors, sub-graphs) is left out.
fn literal(value: &AttrValue) -> Option<Literal> {
    Some(match value {
        AttrValue::Bool(b) => Literal::Bool(*b),
        AttrValue::Int(i) => Literal::Int(*i),
        AttrValue::Float(x) if x.is_finite() => Literal::Float(f64::from(*x as f32).to_string().parse().unwrap_or(*x)),
        AttrValue::Str(s) if is_plain(s) => Literal::Str(s.clone()),
        AttrValue::Ints(v) => Literal::Ints(v.clone()),
        AttrValue::Floats(v) if v.iter().all(|x| x.is_finite()) => Literal::Floats(v.clone()),
        AttrValue::Strs(v) if v.iter().all(|s| is_plain(s)) => Literal::Strs(v.clone()),
        AttrValue::Type(t) => Literal::Str(t.name().to_string()),
        // An IR has texts alone.
        AttrValue::Text(s) if is_plain(s) => guess(s),
        _ => return None,
    })
}

fn is_plain(s: &str) -> bool {
    !s.chars().any(|c| c.is_control() || "\"\\<>&%*".contains(c))
}

fn guess(text: &str) -> Literal {
    let kinds =
        if text.contains(',') { [Kind::Ints, Kind::Floats, Kind::Strs] } else { [Kind::Int, Kind::Float, Kind::Str] };
    let boolean = ["true", "false"].contains(&text).then(|| Literal::Bool(text == "true"));
    boolean
        .or_else(|| kinds.into_iter().find_map(|k| Literal::parse(k, text).ok()))
        .unwrap_or(Literal::Str(text.into()))
}
