"""The loads of a configuration file of Iometer: a table for each worker and test.

Tests run one after another, each for ramp + run at every depth.  Targets are concatenated on the
volume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import format_size, format_time, parse_size
from hybridsim.workloads.icf import SECOND, Icf, Spec, Worker
from hybridsim.workloads.iometer import Iometer

SECTOR = 512
DEFAULT_RUN_NS = 60 * SECOND  # for tests that run until they are stopped


class LoadTable(NamedTuple):
    """The table of a load, and the line of its access specification in the file."""

    table: dict[str, Any]
    line: int


def loads(icf: Icf, options: Mapping[str, Any]) -> list[LoadTable]:
    """Return the loads; `options` override the values of the file.

    Raises ValueError if `spec` is not an access specification of the file.
    """
    over = {key: value for key, value in options.items() if key not in ("icf", "spec")}
    span = over.get("span", Iometer.model_fields["span"].default)
    workers = icf.workers or [Worker(0)]  # a file with specifications only: one worker runs them
    places = _Places(workers, span if isinstance(span, int) else parse_size(span))
    tests = _tests(icf, workers, options.get("spec"))
    lasts_ns = (icf.ramp_ns + (icf.run_ns or DEFAULT_RUN_NS)) * max(1, len(icf.depths))
    tables = []
    for number, test in enumerate(tests):
        times = {
            "begin": format_time(number * lasts_ns),
            "end": format_time((number + 1) * lasts_ns),
        }
        for worker, spec in test:
            for at, of_span in places.of(worker):
                table = _table(icf, worker, spec) | {"at": at, "span": of_span}
                tables.append(LoadTable(table | times | over, spec.line))
    return tables


def _tests(
    icf: Icf, workers: Sequence[Worker], name: str | None
) -> list[list[tuple[Worker, Spec]]]:
    """Return for each test the workers with their access specifications."""
    if name is not None:
        if name.lower() not in icf.specs:
            names = [spec.name for spec in icf.specs.values()]
            raise ValueError(f"unknown access specification {name!r}: {hint(name, names)}")
        return [[(worker, icf.specs[name.lower()]) for worker in workers]]
    assigned = [[each for each, _ in worker.specs] for worker in workers]
    if not any(assigned):  # no assignments: run all specifications, one after another
        assigned = [[spec.name for spec in icf.specs.values()]] * len(workers)
    return [
        [
            (worker, icf.specs[names[test].lower()])
            for worker, names in zip(workers, assigned)
            if test < len(names) and (names[test].lower() in icf.specs)
        ]
        for test in range(max(map(len, assigned)))
    ]


def _table(icf: Icf, worker: Worker, spec: Spec) -> dict[str, Any]:
    return {
        "kind": "iometer",
        "name": spec.name,
        "access": [",".join(map(str, row)) for row in spec.access],
        "depth": list(icf.depths or (worker.outstanding,)),
        "ramp": format_time(icf.ramp_ns),
        "run": format_time(icf.run_ns or DEFAULT_RUN_NS),
    }


class _Places:
    """The places of targets: each starts at the end of the preceding one."""

    def __init__(self, workers: Sequence[Worker], span_bytes: int) -> None:
        self._span_bytes = span_bytes
        self._begin: dict[str, int] = {}
        extents: dict[str, int] = {}
        for worker in workers:
            for target in worker.targets or [""]:
                extents[target] = max(extents.get(target, 0), self._extent(worker))
        begin = 0
        for target, extent in extents.items():
            self._begin[target] = begin
            begin += extent

    def _span(self, worker: Worker) -> int:
        return worker.sectors_max * SECTOR or self._span_bytes

    def _extent(self, worker: Worker) -> int:
        return worker.first_sector * SECTOR + self._span(worker)

    def of(self, worker: Worker) -> Iterator[tuple[str, str]]:
        """Yield the offset and the size of the range of each target of a worker."""
        for target in worker.targets or [""]:
            at = self._begin[target] + worker.first_sector * SECTOR
            yield format_size(at), format_size(self._span(worker))
