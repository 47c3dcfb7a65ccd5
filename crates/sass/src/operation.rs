//! Operations and opcodes as types: what other code asks for by name, not by number.
//!
//! The names are held against the instruction tables of every architecture by a test: a form with one of
//! these operations has the mnemonic given here.

/// What an instruction does, whatever the form of its operands: bits 0 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(u16);

/// Operation and form of the operands: bits 0 to 11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(u16);

/// How the sources are given: bits 9 to 11 of the opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperandForm(u8);

impl OperandForm {
    /// All sources in registers; of calls and jumps, the target in a register.
    pub const REGISTERS: OperandForm = OperandForm(1);
    /// An immediate or a target in place of the second source.
    pub const IMMEDIATE: OperandForm = OperandForm(4);
    /// The same in place of the third source: MOV and the sums of a product.
    pub const LAST_IMMEDIATE: OperandForm = OperandForm(2);

    /// Is there a source in a constant bank, in the second or the third place? No other form has one, on any architecture
    /// of the tables.
    pub const fn has_constant(self) -> bool {
        matches!(self.0, 3 | 5)
    }
}

impl Operation {
    /// From its number: nine bits, the others do not count.
    pub const fn new(number: u16) -> Operation {
        Operation(number & 0x1ff)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The opcode with operands in a form.
    pub const fn with(self, form: OperandForm) -> Opcode {
        Opcode(self.0 | (form.0 as u16) << 9)
    }
}

impl Opcode {
    /// From its number: twelve bits, the others do not count.
    pub const fn new(number: u16) -> Opcode {
        Opcode(number & 0xfff)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// What the instruction does.
    pub const fn operation(self) -> Operation {
        Operation::new(self.0)
    }

    /// The form of the operands.
    pub const fn form(self) -> OperandForm {
        OperandForm((self.0 >> 9) as u8)
    }
}

macro_rules! operations {
    ($($number:literal $name:ident $mnemonic:literal;)*) => {
        impl Operation {
            $(#[doc = $mnemonic] pub const $name: Operation = Operation($number);)*

            /// Those that have a name here, with their mnemonics.
            pub const NAMED: &[(Operation, &'static str)] =
                &[$((Operation::$name, $mnemonic),)*];
        }
    };
}

operations! {
    0x002 MOV "MOV";
    0x003 P2R "P2R";
    0x004 R2P "R2P";
    0x020 FMUL "FMUL";
    0x021 FADD "FADD";
    0x023 FFMA "FFMA";
    0x024 IMAD "IMAD";
    0x031 HFMA2 "HFMA2";
    0x118 NOP "NOP";
    0x119 S2R "S2R";
    0x11a DEPBAR "DEPBAR";
    0x11d BAR "BAR";
    0x143 CALL_ABS "CALL";
    0x144 CALL_REL "CALL";
    0x145 BSSY "BSSY";
    0x147 BRA "BRA";
    0x148 WARPSYNC "WARPSYNC";
    0x149 BRX "BRX";
    0x14a JMP "JMP";
    0x14c JMX "JMX";
    0x14d EXIT "EXIT";
    0x14e LEPC "LEPC";
    0x150 RET "RET";
    0x158 BRXU "BRXU";
    0x159 JMXU "JMXU";
    0x15b KILL "KILL";
    0x182 LDC "LDC";
    0x183 LDL "LDL";
    0x184 LDS "LDS";
    0x186 STG "STG";
    0x187 STL "STL";
    0x188 STS "STS";
    0x192 MEMBAR "MEMBAR";
}

impl Operation {
    /// HFMA2.MMA, before sm_100, where the number means IADD.
    pub const HFMA2_MMA: Operation = Operation(0x035);
    /// UCGABAR_ARV and UCGABAR_WAIT, by their form: arrive at a barrier of the cluster, wait for it.
    pub const UCGABAR: Operation = Operation(0x1c7);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::table::Table;

    #[test]
    fn the_tables_have_the_same_names() {
        for sm in [75, 80, 86, 89, 90, 100, 120] {
            for form in Table::of(sm).unwrap().forms() {
                let operation = Opcode::new(form.opcode).operation();
                for (known, mnemonic) in Operation::NAMED {
                    let same = *known == operation;
                    assert!(!same || form.mnemonic() == *mnemonic, "sm_{sm}: {form:?}");
                }
                if operation == Operation::UCGABAR {
                    assert!(form.mnemonic().starts_with("UCGABAR_"), "sm_{sm}: {form:?}");
                }
                if operation == Operation::HFMA2_MMA {
                    let mnemonic = if sm < 100 { "HFMA2" } else { "IADD" };
                    assert_eq!(form.mnemonic(), mnemonic, "sm_{sm}");
                }
            }
        }
    }
}
