"""Congestion controllers one by one: those of the registry driven event by event, and controllers written in Python.

    controller = manypath.cc.create("mpcc-latency")
    controller.add_subflow(0.0, 0)
    controller.on_event(0.0, 0, Event.Sent(packet=0, bytes=1400))
    controller.on_event(0.03, 0, Event.Acked(packet=0, bytes=1400, sent_at_s=0.0, rtt_s=0.03))
    controller.limits(0)

One that is written in Python is a `CongestionControl`, or a `PathController` for each subflow; `manypath.simulate` runs it
with `controllers={"NAME OF THE CONNECTION": TheClass}`. It is some hundred times slower than one of the registry: it is for
learning, and for trying an idea before it is written in Rust.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Callable, Optional

from ._native import Controller, Event, Limits, SubflowInit, SubflowView, create

__all__ = [
    "CongestionControl",
    "Controller",
    "Event",
    "Limits",
    "PathController",
    "SubflowInit",
    "SubflowView",
    "Uncoupled",
    "create",
]


class CongestionControl(ABC):
    """A controller of all subflows of a connection, written in Python.

    After `on_event` the session reads the limits of that subflow again; after `add_subflow`, `remove_subflow` and `on_timer`
    those of all. Times are in seconds of simulated time. What a method raises ends the run and is raised by `simulate`.
    """

    #: What reports call it; the class's name without it.
    name: str

    #: Whether `Event.Sent` changes anything. One that says no is spared these events, which are every second one.
    hears_departures: bool = True

    #: Whether `Event.Ecn` slows its subflow down as a loss would. Only of controllers that say so are packets ECN-capable
    #: where the scenario has `ecn = true`: queues mark those where they drop others (RFC 3168).
    answers_marks: bool = False

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__)

    @abstractmethod
    def add_subflow(self, now_s: float, id: int, init: SubflowInit) -> None:
        """A subflow joins."""

    def remove_subflow(self, now_s: float, id: int) -> None:
        """A subflow is gone, with all it had in flight."""

    @abstractmethod
    def on_event(self, now_s: float, id: int, event: Event, view: list[SubflowView]) -> None:
        """Something happened on a subflow. `view` has all of them, by id, and is up to date with the event."""

    @abstractmethod
    def limits(self, id: int) -> Limits:
        """How fast a subflow may send."""

    def next_timer(self) -> Optional[float]:
        """When `on_timer` wants to be called; `None`: never."""
        return None

    def on_timer(self, now_s: float, view: list[SubflowView]) -> None:
        """The time of `next_timer` has come; the next one must be later."""

    def inspect(self, id: int) -> dict[str, float]:
        """A subflow's internal values by name, for the table `internals`; never for control."""
        return {}


class PathController(ABC):
    """A controller of one subflow that knows nothing of the others, written in Python; made with its `SubflowInit`."""

    #: As `CongestionControl.answers_marks`; of the class.
    answers_marks: bool = False

    @abstractmethod
    def on_event(self, now_s: float, event: Event, view: SubflowView) -> None:
        """Something happened. `view` is the subflow's own."""

    @abstractmethod
    def limits(self) -> Limits:
        """How fast the subflow may send."""

    def next_timer(self) -> Optional[float]:
        """When `on_timer` wants to be called; `None`: never."""
        return None

    def on_timer(self, now_s: float, view: SubflowView) -> None:
        """The time of `next_timer` has come; the next one must be later."""

    def inspect(self) -> dict[str, float]:
        """Internal values by name."""
        return {}


class Uncoupled(CongestionControl):
    """A controller of its own for each subflow: `controllers={"phone": Uncoupled.of(TeachingReno)}`."""

    def __init__(self, path_controller: Callable[[SubflowInit], PathController]) -> None:
        self._make = path_controller
        self._paths: dict[int, PathController] = {}
        self.name = getattr(path_controller, "__name__", type(self).__name__)
        self.answers_marks = getattr(path_controller, "answers_marks", False)

    @classmethod
    def of(cls, path_controller: Callable[[SubflowInit], PathController]) -> Callable[[], Uncoupled]:
        """What makes one for a connection, for `simulate`."""
        return lambda: cls(path_controller)

    def add_subflow(self, now_s: float, id: int, init: SubflowInit) -> None:
        self._paths[id] = self._make(init)

    def remove_subflow(self, now_s: float, id: int) -> None:
        del self._paths[id]

    def on_event(self, now_s: float, id: int, event: Event, view: list[SubflowView]) -> None:
        self._paths[id].on_event(now_s, event, view[id])

    def limits(self, id: int) -> Limits:
        return self._paths[id].limits()

    def next_timer(self) -> Optional[float]:
        timers = (path.next_timer() for path in self._paths.values())
        return min((timer for timer in timers if timer is not None), default=None)

    def on_timer(self, now_s: float, view: list[SubflowView]) -> None:
        for id, path in self._paths.items():
            timer = path.next_timer()
            if timer is not None and timer <= now_s:
                path.on_timer(now_s, view[id])

    def inspect(self, id: int) -> dict[str, float]:
        return self._paths[id].inspect()
