//! Guards in other languages: as an expression of C, and as code of PTX that sets a predicate.

use std::fmt::Write;

use super::{Condition, Disjoint, Extent, Guard, Quantity, Set};
use crate::values::Field;

/// What the numbers of a launch are called in C.
#[derive(Clone, Copy, Debug)]
pub struct CNames<'a> {
    /// A `dim3`.
    pub block: &'a str,
    /// A `dim3`.
    pub grid: &'a str,
    /// A `dim3`.
    pub cluster: &'a str,
    /// Bytes of dynamic shared memory.
    pub dynamic_smem: &'a str,
}

impl Guard {
    /// The guard as an expression of C or C++ that is 1 or 0. `param` gives an expression for the bits of a
    /// parameter's field as `unsigned long long`; `None` where it has none, and for the whole then.
    pub fn to_c(
        &self,
        names: CNames<'_>,
        param: &dyn Fn(Field) -> Option<String>,
    ) -> Option<String> {
        if self.is_never() {
            return Some("0".to_owned());
        }
        let number = |quantity| {
            Some(match quantity {
                Quantity::Block(extent) => dims(names.block, extent),
                Quantity::Grid(extent) => dims(names.grid, extent),
                Quantity::Cluster(extent) => dims(names.cluster, extent),
                Quantity::DynamicShared => format!("(unsigned long long)({})", names.dynamic_smem),
                Quantity::Param(field) => format!("({})", param(field)?),
            })
        };
        let tests: Option<Vec<String>> = self
            .conditions()
            .map(|condition| match condition {
                Condition::In(quantity, set) => Some(c_set(&number(quantity)?, set)),
                Condition::Disjoint(Disjoint { pointers, bytes }) => {
                    let [a, b] = pointers.map(|pointer| number(Quantity::Param(pointer)));
                    let ((a, b), [m, n]) = ((a?, b?), bytes);
                    Some(format!(
                        "({a} <= {b} && {b} - {a} >= {m}ull || {b} <= {a} && {a} - {b} >= {n}ull)"
                    ))
                }
            })
            .collect();
        let tests = tests?;
        let nothing = || "1".to_owned();
        Some(if tests.is_empty() {
            nothing()
        } else {
            tests.join(" && ")
        })
    }
}

fn dims(of: &str, extent: Extent) -> String {
    match extent {
        Extent::Size => format!("((unsigned long long){of}.x * {of}.y * {of}.z)"),
        axis => format!("(unsigned long long){of}.{}", axis.name()),
    }
}

fn c_set(number: &str, set: Set) -> String {
    if let Some(value) = set.value() {
        return format!("{number} == {value}ull");
    }
    let mut tests = Vec::new();
    if set.low() > 0 {
        tests.push(format!("{number} >= {}ull", set.low()));
    }
    if set.high() < u64::MAX {
        tests.push(format!("{number} <= {}ull", set.high()));
    }
    if set.step() > 1 {
        tests.push(format!("{number} % {}ull == 0", set.step()));
    }
    if tests.is_empty() {
        tests.push("1".to_owned());
    }
    tests.join(" && ")
}

/// What the code in PTX may use.
#[derive(Clone, Copy, Debug)]
pub struct PtxNames<'a> {
    /// The kernel's parameters, in their order.
    pub params: &'a [&'a str],
    /// Registers of the code begin so; nothing else does. With the percent sign.
    pub prefix: &'a str,
}

/// A guard as PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxGuard {
    /// Declarations of registers, and code, a line each.
    pub code: String,
    /// The predicate that holds where the guard does, the same in all threads of a launch.
    pub predicate: String,
}

impl Guard {
    /// Code for a kernel's entry. `None` where it needs a parameter that the kernel does not have.
    pub fn to_ptx(&self, names: PtxNames<'_>) -> Option<PtxGuard> {
        let mut writer = PtxWriter {
            names,
            code: String::new(),
        };
        writer.head(!self.is_never());
        for condition in self.conditions() {
            match condition {
                Condition::In(quantity, set) => {
                    writer.number("a", quantity)?;
                    writer.test_set(set);
                }
                Condition::Disjoint(disjoint) => writer.test_disjoint(disjoint)?,
            }
        }
        Some(PtxGuard {
            code: writer.code,
            predicate: format!("{}holds", names.prefix),
        })
    }
}

struct PtxWriter<'a> {
    names: PtxNames<'a>,
    code: String,
}

impl PtxWriter<'_> {
    /// A line in which `$` stands for the prefix.
    fn line(&mut self, text: &str) {
        let text = text.replace('$', self.names.prefix);
        let _ = writeln!(self.code, "\t{text}"); // Writing to a string does not fail.
    }

    fn head(&mut self, holds: bool) {
        self.line(".reg .pred $holds, $one, $two;");
        self.line(".reg .b32 $dim;");
        self.line(".reg .b64 $a, $b, $c, $d;");
        self.line(&format!("setp.eq.u32 $holds, 0, {};", u8::from(!holds)));
    }

    fn and_one(&mut self) {
        self.line("and.pred $holds, $holds, $one;");
    }

    /// Writes a quantity into a register of 64 bits.
    fn number(&mut self, to: &str, quantity: Quantity) -> Option<()> {
        match quantity {
            Quantity::Block(extent) => self.extent(to, "%ntid", extent),
            Quantity::Grid(extent) => self.extent(to, "%nctaid", extent),
            Quantity::Cluster(extent) => self.extent(to, "%cluster_nctaid", extent),
            Quantity::DynamicShared => self.special(to, "%dynamic_smem_size"),
            Quantity::Param(field) => {
                let name = *self.names.params.get(field.param())?;
                let bits = 8 * field.bytes();
                self.line(&format!("ld.param.u{bits} ${to}, [{name}+{}];", field.at()));
            }
        }
        Some(())
    }

    fn special(&mut self, to: &str, name: &str) {
        self.line(&format!("mov.u32 $dim, {name};"));
        self.line(&format!("cvt.u64.u32 ${to}, $dim;"));
    }

    fn extent(&mut self, to: &str, name: &str, extent: Extent) {
        if extent != Extent::Size {
            return self.special(to, &format!("{name}.{}", extent.name()));
        }
        self.special(to, &format!("{name}.x"));
        for axis in ["y", "z"] {
            self.special("d", &format!("{name}.{axis}"));
            self.line(&format!("mul.lo.u64 ${to}, ${to}, $d;"));
        }
    }

    /// Is `a` in the set?
    fn test_set(&mut self, set: Set) {
        if let Some(value) = set.value() {
            self.line(&format!("setp.eq.u64 $one, $a, {value};"));
            return self.and_one();
        }
        if set.low() > 0 {
            self.line(&format!("setp.ge.u64 $one, $a, {};", set.low()));
            self.and_one();
        }
        if set.high() < u64::MAX {
            self.line(&format!("setp.le.u64 $one, $a, {};", set.high()));
            self.and_one();
        }
        let step = set.step();
        if step > 1 {
            self.line(&match step.is_power_of_two() {
                true => format!("and.b64 $b, $a, {};", step - 1),
                false => format!("rem.u64 $b, $a, {step};"),
            });
            self.line("setp.eq.u64 $one, $b, 0;");
            self.and_one();
        }
    }

    fn test_disjoint(&mut self, disjoint: Disjoint) -> Option<()> {
        let ([first, second], [m, n]) = (disjoint.pointers, disjoint.bytes);
        self.number("a", Quantity::Param(first))?;
        self.number("b", Quantity::Param(second))?;
        self.line("sub.u64 $c, $b, $a;");
        self.line(&format!("setp.ge.u64 $one, $c, {m};"));
        self.line("setp.le.and.u64 $one, $a, $b, $one;");
        self.line("sub.u64 $c, $a, $b;");
        self.line(&format!("setp.ge.u64 $two, $c, {n};"));
        self.line("setp.le.and.u64 $two, $b, $a, $two;");
        self.line("or.pred $one, $one, $two;");
        self.and_one();
        Some(())
    }
}
