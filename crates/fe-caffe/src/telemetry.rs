//! Events for those who count what models are made of, see `carafe_frontend::send_event`.

use crate::input;
use crate::lookup::Lookup;
use crate::net::Net;
use carafe_frontend::{Missing, ReadRequest, send_event};
use std::collections::BTreeMap;

/// `op_count` for every layer type of the net.
pub(crate) fn count(options: &ReadRequest<'_>, net: &Net, lookup: &Lookup<'_>) {
    if options.telemetry.is_none() {
        return;
    }
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for layer in net.layers.iter().filter(|l| !input::is_input(&l.ty)) {
        *counts.entry(label(&lookup.type_of(layer))).or_default() += 1;
    }
    counts.iter().for_each(|(label, n)| send_event(options, "op_count", label, *n));
}

/// `error_cause` for every layer type that nobody knows.
pub(crate) fn missing(options: &ReadRequest<'_>, missing: &Missing) {
    missing.ops().for_each(|(_, ty)| send_event(options, "error_cause", &label(ty), 1));
}

fn label(ty: &str) -> String {
    format!("caffe_{ty}")
}
