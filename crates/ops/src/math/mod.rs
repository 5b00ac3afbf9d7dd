//! Functions of one number, element by element.

mod unary;

opset! { abs::{Abs} }
