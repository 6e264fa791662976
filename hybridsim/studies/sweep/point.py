"""One replay of a sweep: its identity, and the command that repeats it."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from hybridsim.foundation.printable import shell_line
from hybridsim.foundation.version import PACKAGE, __version__
from hybridsim.scenario import Scenario, identity
from hybridsim.studies.sweep.named_trace import NamedTrace

DETAIL = "replay"  # a command, and its options that the scenario does not have


@dataclass(frozen=True)
class Point:
    """One replay."""

    trace: NamedTrace
    digest: str  # of the trace
    values: tuple[tuple[str, Any], ...]  # of the keys that are varied
    scenario: Scenario  # with these values and the seed
    seed: int | None  # None: the seeds of scenario and trace
    detail: str = DETAIL  # what is computed; part of the key

    @functools.cached_property
    def key(self) -> str:
        """A hash of all inputs: trace, scenario, seed, version, detail."""
        whole = [self.digest, identity(self.scenario), self.seed, version(), self.detail]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    @property
    def what(self) -> str:
        """The command that computes it."""
        return self.detail.partition(" ")[0]

    @property
    def command(self) -> str:
        """The command line that computes this point alone."""
        words = ["hybridsim", self.what, *self.trace.arguments]
        if self.scenario.origin.name:
            words += ["--scenario", self.scenario.origin.name]
        for option in self.scenario.options:
            words += option.split(" ", 1)
        return shell_line(words)


def point(
    trace: NamedTrace, digest: str, scenario: Scenario, values: dict[str, Any], seed: int | None
) -> Point:
    """Return a point; raise ScenarioError for invalid values."""
    site = scenario.with_values(values)
    site = site if seed is None else site.with_options(seed=seed)
    return Point(trace, digest, tuple(values.items()), site, seed)


@functools.cache
def version() -> str:
    """Return the version with a hash of the source: results of other code are not reused."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
