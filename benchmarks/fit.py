"""Fit of a known array from its captures: recovered parameters and predicted latencies.

    python benchmarks/fit.py [--json]

The captures in traces/array/ come from an array with known parameters.  Each is fitted as a whole,
and in halves: the model fitted to one half is simulated under the requests of the other.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from hybridsim.answers.fitting import array
from hybridsim.answers.fitting.observed import Observed, observe
from hybridsim.studies.fit import fidelity
from hybridsim.traces.trace import Trace

TRACES = Path(__file__).parents[1] / "traces" / "array"
TRUTH = {  # parameters of the emulated array: see traces/README.md
    "members": 4,
    "chunk": 65_536,
    "queue_depth": 16,
    "rpm": 7200,
    "seek_track_to_track": 0.5e6,
    "seek_average": 4.5e6,
    "seek_full": 8.0e6,
    "rate_outer": 150e6,
    "overhead": None,  # of the emulated machine, unknown
}


def halves(whole: Observed) -> list[tuple[str, Observed, Observed]]:
    rows = np.arange(whole.rows)
    first, second = whole.of(rows < whole.rows // 2), whole.of(rows >= whole.rows // 2)
    return [("whole", whole, whole), ("first half", first, second), ("second half", second, first)]


def measured(path: Path) -> list[dict[str, object]]:
    whole = observe(Trace.read(path).chunks())
    result = []
    for name, fitted, held in halves(whole):
        begun = time.process_time()
        answer = array.answer(path.stem, fitted, lambda what, done, of: None, [])
        cpu_s = time.process_time() - begun
        values = {one.key: one for one in answer.estimates}
        result.append(
            {
                "capture": path.name.split(".")[0],
                "fitted_to": name,
                "requests": fitted.rows,
                "cpu_s": round(cpu_s, 1),
                "demerit": fidelity(held, answer.scenario()).demerit,
                "estimates": {
                    key: {
                        "value": values[key].value,
                        "low": values[key].low,
                        "high": values[key].high,
                        "told": values[key].determined,
                        "truth": truth,
                    }
                    for key, truth in TRUTH.items()
                    if key in values
                },
            }
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    rows = [row for path in sorted(TRACES.glob("*.csv.zst")) for row in measured(path)]
    if parser.parse_args().json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(
            f"{row['capture']}, {row['fitted_to']} ({row['requests']} requests, "
            f"{row['cpu_s']} CPU s): demerit on the other half {row['demerit']:.1%}"
        )
        for key, one in row["estimates"].items():  # type: ignore[attr-defined]
            print(f"  {key:<20} {line(one)}")


def line(one: dict[str, float]) -> str:
    if not one["told"]:
        return f"{one['value']:>14,.0f}  not determined by the capture"
    interval = f" [{one['low']:,.0f} to {one['high']:,.0f}]" if one["low"] is not None else ""
    truth = one["truth"]
    error = "" if truth is None else f"  truth {truth:,.0f}: {one['value'] / truth - 1:+.1%}"
    return f"{one['value']:>14,.0f}{interval}{error}"


if __name__ == "__main__":
    main()
