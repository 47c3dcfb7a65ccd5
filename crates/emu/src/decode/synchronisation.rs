//! Barriers, fences, warp-wide operations, asynchronous copies.

use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::arith::Lane;
use crate::arith::float::{self, Extreme};
use crate::program::{
    AccessSpace, Barrier, BarrierKind, CollectiveOp, CopyAsync, CopyBulk, MbarrierOp, Members, Op,
    Reduce, ReduxFn, SetRegisters, ShuffleMode, Src, Vote,
};

impl Decoder<'_> {
    pub(super) fn synchronisation(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        match words.name {
            "bar" | "barrier" => self.barrier(words, operands),
            "membar" | "fence" => {
                // Fences that reach other blocks let them tell in which order they run.
                let near = words.has("cta") || words.has("mbarrier_init") || words.has("proxy");
                self.ordered |= !near;
                self.fenced |= !near;
                if !operands.is_empty() {
                    return Err("a tensor map".into());
                }
                while words.next().is_some() {}
                self.emit(Op::Nop);
                Ok(())
            }
            "vote" => self.vote(words, operands),
            "shfl" => self.shuffle(words, operands),
            "match" => self.matching(words, operands),
            "redux" => self.redux(words, operands),
            "activemask" => {
                words.ty()?;
                let d = operands.first().ok_or("too few operands")?;
                let dst = self.dst(d)?;
                self.emit(Op::ActiveMask { dst });
                Ok(())
            }
            "elect" => {
                words.skip(&["sync"]);
                let [d, mask] = operands else {
                    return Err("too few operands".into());
                };
                let (dst, pred) = self.pair(d)?;
                let members = Members::Mask(self.src(mask, Type::B32)?);
                let pred = pred.unwrap_or_else(|| self.temporary());
                self.emit(Op::Collective {
                    members,
                    op: CollectiveOp::Elect { dst, pred },
                });
                Ok(())
            }
            "setmaxnreg" => {
                let grows = words.take("inc");
                words.skip(&["dec", "sync", "aligned"]);
                words.ty()?;
                let count = match operands {
                    [Operand::Imm(imm)] => imm.bits(),
                    _ => return Err("a number of registers that is no constant".into()),
                };
                let count = u32::try_from(count).map_err(|_| format!("{count} registers"))?;
                self.emit(Op::SetRegisters(SetRegisters { count, grows }));
                Ok(())
            }
            "nanosleep" => {
                words.ty()?;
                self.emit(Op::Pause);
                Ok(())
            }
            "pmevent" => {
                words.take("mask");
                self.emit(Op::Nop);
                Ok(())
            }
            "griddepcontrol" => {
                words.skip(&["launch_dependents", "wait"]);
                self.emit(Op::Nop);
                Ok(())
            }
            "mbarrier" => self.mbarrier(words, operands),
            _ => self.copy(words, operands),
        }
    }

    fn barrier(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        if words.take("warp") {
            words.take("sync");
            let mask = operands.first().ok_or("too few operands")?;
            let members = Members::Mask(self.src(mask, Type::B32)?);
            self.emit(Op::Collective {
                members,
                op: CollectiveOp::WarpBarrier,
            });
            return Ok(());
        }
        if words.has("cluster") {
            return Err("barriers of clusters".into());
        }
        words.skip(&["cta"]);
        let aligned = words.take("aligned") || words.name == "bar";
        let what = words.next().ok_or("a barrier without an operation")?;
        match what {
            "sync" | "arrive" => {
                let (id, count) = match operands {
                    [id] => (id, None),
                    [id, count] => (id, Some(count)),
                    _ => return Err("these operands".into()),
                };
                if what == "arrive" && count.is_none() {
                    return Err("an arrival without a count".into());
                }
                let id = self.src(id, Type::U32)?;
                let count = count.map(|c| self.src(c, Type::U32)).transpose()?;
                let kind = if what == "sync" {
                    BarrierKind::Sync
                } else {
                    BarrierKind::Arrive
                };
                self.emit(Op::Barrier(Barrier {
                    kind,
                    id,
                    count,
                    aligned,
                }));
                Ok(())
            }
            "red" => {
                let op = match words.next() {
                    Some("popc") => Reduce::Popc,
                    Some("and") => Reduce::And,
                    Some("or") => Reduce::Or,
                    _ => return Err("a reduction of this kind".into()),
                };
                words.ty()?;
                let (d, id, count, p) = match operands {
                    [d, id, p] => (d, id, None, p),
                    [d, id, count, p] => (d, id, Some(count), p),
                    _ => return Err("these operands".into()),
                };
                let dst = self.dst(d)?;
                let id = self.src(id, Type::U32)?;
                let count = count.map(|c| self.src(c, Type::U32)).transpose()?;
                let src = self.src(p, Type::Pred)?;
                let kind = BarrierKind::Reduce { op, dst, src };
                self.emit(Op::Barrier(Barrier {
                    kind,
                    id,
                    count,
                    aligned,
                }));
                Ok(())
            }
            _ => Err("a barrier of this kind".into()),
        }
    }

    /// The member mask of a `.sync` instruction; those without take whoever is there.
    fn members(
        &mut self,
        words: &mut Words<'_>,
        mask: Option<&Operand>,
    ) -> Result<Members, Reason> {
        match (words.take("sync"), mask) {
            (true, Some(mask)) => Ok(Members::Mask(self.src(mask, Type::B32)?)),
            (false, None) => Ok(Members::Present),
            _ => Err("a member mask that does not go with .sync".into()),
        }
    }

    fn vote(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let [d, p, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let members = self.members(words, rest.first())?;
        words.ty()?;
        let kind = match words.next() {
            Some("all") => Vote::All,
            Some("any") => Vote::Any,
            Some("uni") => Vote::Uniform,
            Some("ballot") => Vote::Ballot,
            _ => return Err("a vote of this kind".into()),
        };
        let (dst, src) = (self.dst(d)?, self.src(p, Type::Pred)?);
        self.emit(Op::Collective {
            members,
            op: CollectiveOp::Vote { kind, dst, src },
        });
        Ok(())
    }

    fn shuffle(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let [d, a, b, c, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let members = self.members(words, rest.first())?;
        let ty = words.ty()?;
        let mode = match words.next() {
            Some("up") => ShuffleMode::Up,
            Some("down") => ShuffleMode::Down,
            Some("bfly") => ShuffleMode::Butterfly,
            Some("idx") => ShuffleMode::Index,
            _ => return Err("a shuffle of this kind".into()),
        };
        let (dst, pred) = self.pair(d)?;
        let (src, b, c) = (
            self.src(a, ty)?,
            self.src(b, Type::B32)?,
            self.src(c, Type::B32)?,
        );
        let op = CollectiveOp::Shuffle {
            mode,
            dst,
            pred,
            src,
            b,
            c,
        };
        self.emit(Op::Collective { members, op });
        Ok(())
    }

    fn matching(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let [d, a, mask] = operands else {
            return Err("too few operands".into());
        };
        let members = self.members(words, Some(mask))?;
        let ty = words.ty()?;
        let wide = ty.bits() == 64;
        let (dst, pred) = self.pair(d)?;
        let dst = dst.unwrap_or_else(|| self.temporary());
        let src = self.src(a, ty)?;
        let op = match words.next() {
            Some("any") => CollectiveOp::MatchAny { dst, src, wide },
            Some("all") => CollectiveOp::MatchAll {
                dst,
                pred,
                src,
                wide,
            },
            _ => return Err("a match of this kind".into()),
        };
        self.emit(Op::Collective { members, op });
        Ok(())
    }

    fn redux(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let [d, a, mask] = operands else {
            return Err("too few operands".into());
        };
        let members = self.members(words, Some(mask))?;
        let ty = words.ty()?;
        let how = Extreme {
            abs: words.take("abs"),
            nan: words.take("NaN"),
            ..Extreme::default()
        };
        let f: ReduxFn = match (words.next(), ty) {
            (Some("add"), Type::U32 | Type::S32) => {
                Box::new(|a, b| (a as u32).wrapping_add(b as u32) as u64)
            }
            (Some("min"), Type::U32) => Box::new(|a, b| a.min(b)),
            (Some("max"), Type::U32) => Box::new(|a, b| a.max(b)),
            (Some("min"), Type::S32) => Box::new(|a, b| (a as i32).min(b as i32).to_lane()),
            (Some("max"), Type::S32) => Box::new(|a, b| (a as i32).max(b as i32).to_lane()),
            (Some("and"), Type::B32) => Box::new(|a, b| a & b),
            (Some("or"), Type::B32) => Box::new(|a, b| a | b),
            (Some("xor"), Type::B32) => Box::new(|a, b| a ^ b),
            (Some(name @ ("min" | "max")), Type::F32) => {
                let larger = name == "max";
                Box::new(move |a, b| {
                    float::extreme(larger, how, f32::from_lane(a), f32::from_lane(b)).to_lane()
                })
            }
            _ => return Err("a reduction of this kind".into()),
        };
        let (dst, src) = (self.dst(d)?, self.src(a, ty)?);
        self.emit(Op::Collective {
            members,
            op: CollectiveOp::Redux { dst, src, f },
        });
        Ok(())
    }

    /// Takes the state space of an mbarrier object.
    fn mbarrier_space(&mut self, words: &mut Words<'_>) -> AccessSpace {
        let shared = ["shared", "shared::cta", "shared::cluster"];
        let found = words.find(|w| shared.contains(&w).then_some(AccessSpace::Shared));
        found.unwrap_or(AccessSpace::Generic)
    }

    fn mbarrier(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        words.skip(&["b64", "release", "acquire", "relaxed", "cta", "cluster"]);
        let space = self.mbarrier_space(words);
        let what = words.next().ok_or("an mbarrier without an operation")?;
        if what == "pending_count" {
            let [d, state] = operands else {
                return Err("too few operands".into());
            };
            let (dst, state) = (self.dst(d)?, self.src(state, Type::B64)?);
            let zero = Operand::Imm(warpwright_ptx::ir::Imm::Int {
                value: 0,
                unsigned: false,
            });
            let base = self.src(&zero, Type::B64)?;
            let address = crate::program::Access {
                space,
                base,
                offset: 0,
                narrow: false,
                elem: 8,
                count: 1,
                align: 8,
            };
            self.emit(Op::Mbarrier {
                address,
                op: MbarrierOp::PendingCount { dst, state },
            });
            return Ok(());
        }
        // `state, [addr], …` or `[addr], …`
        let (d, rest) = match operands {
            [Operand::Mem(_), ..] => (None, operands),
            [d, rest @ ..] => (Some(d), rest),
            [] => return Err("too few operands".into()),
        };
        let [address, more @ ..] = rest else {
            return Err("too few operands".into());
        };
        let address = self.access(address, space, 8, 1)?;
        let op = match what {
            "init" => {
                let count = more.first().ok_or("too few operands")?;
                MbarrierOp::Init {
                    count: self.src(count, Type::U32)?,
                }
            }
            "inval" => MbarrierOp::Invalidate,
            "expect_tx" | "complete_tx" => {
                let bytes = self.src(more.first().ok_or("too few operands")?, Type::U32)?;
                match what {
                    "expect_tx" => MbarrierOp::ExpectTx { bytes },
                    _ => MbarrierOp::CompleteTx { bytes },
                }
            }
            "arrive" | "arrive_drop" => {
                words.take("noComplete");
                let first = more.first().map(|m| self.src(m, Type::U32)).transpose()?;
                let (count, expect) = match words.take("expect_tx") {
                    true => (None, first),
                    false => (first, None),
                };
                let state = d.map(|d| self.optional_dst(d)).transpose()?.flatten();
                MbarrierOp::Arrive {
                    count,
                    expect,
                    drop: what == "arrive_drop",
                    state,
                }
            }
            "test_wait" | "try_wait" => {
                let parity = words.take("parity");
                let token = more.first().ok_or("too few operands")?;
                let token = self.src(token, if parity { Type::U32 } else { Type::B64 })?;
                let dst = self.dst(d.ok_or("too few operands")?)?;
                MbarrierOp::Test { dst, token, parity }
            }
            _ => return Err(format!("mbarrier.{what}")),
        };
        self.emit(Op::Mbarrier { address, op });
        Ok(())
    }

    fn copy(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        if !words.take("async") || words.has("tensor") || words.has("reduce") {
            return Err("a copy of this kind".into());
        }
        if words.take("bulk") {
            return self.copy_bulk(words, operands);
        }
        words.hints();
        if words.take("commit_group") {
            self.emit(Op::CommitGroup);
            return Ok(());
        }
        if words.take("wait_all") {
            self.emit(Op::WaitGroup { pending: u32::MAX });
            return Ok(());
        }
        if words.take("wait_group") {
            let [Operand::Imm(n)] = operands else {
                return Err("a wait without a number".into());
            };
            self.emit(Op::WaitGroup {
                pending: n.bits() as u32,
            });
            return Ok(());
        }
        if words.take("mbarrier") {
            let space = self.mbarrier_space(words);
            let no_increment = words.take("noinc");
            words.skip(&["arrive", "b64"]);
            let address = operands.first().ok_or("too few operands")?;
            let address = self.access(address, space, 8, 1)?;
            self.emit(Op::Mbarrier {
                address,
                op: MbarrierOp::CopyArrive { no_increment },
            });
            return Ok(());
        }
        words.skip(&["shared", "shared::cta", "global"]);
        let [dst, src, Operand::Imm(size), more @ ..] = operands else {
            return Err("a copy without a constant size".into());
        };
        let size = size.bits() as u32;
        if !matches!(size, 4 | 8 | 16) {
            return Err(format!("a copy of {size} bytes"));
        }
        let dst = self.access(dst, AccessSpace::Shared, size, 1)?;
        let src = self.access(src, AccessSpace::Global, size, 1)?;
        let (mut src_size, mut ignore) = (None, None);
        match more.first() {
            Some(Operand::Reg(reg)) if self.reg_type(*reg) == Type::Pred => {
                ignore = Some(self.src(&Operand::Reg(*reg), Type::Pred)?);
            }
            Some(not @ Operand::Not(_)) => ignore = Some(self.src(not, Type::Pred)?),
            Some(operand) if self.width(operand) == 32 || matches!(operand, Operand::Imm(_)) => {
                src_size = Some(self.src(operand, Type::U32)?);
            }
            // A cache policy.
            _ => {}
        }
        self.emit(Op::CopyAsync(CopyAsync {
            dst,
            src,
            src_size,
            ignore,
        }));
        Ok(())
    }

    fn copy_bulk(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        words.hints();
        if words.take("commit_group") || words.take("wait_group") {
            // Bulk copies are complete at once.
            words.take("read");
            self.emit(Op::Nop);
            return Ok(());
        }
        if words.has("prefetch") {
            while words.next().is_some() {}
            self.emit(Op::Nop);
            return Ok(());
        }
        let space = |w: &str| match w {
            "global" => Some(AccessSpace::Global),
            "shared::cta" | "shared::cluster" => Some(AccessSpace::Shared),
            _ => None,
        };
        let (to, from) = (words.find(space), words.find(space));
        let (Some(to), Some(from)) = (to, from) else {
            return Err("a bulk copy of this kind".into());
        };
        words.take("bulk_group");
        let counted = words.take("mbarrier::complete_tx::bytes");
        let [dst, src, size, more @ ..] = operands else {
            return Err("too few operands".into());
        };
        let (dst, src) = (self.access(dst, to, 1, 1)?, self.access(src, from, 1, 1)?);
        let size: Src = self.src(size, Type::U32)?;
        let mbarrier = match (counted, more.first()) {
            (true, Some(m)) => Some(self.access(m, AccessSpace::Shared, 8, 1)?),
            _ => None,
        };
        self.emit(Op::CopyBulk(CopyBulk {
            dst,
            src,
            size,
            mbarrier,
        }));
        Ok(())
    }
}
