//! Which element of each input meets which of the output: shapes aligned at their last axis, where a 1 repeats. Axes that
//! can be walked as one are joined, so most cases become one or two loops.

/// Loops over an output and the steps of each input along them.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    /// Joined dimensions of the output, at least two.
    dims: Vec<usize>,
    /// For each input, its step along every one of `dims`.
    steps: Vec<Vec<usize>>,
    /// The same of the output, and how far it reaches.
    out_steps: Vec<usize>,
    out_len: usize,
    /// How many elements each input has, or at least must have.
    lens: Vec<usize>,
    len: usize,
}

impl Broadcast {
    /// Panics when a shape does not stretch to the output.
    pub fn new(out: &[usize], inputs: &[&[usize]]) -> Broadcast {
        let steps = inputs.iter().map(|dims| numpy_steps(out, dims)).collect();
        Broadcast::with_steps(out, steps)
    }

    /// The same where the rows of arrays lie apart: elements from row to row of each input and of the output, 0 where they
    /// lie together. A row is the last axis of its array.
    pub fn with_pitches(out: &[usize], inputs: &[&[usize]], pitches: &[usize], out_pitch: usize) -> Broadcast {
        let steps =
            inputs.iter().zip(pitches).map(|(dims, &pitch)| apart(numpy_steps(out, dims), dims, pitch)).collect();
        Broadcast::with_all_steps(out, steps, apart(dense_steps(out), out, out_pitch))
    }

    /// With the step of each input along every axis of the output, in elements: transposed and cut arrays too.
    pub fn with_steps(out: &[usize], steps: Vec<Vec<usize>>) -> Broadcast {
        Broadcast::with_all_steps(out, steps, dense_steps(out))
    }

    fn with_all_steps(out: &[usize], mut steps: Vec<Vec<usize>>, out_steps: Vec<usize>) -> Broadcast {
        // The output joins its axes as an input does.
        steps.push(out_steps);
        assert!(steps.iter().all(|s| s.len() == out.len()), "a step for every axis");
        let len = out.iter().product();
        let lens = steps
            .iter()
            .map(|s| if len == 0 { 0 } else { 1 + out.iter().zip(s).map(|(n, s)| (n - 1) * s).sum::<usize>() });
        let mut lens: Vec<usize> = lens.collect();
        // From the last axis on: either it continues the loop within, or it is one of its own.
        let mut dims: Vec<usize> = vec![];
        let mut joined: Vec<Vec<usize>> = vec![vec![]; steps.len()];
        for axis in (0..out.len()).rev().filter(|&axis| out[axis] != 1) {
            let continues = dims.last().is_some_and(|&inner| {
                steps.iter().zip(&joined).all(|(s, j)| j.last().is_some_and(|&step| s[axis] == step * inner))
            });
            if continues {
                *dims.last_mut().expect("checked above") *= out[axis];
            } else {
                dims.push(out[axis]);
                joined.iter_mut().zip(&steps).for_each(|(j, s)| j.push(s[axis]));
            }
        }
        while dims.len() < 2 {
            dims.push(1);
            joined.iter_mut().for_each(|j| j.push(0));
        }
        dims.reverse();
        joined.iter_mut().for_each(|j| j.reverse());
        let out_steps = joined.pop().unwrap_or_default();
        let out_len = lens.pop().unwrap_or_default();
        Broadcast { dims, steps: joined, out_steps, out_len, lens, len }
    }

    /// Elements of the output.
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Elements the array of the output has, with what lies between its rows.
    pub fn out_len(&self) -> usize {
        self.out_len
    }
    /// Whether nothing lies between the rows of the output.
    pub(crate) fn out_is_dense(&self) -> bool {
        self.out_len == self.len
    }
    /// Steps of the output from row to row and from column to column.
    pub(crate) fn out_inner_steps(&self) -> (usize, usize) {
        (self.out_steps[self.out_steps.len() - 2], self.out_steps[self.out_steps.len() - 1])
    }
    /// Where the output begins for turn `outer` of the outer loops.
    pub(crate) fn out_offset(&self, outer: usize) -> usize {
        self.offset_of(&self.out_steps, outer)
    }
    /// Elements an input must at least have.
    pub fn input_len(&self, input: usize) -> usize {
        self.lens[input]
    }
    pub fn inputs(&self) -> usize {
        self.steps.len()
    }
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }
    /// Whether an input lies exactly as the output does.
    pub(crate) fn is_dense(&self, input: usize) -> bool {
        let mut step = 1;
        self.dims.iter().zip(&self.steps[input]).rev().all(|(&n, &s)| {
            let fits = n == 1 || s == step;
            step *= n;
            fits
        })
    }
    /// After how many elements of the output an input begins again; 0 for never.
    pub(crate) fn period(&self, input: usize) -> usize {
        let repeated = self.steps[input].iter().take_while(|&&s| s == 0).count();
        if repeated == 0 { 0 } else { self.dims[repeated..].iter().product() }
    }
    /// Writes what meets elements `start..start + n` of the output to `to`.
    ///
    /// # Safety
    /// The input at `from` is as long as [`Broadcast::input_len`] says; `n` floats can be written at `to`.
    pub(crate) unsafe fn lay_out<T: Copy>(&self, input: usize, from: *const T, start: usize, to: *mut T, n: usize) {
        let (steps, last) = (&self.steps[input][..], self.dims.len() - 1);
        let (columns, step) = (self.dims[last], steps[last]);
        // Where the row lies: an index for each loop but the last, counted up like an odometer.
        let mut index = [0; 16];
        let (mut rest, mut at) = (start / columns, 0);
        for axis in (0..last).rev() {
            index[axis] = rest % self.dims[axis];
            at += index[axis] * steps[axis];
            rest /= self.dims[axis];
        }
        let (mut done, mut column) = (0, start % columns);
        while done < n {
            let width = (columns - column).min(n - done);
            // SAFETY: the indices are inside of the shape, so what they point at is inside of the input.
            unsafe {
                let row = from.add(at + column * step);
                if step == 0 {
                    let x = *row;
                    (0..width).for_each(|c| *to.add(done + c) = x);
                } else {
                    (0..width).for_each(|c| *to.add(done + c) = *row.add(c * step));
                }
            }
            done += width;
            column = 0;
            for axis in (0..last).rev() {
                index[axis] += 1;
                at += steps[axis];
                if index[axis] < self.dims[axis] {
                    break;
                }
                at -= index[axis] * steps[axis];
                index[axis] = 0;
            }
        }
    }
    /// Rows and columns of the two inner loops.
    pub(crate) fn inner(&self) -> (usize, usize) {
        let n = self.dims.len();
        (self.dims[n - 2], self.dims[n - 1])
    }
    /// How often the two inner loops run.
    pub(crate) fn outer(&self) -> usize {
        self.dims[..self.dims.len() - 2].iter().product()
    }
    /// Steps of an input from row to row and from column to column.
    pub(crate) fn inner_steps(&self, input: usize) -> (usize, usize) {
        let steps = &self.steps[input];
        (steps[steps.len() - 2], steps[steps.len() - 1])
    }
    /// Where an input begins for turn `outer` of the outer loops.
    pub(crate) fn offset(&self, input: usize, outer: usize) -> usize {
        self.offset_of(&self.steps[input], outer)
    }
    fn offset_of(&self, steps: &[usize], outer: usize) -> usize {
        let n = self.dims.len() - 2;
        let (mut rest, mut at) = (outer, 0);
        for axis in (0..n).rev() {
            at += rest % self.dims[axis] * steps[axis];
            rest /= self.dims[axis];
        }
        at
    }
}

fn dense_steps(out: &[usize]) -> Vec<usize> {
    let mut steps = vec![0; out.len()];
    let mut step = 1;
    for (slot, n) in steps.iter_mut().zip(out).rev() {
        *slot = step;
        step *= n;
    }
    steps
}

// Steps over an array of `dims` whose rows lie `pitch` elements apart.
fn apart(mut steps: Vec<usize>, dims: &[usize], pitch: usize) -> Vec<usize> {
    let (Some(&row), true) = (dims.last(), pitch > 0) else { return steps };
    assert!(pitch >= row, "rows of {row} elements overlap at {pitch}");
    let last = steps.len() - 1;
    steps[..last].iter_mut().for_each(|s| *s = *s / row.max(1) * pitch);
    steps
}

fn numpy_steps(out: &[usize], dims: &[usize]) -> Vec<usize> {
    assert!(dims.len() <= out.len(), "shape {dims:?} has more axes than {out:?}");
    let mut steps = vec![0; out.len()];
    let mut step = 1;
    for (axis, &n) in dims.iter().enumerate().rev() {
        let at = axis + out.len() - dims.len();
        assert!(n == 1 || n == out[at], "shape {dims:?} does not stretch to {out:?}");
        if n != 1 {
            steps[at] = step;
        }
        step *= n;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(out: &[usize], inputs: &[&[usize]]) -> (Vec<usize>, Vec<Vec<usize>>) {
        let b = Broadcast::new(out, inputs);
        (b.dims, b.steps)
    }

    #[test]
    fn equal_shapes_are_one_loop() {
        assert_eq!(loops(&[2, 3, 4], &[&[2, 3, 4], &[]]), (vec![1, 24], vec![vec![0, 1], vec![0, 0]]));
    }

    #[test]
    fn a_vector_of_channels_makes_two_loops() {
        assert_eq!(loops(&[2, 3, 4], &[&[2, 3, 4], &[4]]), (vec![6, 4], vec![vec![4, 1], vec![0, 1]]));
        assert_eq!(loops(&[2, 3, 4], &[&[2, 3, 4], &[2, 1, 1]]), (vec![2, 12], vec![vec![12, 1], vec![1, 0]]));
    }

    #[test]
    fn a_middle_axis_makes_three() {
        let (dims, steps) = loops(&[2, 3, 4], &[&[2, 3, 4], &[3, 1]]);
        assert_eq!((dims, steps), (vec![2, 3, 4], vec![vec![12, 4, 1], vec![0, 1, 0]]));
    }

    #[test]
    fn rows_apart_are_loops_of_their_own() {
        let b = Broadcast::with_pitches(&[2, 3, 4], &[&[2, 3, 4], &[4]], &[10, 0], 0);
        assert_eq!((b.dims.clone(), b.steps.clone()), (vec![6, 4], vec![vec![10, 1], vec![0, 1]]));
        assert_eq!((b.input_len(0), b.out_len(), b.len()), (54, 24, 24));
        let b = Broadcast::with_pitches(&[2, 3, 4], &[&[2, 3, 4]], &[0], 8);
        assert_eq!((b.dims.clone(), b.out_inner_steps(), b.out_len()), (vec![6, 4], (8, 1), 44));
    }

    #[test]
    fn ones_of_the_output_vanish() {
        assert_eq!(loops(&[1, 5, 1], &[&[1, 5, 1]]), (vec![1, 5], vec![vec![0, 1]]));
        assert_eq!(Broadcast::new(&[], &[&[]]).len(), 1);
        assert_eq!(Broadcast::new(&[0, 3], &[&[1, 3]]).input_len(0), 0);
    }
}
