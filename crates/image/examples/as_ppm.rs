//! Decodes pictures and compares each with the .ppm beside it, where there is one.
//!
//! ```text
//! cargo run -p carafe-image --example as_ppm -- FOLDER
//! ```

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: as_ppm FOLDER")?;
    let (mut same, mut others) = (0, 0);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(Path::new(&folder))?.map(|f| Ok(f?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|p| p.extension().is_some_and(|e| e != "ppm") && p.with_extension("ppm").exists());
    files.sort();
    for file in files {
        let expected = carafe_image::decode(&std::fs::read(file.with_extension("ppm"))?)?;
        match carafe_image::decode(&std::fs::read(&file)?) {
            Ok(found) if found == expected => same += 1,
            Ok(found) => {
                let off = found.data.iter().zip(&expected.data).filter(|(a, b)| a != b).count();
                let (w, h, c) = (found.width, found.height, found.channels);
                println!("{}: {off} of {} bytes differ ({w} x {h} x {c})", file.display(), expected.data.len());
                others += 1;
            }
            Err(e) => {
                println!("{}: {e}", file.display());
                others += 1;
            }
        }
    }
    println!("{same} equal, {others} not");
    Ok(())
}
