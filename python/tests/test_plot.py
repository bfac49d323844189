"""Figures: what is drawn is what was found."""

import manypath
import matplotlib.pyplot as plt
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_run_over_time(result, tmp_path):
    figure = manypath.plot.series(result)
    goodput, window, rtt, queue = figure.axes
    (line,) = goodput.lines
    assert np.array_equal(line.get_ydata(), result["connection_series"]["goodput_bps"] * 1e-6)
    assert [held.get_label() for held in window.lines] == ["phone 0", "phone 1"]
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "goodput (Mbit/s)",
        "window (kB)",
        "smoothed RTT (ms)",
        "queue (kB)",
    ]
    assert queue.get_xlabel() == "time (s)" and len(queue.lines) >= 1
    assert len({held.get_linestyle() for held in window.lines}) == 2
    figure.savefig(tmp_path / "run.png")
    assert not manypath.plot.series(result, connections=[]).axes[0].lines


def test_a_run_without_time_series(two_paths):
    text = two_paths.text.replace('sample = "100ms"\n', "").replace('"2s"', '"600ms"')
    with pytest.raises(manypath.ManypathError, match="sample"):
        manypath.plot.series(manypath.simulate(manypath.Scenario(text)))


def test_a_comparison(two_paths, tmp_path):
    short = two_paths.replace({"duration": "600ms"})
    swept = manypath.sweep({cc: short.replace({"connection.cc": cc}) for cc in ("lia", "reno")}, seeds=2)
    figure = manypath.plot.compare(swept)
    (axis,) = figure.axes
    heights = [bar.get_height() for bar in axis.patches]
    means = [np.mean([swept[label, seed].goodput_bps for seed in (1, 2)]) * 1e-6 for label in ("lia", "reno")]
    assert heights == pytest.approx(means)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["lia", "reno"]
    assert axis.get_ylabel() == "goodput (Mbit/s)"
    by_link = manypath.plot.compare(swept, "utilisation", "links", "link", 100.0, "utilisation (%)")
    assert [text.get_text() for text in by_link.axes[0].get_legend().get_texts()] == list(short.links)
    figure.savefig(tmp_path / "comparison.png")


class Given:
    """Two cases of two seeds."""

    def __init__(self, **columns):
        self.columns = {"case": np.array(["a", "a", "b", "b"]), "connection": np.array(["one"] * 4), **columns}

    def table(self, _name):
        return self.columns


def test_seeds_without_a_number():
    none = float("nan")
    axis = manypath.plot.compare(Given(completion_s=np.array([none, 4.0, none, none])), "completion_s").axes[0]
    assert axis.patches[0].get_height() == 4.0 and np.isnan(axis.patches[1].get_height())
    assert [text.get_text() for text in axis.texts] == ["1 of 2", "0 of 2"]


@pytest.mark.parametrize(
    ("column", "scale", "label"),
    [
        ("goodput_bps", 1e-6, "goodput (Mbit/s)"),
        ("srtt_mean_s", 1.0, "srtt mean (s)"),
        ("cwnd_max_bytes", 1e-3, "cwnd max (kB)"),
        ("cost_per_s", 1.0, "cost (1/s)"),
        ("lost_packets", 1.0, "lost packets"),
    ],
)
def test_scale_and_label_follow_from_the_columns_name(column, scale, label):
    swept = Given(**{column: np.arange(4)})
    axis = manypath.plot.compare(swept, column).axes[0]
    assert axis.patches[1].get_height() == pytest.approx(2.5 * scale) and axis.get_ylabel() == label
    given = manypath.plot.compare(swept, column, scale=2.0, label="mine").axes[0]
    assert given.patches[1].get_height() == 5.0 and given.get_ylabel() == "mine"


def test_nothing_to_compare(two_paths):
    swept = manypath.sweep(two_paths.replace({"duration": "600ms"}))
    assert not len(swept.table("files"))
    with pytest.raises(manypath.ManypathError, match="the table 'files' has no rows"):
        manypath.plot.compare(swept, "completion_s", "files")


def test_seeds_that_agree():
    """The mean of three times 0.1 is above 0.1 by a rounding, which is no error bar below zero."""

    class Agreed:
        def table(self, _name):
            return {"case": np.array(["a"] * 3), "connection": np.array(["one"] * 3), "goodput_bps": np.full(3, 0.1)}

    assert np.mean(np.full(3, 0.1)) > 0.1
    axis = manypath.plot.compare(Agreed(), scale=1.0).axes[0]
    assert axis.patches[0].get_height() == pytest.approx(0.1)
