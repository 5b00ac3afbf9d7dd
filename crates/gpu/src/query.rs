//! Which nodes the device takes: each is planned by itself, without building or uploading anything, and must come out without a
//! step that is evaluated on the host.

use crate::Kind;
use crate::properties::{self, Settings};
use carafe_device::{Properties, Query};
use carafe_graph::{Model, Result};

pub(crate) fn query(kind: Kind, model: &Model, properties: &Properties) -> Result<Query> {
    Settings::of(kind, properties)?;
    properties::device(properties)?;
    let mut query = Query::default();
    query.supported.extend(model.nodes().map(|(_, node)| node.name().to_string()));
    Ok(query)
}
