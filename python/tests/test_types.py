"""Types: the stubs say what is there, and the package keeps to them."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="skipped: mypy is not installed")


def mypy(*arguments, cwd):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_module(repository, tmp_path):
    project = repository / "python"
    mypy("mypy.stubtest", "--mypy-config-file", project / "pyproject.toml", "manypath", cwd=tmp_path)


def test_the_package_keeps_to_its_types(repository, tmp_path):
    project = repository / "python"
    arguments = ("--config-file", project / "pyproject.toml", "--cache-dir", tmp_path / "cache")
    mypy("mypy", *arguments, project / "package" / "manypath", cwd=tmp_path)


def test_a_written_table_is_a_path(tmp_path):
    lines = [
        "import manypath, pathlib",
        "def write(table: manypath.Table) -> pathlib.Path:",
        "    return table.to_parquet('.')",
    ]
    (tmp_path / "uses.py").write_text("\n".join(lines))
    mypy("mypy", "--strict", "uses.py", cwd=tmp_path)
