"""One replay to be done: what makes it the same as another, and the command that repeats it."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hybridsim.common.version import __version__
from hybridsim.common.errors import TraceError, UsageError
from hybridsim.scenario import Scenario
from hybridsim.scenario.identity import identity
from hybridsim.traces.trace import GENERATED, Trace, arguments, sources_of

DETAIL = "replay"  # with devices and time, both machines


class TraceSaid(NamedTuple):
    """A trace as it was named, and from where."""

    paths: tuple[str, ...]
    format: str | None = None
    device: str | None = None
    use_dispatch: bool = False
    folder: str = ""
    split: tuple[str, str] | None = None  # of a fleet's volume: its file, what its digest is of

    @classmethod
    def here(
        cls,
        paths: tuple[str, ...],
        format: str | None = None,
        device: str | None = None,
        use_dispatch: bool = False,
    ) -> TraceSaid:
        """Return a trace that is named from the current folder."""
        if "-" in paths:
            raise UsageError("a sweep reads its traces more than once: save standard input first")
        return cls(paths, format, device, use_dispatch, os.getcwd())

    @property
    def places(self) -> tuple[str, ...]:
        """The paths, for a process that may be in another folder."""
        return tuple(
            path if path.startswith(GENERATED) else os.path.join(self.folder, path)
            for path in self.paths
        )

    def open(self, seed: int | None = None) -> Trace:
        """Open it; a workload draws its requests by `seed`, if there is one."""
        if self.split:
            from hybridsim.studies.sweep.fleet import opened

            return opened(self.split[0], self.name)
        trace = Trace.read(self.places, self.format, self.device, self.use_dispatch)
        return trace if seed is None else trace.seeded(seed)

    @property
    def name(self) -> str:
        """What reports call it."""
        return " ".join(self.paths) + (f" {self.device}" if self.device else "")

    @property
    def arguments(self) -> list[str]:
        """The words of a command line that name it."""
        return arguments(self.paths, self.format, self.device, self.use_dispatch)

    def digest(self) -> str:
        """Return a hash of the bytes of its files, and of how they are read."""
        if self.split:
            return hashlib.sha256(self.split[1].encode()).hexdigest()
        digest = hashlib.sha256(json.dumps(self[1:4]).encode())
        for path in self.places:
            for source in sources_of(path):
                digest.update(_of_text(path) if source.path is None else _of_file(source.path))
        return digest.hexdigest()


@dataclass(frozen=True)
class Point:
    """One replay."""

    trace: TraceSaid
    digest: str  # of the trace
    values: tuple[tuple[str, Any], ...]  # of the keys that are varied
    scenario: Scenario  # with these values and the seed
    seed: int | None  # None: as scenario and trace say

    @functools.cached_property
    def key(self) -> str:
        """A hash of all that the result depends on: trace, scenario, seed, version, detail."""
        whole = [self.digest, identity(self.scenario), self.seed, version(), DETAIL]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    @property
    def command(self) -> str:
        """The command that does this replay alone."""
        words = ["hybridsim", "replay", *self.trace.arguments]
        if self.scenario.origin.name:
            words += ["--scenario", self.scenario.origin.name]
        for option in self.scenario.options:
            words += option.split(" ", 1)
        return shlex.join(words)


def point(
    trace: TraceSaid, digest: str, scenario: Scenario, values: dict[str, Any], seed: int | None
) -> Point:
    """Return a point; raise ScenarioError for values that cannot be."""
    site = scenario.with_values(values)
    site = site if seed is None else site.with_options(seed=seed)
    return Point(trace, digest, tuple(values.items()), site, seed)


@functools.cache
def version() -> str:
    """Return the version, with a hash of the source: what other code found is not reused."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _of_text(path: str) -> bytes:
    return hashlib.sha256(path.encode()).digest()


def _of_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
