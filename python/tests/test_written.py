"""Controllers written in Python, run by the simulator."""

import types

import manypath
import pytest
from manypath.cc import CongestionControl, Event, Limits, PathController, Uncoupled, create


class Through(CongestionControl):
    """Passes everything on to a controller of the registry: its runs must be those of that controller."""

    algorithm = "lia"

    def __init__(self):
        self.controller = create(self.algorithm)
        self.hears_departures = self.controller.hears_departures
        self.answers_marks = self.controller.answers_marks

    def add_subflow(self, now_s, id, init):
        self.controller.add_subflow(now_s, id, init)

    def remove_subflow(self, now_s, id):
        self.controller.remove_subflow(now_s, id)

    def on_event(self, now_s, id, event, view):
        self.controller.on_event(now_s, id, event, view)

    def limits(self, id):
        return self.controller.limits(id)

    def next_timer(self):
        return self.controller.next_timer()

    def on_timer(self, now_s, view):
        self.controller.on_timer(now_s, view)

    def inspect(self, id):
        return self.controller.inspect(id)


class TeachingReno(PathController):
    """Reno in ten lines."""

    def __init__(self, init):
        self.mss, self.cwnd, self.ssthresh = init.mss_bytes, init.initial_window_bytes, float("inf")

    def on_event(self, now_s, event, view):
        if isinstance(event, Event.Acked) and not event.in_recovery and not event.app_limited:
            self.cwnd += event.bytes if self.cwnd < self.ssthresh else self.mss * event.bytes / self.cwnd
        elif isinstance(event, Event.Congestion):
            self.cwnd = self.ssthresh = max(view.in_flight_bytes / 2, 2 * self.mss)
        elif isinstance(event, Event.Timeout):
            self.cwnd, self.ssthresh = self.mss, max(view.in_flight_bytes / 2, 2 * self.mss)

    def limits(self):
        return Limits(self.cwnd, ssthresh_bytes=None if self.ssthresh == float("inf") else self.ssthresh)

    def inspect(self):
        return {"teaching_cwnd_bytes": self.cwnd}


# Controllers without randomness of their own: the simulator names its seed after the connection, `create` takes one.
@pytest.mark.parametrize("algorithm", ["reno", "cubic", "lia", "olia", "balia", "tccc", "wvegas"])
def test_nothing_is_lost_on_the_way_through_python(two_paths, algorithm):
    through = type("Through", (Through,), {"algorithm": algorithm, "name": algorithm})
    scenario = two_paths.replace({"connection.cc": algorithm})
    theirs = manypath.simulate(scenario, seed=5)
    ours = manypath.simulate(scenario, seed=5, controllers=types.MappingProxyType({"phone": through}))
    assert ours.json == theirs.json
    for name in theirs:
        assert ours[name].to_polars().equals(theirs[name].to_polars()), name


def test_a_controller_for_teaching(two_paths):
    scenario = two_paths.replace({"duration": "5s"})
    result = manypath.simulate(scenario, controllers={"phone": Uncoupled.of(TeachingReno)})
    registry = manypath.simulate(scenario.replace({"connection.cc": "reno"}))
    assert result.summary()["connections"][0]["cc"] == "TeachingReno"
    assert "teaching_cwnd_bytes" in result["internals"]["name"].tolist()
    # The same rules, so much the same goodput.
    assert abs(result.goodput_bps / registry.goodput_bps - 1) < 0.2
    assert manypath.simulate(scenario, controllers={"phone": Uncoupled.of(TeachingReno)}).json == result.json


def test_only_those_who_answer_marks_are_marked(two_paths):
    scenario = two_paths.replace({"link.lte.ecn": "2packets", "connection.ecn": True})

    def marked(controller):
        return sum(link["marked"] for link in manypath.simulate(scenario, controllers=controller).summary()["links"])

    answering = type("Answering", (TeachingReno,), {"answers_marks": True})
    assert marked({"phone": Uncoupled.of(TeachingReno)}) == 0 < marked({"phone": Uncoupled.of(answering)})
    assert create("reno").answers_marks and not create("bbr").answers_marks


@pytest.mark.parametrize("method", ["add_subflow", "on_event", "limits", "next_timer", "on_timer", "inspect"])
def test_what_python_raises_is_raised(two_paths, method):
    class Broken(Through):
        algorithm = "mpcc-latency"

    def fail(self, *arguments):
        raise ZeroDivisionError(method)

    setattr(Broken, method, fail)
    with pytest.raises(ZeroDivisionError, match=method):
        manypath.simulate(two_paths, controllers={"phone": Broken})


def test_answers_that_make_no_sense(two_paths):
    class Odd(Through):
        def limits(self, id):
            return 10_000

    with pytest.raises(TypeError, match="Limits"):
        manypath.simulate(two_paths, controllers={"phone": Odd})

    class Standing(Through):
        def next_timer(self):
            return 0.1

    with pytest.raises(ValueError, match="not later"):
        manypath.simulate(two_paths, controllers={"phone": Standing})

    class Abstract(CongestionControl):
        pass

    with pytest.raises(TypeError, match="abstract"):
        manypath.simulate(two_paths, controllers={"phone": Abstract})
    with pytest.raises(manypath.RunError, match="no connection 'none'; it has phone"):
        manypath.simulate(two_paths, controllers={"none": Through})
    with pytest.raises(AttributeError):
        manypath.simulate(two_paths, controllers={"phone": object})


def test_a_failing_run_of_hours_ends_soon():
    class Late(Through):
        def on_event(self, now_s, id, event, view):
            if now_s > 0.5:
                raise RuntimeError("enough")
            super().on_event(now_s, id, event, view)

    scenario = manypath.Scenario.built_in().replace({"duration": "100000s"})
    with pytest.raises(RuntimeError, match="enough"):
        manypath.simulate(scenario, controllers={"multipath": Late})
