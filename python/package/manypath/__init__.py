"""Multipath transport: the simulator, its controllers one by one, theory, and the experiments of the papers.

    import manypath

    scenario = manypath.Scenario.built_in().replace({"connection.cc": "mpcc-latency"})
    result = manypath.simulate(scenario, seed=1)
    print(result)
    result["connections"].to_pandas()

Units are seconds, bytes and bits per second, and names end with them. What goes wrong is a `ManypathError`; a file that
cannot be read or written is an `OSError`, as everywhere.
"""

from importlib.metadata import version as _version

from . import cc, lab, plot, theory
from ._native import (
    Algorithm,
    AlgorithmError,
    Column,
    InternalError,
    LabError,
    ManypathError,
    Parameter,
    Result,
    RunError,
    Scenario,
    ScenarioError,
    Table,
    TheoryError,
    UnitError,
    algorithms,
    code,
    simulate,
    template,
    topologies,
)
from .sweeps import Sweep, SweepError, sweep

__version__ = _version("manypath")

__all__ = [
    "Algorithm",
    "AlgorithmError",
    "Column",
    "InternalError",
    "LabError",
    "ManypathError",
    "Parameter",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepError",
    "Table",
    "TheoryError",
    "UnitError",
    "algorithms",
    "cc",
    "code",
    "lab",
    "plot",
    "simulate",
    "sweep",
    "template",
    "theory",
    "topologies",
]
