#!/usr/bin/env bash
# Everything CI checks, in the order in which it fails fastest. Prints the time of each step and the slowest tests.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/needs.sh
# The kernel engine is tested where it can be built.
features=()
if tools/needs.sh kernel; then
    features=(--features manypath-kernel/kernel)
else
    echo 'skipped: the kernel engine, for want of the packages above'
fi
# Where this user may do all that tests ask for, on a kernel that has it all, none of them may skip anything.
may_everything() {
    local held
    held=$((16#$(awk '/^CapEff:/ { print $2 }' /proc/self/status)))
    # CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF
    ((held >> 12 & held >> 21 & held >> 39 & 1)) && printf '6.18\n%s\n' "$(uname -r)" | sort -VC
}
if [ ${#features[@]} != 0 ] && may_everything; then
    tools/needs.sh tests
    export MANYPATH_NO_SKIPS=1
fi
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
# Property tests draw the same cases in every run, so that a red run is the change's doing; `make explore` draws new ones.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-20260901}
rustup component add rustfmt clippy >/dev/null 2>&1 || true

log=$(mktemp)
python_log=$(mktemp)
# Fetched while others compile. Whatever goes wrong with it goes wrong again, and is told, in the step that needs it.
setsid tools/python.sh environment >/dev/null 2>&1 &
environment=$!
trap 'kill -- "-$environment" 2>/dev/null || true; rm -f "$log" "$python_log"' EXIT

step() {
    local name=$1 start=$SECONDS
    shift
    printf '== %s\n' "$name"
    "$@"
    printf '== %s: %d s\n' "$name" $((SECONDS - start))
}

# Each test binary reports its own time; the test names come from the binaries that took longest.
run_tests() {
    cargo test --workspace "${features[@]}" --no-fail-fast 2>&1 | tee "$log"
}

# With the command that the tests were run with.
run_python() {
    wait "$environment" || true
    MANYPATH=$(realpath "${CARGO_TARGET_DIR:-target}/debug/manypath") tools/python.sh 2>&1 | tee "$python_log"
}

slowest() {
    awk '/Running|Doc-tests/ { name = $2 " " $3 } /finished in/ { sub("s$", "", $NF); print $NF " s", name }' "$log" |
        sort -rn | sed -n 1,5p
}

step format cargo fmt --all --check
step lint cargo clippy --workspace "${features[@]}" --all-targets --quiet -- -D warnings
step tests run_tests
step python run_python
step documentation env RUSTDOCFLAGS='-D warnings' cargo doc --workspace "${features[@]}" --no-deps --quiet

printf '== slowest test binaries\n'
slowest
passed=$(awk '/^test result:/ { n += $4 } END { print n + 0 }' "$log")
failed=$(awk '/^test result:/ { n += $6 } END { print n + 0 }' "$log")
passed_python=$(awk 'match($0, /[0-9]+ passed/) { n = substr($0, RSTART) + 0 } END { print n + 0 }' "$python_log")
printf '%d passed, %d failed\n' $((passed + passed_python)) "$failed"
