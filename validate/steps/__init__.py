"""What changes the machine: a family of steps.  To add one: a file, and a line in STEPS.

A step is a frozen dataclass of plain values.  Its `undo` needs nothing but those: it looks for
whatever there is of it, removes only what is ours by its content (a token, a UUID, a name with the
run's number), and is content where there is nothing.  So a step can be undone from the journal by
another process, however far it came; one that refused to begin has left nothing to be undone.
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
    "FormatBcache": "validate.steps.bcache",
    "StartBcache": "validate.steps.bcache",
    "HoldReadOnly": "validate.steps.read_only",
    "RunProgram": "validate.steps.programs",
}
PREFIX = "hsval"  # of all our names
UUID_PREFIX = "68737661-6c00-4000-8000-"  # "hsval", as far as a UUID can say it


@dataclass
class Scene:
    """The machine, and which device plays which role in this run: MAJOR:MINOR by role."""

    system: System
    roles: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # that a later reader may want
    taken: dict[str, Any] = field(default_factory=dict)  # ends.HandedOver by number


class Step(Protocol):
    """One change to the machine."""

    def describe(self) -> str:
        """Say what it does, for the plan."""

    def do(self, scene: Scene) -> None:
        """Do it, and set the roles of what it made; RunError where that fails."""

    def undo(self, system: System) -> None:
        """Undo all there is of it.

        Raises RunError where something of it stays, NotOursError where others stepped in.
        """


def as_object(step: Step) -> dict[str, Any]:
    """Return what the journal holds of a step."""
    values: dict[str, Any] = asdict(step)  # type: ignore[call-overload]
    return {"step": type(step).__name__} | values


def from_object(told: dict[str, Any]) -> Step:
    """Return the step that the journal tells of."""
    kind = told["step"]
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in told.items()
        if key != "step"
    }
    step: Step = getattr(importlib.import_module(STEPS[kind]), kind)(**values)
    return step


def uuid_of(identity: str) -> str:
    """Return the UUID of a run's array or cache set: its last twelve digits are the run's."""
    return UUID_PREFIX + identity
