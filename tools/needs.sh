#!/usr/bin/env bash
# Says what is missing to build and run, and how to get it.
set -u
missing=0
need() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "missing: $1. $2" >&2
    missing=1
}
need cargo 'Install Rust from https://rustup.rs, then open a new shell.'
need cc 'Install a C compiler: apt-get install build-essential.'
exit $missing
