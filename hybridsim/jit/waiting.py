"""What is being compiled, for those who wait for it: which loop, how far, how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# LLVM's time over that of translating methods, of the demo's and other machines' loops (12 to 21).
LLVM_PER_TRANSLATION = 16


@dataclass
class Compilation:
    """A loop that is being compiled; times are in seconds, of `time.monotonic`."""

    loop: str
    methods: int = 0
    translating_s: float = 0.0
    optimizing_since_s: float | None = None  # None: methods are still being translated

    def left_s(self, now_s: float) -> float | None:
        """Return how long it may take still; None while that is unknown."""
        if self.optimizing_since_s is None:
            return None
        whole_s = LLVM_PER_TRANSLATION * self.translating_s
        return max(whole_s - (now_s - self.optimizing_since_s), 0.0)

    def words(self, now_s: float) -> str:
        """Return it as a line."""
        left_s = self.left_s(now_s)
        parts = [f"compiling {self.loop}", f"{self.methods:,} methods"]
        if left_s is None:
            return " · ".join([*parts, "translating"])
        return " · ".join([*parts, "optimizing", f"{left_s:.0f} s to go" if left_s else "soon"])


_under_way: dict[threading.Thread, Compilation] = {}  # the latest comes last


def under_way() -> Compilation | None:
    """Return what is being compiled; the latest, if several threads compile."""
    alive = [each for thread, each in list(_under_way.items()) if thread.is_alive()]
    return alive[-1] if alive else None


def begin(loop: str) -> None:
    """Note that this thread compiles a loop."""
    end()
    _under_way[threading.current_thread()] = Compilation(loop)


def end() -> None:
    """Note that this thread has compiled its loop."""
    _under_way.pop(threading.current_thread(), None)


def optimizing() -> None:
    """Note that this thread has translated all methods of its loop."""
    if own := _under_way.get(threading.current_thread()):
        own.optimizing_since_s = time.monotonic()


@contextmanager
def translating(count: Callable[[], int]) -> Iterator[None]:
    """Note the time of a translation, and by how much `count` of methods grows."""
    begun, before = time.monotonic(), count()
    try:
        yield
    finally:
        if own := _under_way.get(threading.current_thread()):
            own.translating_s += time.monotonic() - begun
            own.methods += count() - before
