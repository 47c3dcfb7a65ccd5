//! A variant's kernel, loaded and set up for its launch.

use crate::arena::Arena;
use crate::backend::Resources;
use crate::cuda::{Context, Function, FunctionAttribute as A, Memory, Module};
use crate::fault::{Fault, FaultKind};
use crate::job::{Job, Shape, Variant};

/// A kernel ready to be launched, and the module variables it starts from.
pub(crate) struct Kernel<'m> {
    function: Function<'m>,
    shape: Shape,
    /// Index in the job's buffers, and where the variable lies.
    pub(crate) symbols: Vec<(usize, Memory)>,
    resources: Resources,
}

impl<'m> Kernel<'m> {
    /// Finds the kernel in its module, opts in to its shared memory, finds its variables.
    pub(crate) fn prepare(module: &'m Module, job: &Job, variant: &Variant) -> Result<Self, Fault> {
        let name = variant.kernel.as_deref().unwrap_or(&job.kernel);
        let shape = variant.shape.clone().unwrap_or_else(|| job.shape.clone());
        let function = module.function(name)?;
        let resources = set_up(&function, &shape, variant.carveout)?;
        let symbols = find_symbols(module, job)?;
        Ok(Kernel {
            function,
            shape,
            symbols,
            resources,
        })
    }

    /// What it takes, as loaded.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Launches it on a set of buffers (`params` from [`Arena::params`]).
    pub(crate) fn launch(&self, context: &Context, params: &[Vec<u8>]) -> Result<(), Fault> {
        context.launch(&self.function, &self.shape, params)
    }

    /// Sets its variables, in stream order.
    pub(crate) fn restore_symbols(
        &self,
        context: &Context,
        pristine: &[Memory],
    ) -> Result<(), Fault> {
        for (buffer, memory) in &self.symbols {
            if let Some(from) = pristine.get(*buffer) {
                context.copy(memory.span(0, from.len())?, from.all())?;
            }
        }
        Ok(())
    }

    /// Where a buffer's contents are after a launch.
    pub(crate) fn result<'a>(
        &'a self,
        arena: &'a Arena,
        job: &Job,
        buffer: usize,
    ) -> Result<crate::cuda::Span<'a>, Fault> {
        if let Some(span) = arena.data(buffer)? {
            return Ok(span);
        }
        let bytes = job.buffers.get(buffer).map_or(0, |b| b.bytes);
        match self.symbols.iter().find(|(i, _)| *i == buffer) {
            Some((_, memory)) => memory.span(0, bytes),
            None => Err(Fault::new(
                FaultKind::Internal,
                format!("no buffer {buffer}"),
            )),
        }
    }
}

/// Sets the attributes a launch of this shape needs and reads what the kernel takes.
fn set_up(
    function: &Function<'_>,
    shape: &Shape,
    carveout: Option<u8>,
) -> Result<Resources, Fault> {
    let get = |a| function.attribute(a);
    let threads = shape.threads();
    let most = get(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    if threads > most {
        let detail = format!("a block of {threads} threads; this build takes at most {most}");
        return Err(Fault::new(FaultKind::OutOfResources, detail));
    }
    let static_smem = get(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    if shape.dynamic_smem > 0 {
        let attribute = A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function
            .set(attribute, shape.dynamic_smem)
            .map_err(|fault| {
                let detail = format!(
                    "{} bytes of dynamic and {static_smem} of static shared memory: {}",
                    shape.dynamic_smem, fault.detail
                );
                Fault::new(FaultKind::OutOfResources, detail)
            })?;
    }
    if let Some(percent) = carveout {
        function.set(
            A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            percent.into(),
        )?;
    }
    // Clusters of more than 8 blocks have to be asked for (CUDA C++ Programming Guide, clusters).
    if shape.cluster.is_some_and(|c| c.iter().product::<u32>() > 8) {
        function.set(A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
    }
    Ok(Resources {
        registers: get(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        local_bytes: get(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        static_smem,
        dynamic_smem: shape.dynamic_smem,
        threads,
        blocks_per_sm: function.blocks_per_sm(threads, shape.dynamic_smem)?,
    })
}

fn find_symbols(module: &Module, job: &Job) -> Result<Vec<(usize, Memory)>, Fault> {
    let mut symbols = Vec::new();
    for (index, buffer) in job.buffers.iter().enumerate().filter(|(_, b)| b.symbol) {
        let memory = module.symbol(&buffer.name)?;
        if memory.len() < buffer.bytes {
            let detail = format!(
                "the variable `{}` has {} bytes, the launch sets {}",
                buffer.name,
                memory.len(),
                buffer.bytes
            );
            return Err(Fault::new(FaultKind::BadLaunch, detail));
        }
        symbols.push((index, memory));
    }
    Ok(symbols)
}
