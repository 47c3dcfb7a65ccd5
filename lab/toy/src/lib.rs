//! A toy instruction set with a text form, for the tests and benches of rooms that know none.
//!
//! One statement a line or after `;`, labels `name:` anywhere. Values are named: `p…` is a
//! predicate, `d…` takes 64 bits, all others 32; `fN…` must lie in register N.
//!
//! ```text
//! v1, v2 = op v3, v4      ordinary          jmp b1            goes to b1
//! @p v1 = op v2           predicated        br p b1           to b1 or on
//! @p jmp b1               predicated jump   switch v b1 b2    to one of them
//! ret v1   exit   trap    leave             call v1           comes back
//! hold0 v1, v2            reads v1 and v2 asynchronously under queue 0
//! wait0                   awaits queue 0          v1 = mov v2       copies
//! (v1 v2) = op (v3 v4)    tuples: consecutive registers, aligned to their number
//! v1 = tied v1            an accumulator: reads and writes one register
//! ```

pub mod generate;

use std::collections::HashMap;

use warpwright_flow::{
    Class, ClassInfo, EntityRef, Function, Inst, Queue, Queues, Transfer, Value,
};

/// Predicates, one and two 32-bit registers.
pub const CLASSES: &[ClassInfo] = &[
    ClassInfo {
        name: "pred",
        units: 0,
    },
    ClassInfo {
        name: "b32",
        units: 1,
    },
    ClassInfo {
        name: "b64",
        units: 2,
    },
];

/// An instruction, with what [`Function`] asks of it.
#[derive(Clone, Debug)]
pub struct ToyInst {
    /// What it writes.
    pub defs: Vec<Value>,
    /// What it reads.
    pub uses: Vec<Value>,
    /// Has it a guard?
    pub predicated: bool,
    /// Where control goes.
    pub transfer: Transfer,
    /// The targets.
    pub targets: Vec<Inst>,
    /// The queue that holds its uses.
    pub held: Option<Queue>,
    /// The queues that it awaits.
    pub waits: Queues,
    /// Operands of several values.
    pub tuples: Vec<Vec<Value>>,
    /// Is its first definition its last use, too?
    pub tied: bool,
    /// Does it copy?
    pub copies: bool,
}

impl ToyInst {
    /// An instruction without operands.
    pub fn new(transfer: Transfer) -> ToyInst {
        ToyInst {
            defs: Vec::new(),
            uses: Vec::new(),
            predicated: false,
            transfer,
            targets: Vec::new(),
            held: None,
            waits: Queues::NONE,
            tuples: Vec::new(),
            tied: false,
            copies: false,
        }
    }
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Toy {
    /// Its instructions.
    pub insts: Vec<ToyInst>,
    /// The names of its values.
    pub names: Vec<String>,
    /// The values by name.
    pub by_name: HashMap<String, Value>,
}

impl Toy {
    /// Reads the text form.
    ///
    /// # Panics
    /// If the text is wrong: tests write it.
    pub fn parse(text: &str) -> Toy {
        let mut toy = Toy::default();
        let mut labels = HashMap::new();
        let mut pending = Vec::new();
        for mut line in text.split(['\n', ';']) {
            if let Some((label, rest)) = line.split_once(':') {
                labels.insert(label.trim().to_string(), Inst(pending.len() as u32));
                line = rest;
            }
            if !line.trim().is_empty() {
                pending.push(line.trim().to_string());
            }
        }
        for line in pending {
            let inst = toy.parse_inst(&line, &labels);
            toy.insts.push(inst);
        }
        toy
    }

    fn parse_inst(&mut self, line: &str, labels: &HashMap<String, Inst>) -> ToyInst {
        let mut inst = ToyInst::new(Transfer::Next);
        let mut rest = line;
        if let Some(guarded) = rest.strip_prefix('@') {
            let (guard, after) = guarded
                .split_once(' ')
                .expect("an instruction after the guard");
            inst.predicated = true;
            inst.uses.push(self.value(guard));
            rest = after;
        }
        if let Some((defs, after)) = rest.split_once('=') {
            for operand in defs.split(',') {
                let values = self.operand(operand, &mut inst.tuples);
                inst.defs.extend(values);
            }
            rest = after;
        }
        let rest = rest.trim();
        let (op, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut open = false;
        let words = operands.split(|c: char| {
            open = c == '(' || open && c != ')';
            c == ',' || c == ' ' && !open
        });
        let words = words.map(str::trim).filter(|word| !word.is_empty());
        inst.transfer = match op {
            "jmp" => Transfer::Jump,
            "br" => Transfer::Branch,
            "switch" => Transfer::Indirect,
            "ret" => Transfer::Return,
            "exit" => Transfer::Exit,
            "trap" => Transfer::Trap,
            "call" => Transfer::Call,
            _ => Transfer::Next,
        };
        if let Some(queue) = op.strip_prefix("hold") {
            inst.held = Some(Queue(queue.parse().expect("a queue number")));
        }
        if let Some(queue) = op.strip_prefix("wait") {
            inst.waits = Queues(1 << queue.parse::<u32>().expect("a queue number"));
        }
        for word in words {
            match labels.get(word) {
                Some(&target) => inst.targets.push(target),
                None => {
                    let values = self.operand(word, &mut inst.tuples);
                    inst.uses.extend(values);
                }
            }
        }
        inst.copies = op == "mov" && !inst.predicated;
        inst.tied = op == "tied";
        inst
    }

    /// The values of an operand: a name, or several in parentheses.
    fn operand(&mut self, text: &str, tuples: &mut Vec<Vec<Value>>) -> Vec<Value> {
        let text = text.trim();
        let inner = text.trim_start_matches('(').trim_end_matches(')');
        let values: Vec<Value> = inner.split_whitespace().map(|n| self.value(n)).collect();
        if inner.len() < text.len() {
            tuples.push(values.clone());
        }
        values
    }

    /// The value of a name; a new one if there is none.
    pub fn value(&mut self, name: &str) -> Value {
        let next = Value(self.names.len() as u32);
        *self.by_name.entry(name.to_string()).or_insert_with(|| {
            self.names.push(name.to_string());
            next
        })
    }

    /// The value of an existing name.
    pub fn named(&self, name: &str) -> Value {
        self.by_name[name]
    }

    /// Names of values, joined by spaces.
    pub fn show(&self, values: &[Value]) -> String {
        let names: Vec<_> = values.iter().map(|value| self.value_name(*value)).collect();
        names.join(" ")
    }
}

impl Function for Toy {
    fn inst_count(&self) -> usize {
        self.insts.len()
    }

    fn value_count(&self) -> usize {
        self.names.len()
    }

    fn classes(&self) -> &[ClassInfo] {
        CLASSES
    }

    fn class(&self, value: Value) -> Class {
        match self.names[value.0 as usize].as_bytes()[0] {
            b'p' => Class(0),
            b'd' => Class(2),
            _ => Class(1),
        }
    }

    fn for_each_use(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.insts[inst.0 as usize]
            .uses
            .iter()
            .copied()
            .for_each(visit);
    }

    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.insts[inst.0 as usize]
            .defs
            .iter()
            .copied()
            .for_each(visit);
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        self.insts[inst.0 as usize].predicated
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.insts[inst.0 as usize].transfer
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        self.insts[inst.0 as usize]
            .targets
            .iter()
            .copied()
            .for_each(visit);
    }

    fn for_each_held(&self, inst: Inst, mut visit: impl FnMut(Queue, Value)) {
        let inst = &self.insts[inst.0 as usize];
        if let Some(queue) = inst.held {
            inst.uses.iter().for_each(|value| visit(queue, *value));
        }
    }

    fn waits(&self, inst: Inst) -> Queues {
        self.insts[inst.0 as usize].waits
    }

    fn copy_of(&self, inst: Inst) -> Option<(Value, Value)> {
        let inst = &self.insts[inst.index()];
        inst.copies.then(|| (inst.defs[0], inst.uses[0]))
    }

    fn for_each_tuple(&self, inst: Inst, mut visit: impl FnMut(&[Value], u32)) {
        for tuple in &self.insts[inst.index()].tuples {
            visit(tuple, tuple.len().next_power_of_two() as u32);
        }
    }

    fn for_each_tied(&self, inst: Inst, mut visit: impl FnMut(Value, Value)) {
        let inst = &self.insts[inst.index()];
        if let (true, Some(&def), Some(&used)) = (inst.tied, inst.defs.first(), inst.uses.last()) {
            visit(def, used);
        }
    }

    fn fixed(&self, value: Value) -> Option<u32> {
        let digits = self.names[value.index()].strip_prefix('f')?;
        let digits = digits.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    }

    fn value_name(&self, value: Value) -> String {
        self.names[value.0 as usize].clone()
    }

    fn inst_text(&self, inst: Inst) -> String {
        format!("{:?}", self.insts[inst.0 as usize])
    }
}
