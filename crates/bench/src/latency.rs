//! Numbers about the latencies of a run.

use std::time::Duration;

/// What a list of latencies comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// How many there are.
    pub count: usize,
    /// The one in the middle.
    pub median: Duration,
    /// Their mean.
    pub average: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// Of how many in a hundred `at_percent` is not exceeded.
    pub percent: u32,
    /// The latency that `percent` of a hundred do not exceed.
    pub at_percent: Duration,
}

impl Latency {
    /// Of latencies in any order, with a percentile of 1 to 100; zeros when there are none.
    pub fn of(latencies: &[Duration], percent: u32) -> Latency {
        let mut sorted = latencies.to_vec();
        sorted.sort_unstable();
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Latency { percent, ..Latency::default() };
        };
        let sum: Duration = sorted.iter().sum();
        Latency {
            count: sorted.len(),
            median: percentile(&sorted, 50),
            average: sum / sorted.len().min(u32::MAX as usize) as u32,
            min: *min,
            max: *max,
            percent,
            at_percent: percentile(&sorted, percent),
        }
    }
}

// The nearest rank: the least element that `percent` of a hundred do not exceed.
fn percentile(sorted: &[Duration], percent: u32) -> Duration {
    let rank = (sorted.len() * percent as usize).div_ceil(100);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// One bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Where it begins.
    pub from: Duration,
    /// Where it ends.
    pub to: Duration,
    /// How many latencies lie in it.
    pub count: usize,
}

/// Bars of equal width from the shortest latency to the one that 99 of a hundred do not exceed; the last bar also holds what is
/// longer, and ends there.
pub fn histogram(latencies: &[Duration], bars: usize) -> Vec<Bar> {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let (Some(&min), Some(&max), true) = (sorted.first(), sorted.last(), bars > 0) else { return vec![] };
    let width = ((percentile(&sorted, 99) - min) / bars.min(1 << 16) as u32).max(Duration::from_nanos(1));
    let mut all: Vec<Bar> =
        (0..bars).map(|i| Bar { from: min + width * i as u32, to: min + width * (i as u32 + 1), count: 0 }).collect();
    for latency in sorted {
        let at = ((latency - min).as_nanos() / width.as_nanos()) as usize;
        all[at.min(bars - 1)].count += 1;
    }
    if let Some(last) = all.last_mut() {
        last.to = last.to.max(max);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(list: &[u64]) -> Vec<Duration> {
        list.iter().map(|n| Duration::from_millis(*n)).collect()
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let all = Latency::of(&ms(&[40, 10, 30, 20]), 90);
        assert_eq!((all.median, all.at_percent), (Duration::from_millis(20), Duration::from_millis(40)));
        assert_eq!((all.min, all.max), (Duration::from_millis(10), Duration::from_millis(40)));
        assert_eq!(all.average, Duration::from_millis(25));
        assert_eq!(Latency::of(&ms(&[7]), 1).at_percent, Duration::from_millis(7));
    }

    #[test]
    fn no_latency_gives_zeros() {
        assert_eq!(Latency::of(&[], 50), Latency { percent: 50, ..Latency::default() });
        assert!(histogram(&[], 8).is_empty());
    }

    #[test]
    fn every_latency_lies_in_one_bar() {
        let all: Vec<Duration> = (0..1000).map(|n| Duration::from_micros(100 + n)).chain(ms(&[900])).collect();
        let bars = histogram(&all, 20);
        assert_eq!(bars.iter().map(|b| b.count).sum::<usize>(), 1001);
        assert_eq!(bars.last().unwrap().to, Duration::from_millis(900));
        assert!(bars.windows(2).all(|w| w[0].to == w[1].from));
        assert_eq!(histogram(&ms(&[5, 5, 5]), 4)[0].count, 3);
    }
}
