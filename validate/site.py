"""Execute steps, and undo them after success, an error, a signal or the end of the process.

A signal sets a flag, which is checked between two steps and while a program runs; while steps are
undone, further signals only print a message.  After SIGKILL or a crash the next run undoes the
steps, from the journal.
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
from validate.devices import release_claim
from validate.errors import InterruptedRunError, NotOursError, RunError, ValidateError
from validate.progress import to_stderr
from validate.steps import Scene, Step, as_object, from_object
from validate.system import System

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNDONE = "undone: "
WAIT = b"validate: cleaning up; please wait\n"


@dataclass
class Stop:
    """Holds the first signal that arrived, or 0."""

    signal: int = 0

    def check(self) -> None:
        """Raise InterruptedRunError if a signal arrived."""
        if self.signal:
            raise InterruptedRunError(
                f"interrupted by {signal.Signals(self.signal).name}; all steps are undone"
            )


@contextmanager
def on_signals() -> Iterator[Stop]:
    """Install handlers that record the first signal; restore the previous handlers on exit."""
    stop = Stop()

    def record(number: int, _: Any) -> None:
        if stop.signal:
            with suppress(OSError):  # the terminal may be gone
                os.write(2, WAIT)
        stop.signal = stop.signal or number

    previous = {each: signal.signal(each, record) for each in SIGNALS}
    try:
        yield stop
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


@dataclass
class Site:
    """Executes the steps of one run, and undoes them."""

    scene: Scene
    stop: Stop
    journal: journal.Journal
    done: list[Step] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)  # of `undo_all`

    def do(self, step: Step) -> None:
        """Write a step to the journal, then execute it."""
        self.stop.check()
        number = len(self.journal.entries())
        self.journal.write({"doing": as_object(step), "number": number})
        # Before the step runs: one that fails half-way must be undone too.  Its `undo` decides by
        # the content of the devices, not by this list.
        self.done.append(step)
        step.do(self.scene)
        self.journal.write({"did": type(step).__name__, "number": number})

    def undo(self, step: Step) -> None:
        """Undo one step now, before the others."""
        step.undo(self.scene.system)
        self.done.remove(step)
        self.journal.write({"undone": as_object(step)})

    def undo_all(self) -> None:
        """Undo all steps, the last one first; raise RunError with those that fail."""
        for step in self.done:  # before any undo: the kernel still holds all devices
            seal = getattr(step, "seal", None)
            if seal is not None:
                with suppress(ValidateError, OSError):  # unsealed content is kept and reported
                    seal(self.scene.system)
        self.messages, failed = undo_in_turn(self.done, self.scene.system)
        release_claim(self.scene.system)
        for each in self.messages:
            if not each.startswith(UNDONE):
                to_stderr(each)  # content that is not ours, which was kept
        if not failed:
            self.journal.remove()
            return
        self.journal.close()
        raise RunError(with_remedy(failed))


def undo_in_turn(steps: list[Step], system: System) -> tuple[list[str], list[str]]:
    """Undo the last step first; continue after a step that fails.

    Return messages on the steps that are undone or hold content that is not ours, and messages on
    those that could not be undone.
    """
    undone, failed = [], []
    for step in reversed(steps):
        try:
            step.undo(system)
            undone.append(f"{UNDONE}{step.describe()}")
        except NotOursError as error:
            undone.append(str(error))
        except (ValidateError, OSError) as error:
            failed.append(f"could not undo: {step.describe()}: {error}")
    return undone, failed


def with_remedy(failed: list[str]) -> str:
    """Return the messages on steps that could not be undone, and what to do about them."""
    return "\n".join([*failed, "resolve that, then run: validate clean"])


@contextmanager
def site(system: System) -> Iterator[Site]:
    """Undo the steps of dead runs, then yield the only active site of this machine."""
    with journal.exclusive(system), on_signals() as stop:
        clean(system)
        identity = secrets.token_hex(6)
        current = Site(
            Scene(system, facts={"id": identity}), stop, journal.Journal.begin(identity, system)
        )
        try:
            yield current
        except BaseException as error:
            try:
                current.undo_all()
            except RunError as failure:
                raise RunError(f"{error}\n{failure}") from error
            raise
        current.undo_all()
        stop.check()


def clean(system: System) -> list[str]:
    """Undo the steps in the journals of dead runs; return messages on them.

    Raises RunError with the steps that could not be undone.
    """
    undone = []
    for one in journal.abandoned(system):
        steps = [from_object(entry["doing"]) for entry in one.entries() if "doing" in entry]
        messages, failed = undo_in_turn(steps, system)
        if failed:
            one.close()
            raise RunError(f"{one.path}: of a run that was killed:\n{with_remedy(failed)}")
        undone += messages
        one.remove()
    return undone
