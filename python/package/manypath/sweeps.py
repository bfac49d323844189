"""Many runs, here or on a Ray cluster: the same code, the same results.

A run is known by its key, a hash of the scenario as it was understood, the seed, and the code that simulates. With a folder
for results a sweep that was interrupted goes on where it was: what is there is not made again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from ._native import (
    InternalError,
    ManypathError,
    PanicException,
    Result,
    Scenario,
    Table,
    code,
    concat,
    simulate,
)
from .store import Store

#: What is swept over: a scenario, several of different names, or scenarios by label.
Scenarios = Union[Scenario, Sequence[Scenario], Mapping[str, Scenario]]
#: Hears how many runs are done, of how many.
Progress = Callable[[int, int], None]

#: How often Ray makes a run again whose worker died. A run that takes its worker with it every time ends so.
RETRIES = 5
#: Runs handed to Ray ahead, for each of its processors.
AHEAD = 2


@dataclass(frozen=True)
class _Task:
    key: str
    scenario: Scenario
    seed: int


#: Takes what became of a task: its result, or what it raised.
_Done = Callable[[_Task, Union[Result, Exception]], None]


class SweepError(ManypathError):
    """Some runs failed. `failures` says which and why, `sweep` has the others."""

    def __init__(self, failures: dict[tuple[str, int], Exception], sweep: Sweep) -> None:
        (label, seed), first = next(iter(failures.items()))
        super().__init__(f"{len(failures)} of {len(failures) + len(sweep)} runs failed; {label}, seed {seed}: {first}")
        self.failures = failures
        self.sweep = sweep

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are made again from their message alone, unless they say of what.
        return type(self), (self.failures, self.sweep)


class Sweep(Mapping[tuple[str, int], Result]):
    """Results by label and seed, in the order of scenarios, then seeds."""

    def __init__(self, results: dict[tuple[str, int], Result], made: int, held: int) -> None:
        self._results = results
        #: How many runs were made.
        self.made = made
        #: How many were there already.
        self.held = held

    def __getitem__(self, of: tuple[str, int]) -> Result:
        try:
            return self._results[of]
        except KeyError:
            labels = ", ".join(map(str, dict.fromkeys(label for label, _ in self._results)))
            seeds = ", ".join(map(str, dict.fromkeys(seed for _, seed in self._results)))
            raise KeyError(f"there is no run {of!r}; there are {labels} with the seeds {seeds}") from None

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def table(self, name: str) -> Table:
        """The tables of this name of all results below each other, with the label in the column `case`."""
        tables = [result[name] for result in self._results.values()]
        return concat(tables, [label for label, _ in self._results], "case")

    def __repr__(self) -> str:
        return f"<Sweep of {len(self)} runs, {self.made} made, {self.held} there already>"


def sweep(
    scenarios: Scenarios,
    seeds: Union[int, Iterable[int]] = 1,
    *,
    engine: str = "local",
    results: Union[None, str, os.PathLike[str]] = None,
    jobs: Optional[int] = None,
    progress: Union[bool, Progress] = False,
) -> Sweep:
    """Runs every scenario with every seed: `seeds` of them counted from one, or these.

    `engine` is `local`, threads of this process, `jobs` at once (as many as there are processors without it), or `ray`: the
    cluster that `ray.init` has connected to, a new one on this machine if it has not been called. Workers must have the same
    version of this package. A run whose worker dies is made again; one that is done is not.

    `results` is a folder where each result is kept as soon as it is there. What it has already is not run again.

    Raises `SweepError` when all else is done and some runs failed.
    """
    labelled = _labelled(scenarios)
    if not labelled:
        raise ValueError("scenarios is empty: give one at least")
    chosen = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not chosen:
        raise ValueError(f"seeds is {seeds!r}: give how many, one at least, or which")
    keys = {
        (label, seed): scenario.key(seed) for label, scenario in labelled.items() for seed in dict.fromkeys(chosen)
    }
    store = Store(results) if results is not None else None
    found: dict[str, Result] = {}
    missing: dict[str, _Task] = {}
    for (label, seed), key in keys.items():
        held = None if store is None or key in found else store.get(key)
        if held is not None:
            found[key] = held
        elif key not in found:
            missing[key] = _Task(key, labelled[label], seed)
    there, failed = len(found), {}
    report = _reporter(progress)

    def done(task: _Task, outcome: Union[Result, Exception]) -> None:
        # An engine that is interrupted says again what it may have said already.
        if task.key in found or task.key in failed:
            return
        if isinstance(outcome, Exception):
            failed[task.key] = outcome
        else:
            if store is not None:
                store.add(task.key, outcome)
            found[task.key] = outcome
        report(len(found) - there + len(failed), len(missing))

    _engine(engine, jobs)(list(missing.values()), done)
    ordered = {of: found[key] for of, key in keys.items() if key in found}
    whole = Sweep(ordered, made=len(found) - there, held=there)
    if failed:
        raise SweepError({of: failed[key] for of, key in keys.items() if key in failed}, whole)
    return whole


def _labelled(scenarios: Scenarios) -> dict[str, Scenario]:
    if isinstance(scenarios, Scenario):
        return {scenarios.name: scenarios}
    if isinstance(scenarios, Mapping):
        return dict(scenarios)
    labelled = {scenario.name: scenario for scenario in scenarios}
    if len(labelled) < len(scenarios):
        raise ValueError("two scenarios have the same name: give a dictionary of labels and scenarios")
    return labelled


def _reporter(progress: Union[bool, Progress]) -> Progress:
    """Who hears of progress. With `True` it is a line on standard error, where that is a terminal."""
    if callable(progress):
        return progress
    if not progress or not sys.stderr.isatty():
        return lambda done, total: None
    begun = time.monotonic()

    def line(done: int, total: int) -> None:
        left = (time.monotonic() - begun) / done * (total - done)
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} runs, {left:.0f} s left ", end=end, file=sys.stderr, flush=True)

    return line


def _engine(name: str, jobs: Optional[int]) -> Callable[[list[_Task], _Done], None]:
    if name == "local":
        return lambda tasks, done: _local(tasks, done, jobs or os.cpu_count() or 1)
    if name == "ray":
        if jobs is not None:
            raise ValueError("Ray knows how many runs go on at once: leave 'jobs' out")
        return _ray
    raise ValueError(f"there is no engine '{name}'; there are local, ray")


def _guarded(run: Callable[[Scenario, int], Result], scenario: Scenario, seed: int) -> Result:
    """Makes a run. A panic, which is no `Exception`, becomes one: a bug that ends this run alone."""
    try:
        return run(scenario, seed)
    except PanicException as panic:
        raise InternalError(f"the run panicked, which is a bug: {panic}") from panic


def _run(task: _Task) -> Result:
    return _guarded(simulate, task.scenario, task.seed)


def _local(tasks: list[_Task], done: _Done, jobs: int) -> None:
    """Runs tasks on threads: a simulation holds no interpreter lock. When interrupted, runs under way are finished."""
    executor = ThreadPoolExecutor(jobs)
    futures = {executor.submit(_run, task): task for task in tasks}
    try:
        for future in as_completed(futures):
            done(futures[future], _outcome(future.result))
    except BaseException:
        try:
            executor.shutdown(cancel_futures=True)
        finally:
            # After another interruption some are not done.
            for future, task in futures.items():
                if future.done() and not future.cancelled():
                    # What goes wrong with one result must not lose the next. What ended the sweep is raised.
                    with suppress(BaseException):
                        done(task, _outcome(future.result))
        raise
    executor.shutdown()


def _outcome(get: Callable[[], Result]) -> Union[Result, Exception]:
    try:
        return get()
    except Exception as failure:
        return failure


def _ray(tasks: list[_Task], done: _Done) -> None:
    """Runs tasks on a Ray cluster. The results come here as they are done, so that a worker that dies takes none along."""
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_run_elsewhere)
    waiting = iter(tasks)
    under_way: dict[Any, _Task] = {}
    try:
        while True:
            ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
            while len(under_way) < ahead and (task := next(waiting, None)) is not None:
                under_way[remote.remote(task.scenario, task.seed, code(), task.key)] = task
            if not under_way:
                return
            ready, _ = ray.wait(list(under_way), timeout=1.0)
            for reference in ready:
                done(under_way[reference], _fetched(reference))
                del under_way[reference]
    except BaseException:
        try:
            for reference, task in under_way.items():
                # What goes wrong with one result must not lose the next. What ended the sweep is raised.
                with suppress(BaseException):
                    if ray.wait([reference], timeout=0, fetch_local=False)[0]:
                        done(task, _fetched(reference))
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)
        raise


def _run_elsewhere(scenario: Scenario, seed: int, expected: str, key: str) -> Result:
    """What a worker does."""
    import manypath

    if code() != expected:
        raise ManypathError(f"the worker has manypath {code()}, not {expected}: install the same version everywhere")
    # The scenario was read again here, and its traces with it.
    if scenario.key(seed) != key:
        raise ManypathError("the worker has another scenario: traces must be the same at the same paths on all machines")
    return _guarded(manypath.simulate, scenario, seed)


def _fetched(reference: Any) -> Union[Result, Exception]:
    import ray

    try:
        result: Result = ray.get(reference)
        return result
    except ray.exceptions.RayTaskError as failure:
        # What the run itself raised, where it is ours, else all that Ray says of it.
        raised: Exception = failure.cause if isinstance(failure.cause, ManypathError) else failure
        return raised
    except ray.exceptions.RayError as failure:
        lost: Exception = failure
        return lost
