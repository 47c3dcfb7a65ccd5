//! The analyses of a function as it stands, and the questions that rematerialization asks of them.

use warpwright_flow::{
    Cfg, DefUse, Dominators, Function, Inst, LiveRanges, Liveness, Loops, Point, Pressure,
    Repetition, Value, Web, Webs,
};

/// What a try is judged by: the analyses that the pressure of a function takes.
pub(crate) struct Peaks {
    cfg: Cfg,
    liveness: Liveness,
    pub(crate) pressure: Pressure,
}

impl Peaks {
    pub(crate) fn new(func: &impl Function) -> Peaks {
        let cfg = Cfg::new(func);
        let liveness = Liveness::new(func, &cfg);
        Peaks {
            pressure: Pressure::new(func, &cfg, &liveness),
            cfg,
            liveness,
        }
    }
}

/// The analyses of one function.
pub(crate) struct Facts {
    pub(crate) cfg: Cfg,
    pub(crate) dominators: Dominators,
    pub(crate) loops: Loops,
    pub(crate) liveness: Liveness,
    pub(crate) pressure: Pressure,
    pub(crate) ranges: LiveRanges,
    pub(crate) def_use: DefUse,
    pub(crate) webs: Webs,
    /// For each web its only definition, if there is no more than that one, it has no guard, and
    /// nothing comes from the function's entry.
    explicit: Vec<Option<Inst>>,
}

impl Facts {
    pub(crate) fn new(func: &impl Function) -> Facts {
        Facts::of(func, Peaks::new(func))
    }

    /// The other analyses, too.
    pub(crate) fn of(func: &impl Function, known: Peaks) -> Facts {
        let Peaks {
            cfg,
            liveness,
            pressure,
        } = known;
        let loops = Loops::new(&cfg);
        let def_use = DefUse::new(func, &liveness);
        let webs = Webs::new(func, &cfg, &liveness, &def_use);
        Facts {
            dominators: Dominators::new(&cfg),
            pressure,
            ranges: LiveRanges::new(func, &cfg, &liveness),
            explicit: explicit_definitions(func, &webs),
            cfg,
            loops,
            liveness,
            def_use,
            webs,
        }
    }

    /// How often an instruction runs, by the usual guess.
    pub(crate) fn weight(&self, inst: Inst) -> f64 {
        self.loops.weight(self.cfg.block_of(inst))
    }

    /// Is `value` live right before `inst`?
    pub(crate) fn live_before(&self, value: Value, inst: Inst) -> bool {
        self.ranges.is_live_at(value, Point::before(inst))
    }

    /// Does `value` live through `inst` without being accessed there?
    pub(crate) fn crosses(&self, value: Value, inst: Inst) -> bool {
        let accessed = |list: &[Inst]| list.binary_search(&inst).is_ok();
        self.live_before(value, inst)
            && self.ranges.is_live_at(value, Point::after(inst))
            && !accessed(self.def_use.uses(value))
            && !accessed(self.def_use.defs(value))
    }

    /// The only definition of what `value` holds right before `inst` (condition 4).
    pub(crate) fn explicit_def(&self, value: Value, inst: Inst) -> Option<Inst> {
        let web = self.webs.before(&self.cfg, &self.liveness, inst, value)?;
        self.only_def(web)
    }

    /// The only definition of a web (condition 4).
    pub(crate) fn only_def(&self, web: Web) -> Option<Inst> {
        self.explicit[web.0 as usize]
    }

    /// The uses of a web, in program order.
    pub(crate) fn uses_of(&self, web: Web) -> Vec<Inst> {
        let value = self.webs.value(web);
        let uses = self.def_use.uses(value).iter().copied();
        uses.filter(|&inst| self.webs.before(&self.cfg, &self.liveness, inst, value) == Some(web))
            .collect()
    }

    /// Is control always at `above` before it gets to `below`?
    pub(crate) fn dominates(&self, above: Inst, below: Inst) -> bool {
        let (a, b) = (self.cfg.block_of(above), self.cfg.block_of(below));
        match a == b {
            true => above <= below,
            false => self.dominators.dominates(a, b),
        }
    }
}

fn explicit_definitions(func: &impl Function, webs: &Webs) -> Vec<Option<Inst>> {
    let mut count = vec![0u32; webs.len()];
    let mut explicit = vec![None; webs.len()];
    for inst in (0..func.inst_count() as u32).map(Inst) {
        func.for_each_def(inst, |value| {
            if let Some(web) = webs.of_def(inst, value) {
                count[web.0 as usize] += 1;
                explicit[web.0 as usize] = (!func.is_predicated(inst)).then_some(inst);
            }
        });
    }
    for web in (0..webs.len() as u32).map(Web) {
        if count[web.0 as usize] != 1 || webs.is_from_entry(web) {
            explicit[web.0 as usize] = None;
        }
    }
    explicit
}

/// What it costs to execute `inst` once more, if that is possible, it is no long instruction
/// (condition 1) and it writes one value and nothing else.
pub(crate) fn price(func: &impl Function, inst: Inst) -> Option<u32> {
    let mut defs = 0;
    func.for_each_def(inst, |_| defs += 1);
    match func.repetition(inst) {
        Repetition::Cheap(price) if defs == 1 && !func.is_predicated(inst) => Some(price),
        _ => None,
    }
}

/// The values that `inst` reads, each once, in operand order.
pub(crate) fn reads(func: &impl Function, inst: Inst) -> Vec<Value> {
    let mut values = Vec::new();
    func.for_each_use(inst, |value| {
        if !values.contains(&value) {
            values.push(value);
        }
    });
    values
}

/// The value that `inst` writes first.
pub(crate) fn written(func: &impl Function, inst: Inst) -> Option<Value> {
    let mut first = None;
    func.for_each_def(inst, |value| {
        first.get_or_insert(value);
    });
    first
}
