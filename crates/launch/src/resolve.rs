//! From the document to a launch: evaluates every expression and checks every combination.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use crate::compare::Tolerance;
use crate::element::ElemType;
use crate::error::{LaunchError, Source};
use crate::expr::{Expr, ExprError};
use crate::init::Init;
use crate::launch::{Arg, Buffer, Launch, Origin, Pointer, Table};
use crate::schema::{ArgTable, Document, OneOrMany, ToleranceTable};

/// What `cudaMalloc` guarantees, in bytes (CUDA C++ Programming Guide, 'Device Memory Accesses').
const DEFAULT_ALIGN: usize = 256;

/// Most bytes that a kernel's parameters may take (PTX ISA, 'Kernel Function Parameters').
const MAX_PARAMETER_BYTES: usize = 32764;

/// Largest alignments in bytes that a description can ask for: no hardware instruction needs more
/// than the first, no allocation more than the second.
const MAX_VALUE_ALIGN: i128 = 256;
const MAX_BUFFER_ALIGN: i128 = 1 << 30;

/// Most bytes of a name: with an ending it is still a file's name.
const MAX_NAME_BYTES: usize = 200;

/// Most bytes of a buffer: more than any device's memory, and far from overflowing an address.
const MAX_BUFFER_BYTES: u64 = 1 << 48;

pub(crate) type Result<T> = std::result::Result<T, LaunchError>;

/// A document at one size.
pub(crate) struct Resolver<'a> {
    document: &'a Document,
    source: &'a Arc<Source>,
    size: &'a str,
    pub(crate) params: BTreeMap<String, i64>,
}

impl<'a> Resolver<'a> {
    pub fn new(
        document: &'a Document,
        source: &'a Arc<Source>,
        size: &'a str,
        overrides: &[(String, i64)],
    ) -> Result<Resolver<'a>> {
        let sizes = document.sizes.get_ref();
        let table = sizes.get(size).ok_or_else(|| {
            let known: Vec<&str> = sizes.keys().map(String::as_str).collect();
            let message = format!("there is no size `{size}`, only {}", known.join(", "));
            LaunchError::new(source, document.sizes.span(), message)
        })?;
        let mut params: BTreeMap<String, i64> = table
            .get_ref()
            .iter()
            .map(|(name, v)| (name.clone(), *v.get_ref()))
            .collect();
        if let Some(value) = table.get_ref().get("i") {
            let message = "`i` stands for the element's index and cannot be a parameter";
            return Err(LaunchError::new(source, value.span(), message));
        }
        for (name, value) in overrides {
            let slot = params.get_mut(name).ok_or_else(|| {
                let known: Vec<&str> = table.get_ref().keys().map(String::as_str).collect();
                let known = known.join(", ");
                let message =
                    format!("size `{size}` has no parameter `{name}` to override; it has {known}");
                LaunchError::new(source, table.span(), message)
            })?;
            *slot = *value;
        }
        Ok(Resolver {
            document,
            source,
            size,
            params,
        })
    }

    pub fn launch(&self) -> Result<Launch> {
        let table = &self.document.launch;
        let cluster = table
            .cluster
            .as_ref()
            .map(|c| self.extents("cluster", c))
            .transpose()?;
        let dynamic_smem = match &table.dynamic_smem {
            Some(bytes) => self.ranged("dynamic_smem", bytes, 0, u32::MAX.into())? as u32,
            None => 0,
        };
        let (mut args, mut memory) = (Vec::new(), Vec::new());
        for table in &self.document.args {
            args.push(self.arg(table, &mut memory)?);
        }
        let symbols = self
            .document
            .symbols
            .iter()
            .map(|s| self.symbol(s))
            .collect::<Result<_>>()?;
        let launch = Launch {
            kernel: self.document.kernel.get_ref().clone(),
            size: self.size.to_owned(),
            params: self.params.clone(),
            grid: self.extents("grid", &table.grid)?,
            block: self.extents("block", &table.block)?,
            cluster,
            dynamic_smem,
            args,
            memory,
            symbols,
        };
        self.check_names(&launch)?;
        Ok(launch)
    }

    // Errors and numbers

    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> LaunchError {
        LaunchError::new(self.source, span, message)
    }

    fn lookup(&self) -> impl Fn(&str) -> Option<i128> + '_ {
        |name| self.params.get(name).map(|&value| value.into())
    }

    fn explain<T>(
        &self,
        expr: &Spanned<Expr>,
        value: std::result::Result<T, ExprError>,
    ) -> Result<T> {
        value.map_err(|error| self.error(expr.span(), error.to_string()))
    }

    pub(crate) fn int(&self, expr: &Spanned<Expr>) -> Result<i128> {
        self.explain(expr, expr.get_ref().eval_int(&self.lookup()))
    }

    pub(crate) fn float(&self, expr: &Spanned<Expr>) -> Result<f64> {
        self.explain(expr, expr.get_ref().eval_float(&self.lookup()))
    }

    /// An integer within bounds, both included.
    pub(crate) fn ranged(
        &self,
        what: &str,
        expr: &Spanned<Expr>,
        low: i128,
        high: i128,
    ) -> Result<i128> {
        let value = self.int(expr)?;
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        let message = format!("{what} is {value}, outside {low} to {high}");
        Err(self.error(expr.span(), message))
    }

    /// The bits of an element of type `ty`.
    pub(crate) fn element(&self, ty: ElemType, expr: &Spanned<Expr>) -> Result<u64> {
        if ty.is_float() {
            return Ok(ty.float_bits(self.float(expr)?));
        }
        let (low, high) = ty.int_range();
        let value = self.ranged("the value", expr, low, high)?;
        Ok(ty.int_bits(value).unwrap_or(0))
    }

    /// Grid, block or cluster: one to three extents; the missing ones are 1.
    fn extents(&self, what: &str, list: &Spanned<Vec<Spanned<Expr>>>) -> Result<[u32; 3]> {
        let given = list.get_ref();
        if given.is_empty() || given.len() > 3 {
            let message = format!("{what} has one to three extents, not {}", given.len());
            return Err(self.error(list.span(), message));
        }
        let mut extents = [1; 3];
        for (extent, expr) in extents.iter_mut().zip(given) {
            *extent =
                self.ranged(&format!("an extent of {what}"), expr, 1, i32::MAX.into())? as u32;
        }
        let product = extents.iter().try_fold(1u32, |n, &e| n.checked_mul(e));
        if what != "grid" && product.is_none() {
            return Err(self.error(list.span(), format!("the extents of {what} overflow")));
        }
        Ok(extents)
    }

    fn align(&self, expr: Option<&Spanned<Expr>>, default: usize, most: i128) -> Result<usize> {
        let Some(expr) = expr else { return Ok(default) };
        let align = self.ranged("align", expr, 1, most)?;
        if align & (align - 1) != 0 {
            return Err(self.error(expr.span(), format!("align is {align}: no power of two")));
        }
        Ok(align as usize)
    }

    // Arguments

    fn arg(&self, table: &Spanned<ArgTable>, memory: &mut Vec<Buffer>) -> Result<Arg> {
        let name = self.name(table)?;
        let mut laid = Laid::default();
        let align = self.lay_out(table, name, &mut laid, memory)?;
        if laid.bytes.len() > MAX_PARAMETER_BYTES {
            let bytes = laid.bytes.len();
            let message = format!("{bytes} bytes do not fit in a kernel's parameters");
            return Err(self.error(place(table), message));
        }
        let arg = table.get_ref();
        let ty = arg.value.as_ref().and(arg.ty.as_ref());
        Ok(Arg {
            name: name.to_owned(),
            ty: ty.map(|ty| *ty.get_ref()),
            bytes: laid.bytes,
            align,
            pointers: laid.pointers,
        })
    }

    fn name<'t>(&self, table: &'t Spanned<ArgTable>) -> Result<&'t str> {
        let name = table.get_ref().name.as_ref();
        let name = name.ok_or_else(|| self.error(table.span(), "missing field `name`"))?;
        Ok(name.get_ref())
    }

    /// Refuses keys that mean nothing for this sort of argument.
    fn refuse(&self, table: &Spanned<ArgTable>, what: &str, keys: &[&str]) -> Result<()> {
        let arg = table.get_ref();
        let present = |key: &str| match key {
            "type" => arg.ty.is_some(),
            "value" => arg.value.is_some(),
            "fields" => arg.fields.is_some(),
            "shape" => arg.shape.is_some(),
            "init" => arg.init.is_some(),
            "output" => arg.output,
            "tolerance" => arg.tolerance.is_some(),
            "offset" => arg.offset.is_some(),
            "align" => arg.align.is_some(),
            "each" => arg.each.is_some(),
            "name" => arg.name.is_some(),
            _ => arg.alias.is_some(),
        };
        match keys.iter().find(|key| present(key)) {
            Some(key) => {
                let message = format!("`{key}` makes no sense for {what}");
                Err(self.error(place(table), message))
            }
            None => Ok(()),
        }
    }

    /// Appends a value, a pointer or a structure as C lays it out (every member at a multiple of its alignment, the
    /// whole padded to its own) and gives its alignment. What it points to goes to `memory`.
    fn lay_out(
        &self,
        table: &Spanned<ArgTable>,
        name: &str,
        laid: &mut Laid,
        memory: &mut Vec<Buffer>,
    ) -> Result<usize> {
        let arg = table.get_ref();
        if let Some(target) = &arg.alias {
            let keys = [
                "type",
                "value",
                "fields",
                "shape",
                "init",
                "output",
                "tolerance",
                "align",
                "each",
            ];
            self.refuse(table, "an alias", &keys)?;
            let of = memory.iter().position(|of| of.name == *target.get_ref());
            let of = of.ok_or_else(|| {
                let message = format!(
                    "there is no buffer `{}` before this argument",
                    target.get_ref()
                );
                self.error(target.span(), message)
            })?;
            let offset = match &arg.offset {
                Some(offset) => self.ranged("offset", offset, 0, memory[of].size() as i128)?,
                None => 0,
            };
            laid.point(of, offset as usize);
            return Ok(POINTER);
        }
        if arg.value.is_none() && arg.fields.is_none() {
            let buffer = match &arg.each {
                Some(each) => self.table(table, name, each, memory)?,
                None => self.buffer(table, name)?,
            };
            memory.push(buffer);
            laid.point(memory.len() - 1, 0);
            return Ok(POINTER);
        }
        let keys = ["shape", "init", "output", "tolerance", "offset", "each"];
        self.refuse(table, "an argument that is passed by value", &keys)?;
        match (&arg.ty, &arg.value, &arg.fields) {
            (Some(ty), Some(value), None) => {
                let ty = *ty.get_ref();
                let align = self.align(arg.align.as_ref(), ty.size(), MAX_VALUE_ALIGN)?;
                let bytes = &mut laid.bytes;
                pad(bytes, align);
                let start = bytes.len();
                let mut push = |expr: &Spanned<Expr>| -> Result<()> {
                    let bits = self.element(ty, expr)?.to_le_bytes();
                    bytes.extend(bits.iter().take(ty.size()));
                    Ok(())
                };
                match value.get_ref() {
                    OneOrMany::One(expr) => push(&Spanned::new(value.span(), expr.clone()))?,
                    OneOrMany::Many(list) => list.iter().try_for_each(push)?,
                }
                if bytes.len() == start {
                    return Err(self.error(value.span(), "the list of values is empty"));
                }
                Ok(align)
            }
            (None, None, Some(fields)) => {
                // Alignment first: the structure's start depends on all of its members.
                let mut inner = Laid::default();
                let mut align = 1;
                for field in fields {
                    let own = field
                        .get_ref()
                        .name
                        .as_ref()
                        .map_or("", |name| name.get_ref());
                    let path = format!("{name}.{own}");
                    align = align.max(self.lay_out(field, &path, &mut inner, memory)?);
                }
                if inner.bytes.is_empty() {
                    return Err(self.error(table.span(), "the structure has no fields"));
                }
                let align = self
                    .align(arg.align.as_ref(), align, MAX_VALUE_ALIGN)?
                    .max(align);
                pad(&mut inner.bytes, align);
                pad(&mut laid.bytes, align);
                laid.append(inner);
                Ok(align)
            }
            _ => {
                let message = "a value has either `type` and `value`, or `fields`";
                Err(self.error(table.span(), message))
            }
        }
    }

    fn symbol(&self, table: &Spanned<ArgTable>) -> Result<Buffer> {
        let name = self.name(table)?;
        let Some(fields) = &table.get_ref().fields else {
            let keys = ["alias", "value", "offset", "align", "each"];
            self.refuse(table, "a module variable", &keys)?;
            return self.buffer(table, name);
        };
        let (mut laid, mut memory) = (Laid::default(), Vec::new());
        self.lay_out(table, name, &mut laid, &mut memory)?;
        let is_pointer = |field: &&Spanned<ArgTable>| {
            let field = field.get_ref();
            field.value.is_none() && field.fields.is_none()
        };
        if !laid.pointers.is_empty() {
            let pointer = fields.iter().find(is_pointer).unwrap_or(table);
            let message = "a module variable cannot hold pointers here";
            return Err(self.error(place(pointer), message));
        }
        let len = laid.bytes.len();
        Ok(Buffer {
            name: name.to_owned(),
            ty: ElemType::U8,
            shape: vec![len as u64],
            len,
            init: Init::Values(laid.bytes.into_iter().map(u64::from).collect()),
            table: None,
            output: false,
            tolerance: None,
            offset: 0,
            align: DEFAULT_ALIGN,
            origin: self.origin(table),
        })
    }

    fn origin(&self, table: &Spanned<ArgTable>) -> Origin {
        Origin {
            source: Arc::clone(self.source),
            span: place(table),
        }
    }

    fn buffer(&self, table: &Spanned<ArgTable>, name: &str) -> Result<Buffer> {
        let arg = table.get_ref();
        if name.ends_with('.') {
            let message = "a member that is a pointer wants a `name`, which its memory has";
            return Err(self.error(table.span(), message));
        }
        let needs = |key: &str| {
            let message = format!("`{name}` has no `{key}` (nor a `value`, `fields` or `alias`)");
            self.error(table.span(), message)
        };
        let ty = *arg.ty.as_ref().ok_or_else(|| needs("type"))?.get_ref();
        let extents = arg.shape.as_ref().ok_or_else(|| needs("shape"))?;
        let (shape, len) = self.shape(extents, ty)?;
        let init = match &arg.init {
            Some(init) => self.init(
                ty,
                &shape,
                &Spanned::new(init.span(), init.get_ref().0.clone()),
            )?,
            None if arg.output => Init::Poison,
            None => {
                return Err(self.error(table.span(), format!("the input `{name}` has no `init`")));
            }
        };
        let tolerance = arg
            .tolerance
            .as_ref()
            .map(|t| self.tolerance(t))
            .transpose()?;
        if tolerance.is_some() && !arg.output {
            let message = "`tolerance` makes no sense for a buffer that is no output";
            return Err(self.error(place(table), message));
        }
        let offset = match &arg.offset {
            Some(offset) => self.ranged("offset", offset, 0, 1 << 30)? as usize,
            None => 0,
        };
        Ok(Buffer {
            ty,
            shape,
            len,
            init,
            table: None,
            output: arg.output,
            tolerance,
            offset,
            align: self.align(arg.align.as_ref(), DEFAULT_ALIGN, MAX_BUFFER_ALIGN)?,
            origin: self.origin(table),
            name: name.to_owned(),
        })
    }

    /// A table of pointers; the memory that they share goes in front of it.
    fn table(
        &self,
        table: &Spanned<ArgTable>,
        name: &str,
        each: &Spanned<ArgTable>,
        memory: &mut Vec<Buffer>,
    ) -> Result<Buffer> {
        let keys = ["type", "init", "output", "tolerance", "offset", "align"];
        self.refuse(table, "a table of pointers, whose `each` has it", &keys)?;
        let keys = ["name", "value", "fields", "alias", "each", "offset"];
        self.refuse(each, "what each pointer of a table points to", &keys)?;
        let shape = table.get_ref().shape.as_ref();
        let rows = shape.ok_or_else(|| {
            let message = format!("`{name}` has no `shape`: how many pointers it has");
            self.error(table.span(), message)
        })?;
        let (shape, len) = self.shape(rows, ElemType::U64)?;
        let of = memory.len();
        // One buffer of all parts: its extents are those of the table, then those of a part.
        let mut whole = each.get_ref().clone();
        if let Some(part) = &mut whole.shape {
            let all = rows.get_ref().iter().chain(part.get_ref()).cloned();
            *part = Spanned::new(part.span(), all.collect());
        }
        let whole = self.buffer(&Spanned::new(each.span(), whole), &format!("{name}.each"))?;
        let stride = whole.size() / len;
        memory.push(whole);
        Ok(Buffer {
            name: name.to_owned(),
            ty: ElemType::U64,
            shape,
            len,
            init: Init::Zeros,
            table: Some(Table { of, stride }),
            output: false,
            tolerance: None,
            offset: 0,
            align: DEFAULT_ALIGN,
            origin: self.origin(table),
        })
    }

    /// Extents and number of elements, whose bytes fit in an `isize`.
    fn shape(
        &self,
        extents: &Spanned<Vec<Spanned<Expr>>>,
        ty: ElemType,
    ) -> Result<(Vec<u64>, usize)> {
        let mut shape = Vec::new();
        let mut bytes = ty.size() as u64;
        for expr in extents.get_ref() {
            let extent = self.ranged("an extent of shape", expr, 1, i64::MAX.into())? as u64;
            bytes = bytes
                .checked_mul(extent)
                .filter(|&bytes| bytes <= MAX_BUFFER_BYTES)
                .ok_or_else(|| self.error(extents.span(), "the buffer's size overflows"))?;
            shape.push(extent);
        }
        Ok((shape, bytes as usize / ty.size()))
    }

    fn tolerance(&self, table: &Spanned<ToleranceTable>) -> Result<Tolerance> {
        let ToleranceTable { rel, abs } = *table.get_ref();
        if !(rel >= 0.0 && abs >= 0.0) {
            return Err(self.error(table.span(), "a tolerance is at least 0"));
        }
        Ok(Tolerance { rel, abs })
    }

    /// Names are keys for references and reports, so no two arguments, members that are pointers, or symbols share one.
    fn check_names(&self, launch: &Launch) -> Result<()> {
        let tables = self.document.args.iter().chain(&self.document.symbols);
        let named = tables.map(|table| Ok((self.name(table)?, place(table))));
        let mut names = named.collect::<Result<Vec<_>>>()?;
        let is_member = |of: &&Buffer| !names.iter().any(|(name, _)| *name == of.name);
        let members: Vec<&Buffer> = launch.memory.iter().filter(is_member).collect();
        names.extend(members.iter().map(|of| (&*of.name, of.origin.span.clone())));
        let mut seen = std::collections::BTreeSet::new();
        for (name, span) in names {
            // A name becomes a file's (`run --save`), so it is not to lead anywhere else.
            let is_plain = !name.is_empty()
                && name.len() <= MAX_NAME_BYTES
                && !name.starts_with('.')
                && !name.contains(|c: char| c == '/' || c == '\\' || c.is_control());
            if !is_plain {
                let message = "a name is not empty, begins with no dot and has no slash and no control character";
                return Err(self.error(span, message));
            }
            if !seen.insert(name) {
                let message = format!("there are two arguments `{name}`");
                return Err(self.error(span, message));
            }
        }
        Ok(())
    }
}

/// Bytes of a pointer.
const POINTER: usize = 8;

/// Where a table is named, or else where it stands.
fn place(table: &Spanned<ArgTable>) -> Range<usize> {
    let name = table.get_ref().name.as_ref();
    name.map_or_else(|| table.span(), Spanned::span)
}

/// A parameter as it is put together.
#[derive(Default)]
struct Laid {
    bytes: Vec<u8>,
    pointers: Vec<Pointer>,
}

impl Laid {
    /// Appends a pointer.
    fn point(&mut self, of: usize, offset: usize) {
        pad(&mut self.bytes, POINTER);
        let at = self.bytes.len();
        self.pointers.push(Pointer { at, of, offset });
        self.bytes.resize(at + POINTER, 0);
    }

    /// Appends what is laid out already; the alignment is seen to.
    fn append(&mut self, inner: Laid) {
        let start = self.bytes.len();
        self.bytes.extend(inner.bytes);
        let moved = inner.pointers.into_iter().map(|pointer| Pointer {
            at: start + pointer.at,
            ..pointer
        });
        self.pointers.extend(moved);
    }
}

fn pad(bytes: &mut Vec<u8>, align: usize) {
    bytes.resize(bytes.len().next_multiple_of(align), 0);
}
