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


def test_seeds_that_agree():
    """The mean of three times 0.1 is above 0.1 by a rounding, which is no error bar below zero."""

    class Agreed:
        def table(self, _name):
            return {"case": np.array(["a"] * 3), "connection": np.array(["one"] * 3), "goodput_bps": np.full(3, 0.1)}

    assert np.mean(np.full(3, 0.1)) > 0.1
    axis = manypath.plot.compare(Agreed(), scale=1.0).axes[0]
    assert axis.patches[0].get_height() == pytest.approx(0.1)
