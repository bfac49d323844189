"""Sweeps on this machine."""

import itertools
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import manypath
import pytest
from manypath._native import PanicException
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


def test_nothing_that_a_run_raises_stops_the_others(scenarios, tmp_path, monkeypatch):
    raised = {2: MemoryError(), 3: PanicException("index out of bounds")}

    def simulate(scenario, seed):
        if seed in raised:
            raise raised[seed]
        return manypath.simulate(scenario, seed)

    monkeypatch.setattr("manypath.sweeps.simulate", simulate)
    with pytest.raises(manypath.SweepError, match="3 of 5 runs failed") as failed:
        manypath.sweep(scenarios["lia"], seeds=[2, 1 << 63, 3, 1, 4], jobs=1, results=tmp_path)
    kinds = {seed: type(failure) for (_, seed), failure in failed.value.failures.items()}
    assert kinds == {2: MemoryError, 1 << 63: ValueError, 3: manypath.InternalError}
    assert "index out of bounds" in str(failed.value.failures["two paths", 3])
    assert len(failed.value.sweep) == len(list(tmp_path.iterdir())) == 2


def test_a_failed_sweep_can_be_pickled(scenarios):
    broken = {"none": scenarios["lia"].replace({"connection.cc": "none"}), "lia": scenarios["lia"]}
    with pytest.raises(manypath.SweepError) as raised:
        manypath.sweep(broken)
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is manypath.SweepError and str(again) == str(raised.value)
    assert list(again.failures) == [("none", 1)] and isinstance(again.failures["none", 1], manypath.AlgorithmError)
    same(again.sweep["lia", 1], raised.value.sweep["lia", 1])


@pytest.mark.parametrize("interruptions", [1, 2])
def test_what_is_being_stored_at_an_interruption_is_stored_after_it(scenarios, tmp_path, monkeypatch, interruptions):
    """With two, the second comes while what has been done is stored, and costs that one run."""
    add, calls = Store.add, itertools.count(1)
    begun = threading.Barrier(3)

    def together(*arguments):
        result = manypath.simulate(*arguments)
        begun.wait()
        return result

    def interrupted(store, key, result):
        if next(calls) <= interruptions:
            raise KeyboardInterrupt
        add(store, key, result)

    monkeypatch.setattr("manypath.sweeps.simulate", together)
    monkeypatch.setattr(Store, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        manypath.sweep(scenarios["lia"], seeds=3, jobs=3, results=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4 - interruptions


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
        _run_elsewhere(two_paths, 1, "0.0.0+other", two_paths.key(1))


def test_a_worker_with_another_trace_refuses(tmp_path):
    def link(trace):
        return dict(name="a", trace=str(trace), delay="1ms", queue="10packets")

    trace = tmp_path / "trace"
    trace.write_text("1\n2\n3\n")
    connection = dict(name="c", cc="reno", path=[dict(route=["a"])])
    scenario = manypath.Scenario(duration="600ms", link=[link(trace)], connection=[connection])
    sent, key = pickle.dumps(scenario), scenario.key(1)
    same(_run_elsewhere(pickle.loads(sent), 1, manypath.code(), key), manypath.simulate(scenario))
    trace.write_text("1\n2\n30\n")
    with pytest.raises(manypath.ManypathError, match="traces must be the same"):
        _run_elsewhere(pickle.loads(sent), 1, manypath.code(), key)


def test_a_worker_that_panics_says_so(two_paths, monkeypatch):
    """It would take its process with it, for a panic is no `Exception`."""

    def panic(*arguments):
        raise PanicException("index out of bounds")

    monkeypatch.setattr("manypath.simulate", panic)
    with pytest.raises(manypath.InternalError, match="index out of bounds"):
        _run_elsewhere(two_paths, 1, manypath.code(), two_paths.key(1))


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


def test_sweeps_of_nothing_are_refused(scenarios):
    for seeds in (0, -1, []):
        with pytest.raises(ValueError, match="^seeds is "):
            manypath.sweep(scenarios, seeds=seeds)
    for nothing in ({}, []):
        with pytest.raises(ValueError, match="^scenarios is empty"):
            manypath.sweep(nothing)
    with pytest.raises(ValueError, match="seed is -1"):
        manypath.sweep(scenarios, seeds=[-1])


def test_a_run_that_is_not_there_is_named(scenarios):
    swept = manypath.sweep(scenarios, seeds=[1, 5])
    with pytest.raises(KeyError, match=r"no run \('b', 1\); there are lia, olia with the seeds 1, 5"):
        swept["b", 1]
    assert ("b", 1) not in swept and swept.get(("lia", 2)) is None
