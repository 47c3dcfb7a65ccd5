#!/usr/bin/env bash
# Writes the tables and plots of the documentation from the committed result files.
#
# The kernels named here were not used to fit the static model (docs/model.md).
set -euo pipefail
cd "$(dirname "$0")/.."
held_out=contraction,hermite,knn,ricci,smith_waterman,xs_lookup
held_out=$held_out,aes_ctr,air_chemistry,dia_jacobi,hlld,lj_cells,lu11,p384_table,wilson
held_out=$held_out,euler_march,heston_puts,nqueens,ntt4096,two_stream,voxel_rays,winograd
held_out=$held_out,kmeans,mesh_flux,set_overlap,spmv_csr,stream_cost,topic_gibbs,tridiag
first=bench/results/h200-2026-11-21.json
again=bench/results/h200-2026-11-21-again.json
registers=bench/results/h200-2026-11-22-registers.json
suite=bench/results/h200-2026-11-22-suite.json
spills=bench/results/h200-2026-11-22-spills.json
dynamic=bench/results/h200-2026-11-22-spills-dynamic.json
stencils=bench/results/h200-2026-11-22-stencils.json

report() { cargo run --quiet --locked --package warpwright-cli --bin warpwright -- report "$@"; }
report "$first" --held-out "$held_out" --markdown docs/benchmarks.md --plots docs
report "$suite" --held-out "$held_out" --markdown README.md --summary
report "$registers" --crat --markdown docs/crat.md
report "$registers" --one-block-more --markdown docs/crat.md
report --spills "$spills" "$dynamic" --markdown docs/spill-to-shared.md
report "$stencils" --stencils bench/stencils/goals.json --markdown docs/stencil-results.md
report --agree "$first" "$again" --markdown docs/benchmarks.md
