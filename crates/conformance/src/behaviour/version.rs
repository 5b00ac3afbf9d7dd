//! Who the device says it is.

use super::bench::{Bench, Outcome, Stop, refused};
use super::{ensure, suite};
use carafe::Properties;

suite!("version":
    the_version_is_told,
    the_name_for_people_is_one_clean_line,
    instances_are_listed,
    an_instance_that_is_not_there_is_refused,
    a_device_id_that_is_not_there_is_refused,
);

fn the_version_is_told(b: &Bench) -> Outcome {
    let version = b.core.device(b.device())?.version();
    ensure!(!version.build.trim().is_empty(), "the build is an empty text");
    let clean = |t: &str| !t.chars().any(char::is_control);
    ensure!(clean(&version.build) && clean(&version.description), "control characters in {version:?}");
    Ok(())
}

fn the_name_for_people_is_one_clean_line(b: &Bench) -> Outcome {
    let name = b.core.get_property(b.device(), "FULL_DEVICE_NAME")?;
    ensure!(!name.trim().is_empty() && name.trim() == name, "FULL_DEVICE_NAME is `{name}`");
    ensure!(!name.chars().any(char::is_control), "control characters in FULL_DEVICE_NAME: {name:?}");
    Ok(())
}

fn instances_are_listed(b: &Bench) -> Outcome {
    let ids = b.core.get_property(b.device(), "AVAILABLE_DEVICES")?;
    b.skip_composite()?;
    let mut all: Vec<&str> = ids.split_whitespace().collect();
    ensure!(!all.is_empty(), "AVAILABLE_DEVICES is empty");
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    ensure!(all.len() == n, "AVAILABLE_DEVICES names an instance twice: {ids}");
    Ok(())
}

fn an_instance_that_is_not_there_is_refused(b: &Bench) -> Outcome {
    b.skip_composite()?;
    let name = b.device().split('.').next().unwrap_or_default();
    for id in ["110", "no-such-id"] {
        let result = b.core.compile_model(&b.plain(), &format!("{name}.{id}"), b.properties());
        refused(result, &format!("instance {id}"))?;
    }
    Ok(())
}

fn a_device_id_that_is_not_there_is_refused(b: &Bench) -> Outcome {
    b.skip_composite()?;
    if !b.has_property("DEVICE_ID") {
        return Err(Stop::Skipped("DEVICE_ID is not in the table".into()));
    }
    b.skip_unsupported(&b.plain())?;
    let wrong = b.properties().overlaid(&Properties::new().with("DEVICE_ID", "no-such-id"));
    refused(b.core.compile_model(&b.plain(), b.device(), &wrong), "DEVICE_ID=no-such-id")?;
    for id in b.core.get_property(b.device(), "AVAILABLE_DEVICES")?.split_whitespace() {
        b.compile_with(&b.plain(), &Properties::new().with("DEVICE_ID", id))?;
    }
    Ok(())
}
