//! Products of matrices, as matrix products and convolutions have them: the launches of `kernels/gemm.cl` and `gemm_mma.cl`.

use super::ending::{Ending, table};
use super::tiles::{Method, Tile, Way, ranked};
use crate::backend::BuildCx;
use crate::launch::{Arg, Launch};
use crate::machine::ALIGNMENT;
use crate::programs::Source;
use crate::tuning;
use carafe_graph::Result;

const ROWS: Source = Source("rows.cl");
const READS: Source = Source("reads.cl");
const GEMM: Source = Source("gemm.cl");
const GEMM_MMA: Source = Source("gemm_mma.cl");
const GEMM_JOIN: Source = Source("gemm_join.cl");
const DEPTHWISE: Source = Source("depthwise.cl");

/// How the left operand lies.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// Rows that lie densely, so many elements apart.
    Rows(usize),
    /// Columns do.
    Columns(usize),
    /// The windows of an image.
    Image(Image),
}

/// Windows of an image, a row for each point of the result.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// As `kernels/rows.cl` counts them.
    pub(crate) numbers: [i32; 16],
    /// For each element of a window how far it is from the first one, in elements and in points.
    pub(crate) taps: Vec<[i32; 4]>,
    /// So many elements of a window lie together, again and again.
    pub(crate) dense: usize,
    /// Of a transposed convolution.
    pub(crate) backward: bool,
}

/// How the right operand lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Right {
    /// Elements from row to row.
    pub(crate) stride: usize,
    /// It lies as columns x depth, else as depth x columns.
    pub(crate) transposed: bool,
    /// Rows are there to their stride, whatever the number of columns.
    pub(crate) padded: bool,
}

/// A batch of products of one size.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) deep: usize,
    pub(crate) left: Left,
    pub(crate) right: Right,
    /// Elements from row to row of the result.
    pub(crate) out_stride: usize,
    /// Where the operands and the result of each begin, and its first column as the epilogue counts them.
    pub(crate) offsets: Vec<[i32; 4]>,
    /// Elements of the largest value that is read or written.
    pub(crate) largest: usize,
}

/// The launches of a product.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) launches: Vec<Launch>,
    /// Bytes of workspace.
    pub(crate) workspace: usize,
    /// For reports.
    pub(crate) name: String,
}

/// Places of the table behind the last tap: as many as the deepest tile has.
const BEHIND: usize = 64;
/// A point outside of every image.
const OUTSIDE: i32 = -(1 << 20);

fn multiple(numbers: impl IntoIterator<Item = usize>, of: usize) -> bool {
    numbers.into_iter().all(|n| n.is_multiple_of(of))
}

impl Product {
    fn begin(&self, operand: usize) -> impl Iterator<Item = usize> + '_ {
        self.offsets.iter().map(move |o| o[operand] as usize)
    }
    // Whether so many elements of an operand can be read at once.
    fn left_in(&self, width: usize) -> bool {
        let sizes = match &self.left {
            Left::Rows(stride) => vec![*stride, self.deep],
            Left::Columns(stride) => vec![*stride, self.rows],
            Left::Image(i) => {
                let strides = i.numbers[12..].iter().map(|&s| s as usize);
                strides.chain([i.dense]).collect()
            }
        };
        multiple(sizes.into_iter().chain(self.begin(0)), width)
    }
    fn right_in(&self, width: usize) -> bool {
        let length = match self.right {
            Right { transposed: true, .. } => self.deep,
            Right { padded: true, .. } => width,
            _ => self.columns,
        };
        multiple([self.right.stride, length].into_iter().chain(self.begin(1)), width)
    }
    fn result_in(&self, width: usize) -> bool {
        multiple([self.columns, self.out_stride].into_iter().chain(self.begin(2)), width)
    }

    fn method(&self, cx: &BuildCx) -> Method {
        let columns = matches!(self.left, Left::Columns(_));
        match () {
            _ if columns || !cx.machine.copies_ahead() => Method::Plain,
            _ if cx.half && self.left_in(8) && self.right_in(8) => Method::Tensor,
            _ if !cx.half && self.left_in(4) && self.right_in(4) && !self.right.transposed => Method::Ahead,
            _ => Method::Plain,
        }
    }

    /// The launches for these operands; `ending` is done with each element.
    pub(crate) fn launches(&self, cx: &BuildCx, operands: [Arg; 3], ending: &Ending) -> Result<Work> {
        self.launches_from(cx, operands, ending, 0)
    }

    /// The same in a step whose workspace is its own up to a byte.
    pub(crate) fn launches_from(
        &self,
        cx: &BuildCx,
        operands: [Arg; 3],
        ending: &Ending,
        start: usize,
    ) -> Result<Work> {
        let method = self.method(cx);
        let size = [self.rows, self.columns, self.deep];
        let ways = ranked(cx.machine.info(), method, size, self.offsets.len());
        let work = |way: &Way| self.work(cx, method, *way, operands.clone(), ending, start);
        // All that the time depends on; sizes of images hardly do.
        let form = match &self.left {
            Left::Rows(_) => "rows".into(),
            Left::Columns(_) => "columns".into(),
            Left::Image(i) => format!("image{}{}", i.dense, if i.backward { "b" } else { "" }),
        };
        let key = format!("{method:?} {size:?} {} {form} {} {}", self.offsets.len(), self.right.transposed, cx.half);
        let name = |(t, s): &Way| format!("{}x{}x{} {}x{} {s}", t.m, t.n, t.k, t.by[0], t.by[1]);
        let launches = |way: &Way| work(way).map(|w| w.launches);
        let chosen = tuning::choose(cx, &key, &ways, 4 * self.largest, name, launches)?;
        work(&chosen.unwrap_or(ways[0]))
    }

    // The launches with a tile and a number of parts.
    fn work(
        &self,
        cx: &BuildCx,
        method: Method,
        (tile, splits): Way,
        operands: [Arg; 3],
        ending: &Ending,
        start: usize,
    ) -> Result<Work> {
        let batch = self.offsets.len();
        let depth = self.deep.div_ceil(splits).next_multiple_of(tile.k);
        let splits = self.deep.div_ceil(depth);
        let [a, b, c] = operands;
        let offsets = table(cx, "offsets", self.offsets.as_flattened())?;
        let bytes = 4 * self.rows * self.columns * batch * splits;
        let parts = || Arg::Workspace(start, bytes);
        let (to, nothing) = (if splits > 1 { parts() } else { c.clone() }, Ending::none());
        let own = if splits > 1 { &nothing } else { ending };
        let kernel = self.kernel(cx, method, &tile, splits > 1, own)?;
        let (left_stride, taps, image) = self.left_args(cx, method, &offsets)?;
        let numbers =
            [self.rows, self.columns, self.deep, left_stride, self.right.stride, self.out_stride, splits, depth];
        let mut args = vec![a, b, to];
        args.extend(numbers.map(Arg::from));
        args.extend([offsets.clone(), taps, image]);
        args.extend(own.args.iter().cloned());
        let items = tile.items(method);
        let global = [self.columns.div_ceil(tile.n) * items, self.rows.div_ceil(tile.m), batch * splits];
        let mut launches = vec![Launch { kernel, args, global, local: Some([items, 1, 1]) }];
        if splits > 1 {
            let source = format!("{}{}", ending.source, GEMM_JOIN.text());
            let kernel = cx.generated("gemm_join.cl", &source, "gemm_join", &[])?;
            let mut args = vec![parts(), c];
            args.extend([self.rows, self.columns, self.out_stride, splits].map(Arg::from));
            args.push(offsets);
            args.extend(ending.args.iter().cloned());
            launches.push(Launch::plane(&kernel, args, [self.columns, self.rows, batch], cx.group()));
        }
        let how = match method {
            Method::Plain => "",
            Method::Ahead => "_ahead",
            Method::Tensor => "_tensor",
        };
        let mut name = format!("{how}_{}x{}x{}", tile.m, tile.n, tile.k);
        if splits > 1 {
            name += &format!("_k{splits}");
        }
        name += &ending.name;
        Ok(Work { launches, workspace: if splits > 1 { bytes.next_multiple_of(ALIGNMENT) } else { 0 }, name })
    }

    fn kernel(
        &self,
        cx: &BuildCx,
        method: Method,
        tile: &Tile,
        parts: bool,
        ending: &Ending,
    ) -> Result<std::sync::Arc<crate::programs::KernelCode>> {
        let tensor = method == Method::Tensor;
        let (width, [by_m, by_n]) = (if tensor { 8 } else { 4 }, tile.by);
        let form = match &self.left {
            Left::Rows(_) => 0,
            Left::Columns(_) => 1,
            Left::Image(_) => 2,
        };
        let backward = matches!(&self.left, Left::Image(i) if i.backward);
        let names = if tensor { ["WARPS_M", "WARPS_N"] } else { ["WM", "WN"] };
        let stages = if method == Method::Plain { 2 } else { tile.stages };
        let macros = [
            ("TM", tile.m),
            ("TN", tile.n),
            ("TK", tile.k),
            (names[0], by_m),
            (names[1], by_n),
            ("STAGES", stages),
            ("ASYNC", usize::from(method == Method::Ahead)),
            ("A_FORM", form),
            ("BACKWARD", usize::from(backward)),
            ("A_WIDE", usize::from(self.left_in(width))),
            ("B_ROWS", usize::from(self.right.transposed)),
            ("B_WIDE", usize::from(self.right_in(width))),
            ("C_WIDE", usize::from(self.result_in(if tensor { 2 } else { 4 }))),
            ("PARTS", usize::from(parts)),
        ]
        .map(|(name, value)| (name, value.to_string()));
        let body = if tensor { GEMM_MMA } else { GEMM };
        let source = [&ending.source, ROWS.text(), READS.text(), body.text()].concat();
        cx.generated(if tensor { "gemm_mma.cl" } else { "gemm.cl" }, &source, "gemm", &macros)
    }

    // The stride of the left operand, its taps, and the numbers of the image.
    fn left_args(&self, cx: &BuildCx, method: Method, nothing: &Arg) -> Result<(usize, Arg, Arg)> {
        match &self.left {
            Left::Rows(stride) | Left::Columns(stride) => Ok((*stride, nothing.clone(), Arg::Value(vec![0; 64]))),
            Left::Image(image) => {
                let width = if method == Method::Tensor { 8 } else { 4 };
                let step = if self.left_in(width) { width } else { 1 };
                Ok((0, image.table(cx, step)?, image.value()))
            }
        }
    }
}

impl Image {
    // Every `step`-th tap, with places behind the last.
    fn table(&self, cx: &BuildCx, step: usize) -> Result<Arg> {
        let behind = std::iter::repeat_n([0, OUTSIDE, 0, 0], BEHIND);
        let taps: Vec<[i32; 4]> = self.taps.iter().copied().chain(behind).step_by(step).collect();
        table(cx, "taps", taps.as_flattened())
    }
    fn value(&self) -> Arg {
        Arg::Value(self.numbers.iter().flat_map(|n| n.to_ne_bytes()).collect())
    }

    /// Every channel by filters of its own: `taps` has one element of each channel. Filters lie as taps x columns, as f32.
    pub(crate) fn depthwise(
        &self,
        cx: &BuildCx,
        operands: [Arg; 3],
        [rows, columns, multiple]: [usize; 3],
        ending: &Ending,
    ) -> Result<Launch> {
        let macros = [("A_FORM", "2".to_string()), ("BACKWARD", usize::from(self.backward).to_string())];
        let source = [&ending.source, ROWS.text(), DEPTHWISE.text()].concat();
        let kernel = cx.generated("depthwise.cl", &source, "depthwise", &macros)?;
        let mut args = operands.to_vec();
        args.extend([rows, columns, self.taps.len(), multiple].map(Arg::from));
        args.extend([self.table(cx, 1)?, self.value()]);
        args.extend(ending.args.iter().cloned());
        Ok(Launch::plane(&kernel, args, [columns, rows, 1], cx.group()))
    }
}
