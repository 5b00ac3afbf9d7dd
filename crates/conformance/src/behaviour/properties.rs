//! The property table: every row does what it says. `Core` checks what is set on it by the table; here the device itself
//! is given the values too, with a compilation.

use super::bench::{Bench, Outcome, Stop, refused};
use super::{ensure, suite};
use carafe::{Mutability, Properties, PropertyInfo, PropertyKind};

suite!("properties":
    the_table_has_every_name_once_with_a_doc,
    defaults_fit_their_kind,
    every_readable_property_is_answered,
    supported_properties_names_the_whole_table,
    every_default_can_be_set_back,
    every_value_that_is_set_comes_back,
    wrong_values_are_refused,
    read_only_properties_cannot_be_set,
    unknown_properties_are_refused,
    a_compiled_model_answers_what_all_must,
    a_compiled_model_answers_every_writable_property,
    a_compiled_model_has_the_value_it_was_compiled_with,
    properties_of_one_compilation_do_not_stay,
    the_range_of_requests_is_three_numbers,
);

fn writable(b: &Bench) -> Outcome<Vec<&'static PropertyInfo>> {
    Ok(b.table()?.iter().filter(|p| p.mutability == Mutability::ReadWrite).collect())
}

// Gathers what is wrong with single rows, so that one does not hide another.
fn for_each<'a>(rows: impl IntoIterator<Item = &'a PropertyInfo>, f: impl Fn(&PropertyInfo) -> Outcome) -> Outcome {
    let mut wrong = Vec::new();
    for row in rows {
        match f(row) {
            Ok(()) => {}
            Err(Stop::Skipped(why)) => return Err(Stop::Skipped(why)),
            Err(Stop::Failed(m)) => wrong.push(format!("{}: {m}", row.name)),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Stop::Failed(wrong.join("\n"))) }
}

// Legal values beside the default. Those of free texts are the device's secret, and dumps would write files.
fn legal(row: &PropertyInfo) -> Vec<String> {
    match row.kind {
        _ if row.name.contains("DUMP") => vec![],
        PropertyKind::Text => vec![],
        PropertyKind::Bool => ["true", "false"].map(String::from).to_vec(),
        PropertyKind::Enum(words) => words.iter().map(|w| w.to_string()).collect(),
        PropertyKind::Int { min, max } => {
            let at = row.default.trim().parse::<i64>().unwrap_or(min);
            [at, at.saturating_add(1)].iter().filter(|n| (min..=max).contains(*n)).map(i64::to_string).collect()
        }
    }
}

fn illegal(row: &PropertyInfo) -> Vec<String> {
    match row.kind {
        PropertyKind::Text => vec![],
        PropertyKind::Bool => ["maybe", "", "2"].map(String::from).to_vec(),
        PropertyKind::Enum(_) => ["NO_SUCH_WORD", ""].map(String::from).to_vec(),
        PropertyKind::Int { min, max } => {
            let mut all = ["many", "", "1.5"].map(String::from).to_vec();
            all.extend([min.checked_sub(1), max.checked_add(1)].into_iter().flatten().map(|n| n.to_string()));
            all
        }
    }
}

fn the_table_has_every_name_once_with_a_doc(b: &Bench) -> Outcome {
    let table = b.table()?;
    for_each(table, |row| {
        ensure!(!row.name.trim().is_empty() && row.name.trim() == row.name, "the name is `{}`", row.name);
        ensure!(table.iter().filter(|p| p.name == row.name).count() == 1, "there is more than one of this name");
        ensure!(!row.doc.trim().is_empty(), "there is no text that tells what it is for");
        Ok(())
    })
}

fn defaults_fit_their_kind(b: &Bench) -> Outcome {
    let table = b.table()?;
    for_each(writable(b)?, |row| Ok(Properties::new().with(row.name, row.default).check(table)?))
}

fn every_readable_property_is_answered(b: &Bench) -> Outcome {
    let device = b.core.device(b.device())?;
    for_each(b.table()?, |row| {
        if row.mutability == Mutability::ReadOnly {
            device.metric(row.name)?;
        }
        b.core.get_property(b.device(), row.name)?;
        Ok(())
    })
}

fn supported_properties_names_the_whole_table(b: &Bench) -> Outcome {
    if !b.has_property("SUPPORTED_PROPERTIES") {
        return Err(Stop::Skipped("SUPPORTED_PROPERTIES is not in the table".into()));
    }
    let all = b.core.get_property(b.device(), "SUPPORTED_PROPERTIES")?;
    for_each(b.table()?, |row| {
        ensure!(all.split([' ', ',']).any(|n| n == row.name), "it is not among SUPPORTED_PROPERTIES");
        Ok(())
    })
}

fn every_default_can_be_set_back(b: &Bench) -> Outcome {
    let model = b.plain();
    b.compile(&model)?;
    for_each(writable(b)?, |row| {
        let value = b.core.get_property(b.device(), row.name)?;
        let all = Properties::new().with(row.name, &value);
        b.core.set_property(b.device(), &all)?;
        let after = b.core.get_property(b.device(), row.name)?;
        ensure!(after == value, "it was `{value}`, was set to that, and is now `{after}`");
        b.compile_with(&model, &all).map(drop)
    })
}

fn every_value_that_is_set_comes_back(b: &Bench) -> Outcome {
    for_each(writable(b)?, |row| {
        for value in legal(row) {
            b.core.set_property(b.device(), &Properties::new().with(row.name, &value))?;
            let found = b.core.get_property(b.device(), row.name)?;
            ensure!(found == value, "it was set to `{value}` and is `{found}`");
        }
        Ok(())
    })
}

fn wrong_values_are_refused(b: &Bench) -> Outcome {
    let model = b.plain();
    b.compile(&model)?;
    for_each(writable(b)?, |row| {
        for value in illegal(row) {
            let all = Properties::new().with(row.name, &value);
            refused(b.core.set_property(b.device(), &all), &format!("`{value}` as a default"))?;
            let result = b.core.compile_model(&model, b.device(), &b.properties().overlaid(&all));
            refused(result, &format!("`{value}` with a compilation"))?;
        }
        Ok(())
    })
}

fn read_only_properties_cannot_be_set(b: &Bench) -> Outcome {
    let model = b.plain();
    b.compile(&model)?;
    for_each(b.table()?.iter().filter(|p| p.mutability == Mutability::ReadOnly), |row| {
        let all = Properties::new().with(row.name, "1");
        refused(b.core.set_property(b.device(), &all), "setting it as a default")?;
        let result = b.core.compile_model(&model, b.device(), &b.properties().overlaid(&all));
        refused(result, "giving it with a compilation")?;
        Ok(())
    })
}

fn unknown_properties_are_refused(b: &Bench) -> Outcome {
    let name = "NO_SUCH_PROPERTY";
    let all = Properties::new().with(name, "1");
    refused(b.core.get_property(b.device(), name), "reading a property that is not there")?;
    refused(b.core.set_property(b.device(), &all), "setting a property that is not there")?;
    let model = b.plain();
    refused(b.compile(&model)?.property(name), "asking the compiled model for a property that is not there")?;
    if b.is_composite() {
        return Ok(());
    }
    let result = b.core.compile_model(&model, b.device(), &b.properties().overlaid(&all));
    refused(result, "compiling with a property that is not there")?;
    refused(b.core.query_model(&model, b.device(), &all), "a query with a property that is not there")?;
    Ok(())
}

fn a_compiled_model_answers_what_all_must(b: &Bench) -> Outcome {
    let model = b.plain();
    let compiled = b.compile(&model)?;
    let mut wrong = Vec::new();
    let name = compiled.property("NETWORK_NAME");
    if !name.as_ref().is_ok_and(|n| *n == model.name) {
        wrong.push(format!("NETWORK_NAME is {name:?}, the model is called `{}`", model.name));
    }
    let requests = compiled.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS");
    if !requests.as_ref().is_ok_and(|n| n.trim().parse::<u32>().is_ok_and(|n| n > 0)) {
        wrong.push(format!("OPTIMAL_NUMBER_OF_INFER_REQUESTS is {requests:?}, expected a number from 1 on"));
    }
    let devices = compiled.property("EXECUTION_DEVICES");
    if !devices.as_ref().is_ok_and(|d| !d.trim().is_empty()) {
        wrong.push(format!("EXECUTION_DEVICES is {devices:?}, expected the names of devices"));
    }
    let cached = compiled.property("LOADED_FROM_CACHE");
    if !cached.as_ref().is_ok_and(|c| c == "false") {
        wrong.push(format!("LOADED_FROM_CACHE is {cached:?}, expected `false`"));
    }
    if let Err(e) = compiled.property("SUPPORTED_PROPERTIES") {
        wrong.push(format!("SUPPORTED_PROPERTIES: {e}"));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn a_compiled_model_answers_every_writable_property(b: &Bench) -> Outcome {
    let compiled = b.compile(&b.plain())?;
    for_each(writable(b)?, |row| Ok(compiled.property(row.name).map(drop)?))
}

fn a_compiled_model_has_the_value_it_was_compiled_with(b: &Bench) -> Outcome {
    let model = b.plain();
    for_each(writable(b)?, |row| {
        for value in legal(row) {
            let compiled = b.compile_with(&model, &Properties::new().with(row.name, &value))?;
            let found = compiled.property(row.name)?;
            // A precision is a hint: the model says the type that runs.
            let runs =
                row.name == "INFERENCE_PRECISION_HINT" && legal(row).iter().any(|v| v.eq_ignore_ascii_case(&found));
            ensure!(runs || found.eq_ignore_ascii_case(&value), "compiled with `{value}`, the model says `{found}`");
        }
        Ok(())
    })
}

fn properties_of_one_compilation_do_not_stay(b: &Bench) -> Outcome {
    let model = b.plain();
    for_each(writable(b)?, |row| {
        let before = b.compile(&model)?.property(row.name)?;
        for value in legal(row) {
            b.compile_with(&model, &Properties::new().with(row.name, &value))?;
        }
        let after = b.compile(&model)?.property(row.name)?;
        ensure!(before == after, "the default was `{before}` and is `{after}` after other compilations");
        Ok(())
    })
}

fn the_range_of_requests_is_three_numbers(b: &Bench) -> Outcome {
    if !b.has_property("RANGE_FOR_ASYNC_INFER_REQUESTS") {
        return Err(Stop::Skipped("RANGE_FOR_ASYNC_INFER_REQUESTS is not in the table".into()));
    }
    let text = b.core.get_property(b.device(), "RANGE_FOR_ASYNC_INFER_REQUESTS")?;
    let numbers: Vec<u32> = text.split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
    let good = matches!(numbers[..], [least, most, step] if least <= most && step > 0);
    ensure!(good, "expected fewest, most and step, found `{text}`");
    Ok(())
}
