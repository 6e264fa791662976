"""What if?  A table of machines, one row each, from lists of values: for notebooks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Unpack

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.in_notebooks import with_keywords
from hybridsim.foundation.suggest import hint
from hybridsim.scenario import Scenario
from hybridsim.scenario.options import OPTIONS, Choices
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.plan import Axis, Plan
from hybridsim.studies.sweep.running import Progress, Report, silent
from hybridsim.studies.sweep.store import FOLDER
from hybridsim.studies.sweep.sweep import sweep
from hybridsim.studies.sweep.workers import Settled
from hybridsim.traces.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame


@with_keywords(Choices)
def what_if(
    trace: Trace | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    site: Scenario | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = 1,
    progress: bool = True,
    **options: Unpack[Choices],
) -> DataFrame:
    """Replay a trace on each machine of a grid; return a pandas frame with one row per machine.

    The keywords are the options of `Scenario.with_options`, with a list of values for each that is
    varied, or one value:

        what_if("sda.blktrace.0", cache=["bcache", "dm-cache"], cache_size=["16GiB", "64GiB"])

    `vary` does the same for any key of the scenario: {"backing.drive.rpm": [7200, 10000]}.

    All rows are judged on the same requests: the whole trace.  Columns: what is varied; `answer`
    (yes, no, unsure); `hit_ratio`; mean and p99 latencies of reads and writes, with the cache and
    on the disks alone, in ms; `warm_after_s`; `ssd_gib`; `drive_writes_per_day`; `gain` (of the
    second half of the work) and `forecast` (of the load that goes on).  Units are in the names;
    unknown values are NaN.  With the cache, `read_ms_low` and `read_ms_high` are the ends of the
    interval of 90 % of `read_ms`, and so for the other latencies and `hit_ratio`.

    Results are kept in `folder`, so that a repeated call, or one with more values, only computes
    what is new.  `workers` is the number of processes (None: one per core, which needs
    `hybridsim[cluster]`).  `progress` shows a bar, in notebooks and on terminals.

    Raises UsageError for an unknown option, an empty list or standard input, TraceError for a trace
    that cannot be read, ScenarioError for a wrong value.  Machines that cannot be built are left
    out with a warning.

    >>> frame = what_if("gen:zipf,requests=300,span=16MiB,rate=100", cache_size=["1MiB", "4MiB"],
    ...                 progress=False)
    >>> frame["cache_size"].tolist()
    ['1MiB', '4MiB']
    """
    lists: dict[str, Sequence[Any]] = {}
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option not in OPTIONS:
            raise UsageError(f"no option {option!r}: {hint(option, OPTIONS)}")
        if isinstance(value, list | tuple | range):
            lists[_key(option)] = value
        else:
            values[option] = value
    lists |= vary or {}
    empty = next((key for key, choices in lists.items() if not len(choices)), None)
    if empty:
        raise UsageError(f"{empty}: specify at least one value")
    axes = tuple(Axis(key, tuple(dict.fromkeys(choices))) for key, choices in lists.items())
    scenario = (site or Scenario.default()).with_options(**values)
    plan = Plan((NamedTrace.here(*_selection(trace)),), scenario, axes)
    with _bar(plan.settings) if progress else nullcontext(silent) as report:
        result = sweep(plan, folder, workers, report=report)
    for failed in result.failed:
        warnings.warn(f"left out: {failed.words}: {failed.why}", stacklevel=2)
    return result.frame().rename(columns={_key(option): option for option in options})


def _key(option: str) -> str:
    """Return the key that an option sets."""
    return ".".join(map(str, OPTIONS[option]))


def _selection(
    trace: Trace | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[tuple[str, ...], str | None, str | None, bool]:
    """Return what opens the trace again: paths, format, device, whether dispatch times count."""
    if isinstance(trace, Trace):
        return trace.selection
    paths = [trace] if isinstance(trace, str | os.PathLike) else trace
    return tuple(os.fspath(path) for path in paths), None, None, False


@contextmanager
def _bar(machines: int) -> Iterator[Report]:
    """Show how many machines are done; in notebooks and on terminals."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, transient=True) as bar:
        task = bar.add_task("machines", total=machines)

        def report(progress: Progress, settled: Settled | None) -> None:
            bar.update(task, completed=progress.known + progress.computed + progress.failed)

        yield report
