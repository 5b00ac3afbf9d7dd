//! Sliding windows as TensorFlow has them: strides, dilations and one of three paddings.

use carafe_graph::{Error, Result};
use carafe_ops::convolution::window::PadType;

/// What is added around the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// As much as keeps `ceil(size / stride)` outputs, an odd one at the end.
    Same,
    /// Nothing.
    Valid,
    /// These amounts, before and after each spatial axis.
    Explicit(Vec<(i64, i64)>),
}

impl Padding {
    /// The padding that TensorFlow names; `explicit` has two values for each spatial axis.
    pub fn of_name(name: &str, explicit: &[i64]) -> Result<Padding> {
        match name {
            "SAME" => Ok(Padding::Same),
            "VALID" => Ok(Padding::Valid),
            "EXPLICIT" => Ok(Padding::Explicit(explicit.chunks_exact(2).map(|p| (p[0], p[1])).collect())),
            other => {
                Err(Error::unsupported(format!("attribute `padding` is `{other}`; known are SAME, VALID, EXPLICIT")))
            }
        }
    }

    /// The attributes `auto_pad`, `pads_begin` and `pads_end` for this many spatial axes.
    pub fn attributes(&self, n_spatial: usize) -> Result<(PadType, Vec<i64>, Vec<i64>)> {
        let none = vec![0; n_spatial];
        match self {
            Padding::Same => Ok((PadType::SameUpper, none.clone(), none)),
            Padding::Valid => Ok((PadType::Valid, none.clone(), none)),
            Padding::Explicit(pads) if pads.len() == n_spatial => {
                Ok((PadType::Explicit, pads.iter().map(|p| p.0).collect(), pads.iter().map(|p| p.1).collect()))
            }
            Padding::Explicit(pads) => Err(Error::invalid(format!(
                "explicit paddings must be given for {n_spatial} spatial axes, found {}",
                pads.len()
            ))),
        }
    }
}

/// A window that moves over spatial axes; each list has one value for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Steps between windows.
    pub strides: Vec<i64>,
    /// Steps between the elements of a window.
    pub dilations: Vec<i64>,
    /// What is added around the data.
    pub padding: Padding,
}

impl Windows {
    /// How many axes it moves over.
    pub fn n_spatial(&self) -> usize {
        self.strides.len()
    }
}
