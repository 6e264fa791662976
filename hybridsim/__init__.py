"""hybridsim: what would an SSD cache do for your disks?

    from hybridsim import Scenario, Trace, replay

    result = replay(Trace.read("sda.blktrace.0"), Scenario.default())
    print(result.verdict.answer, result.phases["warm"].figures.hit_ratio)

Names are imported when they are first used, so that `hybridsim --help` loads no numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hybridsim.answer.result import Result
    from hybridsim.errors import HybridsimError
    from hybridsim.scenario import Scenario
    from hybridsim.trace import Trace
    from hybridsim.verbs.advise import advise
    from hybridsim.verbs.bench import bench
    from hybridsim.verbs.compare import compare
    from hybridsim.verbs.fit import fit
    from hybridsim.verbs.hits import hits
    from hybridsim.verbs.mrc import miss_ratio_curve
    from hybridsim.verbs.replay import replay
    from hybridsim.verbs.size import size
    from hybridsim.verbs.sweep import sweep

_HOME = {
    "HybridsimError": "hybridsim.errors",
    "Result": "hybridsim.answer.result",
    "Scenario": "hybridsim.scenario",
    "Trace": "hybridsim.trace",
    "advise": "hybridsim.verbs.advise",
    "bench": "hybridsim.verbs.bench",
    "compare": "hybridsim.verbs.compare",
    "fit": "hybridsim.verbs.fit",
    "hits": "hybridsim.verbs.hits",
    "miss_ratio_curve": "hybridsim.verbs.mrc",
    "replay": "hybridsim.verbs.replay",
    "size": "hybridsim.verbs.size",
    "sweep": "hybridsim.verbs.sweep",
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
    "fit",
    "hits",
    "miss_ratio_curve",
    "replay",
    "size",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hybridsim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
