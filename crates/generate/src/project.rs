//! The files of a project: which there are and where, in both layouts. What is in them comes from `templates/`, filled in by
//! `language/` and `models/`.

use crate::answers::{Answers, Framework, Language, Layout, ShapeRule};
use crate::language::{self, Fragments};
use crate::models;
use crate::template::{Values, packed};
use crate::write::MANIFEST;
use crate::{camel, to_json};
use carafe_graph::Result;
use std::path::Path;

/// A file of a project.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Relative to the project, with `/`.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What is written, and what the last lines of the generator say about it.
#[derive(Clone, Debug)]
pub struct Project {
    /// Every file.
    pub files: Vec<File>,
    /// Lines for the user, `{dir}` standing for the project's folder.
    pub notes: Vec<String>,
}

/// Version of the engine that the project is for.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The file name of the library that a project builds.
pub fn library_name(crate_name: &str) -> String {
    format!("{}{crate_name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The project for some answers; `sdk` is the repository of Carafe, where that is known.
pub fn extension(answers: &Answers, sdk: Option<&Path>) -> Result<Project> {
    answers.check()?;
    let is_python = answers.language == Language::Python;
    if is_python {
        language::python::check(answers)?;
    }
    let paths = Paths::of(answers);
    let fragments = language::fragments(answers);
    let values = common(answers, &paths, &fragments, sdk);
    let mut out = Project { files: vec![], notes: notes(answers) };
    if is_python {
        language::python::write(answers, &values, &mut out)?;
    } else {
        code(answers, &paths, &values, &mut out)?;
        if let (Language::Rust, Some(_)) = (answers.language, sdk) {
            out.add(".cargo/config.toml", values.fill(packed("templates/rust/config.toml.in"))?);
        }
        kernels(answers, &paths, &values, &mut out)?;
        out.add("README.md", values.fill(packed("templates/common/README.md.in"))?);
        out.add(".github/workflows/extension.yml", values.fill(packed("templates/common/ci.yml.in"))?);
        out.add(".gitignore", values.fill(packed("templates/common/gitignore.in"))?);
    }
    let mut cases = vec![];
    for model in models::all(answers) {
        let path = format!("tests/models/{}", model.name);
        cases.push(models::case(answers, &model, &format!("models/{}", model.name)));
        out.files.push(File { path, bytes: model.bytes });
    }
    out.add("tests/cases.json", format!("{:#}\n", serde_json::Value::Array(cases)));
    out.add(MANIFEST, format!("{:#}\n", to_json(answers)));
    Ok(out)
}

impl Project {
    pub(crate) fn add(&mut self, path: &str, text: String) {
        self.files.push(File { path: path.to_string(), bytes: text.into_bytes() });
    }
}

/// Where parts lie, and how the main file names them.
pub(crate) struct Paths {
    layout: Layout,
    file: String,
    ending: &'static str,
    main_ending: &'static str,
}

impl Paths {
    fn of(answers: &Answers) -> Paths {
        let (ending, main_ending) = match answers.language {
            Language::Rust => ("rs", "rs"),
            Language::C => ("h", "c"),
            Language::Cpp => ("hpp", "cpp"),
            Language::Python => ("py", "py"),
        };
        Paths { layout: answers.layout, file: answers.file_name(), ending, main_ending }
    }
    fn main(&self) -> String {
        let name = if self.main_ending == "rs" { "lib" } else { "extension" };
        match self.layout {
            Layout::Crate => format!("src/{name}.{}", self.main_ending),
            Layout::Extgen => format!("{name}.{}", self.main_ending),
        }
    }
    fn op(&self) -> String {
        match self.layout {
            _ if self.ending == "py" => "extension.py".into(),
            Layout::Crate => format!("src/op.{}", self.ending),
            Layout::Extgen => format!("user_mo_extensions/ops/{}.{}", self.file, self.ending),
        }
    }
    fn kernel(&self) -> String {
        match self.layout {
            Layout::Crate => format!("src/kernel.{}", self.ending),
            Layout::Extgen => format!("user_ie_extensions/cpu/ext_{}.{}", self.file, self.ending),
        }
    }
    fn rule(&self, framework: Framework) -> String {
        match self.layout {
            Layout::Crate => format!("src/{framework}.{}", self.ending),
            Layout::Extgen => {
                format!("user_mo_extensions/front/{}/{}_ext.{}", folder(framework), self.file, self.ending)
            }
        }
    }
    fn cl(&self, device: &str, ending: &str) -> String {
        match self.layout {
            Layout::Crate => format!("kernels/{device}/{}.{ending}", self.file),
            Layout::Extgen => format!("user_ie_extensions/{device}/{}_kernel.{ending}", self.file),
        }
    }
}

// The old tool had `tf` for TensorFlow.
fn folder(framework: Framework) -> &'static str {
    if framework == Framework::TensorFlow { "tf" } else { framework.word() }
}

fn devices(answers: &Answers) -> Vec<&'static str> {
    [("gpu", answers.gpu), ("vpu", answers.vpu)].into_iter().filter(|d| d.1).map(|d| d.0).collect()
}

fn lines(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join("\n")
}

// What every template may name.
fn common(answers: &Answers, paths: &Paths, fragments: &Fragments, sdk: Option<&Path>) -> Values {
    let doc = match answers.doc.trim() {
        "" => format!("EDIT: what {} is.", answers.name),
        text => text.to_string(),
    };
    let crate_name = answers.file_name();
    let sdk = sdk.map(|p| p.display().to_string().replace('\\', "/")).unwrap_or_default();
    let title = match answers.language {
        Language::Rust => "Rust",
        Language::C => "C",
        Language::Cpp => "C++",
        Language::Python => "Python",
    };
    let library = match answers.language {
        Language::Rust => format!("target/debug/{}", library_name(&crate_name)),
        _ => format!("build/{}", library_name(&crate_name)),
    };
    let packages = if answers.language == Language::Rust { "pocl-opencl-icd" } else { "cmake gcc g++ pocl-opencl-icd" };
    let (major, minor) = (VERSION.split('.').next().unwrap_or("0"), VERSION.split('.').nth(1).unwrap_or("0"));
    let values = Values::default()
        .text("op", &answers.name)
        .text("opset", &answers.opset)
        .text("type", camel(&answers.name))
        .text("file", &crate_name)
        .text("crate", &crate_name)
        .text("guard", crate_name.to_ascii_uppercase())
        .text("doc", doc)
        .text("version", VERSION)
        .text("version_short", format!("{major}.{minor}"))
        .text("sdk", &sdk)
        .text("sdk_link", if sdk.is_empty() { "https://crates.io/crates/carafe".into() } else { sdk.clone() })
        .text("language_title", title)
        .text("library", library)
        .text("packages", packages)
        .text("manifest", MANIFEST)
        .text("main", paths.main())
        .text("lib_path", paths.main())
        .text("cmake_language", if answers.language == Language::C { "C" } else { "CXX" })
        .text("n_inputs", answers.inputs.len().to_string())
        .text("n_outputs", answers.outputs.len().to_string())
        .text("file_rows", file_rows(answers, paths))
        .text("attribute_rows", attribute_rows(answers))
        .flag("rust", answers.language == Language::Rust)
        .flag("elementwise", answers.elementwise)
        .flag("attributes", !answers.attributes.is_empty())
        .flag("internal", answers.attributes.iter().any(|a| a.internal))
        .flag("rules", !answers.sources.is_empty())
        .flag("cpu", answers.cpu)
        .flag("cl", answers.gpu || answers.vpu);
    fragments.add_to(values)
}

fn file_rows(answers: &Answers, paths: &Paths) -> String {
    let mut rows = vec![format!("| `{}` | attributes, shapes, and the operation itself (`eval`) |", paths.op())];
    for s in &answers.sources {
        let what = format!("how a `{}` of {} becomes it", s.op_type, s.framework.title());
        rows.push(format!("| `{}` | {what} |", paths.rule(s.framework)));
    }
    if answers.cpu {
        rows.push(format!("| `{}` | the kernel for CPU |", paths.kernel()));
    }
    for device in devices(answers) {
        let row = |ending: &str, what: &str| {
            format!("| `{}` | {what} for {} |", paths.cl(device, ending), device.to_ascii_uppercase())
        };
        rows.push(row("cl", "the kernel in OpenCL C"));
        rows.push(row("xml", "its arguments and sizes"));
    }
    rows.push(format!("| `{}` | the list of all that the library brings |", paths.main()));
    lines(rows)
}

fn attribute_rows(answers: &Answers) -> String {
    if answers.attributes.is_empty() {
        return "None.".into();
    }
    let mut rows = vec!["| name | type | default |".to_string(), "|---|---|---|".to_string()];
    for a in &answers.attributes {
        let default = a.default.as_ref().map_or("required".into(), |d| format!("`{d}`"));
        rows.push(format!("| `{}` | {} | {default} |", a.name, a.kind));
    }
    lines(rows)
}

// Everything that is compiled.
fn code(answers: &Answers, paths: &Paths, values: &Values, out: &mut Project) -> Result<()> {
    let Some(templates) = language::templates(answers.language) else { return Ok(()) };
    let embedded = |device: &str, ending: &str| format!("{}_{device}_{ending}", answers.file_name());
    let up = if answers.layout == Layout::Crate { "../" } else { "" };
    let main = match answers.language {
        Language::Rust => {
            let module = |name: &str, path: String| match answers.layout {
                Layout::Crate => format!("mod {name};"),
                Layout::Extgen => format!("#[path = \"{path}\"]\nmod {name};"),
            };
            let mut modules = vec![];
            modules.extend(answers.cpu.then(|| module("kernel", paths.kernel())));
            modules.push(module("op", paths.op()));
            modules.extend(answers.sources.iter().map(|s| module(s.framework.word(), paths.rule(s.framework))));
            carafe_graph::sort_by_key(&mut modules, |m| m.split_once("mod ").map(|(_, n)| n.to_string()));
            let rules: Vec<String> = answers.sources.iter().map(|s| format!("{}::rule()", s.framework)).collect();
            let cl = devices(answers).into_iter().map(|d| {
                let text = |ending: &str| format!("include_str!(\"{up}{}\")", paths.cl(d, ending));
                format!("r.cl_kernel(\"{}\", {}, {});", d.to_ascii_uppercase(), text("xml"), text("cl"))
            });
            values.clone().text("modules", lines(modules)).text("rules", rules.join(", ")).text("cl_kernels", lines(cl))
        }
        Language::C | Language::Cpp | Language::Python => {
            let is_c = answers.language == Language::C;
            let file = answers.file_name();
            let mut includes = vec![format!("#include \"{}\"", paths.op())];
            includes.extend(answers.cpu.then(|| format!("#include \"{}\"", paths.kernel())));
            includes.extend(answers.sources.iter().map(|s| format!("#include \"{}\"", paths.rule(s.framework))));
            for d in devices(answers) {
                includes.extend(["xml", "cl"].map(|e| format!("#include \"{}.inc\"", embedded(d, e))));
            }
            let rules = answers.sources.iter().map(|s| match is_c {
                true => format!("if (status == CARAFE_OK) status = {file}_register_{}(r);", s.framework),
                false => format!("register_{}(r);", s.framework),
            });
            let cl = devices(answers).into_iter().map(|d| {
                let (device, xml, cl) = (d.to_ascii_uppercase(), embedded(d, "xml"), embedded(d, "cl"));
                match is_c {
                    true => format!(
                        "CarafeClKernel {d} = {{sizeof {d}, CARAFE_ABI_MAJOR, 0, \"{device}\", {xml}, {cl}}};\n\
                         if (status == CARAFE_OK) status = r->fns->add_cl_kernel(r, &{d});"
                    ),
                    false => format!("r.cl_kernel(\"{device}\", {xml}, {cl});"),
                }
            });
            let embeds = devices(answers)
                .into_iter()
                .flat_map(|d| ["xml", "cl"].map(|e| format!("embed({} \"{}\")", embedded(d, e), paths.cl(d, e))));
            let values = values
                .clone()
                .text("includes", lines(includes))
                .text("register_rules", lines(rules))
                .text("register_cl", lines(cl))
                .text("embeds", lines(embeds));
            out.add("CMakeLists.txt", values.fill(packed("templates/c/CMakeLists.txt.in"))?);
            values
        }
    };
    if answers.language == Language::Rust {
        out.add("Cargo.toml", values.fill(packed("templates/rust/Cargo.toml.in"))?);
    }
    out.add(&paths.main(), main.fill(templates.main)?);
    out.add(&paths.op(), values.fill(templates.op)?);
    if answers.cpu {
        out.add(&paths.kernel(), values.fill(templates.kernel)?);
    }
    for source in &answers.sources {
        let values = language::rule_values(answers, source, values.clone());
        out.add(&paths.rule(source.framework), values.fill(templates.rule)?);
    }
    Ok(())
}

fn kernels(answers: &Answers, paths: &Paths, values: &Values, out: &mut Project) -> Result<()> {
    let values = language::opencl_values(answers, values.clone());
    for device in devices(answers) {
        let cl = paths.cl(device, "cl");
        let values = values.clone().text("cl_file", cl.rsplit('/').next().unwrap_or_default());
        let (source, xml) = match device {
            "gpu" => (packed("templates/kernels/gpu.cl.in"), packed("templates/kernels/gpu.xml.in")),
            _ => (packed("templates/kernels/vpu.cl.in"), packed("templates/kernels/vpu.xml.in")),
        };
        out.add(&cl, values.fill(source)?);
        out.add(&paths.cl(device, "xml"), values.fill(xml)?);
    }
    Ok(())
}

// The last lines of the old tool, in the layout that has its folders; what to do next in both.
fn notes(answers: &Answers) -> Vec<String> {
    let mut out = vec![];
    if answers.layout == Layout::Extgen {
        for s in &answers.sources {
            let (title, folder) = (s.framework.title(), folder(s.framework));
            out.push(format!(
                "Stub file for {title} Model Optimizer extractor is in {{dir}}/user_mo_extensions/front/{folder} folder"
            ));
        }
        out.push("Stub file for Model Optimizer operation is in {dir}/user_mo_extensions/ops folder".into());
        for (device, wanted) in [("cpu", answers.cpu), ("gpu", answers.gpu), ("vpu", answers.vpu)] {
            if wanted {
                let name = device.to_ascii_uppercase();
                out.push(format!("Stub files for the Inference Engine {name} extension are in {{dir}}/user_ie_extensions/{device} folder"));
            }
        }
    }
    let paths = Paths::of(answers);
    let what = match (answers.elementwise, answers.language) {
        (true, Language::C) => format!("`{}_apply`", answers.file_name()),
        (true, _) => "`apply`".into(),
        (false, Language::C) => format!("`{}_compute`", answers.file_name()),
        (false, _) => "`compute`".into(),
    };
    let shapes = if answers.shape == ShapeRule::Custom { " and the shapes" } else { "" };
    out.push(format!(
        "1. edit {what}{shapes} in {{dir}}/{}, and what must come out in {{dir}}/tests/cases.json",
        paths.op()
    ));
    out.push("2. carafe extension test {dir}".into());
    out
}
