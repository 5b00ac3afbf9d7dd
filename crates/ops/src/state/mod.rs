//! Variables that live from one inference to the next. A reader sees the value from before the assignment of the same
//! inference; the graph's order takes care of that.

opset! {
    assign::{Assign, AssignV3},
    read_value::{ReadValue, ReadValueV3},
}
