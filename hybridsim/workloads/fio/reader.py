"""Typed access to the options of one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.jobfile import OptionValue

T = TypeVar("T")


class Reader:
    """Typed access to the options of one job; errors are collected with their places."""

    def __init__(
        self, specified: Mapping[str, OptionValue], wrong: list[str], place: str = "job"
    ) -> None:
        self.specified = specified
        self._wrong = wrong
        self._place = place

    def read(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the parsed value of an option, or the default."""
        option = self.specified.get(name)
        if option is None:
            return default
        try:
            return parse(option.value)
        except (ValueError, ZeroDivisionError) as error:
            text = str(error)
            if name not in text:
                text = f"{name}: {text}"
            if text not in self._wrong:
                self._wrong.append(f"{option.place}: {text}")
            return default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is 0 or 1."""
        return self.read(name, _flag, default)

    def number(self, name: str, default: int, minimum: int = 0) -> int:
        """Return a whole number of at least `minimum`."""

        def parse(text: str) -> int:
            number = options.whole(text)
            if number < minimum:
                raise ValueError(f"{name}={text}: the minimum is {minimum}")
            return number

        return self.read(name, parse, default)

    def time(self, name: str, unit_ns: int) -> int:
        """Return a time in ns; a number without a unit is in `unit_ns`."""
        return self.read(name, lambda text: options.time_ns(text, unit_ns), 0)

    def three(self, name: str, parse: Callable[[str], T], default: T) -> tuple[T, T, T]:
        """Return the values for reads, writes and trims."""

        def each(text: str) -> tuple[T, T, T]:
            parts = [parse(part) if part else default for part in options.each_direction(text)]
            return parts[0], parts[1], parts[2]

        return self.read(name, each, (default,) * 3)

    def refuse(self, name: str, text: str) -> None:
        """Record an error of an option; if its default is the cause, at the place of the job."""
        option = self.specified.get(name)
        self._wrong.append(f"{option.place if option else self._place}: {text}")


def _flag(text: str) -> bool:
    if text.strip() not in ("0", "1"):
        raise ValueError(f"{text!r}: must be 1 (on) or 0 (off)")
    return text.strip() == "1"
