#!/usr/bin/env bash
# usage: scripts/release.sh [TARGET]
# Builds stripped binaries, completions and man pages into target/dist/warpwright-VERSION-TARGET.tar.gz, with a SHA-256
# beside it, the Python wheel (with maturin), and the crates as cargo would publish them. TARGET is a Rust target
# (default: this machine's); aarch64-unknown-linux-gnu wants Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
version=$(cargo metadata --format-version 1 --no-deps --offline |
    python3 -c 'import json,sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "warpwright"))')
if [ "$target" != "$host" ]; then
    rustup target add "$target"
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER="${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER:-aarch64-linux-gnu-gcc}"
# The same bytes wherever it is built: no path of this machine in panics and debug strings.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=warpwright --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
cargo build --release --locked --target "$target" -p warpwright -p warpwright-preload -p warpwright-inject -p warpwright-standin
name="warpwright-$version-$target"
dist=target/dist
rm -rf "${dist:?}/$name"
mkdir -p "$dist/$name/bin" "$dist/$name/lib" "$dist/$name/share/completions"
out="target/$target/release"
cp "$out/warpwright" "$out/warpwright-ptxas" "$dist/$name/bin/"
cp "$out/libwarpwright_inject.so" "$out/libwarpwright_inplace.so" "$out/libwarpwright_standin.so" "$dist/$name/lib/"
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$dist/$name/"
if [ "$target" = "$host" ]; then
    "$out/warpwright" man "$dist/$name/share/man/man1"
    for shell in bash zsh fish; do
        "$out/warpwright" completions "$shell" > "$dist/$name/share/completions/warpwright.$shell"
    done
fi
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
    -C "$dist" -czf "$dist/$name.tar.gz" "$name"
(cd "$dist" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "$dist/$name.tar.gz"
if command -v maturin >/dev/null 2>&1; then
    # The wheel carries the libraries that `warpwright.trace()` has programs load.
    mkdir -p crates/python/warpwright/lib
    cp "$out/libwarpwright_inject.so" "$out/libwarpwright_inplace.so" crates/python/warpwright/lib/
    maturin build --release --locked --strip --target "$target" --manifest-path crates/python/Cargo.toml --out "$dist"
    rm -r crates/python/warpwright/lib
else
    echo "SKIPPED the wheel: there is no maturin (pip install maturin)"
fi
if [ "$target" = "$host" ]; then
    packages=$(cargo metadata --format-version 1 --no-deps --offline | python3 -c 'import json, sys
print(*("-p " + p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] is None))')
    # shellcheck disable=SC2086 # one word for each package
    cargo package --no-verify --quiet $packages
    echo "the crates: target/package/"
fi
