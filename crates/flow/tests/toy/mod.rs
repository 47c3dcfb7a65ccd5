//! A toy instruction set with a text form, for tests and benches.
//!
//! One statement a line or after `;`, labels `name:` anywhere. Values are named: `p…` is a
//! predicate, `d…` takes 64 bits, all others 32.
//!
//! ```text
//! v1, v2 = op v3, v4      ordinary          jmp b1            goes to b1
//! @p v1 = op v2           predicated        br p b1           to b1 or on
//! @p jmp b1               predicated jump   switch v b1 b2    to one of them
//! ret v1   exit   trap    leave             call v1           comes back
//! hold0 v1, v2            reads v1 and v2 asynchronously under queue 0
//! wait0                   awaits queue 0
//! ```

#![allow(dead_code)] // Each test binary uses its own part.

use std::collections::HashMap;

use warpwright_flow::{Class, ClassInfo, Function, Inst, Queue, Queues, Transfer, Value};

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

#[derive(Clone, Debug)]
pub struct ToyInst {
    pub defs: Vec<Value>,
    pub uses: Vec<Value>,
    pub predicated: bool,
    pub transfer: Transfer,
    pub targets: Vec<Inst>,
    pub held: Option<Queue>,
    pub waits: Queues,
}

impl ToyInst {
    pub fn new(transfer: Transfer) -> ToyInst {
        ToyInst {
            defs: Vec::new(),
            uses: Vec::new(),
            predicated: false,
            transfer,
            targets: Vec::new(),
            held: None,
            waits: Queues::NONE,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Toy {
    pub insts: Vec<ToyInst>,
    pub names: Vec<String>,
    pub by_name: HashMap<String, Value>,
}

impl Toy {
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
            inst.defs = defs
                .split(',')
                .map(|name| self.value(name.trim()))
                .collect();
            rest = after;
        }
        let mut words = rest.split([' ', ',']).filter(|word| !word.is_empty());
        let op = words.next().expect("an opcode");
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
                    let value = self.value(word);
                    inst.uses.push(value);
                }
            }
        }
        inst
    }

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

    fn value_name(&self, value: Value) -> String {
        self.names[value.0 as usize].clone()
    }

    fn inst_text(&self, inst: Inst) -> String {
        format!("{:?}", self.insts[inst.0 as usize])
    }
}
