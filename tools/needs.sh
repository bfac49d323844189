#!/usr/bin/env bash
# Says what is missing to build and run, and how to get it. `needs.sh kernel` looks for what the kernel engine is built with,
# `needs.sh tests` for the programs that its tests move over two paths, `needs.sh python` for what the Python package is tested with; they
# install it where they may: as root on Debian or Ubuntu.
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

# Programs that are run over two paths, and those that take privileges away from a command.
tests_packages=(curl iperf3 python3 iproute2 util-linux)
has_tests() {
    [ "$(command -v curl iperf3 python3 ip setpriv unshare | wc -l)" = 6 ]
}

# What makes an environment of its own for the Python package; `PYTHON` names an interpreter.
python_packages=(python3-venv)
has_python() {
    "${PYTHON:-python3}" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Installs the packages of $1 unless all is there.
provide() {
    local -n packages=$1_packages
    "has_$1" && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing: ${packages[*]}" >&2
        apt-get -qq update >&2 && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${packages[@]}" >&2
        "has_$1" && return
    fi
    echo "missing for the $2: apt-get install ${packages[*]}" >&2
    return 1
}

case ${1:-} in
kernel) provide kernel 'kernel engine' && exit 0 || exit 1 ;;
tests) provide tests "kernel engine's tests" && exit 0 || exit 1 ;;
python) provide python 'Python package' && exit 0 || exit 1 ;;
esac

need cargo 'Install Rust from https://rustup.rs, then open a new shell.'
need cc 'Install a C compiler: apt-get install build-essential.'
exit $missing
