//! Statements at module scope.

use std::sync::Arc;

use super::decl::Specifiers;
use super::{Failed, Parse, Parser};
use crate::Diagnostic;
use crate::Span;
use crate::ir::{File, FunctionKind, TopItem};
use crate::names::Entity;
use crate::syntax::Kind;
use crate::types::Space;

impl<'s> Parser<'s> {
    /// The whole file.
    pub(super) fn module(&mut self) {
        while self.kind() != Kind::Eof {
            let start = self.span().start;
            if let Err(failed) = self.top_item() {
                failed.ignore();
                self.recover_top(start);
            }
        }
        self.check_header();
    }

    fn check_header(&mut self) {
        if self.module.header.version != (0, 0) || !self.diagnostics.is_empty() {
            return;
        }
        let what = if self.module.items.is_empty() {
            "the input is empty"
        } else {
            "no `.version`"
        };
        let diagnostic = Diagnostic::error("ptx::header", format!("not a PTX module: {what}"))
            .label(
                Span::point(0),
                "a module begins with `.version`, `.target`, `.address_size`",
            );
        self.report(diagnostic);
    }

    /// Skips to something that may begin a top-level statement, and keeps what was skipped.
    fn recover_top(&mut self, start: u32) {
        loop {
            match self.kind() {
                Kind::Eof => break,
                Kind::LBrace => {
                    self.skip_pair(Kind::LBrace, Kind::RBrace);
                    continue;
                }
                // What failed has consumed something, or this directive is where it failed.
                Kind::Dotted if self.span().start > start && self.begins_top_item() => break,
                _ => {}
            }
            self.bump();
        }
        let span = self.since(start);
        if !span.is_empty() {
            self.module.items.push(TopItem::Unknown(span));
        }
    }

    pub(super) fn begins_top_item(&self) -> bool {
        self.at_top_level_directive()
            || matches!(
                self.text(),
                ".weak"
                    | ".common"
                    | ".extern"
                    | ".global"
                    | ".const"
                    | ".address_size"
                    | ".file"
                    | ".section"
            )
    }

    fn top_item(&mut self) -> Parse<()> {
        let start = self.span().start;
        if self.kind() == Kind::At && self.kind_after() == Kind::At {
            // `@@DWARF …` lines of old debug information.
            self.skip_line();
            self.push_unknown(start);
            return Ok(());
        }
        if self.kind() == Kind::Semi {
            self.bump();
            self.push_unknown(start);
            return Ok(());
        }
        if self.kind() != Kind::Dotted {
            return self.expected_top_item();
        }
        match self.text() {
            ".version" => self.version(),
            ".target" => self.target(),
            ".address_size" => {
                self.bump();
                self.module.header.address_size = self.integer32()?;
                let span = self.since(start);
                self.module.header.address_size_span = span;
                self.module.items.push(TopItem::AddressSize(span));
                Ok(())
            }
            ".file" => {
                let index = self.file()?;
                self.module.items.push(TopItem::File(index));
                Ok(())
            }
            ".section" => {
                self.section()?;
                self.module.items.push(TopItem::Section(self.since(start)));
                Ok(())
            }
            ".pragma" => {
                let strings = self.pragma()?;
                self.module
                    .items
                    .push(TopItem::Pragma(strings, self.since(start)));
                Ok(())
            }
            ".alias" => self.alias(),
            _ => self.declaration(),
        }
    }

    fn expected_top_item(&mut self) -> Parse<()> {
        if self.module.header.version == (0, 0) {
            let span = self.span();
            let message = "not a PTX module: no `.version` at the beginning";
            return self.fail("ptx::header", message, span, "PTX does not begin like this");
        }
        self.expected("a directive, variable or function")
    }

    fn push_unknown(&mut self, start: u32) {
        let span = self.since(start);
        self.module.items.push(TopItem::Unknown(span));
    }

    fn version(&mut self) -> Parse<()> {
        let start = self.bump().span.start;
        let number = self.expect(Kind::Number, "a version such as `8.5`")?;
        let text = number.span.text(self.source);
        let version = text.split_once('.').and_then(|(major, minor)| {
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        let Some(version) = version else {
            let message = format!("`{}` is no PTX version", super::shorten(text));
            return self.fail("ptx::header", message, number.span, "expected MAJOR.MINOR");
        };
        let span = self.since(start);
        self.module.header.version = version;
        self.module.header.version_span = span;
        self.module.items.push(TopItem::Version(span));
        Ok(())
    }

    fn target(&mut self) -> Parse<()> {
        let start = self.bump().span.start;
        let mut targets = Vec::new();
        loop {
            let word = self.expect(Kind::Word, "a target such as `sm_90`")?;
            targets.push(word.span.text(self.source).to_owned());
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        let span = self.since(start);
        self.module.header.targets = targets;
        self.module.header.target_span = span;
        self.module.items.push(TopItem::Target(span));
        Ok(())
    }

    /// `.file index "path" [, time, size]`; returns its place in the list of files.
    pub(super) fn file(&mut self) -> Parse<usize> {
        let start = self.bump().span.start;
        let index = self.integer32()?;
        let path = self.string()?;
        let mut stamp = None;
        if self.eat(Kind::Comma) {
            let time = self.integer()? as u64;
            self.expect(Kind::Comma, "`,` before the file size")?;
            stamp = Some((time, self.integer()? as u64));
        }
        self.module.files.push(File {
            index,
            path,
            stamp,
            span: self.since(start),
        });
        Ok(self.module.files.len() - 1)
    }

    /// `.section name [flags] { … }`: the contents are skipped over.
    pub(super) fn section(&mut self) -> Parse<()> {
        self.bump();
        while !matches!(
            self.kind(),
            Kind::LBrace | Kind::Eof | Kind::Semi | Kind::RBrace
        ) {
            self.bump();
        }
        if self.kind() != Kind::LBrace {
            return self.expected("`{` after the section's name");
        }
        self.skip_pair(Kind::LBrace, Kind::RBrace);
        Ok(())
    }

    /// `.pragma "a", "b";`
    pub(super) fn pragma(&mut self) -> Parse<Vec<String>> {
        self.bump();
        let mut strings = vec![self.string()?];
        while self.eat(Kind::Comma) {
            strings.push(self.string()?);
        }
        self.expect(Kind::Semi, "`;` after `.pragma`")?;
        Ok(strings)
    }

    /// A string without its quotes, escapes undone.
    fn string(&mut self) -> Parse<String> {
        let tile = self.expect(Kind::Str, "a string")?;
        let text = tile.span.text(self.source);
        let inner = text.get(1..text.len() - 1).unwrap_or("");
        Ok(unescape(inner))
    }

    /// Everything up to the end of the source line; at least one tile.
    fn skip_line(&mut self) {
        self.bump();
        while self.kind() != Kind::Eof && !self.on_new_line() {
            self.bump();
        }
    }

    /// Does the current tile stand on another line than the one before it?
    fn on_new_line(&self) -> bool {
        let gap = Span::new(self.last_end, self.span().start);
        gap.text(self.source).contains('\n')
    }

    fn alias(&mut self) -> Parse<()> {
        let start = self.bump().span.start;
        let alias = self.function_name()?;
        self.expect(Kind::Comma, "`,` between the two names of `.alias`")?;
        let aliasee = self.function_name()?;
        self.expect(Kind::Semi, "`;` after `.alias`")?;
        let span = self.since(start);
        self.module.items.push(TopItem::Alias {
            alias,
            aliasee,
            span,
        });
        Ok(())
    }

    fn function_name(&mut self) -> Parse<crate::ir::FuncId> {
        let name = self.expect(Kind::Word, "the name of a function")?;
        match self
            .names
            .find(name.span.text(self.source))
            .map(|f| f.entity)
        {
            Some(Entity::Func(func)) => Ok(func),
            Some(_) => self.fail(
                "ptx::name",
                "expected a function",
                name.span,
                "this is none",
            ),
            None => self.unknown_name(name.span),
        }
    }

    /// A variable or a function.
    fn declaration(&mut self) -> Parse<()> {
        let spec = self.specifiers()?;
        match (self.kind(), self.text()) {
            (Kind::Dotted, ".entry") => self.function(spec, FunctionKind::Entry),
            (Kind::Dotted, ".func") => self.function(spec, FunctionKind::Func),
            (Kind::Dotted, _) => self.unknown_directive(spec),
            _ => self.global_variable(spec),
        }
    }

    fn global_variable(&mut self, spec: Specifiers) -> Parse<()> {
        match spec.space {
            None | Some(Space::Reg | Space::Sreg | Space::Local) => {
                self.expected("`.global`, `.const` or `.shared` before the variable")
            }
            Some(_) => {
                for id in self.variables(&spec, None)? {
                    self.module.items.push(TopItem::Variable(id));
                }
                Ok(())
            }
        }
    }

    /// A directive that we do not know is kept as text: to its `;`, its block, or the end of its
    /// line.
    fn unknown_directive(&mut self, spec: Specifiers) -> Parse<()> {
        let span = self.span();
        let text = super::shorten(self.text());
        if spec.start != span.start {
            return self.expected("a variable or function");
        }
        if self.module.header.version == (0, 0) {
            return self.expected_top_item();
        }
        self.report(
            Diagnostic::warning("ptx::directive", format!("unknown directive `{text}`"))
                .label(span, "kept as it is"),
        );
        self.skip_unknown_directive();
        self.push_unknown(span.start);
        Ok(())
    }

    /// From a directive's name to its `;` or block if that begins on the same line, else to the
    /// end of the line; at least one tile.
    pub(super) fn skip_unknown_directive(&mut self) {
        self.bump();
        while self.kind() != Kind::Eof && !self.on_new_line() {
            match self.kind() {
                Kind::Semi => {
                    self.bump();
                    return;
                }
                Kind::LBrace => return self.skip_pair(Kind::LBrace, Kind::RBrace),
                Kind::RBrace => return,
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Reports a name that is declared nowhere, with the nearest one that is.
    pub(super) fn unknown_name<T>(&mut self, span: Span) -> Parse<T> {
        let name = span.text(self.source);
        let visible: Vec<String> = match self.diagnostics.len() < super::MAX_DIAGNOSTICS {
            true => self.names.visible().collect(),
            false => Vec::new(),
        };
        self.report_unknown(span, name, visible.iter().map(|s| &**s));
        Err(Failed)
    }

    pub(super) fn report_unknown<'a>(
        &mut self,
        span: Span,
        name: &str,
        visible: impl Iterator<Item = &'a str>,
    ) {
        let message = format!("`{}` is not declared", super::shorten(name));
        let mut diagnostic = Diagnostic::error("ptx::name", message).label(span, "unknown name");
        if let Some(near) = warpwright_diag::nearest(name, visible) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic);
    }

    /// A name as a shared string.
    pub(super) fn name(&self, span: Span) -> Arc<str> {
        Arc::from(span.text(self.source))
    }
}

fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // An unknown escape stays as it is: Windows paths are written without doubling.
            '\\' => match chars.clone().next() {
                Some('n') => {
                    chars.next();
                    out.push('\n');
                }
                Some(e @ ('\\' | '"')) => {
                    chars.next();
                    out.push(e);
                }
                _ => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}
