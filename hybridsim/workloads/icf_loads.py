"""The loads that a configuration file of Iometer comes to: a table for each worker and test.

Tests follow one another, each as long as ramp and run say, once for each depth.  Targets lie one
behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import format_size, format_time, parse_size
from hybridsim.workloads.icf import SECOND, Icf, Spec, Worker
from hybridsim.workloads.iometer import Iometer

SECTOR = 512
USUAL_RUN_NS = 60 * SECOND  # where a test runs until somebody stops it


class Made(NamedTuple):
    """A load, and the line of the file that asks for it."""

    table: dict[str, Any]
    line: int


def loads(icf: Icf, said: Mapping[str, Any]) -> list[Made]:
    """Return the loads; what is said beside the file goes over it.

    Raises ValueError where `spec` names none of the file's.
    """
    over = {key: value for key, value in said.items() if key not in ("icf", "spec")}
    span = over.get("span", Iometer.model_fields["span"].default)
    workers = icf.workers or [Worker(0)]  # a file of specifications only: one does them all
    places = _Places(workers, span if isinstance(span, int) else parse_size(span))
    tests = _tests(icf, workers, said.get("spec"))
    lasts_ns = (icf.ramp_ns + (icf.run_ns or USUAL_RUN_NS)) * max(1, len(icf.depths))
    found = []
    for number, test in enumerate(tests):
        times = {
            "begin": format_time(number * lasts_ns),
            "end": format_time((number + 1) * lasts_ns),
        }
        for worker, spec in test:
            for at, of_span in places.of(worker):
                table = _table(icf, worker, spec) | {"at": at, "span": of_span}
                found.append(Made(table | times | over, spec.line))
    return found


def _tests(
    icf: Icf, workers: Sequence[Worker], name: str | None
) -> list[list[tuple[Worker, Spec]]]:
    """Return who does what in each test."""
    if name is not None:
        if name.lower() not in icf.specs:
            known = [spec.name for spec in icf.specs.values()]
            raise ValueError(f"no access specification {name!r}: {hint(name, known)}")
        return [[(worker, icf.specs[name.lower()]) for worker in workers]]
    assigned = [[each for each, _ in worker.specs] for worker in workers]
    if not any(assigned):  # nobody is told to do anything: all of them, one after the other
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
        "run": format_time(icf.run_ns or USUAL_RUN_NS),
    }


class _Places:
    """Where targets lie: each begins where the one before ends."""

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
        return worker.most_sectors * SECTOR or self._span_bytes

    def _extent(self, worker: Worker) -> int:
        return worker.first_sector * SECTOR + self._span(worker)

    def of(self, worker: Worker) -> Iterator[tuple[str, str]]:
        """Yield where the part of each of its targets begins, and how large it is."""
        for target in worker.targets or [""]:
            at = self._begin[target] + worker.first_sector * SECTOR
            yield format_size(at), format_size(self._span(worker))
