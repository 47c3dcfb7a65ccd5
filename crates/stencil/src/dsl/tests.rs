use super::*;
use warpwright_cudac::diag::{Source, render_all};

/// Listing 1 of the paper.
const LISTING_1: &str = "\
function j3d7pt (out, in, a, b, c) {
  out[k][j][i] = a*(in[k+1][j][i]) + b*(in[k][j-1][i] +
    in[k][j][i-1] + in[k][j][i] + in[k][j][i+1] +
    in[k][j+1][i]) + c*(in[k-1][j][i]);
}
parameter L, M, N;
iterator k, j, i;
double in[L][M][N], out[L][M][N], a, b, c;
unroll k=2, j=2;
j3d7pt (out, in, a, b, c);
return out;
";

fn stencil(text: &str) -> Stencil {
    parse(text).unwrap_or_else(|problems| {
        panic!(
            "{}",
            render_all(&problems, &Source::new("test.stencil", text))
        )
    })
}

#[test]
fn listing_1_is_read_as_the_paper_means_it() {
    let s = stencil(LISTING_1);
    let margins: Vec<_> = s.dims.values().map(|d| (d.low, d.high, d.unroll)).collect();
    assert_eq!(margins, [(1, 1, Some(2)), (1, 1, Some(2)), (1, 1, None)]);
    let arrays: Vec<_> = s
        .arrays
        .values()
        .map(|a| (&*a.name, a.read, a.written))
        .collect();
    assert_eq!(arrays, [("out", false, true), ("in", true, false)]);
    assert_eq!(s.scalars.len(), 3);
    assert_eq!(s.statements.len(), 1);
    assert!(!s.reassociate);
}

#[test]
fn printed_text_parses_back() {
    let text = "\
function f (u, v, w, c) {
  double half = 1.0 / 2.0;
  double t = -(v[0][j][i-1] - (v[1][j][i] - c)) / (c * half) * -2.5;
  t += fmin(v[1][j+1][i+2], -t);
  t = t * t;
  w[j][i] = t;
  u[j][i] -= t - 3 * sqrt(w[j][i]) - (0.1f + c);
}
parameter N;
iterator j, i;
double u[8][N], v[2][8][N+1], w[8][N];
float c;
unroll i=4;
reassociate;
f (u, v, w, c);
return u, w;
";
    let s = stencil(text);
    let printed = print(&s);
    let mut again = stencil(&printed);
    // Places differ, nothing else.
    for (statement, original) in again.statements.iter_mut().zip(&s.statements) {
        statement.span = original.span.clone();
    }
    assert_eq!(again, s, "{printed}");
    assert_eq!(print(&again), printed);
}

#[test]
fn the_domain_leaves_out_what_has_no_neighbours() {
    let s = stencil(
        "function f (o, v) { o[i] = v[i+3] - v[i-2]; } parameter N; iterator i;\n\
         double o[N], v[N+1]; f (o, v); return o;",
    );
    let dim = s.dims.values().next().unwrap();
    assert_eq!((dim.low, dim.high), (2, 2));
}

#[test]
fn temporaries_are_assigned_once() {
    let s = stencil(
        "function f (o, v) { double t = v[i]; t = t + v[i-1]; t = t * t; double z = 0;\n\
         z += t; o[i] = z; }\n\
         parameter N; iterator i; double o[N], v[N]; f (o, v); return o;",
    );
    let printed = print(&s);
    let body: Vec<&str> = printed.lines().skip(1).take(6).map(str::trim).collect();
    assert_eq!(
        body,
        [
            "double t = v[i];",
            "t += v[i-1];",
            "double t_2 = t * t;",
            "double z = 0.0;",
            "z += t_2;",
            "o[i] = z;",
        ]
    );
}

#[test]
fn long_and_deep_expressions_are_errors_and_no_crash() {
    let file = |value: &str| {
        format!(
            "function f (o, v) {{ o[i] = {value}; }} parameter N; iterator i;\n\
             double o[N], v[N]; f (o, v); return o;"
        )
    };
    let sum = |n: usize| file(&["v[i]"; 1].repeat(n).join(" + "));
    let stencil = stencil(&sum(400));
    assert_eq!(print(&stencil).matches("v[i]").count(), 400);
    for text in [
        sum(5_000),
        sum(100_000),
        file(&format!("{}v[i]{}", "(".repeat(50_000), ")".repeat(50_000))),
        file(&format!("{}v[i]", "-".repeat(50_000))),
        file(&format!(
            "{}v[i]{}",
            "fabs(".repeat(50_000),
            ")".repeat(50_000)
        )),
    ] {
        assert_eq!(parse(&text).unwrap_err()[0].code, "stencil::size");
    }
}
