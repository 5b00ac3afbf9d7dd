//! The device, its kernels and those of users, on whatever OpenCL device is here.

mod custom;
mod device;
mod heavy;
mod places;
mod remote;
