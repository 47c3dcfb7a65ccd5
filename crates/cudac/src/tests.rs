use super::*;
use crate::ast::ExprKind;
use crate::macros::Expanded;

const KERNEL: &str = r#"#include <cstdio>
#define N 512
#define A(y, x) a[(y)*N + (x)] /* row-major */

// Computes something.
extern "C" __global__ void __launch_bounds__(256, 2)
f(const double *__restrict__ a, double (*out)[N], double w[3][N], float c, int n) {
  __shared__ double s[32];
  double (*in)[8196] = (double (*)[8196]) a;

  // The point.
  const int i = blockIdx.x * blockDim.x + (int)threadIdx.x, z = 3;
  if (i >= 2 && i <= n - 3) {
    double t = 0.5e-3, q[2] = {1.0, 2.0}; // two things
    t += -in[i - 1][0] * (2.0f);
#pragma unroll
    for (int k = 1; k < n; ++k) out[k][i] = A(k, i) > 0 ? t : fmin(t, c);
    /* before */
    i++;
    /* the end */
  } else if (n) __syncthreads(); else { return; }
  out[0][i] = a[i - 4] * 0.0035 + a[i - 3] * 0.038 + a[i - 2] * 0.2 + a[i - 1] * 0.8 - (a[i + 10] - -a[i]);
}
int main() { f<<<1, 1>>>(0, 0, 0, 0, 0); }
"#;

const PRINTED: &str = r#"__global__ void __launch_bounds__(256, 2)
f(const double *__restrict__ a, double (*out)[N], double w[3][N], float c, int n) {
    __shared__ double s[32];
    double (*in)[8196] = (double (*)[8196])a;

    // The point.
    const int i = blockIdx.x * blockDim.x + (int)threadIdx.x, z = 3;
    if (i >= 2 && i <= n - 3) {
        double t = 0.5e-3, q[2] = {1.0, 2.0}; // two things
        t += -in[i - 1][0] * (2.0f);
#pragma unroll
        for (int k = 1; k < n; ++k) {
            out[k][i] = A(k, i) > 0 ? t : fmin(t, c);
        }
        /* before */
        i++;
        /* the end */
    } else if (n) {
        __syncthreads();
    } else {
        return;
    }
    out[0][i] =
        a[i - 4] * 0.0035 + a[i - 3] * 0.038 + a[i - 2] * 0.2 + a[i - 1] * 0.8 -
        (a[i + 10] - -a[i]);
}
"#;

fn file(text: &str) -> File {
    File::parse(Source::new("test.cu", text)).unwrap()
}

fn only_kernel(file: &File) -> ast::Function {
    file.kernel(&file.kernels[0])
        .unwrap_or_else(|problem| panic!("{}", problem.render(&file.source)))
}

#[test]
fn a_kernel_is_printed_as_a_person_would_keep_it() {
    let file = file(KERNEL);
    let printed = print::function(&only_kernel(&file));
    assert_eq!(printed, PRINTED);
    let whole = file.replace(vec![(file.kernels[0].span.clone(), printed.clone())]);
    let again = File::parse(Source::new("again.cu", whole.clone())).unwrap();
    assert_eq!(print::function(&only_kernel(&again)), printed);
    // Around the kernel, nothing has changed.
    assert!(whole.starts_with("#include <cstdio>\n#define N 512\n"));
    assert!(whole.contains("// Computes something.\nextern \"C\" __global__"));
    assert!(whole.ends_with("int main() { f<<<1, 1>>>(0, 0, 0, 0, 0); }\n"));
}

#[test]
fn a_file_without_edits_is_itself() {
    assert_eq!(file(KERNEL).replace(Vec::new()), KERNEL);
}

#[test]
fn macros_are_expanded_as_text() {
    let text = "#define W 10\n#define AT(y, x) p[(y)*W + x]\n__global__ void f(double *p) {\n\
                AT(i - 1, j + W) = AT;\n}\n#undef W\n";
    let file = file(text);
    let function = only_kernel(&file);
    let ast::StmtKind::Expr(statement) = &function.body.statements[0].kind else {
        panic!("{function:?}");
    };
    let ExprKind::Assign(_, left, right) = &statement.kind else {
        panic!("{statement:?}");
    };
    let Expanded::Expr(expanded) = file.expand(left) else {
        panic!("not expanded");
    };
    assert_eq!(print::expr(&expanded), "p[(i - 1) * W + j + W]");
    assert_eq!(expanded.span, left.span);
    assert!(matches!(file.expand(right), Expanded::NoMacro));
    assert!(file.macros.get("W", 200).is_none());
    assert!(file.macros.get("W", 50).is_some());
}

#[test]
fn types_are_printed_as_declared() {
    let text = "__global__ void f(int n) {\n\
                const double *const __restrict__ a = p, (*b)[3][N] = q, *c[4];\n\
                unsigned  long long d = static_cast<unsigned long long>(n);\n\
                double *e = (double *)(const float (*)[2])p;\n}\n";
    let file = file(text);
    let printed = print::function(&only_kernel(&file));
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    assert_eq!(
        lines[1..4],
        [
            "const double *const __restrict__ a = p, (*b)[3][N] = q, *c[4];",
            "unsigned long long d = static_cast<unsigned long long>(n);",
            "double *e = (double *)(const float (*)[2])p;",
        ]
    );
}

#[test]
fn a_macro_may_name_what_is_called() {
    let text = "#define ACT soft\n__global__ void f(float *p) { p[0] = ACT(p[1] + 1, 2); }\n";
    let file = file(text);
    let function = only_kernel(&file);
    let ast::StmtKind::Expr(statement) = &function.body.statements[0].kind else {
        panic!("{function:?}");
    };
    let ExprKind::Assign(_, _, right) = &statement.kind else {
        panic!("{statement:?}");
    };
    let Expanded::Expr(expanded) = file.expand(right) else {
        panic!("not expanded");
    };
    assert_eq!(print::expr(&expanded), "soft(p[1] + 1, 2)");
}

/// The grammar takes a cast to a typedef's name for a call where the value stands in parentheses.
#[test]
fn casts_to_names_of_types_are_casts() {
    let text = "typedef float real_t;\n\
                __global__ void f(real_t *a, int n) { a[0] = (real_t)((float)a[1] + n); a[n] = real(a[2]); }\n";
    let file = file(text);
    let function = only_kernel(&file);
    let printed = print::function(&function);
    let line = printed.lines().map(str::trim).nth(1);
    assert_eq!(line, Some("a[0] = (real_t)((float)a[1] + n);"));
    let text = format!("{function:?}");
    assert_eq!(text.matches("Cast(None").count(), 2, "{text}");
    assert_eq!(text.matches("Call(").count(), 1, "{text}");
}

#[test]
fn what_is_outside_the_subset_is_named() {
    for (body, expected) in [
        ("switch (n) { default: break; }", "switch statement"),
        ("auto f = [](int x) { return x; };", "lambda expression"),
        ("printf(\"%d\", n);", "string literal"),
        ("n = sizeof(int);", "sizeof expression"),
        ("do n--; while (n);", "do statement"),
        ("#if N\nn = 1;\n#endif\n", "several kernels"),
        ("n = ;", "no CUDA C"),
        ("int a[2] = {1, 2;", "`}` is missing"),
    ] {
        let text = format!("__global__ void f(int n) {{\n{body}\n}}\n");
        let file = file(&text);
        let problem = match file.kernels.first() {
            Some(header) => file.kernel(header).unwrap_err(),
            None => panic!("{body}: no kernel"),
        };
        let rendered = problem.render(&file.source);
        assert!(rendered.contains(expected), "{body}:\n{rendered}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    for (open, close) in [("(", ")"), ("-(", ")"), ("a[", "]"), ("1+(", ")")] {
        let text = format!(
            "__global__ void f(int *a) {{ a[0] = {}1{}; }}\n",
            open.repeat(20_000),
            close.repeat(20_000)
        );
        let file = file(&text);
        for header in &file.kernels {
            assert!(file.kernel(header).is_err());
        }
    }
    let sum = " + 1".repeat(50_000);
    let text = format!("__global__ void f(int *a) {{ a[0] = 1{sum}; }}\n");
    let file = file(&text);
    assert!(
        file.kernels
            .iter()
            .all(|header| file.kernel(header).is_err())
    );
    let text = format!("__global__ void f(int *a) {{ {} }}\n", "{".repeat(30_000));
    File::parse(Source::new("deep.cu", text)).unwrap();
    let blocks = format!("{}{}", "{".repeat(5_000), "}".repeat(5_000));
    let file = self::file(&format!("__global__ void f(int *a) {{ {blocks} }}\n"));
    assert!(
        file.kernels
            .iter()
            .all(|header| file.kernel(header).is_err())
    );
}

#[test]
fn definitions_and_uses_of_variables() {
    let file = file(
        "__global__ void f(float *a, int n) { int idx = 0; float x; \
         for (int k = 0; k < n; ++k) { float y = a[idx]; x = y; idx += n; a[k] = x; } }",
    );
    let function = file.kernel(&file.kernels[0]).unwrap();
    let ast::StmtKind::For(parts) = &function.body.statements[2].kind else {
        panic!("no loop");
    };
    let sites = def_use::DefUse::of_loop(parts);
    assert_eq!(sites.carried().collect::<Vec<_>>(), ["idx", "x"]);
    let idx = sites.sites("idx").unwrap();
    assert_eq!((idx.assigned.len(), idx.read.len()), (1, 2));
    assert_eq!(sites.sites("k").unwrap().declared.len(), 1);
    assert_eq!(sites.sites("a").unwrap().read.len(), 2);
    let whole = def_use::DefUse::of(&function.body);
    assert_eq!(whole.carried().count(), 0);
}

#[test]
fn globals_templates_and_their_uses() {
    let file = file(
        "constexpr int NX = 512, NY = NX * 2;\n__constant__ float w[3];\nfloat free;\n\
         enum { R = 4, S };\n#ifdef A\nconst int M = 1;\n#endif\n\
         template <typename T, int W = 2> __global__ void k(T *a) { a[0] = (T)W + 1; }\n\
         template <typename T> __device__ T twice(T x) { return 2 * x; }\n\
         void host() { k<float, R><<<1, 2>>>(p); k<<<1, 2>>>(p); const int inside = 3; }\n",
    );
    let fixed = |name: &str| {
        file.global(name, usize::MAX)
            .map(definitions::Global::is_fixed)
    };
    assert_eq!(["NX", "NY", "R", "S"].map(fixed), [Some(true); 4]);
    assert_eq!([fixed("w"), fixed("free")], [Some(false); 2]);
    assert_eq!([fixed("M"), fixed("inside")], [None; 2]);
    assert_eq!(file.global("NX", 3), None);
    let kernel = &file.kernels[0];
    let parameters = kernel.template.as_ref().unwrap();
    assert_eq!(parameters.len(), 2);
    assert!(parameters[0].ty.is_none() && parameters[1].default.is_some());
    let given: Vec<_> = file
        .instances_of(kernel)
        .map(|i| i.arguments.as_ref())
        .collect();
    assert_eq!(
        given.iter().map(|a| a.map(Vec::len)).collect::<Vec<_>>(),
        [Some(2), None]
    );
    // A cast, though `T` is no type of C.
    let function = file.kernel(kernel).unwrap();
    let printed = print::function(&function);
    assert!(printed.contains("(T)W + 1"), "{printed}");
    assert!(kernel.nested && !kernel.is_member && file.functions[0].template.is_some());
}

#[test]
fn macros_under_a_choice_are_not_decided_here() {
    let file = file("#if X\n#define N 1\n#else\n#define N 2\n#endif\nint a = N;\n");
    let expr = parse_expr("N", 60..61, |_| false).unwrap();
    assert!(matches!(file.expand(&expr), Expanded::Problem(_)));
}
