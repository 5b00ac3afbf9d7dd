//! Shapes of the data that is measured with: what `-data_shape` says, and what is taken where nobody says anything.

use carafe::preprocess::Layout;
use carafe::{Dim, Error, Model, PartialShape, Port, Result};

/// Sizes of pictures that nobody gave: networks halve them five to seven times.
const PICTURE: i64 = 256;

/// A whole shape for a partial one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuessedShape {
    /// The sizes.
    pub shape: Vec<usize>,
    /// Whether any of them was not known.
    pub guessed: bool,
}

/// Sizes for the axes that a shape leaves open: 1, or the least allowed; for pictures (four axes, 1 or 3 channels in the second or
/// the last) heights and widths of 256, or the nearest multiple of 32 that is allowed. `None` when the rank is not known.
pub fn guess_shape(shape: &PartialShape) -> Option<GuessedShape> {
    let dims = shape.dims()?;
    let is_channels = |axis: usize| dims.get(axis).and_then(|d| d.get()).is_some_and(|n| n == 1 || n == 3);
    let pictured: &[usize] = match dims.len() {
        4 if is_channels(1) => &[2, 3],
        4 if is_channels(3) => &[1, 2],
        _ => &[],
    };
    let size = |(axis, d): (usize, &Dim)| match d.size() {
        Some(n) => n,
        None if pictured.contains(&axis) => picture_size(*d),
        None => d.min().max(1) as usize,
    };
    let sizes = dims.iter().enumerate().map(size).collect();
    Some(GuessedShape { shape: sizes, guessed: !shape.is_static() })
}

fn picture_size(d: Dim) -> usize {
    const STEP: i64 = 32;
    let (min, max) = (d.min().max(1), d.max().unwrap_or(i64::MAX));
    let near = PICTURE.clamp(min, max);
    let (below, above) = (near - near % STEP, near + (STEP - near % STEP) % STEP);
    let fits = [above, below].into_iter().find(|n| (min..=max).contains(n) && *n > 0);
    fits.unwrap_or(near) as usize
}

/// Reads `NAME[1,3,224,224][1,3,448,448],OTHER[1,4]`, or shapes without a name for every input: the shapes of each input, in its
/// order; none for an input that is not named.
pub fn data_shapes(text: &str, ports: &[Port]) -> Result<Vec<Vec<Vec<usize>>>> {
    let wrong =
        |why: String| Error::usage(format!("data shapes `{text}`: {why}; expected NAME[1,3,224,224][1,3,448,448]"));
    let mut all = vec![vec![]; ports.len()];
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, mut tail) = rest.split_once('[').ok_or_else(|| wrong("a `[` is missing".into()))?;
        let name = name.trim();
        let mut shapes = vec![];
        loop {
            let (inside, after) = tail.split_once(']').ok_or_else(|| wrong("a `]` is missing".into()))?;
            let sizes = inside.split(',').map(str::trim).filter(|s| !s.is_empty());
            let sizes: Vec<usize> =
                sizes.map(|s| s.parse().map_err(|_| wrong(format!("`{s}` is not a size")))).collect::<Result<_>>()?;
            shapes.push(sizes);
            tail = match after.trim_start().strip_prefix('[') {
                Some(more) => more,
                None => {
                    rest = after.trim_start();
                    break;
                }
            };
        }
        rest = match rest.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(wrong(format!("`{rest}` is left"))),
        };
        if name.is_empty() {
            all.iter_mut().for_each(|list| list.clone_from(&shapes));
            continue;
        }
        let at = ports.iter().position(|p| p.name == name || p.names.contains(name)).ok_or_else(|| {
            let known: Vec<&str> = ports.iter().map(|p| p.name.as_str()).collect();
            wrong(format!("the model has no input `{name}`, it has {}", known.join(", ")))
        })?;
        all[at] = shapes;
    }
    for (port, shapes) in ports.iter().zip(&all) {
        if let Some(bad) = shapes.iter().find(|s| !port.shape.accepts(s)) {
            return Err(wrong(format!("input `{}` is [{}] and does not take {bad:?}", port.name, port.shape)));
        }
    }
    Ok(all)
}

/// Samples in inputs of these shapes: the size of the batch axis where layouts name one, else of the first axis where all inputs of
/// two axes and more agree, else 1.
pub fn batch_of(model: &Model, shapes: &[Vec<usize>]) -> usize {
    let said = model.parameters().iter().zip(shapes).find_map(|(p, shape)| {
        let layout = Layout::of(model, (*p).into()).ok()??;
        shape.get(layout.axis("n", shape.len()).ok()??).copied()
    });
    let mut firsts = shapes.iter().filter(|s| s.len() >= 2).map(|s| s[0]);
    let same = firsts.next().filter(|n| firsts.all(|m| m == *n));
    said.or(same).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe::ElementType;

    fn guessed(text: &str) -> Vec<usize> {
        guess_shape(&text.parse().unwrap()).unwrap().shape
    }

    #[test]
    fn pictures_get_sizes_that_divide_by_32() {
        assert_eq!(guessed("?,3,?,?"), [1, 3, 256, 256]);
        assert_eq!(guessed("?,?,?,1"), [1, 256, 256, 1]);
        assert_eq!(guessed("2,3,48,?"), [2, 3, 48, 256]);
        assert_eq!(guessed("1,3,..200,300.."), [1, 3, 192, 320]);
        assert_eq!(guessed("1,3,10..20,?"), [1, 3, 20, 256]);
    }

    #[test]
    fn other_axes_get_the_least_size() {
        assert_eq!(guessed("?,?"), [1, 1]);
        assert_eq!(guessed("?,16,?,?"), [1, 16, 1, 1]);
        assert_eq!(guessed("4..,128"), [4, 128]);
        assert!(guess_shape(&PartialShape::dynamic()).is_none());
        assert!(!guess_shape(&"1,2".parse().unwrap()).unwrap().guessed);
    }

    fn ports() -> Vec<Port> {
        let port = |name: &str, shape: &str| Port {
            name: name.into(),
            names: Default::default(),
            ty: ElementType::F32,
            shape: shape.parse().unwrap(),
        };
        vec![port("a", "?,3"), port("b", "?")]
    }

    #[test]
    fn data_shapes_are_read_by_name_or_for_all() {
        assert_eq!(data_shapes("a[1,3][2,3], b[7]", &ports()).unwrap(), [vec![vec![1, 3], vec![2, 3]], vec![vec![7]]]);
        assert_eq!(data_shapes("b[7]", &ports()).unwrap(), [vec![], vec![vec![7]]]);
        assert_eq!(data_shapes("[5]", &ports()[1..]).unwrap(), [vec![vec![5]]]);
        assert_eq!(data_shapes("", &ports()).unwrap(), [vec![], Vec::<Vec<usize>>::new()]);
    }

    #[test]
    fn wrong_data_shapes_say_what_is_wrong() {
        for (text, part) in [
            ("a[1,3", "a `]` is missing"),
            ("a", "a `[` is missing"),
            ("a[1,x]", "`x` is not a size"),
            ("c[1]", "no input `c`, it has a, b"),
            ("a[1,4]", "input `a` is [?,3] and does not take [1, 4]"),
            ("a[1,3]b[1]", "`b[1]` is left"),
        ] {
            let message = data_shapes(text, &ports()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
