"""Compare a simulated run with a real one."""

from __future__ import annotations

from collections.abc import Sequence

from hybridsim.answers.comparison import Comparison, parse, with_intervals
from hybridsim.answers.comparison import compare as compare_measured
from hybridsim.answers.measurements import gather
from hybridsim.answers.measurements.measurement import Measurement


def compare(real: str, simulated: str | Measurement, tolerance: Sequence[str] = ()) -> Comparison:
    """Compare the results of two runs; each is a file, a folder, or a prefix of file names.

    A simulated run may also be a Measurement (show/fio_json.py creates one for fio's jobs).
    Two replays of the same requests are paired: how many times less the second one waits, with its
    interval.  `tolerance` has the syntax of `--tolerance`: `10%`, `iops=5%,p99=20%`.  Raises
    MeasurementError for files that cannot be read or have nothing to compare, UsageError for an
    invalid tolerance.

    >>> from pathlib import Path
    >>> line = "read: IOPS={}, BW=4MiB/s (4MB/s)(40MiB/10000msec)"
    >>> for run, iops in (("real", 1000), ("simulated", 1020)):
    ...     _ = Path(f"{run}.txt").write_text(line.format(iops))
    >>> compare("real.txt", "simulated.txt", ["5%"]).frame()["error"].round(2).max()
    np.float64(0.02)
    """
    allowed = parse(tolerance)
    measured = gather(real)
    other = simulated if isinstance(simulated, Measurement) else gather(simulated)
    result = compare_measured(measured, other, allowed)
    with_intervals(result)
    return result
