//! bad_files
