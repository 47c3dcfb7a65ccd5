//! A launch with every number known: what the emulator and the GPU runner take.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::compare::Tolerance;
use crate::element::ElemType;
use crate::error::{LaunchError, Source};
use crate::init::{ContentsError, Init};

/// One launch of one kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel: its symbol in the module, or what the description calls it.
    pub kernel: String,
    /// Name of the parameter set that this was resolved from.
    pub size: String,
    /// The parameters, overrides included.
    pub params: BTreeMap<String, i64>,
    /// Blocks in x, y and z; all at least 1.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z; all at least 1. Whether a device takes that many is for
    /// whoever knows the device to check.
    pub block: [u32; 3],
    /// Blocks per cluster in x, y and z, if the kernel is to be launched in clusters.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
    /// The kernel's parameters, in its order.
    pub args: Vec<Arg>,
    /// What the arguments point to, in the order of the description.
    pub memory: Vec<Buffer>,
    /// Module variables (`__constant__`, `__device__`) to be set before the launch, and read
    /// after it where `output` says so.
    pub symbols: Vec<Buffer>,
}

/// One kernel parameter: a value, a pointer, or a structure with both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// The parameter's name in the description.
    pub name: String,
    /// The type of a scalar, or of the elements of an array; `None` for a pointer or a structure.
    pub ty: Option<ElemType>,
    /// The parameter's bytes, padding included; zero where a pointer stands.
    pub bytes: Vec<u8>,
    /// Alignment in bytes, a power of two.
    pub align: usize,
    /// The pointers in it, in the order of their places.
    pub pointers: Vec<Pointer>,
}

/// A pointer into memory, as a part of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Its first byte in the parameter; it has eight.
    pub at: usize,
    /// Index of the buffer among [`Launch::buffers`].
    pub of: usize,
    /// Bytes from that buffer's first element; within the buffer or one past its end.
    pub offset: usize,
}

/// A buffer of pointers: each to the next part of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Index of the other among [`Launch::buffers`].
    pub of: usize,
    /// Bytes of a part.
    pub stride: usize,
}

impl Table {
    /// So many pointers as bytes, where the other buffer begins at `base`.
    pub fn bytes(&self, base: u64, len: usize) -> Vec<u8> {
        let one = |at: usize| base.wrapping_add((at * self.stride) as u64).to_le_bytes();
        (0..len).flat_map(one).collect()
    }
}

/// A block of device memory with its initial contents.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The parameter's name in the description, that of a structure's member behind it (`arg.member`), or the symbol's
    /// name in the module.
    pub name: String,
    /// Type of the elements.
    pub ty: ElemType,
    /// Extents, slowest varying first.
    pub shape: Vec<u64>,
    /// Number of elements: the product of `shape`.
    pub len: usize,
    /// What it holds before the launch.
    pub init: Init,
    /// Its elements are pointers, which whoever places the memory writes.
    pub table: Option<Table>,
    /// Is it compared after the run?
    pub output: bool,
    /// How far an output may be from a reference; `None`: not one bit. Goes to
    /// [`compare`](crate::compare()) as it is.
    pub tolerance: Option<Tolerance>,
    /// The pointer that the kernel gets lies this many bytes after a multiple of `align`.
    pub offset: usize,
    /// Alignment in bytes, a power of two, 256 (what `cudaMalloc` guarantees) unless given.
    pub align: usize,
    pub(crate) origin: Origin,
}

/// Where in the description something stands, for errors that show up later.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub source: Arc<Source>,
    pub span: Range<usize>,
}

impl Origin {
    pub fn error(&self, message: impl Into<String>) -> LaunchError {
        LaunchError::new(&self.source, self.span.clone(), message)
    }
}

impl Launch {
    /// Threads per block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().fold(1, |all, &n| all.saturating_mul(n))
    }

    /// Blocks in the grid.
    pub fn grid_blocks(&self) -> u64 {
        self.grid
            .iter()
            .fold(1, |all, &n| all.saturating_mul(n.into()))
    }

    /// A parameter's value, overrides included.
    pub fn param(&self, name: &str) -> Option<i64> {
        self.params.get(name).copied()
    }

    /// All blocks of memory: those of the arguments in order, then the symbols. Inputs and outputs of references are
    /// numbered this way.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.memory.iter().chain(&self.symbols)
    }

    /// Puts the arguments of another launch behind these.
    pub fn append(&mut self, other: Launch) {
        let before = self.memory.len();
        self.args.extend(other.args.into_iter().map(|mut arg| {
            arg.pointers
                .iter_mut()
                .for_each(|pointer| pointer.of += before);
            arg
        }));
        self.memory
            .extend(other.memory.into_iter().map(|mut buffer| {
                buffer.table.iter_mut().for_each(|table| table.of += before);
                buffer
            }));
    }

    /// The buffer or symbol of that name.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.buffers().find(|buffer| buffer.name == name)
    }
}

impl Arg {
    /// A scalar by value.
    pub fn scalar(name: impl Into<String>, ty: ElemType, bytes: Vec<u8>) -> Arg {
        Arg {
            name: name.into(),
            ty: Some(ty),
            bytes,
            align: ty.size(),
            pointers: Vec::new(),
        }
    }

    /// The buffer that it points to, where it is a plain pointer to a buffer's start.
    pub fn points_to(&self) -> Option<usize> {
        match self.pointers[..] {
            [
                Pointer {
                    at: 0,
                    of,
                    offset: 0,
                },
            ] if self.bytes.len() == 8 => Some(of),
            _ => None,
        }
    }

    /// The parameter's bytes with its pointers, where each buffer begins at `base` of its index.
    pub fn with_pointers(&self, base: impl Fn(usize) -> u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for pointer in &self.pointers {
            let address = base(pointer.of).wrapping_add(pointer.offset as u64);
            if let Some(place) = bytes.get_mut(pointer.at..pointer.at + 8) {
                place.copy_from_slice(&address.to_le_bytes());
            }
        }
        bytes
    }
}

impl Buffer {
    /// Memory that was seen, and that no description speaks of: so many bytes.
    pub fn of_bytes(name: impl Into<String>, len: usize, init: Init) -> Buffer {
        let source = Source {
            path: "the launch that was seen".to_owned(),
            text: String::new(),
        };
        Buffer {
            name: name.into(),
            ty: ElemType::U8,
            shape: vec![len as u64],
            len,
            init,
            table: None,
            output: false,
            tolerance: None,
            offset: 0,
            align: 256,
            origin: Origin {
                source: Arc::new(source),
                span: 0..0,
            },
        }
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.len * self.ty.size()
    }

    /// The initial contents, little endian. `files` gives the bytes of a file named in `init`;
    /// pass [`no_files`](crate::no_files) where there are none.
    ///
    /// # Errors
    /// The memory is not there, or as of [`Buffer::materialize_into`].
    pub fn materialize(
        &self,
        files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
    ) -> Result<Vec<u8>, LaunchError> {
        let mut bytes = Vec::new();
        let size = self.size();
        bytes.try_reserve_exact(size).map_err(|_| {
            self.error(format!(
                "`{}` takes {size} bytes: not enough memory",
                self.name
            ))
        })?;
        bytes.resize(size, 0);
        self.materialize_into(&mut bytes, files)?;
        Ok(bytes)
    }

    /// Writes the initial contents into `out`, which must hold exactly [`size`](Self::size) bytes.
    ///
    /// # Errors
    /// `out` has another size, or a file that `init` names is not as it says.
    pub fn materialize_into(
        &self,
        out: &mut [u8],
        files: &dyn Fn(&str) -> Result<Vec<u8>, ContentsError>,
    ) -> Result<(), LaunchError> {
        if out.len() != self.size() {
            let message = format!(
                "`{}` takes {} bytes, not {}",
                self.name,
                self.size(),
                out.len()
            );
            return Err(self.error(message));
        }
        self.init
            .write(self, out, files)
            .map_err(|why| self.error(why.to_string()))
    }

    /// An error about this buffer, labelled with its place in the description.
    pub fn error(&self, message: impl Into<String>) -> LaunchError {
        self.origin.error(message)
    }
}
