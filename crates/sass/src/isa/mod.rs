//! Decoding and encoding of instructions, by tables that `warpwright-sassmine` derives
//! (docs/sass.md).
//!
//! * [`form`]: what a table says about an opcode: fixed bits, fields, text.
//! * [`table`]: the tables and their syntax.
//! * [`operand`]: the operands of an instruction as data.
//! * [`print`] and [`parse`]: the text of an operation, as nvdisasm writes it, and back.
//! * [`float`]: floating-point immediates.

pub mod float;
pub mod form;
pub mod operand;
pub mod parse;
pub mod print;
pub mod table;

use smallvec::SmallVec;

use crate::control::{Control, ControlRange};
use crate::inst::Instruction;
use form::{Form, GUARD, Guard, OPERATION};
use operand::Operand;
use table::Table;

const GUARD_SHIFT: u32 = 12;
/// Bits 126 and 127, which belong to nothing we know.
const UNCLAIMED: u128 = 3 << 126;

/// The values of a form's fields, in the form's order.
type Values = SmallVec<[u64; 24]>;

/// An instruction in parts. [`encode`] puts them together again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    sm: u32,
    form: Option<&'static Form>,
    guard: u8,
    values: Values,
    /// The control field.
    pub control: Control,
    /// Bits without a meaning that we know; of an opaque instruction, all but the control field.
    rest: u128,
}

/// Takes an instruction apart. One with a bit that the architecture's table does not explain comes out
/// opaque: it has no mnemonic and no operands, but it keeps its bits.
pub fn decode(inst: Instruction) -> Decoded {
    let bits = inst.bits();
    let form = Table::of(inst.sm()).and_then(|table| table.find(bits));
    let mut decoded = Decoded {
        sm: inst.sm(),
        form,
        guard: 0,
        values: Values::new(),
        control: inst.control(),
        rest: bits & UNCLAIMED,
    };
    let Some(form) = form else {
        decoded.rest |= bits & OPERATION;
        return decoded;
    };
    if form.guard != Guard::None {
        decoded.guard = (bits >> GUARD_SHIFT) as u8 & 0xf;
    }
    decoded.rest |= bits & form.hidden;
    decoded
        .values
        .extend(form.fields.iter().map(|f| f.extract(bits)));
    decoded
}

/// Puts an instruction together.
///
/// # Errors
/// The control field has a value that is too large for its place.
pub fn encode(decoded: &Decoded) -> Result<Instruction, ControlRange> {
    let mut bits = decoded.rest;
    if let Some(form) = decoded.form {
        bits |= form.value;
        if form.guard != Guard::None {
            bits |= u128::from(decoded.guard) << GUARD_SHIFT & GUARD;
        }
        let fields = form.fields.iter().zip(&decoded.values);
        // Operand reuse has a text, but it belongs to the control field.
        bits |= fields.fold(0, |b, (f, &v)| b | f.deposit(v)) & OPERATION;
    }
    Instruction::new(decoded.sm, bits).with_control(decoded.control)
}

impl Decoded {
    /// Is there a bit that the tables do not explain?
    pub fn is_opaque(&self) -> bool {
        self.form.is_none()
    }

    /// The form that explains the bits.
    pub fn form(&self) -> Option<&'static Form> {
        self.form
    }

    /// The mnemonic without modifiers; empty for an opaque instruction.
    pub fn mnemonic(&self) -> &'static str {
        self.form.map_or("", Form::mnemonic)
    }

    /// The guard: index of the predicate (7 is PT), negated or not. `None` if the form has no guard.
    pub fn guard(&self) -> Option<(u8, bool)> {
        let form = self.form?;
        (form.guard != Guard::None).then_some((self.guard & 7, self.guard & 8 != 0))
    }

    /// Value of the form's field `index`.
    pub fn value(&self, index: usize) -> Option<u64> {
        self.values.get(index).copied()
    }

    /// Sets the form's field `index`; false if there is none or the value is too wide for it, or if it
    /// is a modifier's and has no text.
    pub fn set_value(&mut self, index: usize, value: u64) -> bool {
        let (Some(form), Some(place)) = (self.form, self.values.get_mut(index)) else {
            return false;
        };
        let field = &form.fields[index];
        let old = std::mem::replace(place, value);
        let fits = field.extract(field.deposit(value)) == value;
        if fits && form.has_texts(field.deposit(value) | self.others(form, index)) {
            return true;
        }
        self.values[index] = old;
        false
    }

    fn others(&self, form: &Form, index: usize) -> u128 {
        let fields = form.fields.iter().zip(&self.values).enumerate();
        fields
            .filter(|f| f.0 != index)
            .fold(0, |b, (_, (f, &v))| b | f.deposit(v))
    }

    /// The modifiers of the mnemonic, for example `.E.64`; empty for an opaque instruction.
    pub fn modifiers(&self) -> String {
        let text = self.text(0);
        let name = self.mnemonic();
        let start = text.find(name).map_or(0, |at| at + name.len());
        let tail = &text[start..];
        tail[..tail.find(' ').unwrap_or(tail.len())].to_owned()
    }

    /// The operands, in the order of the text, of an instruction at byte `address`; none for an opaque
    /// one.
    pub fn operands(&self, address: u64) -> Vec<Operand> {
        operand::operands(self, address)
    }

    /// Guard, mnemonic, modifiers and operands as nvdisasm writes them for an instruction at byte
    /// `address`; empty for an opaque one.
    pub fn text(&self, address: u64) -> String {
        let mut out = String::new();
        if let (Some(form), Ok(inst)) = (self.form, encode(self)) {
            print::operation(form, inst.bits(), address, &mut out);
        }
        out
    }

    fn bits(&self) -> u128 {
        encode(self).map_or(0, Instruction::bits)
    }
}
