//! One dimension, or one partially known integer, as an interval with an optional symbol.
//! The type also holds negative values (a -1 in a Reshape pattern); only [`Dim::clamp_shape`] makes it a dimension again.

use std::fmt;
use std::str::FromStr;

use crate::TensorError;

/// A name for an unknown: two dimensions with the same symbol are equal at run time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(pub u32);

/// An interval of integers, both ends included. Two intervals are `==` only when their symbols are too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    /// `NO_MIN` stands for unbounded below.
    min: i64,
    /// `NO_MAX` stands for unbounded above.
    max: i64,
    symbol: Option<Symbol>,
}

const NO_MIN: i64 = i64::MIN;
const NO_MAX: i64 = i64::MAX;

// Interval results are partial and may drop symbols, so operators would promise more than these methods do.
#[allow(clippy::should_implement_trait)]
impl Dim {
    /// Any dimension: `0..`.
    pub const ANY: Dim = Dim { min: 0, max: NO_MAX, symbol: None };

    /// Exactly this number.
    pub const fn known(n: i64) -> Dim {
        Dim { min: n, max: n, symbol: None }
    }

    /// From `min` to `max`, both included; `None` is unbounded. A `max` below `min` is raised to `min`.
    pub fn range(min: i64, max: Option<i64>) -> Dim {
        Dim { min, max: max.unwrap_or(NO_MAX).max(min), symbol: None }
    }

    /// The same interval under a name.
    pub fn with_symbol(self, s: Symbol) -> Dim {
        Dim { symbol: Some(s), ..self }
    }

    /// Its name, if it has one.
    pub fn symbol(self) -> Option<Symbol> {
        self.symbol
    }

    /// The lower end; `i64::MIN` when unbounded below, which only value arithmetic gives.
    pub fn min(self) -> i64 {
        self.min
    }

    /// The upper end; `None` when unbounded.
    pub fn max(self) -> Option<i64> {
        (self.max != NO_MAX).then_some(self.max)
    }

    /// The value, when only one is possible.
    pub fn get(self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }

    /// The value as a size; `None` when unknown or negative.
    pub fn size(self) -> Option<usize> {
        usize::try_from(self.get()?).ok()
    }

    /// Whether it is a single number.
    pub fn is_known(self) -> bool {
        self.min == self.max
    }

    /// The interval of the sums.
    pub fn add(self, o: Dim) -> Dim {
        match (self.get(), o.get()) {
            (Some(a), Some(b)) => Dim::known(a.saturating_add(b)),
            (_, Some(0)) => self,
            (Some(0), _) => o,
            _ => Dim { min: add_low(self.min, o.min), max: add_high(self.max, o.max), symbol: None },
        }
    }

    /// May go below zero.
    pub fn sub(self, o: Dim) -> Dim {
        match (self.get(), o.get()) {
            (Some(a), Some(b)) => Dim::known(a.saturating_sub(b)),
            (_, Some(0)) => self,
            _ => Dim { min: add_low(self.min, negate(o.max)), max: add_high(self.max, negate(o.min)), symbol: None },
        }
    }

    /// The interval of the products.
    pub fn mul(self, o: Dim) -> Dim {
        match (self.get(), o.get()) {
            (Some(a), Some(b)) => Dim::known(a.saturating_mul(b)),
            (_, Some(1)) => self,
            (Some(1), _) => o,
            _ => {
                // Saturation keeps an unbounded end unbounded, and 0 times unbounded is 0.
                let corners = [(self.min, o.min), (self.min, o.max), (self.max, o.min), (self.max, o.max)]
                    .map(|(a, b)| a.saturating_mul(b));
                Dim { min: corners.into_iter().min().unwrap(), max: corners.into_iter().max().unwrap(), symbol: None }
            }
        }
    }

    /// Divides and rounds down. Division by zero gives a fully unknown value.
    pub fn floor_div(self, d: i64) -> Dim {
        self.divide(d, |a, b| {
            let quotient = a.saturating_div(b);
            if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
        })
    }

    /// Divides and rounds up. Division by zero gives a fully unknown value.
    pub fn ceil_div(self, d: i64) -> Dim {
        self.divide(d, |a, b| {
            let quotient = a.saturating_div(b);
            if a % b != 0 && (a < 0) == (b < 0) { quotient + 1 } else { quotient }
        })
    }

    fn divide(self, d: i64, round: impl Fn(i64, i64) -> i64) -> Dim {
        match (self.get(), d) {
            (_, 0) => Dim { min: NO_MIN, max: NO_MAX, symbol: None },
            (_, 1) => self,
            // i64::MIN / -1 is the only overflow; -d is handled as negation.
            (_, -1) => Dim::known(0).sub(Dim { symbol: None, ..self }),
            (Some(a), _) => Dim::known(round(a, d)),
            _ => {
                let end = |end: i64| match end {
                    NO_MIN | NO_MAX if d > 0 => end,
                    NO_MIN => NO_MAX,
                    NO_MAX => NO_MIN,
                    _ => round(end, d),
                };
                let (a, b) = (end(self.min), end(self.max));
                Dim { min: a.min(b), max: a.max(b), symbol: None }
            }
        }
    }

    /// The remainder with the sign of the dividend, as `%` of Rust and C. By zero it is fully unknown.
    pub fn rem(self, d: i64) -> Dim {
        if d == 0 {
            return Dim { min: NO_MIN, max: NO_MAX, symbol: None };
        }
        if let Some(a) = self.get() {
            return Dim::known(a.wrapping_rem(d));
        }
        let largest = i64::try_from(d.unsigned_abs() - 1).unwrap_or(i64::MAX);
        if self.min >= -largest && self.max <= largest {
            return self;
        }
        let min = if self.min >= 0 { 0 } else { -largest };
        let max = if self.max <= 0 { 0 } else { largest };
        Dim { min, max, symbol: None }
    }

    /// The smaller of two values.
    pub fn min_of(self, o: Dim) -> Dim {
        if self.max <= o.min {
            self
        } else if o.max <= self.min {
            o
        } else {
            Dim { min: self.min.min(o.min), max: self.max.min(o.max), symbol: self.shared_symbol(o) }
        }
    }

    /// The larger of two values.
    pub fn max_of(self, o: Dim) -> Dim {
        if self.min >= o.max {
            self
        } else if o.min >= self.max {
            o
        } else {
            Dim { min: self.min.max(o.min), max: self.max.max(o.max), symbol: self.shared_symbol(o) }
        }
    }

    fn shared_symbol(self, o: Dim) -> Option<Symbol> {
        self.symbol.filter(|_| self.symbol == o.symbol)
    }

    /// Both at once: the intersection, `None` when empty. The symbol of `self` wins over that of `o`.
    pub fn merge(self, o: Dim) -> Option<Dim> {
        let (min, max) = (self.min.max(o.min), self.max.min(o.max));
        (min <= max).then_some(Dim { min, max, symbol: self.symbol.or(o.symbol) })
    }

    /// The numpy rule, where a 1 stretches to the other. When both could be 1 the result is bounded as in OpenVINO:
    /// from the smaller lower end to the larger upper end.
    pub fn broadcast(self, o: Dim) -> Option<Dim> {
        if self.symbol.is_some() && self.symbol == o.symbol {
            return self.merge(o);
        }
        match (self.contains(1), o.contains(1)) {
            _ if o.get() == Some(1) => Some(self),
            _ if self.get() == Some(1) => Some(o),
            (true, true) => Some(Dim { min: self.min.min(o.min), max: self.max.max(o.max), symbol: None }),
            (true, false) => Some(o),
            (false, true) => Some(self),
            (false, false) => self.merge(o),
        }
    }

    /// True when some value is in both.
    pub fn compatible(self, o: Dim) -> bool {
        self.merge(o).is_some()
    }

    /// Whether the number lies in the interval.
    pub fn contains(self, n: i64) -> bool {
        self.min <= n && n <= self.max
    }

    /// The part that can be a dimension: the intersection with `0..`, and 0 when there is none.
    pub fn clamp_shape(self) -> Dim {
        Dim { min: self.min.max(0), max: self.max.max(0), symbol: self.symbol }
    }
}

fn add_low(a: i64, b: i64) -> i64 {
    if a == NO_MIN || b == NO_MIN { NO_MIN } else { a.saturating_add(b) }
}

fn add_high(a: i64, b: i64) -> i64 {
    if a == NO_MAX || b == NO_MAX { NO_MAX } else { a.saturating_add(b) }
}

fn negate(end: i64) -> i64 {
    match end {
        NO_MIN => NO_MAX,
        NO_MAX => NO_MIN,
        _ => -end,
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::known(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Dim {
    fn from(n: i64) -> Dim {
        Dim::known(n)
    }
}

/// `5`, `?`, `1..10`, `..10`, `3..`. Symbols are not written.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max()) {
            (0, None) => f.write_str("?"),
            (NO_MIN, None) => f.write_str(".."),
            _ if self.is_known() => write!(f, "{}", self.min),
            (0 | NO_MIN, Some(max)) => write!(f, "..{max}"),
            (min, None) => write!(f, "{min}.."),
            (min, Some(max)) => write!(f, "{min}..{max}"),
        }
    }
}

/// Reads dimensions, so nothing negative but `-1`, which stands for any.
impl FromStr for Dim {
    type Err = TensorError;

    fn from_str(text: &str) -> Result<Dim, TensorError> {
        let bad = || TensorError::BadDim { found: text.to_owned() };
        let number = |part: &str| -> Result<i64, TensorError> {
            let part = part.trim();
            // `parse` alone would also take a plus sign.
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            part.parse().map_err(|_| bad())
        };
        let trimmed = text.trim();
        if trimmed == "?" || trimmed == "-1" {
            return Ok(Dim::ANY);
        }
        let Some((low, high)) = trimmed.split_once("..") else {
            return number(trimmed).map(Dim::known);
        };
        if low.trim().is_empty() && high.trim().is_empty() {
            return Err(bad());
        }
        let min = if low.trim().is_empty() { 0 } else { number(low)? };
        let max = if high.trim().is_empty() { None } else { Some(number(high)?) };
        if max.is_some_and(|max| max < min) {
            return Err(bad());
        }
        Ok(Dim::range(min, max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Dim {
        text.parse().unwrap()
    }

    const S: Symbol = Symbol(1);

    #[test]
    fn text_round_trips() {
        for text in ["5", "?", "1..10", "..10", "3..", "0"] {
            assert_eq!(d(text).to_string(), text);
        }
    }

    #[test]
    fn minus_one_reads_as_any() {
        assert_eq!(d("-1"), Dim::ANY);
    }

    #[test]
    fn garbage_is_an_error() {
        for text in ["", "-2", "x", "1..x", "10..1", "+3", "..", "99999999999999999999", "1.5", "1...3"] {
            assert!(matches!(text.parse::<Dim>(), Err(TensorError::BadDim { .. })), "{text}");
        }
    }

    #[test]
    fn addition_adds_the_ends() {
        assert_eq!(d("1..3").add(d("2..5")), d("3..8"));
        assert_eq!(d("2..").add(d("3")), d("5.."));
        assert_eq!(Dim::known(i64::MAX - 1).add(d("5")), Dim::known(i64::MAX));
    }

    #[test]
    fn subtraction_may_go_below_zero() {
        assert_eq!(d("1..3").sub(d("2")), Dim::range(-1, Some(1)));
        assert_eq!(Dim::ANY.sub(d("3")), Dim::range(-3, None));
        assert_eq!(d("3").sub(Dim::ANY), Dim::range(i64::MIN, Some(3)));
    }

    #[test]
    fn multiplication_takes_the_extreme_corners() {
        assert_eq!(d("2..3").mul(d("4..5")), d("8..15"));
        assert_eq!(Dim::range(-2, Some(3)).mul(d("4")), Dim::range(-8, Some(12)));
        assert_eq!(Dim::ANY.mul(d("0")), d("0"));
        assert_eq!(d("2..").mul(d("3")), d("6.."));
    }

    #[test]
    fn identities_keep_the_symbol() {
        let x = Dim::ANY.with_symbol(S);
        for same in [x.add(d("0")), d("0").add(x), x.sub(d("0")), x.mul(d("1")), d("1").mul(x), x.floor_div(1)] {
            assert_eq!(same, x);
        }
        assert_eq!(x.ceil_div(1), x);
    }

    #[test]
    fn other_arithmetic_drops_the_symbol() {
        let x = Dim::ANY.with_symbol(S);
        for other in [x.add(d("1")), x.mul(d("2")), x.sub(d("1")), x.floor_div(2)] {
            assert_eq!(other.symbol(), None);
        }
    }

    #[test]
    fn division_rounds_as_named() {
        assert_eq!(Dim::known(-7).floor_div(2), Dim::known(-4));
        assert_eq!(Dim::known(-7).ceil_div(2), Dim::known(-3));
        assert_eq!(d("3..8").floor_div(2), d("1..4"));
        assert_eq!(d("3..").ceil_div(2), d("2.."));
        assert_eq!(d("3..8").floor_div(-2), Dim::range(-4, Some(-2)));
    }

    #[test]
    fn division_by_zero_is_unknown_and_does_not_panic() {
        assert_eq!(d("4").floor_div(0).get(), None);
        assert_eq!(d("4").rem(0).get(), None);
        assert_eq!(Dim::known(i64::MIN).floor_div(-1), Dim::known(i64::MAX));
        assert_eq!(Dim::known(i64::MIN).rem(-1), d("0"));
    }

    #[test]
    fn remainder_stays_below_the_divisor() {
        assert_eq!(d("7").rem(4), d("3"));
        assert_eq!(Dim::ANY.rem(4), d("..3"));
        assert_eq!(d("1..3").rem(4), d("1..3"));
    }

    #[test]
    fn min_and_max_bound_both_ends() {
        assert_eq!(d("1..5").min_of(d("3..4")), d("1..4"));
        assert_eq!(d("1..5").max_of(d("3..9")), d("3..9"));
        assert_eq!(d("1..2").min_of(d("7")), d("1..2"));
    }

    #[test]
    fn merge_intersects_and_keeps_a_symbol() {
        assert_eq!(d("1..5").merge(d("3..9")), Some(d("3..5")));
        assert_eq!(d("1..2").merge(d("3")), None);
        assert_eq!(d("5").merge(Dim::ANY.with_symbol(S)), Some(d("5").with_symbol(S)));
    }

    #[test]
    fn broadcast_stretches_ones() {
        assert_eq!(d("1").broadcast(d("5")), Some(d("5")));
        assert_eq!(d("5").broadcast(d("?")), Some(d("5")));
        assert_eq!(d("1").broadcast(d("?").with_symbol(S)), Some(d("?").with_symbol(S)));
        assert_eq!(d("2").broadcast(d("3")), None);
        assert_eq!(d("2").broadcast(d("0")), None);
        assert_eq!(d("1").broadcast(d("0")), Some(d("0")));
    }

    #[test]
    fn broadcast_of_two_unknowns_spans_both() {
        assert_eq!(d("1..3").broadcast(d("1..8")), Some(d("1..8")));
        assert_eq!(d("1..3").broadcast(d("5..8")), Some(d("5..8")));
        assert_eq!(d("2..6").broadcast(d("5..8")), Some(d("5..6")));
    }

    #[test]
    fn broadcast_of_equal_symbols_is_that_symbol() {
        let x = d("?").with_symbol(S);
        assert_eq!(x.broadcast(x), Some(x));
        assert_eq!(x.broadcast(d("?").with_symbol(Symbol(2))), Some(d("?")));
    }

    #[test]
    fn size_is_none_for_negatives() {
        assert_eq!(Dim::known(-1).size(), None);
        assert_eq!(d("4").size(), Some(4));
        assert_eq!(Dim::known(-1).get(), Some(-1));
    }

    #[test]
    fn clamp_shape_cuts_negatives() {
        assert_eq!(Dim::range(-3, None).clamp_shape(), Dim::ANY);
        assert_eq!(Dim::known(-2).clamp_shape(), d("0"));
    }
}
