"""What tests share."""

import os
import shutil
from pathlib import Path

import manypath
import matplotlib
import pytest

matplotlib.use("Agg")

REPOSITORY = Path(__file__).resolve().parents[2]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be skipped a skipped test is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("MANYPATH_NO_SKIPS") and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def two_paths() -> manypath.Scenario:
    """A second over two links, one of them lossy, sampled."""
    return manypath.Scenario(
        name="two paths",
        duration="2s",
        warmup="500ms",
        sample="100ms",
        link=[
            dict(name="wifi", rate="20Mbit", delay="10ms", queue="60packets", loss="0.5%"),
            dict(name="lte", rate="10Mbit", delay="30ms", queue="100packets"),
        ],
        connection=[dict(name="phone", cc="lia", path=[dict(route=["wifi"]), dict(route=["lte"])])],
    )


@pytest.fixture(scope="session")
def result(two_paths: manypath.Scenario) -> manypath.Result:
    return manypath.simulate(two_paths, seed=3)


@pytest.fixture(scope="session")
def command() -> str:
    """The command line, built from the same sources."""
    found = os.environ.get("MANYPATH") or shutil.which("manypath")
    if found is None:
        pytest.skip("skipped: the command `manypath` is not built: set MANYPATH to its path")
    return found
