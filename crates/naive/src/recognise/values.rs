//! Expressions: integers as polynomials where they can be, everything else as it was written.

use warpwright_cudac::affine::{Poly, Symbol, Test};
use warpwright_cudac::ast::{Expr, ExprKind, Init, Type};
use warpwright_cudac::diag::Span;
use warpwright_cudac::macros::Expanded;
use warpwright_cudac::names::among;
use warpwright_cudac::{Literal, Scalar, print};

use super::{Done, Machine, Pointer, Val, Var, problem, pure, refused};
use crate::ir::{Access, Index, Value};

/// `int`
pub(super) const INT: Scalar = Scalar::Integer(32, true);

/// Functions of CUDA without effects: arithmetic on their arguments alone.
const PURE: &str = "\
     abs fabs fabsf min max fmin fmax fminf fmaxf umin umax sqrt sqrtf rsqrt rsqrtf cbrt cbrtf exp expf exp2 exp2f \
     exp10f expm1f log logf log2 log2f log10f log1pf sin sinf cos cosf tan tanf tanh tanhf sinhf coshf asinf acosf \
     atanf atan2f atan atan2 erf erff erfcf pow powf hypotf fma fmaf floor floorf ceil ceilf round roundf rintf \
     truncf fmod fmodf copysignf isnan isinf __expf __logf __sinf __cosf __powf __fdividef __frsqrt_rn __fmul_rn \
     __fadd_rn __fsub_rn __fmaf_rn __fdiv_rn __fsqrt_rn __saturatef __float2int_rn __int2float_rn __float_as_int \
     __int_as_float __mul24 __umul24 __popc __popcll __clz __clzll __ffs __ffsll __brev __mulhi __umulhi __mul64hi \
     __umul64hi __sad __usad __half2float __float2half __float2half_rn __hadd __hsub __hmul __hdiv __hfma __hmax \
     __hmin __habs __hneg __double2float_rn __float2int_rd __float2int_ru __float2int_rz __float2uint_rn \
     __uint2float_rn __float_as_uint __uint_as_float __double_as_longlong __longlong_as_double normcdf normcdff rcbrt \
     rcbrtf rint trunc log1p expm1 exp10 log10 sinh cosh asin acos hypot lgamma lgammaf tgamma tgammaf erfc copysign \
     remainder remainderf fdim fdimf llabs labs __builtin_inff __builtin_inf __builtin_huge_valf __builtin_huge_val \
     __builtin_nanf";

/// Is a function of CUDA without effects?
pub(super) fn is_known(name: &str) -> bool {
    among(PURE, name) || makes_vector(name)
}

/// Does a name begin a value of a vector type, as in `make_uchar3`?
pub(super) fn makes_vector(name: &str) -> bool {
    let ty = name.strip_prefix("make_").unwrap_or("");
    let base = ty.trim_end_matches(|c: char| c.is_ascii_digit());
    let known = "char uchar short ushort int uint longlong ulonglong float double";
    among(known, base) && matches!(&ty[base.len()..], "1" | "2" | "3" | "4")
}

/// Numbers of the standard headers.
pub(super) const NUMBERS: &str = "\
     INFINITY NAN HUGE_VALF FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON M_PI M_PI_2 M_SQRT1_2 \
     CUDART_INF_F CUDART_PI_F";

/// Most uses of macros within each other.
const DEEPEST: usize = 32;

impl Machine<'_> {
    pub(super) fn value(&mut self, expr: &Expr) -> Done<Val> {
        self.step(expr)?;
        warpwright_cudac::with_stack(|| self.value_of(expr))
    }

    /// The value of an expression that is no array.
    pub(super) fn plain(&mut self, expr: &Expr) -> Done<Value> {
        let value = self.value(expr)?;
        self.as_value(value, &expr.span)
    }

    /// A condition; a pointer stands for being none that is null.
    pub(super) fn condition(&mut self, expr: &Expr) -> Done<Value> {
        match self.value(expr)? {
            Val::Pointer(pointer)
                if pointer.taken.is_empty()
                    && self.kernel.arrays[pointer.array].parameter.is_some()
                    && matches!(&expr.bare().kind, ExprKind::Name(name)
                        if *name == self.kernel.arrays[pointer.array].name) =>
            {
                let name = self.kernel.arrays[pointer.array].name.clone();
                Ok(Value::Text(name))
            }
            value => self.as_value(value, &expr.span),
        }
    }

    fn as_value(&mut self, value: Val, at: &Span) -> Done<Value> {
        match value {
            Val::Int(poly, scalar) => Ok(self.number(poly, scalar)),
            Val::Value(value) => Ok(value),
            Val::Pointer(_) => Err(refused("an address as a value", at)),
        }
    }

    /// Writes places in the grid as such, or as the digits that the text takes them apart into.
    pub(super) fn placed(&mut self, poly: Poly) -> Poly {
        let poly = self.places.merged(poly);
        if !self.digits.are_split() || !poly.symbols().contains(&Symbol::Global(0)) {
            return poly;
        }
        let place = self.digits.place(0);
        let split = place.and_then(|place| poly.substituted(Symbol::Global(0), &place));
        split.unwrap_or(poly)
    }

    /// An integer as a value.
    pub(super) fn number(&mut self, poly: Poly, scalar: Scalar) -> Value {
        let poly = self.placed(poly);
        self.used.extend(poly.symbols());
        Value::Int(poly, scalar)
    }

    fn value_of(&mut self, expr: &Expr) -> Done<Val> {
        let at = &expr.span;
        match &expr.kind {
            ExprKind::Paren(inner) => self.value(inner),
            ExprKind::Number(text) => Ok(match Literal::parse(text) {
                Some(Literal::Integer(value)) => match integer_type(text, value) {
                    Some(scalar) => Val::Int(Poly::constant(value), scalar),
                    None => Val::Value(Value::Text(text.clone())),
                },
                _ => Val::Value(Value::Text(text.clone())),
            }),
            ExprKind::Bool(value) => Ok(Val::Value(Value::Text(value.to_string()))),
            ExprKind::Name(name) => self.name(name, expr),
            ExprKind::Member(base, field) => self.member(base, field, at),
            ExprKind::Index(..) => {
                let pointer = self.subscripted(expr)?;
                self.load_or_row(pointer, at)
            }
            ExprKind::Unary(op, inner) => self.unary(op, inner, at),
            ExprKind::Binary(op, a, b) => self.binary(op, a, b, at),
            ExprKind::Conditional(cond, a, b) => {
                let cond = self.condition(cond)?;
                let (a, b) = (self.plain(a)?, self.plain(b)?);
                let select = Value::Select(Box::new(cond), Box::new(a), Box::new(b));
                Ok(Val::Value(select))
            }
            ExprKind::Cast(_, ty, inner) => self.cast(ty, inner, at),
            ExprKind::Call(name, arguments) => match self.expanded(expr)? {
                Some(meaning) => self.value(&meaning),
                None => self.call(&name.text, arguments, at),
            },
            ExprKind::Update(..) | ExprKind::Assign(..) | ExprKind::Comma(..) => {
                Err(refused("an assignment inside an expression", at))
            }
        }
    }

    /// What a use of a macro stands for.
    pub(super) fn expanded(&mut self, expr: &Expr) -> Done<Option<Expr>> {
        let mut out = None;
        for _ in 0..DEEPEST {
            let present = out.as_ref().unwrap_or(expr).bare();
            if matches!(&present.kind, ExprKind::Name(name) if self.scopes.get(name).is_some()) {
                return Ok(out);
            }
            match self.file.expand(present) {
                Expanded::NoMacro => return Ok(out),
                Expanded::Problem(problem) => return Err(problem),
                Expanded::Expr(meaning) => out = Some(*meaning),
            }
        }
        Err(refused("macros that are nested so deep", &expr.span))
    }

    fn name(&mut self, name: &str, expr: &Expr) -> Done<Val> {
        let at = &expr.span;
        match self.scopes.get(name).cloned() {
            Some(Var::Int(poly, scalar)) => return Ok(Val::Int(poly, scalar)),
            Some(Var::Value(variable)) => {
                self.read.insert(variable);
                return Ok(Val::Value(Value::Variable(variable)));
            }
            Some(Var::Parameter(number)) => return Ok(Val::Value(Value::Parameter(number))),
            Some(Var::Pointer(pointer)) => return Ok(Val::Pointer(pointer)),
            Some(Var::Counter(_) | Var::Counted) => {
                return Err(problem(
                    "naive::name",
                    format!("`{name}` is a counter after its loop"),
                    at,
                    "used here",
                ));
            }
            Some(Var::Other(what)) => {
                return Err(problem(
                    "naive::name",
                    format!("`{name}` is {what}"),
                    at,
                    "used here",
                ));
            }
            None => {}
        }
        if let Some(meaning) = self.expanded(expr)? {
            return self.value(&meaning);
        }
        // Numbers of the standard headers, which are macros or compilers' own.
        if among(NUMBERS, name) && self.file.global(name, at.start).is_none() {
            return Ok(Val::Value(Value::Text(name.to_owned())));
        }
        if name == "warpSize" {
            return Err(refused("the size of a warp", at));
        }
        let file = self.file;
        let unknown = || {
            problem(
                "naive::name",
                format!("what `{name}` is is not known"),
                at,
                "used here",
            )
        };
        let found = file.global(name, at.start).ok_or_else(unknown)?;
        let ty = file.resolved(&found.ty, &self.types);
        if let (Some(scalar), Some(Init::Value(value)), true) =
            (file.scalar(&ty, &self.types), &found.init, found.is_fixed())
        {
            if let Scalar::Integer(..) = scalar {
                let value = self.value(value)?;
                return match value {
                    Val::Int(poly, _) if poly.as_constant().is_some() => Ok(Val::Int(poly, scalar)),
                    _ => Err(unknown()),
                };
            }
            return Ok(Val::Value(Value::Text(name.to_owned())));
        }
        if (found.is("__constant__") || found.is("__device__") && found.is_fixed())
            && matches!(ty, Type::Array(..))
        {
            // Rows of rows: their lengths are numbers.
            let (mut of, mut lengths, mut length) = (ty.clone(), Vec::new(), Some(1i64));
            while let Type::Array(inner, Some(own)) = of {
                let Val::Int(own, _) = self.value(&own)? else {
                    return Err(unknown());
                };
                length = length
                    .zip(own.as_constant())
                    .and_then(|(a, b)| a.checked_mul(b));
                lengths.push(own);
                of = inner.bare().clone();
            }
            let length = length.ok_or_else(unknown)?;
            lengths.remove(0);
            let known = self
                .kernel
                .arrays
                .iter()
                .position(|a| a.parameter.is_none() && a.name == name);
            let of = file.resolved(&of, &self.types);
            let array = match known {
                Some(array) => array,
                None if matches!(of, Type::Named(_)) => {
                    let array = self.array(name, None, &of, Some(length));
                    self.kernel.arrays[array].rows = lengths.len();
                    self.kernel.arrays[array].is_fixed = found.init.is_some();
                    array
                }
                None => return Err(unknown()),
            };
            return Ok(Val::Pointer(Pointer {
                array,
                offset: Index::Affine(Poly::default()),
                lengths,
                taken: Vec::new(),
            }));
        }
        Err(unknown())
    }

    fn member(&mut self, base: &Expr, field: &str, at: &Span) -> Done<Val> {
        if let ExprKind::Name(name) = &base.bare().kind
            && self.scopes.get(name).is_none()
        {
            let axis = match field {
                "x" => 0,
                "y" => 1,
                "z" => 2,
                _ => 3,
            };
            let symbol = match &**name {
                "threadIdx" => Some(Symbol::ThreadIdx(axis)),
                "blockIdx" => Some(Symbol::BlockIdx(axis)),
                "blockDim" => Some(Symbol::BlockDim(axis)),
                "gridDim" => {
                    self.grid.size = Some(at.clone());
                    Some(Symbol::GridDim(axis))
                }
                _ => None,
            };
            if let Some(symbol) = symbol.filter(|_| axis < 3) {
                if self.grid.axes.contains(&axis) {
                    let what = "a place in the launch, inside a loop over the grid";
                    return Err(refused(what, at));
                }
                return Ok(Val::Int(Poly::symbol(symbol), Scalar::Integer(32, false)));
            }
        }
        let base = self.plain(base)?;
        if let Value::Parameter(number) = base
            && let Some(pointer) = self.member_array(number, field, at)?
        {
            return Ok(Val::Pointer(pointer));
        }
        Ok(Val::Value(Value::Member(Box::new(base), field.to_owned())))
    }

    /// The array that a member of a parameter points to.
    fn member_array(&mut self, parameter: usize, field: &str, at: &Span) -> Done<Option<Pointer>> {
        let Some(ty) = self.structures.get(&parameter) else {
            return Ok(None);
        };
        let members = self.file.members(ty, &self.types).unwrap_or_default();
        let found = members.into_iter().find(|m| m.name == field);
        let Some(Type::Pointer(to, _)) = found.as_ref().map(|m| m.ty.bare()) else {
            return Ok(None);
        };
        let (element, lengths) = self.pointed(to, at)?;
        let name = format!("{}.{field}", self.kernel.parameters[parameter].name);
        let known = self.kernel.arrays.iter().position(|a| a.name == name);
        let array = known.unwrap_or_else(|| self.array(&name, Some(parameter), &element, None));
        Ok(Some(Pointer {
            array,
            offset: Index::Affine(Poly::default()),
            lengths,
            taken: Vec::new(),
        }))
    }

    fn unary(&mut self, op: &str, inner: &Expr, at: &Span) -> Done<Val> {
        if op == "*" {
            let Val::Pointer(mut pointer) = self.value(inner)? else {
                return Err(refused("`*` of something that is no array", at));
            };
            pointer.taken.push(Index::Affine(Poly::default()));
            return self.load_or_row(pointer, at);
        }
        if op == "&" {
            return Err(refused("an address", at));
        }
        let value = self.value(inner)?;
        match (op, value) {
            ("+", Val::Int(poly, scalar)) => Ok(Val::Int(poly, scalar)),
            ("-", Val::Int(poly, scalar)) => {
                let scalar = promoted(scalar);
                let negative = Poly::default().plus(&poly, -1);
                Ok(self.int(
                    negative.ok_or_else(|| refused("a number so large", at))?,
                    scalar,
                ))
            }
            (op, value) => {
                let value = self.as_value(value, at)?;
                Ok(Val::Value(Value::Unary(op.to_owned(), Box::new(value))))
            }
        }
    }

    /// An integer that was computed: it must be in range where the kernel is replaced.
    pub(super) fn int(&mut self, poly: Poly, scalar: Scalar) -> Val {
        let poly = self.placed(poly);
        let of_launch = |s: &Symbol| {
            matches!(
                s,
                Symbol::BlockDim(_)
                    | Symbol::GridDim(_)
                    | Symbol::ThreadIdx(_)
                    | Symbol::BlockIdx(_)
            )
        };
        // The places of a launch are in range.
        let checked = poly.as_constant().is_none() && !poly.symbols().iter().any(of_launch);
        let unsigned = matches!(scalar, Scalar::Integer(_, false));
        if checked {
            let range = (poly.clone(), unsigned);
            if !self.kernel.ranges.contains(&range) {
                self.kernel.ranges.push(range);
            }
        }
        Val::Int(poly, scalar)
    }

    fn binary(&mut self, op: &str, left: &Expr, right: &Expr, at: &Span) -> Done<Val> {
        if matches!(op, "==" | "!=")
            && let Some(pointer) = beside_null(left, right)
            && let ExprKind::Name(name) = &pointer.bare().kind
            && matches!(self.scopes.get(name), Some(Var::Pointer(_)))
        {
            let not = |value| Value::Unary("!".to_owned(), Box::new(value));
            let none = not(self.condition(pointer)?);
            return Ok(Val::Value(if op == "==" { none } else { not(none) }));
        }
        let (a, b) = (self.value(left)?, self.value(right)?);
        if let (Val::Int(a, s), Val::Int(b, t)) = (&a, &b) {
            signed(op, [a, b], common(*s, *t), at)?;
        }
        let large = || refused("a subscript of so many terms", at);
        match (op, a, b) {
            ("+" | "-" | "*", Val::Int(a, s), Val::Int(b, t)) => {
                let scalar = common(s, t);
                let value = match op {
                    "+" => a.plus(&b, 1),
                    "-" => a.plus(&b, -1),
                    _ => a.times(&b),
                };
                Ok(self.int(value.ok_or_else(large)?, scalar))
            }
            ("/" | "%" | "<<" | ">>", Val::Int(a, s), Val::Int(b, t)) => {
                let known = a.as_constant().zip(b.as_constant());
                let exact = known.and_then(|(a, b)| match op {
                    "/" => a.checked_div(b),
                    "%" => a.checked_rem(b),
                    "<<" if (0..31).contains(&b) => a.checked_mul(1 << b),
                    ">>" if (0..31).contains(&b) && a >= 0 => Some(a >> b),
                    _ => None,
                });
                if let Some(exact) = exact {
                    let scalar = if op.len() == 1 {
                        common(s, t)
                    } else {
                        promoted(s)
                    };
                    return Ok(Val::Int(Poly::constant(exact), scalar));
                }
                let (a, b) = (self.placed(a), self.placed(b));
                if matches!(op, "/" | "%")
                    && let Some((quotient, remainder)) = self.divided(&a, &b)
                {
                    let found = if op == "/" { quotient } else { remainder };
                    return Ok(self.int(found, common(s, t)));
                }
                let (a, b) = (self.number(a, s), self.number(b, t));
                let value = Value::Binary(op.to_owned(), Box::new(a), Box::new(b));
                Ok(Val::Value(value))
            }
            ("+" | "-", Val::Pointer(mut pointer), b @ (Val::Int(..) | Val::Value(_)))
                if pointer.taken.is_empty() && pointer.lengths.is_empty() =>
            {
                let by = self.index(b, at)?;
                pointer.offset = sum(&pointer.offset, &by, op == "-").ok_or_else(large)?;
                Ok(Val::Pointer(pointer))
            }
            ("+", a @ (Val::Int(..) | Val::Value(_)), Val::Pointer(mut pointer))
                if pointer.taken.is_empty() && pointer.lengths.is_empty() =>
            {
                let by = self.index(a, at)?;
                pointer.offset = sum(&by, &pointer.offset, false).ok_or_else(large)?;
                Ok(Val::Pointer(pointer))
            }
            (op, a, b) => {
                let a = self.as_value(a, &left.span)?;
                let b = self.as_value(b, &right.span)?;
                let value = Value::Binary(op.to_owned(), Box::new(a), Box::new(b));
                Ok(Val::Value(value))
            }
        }
    }

    fn index(&mut self, value: Val, at: &Span) -> Done<Index> {
        match value {
            Val::Int(poly, _) => {
                let poly = self.placed(poly);
                self.used.extend(poly.symbols());
                Ok(Index::Affine(poly))
            }
            Val::Value(value) => Ok(Index::Value(value)),
            Val::Pointer(_) => Err(refused("an address as a subscript", at)),
        }
    }

    fn cast(&mut self, ty: &Type, inner: &Expr, at: &Span) -> Done<Val> {
        let resolved = self.file.resolved(ty, &self.types);
        if !matches!(resolved, Type::Named(_)) {
            return Err(refused("a cast of a pointer", at));
        }
        let value = self.value(inner)?;
        let to = self.file.scalar(&resolved, &self.types);
        match (to, value) {
            (Some(to @ Scalar::Integer(bits, signed)), Val::Int(poly, from)) => {
                let Scalar::Integer(before, had_sign) = from else {
                    return Err(refused("this cast", at));
                };
                let keeps =
                    bits >= before && (signed == had_sign || !signed) || signed && bits > before;
                match keeps
                    || poly
                        .as_constant()
                        .is_some_and(|v| (0..1 << 15).contains(&v))
                {
                    // A sign that is lost is a value that must not be negative.
                    true => Ok(self.int(poly, to)),
                    false if bits >= before => Ok(self.int(poly, to)),
                    false => {
                        let text = print::declared(&resolved, "").trim().to_owned();
                        let value = self.number(poly, from);
                        Ok(Val::Value(Value::Cast(text, Box::new(value))))
                    }
                }
            }
            (_, value) => {
                let text = print::declared(&resolved, "").trim().to_owned();
                let value = self.as_value(value, at)?;
                Ok(Val::Value(Value::Cast(text, Box::new(value))))
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &[Expr], at: &Span) -> Done<Val> {
        if name.starts_with("atomic") {
            return Err(refused("an atomic operation", at));
        }
        if name.starts_with("__sync") || name.starts_with("__shfl") || name.starts_with("__ballot")
        {
            return Err(refused("threads that work together", at));
        }
        let ldg = name == "__ldg" && arguments.len() == 1;
        if let ([argument], true) = (arguments, ldg) {
            let pointed = match &argument.bare().kind {
                ExprKind::Unary(op, element) if op == "&" => return self.value(element),
                _ => self.value(argument)?,
            };
            if let Val::Pointer(mut pointer) = pointed {
                pointer.taken.push(Index::Affine(Poly::default()));
                return self.load_or_row(pointer, at);
            }
        }
        if !is_known(name) && !pure::is_pure(self.file, &self.types, name) {
            let what = format!("`{name}` may have effects, or is not known");
            return Err(problem("naive::call", what, at, "called here"));
        }
        let mut values = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            values.push(self.plain(argument)?);
            let by_name = matches!(values[number], Value::Variable(_));
            if !by_name && pure::is_reference(self.file, name, number) {
                return Err(refused("an argument by reference that is no variable", at));
            }
        }
        Ok(Val::Value(Value::Call(name.to_owned(), values)))
    }

    /// `base[index]` as a pointer with all subscripts.
    pub(super) fn subscripted(&mut self, expr: &Expr) -> Done<Pointer> {
        let expr = expr.bare();
        match &expr.kind {
            ExprKind::Index(base, index) => {
                let mut pointer = self.subscripted(base)?;
                let value = self.value(index)?;
                let index = self.index(value, &index.span)?;
                if pointer.taken.len() > pointer.lengths.len() {
                    return Err(refused("one subscript too many", &expr.span));
                }
                pointer.taken.push(index);
                Ok(pointer)
            }
            ExprKind::Unary(op, inner) if op == "*" => {
                let mut pointer = self.subscripted(inner)?;
                pointer.taken.push(Index::Affine(Poly::default()));
                Ok(pointer)
            }
            _ => match self.value(expr)? {
                Val::Pointer(pointer) => Ok(pointer),
                _ => Err(refused(
                    "a subscript of something that is no array",
                    &expr.span,
                )),
            },
        }
    }

    fn load_or_row(&mut self, pointer: Pointer, at: &Span) -> Done<Val> {
        if pointer.taken.len() <= pointer.lengths.len() {
            return Ok(Val::Pointer(pointer));
        }
        let access = self.access(pointer, at)?;
        Ok(Val::Value(Value::Load(access)))
    }

    /// Notes an access; its number.
    pub(super) fn access(&mut self, pointer: Pointer, at: &Span) -> Done<usize> {
        let large = || refused("a subscript of so many terms", at);
        let mut index = pointer.offset;
        for (number, taken) in pointer.taken.iter().enumerate() {
            let mut stride = Poly::constant(1);
            for length in pointer.lengths.iter().skip(number) {
                stride = stride.times(length).ok_or_else(large)?;
            }
            let scaled = match taken {
                Index::Affine(poly) => Index::Affine(poly.times(&stride).ok_or_else(large)?),
                Index::Value(value) if stride.as_constant() == Some(1) => {
                    Index::Value(value.clone())
                }
                Index::Value(_) => return Err(refused("an unresolved row", at)),
            };
            index = sum(&index, &scaled, false).ok_or_else(large)?;
        }
        if let Index::Affine(poly) = &mut index {
            *poly = self.placed(std::mem::take(poly));
        }
        self.kernel.accesses.push(Access {
            array: pointer.array,
            index,
            below: None,
            span: at.clone(),
        });
        Ok(self.kernel.accesses.len() - 1)
    }

    /// What a condition says of integers, if it speaks of nothing else.
    pub(super) fn test(&mut self, cond: &Expr) -> Done<Option<Test>> {
        if let Some(meaning) = self.expanded(cond.bare())? {
            return self.test(&meaning);
        }
        match &cond.bare().kind {
            ExprKind::Unary(op, inner) if op == "!" => {
                Ok(self.test(inner)?.and_then(|test| test.opposite()))
            }
            ExprKind::Binary(op, a, b) if op == "&&" || op == "||" => {
                let (a, b) = (self.test(a)?, self.test(b)?);
                Ok(a.zip(b).map(|(a, b)| a.join(b, op == "&&")))
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let (Val::Int(a, s), Val::Int(b, t)) = (a, b) else {
                    return Ok(None);
                };
                // A number with a sign beside one without is compared as one without.
                let scalar = common(s, t);
                signed(op, [&a, &b], scalar, &cond.span)?;
                let (Val::Int(a, _), Val::Int(b, _)) = (self.int(a, scalar), self.int(b, scalar))
                else {
                    return Ok(None);
                };
                Ok(Test::of(op, &a, &b, &cond.span))
            }
            _ => Ok(None),
        }
    }
}

/// Refuses a number below zero where it is a very large one, because what it stands beside has no sign.
fn signed(op: &str, both: [&Poly; 2], scalar: Scalar, at: &Span) -> Done<()> {
    let has_sign = !matches!(scalar, Scalar::Integer(_, false));
    let below_zero = |side: &Poly| side.as_constant().is_some_and(|number| number < 0);
    let counts = matches!(op, "<" | "<=" | ">" | ">=" | "/" | "%");
    match has_sign || !counts || !both.into_iter().any(below_zero) {
        true => Ok(()),
        false => Err(refused("a number below zero beside one without a sign", at)),
    }
}

/// What is compared with a pointer to nothing.
fn beside_null<'e>(left: &'e Expr, right: &'e Expr) -> Option<&'e Expr> {
    let is_null = |e: &Expr| matches!(&e.bare().kind, ExprKind::Name(n) if matches!(&**n, "NULL" | "nullptr" | "__null"));
    match (is_null(left), is_null(right)) {
        (true, false) => Some(right),
        (false, true) => Some(left),
        _ => None,
    }
}

fn sum(a: &Index, b: &Index, minus: bool) -> Option<Index> {
    let as_value = |index: &Index| match index {
        Index::Affine(poly) => Value::Int(poly.clone(), Scalar::Integer(64, true)),
        Index::Value(value) => value.clone(),
    };
    match (a, b) {
        (Index::Affine(a), Index::Affine(b)) => {
            Some(Index::Affine(a.plus(b, if minus { -1 } else { 1 })?))
        }
        (Index::Affine(a), Index::Value(b)) if a.is_zero() && !minus => {
            Some(Index::Value(b.clone()))
        }
        (a, b) => {
            let op = if minus { "-" } else { "+" };
            let (a, b) = (Box::new(as_value(a)), Box::new(as_value(b)));
            Some(Index::Value(Value::Binary(op.to_owned(), a, b)))
        }
    }
}

/// The type of an integer literal; none where it is not known.
fn integer_type(text: &str, value: i64) -> Option<Scalar> {
    let lower = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
    let is_hexadecimal = lower.starts_with("0x");
    let suffix = lower
        .trim_start_matches(|c: char| c.is_ascii_hexdigit() && c != 'l' || c == 'x' || c == '\'');
    let fits = i32::try_from(value).is_ok();
    match suffix {
        "" if fits => Some(INT),
        "" if is_hexadecimal => None,
        "u" if u32::try_from(value).is_ok() => Some(Scalar::Integer(32, false)),
        "ul" | "ull" | "lu" | "llu" => Some(Scalar::Integer(64, false)),
        "" | "l" | "ll" => Some(Scalar::Integer(64, true)),
        _ => None,
    }
}

/// The type after the integer promotions.
pub(super) fn promoted(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Bool | Scalar::Integer(..32, _) => INT,
        other => other,
    }
}

/// The type of a sum of two integers (the usual arithmetic conversions).
fn common(a: Scalar, b: Scalar) -> Scalar {
    match (promoted(a), promoted(b)) {
        (Scalar::Integer(m, s), Scalar::Integer(n, t)) if m == n => Scalar::Integer(m, s && t),
        (Scalar::Integer(m, s), Scalar::Integer(n, t)) => match m > n {
            true => Scalar::Integer(m, s),
            false => Scalar::Integer(n, t),
        },
        (a, _) => a,
    }
}
