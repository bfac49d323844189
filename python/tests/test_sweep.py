"""Sweeps on this machine."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import manypath
import pytest
from manypath.store import Store, StoreError
from manypath.sweeps import _run_elsewhere


@pytest.fixture
def scenarios(two_paths):
    short = two_paths.replace({"duration": "600ms"})
    return {"lia": short, "olia": short.replace({"connection.cc": "olia"})}


def same(ours, theirs):
    assert ours.json == theirs.json and ours.tables == theirs.tables
    for name in theirs:
        assert ours[name].to_polars().equals(theirs[name].to_polars()), name


def test_a_sweep_is_its_runs(scenarios):
    heard = []
    swept = manypath.sweep(scenarios, seeds=2, jobs=3, progress=lambda done, total: heard.append((done, total)))
    assert list(swept) == [("lia", 1), ("lia", 2), ("olia", 1), ("olia", 2)]
    for (label, seed), result in swept.items():
        same(result, manypath.simulate(scenarios[label], seed))
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]
    table = swept.table("connections")
    assert table["case"].tolist() == ["lia", "lia", "olia", "olia"] and table["seed"].tolist() == [1, 2, 1, 2]


def test_what_is_there_is_not_made_again(scenarios, tmp_path, monkeypatch):
    first = manypath.sweep(scenarios, seeds=[1, 5], results=tmp_path)
    assert (first.made, first.held) == (4, 0)

    def never(*arguments):
        raise AssertionError("made again")

    monkeypatch.setattr("manypath.sweeps.simulate", never)
    again = manypath.sweep(scenarios, seeds=[1, 5], results=tmp_path)
    assert (again.made, again.held) == (0, 4)
    for of, result in first.items():
        same(again[of], result)
    monkeypatch.undo()
    more = manypath.sweep(scenarios, seeds=[1, 5, 6], results=tmp_path)
    assert (more.made, more.held) == (2, 4)


def test_equal_runs_are_made_once(scenarios):
    swept = manypath.sweep({"a": scenarios["lia"], "b": scenarios["lia"]}, seeds=[3, 3])
    assert swept.made == 1 and list(swept) == [("a", 3), ("b", 3)]


def test_runs_that_fail_do_not_stop_the_others(scenarios, tmp_path):
    broken = {"none": scenarios["lia"].replace({"connection.cc": "none"}), **scenarios}
    with pytest.raises(manypath.SweepError, match="1 of 3 runs failed; none, seed 1: .*'none'") as raised:
        manypath.sweep(broken, results=tmp_path)
    assert list(raised.value.failures) == [("none", 1)]
    assert list(raised.value.sweep) == [("lia", 1), ("olia", 1)]
    assert manypath.sweep(scenarios, results=tmp_path).held == 2


def test_an_interrupted_sweep_goes_on_where_it_was(scenarios, tmp_path, monkeypatch):
    """Of ten runs three are done and two under way when Ctrl-C comes: those are finished and kept, the others not begun."""
    begun, gate = itertools.count(1), threading.Event()

    def watched(*arguments):
        if next(begun) > 3:
            gate.wait()
        return manypath.simulate(*arguments)

    class Executor(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            gate.set()
            super().shutdown(wait=wait)

    def interrupt(done, total):
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("manypath.sweeps.simulate", watched)
    monkeypatch.setattr("manypath.sweeps.ThreadPoolExecutor", Executor)
    with pytest.raises(KeyboardInterrupt):
        manypath.sweep(scenarios, seeds=5, jobs=2, results=tmp_path, progress=interrupt)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 5
    again = manypath.sweep(scenarios, seeds=5, jobs=2, results=tmp_path)
    assert (again.made, again.held) == (5, 5)


def test_threads_of_their_own(scenarios, monkeypatch):
    threads = set()

    def watched(*arguments):
        threads.add(threading.get_ident())
        return manypath.simulate(*arguments)

    monkeypatch.setattr("manypath.sweeps.simulate", watched)
    manypath.sweep(scenarios, seeds=4, jobs=2)
    assert threading.get_ident() not in threads and 1 <= len(threads) <= 2


def test_names_and_engines(scenarios):
    lia, olia = scenarios.values()
    with pytest.raises(ValueError, match="same name"):
        manypath.sweep([lia, olia])
    assert list(manypath.sweep([lia, olia.replace({"name": "other"})])) == [("two paths", 1), ("other", 1)]
    assert list(manypath.sweep(lia)) == [("two paths", 1)]
    with pytest.raises(ValueError, match="there are local, ray"):
        manypath.sweep(lia, engine="abacus")
    with pytest.raises(ValueError, match="leave 'jobs' out"):
        manypath.sweep(lia, engine="ray", jobs=3)


def test_a_worker_with_other_sources_refuses(two_paths):
    with pytest.raises(manypath.ManypathError, match="not 0.0.0.other: install the same version everywhere"):
        _run_elsewhere(two_paths, 1, "0.0.0+other")


def test_broken_files_are_named(result, tmp_path):
    store = Store(tmp_path)
    store.add("key", result)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    same(store.get("key"), result)
    assert store.get("other") is None
    for broken in (b"", whole[:100], whole[: len(whole) // 2], b"\x93NUMPY" + whole):
        path.write_bytes(broken)
        with pytest.raises(StoreError, match="delete it"):
            store.get("key")
    # One bit anywhere: the file is named, or what is read is right.
    for at in range(0, 8 * len(whole), 8 * len(whole) // 400):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        try:
            same(store.get("key"), result)
        except StoreError as error:
            assert path.name in str(error)
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        store.get("key")


def test_files_have_the_permissions_of_files_that_people_make(result, tmp_path):
    Store(tmp_path / "store").add("key", result)
    (tmp_path / "theirs").touch()
    assert (tmp_path / "store" / "key.npz").stat().st_mode == (tmp_path / "theirs").stat().st_mode
