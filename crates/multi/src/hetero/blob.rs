//! A split model in a file: behind the checked header the ports, the routes and, for each part, the device's own form or,
//! where the device has none, IR. Frames begin on 64-byte boundaries, so that weights can be used where they lie.

use super::compiled::{Compiled, Sub, can_export, part_properties};
use super::placement::Part;
use super::report::{Report, SubModelReport};
use super::split::Source;
use super::{NAME, PRIORITIES};
use crate::list::DeviceList;
use carafe_device::{BlobHeader, Port, Properties, read_blob, write_blob};
use carafe_graph::{Error, Model, Registry, Result};
use carafe_tensor::{ElementType, PartialShape, SharedBytes};
use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const FORMAT: u64 = 1;
const DEVICE_FRAME: u64 = b'B' as u64;
const IR_FRAME: u64 = b'I' as u64;

pub(crate) fn write(compiled: &Compiled, to: &mut dyn Write) -> Result<()> {
    let mut out = Out(Vec::new());
    out.number(FORMAT);
    out.text(&compiled.name);
    for ports in [&compiled.inputs, &compiled.outputs] {
        out.list(ports, |out, p| {
            out.text(&p.name);
            out.texts(&p.names);
            out.text(&p.ty.to_string());
            out.text(&p.shape.to_string());
        });
    }
    out.sources(&compiled.sources);
    out.frame(&ir_bytes(&constants_model(compiled)?)?);
    out.texts(&compiled.report.devices);
    out.texts(&compiled.report.folded);
    out.number(compiled.subs.len() as u64);
    for (sub, row) in compiled.subs.iter().zip(&compiled.report.sub_models) {
        out.text(&sub.name);
        out.text(&sub.device);
        out.sources(&sub.sources);
        out.list(&row.nodes, |out, (n, t)| {
            out.text(n);
            out.text(t);
        });
        out.texts(&row.inputs);
        out.texts(&row.outputs);
        let (kind, bytes) = frame_of(sub)?;
        out.number(kind);
        out.frame(&bytes);
    }
    write_blob(&BlobHeader { device: NAME.into(), version: VERSION.into() }, &out.0, to)
}

// The device's own form if it has one, else IR.
fn frame_of(sub: &Sub) -> Result<(u64, Vec<u8>)> {
    let mut bytes = Vec::new();
    let exported = match sub.exports {
        true => sub.compiled.export(&mut bytes),
        false => Err(Error::unsupported("the device cannot export")),
    };
    match (exported, &sub.model) {
        (Ok(()), _) => Ok((DEVICE_FRAME, bytes)),
        (Err(_), Some(model)) => Ok((IR_FRAME, ir_bytes(model)?)),
        (Err(e), None) => Err(e.at(format!("sub-model `{}` on device `{}`", sub.name, sub.device))),
    }
}

// Outputs that are known already, as a model, for tensors of every type have a form there.
fn constants_model(compiled: &Compiled) -> Result<Model> {
    let mut model = Model::new("constants");
    for (i, tensor) in compiled.constants.iter().enumerate() {
        let value = model.constant(&format!("constant{i}"), tensor.clone())?;
        model.result(&format!("result{i}"), value)?;
    }
    Ok(model)
}

fn ir_bytes(model: &Model) -> Result<Vec<u8>> {
    let (xml, weights) = carafe_ir::write_to(model, &carafe_ir::WriteOptions::transfer())?;
    let mut out = Out(Vec::new());
    out.frame(xml.as_bytes());
    out.frame(&weights);
    Ok(out.0)
}

fn read_ir(at: In<'_>, registry: &Registry) -> Result<Model> {
    let mut at = at;
    let xml = at.frame()?;
    let weights = at.frame()?;
    let text = std::str::from_utf8(&at.bytes.as_slice()[xml]).map_err(|_| damaged())?;
    let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
    carafe_ir::read(text, part_of(at.bytes, weights)?, registry, &options)
}

pub(crate) fn read(
    blob: &SharedBytes,
    registry: &Registry,
    properties: &Properties,
    part: &dyn Fn(&str) -> Result<Part>,
) -> Result<Compiled> {
    let (_, payload) = read_blob(blob.as_slice(), NAME, VERSION)?;
    let mut at = In { bytes: blob, base: payload.start, at: payload.start, end: payload.end };
    let format = at.number()?;
    if format != FORMAT {
        return Err(Error::invalid(format!("the split model has format {format}, this engine reads {FORMAT}")));
    }
    let name = at.text()?;
    let inputs = at.list(In::port)?;
    let outputs = at.list(In::port)?;
    let sources = at.list(In::source)?;
    let frame = at.frame()?;
    let constants = read_ir(at.inside(frame), registry)?;
    let known = |r: &carafe_graph::NodeId| constants.fact(constants.result_value(*r)).tensor().cloned();
    let constants = constants.results().iter().map(known).collect::<Option<_>>().ok_or_else(damaged)?;
    let mut report = Report { model: name.clone(), devices: at.list(In::text)?, ..Report::default() };
    report.folded = at.list(In::text)?;
    allowed(&report.devices, properties)?;
    let n_subs = at.count()?;
    let mut subs = Vec::new();
    for _ in 0..n_subs {
        let (name, device) = (at.text()?, at.text()?);
        let sources = at.list(In::source)?;
        let nodes = at.list(|at| Ok((at.text()?, at.text()?)))?;
        let row = SubModelReport { name, device, nodes, inputs: at.list(In::text)?, outputs: at.list(In::text)? };
        let kind = at.number()?;
        let frame = at.frame()?;
        let part = part(&row.device)?;
        let own = part_properties(&part, n_subs);
        let load = || match kind {
            DEVICE_FRAME => Ok((part.device.import(part_of(blob, frame.clone())?, registry, &own)?, None)),
            IR_FRAME => {
                let model = read_ir(at.inside(frame.clone()), registry)?;
                Ok((part.device.compile(&model, &own)?, Some(model)))
            }
            _ => Err(damaged()),
        };
        let place = || format!("sub-model `{}` on device `{}`", row.name, row.device);
        let (compiled, model) = load().map_err(|e: Error| e.at(place()))?;
        let (name, device) = (row.name.clone(), row.device.clone());
        subs.push(Sub { name, device, compiled, model, exports: can_export(&part), sources });
        report.sub_models.push(row);
    }
    let properties = properties.clone();
    let compiled = Compiled { name, inputs, outputs, subs, sources, constants, report, properties };
    compiled.check()?;
    Ok(compiled)
}

// A list that the user gives now must hold the devices the model was split for.
fn allowed(devices: &[String], properties: &Properties) -> Result<()> {
    let Some(text) = properties.get(PRIORITIES).filter(|t| !t.is_empty()) else { return Ok(()) };
    let list = DeviceList::parse(text)?;
    match devices.iter().find(|d| list.items.iter().all(|i| i.name != **d)) {
        Some(_) => Err(Error::usage(format!("exported for devices {}, imported into `{text}`", devices.join(", ")))),
        None => Ok(()),
    }
}

fn damaged() -> Error {
    Error::invalid("the exported model is damaged")
}

fn part_of(blob: &SharedBytes, range: Range<usize>) -> Result<SharedBytes> {
    blob.part(range).ok_or_else(damaged)
}

struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
    fn list<T>(&mut self, items: &[T], mut one: impl FnMut(&mut Out, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| one(self, item));
    }
    fn texts<'a, I: IntoIterator<Item = &'a String, IntoIter: ExactSizeIterator>>(&mut self, items: I) {
        let items = items.into_iter();
        self.number(items.len() as u64);
        items.for_each(|t| self.text(t));
    }
    fn sources(&mut self, sources: &[Source]) {
        self.list(sources, |out, s| {
            let (kind, a, b) = match *s {
                Source::Input(i) => (0, i, 0),
                Source::Sub { sub, port } => (1, sub, port),
                Source::Constant(i) => (2, i, 0),
            };
            [kind, a as u64, b as u64].into_iter().for_each(|n| out.number(n));
        });
    }
    fn frame(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.resize(self.0.len().next_multiple_of(64), 0);
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what `Out` wrote; boundaries count from `base`.
#[derive(Clone, Copy)]
struct In<'a> {
    bytes: &'a SharedBytes,
    base: usize,
    at: usize,
    end: usize,
}

impl<'a> In<'a> {
    fn inside(&self, range: Range<usize>) -> In<'a> {
        In { bytes: self.bytes, base: range.start, at: range.start, end: range.end }
    }
    fn take(&mut self, n: usize) -> Result<Range<usize>> {
        let end = self.at.checked_add(n).filter(|e| *e <= self.end).ok_or_else(damaged)?;
        Ok(std::mem::replace(&mut self.at, end)..end)
    }
    fn number(&mut self) -> Result<u64> {
        let range = self.take(8)?;
        let bytes = self.bytes.as_slice()[range].try_into().map_err(|_| damaged())?;
        Ok(u64::from_le_bytes(bytes))
    }
    // Every item takes at least eight bytes, so a count cannot ask for more memory than the file has.
    fn count(&mut self) -> Result<usize> {
        let n = usize::try_from(self.number()?).map_err(|_| damaged())?;
        if n > (self.end - self.at) / 8 { Err(damaged()) } else { Ok(n) }
    }
    fn text(&mut self) -> Result<String> {
        let n = usize::try_from(self.number()?).map_err(|_| damaged())?;
        let range = self.take(n)?;
        String::from_utf8(self.bytes.as_slice()[range].to_vec()).map_err(|_| damaged())
    }
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count()?).map(|_| one(self)).collect()
    }
    fn port(&mut self) -> Result<Port> {
        let name = self.text()?;
        let names: BTreeSet<String> = self.list(In::text)?.into_iter().collect();
        let ty: ElementType = self.text()?.parse().map_err(|_| damaged())?;
        let shape: PartialShape = self.text()?.parse().map_err(|_| damaged())?;
        Ok(Port { name, names, ty, shape })
    }
    fn source(&mut self) -> Result<Source> {
        let (kind, a, b) = (self.number()?, self.number()?, self.number()?);
        let index = |n: u64| usize::try_from(n).map_err(|_| damaged());
        Ok(match kind {
            0 => Source::Input(index(a)?),
            1 => Source::Sub { sub: index(a)?, port: index(b)? },
            2 => Source::Constant(index(a)?),
            _ => return Err(damaged()),
        })
    }
    fn frame(&mut self) -> Result<Range<usize>> {
        let n = usize::try_from(self.number()?).map_err(|_| damaged())?;
        let start = self.base + (self.at - self.base).next_multiple_of(64);
        self.take(start - self.at)?;
        self.take(n)
    }
}
