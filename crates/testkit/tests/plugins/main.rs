//! Tests of devices as libraries, in one binary: linking costs more than running.

mod conformance;
mod copied_templates;
mod graph_in_c;
mod plugin_checked;
mod plugins_in_c;
