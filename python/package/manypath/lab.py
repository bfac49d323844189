"""The experiments of the papers: what `manypath lab` does, with tables for answers.

    manypath.lab.run("mpcc-fig5a")
    manypath.lab.check("mpcc-fig5a").to_pandas()
    manypath.lab.metrics("mpcc-fig5a").to_polars()

Experiments are files of the repository: functions look for the nearest folder `experiments`, here or above, unless it is
given. Results are kept in `lab-results` beside it, the same that the command line reads and writes.
"""

from ._native import Outcome
from ._native import lab_check as check
from ._native import lab_list as list
from ._native import lab_metrics as metrics
from ._native import lab_run as run

__all__ = ["Outcome", "check", "list", "metrics", "run"]
