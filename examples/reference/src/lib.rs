//! What the example kernels should compute, written from the mathematics for the host.
//!
//! One file per example. Nothing is shared with the kernels but the layout of their buffers:
//! formulas are taken in a different form where there is one (direct sums for a fast Fourier
//! transform, Gauss integration for closed-form volumes, difference quotients for gradients), and
//! floating-point references compute in f64 whatever the kernel uses. So a kernel that agrees
//! within the tolerance of its launch description is right.

#![warn(missing_docs)]
// Sums over indices, as the formulas have them.
#![allow(clippy::needless_range_loop)]

use warpwright_launch::Launch;

mod data;

mod aes_ctr;
mod air_chemistry;
mod contraction;
mod dia_jacobi;
mod euler_march;
mod fe_apply;
mod fft512;
mod hermite;
mod heston;
mod hex_gradients;
mod hlld;
mod icp;
mod ionic;
mod keccak;
mod kmeans;
mod knn;
mod lbm_d3q19;
mod lj_cells;
mod lu11;
mod mc_basket;
mod mesh_flux;
mod naive;
mod nqueens;
mod ntt;
mod p384_table;
mod ricci;
mod set_overlap;
mod sgemm_tile;
mod smith_waterman;
mod sph_harm;
mod spline_scatter;
mod spmv_csr;
mod stream_cost;
mod svd6;
mod topic_gibbs;
mod tridiag;
mod two_stream;
mod voxel_rays;
mod wave_stencil;
mod wilson;
mod winograd;
mod xs_lookup;

use data::{Data, Output};

/// A reference: from the launch and its inputs to the outputs, or `None` if an argument that it
/// knows is missing or has another form.
type Reference = fn(&Data<'_>) -> Option<Vec<Output>>;

/// The examples, by folder name.
const REFERENCES: &[(&str, Reference)] = &[
    ("aes_ctr", aes_ctr::reference),
    ("air_chemistry", air_chemistry::reference),
    ("contraction", contraction::reference),
    ("dia_jacobi", dia_jacobi::reference),
    ("euler_march", euler_march::reference),
    ("fe_apply", fe_apply::reference),
    ("fft512", fft512::reference),
    ("hermite", hermite::reference),
    ("heston", heston::reference),
    ("hex_gradients", hex_gradients::reference),
    ("hlld", hlld::reference),
    ("icp", icp::reference),
    ("ionic", ionic::reference),
    ("keccak", keccak::reference),
    ("kmeans", kmeans::reference),
    ("knn", knn::reference),
    ("lbm_d3q19", lbm_d3q19::reference),
    ("lj_cells", lj_cells::reference),
    ("lu11", lu11::reference),
    ("mc_basket", mc_basket::reference),
    ("mesh_flux", mesh_flux::reference),
    ("nqueens", nqueens::reference),
    ("ntt", ntt::reference),
    ("p384_table", p384_table::reference),
    ("ricci", ricci::reference),
    ("set_overlap", set_overlap::reference),
    ("sgemm_tile", sgemm_tile::reference),
    ("smith_waterman", smith_waterman::reference),
    ("sph_harm", sph_harm::reference),
    ("spline_scatter", spline_scatter::reference),
    ("spmv_csr", spmv_csr::reference),
    ("stream_cost", stream_cost::reference),
    ("svd6", svd6::reference),
    ("topic_gibbs", topic_gibbs::reference),
    ("tridiag", tridiag::reference),
    ("two_stream", two_stream::reference),
    ("voxel_rays", voxel_rays::reference),
    ("wave_stencil", wave_stencil::reference),
    ("wilson", wilson::reference),
    ("winograd", winograd::reference),
    ("xs_lookup", xs_lookup::reference),
];

/// Names of all examples that have a reference, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    REFERENCES.iter().map(|entry| entry.0)
}

/// Names of the naive kernels in `examples/naive`, in alphabetical order.
pub fn naive() -> impl Iterator<Item = &'static str> {
    naive::REFERENCES.iter().map(|entry| entry.0)
}

/// The outputs that the example `name` should leave in its buffers, as (buffer, bytes) pairs.
///
/// `inputs` holds the initial contents of [`Launch::buffers`], in that order. `None` if there is
/// no such example, or if the launch is not one of its launches.
pub fn reference(
    name: &str,
    launch: &Launch,
    inputs: &[Vec<u8>],
) -> Option<Vec<(String, Vec<u8>)>> {
    let mut all = REFERENCES.iter().chain(naive::REFERENCES);
    let (_, reference) = all.find(|entry| entry.0 == name)?;
    let data = Data::new(launch, inputs);
    let outputs = reference(&data)?;
    outputs
        .into_iter()
        .map(|output| data.encode(output))
        .collect()
}
