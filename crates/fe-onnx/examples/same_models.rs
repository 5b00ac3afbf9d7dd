//! Reads models of the same name written in different ways and tells which differ: `same_models FOLDER onnx onnxtxt`.

use carafe_fe_onnx::Onnx;
use carafe_frontend::ReadRequest;
use carafe_graph::Model;
use std::path::Path;

fn main() {
    let mut args = std::env::args().skip(1);
    let [Some(folder), Some(first), Some(second)] = [args.next(), args.next(), args.next()] else {
        eprintln!("usage: same_models FOLDER EXTENSION EXTENSION");
        std::process::exit(2);
    };
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == first.as_str()));
    paths.sort();
    let (mut same, mut neither) = (0, 0);
    for path in &paths {
        let other = path.with_extension(&second);
        let read = |p: &Path| carafe_frontend::read(&Onnx, &ReadRequest::new(p)).map_err(|e| e.to_string());
        match (read(path), read(&other)) {
            (Ok(a), Ok(b)) if Model::same_as(&a, &b) => same += 1,
            (Err(a), Err(b)) if a == b => neither += 1,
            (a, b) => println!("{}: {:?} and {:?}", path.display(), a.map(|m| m.len()), b.map(|m| m.len())),
        }
    }
    println!("{same} of {} the same, {neither} readable in neither form", paths.len());
}
