"""Doing steps so that they are undone, whatever comes: an error, a signal, the end of the process.

A signal is noted, and acted on between two steps and while we wait; while steps are undone it is
only answered.  What a kill leaves is undone by the next run, from the journal.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from validate import journal
from validate.devices import let_go
from validate.errors import InterruptedRunError, NotOursError, RunError, ValidateError
from validate.progress import to_stderr
from validate.steps import Scene, Step, as_object, from_object
from validate.system import System

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNDONE = "undone: "
WAIT = b"validate: cleaning up; please wait\n"


@dataclass
class Stop:
    """Whether a signal asked for the end."""

    signal: int = 0

    def check(self) -> None:
        """Raise InterruptedRunError if so."""
        if self.signal:
            raise InterruptedRunError(
                f"interrupted by {signal.Signals(self.signal).name}; all that was done is undone"
            )


@contextmanager
def on_signals() -> Iterator[Stop]:
    """Yield what the first signal is noted in; what signals did before comes back."""
    stop = Stop()

    def note(number: int, _: Any) -> None:
        if stop.signal:
            with suppress(OSError):  # the terminal may be gone
                os.write(2, WAIT)
        stop.signal = stop.signal or number

    before = {each: signal.signal(each, note) for each in SIGNALS}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@dataclass
class Site:
    """Where steps are done; leave it, and they are undone."""

    scene: Scene
    stop: Stop
    journal: journal.Journal
    done: list[Step] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # what undoing said

    def do(self, step: Step) -> None:
        """Note a step, then do it."""
        self.stop.check()
        number = len(self.journal.entries())
        self.journal.write({"doing": as_object(step), "number": number})
        # Also one that fails half-way: what it did is judged by its content, never by this list.
        self.done.append(step)
        step.do(self.scene)
        self.journal.write({"did": type(step).__name__, "number": number})

    def undo(self, step: Step) -> None:
        """Undo one step before the others."""
        step.undo(self.scene.system)
        self.done.remove(step)
        self.journal.write({"undone": as_object(step)})

    def undo_all(self) -> None:
        """Undo all steps, the last one first; RunError that names what stays."""
        for step in self.done:  # the kernel still holds all of them
            seal = getattr(step, "seal", None)
            if seal is not None:
                with suppress(ValidateError, OSError):  # then it is left, and said to be
                    seal(self.scene.system)
        self.told, left = undo_in_turn(self.done, self.scene.system)
        let_go(self.scene.system)
        for each in self.told:
            if not each.startswith(UNDONE):
                to_stderr(each)  # what others put there, and stays
        if not left:
            self.journal.remove()
            return
        self.journal.close()
        raise RunError(as_left(left))


def undo_in_turn(steps: list[Step], system: System) -> tuple[list[str], list[str]]:
    """Undo the last step first, and go on behind one that fails.

    Return what was undone, or need not be, and what stays.
    """
    undone, left = [], []
    for step in reversed(steps):
        try:
            step.undo(system)
            undone.append(f"{UNDONE}{step.describe()}")
        except NotOursError as error:
            undone.append(str(error))
        except (ValidateError, OSError) as error:
            left.append(f"could not undo: {step.describe()}: {error}")
    return undone, left


def as_left(left: list[str]) -> str:
    """Say what stays, and what to do."""
    return "\n".join([*left, "mend that, then: validate clean"])


@contextmanager
def site(system: System) -> Iterator[Site]:
    """Yield a site, alone on this machine, after what dead runs left is gone."""
    with journal.alone(system), on_signals() as stop:
        clean(system)
        identity = secrets.token_hex(6)
        made = Site(
            Scene(system, facts={"id": identity}), stop, journal.Journal.begin(identity, system)
        )
        try:
            yield made
        except BaseException as error:
            try:
                made.undo_all()
            except RunError as left:
                raise RunError(f"{error}\n{left}") from error
            raise
        made.undo_all()
        stop.check()


def clean(system: System) -> list[str]:
    """Undo what dead runs noted; return what was undone.  RunError that names what stays."""
    undone = []
    for one in journal.left(system):
        steps = [from_object(entry["doing"]) for entry in one.entries() if "doing" in entry]
        told, left = undo_in_turn(steps, system)
        if left:
            one.close()
            raise RunError(f"{one.path}: a run that was killed left this:\n{as_left(left)}")
        undone += told
        one.remove()
    return undone
