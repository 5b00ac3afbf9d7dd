//! recurrent.

opset! {}
