//! The longer texts behind error codes, one table: `carafe explain` prints an entry, `docs/faq.md` is all of them. Numbers up to 199
//! are those of the frequently asked questions of the Model Optimizer, so that a number found in an old log still helps.

use std::fmt::Write;

/// One entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub number: u16,
    /// A word to ask by.
    pub word: &'static str,
    pub question: &'static str,
    pub answer: &'static str,
}

impl Entry {
    /// Its code, `E0024`.
    pub fn code(&self) -> String {
        format!("E{:04}", self.number)
    }
    /// The entry as a terminal shows it.
    pub fn text(&self) -> String {
        format!("{} {}: {}\n\n{}\n", self.code(), self.word, self.question, self.answer)
    }
}

/// Finds an entry by `E0024`, `24`, `#24` or its word, in any case.
pub fn find(text: &str) -> Option<&'static Entry> {
    let text = text.trim();
    let number = text.trim_start_matches(['E', 'e', '#', '0']).parse::<u16>().ok();
    ENTRIES.iter().find(|e| number == Some(e.number) || e.word.eq_ignore_ascii_case(text))
}

/// The page of all entries.
pub fn page() -> String {
    let mut out = String::from(
        "# Questions that errors point to\n\n`carafe explain CODE` prints an entry. Numbers below 200 are those of the Model Optimizer's \
         own list. This page is printed from `crates/generate/src/faq.rs`.\n",
    );
    for e in ENTRIES {
        let _ = write!(out, "\n## {} {}\n\n**{}**\n\n{}\n", e.code(), e.word, e.question, e.answer);
    }
    out
}

/// All entries, by number.
pub const ENTRIES: &[Entry] = &[
    Entry {
        number: 1,
        word: "PROTO-FIELD",
        question: "The current caffe.proto does not contain a field?",
        answer: "The model was made by a fork of Caffe whose .proto has more fields. Give that file: `--caffe_parser_path \
                 caffe.proto`. A field that no rule needs is a warning only.",
    },
    Entry {
        number: 4,
        word: "MEAN-FILE",
        question: "What must a mean file look like?",
        answer: "One `.binaryproto` blob, as Caffe's compute_image_mean writes it, with as many channels as the input and at least its \
                 size. `--mean_file_offsets (x,y)` says which part counts; the middle does otherwise.",
    },
    Entry {
        number: 7,
        word: "NO-LAYERS",
        question: "The topology has neither `layer` nor `layers`?",
        answer: "The file given as a prototxt describes no net: it may be a solver. Give the deploy prototxt; its weights are the \
                 .caffemodel.",
    },
    Entry {
        number: 11,
        word: "PROTOTXT",
        question: "A prototxt cannot be read?",
        answer: "The message says line and column. Often a brace is missing, or the file is binary: a .caffemodel holds the topology too \
                 and can be given by itself.",
    },
    Entry {
        number: 15,
        word: "UNKNOWN-FORMAT",
        question: "The framework cannot be detected?",
        answer: "The format is found out from the content, not from the name. Make sure that the file is whole, and not a pointer of Git LFS \
                 or a page of HTML. `carafe convert --framework NAME` tells what it must be and gives the error of that reader.",
    },
    Entry {
        number: 16,
        word: "INPUT-SHAPE",
        question: "The shape of an input is not known?",
        answer: "The file does not say it, and something needs it. Give it: `--shape 'NAME[1,3,224,224]'` with `run` and `query`, \
                 `--input_shape` with `convert`. `carafe inspect MODEL` lists the inputs.",
    },
    Entry {
        number: 17,
        word: "MEAN-AND-SCALE",
        question: "Which mean and scale options exclude each other?",
        answer: "`--mean_file` and `--mean_values` say the same thing, and so do `--scale` and `--scale_values`. Give one of each pair.",
    },
    Entry {
        number: 22,
        word: "OUTPUT-DIR",
        question: "The output folder cannot be written?",
        answer: "It must exist or be creatable, and be a folder. A failed write leaves no half file behind.",
    },
    Entry {
        number: 24,
        word: "UNSUPPORTED-OP",
        question: "Nodes cannot be translated: what now?",
        answer: "The model has operations that nobody here knows. In order of effort:\n\n\
                 1. Does the message name a near operation, or another domain? A mapping is one line then: `Mapping::new(\"opset1::Clamp\")\
                 .framework(\"onnx\").from_type(\"MyClip\")`.\n\
                 2. Is the node needed? `--output NAME` cuts the model before it.\n\
                 3. Write it: `carafe extension new --from-model MODEL` makes a project with the operation, its rule, a kernel if you want one, \
                 and a test; names, attributes and ports come from the node. Edit the line that says EDIT, then `carafe extension test DIR` \
                 and `carafe run MODEL --extension LIBRARY`. `--language c` or `cpp` if you like those better.\n\
                 4. Is it a layer of Caffe for another program? `-k CustomLayersMapping.xml` passes it on into the IR.",
    },
    Entry {
        number: 26,
        word: "CUTTING",
        question: "How are a model's inputs and outputs cut?",
        answer: "`--input` and `--output` name nodes or tensors, `0:conv` is input port 0 of node conv, `conv:0` its output port 0. A name \
                 that does not exist is an error with the nearest ones; what no output needs any more is dropped.",
    },
    Entry {
        number: 37,
        word: "SHAPE-INFERENCE",
        question: "Shapes cannot be inferred?",
        answer: "The message names the node, what it expected and what it found. Usually an input has another shape than the model was made \
                 for: give the right one (E0016). For an operation of yours, `carafe extension test` compares `infer` with what `eval` gives.",
    },
    Entry {
        number: 42,
        word: "TENSORFLOW-LOAD",
        question: "A TensorFlow model cannot be loaded?",
        answer: "A graph (.pb, .pbtxt), the folder of a SavedModel, or a .meta beside its checkpoint can be given. Weights that are not \
                 frozen need the checkpoint: `--input_checkpoint`.",
    },
    Entry {
        number: 45,
        word: "CUSTOM-LAYER",
        question: "How is a custom layer registered?",
        answer: "As an extension: see E0024. The Model Optimizer's extractor is a rule here, its operation class an operation, and one library \
                 holds both, with the kernels.",
    },
    Entry {
        number: 47,
        word: "NAME-TWICE",
        question: "Two operations have one name?",
        answer: "The latest extension stands before earlier ones and before the built-in operation. `carafe query --explain` shows which one \
                 served a node.",
    },
    Entry {
        number: 48,
        word: "MXNET-PARAMS",
        question: "How must the files of an MXNet model be named?",
        answer: "`NAME-symbol.json` and `NAME-0000.params`, the number being the epoch. `--input_symbol` names a topology that lies elsewhere.",
    },
    Entry {
        number: 65,
        word: "TRANSFORMATIONS-CONFIG",
        question: "What must a file of sub-graph replacements look like?",
        answer: "A JSON list of objects with `id` and `match_kind`: `points` with `instances: {start_points, end_points}`, `scope` with \
                 `instances: [pattern]` and `inputs` and `outputs`, or `general`. `--tensorflow_custom_operations_config_update` fills in the \
                 inputs and outputs of scopes. An entry that matches nothing is a warning.",
    },
    Entry {
        number: 79,
        word: "NO-INPUTS",
        question: "A Caffe net has no inputs?",
        answer: "A training prototxt reads from a database. Use the deploy prototxt, or replace the data layer by one of type `Input`.",
    },
    Entry {
        number: 87,
        word: "PYTHON-LAYER",
        question: "How is a Python layer of Caffe supported?",
        answer: "By a rule for `module.layer`, the two names in its `python_param`. `carafe extension new --caffe-ext --type module.layer` writes \
                 one; the values of `param_str` are attributes.",
    },
    Entry {
        number: 89,
        word: "KALDI",
        question: "A Kaldi model cannot be read?",
        answer: "nnet1, nnet2 and nnet3 are read, in text and binary, with or without the transition model. A counts file goes to `--counts`.",
    },
    Entry {
        number: 97,
        word: "CYCLE",
        question: "The graph has a cycle?",
        answer: "Values of a model must not depend on themselves. Loops of TensorFlow and memories of Kaldi are no cycles; the message names the \
                 nodes of this one.",
    },
    Entry {
        number: 103,
        word: "CAFFEMODEL",
        question: "A .caffemodel cannot be parsed?",
        answer: "It is cut off, or of a fork with another .proto (E0001). Its size should be that of the weights.",
    },
    Entry {
        number: 201,
        word: "MISSING-EXTENSION",
        question: "An IR has an operation of an unknown opset?",
        answer: "The IR was written with an extension that is not loaded. Its metadata says which one (`carafe inspect MODEL`); give it with \
                 `--extension LIBRARY`, or list it in `CARAFE_EXTENSIONS`. Without the library: `carafe extension new --from-model MODEL`.",
    },
    Entry {
        number: 202,
        word: "EXTENSION-LOAD",
        question: "A library cannot be loaded?",
        answer: "The message tells apart: there is no such file; a library that it needs is missing; it was built for another ABI; it has no \
                 entry point. `carafe extension build DIR` builds a project against the SDK of this command.",
    },
    Entry {
        number: 203,
        word: "EXTENSION-TEST",
        question: "`carafe extension test` fails: what do the rows mean?",
        answer: "cases: a model of `tests/cases.json` gave something else than the file says; edit the file together with the operation.\n\
                 kernel: a device's kernel and `eval` differ; the row names the shape, type and element.\n\
                 edge values: the same with NaN, infinities, zeros of both signs and the smallest and largest numbers.\n\
                 shapes: `infer` promised something else than `eval` gave, also with unknown sizes.\n\
                 round trip: written to an IR and read back it is another operation: an attribute gets lost.\n\
                 threads: requests at once give something else than one after another: shared memory is written.\n\
                 memory: each inference leaves bytes behind.",
    },
    Entry {
        number: 204,
        word: "SDK",
        question: "Where is the SDK that extensions are built with?",
        answer: "It is the repository of Carafe: headers in `include/`, crates in `crates/`. `--sdk DIR` names it, else `CARAFE_SDK`, else the \
                 repository that the command was built from is taken.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_found_by_code_number_and_word() {
        assert!(ENTRIES.is_sorted_by(|a, b| a.number < b.number));
        for text in ["E0024", "e24", "24", "#24", "unsupported-op"] {
            assert_eq!(find(text).map(|e| e.number), Some(24), "{text}");
        }
        assert!(find("E9999").is_none() && find("nothing").is_none() && find("").is_none());
    }

    #[test]
    fn the_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/faq.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == page(),
            "BLESS=1 cargo test -p carafe-generate writes docs/faq.md again"
        );
    }

    #[test]
    fn every_code_in_the_sources_has_an_entry() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut folders = vec![crates.to_path_buf()];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for part in text.split(".with_code(").skip(1) {
                        let Ok(number) = part.split(')').next().unwrap_or_default().parse::<u16>() else { continue };
                        assert!(find(&number.to_string()).is_some(), "{}: {number}", path.display());
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 0);
    }
}
