//! Exported models: read back they are the same, and what was not written by this device is refused.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, infer, refused, row, same};
use super::{ensure, suite};
use carafe::{CompiledModel, ElementType, Model, Properties, Result, SharedBytes, Tensor};

suite!("export":
    a_device_that_cannot_says_so,
    a_model_comes_back,
    several_inputs_and_outputs_come_back,
    a_dynamic_model_comes_back,
    a_model_with_variables_comes_back,
    a_parameter_that_is_a_result_comes_back,
    a_constant_that_is_a_result_comes_back,
    an_imported_model_can_be_exported,
    another_core_imports_it,
    properties_hold_for_an_import,
    wrong_properties_are_refused,
    a_blob_may_lie_anywhere_in_memory,
    a_writer_that_fails_is_an_error,
    foreign_bytes_are_refused,
    a_blob_that_is_cut_is_refused,
    a_damaged_blob_is_refused_or_the_same,
);

fn export(compiled: &CompiledModel) -> Outcome<Vec<u8>> {
    let mut blob = Vec::new();
    compiled.export(&mut blob)?;
    ensure!(!blob.is_empty(), "the exported model is empty");
    Ok(blob)
}

fn import(b: &Bench, blob: &[u8], more: &Properties) -> Result<CompiledModel> {
    let blob = SharedBytes::from_vec(blob.to_vec());
    b.core.import_model(blob, b.device(), &b.properties().overlaid(more))
}

fn there_and_back(b: &Bench, model: &Model, inputs: &[Tensor]) -> Outcome<CompiledModel> {
    b.skip_without_export()?;
    let compiled = b.compile(model)?;
    let again = import(b, &export(&compiled)?, &Properties::new())?;
    super::compile::check_ports(&again, model)?;
    let (found, expected) = (infer(&again, inputs)?, infer(&compiled, inputs)?);
    for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
        ensure!(f.content_eq(e), "output {i} was {e:?}, and is {f:?} after the import");
    }
    same(&found, &model.evaluate(inputs)?)?;
    Ok(again)
}

fn a_device_that_cannot_says_so(b: &Bench) -> Outcome {
    let compiled = b.compile(&b.plain())?;
    let mut blob = Vec::new();
    match (b.can_export(), compiled.export(&mut blob)) {
        (true, Err(e)) => Err(Stop::Failed(format!("EXPORT_IMPORT is among the capabilities, and: {e}"))),
        (false, Ok(())) => Err(Stop::Failed("it exports without EXPORT_IMPORT among the capabilities".into())),
        (false, Err(_)) => {
            refused(import(b, b"anything", &Properties::new()), "an import by a device that cannot").map(drop)
        }
        (true, Ok(())) => Ok(()),
    }
}

fn a_model_comes_back(b: &Bench) -> Outcome {
    there_and_back(b, &b.weighted()?, &[row(4, 1)]).map(drop)
}

fn several_inputs_and_outputs_come_back(b: &Bench) -> Outcome {
    there_and_back(b, &b.pair(), &[row(4, 1), row(4, 2)]).map(drop)
}

fn a_dynamic_model_comes_back(b: &Bench) -> Outcome {
    let model = b.chain("1,?", 2);
    let again = there_and_back(b, &model, &[row(9, 1)])?;
    same(&infer(&again, &[row(3, 1)])?, &model.evaluate(&[row(3, 1)])?)
}

fn a_model_with_variables_comes_back(b: &Bench) -> Outcome {
    let model = super::state::counter(true)?;
    let again = there_and_back(b, &model, &[row(4, 1)])?;
    let found = again.create_request().variables();
    ensure!(found == ["v"], "expected [\"v\"], found {found:?}");
    Ok(())
}

fn a_parameter_that_is_a_result_comes_back(b: &Bench) -> Outcome {
    there_and_back(b, &Bench::through(ElementType::F32, "1,4")?, &[row(4, 1)]).map(drop)
}

fn a_constant_that_is_a_result_comes_back(b: &Bench) -> Outcome {
    there_and_back(b, &Bench::constant()?, &[]).map(drop)
}

fn an_imported_model_can_be_exported(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let again = there_and_back(b, &model, &[row(4, 1)])?;
    let third = import(b, &export(&again)?, &Properties::new())?;
    same(&infer(&third, &[row(4, 2)])?, &model.evaluate(&[row(4, 2)])?)
}

fn another_core_imports_it(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let model = b.weighted()?;
    let blob = export(&b.compile(&model)?)?;
    let compiled = b.target.core()?.import_model(SharedBytes::from_vec(blob), b.device(), b.properties())?;
    same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}

fn properties_hold_for_an_import(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    if !b.has_property("PERF_COUNT") {
        return Err(Stop::Skipped("PERF_COUNT is not in the table".into()));
    }
    let blob = export(&b.compile(&b.plain())?)?;
    for value in ["true", "false"] {
        let found = import(b, &blob, &Properties::new().with("PERF_COUNT", value))?.property("PERF_COUNT")?;
        ensure!(found == value, "imported with PERF_COUNT={value}, the model says {found}");
    }
    Ok(())
}

fn wrong_properties_are_refused(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let blob = export(&b.compile(&b.plain())?)?;
    if b.has_property("PERF_COUNT") {
        refused(import(b, &blob, &Properties::new().with("PERF_COUNT", "maybe")), "an import with a wrong value")?;
    }
    b.skip_composite()?;
    refused(import(b, &blob, &Properties::new().with("NO_SUCH_PROPERTY", "1")), "an import with an unknown property")?;
    Ok(())
}

fn foreign_bytes_are_refused(b: &Bench) -> Outcome {
    for bytes in [&b""[..], b"\0", b"not an exported model", &[0xff; 4096], b"<?xml version=\"1.0\"?><net/>"] {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]);
        refused(import(b, bytes, &Properties::new()), &format!("the {} bytes `{shown}`", bytes.len()))?;
    }
    Ok(())
}

fn a_blob_that_is_cut_is_refused(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let blob = export(&b.compile(&b.weighted()?)?)?;
    let step = (blob.len() / 40).max(1);
    for n in (0..blob.len()).step_by(step).chain([blob.len() - 1]) {
        let what = format!("a blob of {} bytes cut at {n}", blob.len());
        refused(import(b, &blob[..n], &Properties::new()), &what)?;
    }
    Ok(())
}

// Bytes between the parts may not matter; then nothing else may differ.
fn a_damaged_blob_is_refused_or_the_same(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let model = b.weighted()?;
    let blob = export(&b.compile(&model)?)?;
    let expected = model.evaluate(&[row(4, 1)])?;
    let step = (blob.len() / 60).max(1);
    let mut n_refused = 0;
    for at in (0..blob.len()).step_by(step) {
        let mut damaged = blob.clone();
        damaged[at] ^= 0x55;
        match import(b, &damaged, &Properties::new()) {
            Err(_) => n_refused += 1,
            Ok(compiled) => same(&infer(&compiled, &[row(4, 1)])?, &expected)
                .map_err(|e| Stop::Failed(format!("byte {at} of {} was damaged: {e:?}", blob.len())))?,
        }
    }
    ensure!(n_refused > 0, "no damage was noticed");
    Ok(())
}

fn a_blob_may_lie_anywhere_in_memory(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let model = b.weighted()?;
    let blob = export(&b.compile(&model)?)?;
    for before in [1, 4, 63] {
        let all = SharedBytes::from_vec([&vec![7; before][..], &blob].concat());
        let part = all.part(before..before + blob.len());
        let part = part.ok_or_else(|| Stop::Failed("the range is within the bytes".into()))?;
        let compiled = b.core.import_model(part, b.device(), b.properties())?;
        same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)?;
    }
    Ok(())
}

struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("no space is left"))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn a_writer_that_fails_is_an_error(b: &Bench) -> Outcome {
    b.skip_without_export()?;
    let compiled = b.compile(&b.plain())?;
    let e = refused(compiled.export(&mut Full), "an export to a full disk")?.to_string();
    ensure!(e.contains("no space is left"), "the error does not tell the reason: {e}");
    export(&compiled).map(drop)
}
