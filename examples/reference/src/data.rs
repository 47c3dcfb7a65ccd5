//! Inputs and outputs of a reference as numbers.

use warpwright_launch::{Arg, Buffer, ElemType, Launch};

/// A launch with its buffers' initial contents.
pub(crate) struct Data<'a> {
    launch: &'a Launch,
    inputs: &'a [Vec<u8>],
}

/// The numbers that a buffer should hold in the end.
pub(crate) struct Output {
    name: &'static str,
    numbers: Numbers,
}

enum Numbers {
    Floats(Vec<f64>),
    /// The low bits are stored.
    Words(Vec<u64>),
}

/// A floating-point output, to be rounded to the buffer's type.
pub(crate) fn floats(name: &'static str, numbers: Vec<f64>) -> Output {
    Output {
        name,
        numbers: Numbers::Floats(numbers),
    }
}

/// An integer output.
pub(crate) fn words(name: &'static str, numbers: Vec<u64>) -> Output {
    Output {
        name,
        numbers: Numbers::Words(numbers),
    }
}

impl<'a> Data<'a> {
    pub fn new(launch: &'a Launch, inputs: &'a [Vec<u8>]) -> Data<'a> {
        Data { launch, inputs }
    }

    /// A size parameter.
    pub fn param(&self, name: &str) -> Option<usize> {
        usize::try_from(self.launch.param(name)?).ok()
    }

    /// Threads per block.
    pub fn block_threads(&self) -> usize {
        self.launch.block_threads() as usize
    }

    /// A floating-point argument passed by value.
    pub fn scalar(&self, name: &str) -> Option<f64> {
        let (ty, bytes) = self.by_value(name)?;
        Some(ty?.to_f64(ty?.read(bytes)))
    }

    /// A structure passed by value that holds only f32.
    pub fn structure(&self, name: &str) -> Option<Vec<f64>> {
        let (_, bytes) = self.by_value(name)?;
        Some(
            elements(ElemType::F32, bytes)
                .map(|bits| ElemType::F32.to_f64(bits))
                .collect(),
        )
    }

    /// An integer argument passed by value.
    pub fn int_scalar(&self, name: &str) -> Option<i128> {
        let (ty, bytes) = self.by_value(name)?;
        Some(ty?.to_int(ty?.read(bytes)))
    }

    fn by_value(&self, name: &str) -> Option<(Option<ElemType>, &'a [u8])> {
        let is_it = |arg: &&Arg| arg.name == name && arg.pointers.is_empty();
        let arg = self.launch.args.iter().find(is_it)?;
        Some((arg.ty, &*arg.bytes))
    }

    fn buffer(&self, name: &str) -> Option<(&'a Buffer, &'a [u8])> {
        let mut buffers = self.launch.buffers().zip(self.inputs);
        let (buffer, bytes) = buffers.find(|(buffer, _)| buffer.name == name)?;
        Some((buffer, bytes))
    }

    /// The initial contents of a buffer as f64.
    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        let (buffer, bytes) = self.buffer(name)?;
        Some(
            elements(buffer.ty, bytes)
                .map(|bits| buffer.ty.to_f64(bits))
                .collect(),
        )
    }

    /// The initial contents of a buffer of f32, not widened.
    pub fn singles(&self, name: &str) -> Option<Vec<f32>> {
        let (buffer, bytes) = self.buffer(name)?;
        let same = buffer.ty == ElemType::F32;
        same.then(|| {
            elements(buffer.ty, bytes)
                .map(|bits| f32::from_bits(bits as u32))
                .collect()
        })
    }

    /// The initial contents of a buffer of indices.
    pub fn indices(&self, name: &str) -> Option<Vec<usize>> {
        let (buffer, bytes) = self.buffer(name)?;
        elements(buffer.ty, bytes)
            .map(|bits| buffer.ty.to_int(bits).try_into().ok())
            .collect()
    }

    /// The bits of a buffer's elements.
    pub fn words(&self, name: &str) -> Option<Vec<u64>> {
        let (buffer, bytes) = self.buffer(name)?;
        Some(elements(buffer.ty, bytes).collect())
    }

    /// The output's name and bytes; `None` if there is no such output of that length.
    pub fn encode(&self, output: Output) -> Option<(String, Vec<u8>)> {
        let (buffer, _) = self.buffer(output.name)?;
        let ty = buffer.ty;
        let bits: Vec<u64> = match output.numbers {
            Numbers::Floats(numbers) => numbers.into_iter().map(|v| ty.float_bits(v)).collect(),
            Numbers::Words(words) => words,
        };
        let bytes: Vec<u8> = bits
            .into_iter()
            .flat_map(|b| b.to_le_bytes().into_iter().take(ty.size()))
            .collect();
        let fits = buffer.output && bytes.len() == buffer.size();
        fits.then(|| (output.name.to_owned(), bytes))
    }
}

fn elements(ty: ElemType, bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .chunks_exact(ty.size())
        .map(move |element| ty.read(element))
}
