//! From stored colours to red, green and blue, with libjpeg's tables of 16 bits behind the point.

use super::Frame;

/// What the components are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Model {
    Grey,
    Rgb,
    /// Brightness and two differences of colour.
    Ycc,
    Cmyk,
    /// Cyan, magenta and yellow as brightness and differences, and black.
    Ycck,
}

/// What the components are, by libjpeg's order of witnesses: JFIF, Adobe, the names of the components.
pub(super) fn model(frame: &Frame, jfif: bool, adobe: Option<u8>) -> Model {
    let ids: Vec<u8> = frame.components.iter().map(|c| c.id).collect();
    match (&ids[..], adobe) {
        ([_], _) => Model::Grey,
        ([_, _, _], _) if jfif => Model::Ycc,
        ([_, _, _], Some(0)) | ([b'R', b'G', b'B'], None) => Model::Rgb,
        ([_, _, _], _) => Model::Ycc,
        (_, Some(2)) => Model::Ycck,
        _ => Model::Cmyk,
    }
}

/// Fills `out` with rows of 1 or 3 channels.
pub(super) fn convert(model: Model, planes: &[Vec<u8>], out: &mut [u8]) {
    let pixels = || (0..planes[0].len()).map(|i| std::array::from_fn(|c| planes.get(c).map_or(0, |p| p[i])));
    let out = match model {
        Model::Grey => return out.copy_from_slice(&planes[0]),
        _ => out.as_chunks_mut::<3>().0.iter_mut(),
    };
    match model {
        Model::Grey => {}
        Model::Rgb => out.zip(pixels()).for_each(|(to, [r, g, b, _]): (_, [u8; 4])| *to = [r, g, b]),
        Model::Ycc => out.zip(pixels()).for_each(|(to, [y, cb, cr, _])| *to = rgb(y, cb, cr)),
        // Inks are stored as what is left of the paper's light.
        Model::Cmyk => out.zip(pixels()).for_each(|(to, [c, m, y, k])| *to = lit([c, m, y].map(|v| 255 - v), 255 - k)),
        Model::Ycck => out.zip(pixels()).for_each(|(to, [y, cb, cr, k])| *to = lit(rgb(y, cb, cr), 255 - k)),
    }
}

fn fixed(x: f64) -> i32 {
    (x * 65536.0 + 0.5) as i32
}

fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((fixed(1.402) * cr + HALF) >> 16);
    let green = y + ((-fixed(0.344_14) * cb - fixed(0.714_14) * cr + HALF) >> 16);
    let blue = y + ((fixed(1.772) * cb + HALF) >> 16);
    [red, green, blue].map(|v| v.clamp(0, 255) as u8)
}

/// Cyan, magenta and yellow under a light that black takes its part of.
fn lit(inks: [u8; 3], black: u8) -> [u8; 3] {
    let light = 255 - u32::from(black);
    inks.map(|ink| {
        let part = u32::from(ink) * light + 128;
        (light - ((part + (part >> 8)) >> 8)) as u8
    })
}
