//! Finding what an address means, and strict checks on the way.

use super::block::Block;
use super::frame::{Frame, PrivateSpace};
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::lanes::{Lanes, Mask, lanes_of};
use crate::memory::{Allocation, Memory, PARAM_WINDOW, Window, window};
use crate::program::{Access, AccessSpace, Src};
use crate::race::AccessKind;

/// A fault without its place: the machine adds instruction, block and thread.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub kind: FaultKind,
    pub lane: usize,
    pub address: Option<u64>,
    pub allocation: Option<String>,
    pub message: String,
}

impl Trouble {
    pub fn new(kind: FaultKind, lane: usize, message: impl Into<String>) -> Box<Self> {
        Box::new(Trouble {
            kind,
            lane,
            address: None,
            allocation: None,
            message: message.into(),
        })
    }

    fn at(mut self: Box<Self>, address: u64, allocation: Option<&str>) -> Box<Self> {
        self.address = Some(address);
        self.allocation = allocation.map(str::to_owned);
        self
    }
}

/// Where an access of one lane goes, checked to be inside one variable.
#[derive(Clone, Copy)]
pub(crate) enum Target<'m> {
    Global(&'m Allocation, u64),
    Shared(u64),
    /// A private memory: frame and offset from its base.
    Private(usize, PrivateSpace, u64),
    /// Parameters of the kernel.
    Kernel(u64),
}

/// The address that a lane of an access uses.
#[inline(always)]
pub(crate) fn address_of(access: &Access, base: &Lanes, lane: usize) -> u64 {
    let sum = base[lane].wrapping_add_signed(access.offset);
    if access.narrow {
        sum & 0xffff_ffff
    } else {
        sum
    }
}

impl Warp {
    /// The lanes of an operand.
    #[inline(always)]
    pub fn value<'a>(&'a self, block: &Block<'a>, frame: usize, src: Src) -> &'a Lanes {
        const NONE: &Lanes = &[0; crate::lanes::WARP];
        match src {
            Src::Reg(reg) => self
                .frames
                .get(frame)
                .and_then(|f| f.regs.get(reg as usize)),
            Src::Const(index) => block.program.constants.get(index as usize),
        }
        .unwrap_or(NONE)
    }

    /// Finds and checks the memory behind an access of one lane.
    #[inline(always)]
    pub fn target<'m>(
        &self,
        block: &Block<'m>,
        frame: usize,
        lane: usize,
        access: &Access,
        address: u64,
    ) -> Result<Target<'m>, Box<Trouble>> {
        let bytes = access.bytes();
        if address & (access.align as u64 - 1) != 0 {
            return Err(misaligned(access, lane, address));
        }
        match access.space {
            AccessSpace::Global => global(block.memory, lane, bytes, address),
            AccessSpace::Shared => shared(block, lane, bytes, address),
            AccessSpace::Local => self.local(block, frame, lane, bytes, address),
            AccessSpace::Param => self.param(block, frame, lane, bytes, address),
            AccessSpace::Generic => match window(address) {
                Window::Global => global(block.memory, lane, bytes, address),
                Window::Shared(offset) => shared(block, lane, bytes, offset),
                Window::Local(offset) => self.local(block, frame, lane, bytes, offset),
                Window::Param(offset) => kernel_param(block, lane, bytes, offset),
            },
        }
    }

    /// Local memory: the frame itself or one of its callers.
    #[cold]
    fn local_elsewhere(&self, frame: usize, offset: u64) -> Option<usize> {
        let mut frame = self.frames.get(frame)?.caller?.frame;
        loop {
            let data = self.frames.get(frame)?;
            if offset >= data.local_base {
                return (offset < data.local_end()).then_some(frame);
            }
            frame = data.caller?.frame;
        }
    }

    fn local<'m>(
        &self,
        block: &Block<'m>,
        frame: usize,
        lane: usize,
        bytes: u64,
        offset: u64,
    ) -> Result<Target<'m>, Box<Trouble>> {
        let own = self
            .frames
            .get(frame)
            .map(|f| (f.local_base, f.local_end()));
        let owner = match own {
            Some((base, _)) if offset >= base => Some(frame),
            _ => self.local_elsewhere(frame, offset),
        };
        let found = owner.and_then(|owner| {
            let data: &Frame = self.frames.get(owner)?;
            let layout = &block.program.functions.get(data.function)?.local;
            Some((owner, offset - data.local_base, layout))
        });
        let Some((owner, at, layout)) = found else {
            let trouble = Trouble::new(
                FaultKind::OutOfBounds,
                lane,
                format!("{bytes} bytes at local address {offset:#x}, where no variable is"),
            );
            return Err(trouble.at(offset, None));
        };
        if layout.find(at, bytes).is_some() {
            return Ok(Target::Private(owner, PrivateSpace::Local, at));
        }
        let beyond = own.is_some_and(|(_, end)| offset >= end) && offset < self.deepest_local;
        let trouble = if beyond {
            Trouble::new(
                FaultKind::UseAfterScope,
                lane,
                format!("{bytes} bytes in the local memory of a function that has returned"),
            )
            .at(offset, None)
        } else {
            let region = layout.nearest(at);
            out_of_bounds(
                lane,
                "local",
                bytes,
                offset,
                region.map(|r| (r.name.as_str(), at.wrapping_sub(r.start), r.len)),
            )
        };
        Err(trouble)
    }

    fn param<'m>(
        &self,
        block: &Block<'m>,
        frame: usize,
        lane: usize,
        bytes: u64,
        offset: u64,
    ) -> Result<Target<'m>, Box<Trouble>> {
        if offset >= PARAM_WINDOW {
            return kernel_param(block, lane, bytes, offset - PARAM_WINDOW);
        }
        let function = self
            .frames
            .get(frame)
            .and_then(|f| block.program.functions.get(f.function));
        let layout = function.map(|f| &f.param);
        if layout.is_some_and(|l| l.find(offset, bytes).is_some()) {
            return Ok(Target::Private(frame, PrivateSpace::Param, offset));
        }
        let region = layout.and_then(|l| l.nearest(offset));
        Err(out_of_bounds(
            lane,
            "param",
            bytes,
            offset,
            region.map(|r| (r.name.as_str(), offset.wrapping_sub(r.start), r.len)),
        ))
    }

    /// Reads one element. The target has been checked.
    #[inline(always)]
    pub fn read(
        &mut self,
        block: &mut Block<'_>,
        target: Target<'_>,
        lane: usize,
        at: u64,
        size: u32,
    ) -> Result<u64, Box<Trouble>> {
        match target {
            Target::Global(allocation, offset) => Ok(allocation.read(offset + at, size)),
            Target::Shared(offset) => {
                let offset = offset + at;
                if !block.shared.is_written(offset, size as u64) {
                    return Err(unwritten(
                        lane,
                        offset,
                        block.shared.layout.nearest(offset).map(|r| &r.name),
                    ));
                }
                self.note_race(block, lane, offset, size, AccessKind::Read)?;
                Ok(block.shared.read(offset, size))
            }
            Target::Private(frame, space, offset) => {
                let Some(frame) = self.frames.get_mut(frame) else {
                    return Ok(0);
                };
                let view = frame.private(space);
                let offset = offset + at;
                match view.is_written(lane, offset, size as u64) {
                    true => Ok(view.read(lane, offset, size)),
                    false => Err(unwritten(lane, offset, None)),
                }
            }
            Target::Kernel(offset) => Ok(crate::memory::shared::read_le(
                block.params,
                (offset + at) as usize,
                size as usize,
            )),
        }
    }

    /// Writes one element. The target has been checked.
    #[inline(always)]
    pub fn write(
        &mut self,
        block: &mut Block<'_>,
        target: Target<'_>,
        lane: usize,
        at: u64,
        size: u32,
        value: u64,
    ) -> Result<(), Box<Trouble>> {
        match target {
            Target::Global(allocation, offset) => {
                if allocation.constant {
                    return Err(read_only(lane, allocation.base + offset, &allocation.name));
                }
                allocation.write(offset + at, size, value);
            }
            Target::Shared(offset) => {
                self.note_race(block, lane, offset + at, size, AccessKind::Write)?;
                block.shared.write(offset + at, size, value);
            }
            Target::Private(frame, space, offset) => {
                if let Some(frame) = self.frames.get_mut(frame) {
                    frame.private(space).write(lane, offset + at, size, value);
                }
            }
            Target::Kernel(offset) => {
                return Err(read_only(lane, offset, "kernel parameters"));
            }
        }
        Ok(())
    }

    /// Tells the race detector of an access to shared memory.
    #[inline(always)]
    pub fn note_race(
        &self,
        block: &mut Block<'_>,
        lane: usize,
        offset: u64,
        size: u32,
        kind: AccessKind,
    ) -> Result<(), Box<Trouble>> {
        let Some(races) = &mut block.shared.races else {
            return Ok(());
        };
        let Some(rival) = races.access(self.index, offset, size as u64, kind) else {
            return Ok(());
        };
        let name = block.shared.layout.nearest(offset).map(|r| r.name.as_str());
        let (own, verb) = (
            self.index,
            match kind {
                AccessKind::Read => "reads what",
                AccessKind::Write => "overwrites what",
                AccessKind::Atomic => "updates what",
            },
        );
        let message = format!("warp {own} {verb} warp {rival} used with no barrier between");
        Err(Trouble::new(FaultKind::SharedRace, lane, message).at(offset, name))
    }

    /// The targets of all lanes of an access, in ascending order of lanes.
    pub fn targets<'m>(
        &self,
        block: &Block<'m>,
        frame: usize,
        mask: Mask,
        access: &Access,
    ) -> Result<Vec<(usize, Target<'m>)>, Box<Trouble>> {
        let base = self.value(block, frame, access.base);
        lanes_of(mask)
            .map(|lane| {
                let address = address_of(access, base, lane);
                Ok((lane, self.target(block, frame, lane, access, address)?))
            })
            .collect()
    }
}

#[inline(always)]
fn global<'m>(
    memory: &'m Memory,
    lane: usize,
    bytes: u64,
    address: u64,
) -> Result<Target<'m>, Box<Trouble>> {
    match memory.find(address, bytes) {
        Some((allocation, offset)) => Ok(Target::Global(allocation, offset)),
        None => Err(no_global(memory, lane, bytes, address)),
    }
}

#[cold]
fn no_global(memory: &Memory, lane: usize, bytes: u64, address: u64) -> Box<Trouble> {
    match memory.slot(address) {
        Some(a) => out_of_bounds(
            lane,
            "global",
            bytes,
            address,
            Some((&a.name, address.wrapping_sub(a.base), a.len)),
        ),
        None if address < 4096 => Trouble::new(
            FaultKind::OutOfBounds,
            lane,
            format!("{bytes} bytes at a null pointer"),
        )
        .at(address, None),
        None => out_of_bounds(lane, "global", bytes, address, None),
    }
}

#[inline(always)]
fn shared<'m>(
    block: &Block<'m>,
    lane: usize,
    bytes: u64,
    offset: u64,
) -> Result<Target<'m>, Box<Trouble>> {
    // A generic address may have reached here through the window; a plain one may be a generic
    // pointer used by mistake, which no variable holds.
    if block.shared.holds(offset, bytes) {
        return Ok(Target::Shared(offset));
    }
    let region = block.shared.layout.nearest(offset);
    Err(out_of_bounds(
        lane,
        "shared",
        bytes,
        offset,
        region.map(|r| (r.name.as_str(), offset.wrapping_sub(r.start), r.len)),
    ))
}

fn kernel_param<'m>(
    block: &Block<'m>,
    lane: usize,
    bytes: u64,
    offset: u64,
) -> Result<Target<'m>, Box<Trouble>> {
    if block.program.image.params.find(offset, bytes).is_some() {
        return Ok(Target::Kernel(offset));
    }
    let region = block.program.image.params.nearest(offset);
    Err(out_of_bounds(
        lane,
        "param",
        bytes,
        offset,
        region.map(|r| (r.name.as_str(), offset.wrapping_sub(r.start), r.len)),
    ))
}

#[cold]
fn out_of_bounds(
    lane: usize,
    space: &str,
    bytes: u64,
    address: u64,
    nearest: Option<(&str, u64, u64)>,
) -> Box<Trouble> {
    let message = match nearest {
        Some((name, offset, len)) => {
            let offset = offset as i64;
            format!("{bytes} bytes at offset {offset} of `{name}`, which has {len} bytes")
        }
        None => format!("{bytes} bytes at {space} address {address:#x}, where nothing is"),
    };
    Trouble::new(FaultKind::OutOfBounds, lane, message).at(address, nearest.map(|n| n.0))
}

#[cold]
fn misaligned(access: &Access, lane: usize, address: u64) -> Box<Trouble> {
    let message = format!(
        "{} bytes at {address:#x}, no multiple of {}",
        access.bytes(),
        access.align
    );
    Trouble::new(FaultKind::Misaligned, lane, message).at(address, None)
}

#[cold]
fn read_only(lane: usize, address: u64, name: &str) -> Box<Trouble> {
    Trouble::new(
        FaultKind::ReadOnly,
        lane,
        "a store to memory that cannot be written",
    )
    .at(address, Some(name))
}

#[cold]
fn unwritten(lane: usize, offset: u64, name: Option<&String>) -> Box<Trouble> {
    Trouble::new(
        FaultKind::UninitialisedMemory,
        lane,
        "a read of bytes that were never written",
    )
    .at(offset, name.map(String::as_str))
}
