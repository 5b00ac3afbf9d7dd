//! Writes some cases as exported models of CPU, TEMPLATE and HETERO, as the fuzz target `blobs` takes them: a byte for the device,
//! then what stands behind the header of the file.
//!
//! ```text
//! cargo run -p carafe-testkit --example cases_as_blobs -- FOLDER
//! ```

use carafe::{Properties, VERSION};
use carafe_device::read_blob;
use carafe_testkit::CaseFile;
use carafe_testkit::runner::{InputsAs, build};
use std::path::Path;

/// One in so many cases, which are about all operations in turn.
const EVERY: usize = 25;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: cases_as_blobs FOLDER")?;
    let core = carafe::core();
    let mut paths: Vec<_> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "case"));
    paths.sort();
    let mut written = 0;
    for path in paths.iter().step_by(EVERY) {
        let file = CaseFile::read(path)?;
        for case in file.cases.iter().take(2) {
            // Cases about errors have no model.
            let Ok(model) = build(case, InputsAs::Parameters) else { continue };
            for (kind, (name, device)) in
                [("CPU", "CPU"), ("TEMPLATE", "TEMPLATE"), ("HETERO", "HETERO:TEMPLATE,CPU")].into_iter().enumerate()
            {
                let mut blob = vec![];
                core.compile_model(&model, device, &Properties::new())?.export(&mut blob)?;
                let (_, payload) = read_blob(&blob, name, VERSION)?;
                let seed = [&[kind as u8], &blob[payload]].concat();
                std::fs::write(Path::new(&folder).join(format!("{}-{}-{name}", file.name, case.line)), seed)?;
                written += 1;
            }
        }
    }
    println!("{written} exported models in {folder}");
    Ok(())
}
