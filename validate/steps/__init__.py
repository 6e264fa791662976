"""The steps that change the machine.  To add one, add a file and a line in STEPS.

A step is a frozen dataclass of plain values, and its `undo` uses only those.  `undo` looks for the
step's effects, removes only content that is proven ours (by a token, a UUID or a name with the
run's ID), and succeeds if there is none.  So another process can undo a step from the journal,
however far it got.
"""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from validate.system import System

STEPS = {
    "CreateFile": "validate.steps.files",
    "AttachLoop": "validate.steps.files",
    "Occupy": "validate.steps.ends",
    "MakeRaid": "validate.steps.raid",
    "MapLinear": "validate.steps.mapper",
    "MapCache": "validate.steps.mapper",
    "MapWritecache": "validate.steps.mapper",
    "FormatBcache": "validate.steps.bcache",
    "StartBcache": "validate.steps.bcache",
    "ZeroPart": "validate.steps.opencas",
    "LinkDevices": "validate.steps.opencas",
    "StartOpenCas": "validate.steps.opencas",
    "HoldReadOnly": "validate.steps.read_only",
    "SetThrottle": "validate.steps.queues",
    "RunProgram": "validate.steps.programs",
}
PREFIX = "hsval"  # of all names that a run creates
UUID_PREFIX = "68737661-6c00-4000-8000-"  # "hsval" in hexadecimal


@dataclass
class Scene:
    """The machine, and the state of this run that steps share."""

    system: System
    roles: dict[str, str] = field(default_factory=dict)  # MAJOR:MINOR of the device, by role
    facts: dict[str, Any] = field(default_factory=dict)  # values that later code reads
    taken: dict[str, Any] = field(default_factory=dict)  # ends.HandedOver by number


class Step(Protocol):
    """One change to the machine."""

    def describe(self) -> str:
        """Return what the step does, in words, for the plan."""

    def do(self, scene: Scene) -> None:
        """Execute the step and set the roles of the devices it creates.

        Raises RunError on failure, UnsafeError if a device must not be used.
        """

    def undo(self, system: System) -> None:
        """Undo all effects of the step.

        Raises RunError if an effect remains, NotOursError if content that is not ours is kept.
        """


def as_object(step: Step) -> dict[str, Any]:
    """Return the journal's JSON object of a step."""
    values: dict[str, Any] = asdict(step)  # type: ignore[call-overload]
    return {"step": type(step).__name__} | values


def from_object(entry: dict[str, Any]) -> Step:
    """Return the step of a JSON object of the journal."""
    kind = entry["step"]
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key != "step"
    }
    step: Step = getattr(importlib.import_module(STEPS[kind]), kind)(**values)
    return step


def uuid_of(identity: str) -> str:
    """Return the UUID of a run's array or cache set: its last twelve digits are the run's ID."""
    return UUID_PREFIX + identity
