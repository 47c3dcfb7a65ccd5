//! Random functions of the toy instruction set: structured control flow over a fixed pool of
//! names, so that more live at once than there are registers.

use crate::Toy;

/// What the functions may have.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// 32-bit values in the pool.
    pub values: u64,
    /// Statements, about.
    pub statements: u64,
    /// Values in pairs and fours, accumulators, and one in a fixed register.
    pub constraints: bool,
}

/// Registers 0 to 2 of [`Shape::constraints`]: what the fixed value lies in.
const FIXED: &str = "f1";

/// The function of a seed: the same for ever.
pub fn function(seed: u64, shape: Shape) -> Toy {
    let mut writer = Writer {
        random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678,
        shape,
        text: String::new(),
        labels: 0,
    };
    writer.entry();
    writer.block(shape.statements, 0);
    writer.leave();
    Toy::parse(&writer.text)
}

struct Writer {
    random: u64,
    shape: Shape,
    text: String,
    labels: u32,
}

impl Writer {
    /// Below `n` (splitmix64, Steele et al. 2014).
    fn below(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn narrow(&mut self) -> String {
        let single = self.shape.values;
        match self.below(if self.shape.constraints { 10 } else { 6 }) {
            6 => FIXED.to_owned(),
            7 | 8 => {
                let (pair, part) = (self.below(4), self.below(2));
                format!("t{pair}{}", ["a", "b"][part as usize])
            }
            9 => {
                let (four, part) = (self.below(2), self.below(4));
                format!("q{four}{}", ["a", "b", "c", "d"][part as usize])
            }
            _ => format!("v{}", self.below(single)),
        }
    }

    fn wide(&mut self) -> String {
        format!("d{}", self.below(self.shape.values / 4 + 1))
    }

    fn predicate(&mut self) -> String {
        format!("p{}", self.below(3))
    }

    fn any(&mut self) -> String {
        match self.below(4) {
            0 => self.wide(),
            _ => self.narrow(),
        }
    }

    fn tuple(&mut self) -> String {
        match self.below(3) {
            0 => {
                let n = self.below(2);
                format!("(q{n}a q{n}b q{n}c q{n}d)")
            }
            _ => {
                let n = self.below(4);
                format!("(t{n}a t{n}b)")
            }
        }
    }

    /// Most values are written first; the rest may be read before they are.
    fn entry(&mut self) {
        for n in 0..self.shape.values {
            if self.below(12) > 0 {
                self.line(&format!("v{n} = op"));
            }
        }
        for n in 0..=self.shape.values / 4 {
            self.line(&format!("d{n} = op"));
        }
        for n in 0..3 {
            self.line(&format!("p{n} = op"));
        }
        if self.shape.constraints {
            self.line(&format!("{FIXED} = op"));
            for n in 0..4 {
                self.line(&format!("(t{n}a t{n}b) = op"));
            }
            for n in 0..2 {
                self.line(&format!("(q{n}a q{n}b q{n}c q{n}d) = op"));
            }
        }
    }

    fn leave(&mut self) {
        let mut all: Vec<String> = (0..self.shape.values).map(|n| format!("v{n}")).collect();
        all.extend((0..=self.shape.values / 4).map(|n| format!("d{n}")));
        // One at a time: no instruction needs all at once.
        for name in all {
            self.line(&format!("out {name}"));
        }
        self.line("exit");
    }

    fn block(&mut self, statements: u64, depth: u32) {
        let mut left = statements;
        while left > 0 {
            let share = 1 + self.below(left.min(12));
            match self.below(8) {
                0 if depth < 3 => self.repeat(share, depth),
                1 | 2 if depth < 3 => self.choose(share, depth),
                3 => self.hold(share),
                _ => (0..share).for_each(|_| self.statement()),
            }
            left -= share;
        }
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn repeat(&mut self, statements: u64, depth: u32) {
        let top = self.label();
        self.line(&format!("{top}: nop"));
        self.block(statements, depth + 1);
        let condition = self.predicate();
        self.line(&format!("br {condition} {top}"));
    }

    fn choose(&mut self, statements: u64, depth: u32) {
        let (other, end) = (self.label(), self.label());
        let condition = self.predicate();
        self.line(&format!("br {condition} {other}"));
        self.block(statements, depth + 1);
        if self.below(2) == 0 {
            self.line(&format!("jmp {end}"));
            self.line(&format!("{other}: nop"));
            self.block(statements / 2, depth + 1);
            self.line(&format!("{end}: nop"));
        } else {
            self.line(&format!("{other}: nop"));
        }
    }

    fn hold(&mut self, statements: u64) {
        let (a, b) = (self.narrow(), self.narrow());
        self.line(&format!("hold0 {a}, {b}"));
        // What is in flight is not written before the wait.
        for _ in 0..statements {
            let (from, to) = (self.any(), self.wide());
            self.line(&format!("{to} = op {from}"));
        }
        self.line("wait0");
    }

    fn statement(&mut self) {
        let text = match self.below(if self.shape.constraints { 14 } else { 10 }) {
            0 => {
                let (to, from) = (self.narrow(), self.narrow());
                format!("{to} = mov {from}")
            }
            1 => {
                let (to, from) = (self.wide(), self.wide());
                format!("{to} = mov {from}")
            }
            2 | 3 => {
                let (guard, to, from) = (self.predicate(), self.any(), self.any());
                format!("@{guard} {to} = op {from}")
            }
            4 => {
                let (to, a, b) = (self.predicate(), self.any(), self.any());
                format!("{to} = op {a}, {b}")
            }
            5 => {
                let (a, b) = (self.any(), self.any());
                format!("out {a}, {b}")
            }
            10 | 11 => {
                let (to, from) = (self.tuple(), self.tuple());
                format!("{to} = op {from}")
            }
            12 => {
                let (to, from) = (self.narrow(), self.any());
                format!("{to} = tied {from}, {to}")
            }
            13 => {
                let from = self.tuple();
                format!("out {from}")
            }
            _ => {
                let (to, a, b) = (self.any(), self.any(), self.any());
                format!("{to} = op {a}, {b}")
            }
        };
        self.line(&text);
    }
}
