"""The lab: experiments of the repository, run and judged."""

import signal

import manypath
import pytest

EXPERIMENT = """
title = "Two paths are better than one"
paper = "mpcc"
place = "nowhere"
about = "A connection over one link, and over two."
seeds = { quick = 2, full = 3 }
duration = { quick = "1s", full = "2s" }
warmup = { quick = "200ms", full = "500ms" }

[[axis]]
name = "paths"
values = ["mp", "sp1"]

[scenario]
topology = "two-links"

[[scenario.connection]]
name = "mp"
role = "{paths}"
cc = "lia"

[metric.goodput]
title = "goodput"
unit = "Mbit/s"
value = "connection.mp.goodput_bps / 1Mbit"

[[claim]]
id = "more"
says = "two paths carry more than one"
place = "nowhere"
number = "none"
unit = "Mbit/s"
order = ["goodput[paths=sp1]", "goodput[paths=mp]"]
wrong = { paths = { mp = "sp1", sp1 = "mp" } }
"""


@pytest.fixture
def places(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "two.toml").write_text(EXPERIMENT)
    return {"experiments": tmp_path / "experiments", "results": tmp_path / "results"}


def test_an_experiment_from_run_to_verdict(places):
    (row,) = manypath.lab.list(experiments=places["experiments"]).to_polars().rows(named=True)
    assert row["experiment"] == "two" and row["quick_runs"] == 4
    before = manypath.lab.check("two", **places)
    assert before["verdict"].tolist() == ["not run"]
    heard = []
    outcome = manypath.lab.run("two", jobs=2, progress=heard.append, **places)
    assert (outcome.made, outcome.held, outcome.skipped, outcome.failures) == (4, 0, [], [])
    assert len(heard) == 4 and heard[-1] == pytest.approx(1.0) and heard == sorted(heard)
    assert manypath.lab.run("two", **places).made == 0
    claims = manypath.lab.check("two", **places)
    assert claims["verdict"].tolist() == ["holds"] and claims["says"][0] == "two paths carry more than one"
    assert manypath.lab.check("two", wrong=True, **places)["verdict"].tolist() == ["does not hold"]
    metrics = manypath.lab.metrics("two", **places).to_polars()
    assert metrics.columns == ["paths", "seed", "goodput"] and len(metrics) == 4
    assert set(metrics["paths"]) == {"mp", "sp1"} and metrics["goodput"].min() > 1


def test_what_progress_raises_ends_a_run_that_can_go_on(places):
    def stop(share):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        manypath.lab.run("two", jobs=1, progress=stop, **places)
    rest = manypath.lab.run("two", jobs=1, **places)
    assert rest.made + rest.held == 4 and rest.held >= 1


def test_an_interruption_is_heard_while_a_run_lasts(places):
    """It comes in the first of four runs: none begins after it."""
    path = places["experiments"] / "two.toml"
    path.write_text(path.read_text().replace('"1s"', '"60s"'))

    def interrupt(*_arguments):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            manypath.lab.run("two", jobs=1, **places)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(manypath.lab.metrics("two", **places)) == 1


def test_an_interruption_is_raised_even_where_results_cannot_be_written(places):
    def interrupt(share):
        places["results"].write_text("no folder")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        manypath.lab.run("two", jobs=1, progress=interrupt, **places)


def test_an_error_says_its_cause(places):
    places["results"].write_text("no folder")
    with pytest.raises(manypath.LabError, match="cannot look into .*: Not a directory"):
        manypath.lab.run("two", **places)


def test_what_makes_no_sense(places, tmp_path, monkeypatch):
    with pytest.raises(manypath.LabError, match="there is no experiment 'none'"):
        manypath.lab.run("none", **places)
    with pytest.raises(manypath.LabError, match="there is no experiment 'none'"):
        manypath.lab.metrics("none", **places)
    with pytest.raises(ValueError, match="there is no engine 'abacus'; there are sim"):
        manypath.lab.run("two", engine="abacus", **places)
    with pytest.raises(manypath.LabError, match="none of these runs on that engine"):
        manypath.lab.run("two", engine="theory", **places)
    (places["experiments"] / "two.toml").write_text("title = 3")
    with pytest.raises(manypath.LabError, match="two.toml:1"):
        manypath.lab.list(experiments=places["experiments"])
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    (tmp_path / "experiments").rename(tmp_path / "other")
    with pytest.raises(manypath.LabError, match="give experiments=FOLDER"):
        manypath.lab.list()


def test_the_repositorys_experiments_are_found(repository, monkeypatch):
    monkeypatch.chdir(repository / "python")
    listed = manypath.lab.list()
    assert len(listed) > 20 and {"mpcc", "tccc", "stms", "mp-ol", "uni-mptcp"} >= set(listed["paper"])
    mpcc = manypath.lab.list("mpcc")
    assert 0 < len(mpcc) < len(listed) and set(mpcc["paper"]) == {"mpcc"}


def test_runs_that_an_engine_cannot_make_are_said(places):
    text = EXPERIMENT.replace("[[axis]]", 'engines = ["sim", "quic"]\n[[axis]]', 1)
    source = '[[scenario.source]]\nname = "noise"\nroute = ["link1"]\nrate = "1Mbit"\n\n[metric.goodput]'
    (places["experiments"] / "two.toml").write_text(text.replace("[metric.goodput]", source))
    outcome = manypath.lab.run("two", engine="quic", **places)
    assert (outcome.made, len(outcome.skipped), outcome.failures) == (0, 4, [])
    assert "sources that do not react" in outcome.skipped[0][1] and "4 skipped" in repr(outcome)
