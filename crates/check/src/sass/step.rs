//! What one SASS instruction does.
//!
//! Almost everything is a free function of its bits, registers and scheduling left out. What is
//! interpreted is what spilling needs: the set-up of the stack pointer, the thread's index, accesses
//! to the version's own memory; and what moving needs: plain loads and stores of global memory at a pair of
//! registers and a constant, which are loads and stores of that memory alone. Plain accesses to shared memory keep
//! their order among themselves, because which were volatile does not show. What threads of a warp do together on
//! registers alone keeps its order, too. All else that touches the program's memory or other threads is an event
//! that nothing which touches memory passes.

use smallvec::SmallVec;
use warpwright_flow::{Function as _, Inst, Transfer, Value};
use warpwright_sass::Instruction;
use warpwright_sass::branch::CodeOperand;
use warpwright_sass::function::value_of;
use warpwright_sass::roles::{File, Role, Span, Table};

use super::bits;
use super::function::SassFunction;
use crate::semantics::{
    Access, Address, Arg, Base, Coordinate, Effect, Extend, Guard, Meaning, SlotSpace, Spaces,
    Step, Unsupported,
};

type Result<T> = std::result::Result<T, Unsupported>;

/// Operations whose results depend on their operands alone. `LDC` and its like read memory that
/// does not change while the kernel runs.
pub(super) const PURE: &[&str] = &[
    "BMSK",
    "BREV",
    "DADD",
    "DFMA",
    "DMNMX",
    "DMUL",
    "DSETP",
    "F2F",
    "F2FP",
    "F2I",
    "F2IP",
    "FADD",
    "FADD2",
    "FCHK",
    "FFMA",
    "FFMA2",
    "FLO",
    "FMNMX",
    "FMNMX3",
    "FMUL",
    "FMUL2",
    "FRND",
    "FSEL",
    "FSET",
    "FSETP",
    "HADD2",
    "HFMA2",
    "HMNMX2",
    "HMUL2",
    "HSET2",
    "HSETP2",
    "I2F",
    "I2FP",
    "I2I",
    "I2IP",
    "IABS",
    "IADD",
    "IADD3",
    "IDP",
    "IDP4A",
    "IMAD",
    "IMNMX",
    "IMUL",
    "ISCADD",
    "ISETP",
    "LDC",
    "LDCU",
    "LEA",
    "LOP",
    "LOP3",
    "MOV",
    "MUFU",
    "NOP",
    "P2R",
    "PLOP3",
    "POPC",
    "PRMT",
    "R2P",
    "SEL",
    "SGXT",
    "SHF",
    "SHL",
    "SHR",
    "UBMSK",
    "UBREV",
    "UFLO",
    "UIADD3",
    "UIMAD",
    "UISETP",
    "ULDC",
    "ULEA",
    "ULOP3",
    "UMOV",
    "UP2UR",
    "UPLOP3",
    "UPOPC",
    "UPRMT",
    "UR2UP",
    "USEL",
    "USGXT",
    "USHF",
    "VABSDIFF",
    "VABSDIFF4",
    "VIADD",
    "VIADDMNMX",
    "VIMNMX",
    "VIMNMX3",
];

/// Operations on registers that the threads of a warp do together.
const TOGETHER: &[&str] = &[
    "BMMA", "DMMA", "HMMA", "IMMA", "MATCH", "MOVM", "R2UR", "REDUX", "SHFL", "VOTE", "VOTEU",
];

pub(super) fn name(word: Instruction, table: &'static Table) -> &'static str {
    let entry = table.entries().get(&(bits::OPCODE.get(word) as u16));
    entry.map_or("?", |entry| entry.name.as_str())
}

/// May threads of the warp part or meet here, or wait for others? Everything that is not known to do otherwise.
pub(super) fn may_part(word: Instruction, table: &'static Table) -> bool {
    let name = name(word, table);
    let is_access = matches!(
        name,
        "LDG" | "LDL" | "LDS" | "STG" | "STL" | "STS" | "S2R" | "S2UR" | "CS2R"
    );
    !is_access && !PURE.contains(&name) && !TOGETHER.contains(&name)
}

/// Is it neither an ordered or volatile access of memory nor an atomic? Of shared memory that does not show.
pub(super) fn is_plain(word: Instruction, table: &'static Table) -> bool {
    let name = name(word, table);
    let is_weak = || matches!(bits::ORDER.get(word), bits::WEAK | bits::CONSTANT);
    match name {
        "LDG" | "STG" => word.sm() >= bits::ORDERED_SINCE && is_weak(),
        "LDL" | "LDS" | "STL" | "STS" | "S2R" | "S2UR" | "CS2R" => true,
        _ => PURE.contains(&name) || TOGETHER.contains(&name),
    }
}

/// Operations that work on after they were passed, or that tell where the code stands.
const OUTSIDE: &[&str] = &[
    "BGMMA",
    "BRX",
    "BRXU",
    "CALL",
    "HGMMA",
    "IGMMA",
    "JMX",
    "JMXU",
    "QGMMA",
    "RPCMOV",
    "USETMAXREG",
];

/// Special registers that do not change while the thread runs and are the same for both versions:
/// lane, block index, warp masks, rank in the cluster, window of shared memory, zero.
const FIXED_SPECIAL: &[u32] = &[
    0x00, 0x20, 0x25, 0x26, 0x27, 0x2f, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x88, 0xff,
];
/// `SR_TID.X`, and the next two.
const THREAD_INDEX: u32 = 0x21;
/// `SR_SMEMSZ`: the rewrite may have changed it.
const SHARED_SIZE: u32 = 0x32;

pub(super) fn step(function: &SassFunction<'_>, inst: Inst) -> Result<Step> {
    let word = function.instruction(inst);
    if bits::GUARD.get(word) == bits::NEVER {
        return Ok(never(function, inst));
    }
    if function.code.opaque().contains(&inst) {
        return unsupported("an instruction that is not known");
    }
    if function.has_unknown_callers {
        return unsupported("code that may be called from elsewhere");
    }
    let reader = Reader {
        function,
        inst,
        word,
        name: function.name(inst),
    };
    let mut step = reader.special()?;
    step.guard = reader.guard();
    Ok(step)
}

/// An instruction that no thread executes. ptxas has such accesses to memory stand where the hardware needs
/// them, so they keep their places.
fn never(function: &SassFunction<'_>, inst: Inst) -> Step {
    let bits = function.instruction(inst).bits() & !bits::CONTROL.mask();
    let mut step = Step::new(format!("never {bits:x}"));
    if !PURE.contains(&function.name(inst)) {
        step.effect = Effect::Ordered;
    }
    step
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(Unsupported(what.to_owned()))
}

struct Reader<'f, 'c> {
    function: &'f SassFunction<'c>,
    inst: Inst,
    word: Instruction,
    name: &'static str,
}

impl Reader<'_, '_> {
    fn special(&self) -> Result<Step> {
        if self.loads_stack_pointer() {
            return Ok(self.stack_pointer());
        }
        if self.reads_stack_constant() {
            return unsupported("the stack pointer is read twice");
        }
        if let Some(step) = self.sum().or_else(|| self.multiply_add()) {
            return Ok(step);
        }
        if let Some(step) = self.uniform_stack_sum() {
            return Ok(step);
        }
        let is_frame = matches!(self.name, "LDL" | "STL");
        if is_frame {
            return self.frame_access();
        }
        if self.touches_stack() {
            return unsupported("the stack pointer is used for more than spill code");
        }
        if let Some(step) = self.shared_access()? {
            return Ok(step);
        }
        if let Some(step) = self.global_access()? {
            return Ok(step);
        }
        if let Some(step) = self.block_size().or_else(|| self.thread_index()) {
            return Ok(step);
        }
        if self.function.warp_barriers.contains(&self.inst) {
            let mut step = Step::new("a barrier of the warp".to_owned());
            step.effect = Effect::InOrder(Spaces::GLOBAL);
            return Ok(step);
        }
        self.general()
    }

    /// Anything else: a function of its text and operands, with the effect of its kind.
    fn general(&self) -> Result<Step> {
        let (function, name) = (self.function, self.name);
        let transfer = function.code.transfer(self.inst);
        if OUTSIDE.contains(&name)
            && !matches!(transfer, Transfer::Jump | Transfer::Call | Transfer::Trap)
        {
            return unsupported("an operation outside the model");
        }
        let special = bits::SPECIAL.get(self.word);
        let reads_special = matches!(name, "S2R" | "S2UR" | "CS2R");
        if reads_special && special == SHARED_SIZE {
            return unsupported("the size of shared memory is read");
        }
        let mut step = Step::new(self.text()?);
        step.args = self.values(Role::Use).map(Arg::Value).collect();
        step.results = self.values(Role::Def).map(Some).collect();
        if let Some((all, writes)) = function.masked(self.inst) {
            for value in all {
                step.args.push(Arg::Value(value));
                step.results.extend(writes.then_some(Some(value)));
            }
        }
        step.effect = match function.code.transfer(self.inst) {
            // What it does beside the jump shows nowhere else.
            Transfer::Jump if name == "CALL" => Effect::Ordered,
            // Where a return to the only call there is goes is a matter of its register, though with one way
            // there is nothing to decide.
            Transfer::Indirect if self.has_one_way() => Effect::Ordered,
            Transfer::Jump | Transfer::Branch | Transfer::Indirect => Effect::Branch,
            Transfer::Return | Transfer::Exit => Effect::Leave,
            Transfer::Trap => {
                self.call(&mut step)?;
                Effect::Leave
            }
            Transfer::Call => {
                self.call(&mut step)?;
                Effect::Ordered
            }
            Transfer::Next if PURE.contains(&name) => Effect::Pure,
            Transfer::Next if TOGETHER.contains(&name) => Effect::InOrder(Spaces::WARP),
            // Which accesses to shared memory were volatile does not show.
            Transfer::Next if matches!(name, "LDS" | "STS") => Effect::InOrder(Spaces::SHARED),
            Transfer::Next if reads_special && FIXED_SPECIAL.contains(&special) => Effect::Pure,
            Transfer::Next => Effect::Ordered,
        };
        step.is_collective = step.effect == Effect::Ordered || TOGETHER.contains(&name);
        Ok(step)
    }

    /// A call that leaves the kernel's code: of `assert`, of what prints, of another section. What is called is the same
    /// for both versions, as it belongs to the module. It reads and writes the registers of the convention, and has its
    /// stack behind the frame, whose address is nowhere else.
    fn call(&self, step: &mut Step) -> Result<()> {
        let function = self.function;
        let by_register = bits::FORM.get(self.word) == bits::FORM_REGISTERS;
        if !by_register && !function.relocations.contains_key(&self.inst.0) {
            return unsupported("a call of nobody knows what");
        }
        let stack = self
            .stack()
            .filter(|_| function.stack == Some((File::Gpr, bits::STACK as u16)));
        let frame = function.memory.frame;
        step.op = match stack {
            Some(_) => format!("{} on a frame of {frame}", step.op),
            None => return unsupported("a call without a stack pointer"),
        };
        step.args.clear();
        function.code.for_each_use(self.inst, |value| {
            if Some(value) != stack {
                step.args.push(Arg::Value(value));
            }
        });
        step.results.clear();
        function
            .code
            .for_each_def(self.inst, |value| step.results.push(Some(value)));
        Ok(())
    }

    fn has_one_way(&self) -> bool {
        let mut ways = 0;
        self.function.code.for_each_target(self.inst, |_| ways += 1);
        ways < 2
    }

    /// The bits that decide what it does beside its registers.
    fn text(&self) -> Result<String> {
        let mut kept = !(bits::CONTROL.mask() | bits::GUARD.mask());
        for span in self.spans() {
            kept &= !self.field(*span);
        }
        let mut more = String::new();
        match self.name {
            "BRA" | "CALL" => kept &= !bits::distance_bits(self.word),
            "WARPSYNC" if self.function.code.transfer(self.inst) == Transfer::Branch => {
                kept &= !bits::distance_bits(self.word);
            }
            "RET" => {
                self.check_return()?;
                kept &= !bits::distance_bits(self.word);
            }
            "BSSY" => {
                kept &= !bits::distance_bits(self.word);
                let target = self.target(bits::barrier_distance(self.word))?;
                more = self.function.label(target)?;
            }
            "LEPC" => {
                let CodeOperand::Relative(distance) = self.word.code_operand() else {
                    return unsupported("an address of code of an unknown kind");
                };
                kept &= !bits::distance_bits(self.word);
                more = self.function.label(self.target(distance)?)?;
            }
            "MOV" if let Some(site) = self.return_address()? => {
                kept &= !bits::IMMEDIATE.mask();
                more = site;
            }
            _ => {}
        }
        if let Some(relocation) = self.function.relocations.get(&self.inst.0) {
            more += relocation;
        }
        Ok(format!(
            "{} {:x} {more}",
            self.name,
            self.word.bits() & kept
        ))
    }

    /// The instruction at this distance from the next one.
    fn target(&self, distance: i64) -> Result<usize> {
        let next = (i64::from(self.inst.0) + 1) * 16;
        let target = next.checked_add(distance);
        let inst = target.filter(|t| t % 16 == 0).map(|t| t / 16);
        let inst = inst.and_then(|inst| usize::try_from(inst).ok());
        inst.ok_or_else(|| Unsupported("an address of code is out of place".to_owned()))
    }

    /// A return adds the register to the start of the section.
    fn check_return(&self) -> Result<()> {
        match self.target(bits::relative_distance(self.word))? {
            0 => Ok(()),
            _ => unsupported("a return that is not relative to the kernel's start"),
        }
    }

    /// For `MOV R, n` where n is where a call of this kernel returns to, and what it loads goes into
    /// returns alone: a name for that place.
    fn return_address(&self) -> Result<Option<String>> {
        const MOV_IMMEDIATE: u32 = 0x802;
        let n = bits::IMMEDIATE.get(self.word);
        if bits::OPCODE.get(self.word) != MOV_IMMEDIATE || n == 0 || !n.is_multiple_of(16) {
            return Ok(None);
        }
        let at = (n / 16) as usize;
        let code = self.function.code;
        let follows_call =
            at <= code.inst_count() && self.function.name(Inst(at as u32 - 1)) == "CALL";
        match self.values(Role::Def).next() {
            Some(to) if follows_call && !self.function.has_other_uses(self.inst, to, at) => {
                self.function.label(at).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn spans(&self) -> &[Span] {
        self.function.code.roles(self.inst).spans()
    }

    /// The field that names the first register of an operand.
    fn field(&self, span: Span) -> u128 {
        let field = self.function.table.field(span.into());
        ((1u128 << field.1) - 1) << field.0
    }

    /// The registers of one role in operand order, the guard left out.
    fn values(&self, role: Role) -> impl Iterator<Item = Value> + '_ {
        let spans = self.spans().iter();
        let spans = spans.filter(move |span| span.role == role && span.bit != GUARD_BIT);
        spans.flat_map(|span| {
            let registers = span.registers();
            registers.filter_map(|number| value_of(span.file, number))
        })
    }

    fn guard(&self) -> Option<Guard> {
        let mut spans = self.spans().iter();
        let span = spans.find(|span| span.bit == GUARD_BIT)?;
        Some(Guard {
            value: value_of(span.file, span.first)?,
            negated: bits::GUARD_NEGATED.get(self.word) != 0,
        })
    }

    fn touches_stack(&self) -> bool {
        let stack = self.function.stack;
        let mut spans = self.spans().iter();
        spans.any(|span| {
            stack.is_some_and(|(file, n)| span.file == file && span.registers().contains(&n))
        })
    }

    /// The register that holds the stack pointer, as a value.
    fn stack(&self) -> Option<Value> {
        let (file, number) = self.function.stack?;
        value_of(file, number)
    }

    fn register(&self, field: bits::Field) -> Arg {
        match bits_register(field.get(self.word)) {
            Some(value) => Arg::Value(value),
            None => Arg::Const(0),
        }
    }

    fn result(&self) -> SmallVec<[Option<Value>; 2]> {
        SmallVec::from_slice(&[bits_register(bits::RESULT.get(self.word))])
    }

    fn interpreted(&self, meaning: Meaning, args: &[Arg]) -> Step {
        let mut step = Step::new(self.name);
        step.meaning = meaning;
        step.args = args.iter().cloned().collect();
        step.results = self.result();
        step
    }

    /// Is it the load of the stack pointer from its constant, unconditionally?
    fn loads_stack_pointer(&self) -> bool {
        self.function.is_stack_load(self.inst)
    }

    /// The frame is taken to begin where the stack pointer is after room was made for it.
    fn stack_pointer(&self) -> Step {
        let frame = Arg::Symbol(self.function.frame_name(), 0);
        let size = Arg::Const(u64::from(self.function.memory.frame));
        let mut step = self.interpreted(Meaning::Add(32), &[frame, size]);
        step.results = SmallVec::from_slice(&[self.stack()]);
        step
    }

    /// `UIADD3 UR, UR, n, URZ` of the uniform register that holds the stack pointer.
    fn uniform_stack_sum(&self) -> Option<Step> {
        let (file, number) = self.function.stack?;
        let (from, to) = (bits::A.get(self.word), bits::RESULT.get(self.word));
        let is_sum = self.word.bits() & !operand_bits() == 0x0fff_e03f << 64 | 0x890;
        let is_here = file == File::Uniform && [from, to] == [u32::from(number); 2];
        let n = Arg::Const(u64::from(bits::IMMEDIATE.get(self.word)));
        (is_sum && is_here).then(|| {
            let mut step = Step::new(self.name);
            step.meaning = Meaning::Add(32);
            step.args = self
                .stack()
                .map(Arg::Value)
                .into_iter()
                .chain([n])
                .collect();
            step.results = SmallVec::from_slice(&[self.stack()]);
            step
        })
    }

    /// Does it read the constant that holds the stack pointer?
    fn reads_stack_constant(&self) -> bool {
        let Some(constant) = bits::constant(self.word) else {
            return false;
        };
        let stack = i64::from(super::stack_constant(self.word.sm()));
        let read = constant.offset..constant.offset + constant.bytes;
        constant.bank == 0 && read.start < stack + 4 && stack < read.end && !constant.is_indexed
    }

    /// a + constant: `IADD3 R, R, n, RZ`, `VIADD R, R, n`, `IADD R, R, n` without any modifier.
    fn sum(&self) -> Option<Step> {
        let modifiers = bits::MODIFIERS.get(self.word);
        let known = match bits::OPCODE.get(self.word) {
            0x810 => modifiers == 0x07_ffe0 && bits::C.get(self.word) == bits::RZ,
            0x836 => self.word.bits() & !operand_bits() == 0x836,
            0x835 => modifiers == 0x07_8e00 && bits::C.get(self.word) == 0,
            _ => false,
        };
        let n = Arg::Const(u64::from(bits::IMMEDIATE.get(self.word)));
        known.then(|| self.interpreted(Meaning::Add(32), &[self.register(bits::A), n]))
    }

    /// a · b + c, low half: `IMAD` and `IMAD.U32` of three registers.
    fn multiply_add(&self) -> Option<Step> {
        let modifiers = bits::MODIFIERS.get(self.word);
        let known = bits::OPCODE.get(self.word) == 0x224
            && matches!(modifiers, 0x07_8e00 | 0x07_8e02)
            && bits::OFFSET.get(self.word) == 0;
        let args = [bits::A, bits::B, bits::C].map(|field| self.register(field));
        known.then(|| self.interpreted(Meaning::MulAdd(32), &args))
    }

    fn thread_index(&self) -> Option<Step> {
        let dimension = bits::SPECIAL.get(self.word).checked_sub(THREAD_INDEX)?;
        let fields = [bits::OPCODE, bits::GUARD, bits::RESULT, bits::SPECIAL];
        let known = fields.iter().chain(&[bits::CONTROL]);
        let known = known.fold(0, |all, field| all | field.mask());
        let is_plain = self.name == "S2R" && self.word.bits() & !known == 0;
        let index = Arg::Coordinate(Coordinate::Thread(dimension as u8));
        (is_plain && dimension < 3).then(|| self.interpreted(Meaning::Copy, &[index]))
    }

    fn block_size(&self) -> Option<Step> {
        let constant = bits::constant(self.word)?;
        let first = i64::from(super::block_constant(self.word.sm()));
        let dimension = (constant.offset - first) / 4;
        let is_plain = bits::MODIFIERS.get(self.word) == 0x8 && bits::C.get(self.word) == 0;
        let known = bits::OPCODE.get(self.word) == 0xb82
            && is_plain
            && constant.bank == 0
            && !constant.is_indexed
            && bits::B.get(self.word) == 0
            && (0..3).contains(&dimension);
        let size = Arg::Coordinate(Coordinate::Block(dimension as u8));
        known.then(|| self.interpreted(Meaning::Copy, &[size]))
    }

    /// `LDL` or `STL` of the frame.
    fn frame_access(&self) -> Result<Step> {
        let offset = bits::offset(self.word);
        let bytes = i64::from(self.word.access_bytes());
        let frame = i64::from(self.function.memory.frame);
        let is_inside = offset >= 0 && i64::from(offset) + bytes <= frame;
        let cache = bits::CACHE.get(self.word);
        if cache > 5 || self.is_store() && cache == bits::LAST_USE {
            return unsupported("a cache operation that is not understood");
        }
        let base = self
            .stack()
            .filter(|_| is_inside && self.is_relative_to_stack());
        let Some(base) = base else {
            return unsupported("local memory that is not spill code");
        };
        let base = Base::Value(base, 32);
        Ok(self.access(base, i64::from(offset), SlotSpace::Local))
    }

    /// Is the address the stack pointer's register and a constant, and nothing else?
    fn is_relative_to_stack(&self) -> bool {
        let opcode = bits::OPCODE.get(self.word);
        match self.function.stack {
            Some((File::Gpr, _)) => {
                matches!(opcode, 0x387 | 0x983)
                    && bits::A.get(self.word) == bits::STACK
                    && self.other_bits(&[bits::CACHE]) == 0
            }
            Some((_, number)) => {
                let uniform = match opcode {
                    0x987 => bits::STORE_UNIFORM,
                    _ => bits::LOAD_UNIFORM,
                };
                matches!(opcode, 0x987 | 0x983)
                    && bits::A.get(self.word) == bits::RZ
                    && bits::HAS_UNIFORM.get(self.word) == 1
                    && uniform.get(self.word) == u32::from(number)
                    && self.other_bits(&[bits::CACHE, bits::HAS_UNIFORM, uniform]) == 0
            }
            None => false,
        }
    }

    /// `LDS` or `STS` of shared memory that only this version has, if it is one.
    fn shared_access(&self) -> Result<Option<Step>> {
        if !matches!(self.name, "LDS" | "STS") {
            return Ok(None);
        }
        let Some(offset) = self.function.own_shared_offset(self.word) else {
            return Ok(None);
        };
        let is_plain = matches!(bits::OPCODE.get(self.word), 0x388 | 0x984)
            && self.other_bits(&[bits::SCALE]) == 0;
        let index = bits_register(bits::A.get(self.word)).filter(|_| is_plain);
        let Some(index) = index else {
            return unsupported("the spill area is accessed in a form that is not understood");
        };
        let scale = bits::scale(self.word);
        let of = self.function.shared_name();
        let base = Base::Element { of, index, scale };
        let from_start = i64::from(offset - self.function.memory.shared.start);
        Ok(Some(self.access(base, from_start, SlotSpace::Shared)))
    }

    /// `LDG` or `STG` that is neither volatile nor ordered, at a pair of registers and a constant.
    fn global_access(&self) -> Result<Option<Step>> {
        let is_store = match self.name {
            "LDG" => false,
            "STG" => true,
            _ => return Ok(None),
        };
        let order = bits::ORDER.get(self.word);
        let is_constant = order == bits::CONSTANT && !is_store;
        let is_plain = order == bits::WEAK || is_constant;
        let is_pair = self.word.bits() & bits::PAIR_ALONE == bits::PAIR_ALONE;
        if !is_plain || !is_pair || self.word.sm() < bits::ORDERED_SINCE {
            return Ok(None);
        }
        let spans = self.spans().iter().filter(|span| span.bit != GUARD_BIT);
        let (mut address, mut data, mut rest) = (None, None, Vec::new());
        for span in spans {
            let place = match (span.file, span.role, span.bit) {
                (File::Gpr, Role::Use, 24) if span.count == 2 => &mut address,
                (File::Gpr, Role::Use, 32) if is_store => &mut data,
                (File::Gpr, Role::Def, 16) if !is_store => &mut data,
                (File::Uniform | File::Pred, Role::Use, _) => {
                    rest.push(*span);
                    continue;
                }
                _ => return Ok(None),
            };
            if place.replace(*span).is_some() {
                return Ok(None);
            }
        }
        let register = |span: &Span, n: u16| value_of(span.file, span.first + n);
        let pair = address.and_then(|span| Some((register(&span, 0)?, register(&span, 1)?)));
        let (Some((low, high)), false) =
            (pair, self.function.relocations.contains_key(&self.inst.0))
        else {
            return Ok(None);
        };
        let bytes = self.word.access_bytes();
        let (bytes, lanes) = (bytes.min(4), (bytes / 4).max(1));
        let values = (0..lanes as u16).map(|lane| match data {
            Some(span) if lane < span.count => register(&span, lane),
            _ => None,
        });
        let mut kept = !(bits::CONTROL.mask() | bits::GUARD.mask() | bits::OFFSET.mask());
        for span in self.spans() {
            kept &= !self.field(*span);
        }
        let mut step = Step::new(format!("{} {:x}", self.name, self.word.bits() & kept));
        let rest = rest.iter().flat_map(|span| {
            let registers = span.registers();
            registers
                .filter_map(|number| value_of(span.file, number))
                .map(Arg::Value)
        });
        if is_store {
            step.args = values
                .map(|value| stored(value, 8 * bytes))
                .chain(rest)
                .collect();
            step.effect = Effect::Store(Spaces::GLOBAL);
        } else {
            step.results = values.collect();
            step.args = rest.collect();
            let spaces = match is_constant {
                true => Spaces::default(),
                false => Spaces::GLOBAL,
            };
            step.effect = Effect::Load {
                spaces,
                is_safe: false,
            };
        }
        step.access = Some(Access {
            address: Address {
                base: Base::Pair(low, high),
                offset: i64::from(bits::offset(self.word)),
            },
            bytes,
            lanes,
            space: SlotSpace::Other,
            extend: Extend::No,
        });
        Ok(Some(step))
    }

    /// Bits of an access that are none of the plain form's.
    fn other_bits(&self, more: &[bits::Field]) -> u128 {
        let register = match self.is_store() {
            true => bits::B,
            false => bits::RESULT,
        };
        let plain = [
            bits::OPCODE,
            bits::GUARD,
            register,
            bits::A,
            bits::OFFSET,
            bits::SIZE,
            bits::CONTROL,
        ];
        let known = plain.iter().chain(more).fold(0, |all, f| all | f.mask());
        self.word.bits() & !known
    }

    fn is_store(&self) -> bool {
        matches!(self.name, "STL" | "STS")
    }

    fn access(&self, base: Base, offset: i64, space: SlotSpace) -> Step {
        let bytes = self.word.access_bytes();
        let (bytes, lanes) = (bytes.min(4), (bytes / 4).max(1));
        let bits_wide = 8 * bytes;
        let mut step = Step::new(self.name);
        let first = match self.is_store() {
            true => bits::B.get(self.word),
            false => bits::RESULT.get(self.word),
        };
        let registers = (0..lanes).map(|lane| match first {
            bits::RZ => None,
            first => bits_register(first + lane),
        });
        let spaces = match space {
            SlotSpace::Local => Spaces::LOCAL,
            _ => Spaces::SHARED,
        };
        if self.is_store() {
            step.args = registers.map(|value| stored(value, bits_wide)).collect();
            step.effect = Effect::Store(spaces);
        } else {
            step.results = registers.collect();
            let is_safe = true;
            step.effect = Effect::Load { spaces, is_safe };
        }
        let is_signed = bits::SIZE.get(self.word) & 1 == 1;
        step.access = Some(Access {
            address: Address { base, offset },
            bytes,
            lanes,
            space,
            extend: match (bytes, is_signed) {
                (4, _) => Extend::No,
                (_, true) => Extend::Sign(32),
                (_, false) => Extend::Zero(32),
            },
        });
        step
    }
}

/// The lowest bit of the guard.
pub(super) const GUARD_BIT: u8 = 12;

fn stored(value: Option<Value>, bits: u32) -> Arg {
    match value {
        Some(value) if bits < 32 => Arg::Low {
            value,
            bits,
            of: 32,
        },
        Some(value) => Arg::Value(value),
        None => Arg::Const(0),
    }
}

/// The general register of this number.
fn bits_register(number: u32) -> Option<Value> {
    value_of(File::Gpr, number as u16)
}

/// Guard, registers, immediate and control field of `op R, R, n`.
fn operand_bits() -> u128 {
    [
        bits::GUARD,
        bits::RESULT,
        bits::A,
        bits::IMMEDIATE,
        bits::CONTROL,
    ]
    .iter()
    .fold(0, |all, field| all | field.mask())
}
