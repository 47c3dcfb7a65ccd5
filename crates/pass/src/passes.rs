//! All passes, to be named by type.

pub use crate::dead_instructions::DeadInstructions;
pub use crate::demote::{Compact, Demote, Target};
pub use crate::ptx::allocate::{Allocate, SlotSpace};
pub use crate::ptx::dead_code::DeadCode;
pub use crate::ptx::limits::{MaxNReg, MinNCtaPerSm};
pub use crate::ptx::maxntid::MaxNTid;
pub use crate::ptx::pressure_notes::PressureNotes;
pub use crate::ptx::print::{Canonical, Print};
pub use crate::ptx::reduce::Reduce;
pub use crate::ptx::remat::Remat;
pub use crate::ptx::smem_spilling::SmemSpilling;
pub use crate::ptx::spill_shared::SpillShared;
pub use crate::schedule::{Schedule, ScheduleBy};
pub use crate::source::launch_bounds::LaunchBounds;
pub use crate::source::stencil::Lower;
pub use crate::spill_to_shared::SpillToShared;
pub use crate::throttle::{Throttle, ThrottleBy};
pub use crate::usage_level::UsageLevel;
pub use warpwright_naive::across::Across;
pub use warpwright_naive::fours::Fours;
pub use warpwright_naive::prefix::Prefix;
pub use warpwright_naive::schedule::Schedule as Tiles;
pub use warpwright_naive::team::Team;
pub use warpwright_naive::totals::Totals;
pub use warpwright_stencil::stream::Plan as Stream;
pub use warpwright_stencil::versions::Boxes;
