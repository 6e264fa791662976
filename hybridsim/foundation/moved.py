"""Import paths of release 0.1: each leads to the new path and warns. Removed in release 1.0."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "hybridsim.advice": "hybridsim.answers.advice",
    "hybridsim.answer": "hybridsim.answers",
    "hybridsim.answer.beginning": "hybridsim.answers.warm_start",
    "hybridsim.arrays": "hybridsim.foundation.arrays",
    "hybridsim.building": "hybridsim.scenario.building",
    "hybridsim.catalog": "hybridsim.storage.catalog",
    "hybridsim.charts": "hybridsim.show.charts",
    "hybridsim.codes": "hybridsim.foundation.codes",
    "hybridsim.comparison": "hybridsim.answers.comparison",
    "hybridsim.comparison.matching": "hybridsim.answers.comparison.comparing",
    "hybridsim.controller": "hybridsim.storage.controller",
    "hybridsim.demo": "hybridsim.traces.example",
    "hybridsim.devices": "hybridsim.storage.devices",
    "hybridsim.drives": "hybridsim.storage.drives",
    "hybridsim.drives.part": "hybridsim.foundation.toml.table",
    "hybridsim.engine.depths": "hybridsim.requests.depths",
    "hybridsim.engine.host": "hybridsim.requests.host",
    "hybridsim.engine.inflight": "hybridsim.requests.inflight",
    "hybridsim.engine.jobs": "hybridsim.requests.jobs",
    "hybridsim.engine.source": "hybridsim.requests.source",
    "hybridsim.errors": "hybridsim.foundation.errors",
    "hybridsim.fio": "hybridsim.workloads.fio",
    "hybridsim.fitting": "hybridsim.answers.fitting",
    "hybridsim.fitting.solid": "hybridsim.answers.fitting.flash",
    "hybridsim.formats": "hybridsim.traces.formats",
    "hybridsim.formats.kept": "hybridsim.traces.formats.request_cache",
    "hybridsim.formats.rows": "hybridsim.requests.rows",
    "hybridsim.histogram": "hybridsim.foundation.histogram",
    "hybridsim.language": "hybridsim.foundation",
    "hybridsim.measurements": "hybridsim.answers.measurements",
    "hybridsim.plot": "hybridsim.show.plot",
    "hybridsim.policies": "hybridsim.caches.policies",
    "hybridsim.raid": "hybridsim.storage.raid",
    "hybridsim.recording": "hybridsim.traces.recording",
    "hybridsim.registry": "hybridsim.foundation.registry",
    "hybridsim.report": "hybridsim.show",
    "hybridsim.report.beginning": "hybridsim.show.warm_start",
    "hybridsim.scenario.assigned": "hybridsim.scenario.overrides",
    "hybridsim.schemas": "hybridsim.show.schemas",
    "hybridsim.standin": "hybridsim.workloads.standin",
    "hybridsim.sweep": "hybridsim.studies.sweep",
    "hybridsim.sweep.chance": "hybridsim.studies.sweep.seeds",
    "hybridsim.sweep.computing": "hybridsim.studies.sweep.compute",
    "hybridsim.sweep.crew": "hybridsim.studies.sweep.workers",
    "hybridsim.sweep.fleet_answer": "hybridsim.studies.sweep.answer",
    "hybridsim.sweep.kept": "hybridsim.studies.sweep.worker_cache",
    "hybridsim.sweep.nursery": "hybridsim.studies.sweep.fork_server",
    "hybridsim.toml": "hybridsim.foundation.toml",
    "hybridsim.trace": "hybridsim.traces.trace",
    "hybridsim.trace.address_map": "hybridsim.traces.address_map",
    "hybridsim.trace.pages": "hybridsim.requests.pages",
    "hybridsim.trace.summary": "hybridsim.traces.summary",
    "hybridsim.verbs": "hybridsim.studies",
    "hybridsim.verbs.alone": "hybridsim.studies.disks_alone",
    "hybridsim.verbs.bench_seeds": "hybridsim.studies.bench",
    "hybridsim.verbs.policies_said": "hybridsim.studies.hits",
    "hybridsim.verbs.pump": "hybridsim.studies.machine_run",
    "hybridsim.verbs.recorded": "hybridsim.studies.replay",
    "hybridsim.verbs.sampling": "hybridsim.studies.counter_sampling",
    "hybridsim.verbs.several": "hybridsim.studies.side_by_side",
    "hybridsim.verbs.witness": "hybridsim.studies.why",
    "hybridsim.warm_start": "hybridsim.caches.warm_start",
    "hybridsim.workloads.of_files": "hybridsim.workloads.imported",
    "hybridsim.workloads.said": "hybridsim.workloads.parse",
    "hybridsim.writing": "hybridsim.foundation.writing",
}


class MovedFinder(MetaPathFinder, Loader):
    """Imports a module under its old name as the same module object as under the new name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old name, None for any other."""
        new = new_name(fullname)
        if new is None:
            return None
        warnings.warn(
            f"{fullname} has moved to {new}; the old name will be removed in release 1.0",
            DeprecationWarning,
            stacklevel=2,
        )
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the new name."""
        new = new_name(spec.name)
        assert new is not None
        self._new_spec = importlib.import_module(new).__spec__
        return sys.modules[new]

    def exec_module(self, module: ModuleType) -> None:
        """Do not run the module again; restore its own spec."""
        module.__spec__ = self._new_spec


def new_name(old: str) -> str | None:
    """Return the new name of a module, None if it has not moved."""
    parts = old.split(".")
    for length in (3, 2):
        new = MOVED.get(".".join(parts[:length]))
        if new is not None and len(parts) >= length:
            return ".".join([new, *parts[length:]])
    return None


def install() -> None:
    """Make the old names importable."""
    if not any(isinstance(each, MovedFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, MovedFinder())  # before the finder of files in the new folder
