//! Variables: where their values come from. A variable that is a constant of the model has its value as a stored tensor, which
//! the rule of the variable reads.

use carafe_frontend::SourceNode;

/// Who knows the values of variables.
pub(crate) trait Variables {
    /// Gives a node of a variable its value; leaves any other as it is.
    fn attach(&self, node: &mut SourceNode);
}

/// Nobody: the graph is frozen, or lacks its checkpoint.
#[derive(Debug)]
pub(crate) struct NoVariables;

impl Variables for NoVariables {
    fn attach(&self, _: &mut SourceNode) {}
}
