//! Writes every case as an IR, with its values as constants: seeds for fuzzing, and models to compare with another runtime.
//!
//! ```text
//! cargo run -p carafe-testkit --example cases_as_ir -- FOLDER
//! ```

use carafe::passes::SpellOut;
use carafe::{Notes, run_passes};
use carafe_testkit::CaseFile;
use carafe_testkit::runner::{InputsAs, build};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: cases_as_ir FOLDER")?;
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut written = 0;
    for entry in std::fs::read_dir(cases)? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "case") {
            continue;
        }
        let file = CaseFile::read(&path)?;
        for case in &file.cases {
            // Cases about errors have no model.
            let Ok(mut model) = build(case, InputsAs::Constants) else { continue };
            run_passes(&mut model, &[&SpellOut], &mut Notes::default())?;
            let target = Path::new(&folder).join(format!("{}-{}.xml", file.name, case.line));
            carafe_ir::write_file(&model, &target, &carafe_ir::WriteOptions::default())?;
            written += 1;
        }
    }
    println!("{written} models in {folder}");
    Ok(())
}
