//! References of the naive kernels in `examples/naive`, grouped by what they compute.

mod filters;
mod points;
mod products;
mod rows;

use crate::Reference;
use crate::data::{Data, Output, floats};

/// The naive kernels, by file name.
pub(crate) const REFERENCES: &[(&str, Reference)] = &[
    ("add_transposed", points::add_transposed),
    ("attention_scores", products::attention_scores),
    ("attention_values", products::attention_values),
    ("black_scholes", points::black_scholes),
    ("bmm", products::bmm),
    ("column_mean", rows::column_mean),
    ("conv", filters::conv),
    ("conv1d", filters::conv1d),
    ("conv2d", filters::conv2d),
    ("covariance", products::covariance),
    ("demosaic", filters::demosaic),
    ("distances", products::distances),
    ("doitgen", products::doitgen),
    ("fft2", points::fft2),
    ("fft8", points::fft8),
    ("fir", filters::fir),
    ("gelu", points::gelu),
    ("grey", points::grey),
    ("histogram", rows::histogram),
    ("imregionmax", filters::imregionmax),
    ("layer_norm", rows::layer_norm),
    ("linear", products::linear),
    ("max_pool", filters::max_pool),
    ("mm", products::mm),
    ("mm_double", products::mm),
    ("mm_strided", products::mm_strided),
    ("mm_tn", products::mm_tn),
    ("mv", products::mv),
    ("nbody", points::nbody),
    ("nearest4", points::nearest4),
    ("nhwc", points::nhwc),
    ("prefix_sum", rows::prefix_sum),
    ("rd", rows::rd),
    ("rd_atomic", rows::rd),
    ("rd_complex", rows::rd_complex),
    ("rms_norm", rows::rms_norm),
    ("row_max", rows::row_max),
    ("scale_shift", points::scale_shift),
    ("shortest_paths", products::shortest_paths),
    ("softmax", rows::softmax),
    ("spmv", rows::spmv),
    ("strsm", products::strsm),
    ("sweep5", filters::sweep5),
    ("syrk", products::syrk),
    ("tmv", products::tmv),
    ("tp", points::tp),
    ("vv", points::vv),
];

/// One output whose elements, row after row of `columns`, are `element(row, column)`.
fn table(
    name: &'static str,
    rows: usize,
    columns: usize,
    element: impl Fn(usize, usize) -> f64,
) -> Option<Vec<Output>> {
    let all = (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x)));
    Some(vec![floats(
        name,
        all.map(|(y, x)| element(y, x)).collect(),
    )])
}

/// One output whose elements are `element(0)`, `element(1)`, …
fn list(name: &'static str, length: usize, element: impl Fn(usize) -> f64) -> Option<Vec<Output>> {
    table(name, 1, length, |_, x| element(x))
}

/// The sizes `m` and `n`.
fn sizes(data: &Data<'_>) -> Option<(usize, usize)> {
    Some((data.param("m")?, data.param("n")?))
}
