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
    ] {
        let text = format!("void f(float *p) {{ {text} }}");
        assert_eq!(found(&text), [expected], "{text}");
    }
    // A macro may launch what it is handed, nobody says how.
    let text = "#define RUN(f, g, b, ...) do { \\\n f<<<g, b>>>(__VA_ARGS__); \\\n } while (0)\n\
                int main() { const int n = 96;\nRUN(k,\n n / 32, 32, p, n);\n k<<<9, 9>>>(p, n); }";
    assert_eq!(found(text), ["//?", "9/9/0"]);
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
            let code = HostCode::new(&text[..end], &[]);
            let _ = code.launches("k", &["1".to_owned()]);
            let _ = code.number("b", end);
            let _ = code.variable_type("b");
        }
    }
}

/// Grid, block and what integers the first launch of `k` hands over: `4 / 256 | 1024 | ?`.
fn handed(text: &str) -> String {
    let code = HostCode::new(text, &[]);
    let Some(found) = code.launches("k", &[]).into_iter().next() else {
        return "none".to_owned();
    };
    let number = |n: Option<i64>| n.map_or("?".to_owned(), |n| n.to_string());
    let list = |all: &Extents| {
        let all: Vec<String> = all.iter().map(|n| number(n.map(i64::from))).collect();
        match all.is_empty() {
            true => "?".to_owned(),
            false => all.join(", "),
        }
    };
    let arguments = found.arguments.iter().flatten();
    let arguments: String = arguments
        .map(|own| format!(" | {}", number(own.number)))
        .collect();
    format!("{} / {}{arguments}", list(&found.grid), list(&found.block))
}

#[test]
fn what_is_handed_over_is_known_for_certain_or_not_at_all() {
    for (text, expected) in [
        // What the user may change.
        (
            "int h = argc > 2 ? atoi(argv[2]) : 1024; k<<<(h + 15) / 16, 16>>>(h);",
            "? / 16 | ?",
        ),
        (
            "int n = 1 << 20; if (argc > 1) n = atoi(argv[1]); k<<<n / 32, 32>>>(n);",
            "? / 32 | ?",
        ),
        (
            "for (int g = 0; g < 5; ++g) { k<<<1, 16>>>(g); }",
            "1 / 16 | ?",
        ),
        (
            "int nx = 9, nz = 8; dim3 b(8, 8); dim3 g((nx + b.x - 1) / b.x, (nz + b.y - 1) / b.y); k<<<g, b>>>(nz, p);",
            "2, 1 / 8, 8 | 8 | ?",
        ),
        (
            "int n = 5000; k<<<std::min<int>((n + 255) / 256, 1024), std::max<unsigned int>(64, 32)>>>(n);",
            "20 / 64 | 5000",
        ),
        // What does not fit its type is no number.
        (
            "int n = 70000 * 70000; unsigned m = -1; long long w = 1LL << 40; k<<<1, 1>>>(n, m, w);",
            "1 / 1 | ? | ? | 1099511627776",
        ),
        (
            "size_t n = 1 << 31; int w = 3000000000; k<<<1, 1>>>(n, w, 1u << 31);",
            "1 / 1 | ? | ? | 2147483648",
        ),
        // Choices and quotients, in the types that C computes them in.
        (
            "int n = 99; k<<<n % 8 ? n / 8 + 1 : n / 8, 8>>>(n < 32 ? n : 32, n > 5 ? 1 : 2, n / 8 + (n % 8 > 0));",
            "13 / 8 | 32 | 1 | 13",
        ),
        (
            "int n = 99; k<<<(int)ceil((float)n / 8), 8>>>((int)ceil(n / 8.0f), (int)ceil(n / 8), n / 8.0);",
            "13 / 8 | 13 | 12 | ?",
        ),
        (
            "int n = 16777217; k<<<ceil((float)n / 1), ceil(n / 16777216.0)>>>(n);",
            "16777216 / 2 | 16777217",
        ),
        (
            "float f = 2.5; k<<<f, sizeof(float) * 8>>>(nullptr, &a[0], f(a), sizeof(T), \"k<<<1, 1>>>\");",
            "? / 32 | ? | ? | ? | ? | ?",
        ),
    ] {
        let text = format!("int main(int argc, char **argv) {{ {text} }}");
        assert_eq!(handed(&text), expected, "{text}");
    }
    // From call to call.
    for (text, expected) in [
        (
            "#define UP(a, b) (((a) + (b) - 1) / (b))\nvoid run(float *x, int cols) { k<<<UP(cols, 32), 32>>>(x, cols); }\n\
             int main() { int w = 640; run(d, w); }",
            "20 / 32 | ? | 640",
        ),
        (
            "void run(int n) { k<<<n, 32>>>(n); }\nint main() { run(64); run(32 * 2); }",
            "64 / 32 | 64",
        ),
        (
            "void run(int n) { k<<<n, 32>>>(n); }\nint main() { run(64); run(32); }",
            "? / 32 | ?",
        ),
        (
            "void run(int n) { n *= 2; k<<<n, 32>>>(n); }\nint main() { run(64); }",
            "? / 32 | ?",
        ),
        (
            "void run(int n) { k<<<n, 32>>>(n); run(n - 1); }",
            "? / 32 | ?",
        ),
        (
            "#define N 1 << 10\n#define M N * 2\nint main() { k<<<N, 32>>>(M, N + 1); }",
            "1024 / 32 | 1048576 | 2048",
        ),
        // Macros write, too.
        (
            "#define SET(a) (a) = 5\nint main() { int n = 4; SET(n); k<<<n, 32>>>(n); }",
            "? / 32 | ?",
        ),
        (
            "#define MORE n += 5\nint main() { int n = 4, m = 3; MORE; k<<<n, 32>>>(m); }",
            "? / 32 | 3",
        ),
    ] {
        assert_eq!(handed(text), expected, "{text}");
    }
}
