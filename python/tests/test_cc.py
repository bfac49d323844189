"""Controllers driven event by event."""

import math

import manypath
import pytest
from manypath.cc import Event, Limits, SubflowInit, SubflowView, create

INIT = SubflowInit(mss_bytes=1000, initial_window_bytes=10_000)


def acked(packet, now_s, rtt_s=0.05, **more):
    return Event.Acked(packet=packet, bytes=1000, sent_at_s=now_s - rtt_s, rtt_s=rtt_s, **more)


def test_the_first_slow_start_may_have_a_threshold():
    init = SubflowInit(1000, 10_000, ssthresh_bytes=12_000)
    assert "ssthresh_bytes=12000" in repr(init) and INIT.ssthresh_bytes is None
    reno = create("reno")
    reno.add_subflow(0.0, 0, init)
    assert reno.limits(0).ssthresh_bytes == 12_000
    for packet in range(10):
        reno.on_event(0.0, 0, Event.Sent(packet, 1000))
    for packet in range(10):
        reno.on_event(0.05, 0, acked(packet, 0.05))
    assert 12_000 < reno.limits(0).cwnd_bytes < 13_000


def test_reno_by_hand():
    """Slow start adds what is acknowledged; a loss halves what is in flight (RFC 5681)."""
    reno = create("reno")
    reno.add_subflow(0.0, 0, INIT)
    assert reno.limits(0).cwnd_bytes == 10_000 and reno.limits(0).pacing_bps is None
    for packet in range(10):
        reno.on_event(0.0, 0, Event.Sent(packet, 1000))
    assert reno.view[0].in_flight_bytes == 10_000
    for packet in range(4):
        reno.on_event(0.05, 0, acked(packet, 0.05))
    view = reno.view[0]
    assert reno.limits(0).cwnd_bytes == 14_000 == view.cwnd_bytes
    assert (view.in_flight_bytes, view.delivered_bytes) == (6_000, 4_000)
    assert view.srtt_s == view.min_rtt_s == view.max_rtt_s == 0.05
    reno.on_event(0.06, 0, Event.Congestion(sent_at_s=0.0))
    assert reno.limits(0).ssthresh_bytes == reno.limits(0).cwnd_bytes < 14_000
    assert reno.view[0].in_recovery
    reno.on_event(0.06, 0, Event.Lost(4, 1000, 0.0))
    assert reno.view[0].in_flight_bytes == 5_000 and 0 < reno.view[0].loss <= 1
    reno.on_event(0.5, 0, Event.Timeout())
    assert reno.view[0].state == "failed" and reno.view[0].in_flight_bytes == 0
    assert reno.limits(0).cwnd_bytes < 10_000
    reno.on_event(0.6, 0, Event.Restored())
    assert reno.view[0].state == "active"


def test_coupled_controllers_know_their_subflows():
    """Two subflows of LIA grow more slowly together than one alone (RFC 6356)."""

    def growth(subflows):
        lia = create("lia")
        for id in range(subflows):
            lia.add_subflow(0.0, id, INIT)
            lia.on_event(0.0, id, Event.Sent(0, 1000))
        for id in range(subflows):
            lia.on_event(0.05, id, acked(0, 0.05))
            lia.on_event(0.05, id, Event.Congestion(sent_at_s=0.04))
        before, packet = lia.limits(0).cwnd_bytes, 1
        for step in range(200):
            now = 0.1 + step * 0.1
            for id in range(subflows):
                lia.on_event(now, id, Event.Sent(packet, 1000))
            for id in range(subflows):
                lia.on_event(now + 0.05, id, acked(packet, now + 0.05))
            packet += 1
        return lia.limits(0).cwnd_bytes - before

    assert 0 < growth(2) < growth(1)


def test_monitor_intervals_end_by_time():
    mpcc = create("mpcc-latency", seed=7)
    mpcc.add_subflow(0.0, 0, INIT)
    assert mpcc.name == "mpcc-latency" and mpcc.limits(0).pacing_bps > 0
    now, packet, rates = 0.0, 0, set()
    for _ in range(400):
        now += 0.005
        mpcc.on_event(now, 0, Event.Sent(packet, 1000))
        if now > 0.05:
            mpcc.on_event(now, 0, acked(packet - 8, now, rtt_s=0.04))
        timer = mpcc.next_timer()
        if timer is not None and timer <= now:
            mpcc.on_timer(now)
        rates.add(mpcc.limits(0).pacing_bps)
        packet += 1
    # The rate before anything is known, and probes five percent above and below one that was found.
    assert len(rates) >= 3 and any(low * 1.05 == pytest.approx(high * 0.95) for low in rates for high in rates)
    assert mpcc.inspect(0) and all(isinstance(value, float) for value in mpcc.inspect(0).values())


def test_a_view_of_ones_own():
    lia = create("lia")
    lia.add_subflow(0.0, 0, INIT)
    view = SubflowView(0, 1000)
    assert view.min_rtt_s == math.inf and view.srtt_s is None and view.ssthresh_bytes is None
    view.srtt_s, view.in_flight_bytes, view.state = 0.02, 5_000, "failed"
    assert view.way_back_s is None
    view.way_back_s = 0.01
    lia.on_event(0.1, 0, acked(0, 0.1), view=[view])
    assert lia.view[0].srtt_s == 0.02 and lia.view[0].state == "failed"
    assert lia.view[0].way_back_s == pytest.approx(0.01)
    view.state = "asleep"
    with pytest.raises(ValueError, match="asleep"):
        lia.on_event(0.1, 0, acked(0, 0.1), view=[view])
    with pytest.raises(ValueError, match="order of their ids"):
        lia.on_event(0.1, 0, acked(0, 0.1), view=[SubflowView(1, 1000)])
    # A subflow that has not joined, and one that has and is left out.
    for ids in ((0, 1), ()):
        with pytest.raises(ValueError, match=f"a view of {len(ids)} subflows, but 1 have joined"):
            lia.on_event(0.1, 0, Event.Sent(1, 1000), view=[SubflowView(id, 1000) for id in ids])
    with pytest.raises(ValueError, match="subflow 1 has not joined"):
        lia.on_event(0.1, 1, Event.Sent(1, 1000))
    lia.add_subflow(0.2, 1, INIT)
    with pytest.raises(ValueError, match="2 have joined"):
        lia.on_timer(0.2, view=[SubflowView(0, 1000)])
    lia.on_event(0.2, 1, Event.Sent(1, 1000))


def test_every_controller_takes_every_event():
    events = [
        Event.Sent(0, 1000, app_limited=True),
        acked(0, 0.05, delivery_rate_bps=1e6, delivered_at_send_bytes=0, in_recovery=True, app_limited=True),
        Event.Lost(1, 1000, 0.0),
        Event.Congestion(0.0),
        Event.Ecn(0.0),
        Event.Timeout(),
        Event.Restored(),
        Event.Penalised(),
        Event.PathReport(10, 0.35, 0.01, 3, 0.001, 1, 2),
        Event.Weight(0.5),
    ]
    for algorithm in manypath.algorithms("cc"):
        controller = create(algorithm.name)
        controller.add_subflow(0.0, 0)
        controller.add_subflow(0.0, 1)
        for step, event in enumerate(events):
            controller.on_event(0.05 + step * 0.01, step % 2, event)
        for id in (0, 1):
            assert controller.limits(id).cwnd_bytes > 0, algorithm.name
        controller.remove_subflow(1.0, 1)
        assert controller.limits(1).cwnd_bytes == 0, algorithm.name


def test_what_makes_no_sense():
    with pytest.raises(manypath.AlgorithmError, match="no algorithm is called 'none'; there are"):
        create("none")
    with pytest.raises(manypath.AlgorithmError, match="has no parameter 'x'"):
        create("lia:x=1")
    reno = create("reno")
    with pytest.raises(ValueError, match="the next subflow is 0"):
        reno.add_subflow(0.0, 1)
    reno.add_subflow(0.0, 0)
    with pytest.raises(ValueError, match="has joined already"):
        reno.add_subflow(0.0, 0)
    for nothing in (lambda: reno.remove_subflow(0.0, 5), lambda: reno.on_event(0.0, 5, Event.Timeout())):
        with pytest.raises(ValueError, match="subflow 5 has not joined"):
            nothing()
    reno.remove_subflow(0.0, 0)
    reno.add_subflow(0.1, 0)
    with pytest.raises(TypeError):
        reno.on_event(0.1, 0, "acked")
    for nonsense in (-1, math.nan):
        with pytest.raises(ValueError):
            Limits(nonsense)
        with pytest.raises(ValueError):
            Limits(1000, pacing_bps=nonsense)


def test_events_are_told_apart():
    event = Event.Congestion(sent_at_s=0.5)
    assert isinstance(event, Event.Congestion) and isinstance(event, Event) and not isinstance(event, Event.Ecn)
    assert event.sent_at_s == 0.5
    assert Limits(1000.4, 1e6) == Limits(1000, 1e6) != Limits(1000)


NO_TIMES = (math.nan, math.inf, -math.inf, -1.0, 1e300)


@pytest.mark.parametrize("now_s", NO_TIMES)
def test_what_is_no_time_is_refused(now_s):
    reno = create("reno")
    calls = (
        lambda: reno.add_subflow(now_s, 0),
        lambda: reno.on_event(now_s, 0, Event.Timeout()),
        lambda: reno.on_timer(now_s),
        lambda: reno.remove_subflow(now_s, 0),
    )
    for call in calls:
        with pytest.raises(ValueError, match="now_s is"):
            call()
        if not reno.view:
            reno.add_subflow(0.0, 0)
    assert reno.view[0].state == "active"


def test_time_does_not_go_back():
    reno = create("reno")
    reno.add_subflow(1.0, 0)
    reno.on_event(2.0, 0, Event.Sent(0, 1000))
    calls = (
        lambda: reno.on_event(1.5, 0, Event.Sent(1, 1000)),
        lambda: reno.on_timer(1.5),
        lambda: reno.add_subflow(1.5, 1),
        lambda: reno.remove_subflow(1.5, 0),
    )
    for call in calls:
        with pytest.raises(ValueError, match="now_s is 1.5, and was 2 before"):
            call()
    # What was refused did not move the clock.
    with pytest.raises(ValueError, match="rtt_s"):
        reno.on_event(9.0, 0, Event.Acked(0, 1000, 8.0, rtt_s=math.nan))
    reno.on_event(2.0, 0, Event.Sent(1, 1000))
    assert reno.view[0].in_flight_bytes == 2000


def test_events_make_sense():
    reno = create("reno")
    reno.add_subflow(0.0, 0)
    refused = [("rtt_s", Event.Acked(0, 1000, 0.0, rtt_s)) for rtt_s in NO_TIMES]
    for sent_at_s in (*NO_TIMES, 1.1):
        refused += [("sent_at_s", Event.Acked(0, 1000, sent_at_s, 0.1)), ("sent_at_s", Event.Lost(0, 1000, sent_at_s))]
        refused += [("sent_at_s", Event.Congestion(sent_at_s)), ("sent_at_s", Event.Ecn(sent_at_s))]
    refused += [("delivery_rate_bps", Event.Acked(0, 1000, 0.0, 0.1, delivery_rate_bps=bps)) for bps in (-1, math.nan)]
    refused += [("interval_s", Event.PathReport(1, interval_s, 0.0, 0, 0.0, 0, 0)) for interval_s in NO_TIMES]
    refused += [("mean_delay_s", Event.PathReport(1, 0.1, math.nan, 0, 0.0, 0, 0))]
    refused += [("weight", Event.Weight(weight)) for weight in (-1, math.nan, math.inf)]
    for name, event in refused:
        with pytest.raises(ValueError, match=f"^{name} is "):
            reno.on_event(1.0, 0, event)
    with pytest.raises(ValueError, match="sent_at_s is 1.1, later than now_s, 1$"):
        reno.on_event(1.0, 0, Event.Lost(0, 1000, 1.1))
    view = SubflowView(0, 1000)
    view.srtt_s = math.nan
    with pytest.raises(ValueError, match="srtt_s is NaN"):
        reno.on_event(1.0, 0, Event.Timeout(), view=[view])
    assert reno.view[0].srtt_s is None


@pytest.mark.parametrize("seed", [-1, 2**70])
def test_a_seed_that_is_none_is_named(seed, two_paths):
    for call in (lambda: create("reno", seed=seed), lambda: manypath.simulate(two_paths, seed), lambda: two_paths.key(seed)):
        with pytest.raises(ValueError, match=f"seed is {seed}"):
            call()
    with pytest.raises(TypeError, match="seed"):
        create("reno", seed="one")
