"""hybridsim: what would an SSD cache do for your disks?

    from hybridsim import Scenario, Trace, replay

    result = replay(Trace.read("sda.blktrace.0"), Scenario.default())
    print(result.verdict.answer, result.phases["warm"].figures.hit_ratio)

Names are imported when they are first used, so that `hybridsim --help` loads no numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.version import __version__

if TYPE_CHECKING:
    from hybridsim.answers.result import Result
    from hybridsim.foundation.errors import HybridsimError
    from hybridsim.scenario import Scenario
    from hybridsim.show import plot
    from hybridsim.show.interactive import explore
    from hybridsim.studies.advise import advise
    from hybridsim.studies.bench import bench
    from hybridsim.studies.compare import compare
    from hybridsim.studies.fit import fit
    from hybridsim.studies.hits import hits
    from hybridsim.studies.mrc import miss_ratio_curve
    from hybridsim.studies.replay import replay
    from hybridsim.studies.size import size
    from hybridsim.studies.sweep.sweep import sweep, what_if
    from hybridsim.traces.trace import Trace

_HOME = {
    "HybridsimError": "hybridsim.foundation.errors",
    "Result": "hybridsim.answers.result",
    "Scenario": "hybridsim.scenario",
    "Trace": "hybridsim.traces.trace",
    "advise": "hybridsim.studies.advise",
    "bench": "hybridsim.studies.bench",
    "compare": "hybridsim.studies.compare",
    "explore": "hybridsim.show.interactive",
    "fit": "hybridsim.studies.fit",
    "hits": "hybridsim.studies.hits",
    "miss_ratio_curve": "hybridsim.studies.mrc",
    "replay": "hybridsim.studies.replay",
    "size": "hybridsim.studies.size",
    "sweep": "hybridsim.studies.sweep.sweep",
    "what_if": "hybridsim.studies.sweep.sweep",
}

__all__ = [
    "HybridsimError",
    "Result",
    "Scenario",
    "Trace",
    "__version__",
    "advise",
    "bench",
    "compare",
    "explore",
    "fit",
    "hits",
    "miss_ratio_curve",
    "plot",
    "replay",
    "size",
    "sweep",
    "what_if",
]


def __getattr__(name: str) -> Any:
    if name == "plot":
        return importlib.import_module("hybridsim.show.plot")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hybridsim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
