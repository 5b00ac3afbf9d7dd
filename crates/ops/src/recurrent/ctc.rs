//! Connectionist temporal classification: best-path decoding and the likelihood of a label sequence. The likelihood is
//! summed over all alignments by dynamic programming in log space, which stays finite where probabilities underflow.

/// The largest class of a step; the first one of equals.
pub(super) fn best_class(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, s) in scores.iter().enumerate() {
        if *s > scores[best] {
            best = i;
        }
    }
    best
}

/// Drops blanks, and repeats of the step before when they are to be merged. A blank in between keeps a repeat.
pub(super) fn decode(steps: impl Iterator<Item = usize>, blank: i64, merge_repeated: bool) -> Vec<usize> {
    let mut previous = None;
    let mut out = Vec::new();
    for class in steps {
        if class as i64 != blank && !(merge_repeated && previous == Some(class)) {
            out.push(class);
        }
        previous = Some(class);
    }
    out
}

/// Negative log likelihood of `labels`. `log_probability(t, class)` is that of one step; infinite when no alignment fits.
pub(super) fn loss(
    labels: &[usize],
    blank: usize,
    steps: usize,
    merge_repeated: bool,
    log_probability: impl Fn(usize, usize) -> f64,
) -> f64 {
    // States: blank, label 0, blank, label 1, ..., blank.
    let states = 2 * labels.len() + 1;
    let class = |s: usize| if s % 2 == 1 { labels[s / 2] } else { blank };
    let mut before = vec![f64::NEG_INFINITY; states];
    // Where every alignment starts: it stays at the first blank or goes on to the first label.
    before[0] = 0.0;
    for t in 0..steps {
        let mut now = vec![f64::NEG_INFINITY; states];
        for (s, slot) in now.iter_mut().enumerate() {
            let stays = s % 2 != 1 || merge_repeated;
            // Between equal labels that would merge, the blank cannot be left out.
            let skips = s >= 2 && s % 2 == 1 && (!merge_repeated || class(s) != class(s - 2));
            let mut total = f64::NEG_INFINITY;
            if stays {
                total = log_add(total, before[s]);
            }
            if s >= 1 {
                total = log_add(total, before[s - 1]);
            }
            if skips {
                total = log_add(total, before[s - 2]);
            }
            *slot = total + log_probability(t, class(s));
        }
        before = now;
    }
    let last_label = if states > 1 { before[states - 2] } else { f64::NEG_INFINITY };
    -log_add(before[states - 1], last_label)
}

fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Sums over every path of classes, the definition itself.
    fn by_enumeration(labels: &[usize], steps: usize, classes: usize, merge: bool, p: impl Fn(usize, usize) -> f64) -> f64 {
        let blank = classes - 1;
        let mut total = 0.0;
        for path in 0..classes.pow(steps as u32) {
            let classes_of: Vec<usize> = (0..steps).map(|t| path / classes.pow(t as u32) % classes).collect();
            if decode(classes_of.iter().copied(), blank as i64, merge) == labels {
                total += classes_of.iter().enumerate().map(|(t, &c)| p(t, c)).product::<f64>();
            }
        }
        -f64::ln(total)
    }

    #[test]
    fn the_loss_is_the_sum_over_all_paths() {
        let p = |t: usize, c: usize| [[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.25, 0.35, 0.4], [0.3, 0.3, 0.4]][t][c];
        for labels in [vec![0], vec![0, 0], vec![0, 1], vec![1, 0, 0], vec![]] {
            for merge in [true, false] {
                let expected = by_enumeration(&labels, 4, 3, merge, p);
                let found = loss(&labels, 2, 4, merge, |t, c| p(t, c).ln());
                assert!((found - expected).abs() < 1e-12, "{labels:?} {merge}: {found} {expected}");
            }
        }
    }

    #[test]
    fn labels_that_do_not_fit_have_infinite_loss() {
        assert_eq!(loss(&[0, 0], 1, 2, true, |_, _| -1.0), f64::INFINITY);
        assert!(loss(&[0, 0], 1, 2, false, |_, _| -1.0).is_finite());
    }
}
