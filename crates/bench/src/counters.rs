//! Times of nodes over several inferences.

use carafe::{NodeProfile, NodeStatus};
use std::collections::HashMap;
use std::time::Duration;

/// Sums of the times of nodes, by name, in the order of the first inference.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    sums: Vec<NodeProfile>,
    at: HashMap<String, usize>,
    inferences: u32,
}

impl Counters {
    /// Adds the times of an inference; one without times counts for nothing.
    pub fn add(&mut self, profile: &[NodeProfile]) {
        self.inferences += u32::from(!profile.is_empty());
        for p in profile {
            match self.at.get(&p.name) {
                Some(&i) => {
                    let sum = &mut self.sums[i];
                    sum.real_time += p.real_time;
                    sum.cpu_time += p.cpu_time;
                    if p.status == NodeStatus::Executed {
                        sum.status = p.status;
                    }
                }
                None => {
                    self.at.insert(p.name.clone(), self.sums.len());
                    self.sums.push(p.clone());
                }
            }
        }
    }

    /// How many inferences were added.
    pub fn inferences(&self) -> u32 {
        self.inferences
    }

    /// The mean of each node.
    pub fn average(&self) -> Vec<NodeProfile> {
        let n = self.inferences.max(1);
        let mean = |p: &NodeProfile| NodeProfile { real_time: p.real_time / n, cpu_time: p.cpu_time / n, ..p.clone() };
        self.sums.iter().map(mean).collect()
    }
}

/// The sum of the times of all nodes.
pub(crate) fn total(profile: &[NodeProfile]) -> (Duration, Duration) {
    (profile.iter().map(|p| p.real_time).sum(), profile.iter().map(|p| p.cpu_time).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, us: u64) -> NodeProfile {
        let time = Duration::from_micros(us);
        let (type_name, kernel) = ("T".to_string(), "k".to_string());
        NodeProfile {
            name: name.into(),
            type_name,
            kernel,
            status: NodeStatus::Executed,
            real_time: time,
            cpu_time: time,
        }
    }

    #[test]
    fn a_node_has_the_mean_of_its_times() {
        let mut counters = Counters::default();
        counters.add(&[node("a", 10), node("b", 1)]);
        counters.add(&[node("a", 30), node("b", 3)]);
        counters.add(&[]);
        let mean: Vec<u128> = counters.average().iter().map(|p| p.real_time.as_micros()).collect();
        assert_eq!((mean, counters.inferences()), (vec![20, 2], 2));
    }
}
