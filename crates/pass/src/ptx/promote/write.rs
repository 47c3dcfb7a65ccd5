//! The text with a location in a register.

use warpwright_ptx::{Edits, FuncId, Type};

use super::around::Exit;
use super::location::{Access, Location};
use crate::ptx::specialize::guard_text;
use crate::refusal::Refusal;

/// The registers of a location.
struct Registers {
    /// What it holds.
    kept: String,
    /// An address moved by the distance of two constants.
    moved: String,
    /// Is an address its own?
    same: String,
}

impl Location<'_, '_> {
    /// The location as the text names it, and its place in the source where that is known.
    pub(super) fn in_words(&self, kernel: FuncId) -> String {
        let view = self.turn.view;
        let mut own = self.accesses().iter().filter(|access| self.is_it(access));
        let line = own.find_map(|access| view.module().own_line(kernel, access.inst));
        match line {
            Some((_, line)) => format!("{} of line {line}", self.address()),
            None => self.address(),
        }
    }

    /// # Errors
    /// The text cannot be edited so.
    pub(super) fn written(&self, kernel: FuncId) -> Result<String, Refusal> {
        let module = self.turn.view.module();
        let mut edits = Edits::new(module);
        let registers = self.registers(kernel, &mut edits)?;
        self.enter(&registers, &mut edits);
        for access in self.accesses() {
            match self.is_it(access) {
                true => self.instead(kernel, access, &registers, &mut edits),
                false => self.beside(kernel, access, &registers, &mut edits),
            }
        }
        self.leave(kernel, &registers, &mut edits);
        Ok(edits.apply()?)
    }

    fn registers(&self, kernel: FuncId, edits: &mut Edits<'_>) -> Result<Registers, Refusal> {
        let registers = Registers {
            kept: edits.fresh_name("%kept"),
            moved: edits.fresh_name("%moved"),
            same: edits.fresh_name("%same"),
        };
        let ty = if self.ty.bits() == 32 {
            Type::B32
        } else {
            Type::B64
        };
        edits.add_register(kernel, ty, &registers.kept)?;
        edits.add_register(kernel, Type::B64, &registers.moved)?;
        edits.add_register(kernel, Type::Pred, &registers.same)?;
        Ok(registers)
    }

    fn address(&self) -> String {
        self.turn.cell(self.base, self.offset).to_string()
    }

    /// Of the type of the first store.
    fn store(&self, registers: &Registers) -> String {
        let (ty, address) = (self.ty.text(), self.address());
        format!("st.global.{ty} {address}, {};", registers.kept)
    }

    /// The register is loaded in front of the header.
    fn enter(&self, registers: &Registers, edits: &mut Edits<'_>) {
        let (body, around) = (self.turn.view.body(), &self.turn.around);
        let header = &body.labels[around.label];
        let mut text = String::new();
        if around.falls_from_inside {
            text += &format!("\tbra.uni {};\n", header.name);
        }
        if !around.entries.is_empty() {
            let label = edits.fresh_name("$L_kept_");
            text += &format!("{label}:\n");
            for &id in &around.entries {
                edits.replace(body.operand_span(id), label.clone());
            }
        }
        let (bits, address) = (self.ty.bits(), self.address());
        text += &format!("\tld.global.b{bits} {}, {address};\n", registers.kept);
        edits.insert(header.span.start, text);
    }

    /// The register is stored on each way out.
    fn leave(&self, kernel: FuncId, registers: &Registers, edits: &mut Edits<'_>) {
        let body = self.turn.view.body();
        let store = self.store(registers);
        for &exit in &self.turn.around.exits {
            match exit {
                Exit::Behind(inst) => {
                    edits.insert_after(kernel, inst, std::slice::from_ref(&store))
                }
                Exit::Branch(id, to) => {
                    let label = edits.fresh_name("$L_kept_");
                    let to = &body.labels[to].name;
                    let text = format!("{label}:\n\t{store}\n\tbra.uni {to};\n");
                    edits.replace(body.operand_span(id), label);
                    edits.insert(body.span.end - 1, text);
                }
            }
        }
    }

    /// A move in the place of an access of the location.
    fn instead(
        &self,
        kernel: FuncId,
        access: &Access,
        registers: &Registers,
        edits: &mut Edits<'_>,
    ) {
        let guard = guard_text(self.turn.view, access.inst);
        let (value, kept) = (self.turn.value(access), &registers.kept);
        let (to, from) = match access.is_load {
            true => (&value, kept),
            false => (kept, &value),
        };
        let line = format!("{guard}mov.b{} {to}, {from};", self.ty.bits());
        edits.replace_by_lines(kernel, access.inst, &[line]);
    }

    /// A selection behind another access, which may be one of the location.
    fn beside(
        &self,
        kernel: FuncId,
        access: &Access,
        registers: &Registers,
        edits: &mut Edits<'_>,
    ) {
        let guard = guard_text(self.turn.view, access.inst);
        let (bits, value) = (self.ty.bits(), self.turn.value(access));
        let Registers { kept, same, .. } = registers;
        let compared = self.compared(access, registers);
        match access.is_load {
            true => {
                let chosen = format!("{guard}selp.b{bits} {value}, {kept}, {value}, {same};");
                edits.insert_before(kernel, access.inst, &compared);
                edits.insert_after(kernel, access.inst, &[chosen]);
            }
            false => {
                let chosen = format!("{guard}selp.b{bits} {kept}, {value}, {kept}, {same};");
                let lines: Vec<String> = compared.into_iter().chain([chosen]).collect();
                edits.insert_after(kernel, access.inst, &lines);
            }
        }
    }

    /// Is the address of an access the location's?
    fn compared(&self, access: &Access, registers: &Registers) -> Vec<String> {
        let body = self.turn.view.body();
        let (base, other) = (body.reg_name(self.base), body.reg_name(access.base));
        let Registers { moved, same, .. } = registers;
        match access.offset.wrapping_sub(self.offset) {
            0 => vec![format!("setp.eq.u64 {same}, {other}, {base};")],
            distance => vec![
                format!("add.s64 {moved}, {other}, {distance};"),
                format!("setp.eq.u64 {same}, {moved}, {base};"),
            ],
        }
    }
}
