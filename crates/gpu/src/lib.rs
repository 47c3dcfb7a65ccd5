//! Launch, compare and time kernels on a real device (driver API, loaded at run time).
//!
//! One binary works with and without a GPU: the driver's library is looked for when a device is
//! opened, and what is missing is a [`Fault`] of kind [`FaultKind::Missing`] (exit code 3).
//!
//! From below to above: [`Device`] says what a GPU is and does; a [`Job`] is a launch description
//! made ready ([`prepare`]); a [`Runner`] checks and times [`Variant`]s of it in this process, a
//! [`Process`] in a child that may crash or hang (both are a [`Backend`]); [`measure`] races
//! variants against a baseline and judges them ([`Measurements`]); [`fleet`] uses several GPUs.
//! `docs/measuring.md` says how times are taken and why they can be trusted.
//!
//! A program that uses [`Process`] hands the arguments after its hidden subcommand
//! [`WORKER_ARGUMENT`] to [`worker_main`].

mod arena;
mod backend;
mod bench;
mod cuda;
mod device;
mod fault;
pub mod fleet;
pub mod halving;
mod helpers;
mod job;
mod judge;
mod kernel;
mod nvml;
mod plan;
mod prepare;
mod process;
mod results;
mod rng;
mod runner;
mod selftest;
mod session;
mod single;
pub mod stats;
mod worker;

pub use backend::{
    Against, Backend, CheckReport, CheckRequest, Reference, Resources, TimeReport, TimeRequest,
    Verdict,
};
pub use device::{Clocks, Device, DeviceInfo, devices, utc_now};
pub use fault::{Fault, FaultKind};
pub use job::{Buffer, Image, Job, Param, Promise, Shape, Variant};
pub use plan::Plan;
pub use prepare::prepare;
pub use process::{Process, WorkerCommand};
pub use results::{Environment, Measured, Measurements, SCHEMA};
pub use runner::{IN_FLIGHT, Runner};
pub use selftest::{Case, Selftest, SelftestSize, selftest};
pub use session::{Budget, Progress, State, Watcher, measure};
pub use single::{Run, run, run_once};
pub use worker::{MARK, Reply, Request, WORKER_ARGUMENT, serve, worker_main};
