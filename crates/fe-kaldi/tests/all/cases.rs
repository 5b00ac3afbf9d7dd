//! Every case under `fixtures` gives what it gives by definition when its utterance comes frame by frame: on TEMPLATE out of the
//! text, on CPU out of the binary form, and converted, written as IR and read again. `scripts/fixtures/kaldi.py` writes them.

use crate::common::{Case, cases, compile};
use carafe::convert::Conversion;
use carafe::{Core, ReadRequest, SharedBytes};

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(#[test]
        fn $family() {
            check(stringify!($family));
        })*
    };
}

families! {
    descriptors,
    nnet1,
    nnet2,
    nnet3,
    recurrent,
    statistics,
}

fn check(family: &str) {
    let (core, all) = (carafe::core(), cases(family));
    // Numbers are compared strictly, also where another type is faster.
    core.set_property("CPU", &carafe::Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    let mut failures = vec![];
    for case in &all {
        for (path, run) in PATHS {
            if let Err(e) = run(&core, case) {
                failures.push(format!("{} ({path}): {e}", case.name));
            }
        }
    }
    assert!(
        !all.is_empty() && failures.is_empty(),
        "{} failures of {} cases:\n{}",
        failures.len(),
        all.len(),
        failures.join("\n")
    );
}

type Run = fn(&Core, &Case) -> Result<(), String>;

const PATHS: &[(&str, Run)] = &[
    ("TEMPLATE, text", |core, case| {
        let model = core.read(&ReadRequest::from_bytes(&case.text)).map_err(|e| e.to_string())?;
        case.run(&compile(core, &model, "TEMPLATE")?)
    }),
    ("CPU, binary", |core, case| {
        let model = core.read(&ReadRequest::from_bytes(&case.binary)).map_err(|e| e.to_string())?;
        case.run(&compile(core, &model, "CPU")?)
    }),
    ("IR", |core, case| {
        let model = Conversion::new(ReadRequest::from_bytes(&case.binary)).run(core).map_err(|e| e.to_string())?.model;
        let written = carafe::ir::write_to(&model, &carafe::ir::WriteOptions::default());
        let (text, weights) = written.map_err(|e| e.to_string())?;
        let text = SharedBytes::from_vec(text.into());
        let model = core.read_model_from(text, Some(SharedBytes::from_vec(weights))).map_err(|e| e.to_string())?;
        case.run(&compile(core, &model, "CPU")?)
    }),
];
