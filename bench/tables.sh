#!/usr/bin/env bash
# Writes the tables and plots of the documentation from the committed result files, as bench/tables.json lists them.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo run --quiet --locked --package warpwright --bin warpwright -- report --plan bench/tables.json
