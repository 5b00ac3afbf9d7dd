//! Which version of each domain a model or function was written for.

use crate::types;
use crate::wire::OperatorSetIdProto;
use carafe_frontend::Versions;

/// Newest version of the default domain the rules were written against; newer models are read with those rules.
pub(crate) const NEWEST: i64 = 28;

/// A domain without an import counts as the newest.
pub(crate) fn versions(list: Vec<OperatorSetIdProto>) -> Versions {
    let version = |o: OperatorSetIdProto| (types::domain(o.domain), o.version.unwrap_or(1));
    Versions { imported: list.into_iter().map(version).collect(), otherwise: NEWEST }
}
