#!/usr/bin/env bash
# The README's test command: fetches what is missing (cargo-nextest, NVIDIA's toolkit wheels),
# then runs every test that needs no GPU. Extra arguments go to cargo nextest.
#
# WARPWRIGHT_OFFLINE=1 fetches nothing: tests that need the toolkit then say SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo nextest --version >/dev/null 2>&1; then
    cargo install cargo-nextest --locked
fi
if [ "${WARPWRIGHT_OFFLINE:-0}" != 1 ]; then
    cargo run --quiet --locked --package warpwright-cli --bin warpwright -- toolkit install
    export WARPWRIGHT_REQUIRE_TOOLKIT=1
fi
cargo nextest run --workspace --locked "$@"
cargo test --workspace --locked --doc --quiet
