#!/bin/sh
# Compares crates/sim with ns-3 on one job, in one run: two links of 100 Mbit/s and 15 ms with queues of 250 packets.
# Machines change their speed, and other programs disturb: both programs run in turn, several times, and each counts with
# its best time. The last line is `ratio: N`: data packets per wall second here over there. Needs libns3-dev
# (apt-get install libns3-dev).
#
#   benches/ns3/run.sh [SECONDS [ROUNDS]]    simulated time, 200 by default; rounds, 3 by default
set -eu

seconds=${1:-200}
rounds=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

if ! ls -d /usr/include/ns3* >/dev/null 2>&1; then
    echo "ns-3 is not installed: apt-get install libns3-dev" >&2
    exit 2
fi
# Named by hand: what Debian's pkg-config files ask for besides is not needed and not installed.
flags=
for module in core network internet point-to-point traffic-control applications; do
    flags="$flags -lns3-$module"
done
# shellcheck disable=SC2086 # flags are words
${CXX:-c++} -std=c++17 -O2 -DNDEBUG "$here/two_links.cc" -o "$build/two_links" $flags

cd "$here/../.."
# The bench profile has whole-program optimisation.
cargo bench -q -p manypath-sim --bench throughput --no-run
ours() { cargo bench -q -p manypath-sim --bench throughput -- "$seconds"; }

# "1 connection 3331082 packets in 1.234 s: ..." and "3313000 78.6"
round=1
while [ "$round" -le "$rounds" ]; do
    echo "round $round"
    ours
    ours
    "$build/two_links" "$seconds"
    ours
    round=$((round + 1))
done | awk -v seconds="$seconds" '
    /^round/ { print; fflush(); next }
    /packets in/ {
        packets = $3
        rate = $3 / $6
        printf "  manypath: %d packets in %.3f s: %.2f M/s\n", $3, $6, rate / 1e6
        if (rate > here) here = rate
        next
    }
    NF == 2 {
        rate = $1 / $2
        printf "  ns-3:     %d packets in %.1f s: %.1f k/s\n", $1, $2, rate / 1e3
        if (rate > there) there = rate
    }
    END {
        if (!here || !there) {
            print "a program failed" > "/dev/stderr"
            exit 1
        }
        # Both links full: 2 x 100 Mbit/s in packets of 1500 bytes.
        share = packets / (seconds * 2 * 100e6 / (8 * 1500))
        printf "best: %.2f M/s here, %.1f k/s there; %.2f%% of what the links carry\n", here / 1e6, there / 1e3, share * 100
        if (share < 0.99) print "too few packets for the ratio to count (99% are needed)"
        if (there < 35000) print "ns-3 is too slow here for the ratio to count (35 k/s are needed)"
        printf "ratio: %.1f\n", here / there
    }'
