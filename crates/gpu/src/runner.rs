//! The backend on a real GPU, in this process.
//!
//! A fault that damages the context makes every later call fail: whoever wants to go on after a
//! fatal fault runs this in a child process ([`crate::process::Process`]).

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::time::Duration;

use crate::arena::Arena;
use crate::backend::{
    Against, Backend, CheckReport, CheckRequest, Reference, TimeReport, TimeRequest, Verdict,
};
use crate::bench;
use crate::cuda::{Context, Memory};
use crate::device::{Device, DeviceInfo};
use crate::fault::{Fault, FaultKind};
use crate::helpers::Helpers;
use crate::job::{self, Job};
use crate::judge;
use crate::kernel::Kernel;

/// Name of the file in the job's folder that says which variant was last started.
pub const IN_FLIGHT: &str = "in-flight";

/// Runs variants on a GPU.
pub struct Runner {
    ordinal: u32,
    // Before the device: memory is freed while its context lives.
    open: Option<Open>,
    device: Option<Device>,
}

/// A job on the device.
pub(crate) struct Open {
    pub(crate) job: Job,
    /// Initial contents of every buffer.
    pub(crate) pristine: Vec<Memory>,
    /// Results of the reference run, for outputs.
    reference: Vec<Option<Memory>>,
    /// Buffers for checked runs.
    arena: Arena,
    pub(crate) helpers: Helpers,
    in_flight: File,
    /// A variant has written where it must not, or may have: upload everything again.
    suspect: bool,
}

impl Runner {
    /// A runner for a device; nothing is touched before a job is opened.
    pub fn new(ordinal: u32) -> Self {
        Runner {
            ordinal,
            open: None,
            device: None,
        }
    }

    fn parts(&mut self) -> Result<(&Device, &mut Open), Fault> {
        match (&self.device, &mut self.open) {
            (Some(device), Some(open)) => Ok((device, open)),
            _ => Err(Fault::new(FaultKind::Internal, "no job is open")),
        }
    }
}

impl Backend for Runner {
    fn open(&mut self, job: &Job) -> Result<DeviceInfo, Fault> {
        self.open = None;
        if self.device.is_none() {
            self.device = Some(Device::open(self.ordinal)?);
        }
        let Some(device) = &self.device else {
            return Err(Fault::new(FaultKind::Internal, "the device vanished"));
        };
        self.open = Some(Open::new(device, job)?);
        Ok(device.info().clone())
    }

    fn check(&mut self, request: &CheckRequest) -> Result<CheckReport, Fault> {
        let (device, open) = self.parts()?;
        open.refresh(device.context())?;
        open.check(device.context(), request)
            .map_err(|f| f.blame(&request.variant.id))
    }

    fn time(&mut self, request: &TimeRequest) -> Result<TimeReport, Fault> {
        let (device, open) = self.parts()?;
        open.refresh(device.context())?;
        bench::time(open, device, request)
    }
}

impl Open {
    fn new(device: &Device, job: &Job) -> Result<Self, Fault> {
        let context = device.context();
        let in_flight = File::create(job.dir.join(IN_FLIGHT)).map_err(|e| {
            Fault::new(
                FaultKind::Input,
                format!("cannot write to {}: {e}", job.dir.display()),
            )
        })?;
        let mut pristine = Vec::new();
        for buffer in &job.buffers {
            pristine.push(context.alloc(buffer.bytes)?);
        }
        let mut open = Open {
            job: job.clone(),
            pristine,
            reference: job.buffers.iter().map(|_| None).collect(),
            arena: Arena::guarded(context, job)?,
            helpers: Helpers::load(device)?,
            in_flight,
            suspect: true,
        };
        open.refresh(context)?;
        Ok(open)
    }

    /// Uploads initial contents and reference results, if they may be damaged.
    fn refresh(&mut self, context: &Context) -> Result<(), Fault> {
        if !self.suspect {
            return Ok(());
        }
        for (index, buffer) in self.job.buffers.iter().enumerate() {
            upload(
                &self.pristine[index],
                &job::read(&buffer.file)?,
                &buffer.name,
            )?;
            let file = self.job.reference_file(index);
            if buffer.output && file.exists() {
                let memory = match self.reference[index].take() {
                    Some(memory) => memory,
                    None => context.alloc(buffer.bytes)?,
                };
                upload(&memory, &job::read(&file)?, &buffer.name)?;
                self.reference[index] = Some(memory);
            }
        }
        self.helpers.clear(context)?;
        self.suspect = false;
        Ok(())
    }

    /// Notes which variant starts now, for whoever finds this process dead.
    pub(crate) fn start(&self, id: &str) -> Result<(), Fault> {
        let mut file = &self.in_flight;
        let line = format!("{id}\n");
        let written = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(line.as_bytes()));
        written.map_err(|e| Fault::new(FaultKind::Internal, format!("{IN_FLIGHT}: {e}")))
    }

    fn check(&mut self, context: &Context, request: &CheckRequest) -> Result<CheckReport, Fault> {
        let limit = Duration::from_secs_f64(request.limit_s);
        self.start(&request.variant.id)?;
        let module = context.module(&request.variant.image.read()?)?;
        let kernel = Kernel::prepare(&module, &self.job, &request.variant)?;
        let mut report = CheckReport {
            resources: kernel.resources().clone(),
            verdict: Verdict::Identical,
            ns: 0.0,
            reference: Reference::default(),
        };
        // Twice: the first launch also loads code and sets up local memory, so it cannot be
        // timed; and a race may show in either.
        for run in 0..2 {
            report.ns = self.run_guarded(context, &kernel, limit)?;
            if let Some(what) = self.arena.broken_guard(&self.job)? {
                report.verdict = Verdict::Corrupts { what };
            } else {
                match &request.against {
                    Against::Nothing if run == 0 => {
                        report.reference.changed = self.keep_reference(context, &kernel)?;
                    }
                    Against::Nothing => {
                        report.reference.unstable = self.unstable(context, &kernel)?;
                    }
                    Against::Reference { known, bits } => {
                        report.verdict = self.judge(context, &kernel, known, *bits)?;
                    }
                }
            }
            if !report.verdict.is_correct() {
                self.suspect = true;
                break;
            }
        }
        Ok(report)
    }

    /// One launch on fresh contents between armed guards; its time in nanoseconds.
    fn run_guarded(
        &self,
        context: &Context,
        kernel: &Kernel<'_>,
        limit: Duration,
    ) -> Result<f64, Fault> {
        for restored in self.pristine.iter().enumerate() {
            self.arena.restore(context, &self.job, restored)?;
        }
        kernel.restore_symbols(context, &self.pristine)?;
        self.arena.arm()?;
        let params = self.arena.params(&self.job)?;
        let (begin, end) = (context.event()?, context.event()?);
        context.record(&begin)?;
        kernel.launch(context, &params)?;
        context.record(&end)?;
        context.wait(limit)?;
        begin.until(&end)
    }

    /// Stores the results as the reference, on the device and in files; which buffers changed?
    fn keep_reference(
        &mut self,
        context: &Context,
        kernel: &Kernel<'_>,
    ) -> Result<Vec<usize>, Fault> {
        let mut changed = Vec::new();
        for (index, buffer) in self.job.buffers.iter().enumerate() {
            let result = kernel.result(&self.arena, &self.job, index)?;
            if self
                .helpers
                .diff(context, result, self.pristine[index].all())?
                > 0
            {
                changed.push(index);
            }
            if buffer.output {
                let memory = context.alloc(buffer.bytes)?;
                context.copy(memory.all(), result)?;
                context.wait(Duration::from_secs(60))?;
                job::write(&self.job.reference_file(index), &memory.all().download()?)?;
                self.reference[index] = Some(memory);
            }
        }
        Ok(changed)
    }

    /// Outputs that differ from the reference.
    fn unstable(&self, context: &Context, kernel: &Kernel<'_>) -> Result<Vec<usize>, Fault> {
        let mut unstable = Vec::new();
        for (index, reference) in self.reference.iter().enumerate() {
            let Some(reference) = reference else { continue };
            let result = kernel.result(&self.arena, &self.job, index)?;
            if self.helpers.diff(context, result, reference.all())? > 0 {
                unstable.push(index);
            }
        }
        Ok(unstable)
    }

    /// Compares results with the reference, and inputs with what they were.
    fn judge(
        &self,
        context: &Context,
        kernel: &Kernel<'_>,
        known: &Reference,
        bits: bool,
    ) -> Result<Verdict, Fault> {
        let mut verdict = Verdict::Identical;
        for (index, buffer) in self.job.buffers.iter().enumerate() {
            let result = kernel.result(&self.arena, &self.job, index)?;
            if !buffer.output {
                let pristine = self.pristine[index].all();
                let input = !known.changed.contains(&index);
                if input && self.helpers.diff(context, result, pristine)? > 0 {
                    let what = format!("wrote into `{}`, which is an input", buffer.name);
                    return Ok(Verdict::Corrupts { what });
                }
                continue;
            }
            let Some(reference) = &self.reference[index] else {
                return Err(Fault::new(FaultKind::Internal, "no reference was run"));
            };
            if self.helpers.diff(context, result, reference.all())? > 0 {
                let (found, expected) = (result.download()?, reference.all().download()?);
                let bits = bits && !known.unstable.contains(&index);
                let one = judge::judge(buffer, &found, &expected, bits)?;
                verdict = judge::worse(verdict, one);
                if !verdict.is_correct() {
                    break;
                }
            }
        }
        Ok(verdict)
    }
}

fn upload(memory: &Memory, bytes: &[u8], name: &str) -> Result<(), Fault> {
    if bytes.len() != memory.len() {
        let detail = format!(
            "the file of `{name}` has {} bytes, not {}",
            bytes.len(),
            memory.len()
        );
        return Err(Fault::new(FaultKind::Input, detail));
    }
    memory.all().upload(bytes)
}
