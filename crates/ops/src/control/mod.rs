//! Control flow: operations that run a sub-graph (a body) once, by choice, or again and again. Bodies are inferred with the
//! facts of the outer node; what a body's own Parameters say in a file only counts where nothing outside feeds them.

mod bodies;
mod iterate;
mod parts;

opset! {
    if_op::{If},
    loop_op::{Loop},
    tensor_iterator::{TensorIterator},
}
