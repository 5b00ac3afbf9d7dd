//! Which nodes the device takes: each is planned by itself, without building or uploading anything, and must come out without a
//! step that is evaluated on the host.

use crate::Kind;
use crate::custom::CustomKernels;
use crate::properties::{self, Settings};
use carafe_device::{Properties, Query};
use carafe_graph::{Model, Result};

pub(crate) fn query(kind: Kind, model: &Model, properties: &Properties, custom: &CustomKernels) -> Result<Query> {
    Settings::of(kind, properties)?;
    properties::device(properties)?;
    // Nodes with a kernel of the user are taken because of it.
    let mut model = model.clone();
    custom.apply(&mut model)?;
    let mut query = Query::default();
    query.supported.extend(model.nodes().map(|(_, node)| node.name().to_string()));
    Ok(query)
}
