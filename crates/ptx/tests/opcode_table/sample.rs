//! Instructions made from the lines of the table.

use warpwright_ptx::opcode::{Expected, Form, Lanes, Opcode, OperandSpec, Presence, Role};
use warpwright_ptx::{Type, TypeKind};

/// A choice of modifiers for a form: for each slot one of its alternatives or nothing.
pub struct Sample {
    choice: Vec<Option<&'static str>>,
}

impl Sample {
    /// The first alternative of each required slot, nothing optional.
    pub fn first(form: &Form) -> Sample {
        let first = |s: &warpwright_ptx::opcode::Slot| match s.optional {
            true => None,
            false => s.alternatives.first().copied(),
        };
        Sample {
            choice: form.slots.iter().map(first).collect(),
        }
    }

    /// Anything that the form allows.
    pub fn random(form: &Form, seed: u64) -> Sample {
        let mut random = Random(seed | 1);
        let mut sample = Sample::first(form);
        let sparse = 1 + random.below(8);
        for (choice, slot) in sample.choice.iter_mut().zip(&form.slots) {
            if !slot.optional || random.below(sparse) == 0 {
                *choice = Some(slot.alternatives[random.below(slot.alternatives.len())]);
            }
        }
        sample
    }

    /// Takes `modifier` in a slot.
    pub fn set(&mut self, slot: usize, modifier: &'static str) {
        self.choice[slot] = Some(modifier);
    }

    /// The whole instruction, with or without its optional operands.
    pub fn text(&self, form: &Form, optional: bool) -> String {
        self.write(form, optional, None)
    }

    /// The same with `_` for an operand, or for the first element of a vector.
    pub fn with_sink(&self, form: &Form, operand: &str) -> String {
        self.write(form, false, Some(operand))
    }

    fn write(&self, form: &Form, optional: bool, sink: Option<&str>) -> String {
        let mut text = form.op.word().to_owned();
        for modifier in self.choice.iter().flatten() {
            text.push('.');
            text.push_str(modifier);
        }
        let opcode = Opcode::parse(&text);
        let operands = Operands::new(form, &opcode, optional, sink);
        format!("{text} {};", operands.list.join(", "))
    }
}

/// Makes operands; no register is used twice.
struct Operands<'a> {
    opcode: &'a Opcode,
    sink: Option<&'a str>,
    list: Vec<String>,
    next: u32,
}

impl Operands<'_> {
    fn new<'a>(
        form: &Form,
        opcode: &'a Opcode,
        optional: bool,
        sink: Option<&'a str>,
    ) -> Operands<'a> {
        let mut operands = Operands {
            opcode,
            sink,
            list: Vec::new(),
            next: 0,
        };
        if let Some(sample) = form.sample {
            let text = operands.fill_in(form, sample);
            operands.list.push(text);
        }
        for spec in &form.operands {
            let there = match spec.presence {
                Presence::Always => form.sample.is_none(),
                Presence::Optional => form.sample.is_none() && optional,
                Presence::With(modifier) => opcode.has_mod(modifier),
            };
            if there {
                let operand = operands.operand(spec);
                operands.list.push(operand);
            }
        }
        operands
    }

    /// Replaces `~name` by the operand of that name, and what stands in `<>` by coordinates.
    fn fill_in(&mut self, form: &Form, sample: &str) -> String {
        let mut text = sample.to_owned();
        for spec in &form.operands {
            let name = format!("~{}", spec.name);
            if text.contains(&name) {
                text = text.replacen(&name, &self.operand(spec), 1);
            }
        }
        let has = |m: &str| self.opcode.has_mod(m);
        let (global_dim, strides) = (
            has("override::global_dim"),
            has("override::global_dim_stride"),
        );
        let dims = self.opcode.mods().find_map(dimensions).unwrap_or(1);
        let list = |prefix: &str, n: usize| {
            let all: Vec<String> = (1..=n).map(|i| format!("%{prefix}{i}")).collect();
            format!("{{{}}}", all.join(","))
        };
        // Without a place for them ptxas would give up the whole module.
        let placed = has("override::global_address");
        let sizes = match (global_dim && placed, strides && placed) {
            (true, _) => format!("{}, ", list("h", dims)),
            (_, true) => format!("{}, {}, %h9, ", list("h", dims), list("r", dims.max(2) - 1)),
            _ => String::new(),
        };
        let texels = self.opcode.mods().find_map(texels).unwrap_or(1);
        let gradients = self.opcode.mods().find_map(gradients).unwrap_or(1);
        let offsets = match has("im2col") {
            true => dims.max(3) - 2,
            false => 2,
        };
        let address = ["", ", %d9"][usize::from(has("override::global_address"))];
        let counted = ["", ", %d8"][usize::from(has("counted::bytes"))];
        text.replace("<tensor>", &(sizes + &list("r", dims)))
            .replace("<address>", address)
            .replace("<counted>", counted)
            .replace("<offsets>", &list("h", offsets))
            .replace("<texel>", &list("r", texels))
            .replace("<gradient>", &list("f", gradients))
    }

    fn operand(&mut self, spec: &OperandSpec) -> String {
        let expected = self.opcode.expected(spec);
        match spec.role {
            Role::Label => "L0".to_owned(),
            Role::BranchTargets => "T0".to_owned(),
            Role::CallPart => "dev".to_owned(),
            // The name of an immediate may state a value that is legal: `size=16`.
            Role::Immediate => {
                let value = spec.name.split_once('=').map_or("0", |(_, value)| value);
                value.to_owned()
            }
            Role::Address => {
                let ty = expected.ty.unwrap_or(Type::B64);
                format!("[{}]", self.register(ty))
            }
            Role::Def | Role::Use | Role::UseDef => self.value(spec.name, &expected),
        }
    }

    fn value(&mut self, name: &str, expected: &Expected) -> String {
        let ty = expected.ty.unwrap_or(Type::B32);
        let first = match expected.lanes {
            Lanes::Exactly(n) => {
                let all: Vec<String> = (0..n).map(|_| self.register(ty)).collect();
                format!("{{{}}}", all.join(","))
            }
            _ => self.register(ty),
        };
        let first = match (self.sink == Some(name), first.split_once(',')) {
            (true, Some((_, rest))) => format!("{{_,{rest}"),
            (true, None) => "_".to_owned(),
            _ => first,
        };
        match expected.second {
            Some(second) => format!("{first}|{}", self.register(second)),
            None => first,
        }
    }

    fn register(&mut self, ty: Type) -> String {
        self.next += 1;
        let n = self.next;
        let prefix = match (ty.kind(), ty) {
            (TypeKind::Predicate, _) => "p",
            (_, Type::F32) => "f",
            (_, Type::F64) => "e",
            (TypeKind::Opaque, _) => "d",
            _ => match ty.bits() {
                0..=8 => "c",
                9..=16 => "h",
                17..=32 => "r",
                33..=64 => "d",
                _ => "q",
            },
        };
        format!("%{prefix}{n}")
    }
}

/// Dimensions of a tensor.
fn dimensions(modifier: &str) -> Option<usize> {
    modifier.strip_suffix('d')?.parse().ok()
}

/// Length of the coordinate vector of a texture.
fn texels(modifier: &str) -> Option<usize> {
    match modifier {
        "1d" => Some(1),
        "2d" | "a1d" => Some(2),
        "3d" | "a2d" | "cube" | "acube" | "2dms" | "a2dms" => Some(4),
        _ => None,
    }
}

/// Length of a gradient of texture coordinates.
fn gradients(modifier: &str) -> Option<usize> {
    match modifier {
        "1d" | "a1d" => Some(1),
        "2d" | "a2d" => Some(2),
        "3d" | "cube" | "acube" => Some(4),
        _ => None,
    }
}

/// A small generator of numbers (xorshift): the same ones in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}
