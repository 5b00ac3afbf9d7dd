//! state.

opset! {}
