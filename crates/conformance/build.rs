//! Packs the case files and their models, so that they are part of every program that judges devices.

use carafe_packed::{Folder, pack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cases = Folder { name: "cases", else_at: "../testkit/cases", ends: &["case"] };
    let models = Folder { name: "cases/models", else_at: "../testkit/cases/models", ends: &["xml", "bin"] };
    print!("{}", pack("cases.deflate", &[cases, models])?);
    Ok(())
}
