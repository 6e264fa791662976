"""A thread that samples all collectors once a second, without drift."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from validate.collecting import Collector, Subject, of
from validate.errors import RunError, ValidateError

INTERVAL_S = 1.0
ERRORS_SHOWN = 3
PATIENCE_S = 60


class Sampler:
    """Writes samples of a subject to files in a folder."""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self._subject = subject
        self._folder = folder
        self._end = threading.Event()
        self._begun = threading.Event()
        self.errors: list[str] = []

    def run(self) -> None:
        """Sample until `end` is called, and once more after it."""
        try:
            self._run()
        except Exception as error:  # reported by `wait` and `sampled`
            self.errors.append(f"{type(error).__name__}: {error}")
        finally:
            self._begun.set()

    def _run(self) -> None:
        with ExitStack() as files:
            opened = [(each, self._open(each, files)) for each in of(self._subject)]
            due = time.monotonic()
            while True:
                is_last = self._end.is_set()
                for collector, stream in opened:
                    self._take(collector, stream)
                self._begun.set()
                if is_last or self.errors:
                    return
                due = max(due + INTERVAL_S, time.monotonic())
                self._end.wait(due - time.monotonic())

    def wait(self) -> None:
        """Wait for the first samples; raise RunError if there are none."""
        if not self._begun.wait(PATIENCE_S) or self.errors:
            raise RunError(f"no samples: {'; '.join(self.errors[:ERRORS_SHOWN])}")

    def end(self) -> None:
        """Request the end of the thread."""
        self._end.set()

    def _open(self, collector: Collector, files: ExitStack) -> TextIO:
        files.callback(collector.close)
        stream = files.enter_context((self._folder / collector.file).open("w", buffering=1))
        header = collector.header()
        if header:
            stream.write(header + "\n")
        return stream

    def _take(self, collector: Collector, stream: TextIO) -> None:
        try:
            uptime_s = self._subject.system.uptime_s()
            for line in collector.sample():
                stream.write(f"{uptime_s:.2f}{collector.separator}{line}\n")
        except (ValidateError, OSError) as error:
            self.errors.append(f"{collector.file}: {error}")


@contextmanager
def sampled(subject: Subject, folder: Path) -> Iterator[Sampler]:
    """Sample during the context; raise RunError if that fails."""
    sampler = Sampler(subject, folder)
    thread = threading.Thread(target=sampler.run, name="samples", daemon=True)
    thread.start()
    try:
        sampler.wait()
        yield sampler
    finally:
        sampler.end()
        thread.join(PATIENCE_S)
    if sampler.errors:
        raise RunError(f"samples are missing: {'; '.join(sampler.errors[:ERRORS_SHOWN])}")
