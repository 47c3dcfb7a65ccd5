//! Sizes that the code itself compares with: `if (n == 200)` shows at no size that is made of the described ones.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_launch::Launch;
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Base, Function, Imm, Module, Operand, Reg, Symbol, VarId};

use super::{RewriteOptions, Try, parameters, resolved};
use crate::optimise::launch_among;
use crate::{Error, Input};

/// Values of one parameter that come of constants.
const MOST: usize = 8;

/// Values of a parameter that either kernel compares it with, and those beside them where it is no test for equality.
pub(super) fn values(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    (smallest, name): (&Try, &str),
) -> Vec<i64> {
    let Some(&own) = parameters(options, smallest).get(name) else {
        return Vec::new();
    };
    let now = launches(inputs, modules, options, smallest);
    let then = launches(inputs, modules, options, &smallest.derived(name, own + 1));
    let (Ok(now), Ok(then)) = (now, then) else {
        return Vec::new();
    };
    let mut all = BTreeSet::new();
    for (side, (now, then)) in now.iter().zip(&then).enumerate() {
        for (one, other) in now.iter().zip(then) {
            let kernel = modules[side].kernels();
            let function = kernel.map(|(_, f)| f).find(|f| *f.name == *one.kernel);
            let Some(function) = function else { continue };
            let args = one.args.iter().zip(&other.args).enumerate();
            let passed = args.filter(|(_, (x, y))| {
                value(x) == Some(i128::from(own)) && value(y) == Some(i128::from(own + 1))
            });
            let params = passed.filter_map(|(at, _)| function.params.get(at));
            let params: Vec<VarId> = params.map(|param| param.var).collect();
            all.extend(constants(&modules[side], function, &params));
        }
    }
    all.into_iter().take(MOST).collect()
}

fn launches(
    inputs: [&Input; 2],
    modules: &[Module; 2],
    options: &RewriteOptions<'_>,
    at: &Try,
) -> Result<[Vec<Launch>; 2], Error> {
    let mut all = resolved(options, at)?.into_iter();
    let mut side = |which: usize| {
        let kernels = modules[which].kernels();
        let kernels: Vec<String> = kernels.map(|(_, f)| f.name.to_string()).collect();
        let own = all.by_ref().take(options.launches[which].len());
        let own = own.map(|launch| launch_among(&launch, &inputs[which].name, &kernels));
        own.collect::<Result<Vec<Launch>, Error>>()
    };
    Ok([side(0)?, side(1)?])
}

fn value(arg: &warpwright_launch::Arg) -> Option<i128> {
    let ty = arg.ty.filter(|ty| !ty.is_float())?;
    Some(ty.to_int(ty.read(&arg.bytes)))
}

/// What a function compares some of its parameters with, as they are or in another width.
fn constants(module: &Module, function: &Function, params: &[VarId]) -> BTreeSet<i64> {
    let Some(body) = &function.body else {
        return BTreeSet::new();
    };
    let mut copies: BTreeMap<Reg, VarId> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (inst, data) in body.insts.iter() {
        let opcode = module.opcode(data);
        let operands = body.operands(inst);
        match (opcode.op, operands) {
            (Some(Op::Ld), [Operand::Reg(to), Operand::Mem(from)]) if from.offset == 0 => {
                if let Base::Symbol(Symbol::Var(var)) = from.base
                    && params.contains(&var)
                {
                    copies.insert(*to, var);
                }
            }
            (Some(Op::Cvt | Op::Mov), [Operand::Reg(to), Operand::Reg(from)]) => {
                if let Some(&var) = copies.get(from) {
                    copies.insert(*to, var);
                }
            }
            (Some(Op::Setp), [_, one, other, ..]) => {
                let pair = match (one, other) {
                    (Operand::Reg(reg), Operand::Imm(imm))
                    | (Operand::Imm(imm), Operand::Reg(reg)) => Some((reg, imm)),
                    _ => None,
                };
                if let Some((reg, Imm::Int { value, .. })) = pair
                    && copies.contains_key(reg)
                {
                    let is_equality = [".eq.", ".ne."].iter().any(|w| opcode.text.contains(w));
                    let beside = if is_equality { 0 } else { 1 };
                    found.extend((value - beside..=value + beside).filter(|&v| v >= 1));
                }
            }
            _ => {}
        }
    }
    found
}
