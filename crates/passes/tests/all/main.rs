//! Tests of the passes on large and random graphs, in one binary: linking costs more than running.

mod large_graph;
mod random_graphs;
