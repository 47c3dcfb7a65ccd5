use super::*;

/// Grid, block and shared memory of the launches of `k`, for messages: `16,?/256/0`.
fn found(text: &str) -> Vec<String> {
    instance(text, &[])
}

fn instance(text: &str, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let all = HostCode::new(text, &[]).launches("k", &arguments);
    let number = |n: &Option<u32>| n.map_or("?".to_owned(), |n| n.to_string());
    let list = |all: &Extents| match all[..] {
        [None] => String::new(),
        _ => all.iter().map(number).collect::<Vec<_>>().join(","),
    };
    let text = |l: &OwnLaunch| {
        let smem = number(&l.dynamic_smem);
        format!("{}/{}/{smem}", list(&l.grid), list(&l.block))
    };
    all.iter().map(text).collect()
}

/// The same of the only launch in a function `void f(int n)`, behind this code.
fn after(code: &str) -> String {
    let text = format!("void f(int n) {{\n{code}\n k<<<g, b>>>(p);\n}}\n");
    let mut all = found(&text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

#[test]
fn extents_of_everyday_code() {
    for (code, expected) in [
        // Several in one declaration, constants of both kinds, expressions.
        ("dim3 b(16, 16), g(n / 16, n / 16);", "?,?/16,16/0"),
        (
            "int m = 2048; dim3 b(16, 16), g(m / 16, (m + 15) / 16);",
            "128,128/16,16/0",
        ),
        (
            "constexpr int B = 8, T = B * 4; dim3 b(T, B), g(n);",
            "/32,8/0",
        ),
        (
            "enum { T = 64, U = T / 2 }; dim3 b(T, U); int g = 1;",
            "1/64,32/0",
        ),
        ("const unsigned b = 1u << 8, g = 10'000;", "10000/256/0"),
        (
            "size_t m = 1e6; auto b = 128; auto g = (int)((m + b - 1) / b);",
            "7813/128/0",
        ),
        // Braces and copies.
        ("dim3 b{32, 8, 2}; dim3 g = {7, 5};", "7,5/32,8,2/0"),
        ("dim3 b = dim3(32, 4); dim3 g = b;", "32,4/32,4/0"),
        ("auto b = dim3{64}; dim3 g(b.x, b.y), h;", "64,1/64/0"),
        ("dim3 g, b;", "1/1/0"),
        // Member by member, and new values on the way.
        (
            "dim3 b; b.x = 16; b.y = 8; dim3 g(1); g.z = n;",
            "1,1,?/16,8/0",
        ),
        (
            "dim3 b(512); b = dim3(64); b.y = 2; int g = 5; g = g + 1;",
            "6/64,2/0",
        ),
        // Choices that are made, functions and templates of the file.
        (
            "const bool wide = n; constexpr int w = 1; dim3 b = w ? dim3(32, 8) : dim3(8); int g = wide ? 1 : 2;",
            "/32,8/0",
        ),
        ("int b = std::min(1024, 256), g = max(b, 300);", "300/256/0"),
        // What may be something else.
        ("int b = 32; if (n > 9) b = 64; int g = 1;", "1//0"),
        ("int b = 32; if (n > 9) { b = 64; } int g = 1;", "1//0"),
        ("int b = atoi(s), g = b;", "//0"),
        ("int b = 32, g; scanf(\"%d\", &b);", "//0"),
        ("int b = 32, g = 1; b *= 2; g++;", "//0"),
        ("int b = 32, g = 1; std::cin >> b;", "1//0"),
        ("int b[2] = {1, 2}; double g = 3;", "//0"),
        ("dim3 *b = q; T g = 3;", "//0"),
        ("for (int b = 1; b < 9; b++) {} int g = 0 + 1;", "1//0"),
    ] {
        assert_eq!(after(code), expected, "{code}");
    }
}

#[test]
fn names_mean_what_is_declared_around_them() {
    for (text, expected) in [
        (
            "int b = 1; void f() { int b = 64; k<<<2, b>>>(p); }",
            "2/64/0",
        ),
        ("int b = 1; void f(int b) { k<<<2, b>>>(p); }", "2//0"),
        (
            "void g() { int b = 8; } void f() { k<<<2, b>>>(p); }",
            "2//0",
        ),
        (
            "void g() { int b = 8; } int b = 4; void f() { k<<<2, b>>>(p); }",
            "2/4/0",
        ),
        (
            "int b = 4; void f() { k<<<2, b>>>(p); } void g() { b = 8; }",
            "2//0",
        ),
        (
            "const int b = 4; namespace a { void f() { k<<<2, b>>>(p); } }",
            "2/4/0",
        ),
        (
            "struct C { static constexpr int B = 96; }; void f() { k<<<2, C::B>>>(p); }",
            "2/96/0",
        ),
        (
            "namespace a { enum : int { b = 8 * 4 }; } void f() { using namespace a; k<<<2, b>>>(p); }",
            "2/32/0",
        ),
        (
            "void g() { const int b = 8; } void f() { k<<<2, b>>>(p); }",
            "2//0",
        ),
        (
            "struct A { dim3 b{8, 8}; void f() { k<<<2, b>>>(p); } };",
            "2//0",
        ),
        (
            "class A { dim3 b; A(int n) : b(n) {} void f() { k<<<2, b>>>(p); } };",
            "2//0",
        ),
        (
            "class A { static const int b = 8; void f() { k<<<2, b>>>(p); } };",
            "2/8/0",
        ),
        (
            "namespace a { int b = 8; void f() { k<<<2, b>>>(p); } void g() { b = 4; } }",
            "2//0",
        ),
        (
            "extern \"C\" { int b = 8; void f() { k<<<2, b>>>(p); } }",
            "2/8/0",
        ),
        (
            "void f() { static int b = 8; k<<<2, b>>>(p); b = 4; }",
            "2//0",
        ),
        (
            "struct A { dim3 b{8, 8}; A(int n) { b = n; } void f() { k<<<2, b>>>(p); } };",
            "2//0",
        ),
        (
            "void f() { int b = 4; { int b = 5; } k<<<2, b>>>(p); }",
            "2/4/0",
        ),
        (
            "void f() { auto g = [&](int b) { k<<<2, b>>>(p); }; g(4); }",
            "2//0",
        ),
        (
            "void f(int n) { for (int b = 32; b < n; b *= 2) k<<<2, b>>>(p); }",
            "2//0",
        ),
        (
            "void f(int n) { int b = 32; while (n--) { k<<<2, b>>>(p); b = 64; } }",
            "2//0",
        ),
        (
            "void f(int n) { int b = 32; { k<<<2, b>>>(p); b = 64; } }",
            "2/32/0",
        ),
        (
            "void f(int n) { if (n < b) {} int b = 32; if (n < b) { k<<<2, b>>>(p); } }",
            "2/32/0",
        ),
        (
            "#if X\nconst int b = 1;\n#else\nconst int b = 2;\n#endif\nvoid f() { k<<<2, b>>>(p); }",
            "2//0",
        ),
        (
            "void c(int n, int &b) { b = n; }\nvoid f() { int b = 1; c(2, b); k<<<2, b>>>(p); }",
            "2//0",
        ),
        (
            "int c(int n, int b) { return (n + b - 1) / b; }\nvoid f() { int b = 9; k<<<c(99, b), b>>>(p); }",
            "11/9/0",
        ),
        (
            "template <class T> T c(T a) { return a * 2; }\nvoid f() { k<<<c(4), 1>>>(p); }",
            "8/1/0",
        ),
    ] {
        assert_eq!(found(text), [expected], "{text}");
    }
}

#[test]
fn macros_stand_for_their_bodies() {
    for (text, expected) in [
        (
            "#define T 128\nvoid f() { k<<<T / 2, T>>>(p); }",
            "64/128/0",
        ),
        (
            "#ifndef T\n#define T (64 * 2) // wide\n#endif\nvoid f() { k<<<1, T>>>(p); }",
            "1/128/0",
        ),
        (
            "#define T 64 + 64\nvoid f() { k<<<T * 2, T>>>(p); }",
            "192/128/0",
        ),
        (
            "#define T 1\n#undef T\n#define T 2\nvoid f() { k<<<1, T>>>(p); }",
            "1//0",
        ),
        ("#define T T\nvoid f() { k<<<1, T>>>(p); }", "1//0"),
        (
            "#define UP(a, b) (((a) + (b) - 1) / (b))\nvoid f() { k<<<UP(100, 32), 32>>>(p); }",
            "4/32/0",
        ),
        ("#define GO(b) k<<<1, b>>>(p)\nvoid f() { GO(3); }", "//?"),
    ] {
        assert_eq!(found(text), [expected], "{text}");
    }
    let text = "#ifndef T\n#define T 64\n#endif\nvoid f() { k<<<1, T>>>(p); }";
    let block = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        numbers(&HostCode::new(text, &options).launches("k", &[])[0].block)
    };
    assert_eq!(block(&["-O3"]), Some(vec![64]));
    assert_eq!(block(&["-DT=32"]), Some(vec![32]));
    assert_eq!(block(&["-D", "T=16"]), Some(vec![16]));
}

#[test]
fn launches_of_all_forms() {
    for (text, expected) in [
        (
            "k<<<dim3(2, 3), 64, 16 * sizeof(float), s>>>(p);",
            "2,3/64/64",
        ),
        ("ns::k<float, (4 > 2)><<<2, 64, bytes>>>(p);", "2/64/?"),
        (
            "dim3 b(9); cudaLaunchKernel((void *)k, dim3(4), b, args, 0, s);",
            "4/9/0",
        ),
        (
            "cudaLaunchConfig_t c = {}; c.gridDim = dim3(4); c.blockDim.x = 64; c.dynamicSmemBytes = 1 << 10;\n\
             cudaLaunchKernelEx(&c, k, p, n);",
            "4/64/1024",
        ),
        (
            "cudaLaunchConfig_t c{dim3(4, 4), 32, 0, s}; cudaLaunchKernelEx(&c, k<float>, p);",
            "4,4/32/0",
        ),
        (
            "cudaLaunchConfig_t c{.gridDim = 4, .blockDim = {8, 8}}; cudaLaunchKernelEx(&c, k, p);",
            "4/8,8/0",
        ),
        (
            "cudaLaunchConfig_t c; set(&c); cudaLaunchKernelEx(&c, k, p);",
            "//?",
        ),
    ] {
        let text = format!("void f(float *p) {{ {text} }}");
        assert_eq!(found(&text), [expected], "{text}");
    }
    // By a variable, and by a macro.
    for (text, expected) in [
        ("void f() { auto g = k<float>; g<<<2, 64>>>(p); }", "2/64/0"),
        (
            "void f() { void (*g)(float *) = &k; g<<<2, 64>>>(p); } void h() { g<<<3, 64>>>(p); }",
            "2/64/0",
        ),
        ("void f() { auto g = k<float>; { g(1); } }", "none"),
    ] {
        let all = found(text);
        assert_eq!(
            all.first().map_or("none", String::as_str),
            expected,
            "{text}"
        );
        assert!(all.len() < 2, "{text}");
    }
    let text = "#define RUN(f, g, b, ...) do { \\\n f<<<g, b>>>(__VA_ARGS__); \\\n } while (0)\n\
                int main() { const int n = 96;\nRUN(k,\n n / 32, 32, p, n);\n k<<<9, 9>>>(p, n); }";
    let expanded = expanded(text, &[], &[]);
    assert_eq!(found(&expanded), ["3/32/0", "9/9/0"]);
    assert_eq!(described(&expanded), "n / 32 / 32 | p? | n : n=96 p=?");
    assert_eq!(text.matches('\n').count(), expanded.matches('\n').count());
    // No launches.
    for text in [
        "k(x);",
        "akk<<<1, 2>>>(x);",
        "// k<<<1, 2>>>(x);",
        "s = \"k<<<1, 2>>>(x)\";",
        "k<<<",
        "",
    ] {
        assert!(found(text).is_empty(), "{text}");
    }
}

#[test]
fn what_is_not_compiled_is_no_launch() {
    let of = |text: &str| found(&format!("void f() {{\n{text}\n}}"));
    let one = "k<<<1, 1>>>(p);\n";
    let two = "k<<<2, 2>>>(p);\n";
    for (directive, otherwise, expected) in [
        ("#if 0", "#else", "2/2/0"),
        ("#if 1", "#else", "1/1/0"),
        ("#ifdef FAST", "#else", "2/2/0"),
        ("#ifndef FAST", "#else", "1/1/0"),
        ("#if defined(FAST) || defined SLOW", "#else", "2/2/0"),
        ("#if defined(_OPENMP) && 0 // no", "#else", "2/2/0"),
        ("#define FAST\n#ifdef FAST", "#elif 1", "1/1/0"),
        ("#define N 4\n#if N > 2 && !defined(FAST)", "#else", "1/1/0"),
        (
            "#define N 4\n#undef N\n#ifdef N",
            "#elif defined(__CUDACC__)",
            "2/2/0",
        ),
        (
            "#if 0\n#ifndef X\n#endif\n#define X",
            "#elif defined(X)\n#else",
            "2/2/0",
        ),
        ("#ifdef __CUDACC__", "#else", "1/1/0"),
    ] {
        let text = format!("{directive}\n{one}{otherwise}\n{two}#endif");
        assert_eq!(of(&text), [expected], "{text}");
    }
    // What nobody knows may be either.
    for directive in ["#ifdef _OPENMP", "#if CUDART_VERSION > 12000", "#if MODE"] {
        let text = format!("{directive}\n{one}#else\n{two}#endif");
        assert_eq!(of(&text), ["1/1/0", "2/2/0"], "{text}");
    }
    // What is compiled declares.
    let text = "#ifdef BIG\nconst int b = 512;\n#else\nconst int b = 64;\n#endif\nvoid f() { k<<<1, b>>>(p); }";
    let block = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        numbers(&HostCode::new(text, &options).launches("k", &[])[0].block)
    };
    assert_eq!(block(&[]), Some(vec![64]));
    assert_eq!(block(&["-DBIG"]), Some(vec![512]));
    assert_eq!(block(&["-DBIG", "-UBIG"]), Some(vec![64]));
    let headers = [
        "#define BIG\n".to_owned(),
        "#ifndef H\n#define H\n#endif".to_owned(),
    ];
    let with = HostCode::with_headers(text, &[], &headers);
    assert_eq!(numbers(&with.launches("k", &[])[0].block), Some(vec![512]));
}

#[test]
fn instances_are_told_apart() {
    let text = "template <int B, class T> void run(T *p) { k<T, B><<<1, B>>>(p); }\n\
                void f() { run<64>(p); k<float, 256><<<2, 256>>>(p); k<double, 512><<<3, 512>>>(q); k<<<4, n>>>(p); }";
    assert_eq!(
        instance(text, &["float", "256"]),
        ["1/256/0", "2/256/0", "4//0"]
    );
    assert_eq!(
        instance(text, &["double", "512"]),
        ["1/512/0", "3/512/0", "4//0"]
    );
    assert_eq!(instance(text, &["float", "64"]), ["1/64/0", "4//0"]);
    assert_eq!(found(text).len(), 4);
}

#[test]
fn no_text_is_too_wild() {
    for text in [
        "k<<<b, b>>>(p)",
        "k<<<é(), b>>>(p); int é = (1); é(); int b; void f() { b = 1; } b",
        "} ) ] dim3 b(1; k<<<b, b>>>(p);",
        "int b = b; k<<<b, b>>>(p);",
        "int a = b, b = a; k<<<a, b>>>(p);",
        "template template <k<<<1, template>>>(p)",
        "b = 1; void f() { int b(",
        "enum { b, k = b }; k<<<k, enum>>>(enum)",
        "#define\n#define b(\nk<<<b(1), b>>>(p)",
        "cudaLaunchKernelEx(&k, k, k)",
        "k<<<{}, {,}>>>(p); k<<<sizeof, sizeof()>>>(p);",
        "void f(int b) { k<<<b, b>>>(b); f(b); } void g() { f(b.size()); } int *b = b + b;",
        "k<<<1, 1>>>((é*)&b[0].x->y, b.data().get(), (b)(b), -, &, 1 ? : 2); cudaMalloc(&b, sizeof(*b) * sizeof b);",
        "#define b b + b\n#define é(x) x ## x\nk<<<b * b, é(b) << 70>>>(1 << b, b % 0, 99999999999999999999);",
        "#if\n#elif é defined(\n#define é(b, ...) b<<<b, ##__VA_ARGS__\n#else if (é(b)) else k<<<é(b, b), (b)>>>(b);\n#endif\n#endif",
        "void warm() { else if k<<<1, 1>>>(); if () else if (b) k<<<sizeof b, sizeof *>>>(b); warm(); } auto b = k<b>, k = b; b<<<1, b>>>();",
        "b f(b) { return b; } b b = f(b); std::vector<b> b(b, b), k(b); b[b] = b % b; cudaMemcpy(b, b.b, b, b); k<<<min<b>(b), b>>>(b.b);",
        "cudaMallocPitch(&b, &b, b, b); cudaMemcpyToSymbol(b, &b, 4); __constant__ b b[; k<<<b, ceil(b / 0.0)>>>(b);",
    ] {
        let ends = (0..=text.len()).filter(|&end| text.is_char_boundary(end));
        for end in ends {
            let expanded = expanded(&text[..end], &[], &[]);
            let _ = HostCode::new(&expanded, &[]).launches("k", &[]);
            let code = HostCode::new(&text[..end], &[]);
            let _ = code.launches("k", &["1".to_owned()]);
            let _ = code.number("b", end);
            let _ = code.described("k", &["1".to_owned()]);
            let _ = (code.variable_type("b"), code.words_of("k"));
        }
    }
}

/// Grid, block and arguments of the first launch of `k`, by names: `ceil_div(n, 256)/256 n=1024 | n*4 | n | 2`. What is
/// no number is `?`, what may be something else has a `?` behind it.
fn described(text: &str) -> String {
    let code = HostCode::new(text, &[]);
    let Some(found) = code.described("k", &[]).into_iter().next() else {
        return "none".to_owned();
    };
    let mut roots = std::collections::BTreeSet::new();
    let mut fixed = std::collections::BTreeSet::new();
    let mut show = |amount: &Amount| {
        amount.roots(&mut roots, &mut fixed);
        let mark = if amount.is_sure() { "" } else { "?" };
        let text = amount
            .with(&|_| None, 4)
            .expr(&|root| root.name.clone())
            .to_string();
        format!("{text}{mark}")
    };
    let mut list = |all: &[Option<Amount>]| {
        let all = all
            .iter()
            .map(|a| a.as_ref().map_or("?".to_owned(), &mut show));
        all.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("{} / {}", list(&found.grid), list(&found.block));
    for argument in found.arguments.iter().flatten() {
        let real = argument.real.map_or("?".to_owned(), |r| format!("{r:?}"));
        let memory = argument.memory.as_ref().map(|m| match &m.bytes {
            Some(bytes) => format!("[{}]", list(&[Some(bytes.clone())])),
            None => "[?]".to_owned(),
        });
        let other = || match &argument.integer {
            Some(integer) if integer.number().is_some() || argument.real.is_none() => {
                list(&[Some(integer.clone())])
            }
            _ => real,
        };
        text += &format!(" | {}", memory.filter(|m| m != "[?]").unwrap_or_else(other));
    }
    let value = |r: &std::rc::Rc<Root>| {
        format!(
            "{}={}",
            r.name,
            r.value.map_or("?".to_owned(), |n| n.to_string())
        )
    };
    let roots: Vec<String> = roots
        .iter()
        .filter(|r| !r.name.is_empty())
        .map(value)
        .collect();
    format!("{text} : {}", roots.join(" "))
}

#[test]
fn launches_by_names() {
    for (text, expected) in [
        // A number that the user may change is the code's own only perhaps.
        (
            "int h = argc > 2 ? atoi(argv[2]) : 1024; for (int g = 0; g < 5; ++g) { k<<<(h + 15) / 16, 16>>>(h, g); }",
            "ceil_div(h, 16)? / 16 | h? | g? : g=0 h=1024",
        ),
        (
            "int n = 1 << 20; if (argc > 1) n = atoi(argv[1]); k<<<n / 32, 32>>>(n);",
            "n / 32? / 32 | n? : n=1048576",
        ),
        (
            "int n = atoi(argv[1]); k<<<ceil_div(n, 64), 64>>>(n);",
            " / 64 | n? : n=?",
        ),
        // Dimensions, and names that are made of others.
        (
            "int nx = 9, nz = 8; dim3 b(8, 8); dim3 g((nx + b.x - 1) / b.x, (nz + b.y - 1) / b.y); k<<<g, b>>>(nz);",
            "ceil_div(nx, 8), ceil_div(nz, 8) / 8, 8 | nz : nx=9 nz=8",
        ),
        (
            "const int B = 256, S = 4; const int n = 4 * 1024 * B * S; const int s = n / S; k<<<s / B, B>>>(s);",
            "(4096 * (B * S)) / S / B / B | (4096 * (B * S)) / S : B=256 S=4",
        ),
        // Memory, by what is asked for, of the same pointer alone.
        (
            "size_t n = 1e6; float *a, *b; cudaMalloc(&a, n * sizeof(float)); cudaMalloc((void **)&b, sizeof(*b) * (n + 1)); k<<<1, 1>>>(a, b, b + 1);",
            "1 / 1 | [4 * n] | [4 * (n + 1)?] | [4 * (n + 1)?] : n=1000000",
        ),
        (
            "float *a; { float *a; cudaMalloc(&a, 8); } k<<<1, 1>>>(a);",
            "1 / 1 | a? : a=?",
        ),
        (
            "float *a; cudaMalloc(&a, 8); cudaMalloc(&a, 16); k<<<1, 1>>>(a);",
            "1 / 1 | a? : a=?",
        ),
        (
            "int w = 3; T *a; cudaMalloc(&a, w * sizeof(T)); k<<<w, 1>>>((U *)a);",
            "w / 1 | ? : w=3",
        ),
        (
            "int w = 3; T *a; cudaMalloc(&a, w * sizeof(V)); k<<<w, 1>>>(a);",
            "w / 1 | a? : a=? w=3",
        ),
        (
            "size_t n = 1e6; float *a; float2 **b; cudaMalloc(&a, n * sizeof *a); cudaMalloc(&b, sizeof(float *) * n); k<<<1, 1>>>(a, b, sizeof a[0] * 2);",
            "1 / 1 | [4 * n?] | [8 * n] | ? : n=1000000",
        ),
        (
            "const int n = 9; float *h[n], **d; cudaMalloc(&d, n * sizeof(float *)); k<<<1, 1>>>(d);",
            "1 / 1 | [8 * n] : n=9",
        ),
        // Types in calls.
        (
            "int n = 5000; k<<<std::min<int>((n + 255) / 256, 1024), std::max<unsigned int>(64, 32)>>>(n);",
            "min(ceil_div(n, 256), 1024) / 64 | n : n=5000",
        ),
        // What does not fit its type is no number.
        (
            "int n = 70000 * 70000; unsigned m = -1; long long w = 1LL << 40; k<<<1, 1>>>(n, m, w);",
            "1 / 1 | n? | m? | w : m=? n=? w=1099511627776",
        ),
        (
            "size_t n = 1 << 31; int w = 3000000000; k<<<1, 1>>>(n, w, 1u << 31);",
            "1 / 1 | n? | w? | 2147483648 : n=? w=?",
        ),
        // Choices and quotients.
        (
            "int n = 99; int b = n % 8 ? n / 8 + 1 : n / 8; k<<<b, 8>>>(n < 32 ? n : 32, n > 5 ? 1 : 2);",
            "ceil_div(n, 8) / 8 | min(n, 32) | 1 : n=99",
        ),
        (
            "int n = 99; k<<<n / 8 + (n % 8 > 0), 8>>>(n / 4 + (n % 4 ? 1 : 0), n / 4 + (n % 8 != 0));",
            "ceil_div(n, 8) / 8 | ceil_div(n, 4) | n / 4 + 1 : n=99",
        ),
        (
            "int n = 99; k<<<(int)ceil((float)n / 8), 8>>>(ceil(n / 8.0f), ceil(n / 8));",
            "ceil_div(n, 8) / 8 | ceil_div(n, 8) | n / 8 : n=99",
        ),
        // Members have names of their own.
        (
            "P p; p.n = 50; k<<<(p.n + 7) / 8, 8>>>(p.n, p.m);",
            "ceil_div(p_n, 8)? / 8 | p_n? | p_m? : p_m=? p_n=?",
        ),
        (
            "float *a; k<<<1, 1>>>(nullptr, &a[0], f(a), \"k<<<1, 1>>>\");",
            "1 / 1 | nullptr? | ? | ? | ? : nullptr=?",
        ),
    ] {
        let text = format!("int main(int argc, char **argv) {{ {text} }}");
        assert_eq!(described(&text), expected, "{text}");
    }
}

#[test]
fn names_go_from_call_to_call() {
    for (text, expected) in [
        (
            "#define UP(a, b) (((a) + (b) - 1) / (b))\nvoid run(float *x, int cols) { k<<<UP(cols, 32), 32>>>(x, cols); }\n\
             int main() { int w = 640; float *d; cudaMalloc(&d, w * 4); run(d, w); }",
            "ceil_div(w, 32) / 32 | [4 * w] | w : w=640",
        ),
        (
            "void run(float *x, int n) { k<<<n, 32>>>(x, n); }\nint main() { run(d, 64); }",
            "n / 32 | d? | n : d=? n=64",
        ),
        (
            "void run(float *x, int n) { n *= 2; k<<<n, 32>>>(x, n); }\nint main() { run(d, 64); }",
            "n? / 32 | d? | n? : d=? n=64",
        ),
        (
            "void run(int n) { k<<<n, 32>>>(n); run(n - 1); }",
            "n? / 32 | n? : n=?",
        ),
        (
            "#define N 1 << 10\n#define M N * 2\nint main() { k<<<N, 32>>>(M, N + 1); }",
            "N / 32 | 1048576 | 2048 : N=1024",
        ),
        (
            "struct C { int n_; float *d_; C() { cudaMalloc(&d_, n_ * sizeof(float)); } void f() { k<<<n_, 2>>>(d_); } };",
            "n_? / 2 | [4 * n_?] : n_=?",
        ),
    ] {
        assert_eq!(described(text), expected, "{text}");
    }
}
