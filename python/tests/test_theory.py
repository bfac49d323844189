"""Registries and theory."""

import json
import subprocess

import manypath
import numpy as np
import pytest
from manypath.theory import Network, lmmf, num


def test_algorithms():
    algorithms = {algorithm.name: algorithm for algorithm in manypath.algorithms()}
    assert algorithms["mpcc-latency"].kind == "cc" and algorithms["minrtt"].kind == "sched"
    assert {held.kind for held in manypath.algorithms("cc")} == {"cc"}
    parameter = {held.name: held for held in algorithms["mp-ol"].parameters}["n"]
    assert parameter.default and parameter.range and parameter.meaning
    assert all(held.citation and held.status in ("stable", "experimental") for held in algorithms.values())
    with pytest.raises(ValueError, match="there are cc, sched"):
        manypath.algorithms("other")


def test_the_command_line_lists_the_same(command):
    listed = json.loads(subprocess.run([command, "algorithms", "--json"], check=True, capture_output=True).stdout)
    assert [row["name"] for row in listed] == [held.name for held in manypath.algorithms()]


def test_max_min_fairness():
    """The example of the crate: link 1 is left to the one that has nothing else."""
    network = Network(["100Mbit", 100e6], [[[0], [1]], [[1]]])
    allocation = lmmf(network)
    assert np.allclose(allocation.connections["rate_bps"], 100e6, rtol=1e-5)
    assert np.allclose(allocation.links["load_bps"], 100e6, rtol=1e-5)
    assert allocation.subflows["path"].tolist() == [0, 1, 0] and "price" not in allocation.links


def test_utility_maximisation():
    """Proportional fairness on a line of two links: the long connection gets a third, its price is as both."""
    network = Network([3e6, 3e6], [[[0, 1]], [[0]], [[1]]])
    optimum = num(network)
    assert np.allclose(optimum.connections["rate_bps"], [1e6, 2e6, 2e6], rtol=1e-4)
    assert np.allclose(optimum.links["price"], 0.5, rtol=1e-4)
    favoured = num(network, weights=[2.0, 1.0, 1.0])
    assert np.allclose(favoured.connections["rate_bps"], [1.5e6, 1.5e6, 1.5e6], rtol=1e-4)
    costly = num(Network([1e6, 1e6], [[[0], [1]]]), subflow_weights=[[1.0, 0.0]])
    assert costly.subflows["rate_bps"][1] == pytest.approx(0, abs=10)
    limited = num(Network(["1Mbit"], [[[0]], [[0]]], limits=[None, "100kbit"]), alpha=2)
    assert np.allclose(limited.connections["rate_bps"], [0.9e6, 0.1e6], rtol=1e-4)


def test_scenarios_have_the_command_lines_answers(command, tmp_path):
    scenario = manypath.Scenario(manypath.template("mpcc-3c"))
    path = tmp_path / "3c.toml"
    path.write_text(scenario.text)
    for question, ours in (("lmmf", lmmf(scenario)), ("num", num(scenario))):
        done = subprocess.run([command, "theory", question, path, "--json"], check=True, capture_output=True)
        theirs = json.loads(done.stdout)
        assert ours.connections["connection"].tolist() == [row["name"] for row in theirs["connections"]]
        for column in ("rate_bps", "goodput_bps"):
            assert np.allclose(ours.connections[column], [row[column] for row in theirs["connections"]], atol=1.0)
        assert ours.notes == theirs["notes"]


def test_what_makes_no_sense():
    with pytest.raises(manypath.TheoryError, match="link 7, which does not exist"):
        Network([1e6], [[[7]]])
    with pytest.raises(manypath.UnitError, match="20 Mbit|no unit|unit"):
        Network(["20"], [[[0]]])
    with pytest.raises(ValueError, match="2 limits for 1 connections"):
        Network([1e6], [[[0]]], limits=[None, None])
    network = Network([1e6], [[[0]]])
    with pytest.raises(manypath.TheoryError, match="alpha"):
        num(network, alpha=-1)
    with pytest.raises(ValueError, match="2 weights for 1 connections"):
        num(network, weights=[1.0, 1.0])
    with pytest.raises(TypeError):
        lmmf("a network")
