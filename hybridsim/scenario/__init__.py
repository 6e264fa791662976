"""The machine to simulate, from a TOML file, the command line and defaults.

A file says only what differs from the default scenario.  What it says wrongly is reported all at
once, each with its line, a caret and how to mend it.

    origin                what was said, and where
    presets, resolve      what follows from it: systems and drives of the catalog, defaults
    backing, controller, cache, bcache, dmcache, opencas, writecache, host, machine
                          the tables, each checked by itself
    fast_tier, caches     what tables of caches share, and which of them there are
    levels                the kinds of arrays, and what each can hold and lose
    assigned              values of any key that are set over it: cache.size=16GiB
    keys                  which keys there are, for the words of what is wrong
    text                  the whole scenario as TOML
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from hybridsim.common.errors import ScenarioError
from hybridsim.common.printable import printable
from hybridsim.common.suggest import hint
from hybridsim.scenario.overrides import SET, over, written
from hybridsim.scenario.backing import Backing
from hybridsim.scenario.cache import Cache
from hybridsim.scenario.caches import CacheTable
from hybridsim.scenario.host import Host
from hybridsim.scenario.machine import Price, Replay
from hybridsim.scenario.origin import OPTIONS, Origin
from hybridsim.scenario.resolve import resolved
from hybridsim.common.toml.parsing import cleaned

__all__ = ["OPTIONS", "Backing", "Cache", "Host", "Price", "Replay", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A checked machine: plain numbers and words, none of which can change."""

    seed: int
    backing: Backing
    cache: CacheTable
    host: Host
    replay: Replay
    price: Price | None
    origin: Origin = field(compare=False, repr=False)

    @classmethod
    def _of(cls, origin: Origin) -> Scenario:
        machine = resolved(origin)
        parts = (machine.backing, machine.cache, machine.host, machine.replay, machine.price)
        return cls(machine.seed, *parts, origin)

    @classmethod
    def default(cls) -> Scenario:
        """Return the machine that is simulated where nothing is said."""
        return cls._of(Origin())

    @classmethod
    def load(cls, path: str | FilePath) -> Scenario:
        """Read a scenario file."""
        try:
            text = FilePath(path).read_text(encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"cannot read {printable(path)}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            place = f"byte {error.start}"
            raise ScenarioError(f"{printable(path)} is not UTF-8 text ({place})") from error
        return cls.loads(text, str(path))

    @classmethod
    def loads(cls, text: str, name: str = "scenario") -> Scenario:
        """Read a scenario from text; `name` is what errors call it."""
        return cls._of(Origin.read(cleaned(text), name))

    def with_options(self, **options: Any) -> Scenario:
        """Return the scenario with options of the command line over it; None changes nothing."""
        unknown = [option for option in options if option not in OPTIONS]
        if unknown:
            raise TypeError(f"no option {unknown[0]!r}: {hint(unknown[0], OPTIONS)}")
        given = {option: value for option, value in options.items() if value is not None}
        return self._of(self.origin.over(given))

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """Return the scenario with values of any keys over it: {"cache.size": "16GiB"}.

        `cache.policy` stands for admission and replacement; see scenario/assigned.py.
        """
        return self._of(over(self.origin, values))

    @property
    def options(self) -> list[str]:
        """Return the options of the command line that were set over the file."""
        said: dict[str, Any] = dict(self.origin.said)
        words = []
        for path, name in self.origin.options.items():
            value: Any = said
            for key in path:
                value = value[key]
            words.append(f"{name}={written(value)}" if name.startswith(SET) else f"{name} {value}")
        return words

    def to_toml(self) -> str:
        """Return the scenario as TOML: every value, and where it came from."""
        from hybridsim.scenario.text import to_toml

        return to_toml(self)
