#!/usr/bin/env bash
# Tests the Python package: pip installs it into an environment of its own, with the versions of
# python/requirements-test.txt, and pytest runs. The environment is kept for the next time; `python.sh environment` makes it and no more.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

# Where nothing may be skipped it is a failure.
skip() {
    printf 'skipped: the Python package: %s\n' "$1"
    exit "${MANYPATH_NO_SKIPS:-0}"
}

tools/needs.sh python || skip 'for want of the packages above'
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "$($python --version) is older than what its tests need, 3.11"

target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
venv=$target/python-tests
# Scripts in it name the place where it was made.
wanted=$({ echo "$venv"; "$python" --version; cat python/requirements-test.txt; } | sha256sum)
if [ "$(cat "$venv/made-of" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    # Modules are compiled when they are imported.
    "$venv/bin/pip" install --quiet --no-compile --disable-pip-version-check -r python/requirements-test.txt ||
        skip 'pip cannot install python/requirements-test.txt'
    printf '%s' "$wanted" >"$venv/made-of"
fi
if [ "${1:-}" = environment ]; then
    exit
fi

# Built as the other tests are: quickly. `pip install ./python` alone builds with optimisation.
PATH=$venv/bin:$PATH "$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
    --no-build-isolation --config-settings=build-args='--profile dev' ./python
if [ -z "${MANYPATH:-}" ]; then
    cargo build --quiet --bin manypath
    MANYPATH=$target/debug/manypath
fi
export MANYPATH
cd python
exec "$venv/bin/python" -m pytest -rs --durations=5 "$@"
