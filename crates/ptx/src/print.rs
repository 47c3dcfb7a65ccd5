//! Printing from the typed view alone.
//!
//! [`canonical`] writes a module in one fixed layout, without a look at the source (except for
//! what the view itself keeps as text: sections, unknown directives, names in opaque
//! instructions). Parsing the result gives the same view again, which proves that the view misses
//! nothing that the language says.

use std::fmt::{self, Display, Write};

use crate::ir::{
    Address, Attribute, Base, Body, Dims, Directive, DirectiveKind, FuncId, Function, FunctionKind,
    Imm, Init, InitData, Inst, Item, Linkage, Loc, Module, Operand, OperandId, OperandList, Param,
    Symbol, TopItem, VarId, Variable,
};
use crate::types::Type;

/// The module in canonical layout.
pub fn canonical(module: &Module) -> String {
    let mut printer = Printer {
        module,
        out: String::with_capacity(module.source.len()),
    };
    for item in &module.items {
        printer.top_item(item);
    }
    printer.out
}

/// An instruction on one line, without its `;`.
pub fn inst_text(module: &Module, body: &Body, inst: Inst) -> String {
    let mut printer = Printer {
        module,
        out: String::new(),
    };
    printer.instruction(body, inst);
    printer.out
}

impl Display for Imm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // Its digits alone would be unsigned.
            Imm::Int {
                value: i64::MIN,
                unsigned: false,
            } => write!(f, "(.s64){}", 1u64 << 63),
            Imm::Int {
                value,
                unsigned: false,
            } => write!(f, "{value}"),
            Imm::Int {
                value,
                unsigned: true,
            } => write!(f, "{}U", value as u64),
            Imm::F32(bits) => write!(f, "0f{bits:08X}"),
            Imm::F64(bits) => write!(f, "0d{bits:016X}"),
        }
    }
}

impl Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, n) in self.0.iter().enumerate() {
            write!(f, "{}{n}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A string with quotes, as PTX writes it.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

fn write_pragma(f: &mut impl Write, strings: &[String]) -> fmt::Result {
    f.write_str(".pragma ")?;
    for (i, string) in strings.iter().enumerate() {
        write!(f, "{}{}", if i == 0 { "" } else { ", " }, Quoted(string))?;
    }
    f.write_char(';')
}

impl Display for DirectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectiveKind::MaxNtid(dims) => write!(f, ".maxntid {dims}"),
            DirectiveKind::ReqNtid(dims) => write!(f, ".reqntid {dims}"),
            DirectiveKind::MinNctaPerSm(n) => write!(f, ".minnctapersm {n}"),
            DirectiveKind::MaxNctaPerSm(n) => write!(f, ".maxnctapersm {n}"),
            DirectiveKind::MaxNreg(n) => write!(f, ".maxnreg {n}"),
            DirectiveKind::ReqNctaPerCluster(dims) => write!(f, ".reqnctapercluster {dims}"),
            DirectiveKind::ExplicitCluster => f.write_str(".explicitcluster"),
            DirectiveKind::MaxClusterRank(n) => write!(f, ".maxclusterrank {n}"),
            DirectiveKind::BlocksAreClusters => f.write_str(".blocksareclusters"),
            DirectiveKind::Pragma(strings) => write_pragma(f, strings),
            DirectiveKind::NoReturn => f.write_str(".noreturn"),
            DirectiveKind::AbiPreserve(n) => write!(f, ".abi_preserve {n}"),
            DirectiveKind::AbiPreserveControl(n) => write!(f, ".abi_preserve_control {n}"),
            DirectiveKind::Unknown(text) => f.write_str(text),
        }
    }
}

impl Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Managed => f.write_str(".managed"),
            Attribute::Unified(high, low) => write!(f, ".unified({high:#x}, {low:#x})"),
            Attribute::Unknown(text) => f.write_str(text),
        }
    }
}

struct Printer<'m> {
    module: &'m Module,
    out: String,
}

/// Appends formatted text; writing to a string cannot fail.
macro_rules! put {
    ($printer:expr, $($arg:tt)*) => {
        let _: fmt::Result = write!($printer.out, $($arg)*);
    };
}

impl<'m> Printer<'m> {
    fn top_item(&mut self, item: &TopItem) {
        let module = self.module;
        match item {
            TopItem::Version(_) => {
                let (major, minor) = module.header.version;
                put!(self, ".version {major}.{minor}\n");
            }
            TopItem::Target(_) => {
                put!(self, ".target {}\n", module.header.targets.join(", "));
            }
            TopItem::AddressSize(_) => {
                put!(self, ".address_size {}\n", module.header.address_size);
            }
            TopItem::Variable(var) => {
                self.variable(*var);
                self.out.push_str(";\n");
            }
            TopItem::Declare {
                func,
                linkage,
                params,
                returns,
                directives,
                ..
            } => {
                let function = &module.functions[*func];
                self.head(function, *linkage, returns, params, directives);
                self.out.push_str(";\n");
            }
            TopItem::Define(func) => self.define(*func),
            TopItem::File(index) => {
                if let Some(file) = module.files.get(*index) {
                    put!(self, ".file {} {}", file.index, Quoted(&file.path));
                    if let Some((time, size)) = file.stamp {
                        put!(self, ", {time}, {size}");
                    }
                    self.out.push('\n');
                }
            }
            TopItem::Pragma(strings, _) => {
                let _: fmt::Result = write_pragma(&mut self.out, strings);
                self.out.push('\n');
            }
            TopItem::Alias { alias, aliasee, .. } => {
                let (alias, aliasee) = (&module.functions[*alias], &module.functions[*aliasee]);
                put!(self, ".alias {}, {};\n", alias.name, aliasee.name);
            }
            TopItem::Section(span) | TopItem::Unknown(span) => {
                put!(self, "{}\n", module.text(*span));
            }
        }
    }

    fn define(&mut self, func: FuncId) {
        let function = &self.module.functions[func];
        let (returns, params) = (&function.returns, &function.params);
        self.head(
            function,
            function.linkage,
            returns,
            params,
            &function.directives,
        );
        let Some(body) = &function.body else { return };
        self.out.push_str("\n{\n");
        for item in &body.items {
            self.item(body, item);
        }
        self.out.push_str("}\n");
    }

    fn head(
        &mut self,
        function: &Function,
        linkage: Linkage,
        returns: &[Param],
        params: &[Param],
        directives: &[Directive],
    ) {
        self.linkage(linkage);
        self.out.push_str(match function.kind {
            FunctionKind::Entry => ".entry ",
            FunctionKind::Func => ".func ",
        });
        self.attributes(&function.attributes);
        if !returns.is_empty() {
            self.params(returns.iter().map(|p| p.var));
            self.out.push(' ');
        }
        self.out.push_str(&function.name);
        self.params(params.iter().map(|p| p.var));
        for directive in directives {
            put!(self, "\n{}", directive.kind);
        }
    }

    fn linkage(&mut self, linkage: Linkage) {
        if linkage != Linkage::Local {
            put!(self, "{} ", linkage.text());
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        if attributes.is_empty() {
            return;
        }
        self.out.push_str(".attribute(");
        for (i, attribute) in attributes.iter().enumerate() {
            put!(self, "{}{attribute}", if i == 0 { "" } else { ", " });
        }
        self.out.push_str(") ");
    }

    fn params(&mut self, params: impl Iterator<Item = VarId>) {
        self.out.push('(');
        for (i, param) in params.enumerate() {
            self.out.push_str(if i == 0 { "" } else { ", " });
            self.variable(param);
        }
        self.out.push(')');
    }

    /// A declaration without its `;`.
    fn variable(&mut self, id: VarId) {
        let var = &self.module.variables[id];
        self.linkage(var.linkage);
        put!(self, "{} ", var.space);
        self.attributes(&var.attributes);
        if let Some(align) = var.align {
            put!(self, ".align {align} ");
        }
        if var.vector > 1 {
            put!(self, ".v{} ", var.vector);
        }
        put!(self, "{} ", var.ty);
        if let Some(ptr) = var.ptr {
            self.out.push_str(".ptr ");
            if let Some(space) = ptr.space {
                put!(self, "{space} ");
            }
            if let Some(align) = ptr.align {
                put!(self, ".align {align} ");
            }
        }
        self.out.push_str(&var.name);
        for dim in &var.dims {
            match dim {
                Some(n) => {
                    put!(self, "[{n}]");
                }
                None => self.out.push_str("[]"),
            }
        }
        match &var.init {
            None => {}
            Some(Init::Opaque(span)) => {
                put!(self, " = {}", self.module.text(*span));
            }
            Some(Init::Data(data)) => self.initial_value(var, data),
        }
    }

    fn initial_value(&mut self, var: &Variable, data: &InitData) {
        let braces = !var.dims.is_empty() || var.vector > 1;
        self.out.push_str(if braces { " = {" } else { " = " });
        let width = (var.ty.bytes() as usize).max(1);
        let mut refs = data.refs.iter().peekable();
        for (i, element) in data.bytes.chunks(width).enumerate() {
            self.out.push_str(if i == 0 { "" } else { ", " });
            match refs.next_if(|r| r.at == (i * width) as u64) {
                None => self.element(var.ty, element),
                Some(r) => {
                    let mut close = 0;
                    if r.mask != u64::MAX {
                        put!(self, "{:#x}(", r.mask);
                        close += 1;
                    }
                    if r.generic {
                        self.out.push_str("generic(");
                        close += 1;
                    }
                    self.out.push_str(self.symbol(r.symbol));
                    // ptxas wants the constant outside of all parentheses.
                    self.out.push_str(&"))"[..close]);
                    self.offset(r.offset);
                }
            }
        }
        if braces {
            self.out.push('}');
        }
    }

    fn element(&mut self, ty: Type, bytes: &[u8]) {
        let mut low = [0; 8];
        for (to, from) in low.iter_mut().zip(bytes) {
            *to = *from;
        }
        let bits = u64::from_le_bytes(low);
        let high_ones = bytes.len() > 8 && bytes[8..].iter().all(|&b| b == 0xFF);
        match ty {
            Type::F32 => {
                put!(self, "0f{bits:08X}");
            }
            Type::F64 => {
                put!(self, "0d{bits:016X}");
            }
            // 128 bits are extended from a signed constant.
            _ if high_ones => {
                put!(
                    self,
                    "{}",
                    Imm::Int {
                        value: bits as i64,
                        unsigned: false
                    }
                );
            }
            _ => {
                put!(self, "{bits}");
            }
        }
    }

    fn item(&mut self, body: &Body, item: &Item) {
        match item {
            Item::Inst(inst) => {
                self.out.push('\t');
                self.instruction(body, *inst);
                self.out.push(';');
            }
            Item::Label(label) => {
                put!(self, "{}:", body.labels[*label].name);
            }
            Item::Regs(decl) => {
                let decl = &body.reg_decls[*decl];
                self.out.push_str("\t.reg ");
                if decl.vector > 1 {
                    put!(self, ".v{} ", decl.vector);
                }
                put!(self, "{} {}", decl.ty, decl.base);
                if let Some(count) = decl.count {
                    put!(self, "<{count}>");
                }
                self.out.push(';');
            }
            Item::Var(var) => {
                self.out.push('\t');
                self.variable(*var);
                self.out.push(';');
            }
            Item::Open(_) => self.out.push('{'),
            Item::Close(_) => self.out.push('}'),
            Item::Loc(loc) => self.loc(&body.locs[*loc]),
            Item::Pragma(strings, _) => {
                let _: fmt::Result = write_pragma(&mut self.out, strings);
            }
            Item::BranchTable(table) => {
                let table = &body.branch_tables[*table];
                let names = table
                    .targets
                    .iter()
                    .map(|t| t.map(|l| &*body.labels[l].name));
                self.table(&table.name, ".branchtargets", names);
            }
            Item::CallTable(table) => {
                let table = &body.call_tables[*table];
                let functions = &self.module.functions;
                let names = table.targets.iter().map(|t| t.map(|f| &*functions[f].name));
                self.table(&table.name, ".calltargets", names);
            }
            Item::Prototype(prototype) => {
                let prototype = &body.prototypes[*prototype];
                put!(self, "{}: .callprototype ", prototype.name);
                if !prototype.returns.is_empty() {
                    self.params(prototype.returns.iter().copied());
                }
                self.out.push_str(" _ ");
                self.params(prototype.params.iter().copied());
                for directive in &prototype.directives {
                    put!(self, " {}", directive.kind);
                }
                self.out.push(';');
            }
            Item::Unknown(span) => self.out.push_str(self.module.text(*span)),
        }
        self.out.push('\n');
    }

    fn table<'a>(
        &mut self,
        name: &str,
        directive: &str,
        names: impl Iterator<Item = Option<&'a str>>,
    ) {
        put!(self, "{name}: {directive} ");
        for (i, target) in names.enumerate() {
            put!(
                self,
                "{}{}",
                if i == 0 { "" } else { ", " },
                target.unwrap_or("_")
            );
        }
        self.out.push(';');
    }

    fn loc(&mut self, loc: &Loc) {
        put!(self, "\t.loc {} {} {}", loc.file, loc.line, loc.column);
        if let Some(inlined) = &loc.inlined {
            put!(self, ", function_name {}", inlined.function_name);
            if inlined.name_offset != 0 {
                put!(self, "+{}", inlined.name_offset);
            }
            put!(
                self,
                ", inlined_at {} {} {}",
                inlined.file,
                inlined.line,
                inlined.column
            );
        }
    }

    fn instruction(&mut self, body: &Body, inst: Inst) {
        let data = body.insts[inst];
        if let Some(guard) = data.guard {
            let bang = if guard.negated { "!" } else { "" };
            put!(self, "@{bang}{} ", body.reg_name(guard.reg));
        }
        self.out.push_str(&self.module.opcodes[data.opcode].text);
        if data.operands.len > 0 {
            self.out.push(' ');
            self.operands(body, data.operands);
        }
    }

    fn operands(&mut self, body: &Body, list: OperandList) {
        for (i, id) in list.ids().enumerate() {
            self.out.push_str(if i == 0 { "" } else { ", " });
            self.operand(body, id);
        }
    }

    fn operand(&mut self, body: &Body, id: OperandId) {
        match body.operands[id] {
            Operand::Reg(reg) => {
                put!(self, "{}", body.reg_name(reg));
            }
            Operand::Not(reg) => {
                put!(self, "!{}", body.reg_name(reg));
            }
            Operand::Neg(reg) => {
                put!(self, "-{}", body.reg_name(reg));
            }
            Operand::Sum { reg, by } => {
                put!(self, "{}+{by}", body.reg_name(reg));
            }
            Operand::Select { reg, part, negated } => {
                let minus = if negated { "-" } else { "" };
                put!(self, "{minus}{}.{}", body.reg_name(reg), part);
            }
            Operand::Special { reg, part } => {
                put!(self, "{reg}");
                if let Some(part) = part {
                    put!(self, ".{}", part);
                }
            }
            Operand::Imm(imm) => {
                put!(self, "{imm}");
            }
            Operand::Symbol { symbol, offset } => {
                self.out.push_str(self.symbol(symbol));
                self.offset(offset);
            }
            Operand::Mem(address) => {
                self.out.push('[');
                self.address(body, id, address);
                self.out.push(']');
                if address.unified {
                    self.out.push_str(".unified");
                }
            }
            Operand::MemTuple(list) => {
                self.out.push('[');
                for (i, id) in list.ids().enumerate() {
                    self.out.push_str(if i == 0 { "" } else { ", " });
                    match body.operands[id] {
                        Operand::Mem(address) if i == 0 => self.address(body, id, address),
                        _ => self.operand(body, id),
                    }
                }
                self.out.push(']');
            }
            Operand::Vector(list) => {
                self.out.push('{');
                self.operands(body, list);
                self.out.push('}');
            }
            Operand::List(list) => {
                self.out.push('(');
                self.operands(body, list);
                self.out.push(')');
            }
            Operand::Pair(list) => {
                for (i, id) in list.ids().enumerate() {
                    self.out.push_str(if i == 0 { "" } else { "|" });
                    self.operand(body, id);
                }
            }
            Operand::Label(label) => self.out.push_str(&body.labels[label].name),
            Operand::Sink => self.out.push('_'),
            Operand::BranchTable(table) => self.out.push_str(&body.branch_tables[table].name),
            Operand::CallTable(table) => self.out.push_str(&body.call_tables[table].name),
            Operand::Prototype(prototype) => self.out.push_str(&body.prototypes[prototype].name),
            Operand::Unresolved => {
                self.out.push_str(self.module.text(body.operand_spans[id]));
            }
        }
    }

    /// What stands inside the brackets.
    fn address(&mut self, body: &Body, id: OperandId, address: Address) {
        match address.base {
            Base::Reg(reg) => {
                put!(self, "{}", body.reg_name(reg));
                self.offset(address.offset);
            }
            Base::Symbol(symbol) => {
                self.out.push_str(self.symbol(symbol));
                self.offset(address.offset);
            }
            Base::Absolute => {
                put!(
                    self,
                    "{}",
                    Imm::Int {
                        value: address.offset,
                        unsigned: false
                    }
                );
            }
            Base::Unresolved => {
                let text = self.module.text(body.operand_spans[id]);
                self.out
                    .push_str(text.trim_start_matches('[').trim_end_matches(']'));
            }
        }
    }

    fn offset(&mut self, offset: i64) {
        if offset != 0 {
            // ptxas takes no `[a-4]`.
            put!(self, "+{offset}");
        }
    }

    fn symbol(&self, symbol: Symbol) -> &'m str {
        match symbol {
            Symbol::Var(var) => &self.module.variables[var].name,
            Symbol::Func(func) => &self.module.functions[func].name,
        }
    }
}
