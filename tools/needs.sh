#!/usr/bin/env bash
# Says what is missing to build and run, and how to get it. `needs.sh kernel` looks for what the kernel engine is built with,
# and installs it where it may: as root on Debian or Ubuntu.
set -u
missing=0
need() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "missing: $1. $2" >&2
    missing=1
}

# What `cargo build --features kernel` needs: a compiler for BPF, libbpf's headers, and what libbpf itself is built with.
kernel_packages=(clang libbpf-dev libelf-dev zlib1g-dev pkg-config make)
has_kernel() {
    command -v clang >/dev/null 2>&1 && command -v make >/dev/null 2>&1 && command -v pkg-config >/dev/null 2>&1 &&
        printf '#include <bpf/bpf_helpers.h>\n#include <libelf.h>\n#include <zlib.h>\n' |
        clang -x c -include linux/types.h -fsyntax-only - >/dev/null 2>&1
}

if [ "${1:-}" = kernel ]; then
    has_kernel && exit 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing: ${kernel_packages[*]}" >&2
        apt-get -qq update >&2 && apt-get -qq -y --no-install-recommends install "${kernel_packages[@]}" >&2
        has_kernel && exit 0
    fi
    echo "missing for the kernel engine: apt-get install ${kernel_packages[*]}" >&2
    exit 1
fi

need cargo 'Install Rust from https://rustup.rs, then open a new shell.'
need cc 'Install a C compiler: apt-get install build-essential.'
exit $missing
