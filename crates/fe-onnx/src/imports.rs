//! Which version of each domain a model or function was written for.

use crate::types;
use crate::wire::OperatorSetIdProto;
use std::collections::HashMap;

/// Newest version of the default domain the rules were written against; newer models are read with those rules.
pub(crate) const NEWEST: i64 = 28;

#[derive(Clone, Debug, Default)]
pub(crate) struct Imports(HashMap<String, i64>);

impl Imports {
    pub(crate) fn of(list: &[OperatorSetIdProto]) -> Imports {
        Imports(list.iter().map(|o| (types::domain(o.domain.as_deref()), o.version.unwrap_or(1))).collect())
    }
    /// A domain without an import counts as the newest.
    pub(crate) fn version(&self, domain: &str) -> i64 {
        self.0.get(domain).copied().unwrap_or(NEWEST)
    }
}
