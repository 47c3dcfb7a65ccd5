//! The structured program that a PTX kernel is printed from.

use std::collections::BTreeSet;

use crate::rare::Rare;

/// The register pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// 32-bit integers.
    B32,
    /// 64-bit integers.
    B64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 16-bit integers.
    B16,
    /// Predicates.
    Pred,
}

impl Kind {
    /// All pools.
    pub const ALL: [Kind; 6] = [
        Kind::B32,
        Kind::B64,
        Kind::F32,
        Kind::F64,
        Kind::B16,
        Kind::Pred,
    ];

    /// PTX type in a register declaration.
    pub fn decl(self) -> &'static str {
        match self {
            Kind::B32 => ".b32",
            Kind::B64 => ".b64",
            Kind::F32 => ".f32",
            Kind::F64 => ".f64",
            Kind::B16 => ".b16",
            Kind::Pred => ".pred",
        }
    }

    /// Prefix of the register names.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::B32 => "%r",
            Kind::B64 => "%rd",
            Kind::F32 => "%f",
            Kind::F64 => "%fd",
            Kind::B16 => "%rs",
            Kind::Pred => "%p",
        }
    }
}

/// An operand of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A register of a pool.
    Reg(Kind, usize),
    /// Text as PTX wants it: an immediate or a special register.
    Text(String),
}

/// A statement. Registers are numbers within the pool that the opcode asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// `opcode dst, operands…;`, guarded by a predicate register and its polarity if any.
    Op {
        /// Full opcode text.
        opcode: String,
        /// Destination, or destinations of a vector.
        dst: Vec<Operand>,
        /// Sources.
        src: Vec<Operand>,
        /// Guard register and "negated".
        guard: Option<(usize, bool)>,
    },
    /// `dst = input[index & mask]`, as a scalar (1) or vector (2 or 4) load.
    Load {
        /// Pool loaded.
        kind: Kind,
        /// First destination register; a vector takes the following ones.
        dst: usize,
        /// 32-bit index register.
        index: usize,
        /// 1, 2 or 4.
        width: usize,
    },
    /// A local array is written at one dynamic index and read at another.
    Local {
        /// 32-bit register stored.
        value: usize,
        /// Index register of the store.
        store: usize,
        /// Index register of the load.
        load: usize,
        /// 32-bit register loaded.
        dst: usize,
    },
    /// Exchange through shared memory: store own slot, barrier, load another's, barrier.
    Exchange {
        /// Pool exchanged (B32 or B64).
        kind: Kind,
        /// Register stored and loaded.
        reg: usize,
        /// The partner is `tid ^ flip`.
        flip: usize,
    },
    /// A warp shuffle with all lanes; writes a predicate too.
    Shuffle {
        /// `up`, `down`, `bfly` or `idx`.
        mode: &'static str,
        /// 32-bit register read and written.
        reg: usize,
        /// Lane operand.
        lane: usize,
        /// Predicate written.
        pred: usize,
    },
    /// A warp vote on a predicate.
    Vote {
        /// `ballot`, `any`, `all` or `uni`.
        mode: &'static str,
        /// Predicate read.
        pred: usize,
        /// Register written: 32-bit for `ballot`, else a predicate.
        dst: usize,
    },
    /// `red.global.add.u32` into a counter cell chosen by a register.
    Reduce {
        /// 32-bit register added.
        value: usize,
        /// 32-bit register that chooses the cell.
        cell: usize,
    },
    /// A two-way branch.
    If {
        /// Predicate register.
        pred: usize,
        /// Branch on its negation.
        negated: bool,
        /// Taken.
        then: Vec<Stmt>,
        /// Not taken.
        otherwise: Vec<Stmt>,
    },
    /// A loop with a constant trip count.
    Loop {
        /// Trip count, at least 1.
        count: usize,
        /// Body.
        body: Vec<Stmt>,
    },
    /// Statements between which and the others the warps give registers away and take them back (`setmaxnreg`).
    Fewer(Vec<Stmt>),
    /// What compilers write seldom.
    Rare(Rare),
}

impl Stmt {
    /// The lists of statements inside.
    pub(crate) fn inside(&self) -> impl Iterator<Item = &Vec<Stmt>> {
        let lists = match self {
            Stmt::If {
                then, otherwise, ..
            } => [Some(then), Some(otherwise)],
            Stmt::Loop { body, .. } | Stmt::Fewer(body) => [Some(body), None],
            _ => [None, None],
        };
        lists.into_iter().flatten()
    }

    /// The same, to be changed.
    pub(crate) fn inside_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stmt>> {
        let lists = match self {
            Stmt::If {
                then, otherwise, ..
            } => [Some(then), Some(otherwise)],
            Stmt::Loop { body, .. } | Stmt::Fewer(body) => [Some(body), None],
            _ => [None, None],
        };
        lists.into_iter().flatten()
    }
}

/// A device function of two numbers of 32 bits and one of 64, with one of 32 bits as result.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Arguments and result are registers, else `.param` variables.
    pub by_register: bool,
    /// It ends with `ret`, else with its body.
    pub returns: bool,
    /// Some threads return early.
    pub early: bool,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// How a kernel ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// `ret`.
    #[default]
    Ret,
    /// `exit`.
    Exit,
    /// Its body is over.
    Falls,
}

/// A whole kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The seed that it came from, for the record.
    pub seed: u64,
    /// Threads per block: a multiple of 32.
    pub block: usize,
    /// Blocks.
    pub grid: usize,
    /// Registers in each pool, in the order of [`Kind::ALL`].
    pub pool: [usize; 6],
    /// Device functions.
    pub functions: Vec<Function>,
    /// How it ends.
    pub ending: Ending,
    /// The statements.
    pub body: Vec<Stmt>,
}

/// Statements of a kind, nested ones included.
pub(crate) fn counted(stmts: &[Stmt], is_counted: &dyn Fn(&Stmt) -> bool) -> usize {
    let inside = |stmt: &Stmt| -> usize {
        let lists = stmt.inside();
        lists.map(|list| counted(list, is_counted)).sum()
    };
    let count = |stmt| usize::from(is_counted(stmt)) + inside(stmt);
    stmts.iter().map(count).sum()
}

impl Program {
    /// Registers of a pool.
    pub fn pool(&self, kind: Kind) -> usize {
        Kind::ALL
            .iter()
            .position(|&k| k == kind)
            .map_or(0, |i| self.pool[i])
    }

    /// Statements in all, nested ones included.
    pub fn size(&self) -> usize {
        self.count(|_| true)
    }

    /// Statements of a kind in the kernel itself, nested ones included.
    pub fn count(&self, is_counted: impl Fn(&Stmt) -> bool) -> usize {
        counted(&self.body, &is_counted)
    }

    /// The same, in the device functions that are called as well.
    pub(crate) fn count_all(&self, is_counted: impl Fn(&Stmt) -> bool) -> usize {
        let called = self.called().into_iter();
        let functions = called.map(|number| counted(&self.functions[number].body, &is_counted));
        self.count(&is_counted) + functions.sum::<usize>()
    }

    /// The numbers of the device functions that are called, in order.
    pub(crate) fn called(&self) -> BTreeSet<usize> {
        let calls = |stmts: &[Stmt], number: usize| {
            let is_call = |stmt: &Stmt| matches!(stmt, Stmt::Rare(Rare::Call { function, .. }) if *function == number);
            counted(stmts, &is_call) > 0
        };
        let mut called = BTreeSet::new();
        for number in (0..self.functions.len()).rev() {
            let inner = called
                .iter()
                .any(|&by: &usize| calls(&self.functions[by].body, number));
            if inner || calls(&self.body, number) {
                called.insert(number);
            }
        }
        called
    }

    /// The same, whose threads keep their registers (no `setmaxnreg`).
    #[must_use]
    pub fn with_all_registers(mut self) -> Program {
        fn unwrap(stmts: &mut Vec<Stmt>) {
            *stmts = std::mem::take(stmts)
                .into_iter()
                .flat_map(|stmt| match stmt {
                    Stmt::Fewer(body) => body,
                    stmt => vec![stmt],
                })
                .collect();
            for stmt in stmts {
                stmt.inside_mut().for_each(unwrap);
            }
        }
        unwrap(&mut self.body);
        self
    }

    /// The same without the local array: what is then in local memory was spilled.
    #[must_use]
    pub fn without_local_array(mut self) -> Program {
        fn keep(stmts: &mut Vec<Stmt>) {
            stmts.retain(|stmt| !matches!(stmt, Stmt::Local { .. }));
            for stmt in stmts {
                stmt.inside_mut().for_each(keep);
            }
        }
        keep(&mut self.body);
        self
    }
}

/// What kind of programs to make.
#[derive(Debug, Clone)]
pub struct Config {
    /// Statements at most.
    pub statements: usize,
    /// Nesting of branches and loops at most.
    pub depth: usize,
    /// Registers in the larger pools at most: high numbers make high register pressure, because
    /// every register is written out at the end.
    pub registers: usize,
    /// Use approximate instructions (`ex2.approx` and the like), which hardware and emulator
    /// need not agree on to the last bit.
    pub approximate: bool,
    /// Warps per block at most.
    pub warps: usize,
    /// Blocks at most.
    pub blocks: usize,
    /// With statements that compilers write seldom ([`Rare`]), device functions, and other ends than `ret`.
    pub rare: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            statements: 60,
            depth: 3,
            registers: 24,
            approximate: false,
            warps: 4,
            blocks: 3,
            rare: false,
        }
    }
}
