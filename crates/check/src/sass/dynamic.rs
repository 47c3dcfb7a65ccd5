//! May a kernel use shared memory that is not in its section?

use warpwright_flow::Inst;
use warpwright_sass::function::Code;
use warpwright_sass::roles::Table;

use super::{bits, step};

/// Operations beside arithmetic that never touch shared memory. Generic accesses (LD, ST, ATOM, RED) may.
const ELSEWHERE: &[&str] = &[
    "ATOMG",
    "BAR",
    "BMOV",
    "BPT",
    "BRA",
    "BREAK",
    "BRX",
    "BSSY",
    "BSYNC",
    "CALL",
    "CCTL",
    "CS2R",
    "DEPBAR",
    "DMMA",
    "ERRBAR",
    "EXIT",
    "HMMA",
    "IMMA",
    "KILL",
    "LDG",
    "LDL",
    "MATCH",
    "MEMBAR",
    "NANOSLEEP",
    "R2UR",
    "REDG",
    "REDUX",
    "RET",
    "S2R",
    "S2UR",
    "SHFL",
    "STG",
    "STL",
    "SULD",
    "SUST",
    "TEX",
    "TLD",
    "TLD4",
    "TXQ",
    "UP2UR",
    "VOTE",
    "VOTEU",
    "WARPSYNC",
    "YIELD",
];

/// Is there an instruction that is not known to leave shared memory behind the first `section` bytes alone?
pub(super) fn may_be_used(
    code: &Code,
    table: &Table,
    section: u64,
    is_relocated: impl Fn(u32) -> bool,
) -> bool {
    code.instructions().iter().enumerate().any(|(at, &word)| {
        if bits::GUARD.get(word) == bits::NEVER {
            return false;
        }
        let at = at as u32;
        let entry = table.entries().get(&(bits::OPCODE.get(word) as u16));
        let name = entry.map_or("?", |entry| entry.name.as_str());
        let leaves_it = step::PURE.contains(&name) || ELSEWHERE.contains(&name);
        let offset = u64::try_from(bits::offset(word)).ok();
        let end = offset.map(|offset| offset + u64::from(word.access_bytes()));
        let is_in_section = matches!(bits::OPCODE.get(word), 0x388 | 0x984)
            && bits::A.get(word) == bits::RZ
            && bits::HAS_UNIFORM.get(word) == 0
            && !is_relocated(at)
            && end.is_some_and(|end| end <= section);
        code.opaque().contains(&Inst(at)) || !(leaves_it || is_in_section)
    })
}
