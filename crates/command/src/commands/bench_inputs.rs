//! Inputs that `carafe bench` measures with: from files, or made of random values.

use super::bench_text::Teller;
use crate::bench_args::BenchArgs;
use crate::inputs::{Filler, bind};
use carafe::{CompiledModel, Error, Model, PartialShape, Port, Result};
use carafe_bench::{Group, batch_of, data_shapes};
use std::path::{Path, PathBuf};

/// Files of one input that take turns, at most.
const MOST_GROUPS: usize = 64;

/// Inputs that take turns, and how they are called.
pub(super) struct Data {
    pub(super) groups: Vec<Group>,
    pub(super) names: Vec<String>,
}

pub(super) fn groups(args: &BenchArgs, model: &Model, compiled: &CompiledModel, tell: &Teller) -> Result<Data> {
    let ports = compiled.inputs();
    let shapes = data_shapes(args.data_shape.as_deref().unwrap_or(""), ports)?;
    let mut given: Vec<(Option<String>, Vec<PathBuf>)> = vec![];
    for text in &args.inputs {
        let (name, path) = split_input(text);
        let list = files_of(&path)?;
        match given.iter_mut().find(|(n, _)| *n == name) {
            Some((_, files)) => files.extend(list),
            None => given.push((name, list)),
        }
    }
    let turns = given.iter().map(|(_, f)| f.len()).chain(shapes.iter().map(Vec::len)).max().unwrap_or(1).max(1);
    if turns > MOST_GROUPS {
        tell.warn(format!("{turns} inputs are given; the first {MOST_GROUPS} take turns"))?;
    }
    let told = std::cell::RefCell::new(vec![]);
    let said = |text: String| told.borrow_mut().push(text);
    let mut data = Data { groups: vec![], names: vec![] };
    for turn in 0..turns.min(MOST_GROUPS) {
        let of_turn = |(port, shapes): (&Port, &Vec<Vec<usize>>)| match shapes.is_empty() {
            true => port.clone(),
            false => Port { shape: PartialShape::of(&shapes[turn % shapes.len()]), ..port.clone() },
        };
        let shaped: Vec<Port> = ports.iter().zip(&shapes).map(of_turn).collect();
        let files: Vec<_> = given.iter().map(|(n, list)| (n.clone(), list[turn % list.len()].clone())).collect();
        let filler = Filler {
            random: true,
            seed: args.seed.wrapping_add(turn as u64),
            said: if turn == 0 { Some(&said) } else { None },
        };
        let inputs = bind(&shaped, model, &files, Some(&filler))?;
        let sizes: Vec<Vec<usize>> = inputs.iter().map(|t| t.shape().to_vec()).collect();
        let name: Vec<String> = ports.iter().zip(&sizes).map(|(p, s)| format!("{}: {s:?}", p.name)).collect();
        data.names.push(name.join(" "));
        data.groups.push(Group { batch: batch_of(model, &sizes).max(1), inputs });
    }
    for text in told.into_inner() {
        tell.warn(text)?;
    }
    if data.names.len() > 1 {
        tell.info(format!("Defined {} tensor groups:", data.names.len()))?;
        data.names.iter().try_for_each(|name| tell.info(format!("\t{name}")))?;
    }
    Ok(data)
}

// `NAME=FILE`, benchmark_app's `NAME:FILE`, or `FILE` alone; an existing file wins.
fn split_input(text: &str) -> (Option<String>, PathBuf) {
    let parts = text.split_once('=').or_else(|| text.split_once(':'));
    match parts {
        Some((name, file)) if !Path::new(text).exists() => (Some(name.to_string()), file.into()),
        _ => (None, text.into()),
    }
}

// The files of a folder in the order of their names, or the file itself.
fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let failed = |e: &std::io::Error| Error::io(format!("cannot read folder `{}`", path.display()), e);
    let mut list = vec![];
    for entry in std::fs::read_dir(path).map_err(|e| failed(&e))? {
        let file = entry.map_err(|e| failed(&e))?.path();
        if file.is_file() {
            list.push(file);
        }
    }
    // What lies beside pictures and arrays, such as labels, is no input.
    let has_ending = |file: &PathBuf, endings: &[&str]| {
        file.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e.to_ascii_lowercase().as_str()))
    };
    const PICTURES: [&str; 11] = ["npy", "npz", "png", "jpg", "jpeg", "bmp", "jp2", "webp", "ppm", "tif", "tiff"];
    if list.iter().any(|f| has_ending(f, &PICTURES)) {
        list.retain(|f| has_ending(f, &PICTURES));
    }
    list.sort_unstable();
    match list.is_empty() {
        true => Err(Error::usage(format!("folder `{}` has no files", path.display()))),
        false => Ok(list),
    }
}
