//! bad_tables
