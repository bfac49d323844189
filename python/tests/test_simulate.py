"""Runs: deterministic, the same as the command line's, and never in the way of other threads."""

import json
import pickle
import signal
import subprocess
import sys
import threading
import time

import manypath
import pytest


def test_the_same_seed_gives_the_same_result(two_paths, result):
    again = manypath.simulate(two_paths, seed=3)
    assert again.json == result.json
    other = manypath.simulate(two_paths, seed=4)
    assert other.json != result.json and other.seed == 4


def test_the_summary(result):
    summary = result.summary()
    assert summary["scenario"] == result.scenario == "two paths"
    assert summary["goodput_bps"] == result.goodput_bps > 1e6
    assert result.jain == 1.0
    assert "phone (lia)" in str(result) and "Mbit/s" in repr(result)
    assert "series" not in summary


def test_the_command_line_finds_the_same(two_paths, result, command, tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text(two_paths.text)
    arguments = [command, "sim", "run", path, "--seed", "3", "--json", "--parquet", tmp_path / "tables"]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    theirs = json.loads(done.stdout)
    del theirs["series"]
    assert theirs == result.summary()
    polars = pytest.importorskip("polars")
    for name in result.tables:
        written = polars.read_parquet(tmp_path / "tables" / f"{name}.parquet")
        ours = result[name].to_polars()
        # Parquet files have signed numbers.
        assert written.equals(ours.cast({polars.UInt64: polars.Int64})), name


def test_errors_of_a_run(two_paths):
    unknown = two_paths.replace({"connection.cc": "none"})
    with pytest.raises(manypath.AlgorithmError, match="no algorithm is called 'none'"):
        manypath.simulate(unknown)
    with pytest.raises(ValueError, match="seed"):
        manypath.simulate(two_paths, seed=1 << 63)
    with pytest.raises(ValueError, match="seed is -1"):
        manypath.simulate(two_paths, seed=-1)


def test_other_threads_go_on_while_a_run_lasts(two_paths):
    long = two_paths.replace({"duration": "60s"})
    counted, running = 0, threading.Event()

    def run():
        running.set()
        manypath.simulate(long)

    thread = threading.Thread(target=run)
    thread.start()
    running.wait()
    # If the lock were held, this loop would be entered only when the thread has ended.
    while thread.is_alive():
        counted += 1
        time.sleep(0)
    assert counted > 100


def test_interruption(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        "import manypath\n"
        "scenario = manypath.Scenario.built_in().replace({'duration': '100000s'})\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    manypath.simulate(scenario)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        # Were it to come before the run has begun, Python would raise just as well.
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "interrupted\n"
    assert child.returncode == 0


def test_pickles(result):
    again = pickle.loads(pickle.dumps(result))
    assert (again.json, str(again), again.tables) == (result.json, str(result), result.tables)
    for name in result.tables:
        assert again[name].to_polars().equals(result[name].to_polars()), name


def test_tables_that_are_not_there(two_paths):
    plain = manypath.simulate(two_paths.replace({"duration": "600ms"}))
    assert "subflow_series" in plain
    text = two_paths.text.replace('sample = "100ms"\n', "").replace('"2s"', '"600ms"')
    unsampled = manypath.simulate(manypath.Scenario(text))
    assert set(unsampled) == {"runs", "connections", "subflows", "links", "files"}
    with pytest.raises(KeyError, match="'sample' interval"):
        unsampled["subflow_series"]
    with pytest.raises(KeyError, match="there is no table 'none'"):
        unsampled["none"]
