"""Tables: NumPy, pandas, polars and Arrow look at the same memory."""

import gc
import pickle
from pathlib import Path

import manypath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


@pytest.fixture
def series(result):
    return result["subflow_series"]


def test_numbers_are_views(series):
    srtt = series["srtt_s"]
    assert srtt.dtype == np.float64 and not srtt.flags.owndata and not srtt.flags.writeable
    assert np.shares_memory(srtt, series["srtt_s"])
    assert series["cwnd_bytes"].dtype == np.uint64
    assert series["connection"].tolist() == ["phone"] * len(series)
    with pytest.raises(ValueError, match="read-only"):
        srtt[0] = 1.0


def test_arrow_looks_at_the_same_memory(series):
    table = pa.table(series)
    assert table.schema.names == series.columns
    assert table.schema.field("srtt_s").metadata[b"about"] == b"Smoothed round-trip time, s."
    for name in ("srtt_s", "cwnd_bytes", "time_s"):
        (chunk,) = table[name].chunks
        address = series[name].__array_interface__["data"][0]
        assert chunk.buffers()[1].address == address, name
    column = pa.array(series.column("time_s"))
    assert column.buffers()[1].address == series["time_s"].__array_interface__["data"][0]


def test_pandas_and_polars_look_at_the_same_memory(series):
    frame = series.to_pandas()
    assert isinstance(frame, pd.DataFrame) and list(frame) == series.columns
    assert np.shares_memory(frame["srtt_s"].to_numpy(), series["srtt_s"])
    lazily = series.to_polars()
    assert isinstance(lazily, pl.DataFrame) and lazily.columns == series.columns
    assert np.shares_memory(lazily["time_s"].to_numpy(allow_copy=False), series["time_s"])


def test_memory_lives_as_long_as_someone_looks(two_paths):
    result = manypath.simulate(two_paths, seed=9)
    array = result["run_series"]["goodput_bps"]
    arrow = pa.table(result["run_series"])["goodput_bps"]
    expected = array.tolist()
    del result
    gc.collect()
    other = [np.full(array.shape, 7.0) for _ in range(1000)]
    assert array.tolist() == expected == arrow.to_pylist()
    del other


def test_what_is_not_there_is_nan_to_numpy_and_null_to_arrow(result):
    connections = result["connections"]
    assert np.isnan(connections["completion_mean_s"][0])
    assert pa.table(connections)["completion_mean_s"].to_pylist() == [None]
    assert connections.to_polars()["completion_mean_s"].null_count() == 1
    assert connections.to_pandas()["completion_mean_s"].isna().all()


def test_frames_agree(result):
    for name in result:
        table = result[name]
        polars, pandas = table.to_polars(), table.to_pandas()
        assert len(table) == len(polars) == len(pandas) == table.to_arrow().num_rows
        for column in table:
            if table.column(column).kind == "real":
                same = np.array_equal(polars[column].to_numpy(), pandas[column].to_numpy(), equal_nan=True)
            else:
                same = polars[column].to_list() == pandas[column].to_list()
            assert same, (name, column)


def test_empty_tables(result):
    files = result["files"]
    assert len(files) == 0
    assert files["start_s"].shape == (0,) and files["connection"].shape == (0,)
    assert files.to_polars().height == 0 and files.to_pandas().empty and files.to_arrow().num_rows == 0


def test_columns(series):
    column = series.column("srtt_s")
    assert (column.name, column.kind, len(column)) == ("srtt_s", "real", len(series))
    assert column.about == "Smoothed round-trip time, s."
    assert "srtt_s" in series and "none" not in series and list(series) == series.columns
    with pytest.raises(KeyError, match="it has seed, time_s"):
        series["none"]
    names = series.column("connection")
    assert np.asarray(names, dtype="U5").dtype == np.dtype("U5")
    with pytest.raises(ValueError, match="must be copied"):
        np.array(names, copy=False)


def test_pickles_and_parquet(series, tmp_path):
    again = pickle.loads(pickle.dumps(series))
    assert again.to_polars().equals(series.to_polars()) and again.about == series.about
    path = series.to_parquet(tmp_path)
    # As the stub says, which mypy does not compare.
    assert isinstance(path, Path)
    assert pl.read_parquet(path)["srtt_s"].equals(series.to_polars()["srtt_s"])
    with pytest.raises(OSError):
        series.to_parquet(path)


def test_below_each_other(result, two_paths):
    other = manypath.simulate(two_paths.replace({"connection.cc": "olia"}), seed=3)
    both = manypath._native.concat([result["connections"], other["connections"]], ["a", "b"], "case")
    assert both["case"].tolist() == ["a", "b"] and both["cc"].tolist() == ["lia", "olia"]
    assert both["goodput_bps"].tolist() == [result.goodput_bps, other.goodput_bps]
    with pytest.raises(ValueError):
        manypath._native.concat([], [], "case")
    with pytest.raises(ValueError, match="1 labels"):
        manypath._native.concat([both, both], ["a"], "case")


def test_pickles_that_are_not_ours():
    restore = manypath._native._restore_table
    with pytest.raises(ValueError, match="half a number"):
        restore("t", "", [("real", "x", "", b"123")])
    with pytest.raises(ValueError, match="no kind"):
        restore("t", "", [("odd", "x", "", b"")])
    with pytest.raises(ValueError, match="unequal"):
        restore("t", "", [("real", "x", "", bytes(8)), ("flag", "y", "", [])])
