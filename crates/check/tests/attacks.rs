//! Wrong rewrites of machine code, planted one at a time by rules that know nothing of the checker: none may
//! be proved. And right ones, to see that it does not refuse everything.

use std::collections::BTreeMap;

use warpwright_check::{CubinOptions, check_kernels};
use warpwright_flow::Inst;
use warpwright_sass::branch::CodeOperand;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::roles::{File, Role, Span, Table};
use warpwright_sass::{Elf, Instruction};
use warpwright_toolkit::PtxasJob;
use warpwright_toolkit::testing::require_toolkit;

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Shared memory and barriers, exchanges within a warp, atomics, fences, a loop, an early exit.
const TILE: &str = ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n.maxntid 128\n{
.reg .b64 %i, %o, %w; .reg .b32 %t, %n, %s, %a, %v, %u, %b; .reg .pred %p, %q;
.shared .align 4 .b8 tile[1024];
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n];
mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %v, %b, 128, %t; setp.ge.u32 %p, %v, %n; @%p exit;
mul.wide.u32 %w, %v, 4; add.s64 %i, %i, %w; add.s64 %o, %o, %w;
mov.u32 %s, tile; mad.lo.u32 %a, %t, 4, %s; ld.global.u32 %v, [%i]; st.shared.u32 [%a], %v;
bar.sync 0; ld.shared.u32 %u, [%s+64]; add.u32 %v, %v, %u;
again: ld.volatile.global.u32 %u, [%i+512]; add.u32 %v, %v, %u; setp.lt.u32 %q, %v, 1000; @%q bra again;
shfl.sync.bfly.b32 %u, %v, 1, 31, 0xffffffff; add.u32 %v, %v, %u; shfl.sync.down.b32 %u, %v, 2, 31, 0xffffffff;
xor.b32 %v, %v, %u; setp.gt.u32 %q, %v, 7; vote.sync.ballot.b32 %u, %q, 0xffffffff; add.u32 %v, %v, %u;
atom.global.add.u32 %u, [%o+4096], %v; st.global.u32 [%o], %u; fence.acq_rel.gpu; st.release.gpu.global.u32 [%o+8], %v;
red.global.max.u32 [%o+8192], %v; bar.sync 1; st.global.cg.u32 [%o+16], %v; ld.global.nc.u32 %u, [%i+64];
ld.acquire.sys.global.u32 %v, [%i+32]; add.u32 %u, %u, %v; st.global.u32 [%o+24], %u; ret;\n}\n";

/// Calls and returns: divisions.
const CALLS: &str = ".visible .entry k(.param .u64 in, .param .u64 out)\n{
.reg .b64 %i, %o; .reg .f64 %x, %y, %z; .reg .b32 %t;
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
ld.global.f64 %x, [%i]; ld.global.f64 %y, [%i+8]; div.rn.f64 %z, %x, %y; div.rn.f64 %x, %y, %z;
st.global.f64 [%o], %x; st.global.f64 [%o+8], %z; ret;\n}\n";

/// Asynchronous copies and counted waits; arms that part and meet.
const ASYNC: &str = ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n.maxntid 64\n{
.reg .b64 %i, %o, %w; .reg .b32 %t, %n, %s, %a, %v, %u; .reg .pred %p;
.shared .align 16 .b8 tile[4096];
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
mul.wide.u32 %w, %t, 16; add.s64 %i, %i, %w; add.s64 %o, %o, %w; mov.u32 %s, tile; mad.lo.u32 %a, %t, 16, %s;
cp.async.cg.shared.global [%a], [%i], 16; cp.async.commit_group;
cp.async.cg.shared.global [%a+1024], [%i+1024], 16; cp.async.commit_group;
cp.async.wait_group 1; bar.sync 0; ld.shared.u32 %v, [%s+4]; cp.async.wait_group 0; bar.sync 0;
ld.shared.u32 %u, [%s+1028]; and.b32 %n, %u, 3; setp.eq.u32 %p, %n, 1; @%p bra other;
st.global.u32 [%o], %v; atom.global.add.u32 %v, [%o+64], %u; atom.shared.add.u32 %v, [%s+8], %v; bra join;
other: atom.global.xor.b32 %v, [%o+68], %u; st.volatile.global.u32 [%o+4], %v;
join: bar.sync 0; ld.shared.u32 %u, [%s+8]; add.u32 %v, %v, %u; st.global.u32 [%o+8], %v; ret;\n}\n";

/// Uniform registers, special registers, constants; exchanges of uniform values.
const UNIFORM: &str = ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n, .param .u32 m)\n{
.reg .b64 %i, %o, %w; .reg .b32 %t, %n, %m, %v, %u, %c; .reg .pred %p;
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; ld.param.u32 %m, [m];
mov.u32 %c, %ctaid.x; mad.lo.u32 %u, %c, %n, %m; mov.u32 %c, %ctaid.y; mad.lo.u32 %u, %c, %u, %n;
mov.u32 %t, %laneid; shr.u32 %v, %u, 3; xor.b32 %v, %v, %m; mul.wide.u32 %w, %v, 4; add.s64 %i, %i, %w;
ld.global.u32 %v, [%i]; redux.sync.add.u32 %u, %v, 0xffffffff; activemask.b32 %c; add.u32 %u, %u, %c;
match.any.sync.b32 %c, %v, 0xffffffff; add.u32 %u, %u, %c; mov.u32 %c, %clock; add.u32 %v, %v, %c;
mul.wide.u32 %w, %t, 4; add.s64 %o, %o, %w; st.global.u32 [%o], %u; st.global.u32 [%o+128], %v;
nanosleep.u32 20; membar.sys; st.global.u32 [%o+256], %n; ret;\n}\n";

const KERNELS: [&str; 4] = [TILE, CALLS, ASYNC, UNIFORM];

/// The others, and what of the kernels they have.
const OTHERS: [(u32, &[&str]); 5] = [
    (75, &[TILE, CALLS]),
    (86, &KERNELS),
    (90, &[]),
    (100, &KERNELS),
    (120, &KERNELS),
];

fn build(test: &str, kernel: &str) -> Option<Elf> {
    build_for(test, 90, kernel)
}

fn build_for(test: &str, sm: u32, kernel: &str) -> Option<Elf> {
    let toolkit = require_toolkit(test)?;
    let head = match sm {
        90 => HEAD.to_owned(),
        _ => format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n"),
    };
    let text = head + kernel;
    let arch = format!("sm_{sm}");
    let built = toolkit.ptxas().ok()?.run(&PtxasJob::new(&text, &arch));
    let cubin = built.expect("ptxas takes it").cubin;
    Some(Elf::parse(&cubin).expect("a cubin"))
}

/// More values than registers: sums that go around in a loop.
fn spills() -> String {
    let each = |line: &dyn Fn(u32) -> String| -> String { (0..40).map(line).collect() };
    let loads = each(&|n| format!("ld.global.f32 %f{n}, [%i+{}];", 4 * n));
    let sums = each(&|n| {
        format!(
            "fma.rn.f32 %f{n}, %f{}, %f{}, %f{n};",
            (n + 3) % 40,
            (n + 7) % 40
        )
    });
    let stores = each(&|n| format!("st.global.f32 [%o+{}], %f{n};", 4 * n));
    format!(
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n.maxnreg 24\n{{
.reg .b64 %i, %o, %w; .reg .b32 %t, %n; .reg .f32 %f<40>; .reg .pred %p;
ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
mul.wide.u32 %w, %t, 4; add.s64 %i, %i, %w; add.s64 %o, %o, %w;
{loads}
again: {sums} sub.u32 %n, %n, 1; setp.gt.s32 %p, %n, 0; @%p bra again;
{stores} ret;\n}}\n"
    )
}

fn code(elf: &Elf) -> Code {
    let kernel = elf.kernel("k").expect("the kernel");
    Code::new(elf, &kernel, Calls::Followed).expect("its code")
}

fn word(elf: &Elf, words: &[Instruction], options: &CubinOptions) -> &'static str {
    let mut new = elf.clone();
    new.set_instructions("k", words).expect("as many");
    check_kernels(elf, &new, "k", options).word()
}

fn get(inst: Instruction, low: u32, bits: u32) -> u128 {
    inst.bits() >> low & ((1 << bits) - 1)
}

fn set(inst: Instruction, low: u32, bits: u32, value: u128) -> Instruction {
    let mask = ((1u128 << bits) - 1) << low;
    inst.with_bits(inst.bits() & !mask | value << low & mask)
}

/// Low bit and width of the field of an operand.
fn field(table: &Table, span: Span) -> (u32, u32) {
    let field = table.field(span.into());
    (field.0, field.1)
}

fn name(table: &Table, inst: Instruction) -> &str {
    let entry = table.entries().get(&(get(inst, 0, 12) as u16));
    entry.map_or("", |entry| &entry.name)
}

/// What touches memory, other threads, or decides where control goes.
fn is_event(name: &str) -> bool {
    const OTHERS: [&str; 20] = [
        "BAR",
        "MEMBAR",
        "ERRBAR",
        "CCTL",
        "DEPBAR",
        "SHFL",
        "VOTE",
        "VOTEU",
        "REDUX",
        "MATCH",
        "EXIT",
        "BRA",
        "BSSY",
        "BSYNC",
        "CALL",
        "RET",
        "WARPSYNC",
        "NANOSLEEP",
        "CREDUX",
        "R2UR",
    ];
    ["LD", "ST", "ATOM", "RED"]
        .iter()
        .any(|start| name.starts_with(start))
        && !name.starts_with("LDC")
        || OTHERS.contains(&name)
}

fn nop(inst: Instruction) -> Instruction {
    set(inst.with_bits(get(inst, 105, 23) << 105), 0, 16, 0x7918)
}

/// Every wrong version of one instruction, each with its kind.
fn wrong(
    code: &Code,
    table: &Table,
    at: usize,
    is_reached: bool,
) -> Vec<(&'static str, Vec<Instruction>)> {
    let words = code.instructions();
    let inst = words[at];
    let mut all = Vec::new();
    let name = name(table, inst);
    if !is_reached || matches!(name, "NOP" | "") {
        return all;
    }
    let mut with = |kind, new: Instruction| {
        let mut words = words.to_vec();
        words[at] = new;
        if new != inst {
            all.push((kind, words));
        }
    };
    let event = is_event(name);
    // The load of the stack pointer, which these kernels do not use; and what stands there to keep the
    // hardware from mistakes is never executed.
    let uses_stack = |at: usize| {
        let mut uses = code.roles(Inst(at as u32)).uses();
        uses.any(|span| span.file == File::Gpr && span.first == 1)
    };
    let is_load = matches!(name, "LDC" | "IMAD" | "MOV") && get(inst, 16, 8) == 1;
    let is_idle = is_load && !(0..words.len()).any(uses_stack);
    if is_idle {
        return all;
    }
    for span in code.roles(Inst(at as u32)).spans() {
        let (low, bits) = field(table, *span);
        let size = u128::from(span.count.next_power_of_two().max(1));
        let other = set(inst, low, bits, get(inst, low, bits) ^ size);
        let kind = match (span.role, span.file) {
            (_, File::Barrier) => "another barrier register",
            (Role::Use, File::Pred | File::UniformPred) if low == 12 => "another guard",
            (Role::Use, File::Pred | File::UniformPred) => "another predicate",
            (Role::Use, File::Uniform) => "another uniform register",
            (Role::Use, _) => "another register",
            // Where the value is not needed any more another register may do.
            (Role::Def, _) if event => "another result",
            (Role::Def, _) => continue,
        };
        with(kind, other);
        if low == 12 {
            with("negated guard", inst.with_bits(inst.bits() ^ 1 << 15));
        }
    }
    if event || name == "LDC" || name == "ULDC" {
        with("left out", nop(inst));
        // What a cache does with a slot of the frame changes no value, nor does a wider access where nobody reads the rest.
        let is_slot = matches!(name, "LDL" | "STL");
        let is_wider = |bit: u32| (73..76).contains(&bit) && get(inst, bit, 1) == 0;
        let may_be_right = |bit: u32| is_slot && ((84..87).contains(&bit) || is_wider(bit));
        for bit in (72..91).filter(|&bit| !may_be_right(bit)) {
            with("another modifier", inst.with_bits(inst.bits() ^ 1 << bit));
        }
    }
    if matches!(name, "BRA" | "BSSY" | "CALL" | "RET") {
        with("target moved on", set(inst, 34, 48, get(inst, 34, 48) + 1));
        let before = match inst.code_operand() {
            CodeOperand::Relative(distance) => usize::try_from(at as i64 + distance / 16).ok(),
            _ => None,
        };
        let before = before.and_then(|before| words.get(before));
        let is_behind_nothing = before.is_some_and(|&word| self::name(table, word) == "NOP");
        if !is_behind_nothing {
            with("target moved on", set(inst, 16, 8, get(inst, 16, 8) ^ 4));
        }
    }
    if matches!(name, "S2R" | "S2UR" | "CS2R") {
        with(
            "another special register",
            inst.with_bits(inst.bits() ^ 1 << 72),
        );
    }
    let form = get(inst, 9, 3);
    if matches!(name, "LDC" | "ULDC") || matches!(form, 3 | 5) && !event {
        with("another constant", inst.with_bits(inst.bits() ^ 1 << 41));
        with(
            "another constant bank",
            inst.with_bits(inst.bits() ^ 1 << 55),
        );
    }
    if form == 4 && !event {
        with("another immediate", inst.with_bits(inst.bits() ^ 1 << 33));
    }
    if event && get(inst, 40, 24) != 0 {
        with("another offset", inst.with_bits(inst.bits() ^ 1 << 43));
    }
    if matches!(name, "DEPBAR" | "BAR") {
        for bit in [32, 38, 42, 54] {
            with("another count", inst.with_bits(inst.bits() ^ 1 << bit));
        }
    }
    let next = words.get(at + 1).copied();
    if let Some(next) = next
        && event
        && is_event(self::name(table, next))
        && !matches!(name, "EXIT" | "BRA" | "BSSY" | "BSYNC" | "RET" | "CALL")
        && get(inst, 0, 105) != get(next, 0, 105)
    {
        let mut swapped = words.to_vec();
        swapped.swap(at, at + 1);
        all.push(("two events swapped", swapped));
        let mut twice = words.to_vec();
        twice[at + 1] = inst;
        all.push(("done twice", twice));
    }
    all
}

/// Edits of more than one instruction, or of its control field, each with its kind: what depends on another goes over
/// it, with its control field or without; a uniform register is written where threads may still have it; a result does
/// not come; a slot of the frame is another value's.
fn wrong_by_place(
    code: &Code,
    table: &Table,
    at: usize,
    is_reached: bool,
) -> Vec<(&'static str, Vec<Instruction>)> {
    let words = code.instructions();
    let inst = words[at];
    let own = self::name(table, inst);
    let mut all = Vec::new();
    if !is_reached || matches!(own, "NOP" | "" | "EXIT" | "BRA" | "RET" | "CALL") {
        return all;
    }
    let shown = is_shown(code, at);
    let next = words.get(at + 1).map(|&next| self::name(table, next));
    let is_fixed = |name: &str| {
        matches!(
            name,
            "NOP" | "EXIT" | "BRA" | "RET" | "CALL" | "BSSY" | "BSYNC"
        )
    };
    if let Some(next) = next
        && !is_fixed(next)
        && !is_fixed(own)
        && shown
        && depends(code, at)
    {
        let mut swapped = words.to_vec();
        swapped.swap(at, at + 1);
        all.push(("a dependence turned", swapped.clone()));
        let control = |word: Instruction| get(word, 105, 23);
        swapped[at] = set(swapped[at], 105, 23, control(inst));
        swapped[at + 1] = set(swapped[at + 1], 105, 23, control(words[at + 1]));
        all.push(("a dependence turned under its control fields", swapped));
    }
    if !is_event(own) && shown {
        let mut without = words.to_vec();
        without[at] = nop(inst);
        all.push(("a result left out", without));
    }
    if matches!(own, "LDL" | "STL") {
        for distance in [4, 8, 16] {
            let mut other = words.to_vec();
            let offset = get(inst, 40, 24);
            other[at] = set(inst, 40, 24, offset ^ distance);
            all.push(("another slot", other));
        }
    }
    let writes_uniform = code.roles(Inst(at as u32)).spans().iter();
    let mut writes_uniform = writes_uniform.filter(|span| {
        span.role == Role::Def && matches!(span.file, File::Uniform | File::UniformPred)
    });
    if writes_uniform.next().is_some() {
        let parts =
            |at: usize| matches!(self::name(table, words[at]), "BAR" | "BSYNC" | "WARPSYNC");
        let before = (0..at).rev().take(12).find(|&to| parts(to));
        let behind = (at + 1..words.len()).take(12).find(|&to| parts(to));
        for to in before.into_iter().chain(behind) {
            let mut moved = words.to_vec();
            let word = moved.remove(at);
            moved.insert(to, word);
            all.push(("a uniform register elsewhere", moved));
        }
    }
    all
}

/// Is what it writes into general registers read further down in its block, before it is written again?
fn is_shown(code: &Code, at: usize) -> bool {
    let values = |at: usize, role: Role| -> Vec<(File, u16)> {
        let spans = code.roles(Inst(at as u32)).spans().iter();
        let spans = spans.filter(|span| span.role == role && span.file == File::Gpr);
        spans
            .flat_map(|span| span.registers().map(|n| (span.file, n)))
            .collect()
    };
    let block = warpwright_flow::Cfg::new(code);
    let end = block.last_inst(block.block_of(Inst(at as u32))).0 as usize;
    values(at, Role::Def).into_iter().any(|value| {
        let mut later = at + 1..=end;
        let next = later.find(|&at| {
            [Role::Use, Role::Def]
                .iter()
                .any(|&role| values(at, role).contains(&value))
        });
        next.is_some_and(|at| values(at, Role::Use).contains(&value))
    })
}

/// Does the next instruction read what this one writes?
fn depends(code: &Code, at: usize) -> bool {
    let values = |at: usize, role: Role| -> Vec<(File, u16)> {
        let spans = code.roles(Inst(at as u32)).spans().iter();
        let spans = spans.filter(|span| span.role == role && span.file != File::Barrier);
        spans
            .flat_map(|span| span.registers().map(|n| (span.file, n)))
            .collect()
    };
    let written = values(at, Role::Def);
    let meets = |role| {
        values(at + 1, role)
            .iter()
            .any(|value| written.contains(value))
    };
    meets(Role::Use) && !meets(Role::Def)
}

/// The same edits and those of [`wrong_by_place`] for every architecture, and for code that spills. A sample; all of them
/// with `WARPWRIGHT_ATTACK=1`.
#[test]
fn no_wrong_edit_is_proved_on_any_architecture() {
    let stride = std::env::var("WARPWRIGHT_ATTACK")
        .ok()
        .and_then(|text| text.parse().ok());
    let stride: usize = stride.unwrap_or(97);
    let spills = spills();
    let mut counts: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    let mut proved = Vec::new();
    let mut number = 0;
    for (sm, kernels) in OTHERS {
        let table = Table::for_sm(sm).expect("a table");
        for kernel in kernels.iter().copied().chain([&*spills]) {
            let test = "no_wrong_edit_is_proved_on_any_architecture";
            let Some(elf) = build_for(test, sm, kernel) else {
                return;
            };
            let code = code(&elf);
            let reached = reached(&code);
            let options = CubinOptions::default();
            for (at, &is_reached) in reached.iter().enumerate() {
                let edits = wrong(&code, table, at, is_reached).into_iter();
                let edits = edits.chain(wrong_by_place(&code, table, at, is_reached));
                // Plain accesses through one pointer, other bytes each, may change places, and so may slots.
                let is_plain = |at: usize| {
                    let inst = code.instructions()[at];
                    let name = name(table, inst);
                    matches!(name, "LDG" | "STG") && get(inst, 77, 4) == 0
                        || matches!(name, "LDL" | "STL")
                };
                let edits = edits.filter(|(kind, _)| {
                    *kind != "two events swapped" || !is_plain(at) || !is_plain(at + 1)
                });
                for (kind, words) in edits {
                    number += 1;
                    if number % stride != 0 {
                        continue;
                    }
                    let word = word(&elf, &words, &options);
                    *counts.entry(kind).or_default().entry(word).or_default() += 1;
                    if word == "proved" {
                        let inst = code.instructions()[at];
                        let name = name(table, inst);
                        let (old, new) = (inst.bits(), words[at].bits());
                        proved.push(format!(
                            "sm_{sm} {kind}: {name} at {:#x}: {old:#034x} {new:#034x}",
                            16 * at
                        ));
                    }
                }
            }
        }
    }
    println!("{counts:#?}");
    let all: u32 = counts.values().flat_map(BTreeMap::values).sum();
    assert!(
        counts.len() >= 12 && all >= 60,
        "{all} of {} kinds",
        counts.len()
    );
    assert!(
        proved.is_empty(),
        "{} of {all} proved:\n{}",
        proved.len(),
        proved.join("\n")
    );
}

/// Before Hopper eight bits of a branch belong to no field that is known.
#[test]
fn bits_of_a_branch_without_a_meaning_are_compared() {
    let test = "bits_of_a_branch_without_a_meaning_are_compared";
    let Some(elf) = build_for(test, 86, TILE) else {
        return;
    };
    let code = code(&elf);
    let table = Table::for_sm(86).expect("a table");
    let mut planted = 0;
    for (at, &inst) in code.instructions().iter().enumerate() {
        for bit in (16..24).filter(|_| matches!(name(table, inst), "BRA" | "CALL" | "RET")) {
            let mut words = code.instructions().to_vec();
            words[at] = inst.with_bits(inst.bits() ^ 1 << bit);
            planted += 1;
            let word = word(&elf, &words, &CubinOptions::default());
            assert_ne!(word, "proved", "bit {bit} at {:#x}", 16 * at);
        }
    }
    assert!(planted >= 8, "{planted}");
}

fn reached(code: &Code) -> Vec<bool> {
    let cfg = warpwright_flow::Cfg::new(code);
    let mut reached = vec![false; code.instructions().len()];
    for inst in cfg
        .reverse_postorder()
        .iter()
        .flat_map(|&block| cfg.insts(block))
    {
        reached[inst.0 as usize] = true;
    }
    reached
}

#[test]
fn no_wrong_rewrite_is_proved() {
    let mut counts: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    let mut proved = Vec::new();
    for (which, kernel) in KERNELS.iter().enumerate() {
        let Some(elf) = build("no_wrong_rewrite_is_proved", kernel) else {
            return;
        };
        let code = code(&elf);
        let table = Table::for_sm(90).expect("a table");
        let reached = reached(&code);
        let options = CubinOptions::default();
        assert_eq!(word(&elf, code.instructions(), &options), "proved");
        for at in 0..code.instructions().len() {
            for (kind, words) in wrong(&code, table, at, reached[at]) {
                let word = word(&elf, &words, &options);
                *counts.entry(kind).or_default().entry(word).or_default() += 1;
                if word == "proved" {
                    let inst = code.instructions()[at];
                    let name = name(table, inst);
                    let (old, new) = (inst.bits(), words[at].bits());
                    proved.push(format!(
                        "{which} {kind}: {name} at {:#x}: {old:#034x} {new:#034x}",
                        16 * at
                    ));
                }
            }
        }
    }
    println!("{counts:#?}");
    let all: u32 = counts.values().flat_map(BTreeMap::values).sum();
    assert!(
        counts.len() >= 15 && all >= 60,
        "{all} of {} kinds",
        counts.len()
    );
    assert!(
        proved.is_empty(),
        "{} of {all} proved:\n{}",
        proved.len(),
        proved.join("\n")
    );
}

/// The schedule: waits dropped, scoreboards not set, stalls cut down to one cycle. What waits for less than ptxas's
/// own code is never proved, though nothing may need it.
#[test]
fn a_schedule_is_checked() {
    let mut counts: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    for kernel in KERNELS {
        let Some(elf) = build("a_schedule_is_checked", kernel) else {
            return;
        };
        let code = code(&elf);
        let reached = reached(&code);
        let options = CubinOptions::default();
        for at in (0..code.instructions().len()).filter(|&at| reached[at]) {
            let inst = code.instructions()[at];
            for (kind, new) in [
                ("wait", set(inst, 116, 6, 0)),
                ("write scoreboard", set(inst, 110, 3, 7)),
                ("read scoreboard", set(inst, 113, 3, 7)),
                ("stall", set(inst, 105, 4, 1)),
            ] {
                let mut words = code.instructions().to_vec();
                words[at] = new;
                let is_proved = new != inst && word(&elf, &words, &options) == "proved";
                if new != inst {
                    counts.entry(kind).or_default()[usize::from(is_proved)] += 1;
                }
            }
        }
    }
    println!("not proved, proved: {counts:#?}");
    for (kind, [caught, proved]) in counts {
        assert!(
            caught > 0 && proved == 0,
            "{kind}: {proved} of {}",
            caught + proved
        );
    }
}

#[test]
fn right_rewrites_are_proved() {
    let mut counts: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
    for (which, kernel) in KERNELS.iter().enumerate() {
        let Some(elf) = build("right_rewrites_are_proved", kernel) else {
            return;
        };
        let options = CubinOptions {
            dynamic_smem: Some(0),
            ..CubinOptions::default()
        };
        let code = code(&elf);
        let table = Table::for_sm(90).expect("a table");
        let all = |change: &dyn Fn(Instruction) -> Instruction| -> Vec<Instruction> {
            code.instructions()
                .iter()
                .map(|&inst| change(inst))
                .collect()
        };
        let mut renamed = code.instructions().to_vec();
        // Registers by fours, so that tuples stay where they can be; a helper's are its callers', too.
        for (at, word) in renamed.iter_mut().enumerate() {
            for span in code.roles(Inst(at as u32)).spans() {
                if span.file == File::Gpr && (8..16).contains(&span.first) {
                    let (low, bits) = field(table, *span);
                    *word = set(*word, low, bits, u128::from(span.first) ^ 4);
                }
            }
        }
        let mut grown = elf.clone();
        grown.set_shared_bytes("k", 16384).expect("a kernel");
        let mut registers = elf.clone();
        let kernel = elf.kernel("k").expect("the kernel");
        let stated = elf.registers(&kernel).expect("a number").expect("a number");
        registers
            .set_registers("k", stated as u8 + 8)
            .expect("a kernel");
        let mut count =
            |kind, word: &str| counts.entry(kind).or_default()[usize::from(word == "proved")] += 1;
        count(
            "waits for everything",
            word(&elf, &all(&|inst| set(inst, 116, 6, 0x3f)), &options),
        );
        count(
            "longer stalls",
            word(
                &elf,
                // None, and twelve and more, are other things together with the yield bit.
                &all(&|inst| match get(inst, 105, 4) {
                    0 | 11 | 15 => inst,
                    stall => set(inst, 105, 4, stall + 1),
                }),
                &options,
            ),
        );
        count(
            "no reuse",
            word(&elf, &all(&|inst| set(inst, 122, 4, 0)), &options),
        );
        count(
            "yields",
            word(
                &elf,
                &all(&|inst| match get(inst, 105, 4) {
                    1..12 => inst.with_bits(inst.bits() ^ 1 << 109),
                    _ => inst,
                }),
                &options,
            ),
        );
        count(
            "more shared memory",
            check_kernels(&elf, &grown, "k", &options).word(),
        );
        count(
            "more registers",
            check_kernels(&elf, &registers, "k", &options).word(),
        );
        let mut renamed_elf = registers.clone();
        renamed_elf
            .set_instructions("k", &renamed)
            .expect("as many");
        count(
            "registers renamed",
            check_kernels(&elf, &renamed_elf, "k", &options).word(),
        );
        println!("kernel {which}: {counts:?}");
    }
    let (undecided, proved) = counts
        .values()
        .fold((0, 0), |(a, b), [c, d]| (a + c, b + d));
    println!("{proved} proved, {undecided} not: {counts:#?}");
    assert!(proved >= 4 * undecided, "{counts:#?}");
}
