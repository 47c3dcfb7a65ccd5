//! Special registers (PTX ISA, 'Special Registers').

use std::fmt;

use crate::types::Type;

macro_rules! special {
    ($($name:ident = $text:literal, $ty:ident, $vector:literal;)*) => {
        /// A predefined read-only register. Numbered families carry their number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SpecialReg {
            $(#[doc = concat!("`%", $text, "`")] $name,)*
            /// `%envreg0` … `%envreg31`
            EnvReg(u8),
            /// `%pm0` … `%pm7`: performance counters, 32 bits.
            Pm(u8),
            /// `%pm0_64` … `%pm7_64`
            Pm64(u8),
            /// `%reserved_smem_offset_0` and `_1`
            ReservedSmemOffset(u8),
        }

        impl SpecialReg {
            /// All special registers without a number.
            pub const SINGLES: &[SpecialReg] = &[$(SpecialReg::$name,)*];

            fn parse_single(text: &str) -> Option<SpecialReg> {
                match text { $($text => Some(SpecialReg::$name),)* _ => None }
            }

            /// Element type.
            pub const fn ty(self) -> Type {
                match self {
                    $(SpecialReg::$name => Type::$ty,)*
                    SpecialReg::Pm64(_) => Type::U64,
                    SpecialReg::EnvReg(_) | SpecialReg::ReservedSmemOffset(_) => Type::B32,
                    SpecialReg::Pm(_) => Type::U32,
                }
            }

            /// Is it a vector with components `.x .y .z` (and `.w`)?
            pub const fn is_vector(self) -> bool {
                match self { $(SpecialReg::$name => $vector,)* _ => false }
            }
        }

        impl fmt::Display for SpecialReg {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(SpecialReg::$name => f.write_str(concat!("%", $text)),)*
                    SpecialReg::EnvReg(n) => write!(f, "%envreg{n}"),
                    SpecialReg::Pm(n) => write!(f, "%pm{n}"),
                    SpecialReg::Pm64(n) => write!(f, "%pm{n}_64"),
                    SpecialReg::ReservedSmemOffset(n) => write!(f, "%reserved_smem_offset_{n}"),
                }
            }
        }
    };
}

special! {
    Tid = "tid", U32, true;
    NTid = "ntid", U32, true;
    LaneId = "laneid", U32, false;
    WarpId = "warpid", U32, false;
    NWarpId = "nwarpid", U32, false;
    CtaId = "ctaid", U32, true;
    NCtaId = "nctaid", U32, true;
    SmId = "smid", U32, false;
    NSmId = "nsmid", U32, false;
    GridId = "gridid", U64, false;
    IsExplicitCluster = "is_explicit_cluster", Pred, false;
    ClusterId = "clusterid", U32, true;
    NClusterId = "nclusterid", U32, true;
    ClusterCtaId = "cluster_ctaid", U32, true;
    ClusterNCtaId = "cluster_nctaid", U32, true;
    ClusterCtaRank = "cluster_ctarank", U32, false;
    ClusterNCtaRank = "cluster_nctarank", U32, false;
    LaneMaskEq = "lanemask_eq", U32, false;
    LaneMaskLe = "lanemask_le", U32, false;
    LaneMaskLt = "lanemask_lt", U32, false;
    LaneMaskGe = "lanemask_ge", U32, false;
    LaneMaskGt = "lanemask_gt", U32, false;
    Clock = "clock", U32, false;
    ClockHi = "clock_hi", U32, false;
    Clock64 = "clock64", U64, false;
    GlobalTimer = "globaltimer", U64, false;
    GlobalTimerLo = "globaltimer_lo", U32, false;
    GlobalTimerHi = "globaltimer_hi", U32, false;
    ReservedSmemOffsetBegin = "reserved_smem_offset_begin", B32, false;
    ReservedSmemOffsetEnd = "reserved_smem_offset_end", B32, false;
    ReservedSmemOffsetCap = "reserved_smem_offset_cap", B32, false;
    TotalSmemSize = "total_smem_size", U32, false;
    AggrSmemSize = "aggr_smem_size", U32, false;
    DynamicSmemSize = "dynamic_smem_size", U32, false;
    CurrentGraphExec = "current_graph_exec", U64, false;
    PerCtaMemoryOffset = "perctamemoryoffset", U64, false;
    PerCtaMemorySize = "perctamemorysize", U32, false;
    LocalityDomainId = "locality_domain_id", U32, false;
    LocalityDomainSupplementalSm = "locality_domain_supplemental_sm", U32, false;
}

impl SpecialReg {
    /// Does a thread read the same value all its life? Not clocks and counters, and not the
    /// numbers of the hardware that it happens to run on: they may change when it is preempted.
    pub const fn is_stable(self) -> bool {
        !matches!(
            self,
            SpecialReg::WarpId
                | SpecialReg::SmId
                | SpecialReg::LocalityDomainId
                | SpecialReg::LocalityDomainSupplementalSm
                | SpecialReg::Clock
                | SpecialReg::ClockHi
                | SpecialReg::Clock64
                | SpecialReg::GlobalTimer
                | SpecialReg::GlobalTimerLo
                | SpecialReg::GlobalTimerHi
                | SpecialReg::Pm(_)
                | SpecialReg::Pm64(_)
        )
    }

    /// The special register of this name; `text` begins with `%` and has no component.
    pub fn parse(text: &str) -> Option<SpecialReg> {
        let name = text.strip_prefix('%')?;
        if let Some(reg) = SpecialReg::parse_single(name) {
            return Some(reg);
        }
        if let Some(n) = name.strip_prefix("envreg") {
            return number(n, 32).map(SpecialReg::EnvReg);
        }
        if let Some(n) = name.strip_prefix("reserved_smem_offset_") {
            return number(n, 2).map(SpecialReg::ReservedSmemOffset);
        }
        let pm = name.strip_prefix("pm")?;
        match pm.strip_suffix("_64") {
            Some(n) => number(n, 8).map(SpecialReg::Pm64),
            None => number(pm, 8).map(SpecialReg::Pm),
        }
    }
}

/// A decimal number below `end`, without leading zeros.
fn number(text: &str, end: u8) -> Option<u8> {
    let leading_zero = text.len() > 1 && text.starts_with('0');
    let all_digits = text.bytes().all(|b| b.is_ascii_digit());
    let n = (all_digits && !leading_zero).then(|| text.parse().ok())??;
    (n < end).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        let numbered = [
            SpecialReg::EnvReg(31),
            SpecialReg::Pm(7),
            SpecialReg::Pm64(0),
        ];
        for &reg in SpecialReg::SINGLES.iter().chain(&numbered) {
            assert_eq!(SpecialReg::parse(&reg.to_string()), Some(reg));
        }
        for text in [
            "%envreg32",
            "%envreg01",
            "%pm8",
            "%pm",
            "%tid.x",
            "tid",
            "%",
        ] {
            assert_eq!(SpecialReg::parse(text), None, "{text}");
        }
    }
}
