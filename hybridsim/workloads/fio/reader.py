"""The options of one job, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.jobfile import Said

T = TypeVar("T")


class Reader:
    """The options of one job, read one by one; what is wrong is noted with its place."""

    def __init__(self, given: Mapping[str, Said], wrong: list[str]) -> None:
        self.given = given
        self._wrong = wrong

    def read(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the value of an option, or the default."""
        said = self.given.get(name)
        if said is None:
            return default
        try:
            return parse(said.value)
        except (ValueError, ZeroDivisionError) as error:
            text = str(error)
            if name not in text:
                text = f"{name}: {text}"
            if text not in self._wrong:
                self._wrong.append(f"{said.place}: {text}")
            return default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is on or off."""
        return self.read(name, _flag, default)

    def number(self, name: str, default: int, least: int = 0) -> int:
        """Return a whole number."""

        def parse(text: str) -> int:
            number = options.whole(text)
            if number < least:
                raise ValueError(f"{name}={text}: at least {least}")
            return number

        return self.read(name, parse, default)

    def time(self, name: str, unit_ns: int) -> int:
        """Return a time in ns; a bare number counts in `unit_ns`."""
        return self.read(name, lambda text: options.time_ns(text, unit_ns), 0)

    def three(self, name: str, parse: Callable[[str], T], default: T) -> tuple[T, T, T]:
        """Return a value for reads, writes and trims."""

        def each(text: str) -> tuple[T, T, T]:
            parts = [parse(part) if part else default for part in options.each_direction(text)]
            return parts[0], parts[1], parts[2]

        return self.read(name, each, (default,) * 3)

    def refuse(self, name: str, text: str) -> None:
        """Note what is wrong with an option."""
        self._wrong.append(f"{self.given[name].place}: {text}")


def _flag(text: str) -> bool:
    if text.strip() not in ("0", "1"):
        raise ValueError(f"{text!r}: 1 is on and 0 is off")
    return text.strip() == "1"
