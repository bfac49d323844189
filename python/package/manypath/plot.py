"""Figures of results, with matplotlib. Lines differ in style too, so that they can be told apart without colour."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._native import ManypathError, Result, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .sweeps import Sweep

_STYLES = ("-", "--", "-.", ":")
_HATCHES = ("", "//", "..", "xx", "\\\\", "oo")
#: More lines in a panel cannot be told apart.
_MOST_LINES = 8
#: Of columns by how their names end: scale and unit. The first that fits counts.
_UNITS = {"_bps": (1e-6, "Mbit/s"), "_bytes": (1e-3, "kB"), "_per_s": (1.0, "1/s"), "_s": (1.0, "s")}


def series(result: Result, connections: Optional[list[str]] = None) -> Figure:
    """Goodput, windows, round-trip times and queues over time; of these connections, or of the first ones.

    The scenario must have asked for time series with `sample`.
    """
    if "connection_series" not in result:
        raise ManypathError("the run has no time series: give the scenario a 'sample' interval, as in sample=\"100ms\"")
    import matplotlib.pyplot as plt

    figure: Figure
    figure, axes = plt.subplots(4, 1, sharex=True, figsize=(8, 9), layout="constrained")
    figure.suptitle(f"{result.scenario}, seed {result.seed}")
    of_connection = result["connection_series"]
    of_subflow = result["subflow_series"]
    wanted = connections if connections is not None else _first(of_connection["connection"])
    _lines(axes[0], of_connection, ("connection",), "goodput_bps", 1e-6, wanted)
    _lines(axes[1], of_subflow, ("connection", "subflow"), "cwnd_bytes", 1e-3, wanted)
    _lines(axes[2], of_subflow, ("connection", "subflow"), "srtt_s", 1e3, wanted)
    link_series = result["link_series"]
    queued = link_series["link"][link_series["queue_bytes"] > 0]
    _lines(axes[3], link_series, ("link",), "queue_bytes", 1e-3, _first(queued))
    labels = ("goodput (Mbit/s)", "window (kB)", "smoothed RTT (ms)", "queue (kB)")
    for axis, label in zip(axes, labels):
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    axes[-1].set_xlabel("time (s)")
    figure.align_ylabels()
    return figure


def compare(
    sweep: Sweep,
    column: str = "goodput_bps",
    table: str = "connections",
    by: str = "connection",
    scale: Optional[float] = None,
    label: Optional[str] = None,
) -> Figure:
    """Bars of a column for each case of a sweep, a group for each value of `by`: means over seeds, with least and largest.

    `scale` and `label` follow from how the column's name ends. Where some rows have no number, the bar is of the others, and
    says of how many.
    """
    import matplotlib.pyplot as plt

    rows = sweep.table(table)
    cases, groups = list(dict.fromkeys(rows["case"])), list(dict.fromkeys(rows[by]))
    if not cases:
        raise ManypathError(f"there is nothing to compare: the table '{table}' has no rows")
    scale, label = _scaled(column, scale, label)
    figure: Figure
    figure, axis = plt.subplots(figsize=(max(6.0, 1.2 * len(cases) + 2), 4), layout="constrained")
    width = 0.8 / len(groups)
    for number, group in enumerate(groups):
        of_group = [rows[column][(rows["case"] == case) & (rows[by] == group)] * scale for case in cases]
        places = np.arange(len(cases)) + (number - (len(groups) - 1) / 2) * width
        known = [values[~np.isnan(values)] for values in of_group]
        means = np.array([_reduced(np.mean, values) for values in known])
        least = np.array([_reduced(np.min, values) for values in known])
        most = np.array([_reduced(np.max, values) for values in known])
        hatch = _HATCHES[number % len(_HATCHES)]
        # A mean of equal values may lie beside them by a rounding.
        spread = np.maximum([means - least, most - means], 0)
        axis.bar(places, means, width, yerr=spread, capsize=3, hatch=hatch, label=str(group))
        for place, top, there, values in zip(places, np.nan_to_num(most), known, of_group):
            if len(there) < len(values):
                axis.text(place, top, f"{len(there)} of {len(values)}", ha="center", va="bottom", fontsize="small")
    axis.set_xticks(np.arange(len(cases)), cases, rotation=30 if len(cases) > 4 else 0)
    axis.set_ylabel(label)
    axis.grid(axis="y", alpha=0.3)
    if len(groups) > 1:
        axis.legend(title=by, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    return figure


def _scaled(column: str, scale: Optional[float], label: Optional[str]) -> tuple[float, str]:
    """What a column is multiplied with, and what its axis is called."""
    ending = next((ending for ending in _UNITS if column.endswith(ending)), "")
    usual, unit = _UNITS.get(ending, (1.0, ""))
    # At a scale that was given the unit is not known.
    words = column.replace("_", " ")
    if unit and scale is None:
        words = f"{column[: -len(ending)].replace('_', ' ')} ({unit})"
    return usual if scale is None else scale, words if label is None else label


def _reduced(how: Callable[[Any], Any], values: Any) -> float:
    return float(how(values)) if len(values) else float("nan")


def _first(names: Any) -> list[str]:
    return list(dict.fromkeys(names))[:_MOST_LINES]


def _lines(axis: Any, table: Table, keys: tuple[str, ...], column: str, scale: float, wanted: list[str]) -> None:
    """A line for each combination of keys whose first is wanted."""
    styles = cycle(_STYLES)
    combinations = dict.fromkeys(zip(*(table[key].tolist() for key in keys)))
    for combination in [held for held in combinations if held[0] in wanted][:_MOST_LINES]:
        rows = np.logical_and.reduce([table[key] == value for key, value in zip(keys, combination)])
        label = " ".join(str(part) for part in combination)
        axis.plot(table["time_s"][rows], table[column][rows] * scale, next(styles), label=label)
