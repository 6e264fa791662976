"""The report as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from validate.report.columns import HEADS, cells
from validate.report.holding import Held
from validate.twin import calibrate

SCHEMA = "hybridsim.validation/1"


def to_json(runs: Sequence[Held]) -> str:
    """Return the report as JSON text; unknown values are null."""
    return json.dumps(document(runs), indent=1, allow_nan=False) + "\n"


def document(runs: Sequence[Held]) -> dict[str, Any]:
    """Return the report as a JSON object."""
    return {
        "schema": SCHEMA,
        "pass": all(run.is_met for run in runs),
        "table": [dict(zip(HEADS, cells(run))) for run in runs],
        "runs": [_run(run) for run in runs],
    }


def _run(run: Held) -> dict[str, Any]:
    twin = run.twin
    return {
        "name": run.record.name,
        "repeats": run.repeats,
        "chance": {str(name): round(share, 3) for name, share in run.chance.items()},
        "noise": {str(name): share for name, share in run.noise.items()},
        "load": twin.load,
        "lead_s": round(twin.lead_s, 3),
        "began_s": None if twin.began_s is None else round(twin.began_s, 3),
        "assumptions": twin.assumptions,
        "calibration": calibrate.as_json(twin.calibration),
        "scenario": twin.scenario,
        "comparison": run.found.to_dict(),
    }
