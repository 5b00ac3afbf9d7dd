//! How the tensors of a custom kernel lie: four axes B, F, Y, X, whichever order they have in memory.

use carafe_graph::{Error, Result};
use carafe_tensor::ElementType;

/// Order of axes in memory that a kernel asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As models have it.
    #[default]
    Bfyx,
    /// Channels last.
    Byxf,
    /// Batch last.
    Yxfb,
    /// Batch last, channels first.
    Fyxb,
    /// However the tensor lies.
    Any,
}

const FORMATS: [(&str, Format); 5] = [
    ("BFYX", Format::Bfyx),
    ("BYXF", Format::Byxf),
    ("FYXB", Format::Fyxb),
    ("YXFB", Format::Yxfb),
    ("ANY", Format::Any),
];

impl Format {
    /// A format of a GPU file: all letters in one case.
    pub fn of_gpu(text: &str) -> Result<Format> {
        let known = FORMATS.iter().find(|(name, _)| *name == text || name.to_ascii_lowercase() == text);
        known.map(|(_, format)| *format).ok_or_else(|| {
            Error::invalid(format!(
                "expected a tensor format, one of BFYX, BYXF, FYXB, YXFB, ANY in one case, found `{}`",
                crate::expression::shorten(text)
            ))
        })
    }
    /// A format of a VPU file, in any case. `FYX`, `YXF` and `BF` are those of four axes without the ones that are left out.
    pub fn of_vpu(text: &str) -> Result<Format> {
        match text.to_ascii_uppercase().as_str() {
            "BFYX" | "FYX" | "BF" => Ok(Format::Bfyx),
            "BYXF" | "YXF" => Ok(Format::Byxf),
            "ANY" => Ok(Format::Any),
            _ => Err(Error::invalid(format!(
                "expected a tensor format, one of BFYX, BYXF, FYX, YXF, BF, ANY, found `{}`",
                crate::expression::shorten(text)
            ))),
        }
    }
    /// In capitals.
    pub fn name(self) -> &'static str {
        match self {
            Format::Byxf => "BYXF",
            Format::Yxfb => "YXFB",
            Format::Fyxb => "FYXB",
            Format::Bfyx | Format::Any => "BFYX",
        }
    }
    /// Axes of B, F, Y, X from the outermost in memory to the innermost.
    pub fn order(self) -> [usize; 4] {
        match self {
            Format::Bfyx | Format::Any => [0, 1, 2, 3],
            Format::Byxf => [0, 2, 3, 1],
            Format::Yxfb => [2, 3, 1, 0],
            Format::Fyxb => [1, 2, 3, 0],
        }
    }
    /// Whether tensors lie as models have them, so that nothing is to be moved.
    pub fn is_plain(self) -> bool {
        self.order() == [0, 1, 2, 3]
    }
}

/// A tensor of a kernel: sizes, what lies around them, order and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLayout {
    /// Sizes in the order B, F, Y, X; more than four only where the order is plain.
    pub dims: Vec<usize>,
    /// Elements before each axis.
    pub lower: Vec<usize>,
    /// Elements behind each axis.
    pub upper: Vec<usize>,
    /// Order in memory.
    pub format: Format,
    /// Type of the elements.
    pub ty: ElementType,
}

impl TensorLayout {
    /// Of a shape, with ones behind it up to four axes and nothing around it.
    pub fn new(shape: &[usize], format: Format, ty: ElementType) -> Result<TensorLayout> {
        let mut dims = shape.to_vec();
        dims.resize(shape.len().max(4), 1);
        if dims.len() > 4 && !format.is_plain() {
            return Err(Error::unsupported(format!(
                "format {} is for tensors of up to 4 axes, found {shape:?}",
                format.name()
            )));
        }
        let none = vec![0; dims.len()];
        Ok(TensorLayout { dims, lower: none.clone(), upper: none, format, ty })
    }
    fn padded(&self) -> Vec<usize> {
        let around = self.lower.iter().zip(&self.upper);
        self.dims.iter().zip(around).map(|(d, (l, u))| d.saturating_add(l.saturating_add(*u))).collect()
    }
    // Axes from the outermost in memory to the innermost.
    fn order(&self) -> Vec<usize> {
        if self.dims.len() == 4 { self.format.order().to_vec() } else { (0..self.dims.len()).collect() }
    }
    /// Elements from one to the next along each axis, in the order B, F, Y, X.
    pub fn pitches(&self) -> Vec<usize> {
        let padded = self.padded();
        let mut pitches = vec![0; self.dims.len()];
        let mut step = 1usize;
        for axis in self.order().into_iter().rev() {
            pitches[axis] = step;
            step = step.saturating_mul(padded[axis]);
        }
        pitches
    }
    /// Elements before the first valid one.
    pub fn offset(&self) -> usize {
        let steps = self.pitches();
        steps.iter().zip(&self.lower).fold(0, |sum: usize, (p, l)| sum.saturating_add(p.saturating_mul(*l)))
    }
    /// Type of the elements in OpenCL C.
    pub fn c_type(&self) -> Result<&'static str> {
        c_type(self.ty).ok_or_else(|| {
            Error::unsupported(format!(
                "a custom kernel takes tensors of i8, u8, i32, i64, f16 and f32, found {}",
                self.ty
            ))
        })
    }
}

/// Type of OpenCL C for an element type; `None` for those that no kernel takes.
pub fn c_type(ty: ElementType) -> Option<&'static str> {
    Some(match ty {
        ElementType::I8 => "char",
        ElementType::U8 | ElementType::Boolean => "uchar",
        ElementType::I32 => "int",
        ElementType::I64 => "long",
        ElementType::F16 => "half",
        ElementType::F32 => "float",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(format: Format) -> TensorLayout {
        TensorLayout::new(&[2, 3, 5, 7], format, ElementType::F32).unwrap()
    }

    #[test]
    fn pitches_follow_the_order_in_memory() {
        assert_eq!(layout(Format::Bfyx).pitches(), [105, 35, 7, 1]);
        assert_eq!(layout(Format::Byxf).pitches(), [105, 1, 21, 3]);
        assert_eq!(layout(Format::Yxfb).pitches(), [1, 2, 42, 6]);
        assert_eq!(layout(Format::Fyxb).pitches(), [1, 70, 14, 2]);
        assert_eq!(layout(Format::Any), TensorLayout { format: Format::Any, ..layout(Format::Bfyx) });
    }

    #[test]
    fn padding_is_part_of_pitches_and_offset() {
        let mut padded = layout(Format::Bfyx);
        (padded.lower, padded.upper) = (vec![0, 0, 1, 2], vec![0, 0, 1, 3]);
        assert_eq!((padded.pitches(), padded.offset()), (vec![252, 84, 12, 1], 14));
        padded.format = Format::Byxf;
        assert_eq!((padded.pitches(), padded.offset()), (vec![252, 1, 36, 3], 42));
    }

    #[test]
    fn short_shapes_get_ones_behind_them() {
        let two = TensorLayout::new(&[4, 6], Format::Byxf, ElementType::F16).unwrap();
        assert_eq!((two.dims.clone(), two.pitches()), (vec![4, 6, 1, 1], vec![6, 1, 6, 6]));
        assert_eq!(two.c_type().unwrap(), "half");
    }

    #[test]
    fn five_axes_lie_plainly_or_not_at_all() {
        let five = TensorLayout::new(&[1, 2, 3, 4, 5], Format::Bfyx, ElementType::I32).unwrap();
        assert_eq!(five.pitches(), [120, 60, 20, 5, 1]);
        let e = TensorLayout::new(&[1, 2, 3, 4, 5], Format::Yxfb, ElementType::I32).unwrap_err();
        assert_eq!(e.to_string(), "format YXFB is for tensors of up to 4 axes, found [1, 2, 3, 4, 5]");
    }

    #[test]
    fn formats_of_the_gpu_are_in_one_case_and_those_of_the_vpu_in_any() {
        assert_eq!((Format::of_gpu("BYXF").unwrap(), Format::of_gpu("yxfb").unwrap()), (Format::Byxf, Format::Yxfb));
        assert!(Format::of_gpu("Bfyx").unwrap_err().to_string().ends_with("found `Bfyx`"));
        assert!(Format::of_gpu("NCHW").is_err());
        assert_eq!((Format::of_vpu("yXf").unwrap(), Format::of_vpu("bf").unwrap()), (Format::Byxf, Format::Bfyx));
        assert!(Format::of_vpu("BFXY").is_err());
    }

    #[test]
    fn a_type_without_a_name_in_opencl_is_refused() {
        let e = TensorLayout::new(&[1], Format::Bfyx, ElementType::String).unwrap().c_type().unwrap_err();
        assert!(e.to_string().contains("found string"), "{e}");
    }
}
