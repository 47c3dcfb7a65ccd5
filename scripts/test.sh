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
# Everything is built once, as the tests want it: packages that are built alone have other features of their dependencies.
cargo nextest run --workspace --locked --no-run
built=${CARGO_TARGET_DIR:-target}/debug
if [ "${WARPWRIGHT_OFFLINE:-0}" != 1 ]; then
    "$built/warpwright" toolkit install
    export WARPWRIGHT_REQUIRE_TOOLKIT=1
    # Dask, for the test that spreads measurements over workers, and what the Python package needs.
    if [ -z "${WARPWRIGHT_PYTHON:-}" ]; then
        python="${WARPWRIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/warpwright}/python-$(sha256sum scripts/requirements.txt | cut -c1-12)"
        if [ ! -e "$python/complete" ]; then
            rm -rf "$python"
            if python3 -m venv "$python" &&
                "$python/bin/pip" install --quiet --requirement scripts/requirements.txt; then
                touch "$python/complete"
            else
                echo "SKIPPED the test with Dask: python3 with venv and pip could not install its needs"
            fi
        fi
        if [ -e "$python/complete" ]; then
            export WARPWRIGHT_PYTHON="$python/bin/python"
        fi
    fi
fi
cargo nextest run --workspace --locked "$@"
cargo test --workspace --locked --doc --quiet

# The store of winners and the library under attack, for a minute (scripts/attack.py --seconds 3600 --seed N for an hour).
if [ "${WARPWRIGHT_OFFLINE:-0}" != 1 ]; then
    python3 scripts/attack.py --seconds 60 --binary "$built/warpwright" --library "$built/deps/libwarpwright_inject.so"
fi

# The Python package, with the debug profile: it shares what is compiled already.
if [ -n "${WARPWRIGHT_PYTHON:-}" ] && "$WARPWRIGHT_PYTHON" -c 'import maturin, pytest, mypy' 2>/dev/null; then
    wheels=$built/wheels
    rm -rf "$wheels"
    "$WARPWRIGHT_PYTHON" -m maturin build --quiet --locked --profile dev --manifest-path crates/python/Cargo.toml --out "$wheels"
    "$WARPWRIGHT_PYTHON" -m pip install --quiet --force-reinstall --no-deps "$wheels"/*.whl
    WARPWRIGHT_INJECT="$(realpath "$built/deps/libwarpwright_inject.so")" \
        "$WARPWRIGHT_PYTHON" -m pytest --quiet -p no:cacheprovider crates/python/tests
    "$WARPWRIGHT_PYTHON" -m mypy --strict --ignore-missing-imports --cache-dir=/dev/null crates/python/warpwright
else
    echo "SKIPPED the Python package: WARPWRIGHT_PYTHON with maturin, pytest and mypy is not there"
fi
