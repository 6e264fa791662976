"""What the datasheets of all kinds of drive have in common."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from hybridsim.foundation.toml.table import Part


@dataclass(frozen=True)
class Placement:
    """How an array uses its drives; a kind of drive ignores what does not concern it."""

    capacity_bytes: int  # of each drive that is simulated
    seed: int = 0
    short_stroke: bool = False
    # a hard disk's parameters that are the array's: by default a drive serves in order of arrival
    overrides: Mapping[str, int] = field(default_factory=lambda: {"window": 1, "age_limit_ns": 0})


class Datasheet(Part):
    """The quantities of a drive, and how its device is built from them.

    A kind of drive has its name as `kind: Literal[...]` and a capacity.
    """

    device: ClassVar[str]  # "module:function(drive, members, use)" that builds its device
    rotates: ClassVar[bool] = False  # the position of its heads counts
    random: ClassVar[str] = ""  # what it draws by chance; empty: it draws nothing

    kind: str
    like: str = ""  # name in the catalog of the drive that it is, or is derived from
    name: str = "own drive"  # in reports

    if TYPE_CHECKING:
        capacity_bytes: int  # each kind has its own field for it, where it stands in its file

    @property
    def has_fua(self) -> bool:
        """Return whether the drive honours forced unit access (FUA), without a flush after it."""
        return True

    def bank(self, members: int, use: Placement) -> Any:
        """Return `members` idle drives: a device of storage/devices."""
        module, function = self.device.split(":")
        return getattr(importlib.import_module(module), function)(self, members, use)
