"""Sweeps on a Ray cluster of two workers, one of which is killed on the way."""

import os
from collections import Counter

import manypath
import pytest
from manypath.store import Store

ray = pytest.importorskip("ray", reason="skipped: Ray is not installed")

SEEDS = 8


def started(cluster_type, tries=3):
    """A head and two nodes. On a busy machine a node may need longer than the thirty seconds that Ray waits for it."""
    memory = {"object_store_memory": 100_000_000}
    cluster = cluster_type()
    try:
        cluster.add_node(num_cpus=0, include_dashboard=False, **memory)
        return cluster, [cluster.add_node(num_cpus=1, **memory) for _ in range(2)]
    except Exception as slow:
        cluster.shutdown()
        if tries > 1 and "timed out during startup" in str(slow):
            return started(cluster_type, tries - 1)
        raise


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A cluster of a head that runs nothing and two nodes of one processor, the first of which `kill` kills.

    Its workers log what they begin and end.
    """
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    monkeypatch.setenv("RAY_DISABLE_IMPORT_WARNING", "1")
    log = tmp_path / "log"
    log.touch()

    def log_runs():
        import manypath

        simulate = manypath.simulate

        def logged(scenario, seed):
            key = scenario.key(seed)
            with open(log, "a") as file:
                file.write(f"begin {key} {os.getpid()}\n")
            result = simulate(scenario, seed)
            with open(log, "a") as file:
                file.write(f"end {key} {os.getpid()}\n")
            return result

        manypath.simulate = logged

    cluster, nodes = started(Cluster)
    ray.init(
        address=cluster.address, runtime_env={"worker_process_setup_hook": log_runs}, log_to_driver=False
    )
    # A worker takes a second and more to start, on a busy machine longer than the other takes for all runs: both are there
    # before the first run.
    worker = ray.remote(num_cpus=1)(lambda: os.getpid())
    on = [NodeAffinitySchedulingStrategy(node.node_id, soft=False) for node in nodes]
    workers = ray.get([worker.options(scheduling_strategy=node).remote() for node in on])

    def kill():
        cluster.remove_node(nodes[0], allow_graceful=False)

    yield workers, kill, log
    ray.shutdown()
    cluster.shutdown()


def test_a_worker_that_is_killed_loses_nothing_and_repeats_nothing(two_paths, cluster, tmp_path, monkeypatch):
    workers, kill, log = cluster
    # Long enough that a worker is in the midst of a run when it is killed.
    two_paths = two_paths.replace({"duration": "10s"})
    scenarios = {"lia": two_paths, "olia": two_paths.replace({"connection.cc": "olia"})}
    done_at_the_kill = []

    def kill_one(done, total):
        if done == 5:
            done_at_the_kill.extend(path.stem for path in (tmp_path / "results").iterdir() if path.suffix == ".npz")
            kill()

    swept = manypath.sweep(scenarios, seeds=SEEDS, engine="ray", results=tmp_path / "results", progress=kill_one)

    # Nothing is lost, and all is as it is here.
    assert len(swept) == swept.made == 2 * SEEDS
    for (label, seed), result in swept.items():
        assert result.json == manypath.simulate(scenarios[label], seed).json
    # Nothing is made twice: what was done when the worker died was not begun again, and what was not was ended once more
    # at most: by the worker that died with it.
    lines = [line.split() for line in log.read_text().splitlines()]
    begun = Counter(key for word, key, _ in lines if word == "begin")
    assert set(begun) == {scenario.key(seed) for scenario in scenarios.values() for seed in range(1, SEEDS + 1)}
    assert len(done_at_the_kill) == 5 and all(begun[key] == 1 for key in done_at_the_kill)
    again = {key: count for key, count in begun.items() if count > 1}
    assert all(count == 2 for count in again.values()) and len(again) <= 2
    # Both had a part in it, the one that was killed too.
    assert {int(pid) for word, _, pid in lines if word == "begin"} >= set(workers)
    # And one file a result.
    assert len(list((tmp_path / "results").iterdir())) == 2 * SEEDS

    # The same sweep again has nothing to do.
    before = log.read_text()
    assert manypath.sweep(scenarios, seeds=SEEDS, engine="ray", results=tmp_path / "results").made == 0
    assert log.read_text() == before

    # A run that fails says why, as here.
    with pytest.raises(manypath.SweepError, match="no algorithm is called 'none'") as raised:
        manypath.sweep(two_paths.replace({"connection.cc": "none"}), engine="ray")
    (failure,) = raised.value.failures.values()
    assert isinstance(failure, manypath.AlgorithmError)
    with pytest.raises(manypath.SweepError, match="a whole number from 0 to 2.63") as raised:
        manypath.sweep(two_paths, seeds=[1 << 63], engine="ray")
    (failure,) = raised.value.failures.values()
    assert isinstance(failure, ValueError)

    # What is being stored at an interruption is stored after it.
    add, interruptions = Store.add, iter([KeyboardInterrupt])

    def interrupted(*arguments):
        for interruption in interruptions:
            raise interruption
        add(*arguments)

    monkeypatch.setattr(Store, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        manypath.sweep(two_paths, engine="ray", results=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 1
