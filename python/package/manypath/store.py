"""Results of runs on disk: one file a run, whole or not there, that NumPy alone can read (`numpy.load`)."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ._native import ManypathError, Result, _restore_result, _restore_table

#: The array with the summary and with what tables and columns are.
_ABOUT = "about.json"


class StoreError(ManypathError):
    """A stored result cannot be read."""


class Store:
    """A folder of results by key. It need not be there yet."""

    def __init__(self, folder: os.PathLike[str] | str) -> None:
        self.folder = Path(folder)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"

    def get(self, key: str) -> Optional[Result]:
        """The result with this key; `None`: it is not there."""
        path = self._path(key)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return _result(arrays)
        except FileNotFoundError:
            return None
        except Exception as broken:
            # Readers of archives and arrays raise what they like at a damaged one; what a system call refused is another
            # matter.
            if isinstance(broken, OSError) and broken.errno is not None:
                raise
            raise StoreError(f"{path} is no result: delete it to have its run made again ({broken})") from broken

    def add(self, key: str, result: Result) -> None:
        """Writes a result: beside its place first, so that one that is there is whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # A file that all may read whom the user lets: `tempfile` makes private ones.
        name = self.folder / f".{uuid.uuid4().hex}.part"
        try:
            with open(name, "xb") as file:
                np.savez_compressed(file, allow_pickle=False, **_arrays(result))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path(key))
        except BaseException:
            name.unlink(missing_ok=True)
            raise


def _arrays(result: Result) -> dict[str, Any]:
    """A result as arrays: a text that describes it, and a column each."""
    _, (names, summary, text, tables) = result.__reduce__()
    arrays: dict[str, Any] = {}
    described = []
    for table in tables:
        columns = [table.column(name) for name in table.columns]
        described.append([table.name, table.about, [[column.kind, column.name, column.about] for column in columns]])
        for column in columns:
            values = column.to_numpy()
            arrays[f"{table.name}/{column.name}"] = values.astype(str) if column.kind == "text" else values
    about = {"names": names, "summary": summary, "text": text, "tables": described}
    arrays[_ABOUT] = np.array(json.dumps(about))
    return arrays


def _result(arrays: Any) -> Result:
    about = json.loads(str(arrays[_ABOUT][()]))
    tables = []
    for name, table_about, columns in about["tables"]:
        packed = []
        for kind, column, column_about in columns:
            values = arrays[f"{name}/{column}"]
            packed.append((kind, column, column_about, _packed(kind, values)))
        tables.append(_restore_table(name, table_about, packed))
    return _restore_result(tuple(about["names"]), about["summary"], about["text"], tables)


def _packed(kind: str, values: Any) -> Any:
    if kind == "real":
        return values.astype("<f8").tobytes()
    if kind == "whole":
        return values.astype("<u8").tobytes()
    return values.tolist()
