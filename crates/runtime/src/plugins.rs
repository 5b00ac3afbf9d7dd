//! Devices in libraries.
